"""Lastde and Lastde++ (arXiv 2410.06072): likelihood over the diversity of its course."""

from dataclasses import dataclass
from typing import Any

from palimpsest.detectors.zero_shot import DrawsDetector, OneModel, OneModelDetector, TwoModels
from palimpsest.statistics import criteria
from palimpsest.statistics.tokens import DrawnStatistics, TokenStatistics


@dataclass(kw_only=True)
class Settings(OneModel):
    """The defaults are those of the authors' code for open models.

    `embedding` is their e, `bins_per_token` their epsilon over the number of tokens, `scales` their
    tau'. A text of fewer than `scales + embedding` scored tokens is too short.
    """

    embedding: int = 3
    bins_per_token: float = 10.0
    scales: int = 5


@dataclass(kw_only=True)
class PlusSettings(TwoModels):
    """As in the authors' code, whose README prints 10 scales."""

    embedding: int = 4
    bins_per_token: float = 8.0
    scales: int = 15
    draws: int = 100
    seed: int = 0


class Lastde(OneModelDetector):
    settings_type = Settings

    def criterion(self, tokens: TokenStatistics) -> float:
        return criteria.lastde(tokens, **_course(self.settings))


class LastdePlusPlus(DrawsDetector):
    settings_type = PlusSettings

    def criterion(self, tokens: DrawnStatistics) -> float:
        return criteria.lastde_pp(tokens, **_course(self.settings))


def _course(settings: Settings | PlusSettings) -> dict[str, Any]:
    return {name: getattr(settings, name) for name in ("embedding", "bins_per_token", "scales")}
