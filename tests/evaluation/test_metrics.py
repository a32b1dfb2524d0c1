from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import (
    average_precision_score,
    brier_score_loss,
    f1_score,
    precision_score,
    recall_score,
    roc_auc_score,
    roc_curve,
)

from palimpsest.evaluation.metrics import (
    BINS,
    calibration_metrics,
    calibration_sums,
    confusion_code,
    decision_metrics,
    dip_depth,
    rank_metrics,
    span_metrics,
    weighted_rank_metrics,
)

PAIRS = st.lists(st.tuples(st.integers(0, 1), st.integers(0, 1)), min_size=1, max_size=40)
SCORED = st.lists(st.tuples(st.integers(0, 1), st.integers(-3, 3)), min_size=2, max_size=60)


def counts(labels: np.ndarray, decisions: np.ndarray) -> np.ndarray:
    return np.bincount(confusion_code(labels, decisions), minlength=4)


@given(PAIRS)
def test_decision_metrics_agree_with_scikit_learn(pairs: list[tuple[int, int]]) -> None:
    labels, decisions = map(np.array, zip(*pairs, strict=True))
    found = decision_metrics(counts(labels, decisions))
    assert found["accuracy"] == pytest.approx((labels == decisions).mean())
    macro = f1_score(labels, decisions, labels=[0, 1], average="macro", zero_division=0)
    assert found["macro_f1"] == pytest.approx(macro)
    assert found["ai_share"] == pytest.approx(decisions.mean())
    if labels.any():
        assert found["f1_ai"] == pytest.approx(f1_score(labels, decisions, zero_division=0))
        assert found["recall"] == pytest.approx(recall_score(labels, decisions))
        assert found["fnr"] == pytest.approx(1 - recall_score(labels, decisions))
        precision = precision_score(labels, decisions, zero_division=np.nan)
        assert found["precision"] == pytest.approx(precision, nan_ok=True)


def test_without_ai_units_only_accuracy_macro_f1_and_the_share_of_ai_are_defined() -> None:
    found = decision_metrics(np.array([3, 1, 0, 0]))
    assert {name for name, v in found.items() if not np.isnan(v)} == {
        "accuracy", "macro_f1", "ai_share",
    }  # fmt: skip
    assert found["macro_f1"] == pytest.approx(0.75 / 1.75)


def test_no_units_have_no_metrics() -> None:
    assert all(np.isnan(value) for value in decision_metrics(np.zeros(4)).values())
    assert all(np.isnan(v) for v in calibration_metrics(np.zeros(1 + 3 * BINS)).values())
    assert all(np.isnan(value) for value in span_metrics(np.zeros(4)).values())
    assert rank_metrics(np.array([0.1, 0.2]), np.array([])) == {}


@given(st.lists(st.tuples(*[st.integers(0, 9)] * 4), min_size=1, max_size=5))
def test_rows_of_counts_give_rows_of_metrics(rows: list[Sequence[int]]) -> None:
    together = decision_metrics(np.array(rows))
    for i, row in enumerate(rows):
        for name, value in decision_metrics(np.array(row)).items():
            assert together[name][i] == pytest.approx(value, nan_ok=True)


@given(SCORED)
def test_rank_metrics_agree_with_scikit_learn_also_with_ties(pairs: list[tuple[int, int]]) -> None:
    labels, scores = map(np.array, zip(*pairs, strict=True))
    if not 0 < labels.sum() < len(labels):
        return
    found = rank_metrics(scores[labels == 1], scores[labels == 0])
    assert found["auroc"] == pytest.approx(roc_auc_score(labels, scores))
    assert found["auprc"] == pytest.approx(average_precision_score(labels, scores))
    fpr, tpr, _ = roc_curve(labels, scores, drop_intermediate=False)
    for rate, name in ((0.01, "tpr_at_1_fpr"), (0.05, "tpr_at_5_fpr")):
        assert found[name] == pytest.approx(tpr[fpr <= rate].max())


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), min_size=1, max_size=40))
def test_weighted_ranks_are_those_of_repeated_units(groups: list[tuple[int, int]]) -> None:
    ai, human = (np.array(side) for side in zip(*groups, strict=True))
    repeated = [np.repeat(-np.arange(len(groups)), side) for side in (ai, human)]
    weighted = weighted_rank_metrics(ai[:, None].astype(float), human[:, None].astype(float))
    plain = rank_metrics(*repeated)
    for name, value in weighted.items():
        assert value[0] == pytest.approx(plain.get(name, np.nan), nan_ok=True)


def test_a_rate_is_reached_where_enough_human_units_allow_it() -> None:
    ai, human = np.arange(100.0), np.arange(100.0)
    # five of a hundred human units may be above: 95 to 99
    assert rank_metrics(ai, human)["tpr_at_5_fpr"] == pytest.approx(0.05)


@given(st.lists(st.tuples(st.integers(0, 1), st.floats(0, 1)), min_size=1, max_size=40))
def test_calibration_agrees_with_scikit_learn_and_with_its_definition(
    pairs: list[tuple[int, float]],
) -> None:
    labels, scores = (np.array(side) for side in zip(*pairs, strict=True))
    sums = calibration_sums(labels, scores, np.arange(len(labels)), len(labels)).sum(axis=0)
    found = calibration_metrics(sums)
    assert found["brier"] == pytest.approx(brier_score_loss(labels, scores))
    bins = [(scores * BINS >= i) & ((scores * BINS < i + 1) | (i == BINS - 1)) for i in range(BINS)]
    ece = sum(
        inside.mean() * abs(scores[inside].mean() - labels[inside].mean())
        for inside in bins
        if inside.any()
    )
    assert found["ece"] == pytest.approx(ece, abs=1e-12)


def test_span_metrics_of_one_match_among_two_predicted_and_four_true() -> None:
    found = span_metrics(np.array([1, 2, 4, 3.0]))
    assert found == pytest.approx(
        {"precision": 1 / 2, "recall": 1 / 4, "f1": 1 / 3, "boundary_error": 3.0}
    )


@pytest.mark.parametrize(
    ("curve", "depth"),
    [
        ([0.1, 0.2, 0.3], 0),  # rises
        ([0.3, 0.2, 0.1], 0),  # falls
        ([0.1, 0.4, 0.2], 0),  # one peak
        ([0.5, 0.2, 0.4], 0.2),
        ([0.5, 0.3, 0.4, 0.1, 0.6], 0.4),
        ([0.2, 0.6, 0.5, 0.4, 0.5], 0.1),
    ],
)
def test_a_dip_is_measured_from_the_lower_side(curve: list[float], depth: float) -> None:
    assert dip_depth(np.array(curve)) == pytest.approx(depth)


@given(st.lists(st.floats(0, 1), min_size=3, max_size=9))
def test_a_curve_has_no_dip_exactly_if_it_has_a_single_peak(curve: list[float]) -> None:
    top = int(np.argmax(curve))
    single = np.all(np.diff(curve[: top + 1]) >= 0) and np.all(np.diff(curve[top:]) <= 0)
    assert (dip_depth(np.array(curve)) == 0) == single


def test_two_points_have_no_middle() -> None:
    assert np.isnan(dip_depth(np.array([0.1, 0.2])))
