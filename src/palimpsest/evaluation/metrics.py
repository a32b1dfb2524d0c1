"""Metrics as functions of sums over units, so that a resample is one more row of sums.

All arrays may have leading axes (resamples, cells); what is undefined is nan.
"""

import numpy as np

BINS = 15  # of the expected calibration error, equally wide over [0, 1]
FALSE_POSITIVE_RATES = (0.01, 0.05)


def confusion_code(labels: np.ndarray, decisions: np.ndarray) -> np.ndarray:
    """Each unit's column in the counts: 0 human passed, 1 false alarm, 2 miss, 3 hit."""
    code: np.ndarray = 2 * labels + decisions
    return code


def decision_metrics(counts: np.ndarray) -> dict[str, np.ndarray]:
    """Metrics in [0, 1] from counts (..., 4) of human passed, false alarms, misses and hits.

    Macro F1 averages both labels, with 0 for one that neither occurs nor is predicted, as the paper
    does, so at v0 it is accuracy / (1 + accuracy). F1 of the AI class, precision, recall and FNR
    are undefined without AI units, precision also without units called AI. `ai_share` is the share
    of units called AI.
    """
    passed, alarms, misses, hits = np.moveaxis(np.asarray(counts, dtype=float), -1, 0)
    n, ai = passed + alarms + misses + hits, misses + hits
    wrong = alarms + misses
    f1_ai, f1_human = (ratio(2 * right, 2 * right + wrong, 0.0) for right in (hits, passed))
    return {
        "accuracy": ratio(hits + passed, n),
        "f1_ai": _where(ai > 0, f1_ai),
        "macro_f1": _where(n > 0, (f1_ai + f1_human) / 2),
        "fnr": ratio(misses, ai),
        "precision": _where(ai > 0, ratio(hits, hits + alarms)),
        "recall": ratio(hits, ai),
        "ai_share": ratio(hits + alarms, n),
    }


def rank_metrics(ai: np.ndarray, human: np.ndarray) -> dict[str, float]:
    """AUROC, AUPRC (average precision) and TPR at fixed FPR from the two classes' scores.

    Ties count half in the AUROC. TPR at an FPR is the largest that some threshold reaches without
    exceeding it; nothing is interpolated. Empty with one class.
    """
    if not len(ai) or not len(human):
        return {}
    ai, human = np.sort(ai), np.sort(human)
    lower, upper = (np.searchsorted(human, ai, side) for side in ("left", "right"))
    metrics = {"auroc": float((lower.sum() + upper.sum()) / 2 / (len(ai) * len(human)))}
    # precision changes at each distinct AI score; `first` is its place among the ascending ones
    first = np.flatnonzero(np.append(True, ai[1:] != ai[:-1]))
    called_ai = len(ai) - first
    precision = called_ai / (called_ai + len(human) - lower[first])
    metrics["auprc"] = float(precision @ np.diff(first, append=len(ai)) / len(ai))
    for rate in FALSE_POSITIVE_RATES:
        allowed = int(rate * len(human) + 1e-9)
        above = len(ai) - np.searchsorted(ai, human[len(human) - 1 - allowed], "right")
        metrics[tpr_name(rate)] = float(above / len(ai))
    return metrics


def weighted_rank_metrics(ai: np.ndarray, human: np.ndarray) -> dict[str, np.ndarray]:
    """`rank_metrics` of weights (K, R) over K groups of tied scores, the highest first; (R,)."""
    hits, alarms = np.cumsum(ai, axis=0), np.cumsum(human, axis=0)
    all_ai, all_human = hits[-1], alarms[-1]
    pairs = all_ai * all_human
    # alarms are the human units at or above each AI one
    won = pairs - _inner(ai, alarms) + _inner(ai, human) / 2
    metrics = {"auroc": ratio(won, pairs)}
    for rate in FALSE_POSITIVE_RATES:
        groups = np.count_nonzero(alarms <= rate * all_human + 1e-9, axis=0)
        reached = np.take_along_axis(hits, np.maximum(groups - 1, 0)[None], axis=0)[0]
        metrics[tpr_name(rate)] = _where(pairs > 0, ratio(np.where(groups, reached, 0), all_ai))
    # weights are whole numbers, so where there is an AI unit at least one unit is called AI
    precision = hits / np.maximum(hits + alarms, 1)
    metrics["auprc"] = _where(pairs > 0, ratio(_inner(ai, precision), all_ai))
    return metrics


def _inner(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    product: np.ndarray = np.einsum("kr,kr->r", a, b)
    return product


def tpr_name(rate: float) -> str:
    return f"tpr_at_{rate:.0%}_fpr".replace("%", "")


def calibration_sums(
    labels: np.ndarray, scores: np.ndarray, owner: np.ndarray, n: int
) -> np.ndarray:
    """(n, 1 + 3 * BINS): each owner's sums, from which `calibration_metrics` are.

    They are the squared errors, and in each bin the units, their scores and their labels.
    """
    bins = np.minimum((scores * BINS).astype(int), BINS - 1)
    place = owner * BINS + bins
    parts = [
        np.bincount(place, weights, minlength=n * BINS).reshape(n, BINS)
        for weights in (None, scores, labels)
    ]
    errors = np.bincount(owner, (scores - labels) ** 2, minlength=n)
    return np.column_stack([errors, *parts])


def calibration_metrics(sums: np.ndarray) -> dict[str, np.ndarray]:
    """Brier score and expected calibration error of P(AI), from `calibration_sums` (..., 46).

    The latter weighs each bin's |mean score - share of AI| by its units.
    """
    units, scores, labels = (sums[..., 1 + i * BINS : 1 + (i + 1) * BINS] for i in range(3))
    n = units.sum(axis=-1)
    return {
        "brier": ratio(sums[..., 0], n),
        "ece": ratio(np.abs(scores - labels).sum(axis=-1), n),
    }


def span_metrics(sums: np.ndarray) -> dict[str, np.ndarray]:
    """Span metrics from sums (..., 4) of matched, predicted and true spans and boundary errors."""
    matched, predicted, true, errors = np.moveaxis(np.asarray(sums, dtype=float), -1, 0)
    return {
        "precision": _where(true > 0, ratio(matched, predicted)),
        "recall": ratio(matched, true),
        "f1": _where(true > 0, ratio(2 * matched, predicted + true)),
        "boundary_error": ratio(errors, matched),
    }


def dip_depth(curve: np.ndarray) -> np.ndarray:
    """How far a curve (V, ...) falls in its middle below the lower of the best before and after.

    max over interior t of min(max of y before t, max of y after t) - y_t, and 0 where that is
    negative: a monotone curve, or one with a single peak, has none. The measure is this project's
    own (a valley's topographic prominence); noise alone makes it positive. nan under 3 points.
    """
    if len(curve) < 3:
        return np.full(curve.shape[1:], np.nan)
    before = np.maximum.accumulate(curve, axis=0)[:-2]
    after = np.maximum.accumulate(curve[::-1], axis=0)[::-1][2:]
    depth: np.ndarray = np.maximum(np.minimum(before, after) - curve[1:-1], 0).max(axis=0)
    return depth


def ratio(part: np.ndarray, whole: np.ndarray, otherwise: float = np.nan) -> np.ndarray:
    ratio: np.ndarray = np.divide(
        part, whole, out=np.full(np.shape(whole), otherwise), where=whole > 0
    )
    return ratio


def _where(condition: np.ndarray, value: np.ndarray) -> np.ndarray:
    return np.where(condition, value, np.nan)
