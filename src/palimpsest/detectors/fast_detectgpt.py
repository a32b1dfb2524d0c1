"""Fast-DetectGPT (arXiv 2310.05130): conditional probability curvature, analytic or from draws.

The score is the curvature, not the published probability, which is not monotone in it.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from palimpsest.detectors.zero_shot import OneModel as Settings
from palimpsest.detectors.zero_shot import OneModelDetector, TwoModels, ZeroShot, pair
from palimpsest.errors import InputError
from palimpsest.records import Level, Text
from palimpsest.statistics import criteria
from palimpsest.statistics.engine import Engine
from palimpsest.statistics.tokens import DrawnStatistics, PairStatistics, TokenStatistics

__all__ = ["FastDetectGPT", "FastDetectGPTPair", "PairSettings", "Settings"]


class FastDetectGPT(OneModelDetector):
    """One model samples and scores."""

    @property
    def published(self) -> Mapping[Level, float]:
        return _threshold(self.settings.model, self.settings.model)

    def criterion(self, tokens: TokenStatistics) -> float:
        return criteria.fast_detectgpt(tokens)


@dataclass(kw_only=True)
class PairSettings(TwoModels):
    """`draws` above 0 estimates the curvature from so many (the paper: 10,000), with `seed`."""

    draws: int = 0
    seed: int = 0

    def __post_init__(self) -> None:
        TwoModels.__post_init__(self)
        if self.draws and self.draws < 2:
            raise InputError(f"draws is {self.draws}; give 2 or more, or 0 for the exact sums")


class FastDetectGPTPair(ZeroShot[PairStatistics | DrawnStatistics]):
    """One model samples, another scores."""

    settings_type = PairSettings

    @property
    def published(self) -> Mapping[Level, float]:
        return _threshold(self.settings.sampling, self.settings.scoring)

    def statistics(self, texts: Sequence[Text]) -> Iterator[PairStatistics | DrawnStatistics]:
        kind = DrawnStatistics if self.settings.draws else PairStatistics
        return map(kind.of, self._engine.read([text.text for text in texts]))

    @cached_property
    def _engine(self) -> Engine:
        settings = self.settings
        if not settings.draws:
            return self.engine(kind="pair", models=pair(settings))
        return self.engine(
            kind="draws", models=pair(settings), draws=settings.draws, seed=settings.seed
        )

    def criterion(self, tokens: PairStatistics | DrawnStatistics) -> float:
        if isinstance(tokens, DrawnStatistics):
            return criteria.fast_detectgpt_sampled(tokens)
        return criteria.fast_detectgpt_pair(tokens)


def _threshold(sampling: str, scoring: str) -> Mapping[Level, float]:
    """The upper crossing of the authors' probability with one half, for models they fitted."""
    fit = criteria.FAST_DETECTGPT_FITS.get((sampling, scoring))
    return {"document": fit.threshold} if fit else {}
