"""Binoculars (arXiv 2401.12070) and DNA-DetectLLM (arXiv 2509.15550), one formula apart.

Their observer is our sampling model, their performer our scoring model.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from palimpsest.detectors.zero_shot import PairDetector, TwoModels
from palimpsest.detectors.zero_shot import TwoModels as Settings
from palimpsest.errors import unknown
from palimpsest.records import Level
from palimpsest.statistics import criteria
from palimpsest.statistics.tokens import PairStatistics

__all__ = ["Binoculars", "BinocularsSettings", "DNADetectLLM", "Settings"]

# The authors' thresholds of their score, for Falcon-7B in bfloat16 and 512 tokens.
_THRESHOLDS = {"low-fpr": 0.8536432310785527, "accuracy": 0.9015310749276843}
_FALCONS = ("tiiuae/falcon-7b", "tiiuae/falcon-7b-instruct")


@dataclass(kw_only=True)
class BinocularsSettings(TwoModels):
    """`mode` picks the published threshold: low-fpr or accuracy."""

    mode: str = "low-fpr"

    def __post_init__(self) -> None:
        TwoModels.__post_init__(self)
        if self.mode not in _THRESHOLDS:
            raise unknown("binoculars.mode", self.mode, _THRESHOLDS)


class Binoculars(PairDetector):
    settings_type = BinocularsSettings

    @property
    def published(self) -> Mapping[Level, float]:
        if (self.settings.sampling, self.settings.scoring) != _FALCONS:
            return {}
        return {"document": -_THRESHOLDS[self.settings.mode]}

    def criterion(self, tokens: PairStatistics) -> float:
        return criteria.binoculars(tokens)


class DNADetectLLM(PairDetector):
    """Its code takes over Binoculars' thresholds, which its own score does not fit: none here."""

    def criterion(self, tokens: PairStatistics) -> float:
        return criteria.dna_detectllm(tokens)
