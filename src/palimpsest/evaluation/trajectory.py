"""Metrics along a trajectory: the order in which its versions are detected as AI coverage grows.

Inputs are (D, V): documents by versions in the order of target coverage, the human one first.
Results are each document's sums (D, 2), numerator and denominator of a ratio over all documents.
"""

import numpy as np
from scipy.stats import rankdata

MIN_VERSIONS = 3  # scored versions that a rank correlation needs


def first_detected(decisions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Sums for the first version labelled AI (v1 = 1), and for the share of documents with any.

    `decisions` are 1, 0, or -1 where undecided or missing; the human version's is no detection.
    The mean of the first is over detected documents, so read it beside the second.
    """
    later = decisions[:, 1:]
    hit = later == 1
    detected, judged = hit.any(axis=1), (later >= 0).any(axis=1)
    first = np.where(detected, hit.argmax(axis=1) + 1, 0)
    return np.column_stack([first, detected]), np.column_stack([detected, judged])


def inversions(scores: np.ndarray, coverage: np.ndarray) -> np.ndarray:
    """Sums for the share of version pairs in which the score falls though the coverage grows.

    `coverage` is the realised one; pairs with an unscored (nan) version do not count.
    """
    falls = np.zeros(len(scores))
    pairs = np.zeros(len(scores))
    for later in range(1, scores.shape[1]):
        grows = coverage[:, :later] < coverage[:, later, None]
        change = scores[:, later, None] - scores[:, :later]
        pairs += (grows & ~np.isnan(change)).sum(axis=1)
        falls += (grows & (change < 0)).sum(axis=1)
    return np.column_stack([falls, pairs])


def rank_correlations(scores: np.ndarray, coverage: np.ndarray) -> np.ndarray:
    """Sums for the mean over documents of Spearman's rho of score and realised coverage.

    Undefined with fewer than `MIN_VERSIONS` scored versions, or where either is constant.
    """
    known = ~np.isnan(scores) & ~np.isnan(coverage)
    sums = np.zeros((len(scores), 2))
    for n in np.unique(known.sum(axis=1)):
        rows = np.flatnonzero(known.sum(axis=1) == n)
        if n < MIN_VERSIONS:
            continue
        x, y = (
            rankdata(values[rows][known[rows]].reshape(-1, n), axis=1) - (n + 1) / 2
            for values in (scores, coverage)
        )
        spread = np.sqrt((x**2).sum(axis=1) * (y**2).sum(axis=1))
        defined = spread > 0
        sums[rows[defined], 0] = (x * y).sum(axis=1)[defined] / spread[defined]
        sums[rows[defined], 1] = 1
    return sums
