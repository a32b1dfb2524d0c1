"""Intervals by resampling source documents: all units of a document stay together."""

from typing import NamedTuple

import numpy as np


class Interval(NamedTuple):
    low: float
    high: float


def auroc_interval(
    labels: np.ndarray,
    scores: np.ndarray,
    documents: np.ndarray,
    *,
    resamples: int,
    seed: int,
    level: float = 0.95,
) -> Interval | None:
    """A percentile interval of the AUROC over resampled documents; None where it is undefined.

    `labels`, `scores` and `documents` have one entry for each unit. Resamples that draw a single
    class are left out.
    """
    names, document = np.unique(documents, return_inverse=True)
    positive = labels == 1
    if len(names) < 2 or positive.all() or not positive.any():
        return None
    wins = _pairwise_wins(scores, document, positive, len(names))
    n_ai = np.bincount(document[positive], minlength=len(names))
    n_human = np.bincount(document[~positive], minlength=len(names))

    rng = np.random.default_rng(seed)
    drawn = rng.integers(len(names), size=(resamples, len(names)))
    weights = np.zeros((resamples, len(names)))
    np.add.at(weights, (np.arange(resamples)[:, None], drawn), 1)
    pairs = (weights @ n_ai) * (weights @ n_human)
    values = ((weights @ wins) * weights).sum(axis=1)[pairs > 0] / pairs[pairs > 0]
    tail = 100 * (1 - level) / 2
    return Interval(*(float(v) for v in np.percentile(values, [tail, 100 - tail])))


def _pairwise_wins(
    scores: np.ndarray, document: np.ndarray, positive: np.ndarray, n: int
) -> np.ndarray:
    """(D, D): how often AI units of the row's document beat human units of the column's one."""
    order = np.argsort(scores[~positive], kind="stable")
    human, owner = scores[~positive][order], document[~positive][order]
    # below[i, d]: how many of document d's units are among the i lowest human scores
    one_hot = np.zeros((len(human) + 1, n))
    one_hot[np.arange(1, len(human) + 1), owner] = 1
    below = one_hot.cumsum(axis=0)
    ai = scores[positive]
    lower, upper = np.searchsorted(human, ai, "left"), np.searchsorted(human, ai, "right")
    wins = np.zeros((n, n))
    np.add.at(wins, document[positive], (below[lower] + below[upper]) / 2)
    return wins
