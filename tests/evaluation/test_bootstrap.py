import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from palimpsest.evaluation import bootstrap
from palimpsest.evaluation.bootstrap import (
    document_weights,
    intervals,
    resampled_ranks,
    resampled_sums,
)
from palimpsest.evaluation.metrics import rank_metrics


def test_every_resample_draws_as_many_documents_as_there_are() -> None:
    weights = document_weights(7, 20, 0, "essays")
    assert weights.shape == (7, 20)
    assert (weights.sum(axis=0) == 7).all()
    assert len(np.unique(weights, axis=1).T) > 1


def test_draws_depend_on_seed_and_domain_alone() -> None:
    weights = document_weights(5, 10, 3, "news")
    assert (weights == document_weights(5, 10, 3, "news")).all()
    assert (weights != document_weights(5, 10, 4, "news")).any()
    assert (weights != document_weights(5, 10, 3, "essays")).any()


def test_resampled_sums_are_sums_over_the_drawn_documents() -> None:
    rng = np.random.default_rng(0)
    sums, owner = rng.integers(0, 9, (12, 3)), rng.integers(0, 4, 12)
    weights = document_weights(4, 6, 0, "d")
    for r, found in enumerate(resampled_sums(sums, owner, weights)):
        drawn = np.repeat(sums, weights[owner, r].astype(int), axis=0)
        assert found == pytest.approx(drawn.sum(axis=0))


def units(
    seed: int, n: int = 60, documents: int = 7
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    ai, human = rng.integers(0, 9, n) / 8 + 0.25, rng.integers(0, 9, n) / 8
    return ai, human, rng.integers(0, documents, n), rng.integers(0, documents, n)


@pytest.mark.parametrize("seed", range(3))
def test_resampled_ranks_are_the_metrics_of_the_drawn_units(seed: int) -> None:
    ai, human, ai_owner, human_owner = units(seed)
    weights = document_weights(7, 5, seed, "d")
    found = resampled_ranks(ai, human, ai_owner, human_owner, weights)
    for r in range(5):
        drawn = (
            np.repeat(scores, weights[owner, r].astype(int))
            for scores, owner in ((ai, ai_owner), (human, human_owner))
        )
        for name, value in rank_metrics(*drawn).items():
            assert found[name][r] == pytest.approx(value)


def test_resamples_in_blocks_and_in_one_are_equal(monkeypatch: pytest.MonkeyPatch) -> None:
    weights = document_weights(7, 10, 0, "d")
    whole = resampled_ranks(*units(0), weights)
    monkeypatch.setattr(bootstrap, "_AT_ONCE", 30)
    for name, values in resampled_ranks(*units(0), weights).items():
        assert values == pytest.approx(whole[name])


def test_many_distinct_scores_share_ranks_at_a_bounded_loss(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rng = np.random.default_rng(0)
    ai, human = rng.normal(0.5, 1, 3000), rng.normal(0, 1, 3000)
    owner = np.arange(3000)
    weights = np.ones((3000, 1), dtype=np.float32)
    monkeypatch.setattr(bootstrap, "MAX_RANKS", 200)
    found = resampled_ranks(ai, human, owner, owner, weights)
    exact = rank_metrics(ai, human)
    assert found["auroc"][0] == pytest.approx(exact["auroc"], abs=1 / 200)
    assert found["auroc"][0] != exact["auroc"]


def test_copies_of_a_document_s_units_carry_no_more_evidence_than_the_document() -> None:
    ai, human, ai_owner, human_owner = units(1)
    weights = document_weights(7, 50, 0, "d")
    once = resampled_ranks(ai, human, ai_owner, human_owner, weights)
    ten = [np.tile(side, 10) for side in (ai, human, ai_owner, human_owner)]
    copies = resampled_ranks(ten[0], ten[1], ten[2], ten[3], weights)
    assert once["auroc"] == pytest.approx(copies["auroc"])


@given(st.lists(st.floats(-10, 10), min_size=1, max_size=50), st.integers(0, 5))
def test_intervals_are_numpy_s_percentiles_of_the_defined_replicates(
    values: list[float], undefined: int
) -> None:
    row = np.array([np.nan] * undefined + values)
    low, high = intervals(row[None])
    assert [low[0], high[0]] == pytest.approx(np.percentile(values, [2.5, 97.5]), abs=1e-9)


def test_without_a_defined_replicate_there_is_no_interval() -> None:
    assert np.isnan(intervals(np.full((2, 3), np.nan))).all()
    assert np.isnan(intervals(np.empty((2, 0)))).all()


def test_intervals_narrow_with_the_root_of_the_documents() -> None:
    def width(n: int) -> float:
        rng = np.random.default_rng(1)
        weights = document_weights(n, 500, 0, "d")
        hits = (rng.random((n, 1)) < 0.5).astype(float)
        low, high = intervals(resampled_sums(hits, np.arange(n), weights).T / n)
        return float(high[0] - low[0])

    assert width(1600) == pytest.approx(width(100) / 4, rel=0.2)
    assert width(400) == pytest.approx(2 * 1.96 * 0.5 / 20, rel=0.1)
