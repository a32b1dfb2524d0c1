import numpy as np
import pytest

from palimpsest.evaluation.bootstrap import _pairwise_wins, auroc_interval
from palimpsest.evaluation.metrics import auroc


def test_wins_of_all_documents_together_are_the_auroc() -> None:
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 2, 60)
    scores = rng.integers(0, 5, 60).astype(float)
    document = rng.integers(0, 7, 60)
    wins = _pairwise_wins(scores, document, labels == 1, 7)
    pairs = labels.sum() * (60 - labels.sum())
    assert wins.sum() / pairs == pytest.approx(auroc(labels, scores))


def test_the_interval_holds_the_estimate_and_narrows_with_more_documents() -> None:
    def interval(n: int) -> tuple[float, float]:
        rng = np.random.default_rng(1)
        documents = np.repeat(np.arange(n), 2)
        labels = np.tile([0, 1], n)
        scores = rng.normal(labels, 1.0)
        found = auroc_interval(labels, scores, documents, resamples=500, seed=0)
        value = auroc(labels, scores)
        assert found is not None
        assert value is not None
        assert found.low <= value <= found.high
        return found

    few, many = interval(20), interval(400)
    assert many[1] - many[0] < (few[1] - few[0]) / 2


def test_documents_are_resampled_whole() -> None:
    # Ten copies of a document's units carry no more evidence than the document.
    labels, documents = np.array([0, 1, 0, 1, 0, 1]), np.array([0, 0, 1, 1, 2, 2])
    scores = np.array([0.1, 0.9, 0.5, 0.4, 0.2, 0.3])
    once = auroc_interval(labels, scores, documents, resamples=400, seed=0)
    copies = auroc_interval(
        np.tile(labels, 10), np.tile(scores, 10), np.tile(documents, 10), resamples=400, seed=0
    )
    assert once == pytest.approx(copies)


def test_a_seed_fixes_the_interval() -> None:
    labels, documents = np.tile([0, 1], 30), np.repeat(np.arange(30), 2)
    scores = np.random.default_rng(3).normal(labels)
    first = auroc_interval(labels, scores, documents, resamples=200, seed=5)
    assert first == auroc_interval(labels, scores, documents, resamples=200, seed=5)
    assert first != auroc_interval(labels, scores, documents, resamples=200, seed=6)


@pytest.mark.parametrize(
    ("labels", "documents"), [([1, 1], ["a", "b"]), ([0, 1], ["a", "a"]), ([0, 0], ["a", "b"])]
)
def test_no_interval_without_two_classes_and_two_documents(
    labels: list[int], documents: list[str]
) -> None:
    scores = np.array([0.0, 1.0])
    found = auroc_interval(np.array(labels), scores, np.array(documents), resamples=100, seed=0)
    assert found is None
