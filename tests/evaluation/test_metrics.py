import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import f1_score, roc_auc_score

from palimpsest.evaluation.metrics import auroc, decision_metrics

PAIRS = st.lists(st.tuples(st.integers(0, 1), st.integers(0, 1)), min_size=1, max_size=40)


@given(PAIRS)
def test_decision_metrics_agree_with_scikit_learn(pairs: list[tuple[int, int]]) -> None:
    labels, decisions = map(np.array, zip(*pairs, strict=True))
    metrics = decision_metrics(labels, decisions)
    macro = f1_score(labels, decisions, labels=[0, 1], average="macro", zero_division=0)
    assert metrics["accuracy"] == pytest.approx((labels == decisions).mean())
    assert metrics["macro_f1"] == pytest.approx(macro)
    if labels.any():
        assert metrics["f1_ai"] == pytest.approx(f1_score(labels, decisions, zero_division=0))
        assert metrics["fnr"] == pytest.approx((decisions[labels == 1] == 0).mean())


def test_without_ai_units_f1_ai_and_fnr_are_undefined_and_macro_f1_follows_from_accuracy() -> None:
    metrics = decision_metrics(np.zeros(4, int), np.array([0, 0, 0, 1]))
    assert set(metrics) == {"accuracy", "macro_f1"}
    assert metrics["macro_f1"] == pytest.approx(0.75 / 1.75)


def test_no_units_have_no_metrics() -> None:
    assert decision_metrics(np.array([]), np.array([])) == {}
    assert auroc(np.array([1, 1]), np.array([0.1, 0.2])) is None


@given(st.lists(st.tuples(st.integers(0, 1), st.integers(-3, 3)), min_size=2, max_size=40))
def test_auroc_agrees_with_scikit_learn_also_with_ties(pairs: list[tuple[int, int]]) -> None:
    labels, scores = map(np.array, zip(*pairs, strict=True))
    if 0 < labels.sum() < len(labels):
        assert auroc(labels, scores) == pytest.approx(roc_auc_score(labels, scores))
