"""What all zero-shot detectors share: a pass's statistics in, one criterion of them out."""

import json
import math
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Generic, Self, TypeVar

import numpy as np

from palimpsest.detectors.interface import Log, Runtime
from palimpsest.errors import InputError, unknown
from palimpsest.models import exact_revision
from palimpsest.records import Labelled, Level, Reason, Scores, Text
from palimpsest.statistics.cache import Cache
from palimpsest.statistics.engine import Engine, Reading
from palimpsest.statistics.tokens import (
    DrawnStatistics,
    PairStatistics,
    Statistics,
    TokenStatistics,
)

S = TypeVar("S", bound=Statistics)

# The settings that name a model, and those that name its revision.
_REVISIONS = {
    "model": "revision",
    "sampling": "sampling_revision",
    "scoring": "scoring_revision",
    "filler": "filler_revision",
}


@dataclass(kw_only=True)
class Settings:
    """`long_text` is windows, where every token is scored, or truncate at `max_tokens`.

    `LEAST` has the numbers below which no text would have a score.

    Raises:
        InputError: an unknown `long_text`, a number below its least.
    """

    LEAST: ClassVar[Mapping[str, float]] = {}

    max_tokens: int
    long_text: str = "windows"

    def __post_init__(self) -> None:
        if self.long_text not in ("windows", "truncate"):
            raise unknown("long_text", self.long_text, ("windows", "truncate"))
        for key, least in self.LEAST.items():
            if (value := getattr(self, key)) < least:
                raise InputError(f"{key} is {value}; give {least:g} or more")


@dataclass(kw_only=True)
class OneModel(Settings):
    """`model` is a name for `find_model`, perhaps with `?temperature=` behind it."""

    model: str
    revision: str | None = None


@dataclass(kw_only=True)
class TwoModels(Settings):
    """Two models with one tokenizer; authors call them observer and performer, or base and aligned.

    In Fast-DetectGPT's and Lastde++'s black-box settings, the sampling model is the reference.
    """

    sampling: str
    scoring: str
    sampling_revision: str | None = None
    scoring_revision: str | None = None


class ZeroShot(ABC, Generic[S]):
    """A document's score is the criterion of its tokens' statistics.

    Sentence scores are an extension of each method: the same criterion of a sentence's tokens, read
    in the whole document's context. The note counts the sentences without a score by the reason.
    """

    native: Level = "document"
    settings_type: ClassVar[type[Any]]

    def __init__(self, settings: Any, runtime: Runtime) -> None:
        self.settings = settings
        self.runtime = runtime

    @abstractmethod
    def criterion(self, tokens: S) -> float:
        """Higher for AI; nan where it is undefined."""

    @abstractmethod
    def statistics(self, texts: Sequence[Text]) -> Iterator[S]:
        """What the criterion needs of each text, in the texts' order."""

    @property
    def published(self) -> Mapping[Level, float]:
        """Nothing, unless the method's authors print a threshold for these settings."""
        return {}

    @property
    def least(self) -> int:
        """The fewest scored tokens that the criterion takes."""
        return 1

    def note(self, tokens: S) -> str:
        """What a reader of a defined score should know of it."""
        return ""

    def undefined(self, tokens: S) -> tuple[Reason, str]:
        """Why there is no score."""
        count = len(tokens)
        if not count and tokens.seen < 1:
            return "truncated", "not read"
        if count < self.least:
            return "too_short", f"{count} scored tokens; the method needs {self.least}"
        return "error", f"undefined for its {count} scored tokens"

    def fit(self, train: Sequence[Labelled], dev: Sequence[Labelled], log: Log) -> None:
        """Nothing: the method is zero-shot."""

    def score(self, texts: Sequence[Text]) -> list[Scores]:
        read = self.statistics(texts)
        return [self._scores(text, tokens) for text, tokens in zip(texts, read, strict=True)]

    @property
    def revisions(self) -> dict[str, str]:
        """The exact revision of each model, by the key of the setting that names it.

        Raises:
            InputError: a hub model that is neither in the hub's cache nor within reach.
        """
        settings = asdict(self.settings)
        return {
            revision: exact_revision(settings[model].partition("?")[0], settings.get(revision))
            for model, revision in _REVISIONS.items()
            if model in settings
        }

    def save(self, folder: Path) -> None:
        """Write the settings, with the exact revisions of their models."""
        folder.mkdir(parents=True, exist_ok=True)
        settings = {**asdict(self.settings), **self.revisions}
        (folder / "settings.json").write_text(json.dumps(settings, indent=2) + "\n")

    @classmethod
    def load(cls, folder: Path, runtime: Runtime | None = None) -> Self:
        settings = cls.settings_type(**json.loads((folder / "settings.json").read_text()))
        return cls(settings, runtime or Runtime())

    def engine(self, **reading: Any) -> Engine:
        """An engine with what settings and runtime say; `reading` says the rest."""
        settings, runtime = self.settings, self.runtime
        given = Reading(
            max_tokens=settings.max_tokens,
            truncate=settings.long_text == "truncate",
            device=runtime.device,
            dtype=runtime.dtype,
            **reading,
        )
        return Engine(given, Cache.of_user() if runtime.cache else None)

    def _scores(self, text: Text, tokens: S) -> Scores:
        document = self.criterion(tokens)
        parts = [tokens.within(sentence) for sentence in text.sentences]
        sentences = [self.criterion(part) for part in parts]
        reason: Reason | None
        if math.isnan(document):
            reason, note = self.undefined(tokens)
        else:
            reason = "truncated" if tokens.seen < 1 else None
            unscored = Counter(
                self.undefined(part)[0]
                for part, score in zip(parts, sentences, strict=True)
                if math.isnan(score)
            )
            counts = (f"{n} of {len(parts)} sentences {why}" for why, n in unscored.items())
            note = "; ".join(filter(None, (self.note(tokens), *counts)))
        return Scores(
            document,
            sentences=np.array(sentences, np.float32),
            reason=reason,
            note=note,
            seen=tokens.seen,
        )


class OneModelDetector(ZeroShot[TokenStatistics]):
    settings_type = OneModel

    def statistics(self, texts: Sequence[Text]) -> Iterator[TokenStatistics]:
        return map(TokenStatistics.of, self._engine.read([text.text for text in texts]))

    @cached_property
    def _engine(self) -> Engine:
        return self.engine(kind="single", models=((self.settings.model, self.settings.revision),))


class PairDetector(ZeroShot[PairStatistics]):
    settings_type = TwoModels

    def statistics(self, texts: Sequence[Text]) -> Iterator[PairStatistics]:
        return map(PairStatistics.of, self._engine.read([text.text for text in texts]))

    @cached_property
    def _engine(self) -> Engine:
        return self.engine(kind="pair", models=pair(self.settings))


class DrawsDetector(ZeroShot[DrawnStatistics]):
    """Its settings are `TwoModels` with the number of draws and their seed."""

    def statistics(self, texts: Sequence[Text]) -> Iterator[DrawnStatistics]:
        return map(DrawnStatistics.of, self._engine.read([text.text for text in texts]))

    @cached_property
    def _engine(self) -> Engine:
        settings = self.settings
        return self.engine(
            kind="draws", models=pair(settings), draws=settings.draws, seed=settings.seed
        )


def pair(settings: TwoModels) -> tuple[tuple[str, str | None], ...]:
    return (
        (settings.sampling, settings.sampling_revision),
        (settings.scoring, settings.scoring_revision),
    )
