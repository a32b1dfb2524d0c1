import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from scipy.stats import spearmanr

from palimpsest.evaluation.trajectory import first_detected, inversions, rank_correlations

NAN = np.nan
GRID = arrays.arrays(float, (4, 6), elements=st.one_of(st.just(NAN), st.integers(0, 4).map(float)))


def test_the_first_detected_version_skips_the_human_one_and_undecided_ones() -> None:
    decisions = np.array([[1, 0, -1, 1, 1], [0, 0, 0, 0, 0], [0, 1, 0, 0, 0], [1, -1, -1, -1, -1]])
    first, detected = first_detected(decisions)
    assert first.tolist() == [[3, 1], [0, 0], [1, 1], [0, 0]]
    assert detected.tolist() == [[1, 1], [0, 1], [1, 1], [0, 0]]


@given(GRID, GRID)
def test_inversions_count_pairs_that_fall_though_coverage_grows(
    scores: np.ndarray, coverage: np.ndarray
) -> None:
    for found, s, c in zip(inversions(scores, coverage), scores, coverage, strict=True):
        pairs = [
            (s[i], s[j])
            for j in range(6)
            for i in range(j)
            if c[i] < c[j] and not np.isnan(s[i]) and not np.isnan(s[j])
        ]
        assert found.tolist() == [sum(a > b for a, b in pairs), len(pairs)]


@given(GRID, GRID)
def test_rank_correlations_agree_with_scipy(scores: np.ndarray, coverage: np.ndarray) -> None:
    for found, s, c in zip(rank_correlations(scores, coverage), scores, coverage, strict=True):
        known = ~np.isnan(s) & ~np.isnan(c)
        s, c = s[known], c[known]
        if len(s) < 3 or len(set(s)) == 1 or len(set(c)) == 1:
            assert found.tolist() == [0, 0]
        else:
            assert found[0] == pytest.approx(spearmanr(s, c).statistic)
            assert found[1] == 1
