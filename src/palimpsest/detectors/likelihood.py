"""Means over a text's tokens under one model: log-likelihood, entropy, rank, log-rank and LRR."""

from palimpsest.detectors.zero_shot import OneModel as Settings
from palimpsest.detectors.zero_shot import OneModelDetector
from palimpsest.statistics import criteria
from palimpsest.statistics.tokens import TokenStatistics

__all__ = ["LRR", "Entropy", "LogLikelihood", "LogRank", "Rank", "Settings"]


class LogLikelihood(OneModelDetector):
    def criterion(self, tokens: TokenStatistics) -> float:
        return criteria.log_likelihood(tokens)


class Entropy(OneModelDetector):
    def criterion(self, tokens: TokenStatistics) -> float:
        return criteria.entropy(tokens)


class Rank(OneModelDetector):
    def criterion(self, tokens: TokenStatistics) -> float:
        return criteria.rank(tokens)


class LogRank(OneModelDetector):
    def criterion(self, tokens: TokenStatistics) -> float:
        return criteria.log_rank(tokens)


class LRR(OneModelDetector):
    """DetectLLM's ratio of document means, not the mean of ratios that OpAI-Bench's code takes."""

    def criterion(self, tokens: TokenStatistics) -> float:
        return criteria.lrr(tokens)

    def note(self, tokens: TokenStatistics) -> str:
        certain = (tokens.rank == 1).all()
        return "every token has rank 1: the mean log-rank is floored" if certain else ""
