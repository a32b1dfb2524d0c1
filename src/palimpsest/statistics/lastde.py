"""Multiscale diversity entropy of a sequence of log-probabilities (Lastde, arXiv 2410.06072)."""

import numpy as np

# Numbers in one histogram over several sequences: their rows are taken in groups that keep to it.
_BINS = 2**22


def lastde(logp: np.ndarray, *, embedding: int, bins_per_token: float, scales: int) -> np.ndarray:
    """Mean log-probability over the spread of the diversity entropies, for each of N sequences.

    Negative, nearer to zero for AI text. nan where a sequence is shorter than `scales + embedding`,
    for which the authors' code counts an empty scale as no diversity, and where all scales are
    equally diverse.

    Args:
        logp: (N, n) log-probabilities.
        embedding: the authors' e, the values in one orbit.
        bins_per_token: the histogram's bins are this, times n, as an integer.
        scales: the authors' tau', the moving averages of 1 to so many values.
    """
    n = logp.shape[1]
    if n < scales + embedding:
        return np.full(len(logp), np.nan)
    bins = int(bins_per_token * n)
    groups = np.array_split(logp.astype(np.float64), -(-len(logp) * bins // _BINS))
    return np.concatenate([_lastde(group, embedding, bins, scales) for group in groups])


def _lastde(logp: np.ndarray, embedding: int, bins: int, scales: int) -> np.ndarray:
    diversity = [_diversity(logp, embedding, bins, scale) for scale in range(1, scales + 1)]
    spread = np.std(diversity, axis=0, ddof=1)
    result: np.ndarray = np.divide(
        logp.mean(1), spread, out=np.full(len(logp), np.nan), where=spread > 0
    )
    return result


def _diversity(logp: np.ndarray, embedding: int, bins: int, scale: int) -> np.ndarray:
    """(N,) normalised entropy of the cosines between consecutive orbits at one scale."""
    smooth = np.lib.stride_tricks.sliding_window_view(logp, scale, axis=1).mean(-1)
    orbits = np.lib.stride_tricks.sliding_window_view(smooth, embedding, axis=1)
    norms = np.maximum(np.linalg.norm(orbits, axis=-1), 1e-8)
    dots = np.einsum("noe,noe->no", orbits[:, :-1], orbits[:, 1:])
    # rounding can take a cosine above one, where a histogram would not count it
    cosines = np.clip(dots / (norms[:, :-1] * norms[:, 1:]), -1, 1)
    place = np.minimum(((cosines + 1) / 2 * bins).astype(np.int64), bins - 1)
    place += bins * np.arange(len(logp))[:, None]
    filled, count = np.unique(place, return_counts=True)
    share = count / cosines.shape[1]
    entropy = np.bincount(filled // bins, -share * np.log(share), minlength=len(logp))
    normalised: np.ndarray = entropy / np.log(bins)
    return normalised
