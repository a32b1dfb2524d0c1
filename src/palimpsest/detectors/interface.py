"""What a detector is: a class that learns from labelled texts and scores texts."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, Self

from palimpsest.records import Labelled, Level, Scores, Text


class Log(Protocol):
    """Where a detector's training reports: `log("dev_loss", 0.12, step=3)`."""

    def __call__(self, metric: str, value: float, step: int) -> None: ...


@dataclass(frozen=True, slots=True)
class Runtime:
    """Where and how a detector runs; no part of what it is.

    `cache` is whether token statistics are taken from the user's cache and kept there.
    """

    device: str = "auto"
    dtype: str = "float32"
    seed: int = 0
    cache: bool = True


class Detector(Protocol):
    """`native` is the finest level that the method itself decides on.

    `published` maps a level to the threshold that the method's authors print for these settings,
    for the rule score >= threshold; it is empty where there is none.

    A detector may have an attribute `probabilities`, the levels at which `score` gives
    probabilities of AI; calibration is measured there alone.

    It may have `revisions`, the exact revision of each of its models by the key of the setting;
    they become tags of its runs.

    `score` returns one answer for each text in the texts' order. `load` gives back a detector whose
    scores equal those of the one that was saved.
    """

    native: Level

    @property
    def published(self) -> Mapping[Level, float]: ...

    def fit(self, train: Sequence[Labelled], dev: Sequence[Labelled], log: Log) -> None: ...

    def score(self, texts: Sequence[Text]) -> list[Scores]: ...

    def save(self, folder: Path) -> None: ...

    @classmethod
    def load(cls, folder: Path, runtime: Runtime = ...) -> Self: ...
