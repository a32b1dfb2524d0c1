"""Accuracy, F1 of the AI class, macro F1, false negative rate and AUROC over pooled units."""

import numpy as np
from scipy.stats import rankdata


def decision_metrics(labels: np.ndarray, decisions: np.ndarray) -> dict[str, float]:
    """Metrics of 0/1 decisions, all in [0, 1]; what is undefined is left out.

    Macro F1 averages both labels with 0 for a label that neither occurs nor is predicted, as the
    paper does, so at v0 it is accuracy / (1 + accuracy). F1 of the AI class and the false negative
    rate need AI units.
    """
    n = len(labels)
    if n == 0:
        return {}
    hits = int(((labels == 1) & (decisions == 1)).sum())
    misses = int(((labels == 1) & (decisions == 0)).sum())
    alarms = int(((labels == 0) & (decisions == 1)).sum())
    passed = n - hits - misses - alarms
    f1_ai = _f1(hits, alarms, misses)
    metrics = {
        "accuracy": (hits + passed) / n,
        "macro_f1": (f1_ai + _f1(passed, misses, alarms)) / 2,
    }
    if hits + misses:
        metrics["f1_ai"] = f1_ai
        metrics["fnr"] = misses / (hits + misses)
    return metrics


def _f1(hits: int, alarms: int, misses: int) -> float:
    wrong = alarms + misses
    return 2 * hits / (2 * hits + wrong) if hits + wrong else 0.0


def auroc(labels: np.ndarray, scores: np.ndarray) -> float | None:
    """The probability that an AI unit scores above a human one, ties half; None with one class."""
    positives = int((labels == 1).sum())
    negatives = len(labels) - positives
    if not positives or not negatives:
        return None
    ranks = rankdata(scores)[labels == 1].sum()
    return float((ranks - positives * (positives + 1) / 2) / (positives * negatives))
