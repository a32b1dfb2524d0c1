"""LAPD (arXiv 2604.16923): how much alignment raised the text's tokens, standardised.

Its base model is our sampling model, its aligned model our scoring model.
"""

from palimpsest.detectors.zero_shot import PairDetector
from palimpsest.detectors.zero_shot import TwoModels as Settings
from palimpsest.statistics import criteria
from palimpsest.statistics.tokens import PairStatistics

__all__ = ["LAPD", "Settings"]


class LAPD(PairDetector):
    """The analytic score, which needs no draws and no seed."""

    def criterion(self, tokens: PairStatistics) -> float:
        return criteria.lapd(tokens)
