"""Fast-DetectGPT, analytic, with one model that samples and scores (arXiv 2310.05130)."""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Self

import numpy as np

from palimpsest.detectors.interface import Log, Runtime
from palimpsest.errors import unknown
from palimpsest.records import Labelled, Level, Reason, Scores, Text
from palimpsest.statistics.criteria import FAST_DETECTGPT_FITS, fast_detectgpt
from palimpsest.statistics.tokens import TokenStatistics

if TYPE_CHECKING:
    from palimpsest.statistics.reference import Reference


@dataclass
class Settings:
    model: str
    max_tokens: int
    revision: str | None = None
    long_text: str = "windows"

    def __post_init__(self) -> None:
        if self.long_text not in ("windows", "truncate"):
            raise unknown("fast-detectgpt.long_text", self.long_text, ("windows", "truncate"))


class FastDetectGPT:
    """The score is the curvature, not the published probability, which is not monotone in it.

    Sentence scores are an extension: the same sums over a sentence's tokens, read in the whole
    document's context.
    """

    native: Level = "document"

    def __init__(self, settings: Settings, runtime: Runtime) -> None:
        self.settings = settings
        self.runtime = runtime

    @property
    def published(self) -> Mapping[Level, float]:
        """The upper crossing of the authors' probability with one half, for models they fitted."""
        fit = FAST_DETECTGPT_FITS.get((self.settings.model, self.settings.model))
        return {"document": fit.threshold} if fit else {}

    def fit(self, train: Sequence[Labelled], dev: Sequence[Labelled], log: Log) -> None:
        """Nothing: the method is zero-shot."""

    def score(self, texts: Sequence[Text]) -> list[Scores]:
        from palimpsest.statistics.passes import token_statistics

        statistics = token_statistics(
            self._reference,
            [text.text for text in texts],
            max_tokens=self.settings.max_tokens,
            truncate=self.settings.long_text == "truncate",
        )
        return [_scores(text, tokens) for text, tokens in zip(texts, statistics, strict=True)]

    def save(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "settings.json").write_text(json.dumps(asdict(self.settings), indent=2) + "\n")

    @classmethod
    def load(cls, folder: Path, runtime: Runtime | None = None) -> Self:
        settings = Settings(**json.loads((folder / "settings.json").read_text()))
        return cls(settings, runtime or Runtime())

    @cached_property
    def _reference(self) -> "Reference":
        from palimpsest.statistics.reference import Reference

        settings, runtime = self.settings, self.runtime
        return Reference.load(settings.model, settings.revision, runtime.device, runtime.dtype)


def _scores(text: Text, tokens: TokenStatistics) -> Scores:
    document = fast_detectgpt(tokens)
    sentences = [fast_detectgpt(tokens.within(sentence)) for sentence in text.sentences]
    reason: Reason | None = "truncated" if tokens.seen < 1 else None
    note = ""
    if math.isnan(document):
        reason = "too_short"
        note = "the model is certain of each token" if len(tokens) else "no token to score"
    return Scores(
        document,
        sentences=np.array(sentences, np.float32),
        reason=reason,
        note=note,
        seen=tokens.seen,
    )
