"""Intervals by resampling source documents: all versions and generators of one stay together.

A replicate is a metric's value on one resample. Documents are resampled within their domain, with
the same draws for every cell of it, so that replicates can be averaged over generators and domains,
and compared between detectors and designs, resample by resample.
"""

from zlib import crc32

import numpy as np
from scipy import sparse

from palimpsest.evaluation.metrics import weighted_rank_metrics

# More distinct scores than this share ranks, in replicates alone. An AUROC moves by 1 / MAX_RANKS
# at most; by 3e-6 among 30,000 normal scores.
MAX_RANKS = 2**12
_AT_ONCE = 2**18  # numbers in one block of weights by rank: more leave the cache


def document_weights(documents: int, resamples: int, seed: int, domain: str) -> np.ndarray:
    """(D, R) float32: how often each resample draws each of a domain's documents.

    The draws depend on the arguments alone, not on other domains.
    """
    rng = np.random.default_rng([seed, crc32(domain.encode())])
    drawn = rng.integers(documents, size=(resamples, documents))
    drawn += documents * np.arange(resamples)[:, None]
    times = np.bincount(drawn.ravel(), minlength=drawn.size).reshape(drawn.shape)
    return np.ascontiguousarray(times.T, dtype=np.float32)


def resampled_sums(sums: np.ndarray, owner: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """(R, C): the samples' sums (S, C) over each resample; `owner` (S,) are their documents."""
    ones, samples = np.ones(len(owner), dtype=np.float32), np.arange(len(owner))
    belongs = sparse.csr_array((ones, (owner, samples)), shape=(len(weights), len(owner)))
    total: np.ndarray = weights.T @ (belongs @ sums.astype(np.float32))
    return total


def resampled_ranks(
    ai: np.ndarray,
    human: np.ndarray,
    ai_owner: np.ndarray,
    human_owner: np.ndarray,
    weights: np.ndarray,
) -> dict[str, np.ndarray]:
    """`metrics.rank_metrics` of each resample, (R,) each, from units' scores and documents."""
    pooled = np.sort(np.concatenate([ai, human]))
    ranks = pooled[np.append(True, pooled[1:] != pooled[:-1])]
    if len(ranks) > MAX_RANKS:
        ranks = np.unique(pooled[np.linspace(0, len(pooled) - 1, MAX_RANKS).astype(np.int64)])
    groups = [
        sparse.csr_array(
            (
                np.ones(len(scores), dtype=np.float32),
                (len(ranks) - np.searchsorted(ranks, scores, "right"), owner),
            ),
            shape=(len(ranks), len(weights)),
        )
        for scores, owner in ((ai, ai_owner), (human, human_owner))
    ]
    resamples = weights.shape[1]
    step = max(1, _AT_ONCE // len(ranks))
    blocks = []
    for start in range(0, resamples, step):
        block = np.ascontiguousarray(weights[:, start : start + step])
        blocks.append(weighted_rank_metrics(*((group @ block).astype(float) for group in groups)))
    return {name: np.concatenate([block[name] for block in blocks]) for name in blocks[0]}


def intervals(replicates: np.ndarray, level: float = 0.95) -> tuple[np.ndarray, np.ndarray]:
    """Percentile intervals of replicates (N, R), in which nan stands for an undefined resample.

    nan where no resample is defined.
    """
    ordered = np.sort(replicates, axis=1)  # nan go to the end
    defined = (~np.isnan(ordered)).sum(axis=1)
    tail = (1 - level) / 2
    low, high = (_quantile(ordered, defined, share) for share in (tail, 1 - tail))
    return low, high


def _quantile(ordered: np.ndarray, defined: np.ndarray, share: float) -> np.ndarray:
    """Linear interpolation, as numpy's, among each row's first `defined` values."""
    if not ordered.shape[1]:
        return np.full(len(ordered), np.nan)
    place = share * np.maximum(defined - 1, 0)
    below = np.floor(place).astype(np.int64)
    above = np.minimum(below + 1, np.maximum(defined - 1, 0))
    rows = np.arange(len(ordered))
    value: np.ndarray = ordered[rows, below] + (place - below) * (
        ordered[rows, above] - ordered[rows, below]
    )
    return value
