"""Lastde and Lastde++ (arXiv 2410.06072): likelihood over the diversity of its course."""

from dataclasses import dataclass
from typing import Any, ClassVar

from palimpsest.detectors.zero_shot import DrawsDetector, OneModel, OneModelDetector, TwoModels
from palimpsest.statistics import criteria
from palimpsest.statistics.tokens import DrawnStatistics, TokenStatistics

# Below 2 scales there is no spread, below one bin for each token perhaps no second bin.
_LEAST = {"embedding": 1, "bins_per_token": 1, "scales": 2}


@dataclass(kw_only=True)
class Settings(OneModel):
    """The defaults are those of the authors' code for open models.

    `embedding` is their e, `bins_per_token` their epsilon over the number of tokens, `scales` their
    tau'. A text of fewer than `scales + embedding` scored tokens is too short.
    """

    LEAST: ClassVar = _LEAST

    embedding: int = 3
    bins_per_token: float = 10.0
    scales: int = 5


@dataclass(kw_only=True)
class PlusSettings(TwoModels):
    """As in the authors' code, whose README prints 10 scales."""

    LEAST: ClassVar = {**_LEAST, "draws": 2}

    embedding: int = 4
    bins_per_token: float = 8.0
    scales: int = 15
    draws: int = 100
    seed: int = 0


class Lastde(OneModelDetector):
    settings_type = Settings

    @property
    def least(self) -> int:
        return _least(self.settings)

    def criterion(self, tokens: TokenStatistics) -> float:
        return criteria.lastde(tokens, **_course(self.settings))


class LastdePlusPlus(DrawsDetector):
    settings_type = PlusSettings

    @property
    def least(self) -> int:
        return _least(self.settings)

    def criterion(self, tokens: DrawnStatistics) -> float:
        return criteria.lastde_pp(tokens, **_course(self.settings))


def _least(settings: Settings | PlusSettings) -> int:
    return settings.scales + settings.embedding


def _course(settings: Settings | PlusSettings) -> dict[str, Any]:
    return {name: getattr(settings, name) for name in ("embedding", "bins_per_token", "scales")}
