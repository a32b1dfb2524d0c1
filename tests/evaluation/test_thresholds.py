import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from palimpsest.evaluation.levels import decide
from palimpsest.evaluation.thresholds import build_thresholds, calibrate
from palimpsest.records import Scores
from tests.evaluation.cases import sample


@given(
    st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=200),
    st.sampled_from([0.01, 0.05, 0.1, 0.5]),
)
def test_the_rate_of_false_positives_is_never_above_the_one_asked_for(
    scores: list[float], fpr: float
) -> None:
    found = calibrate(np.array(scores), fpr)
    assert found is not None
    assert found.rate <= fpr
    assert found.rate == pytest.approx((np.array(scores) > found.value).mean())


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
def test_the_rate_is_reached_exactly_whatever_the_scale(scale: float) -> None:
    scores = np.random.default_rng(0).normal(size=200) * scale
    found = calibrate(scores, 0.05)
    assert found is not None
    assert found.rate == 0.05
    assert not found.too_few


def test_too_few_human_units_give_their_largest_score_and_say_so() -> None:
    found = calibrate(np.array([0.3, 0.1, np.nan, 0.2]), 0.05)
    assert found is not None
    assert (found.value, found.rate, found.n, found.too_few) == (0.3, 0.0, 3, True)
    assert calibrate(np.array([np.nan]), 0.05) is None


def test_a_published_threshold_is_reached_and_a_calibrated_one_exceeded() -> None:
    scores = np.array([0.4, 0.5, 0.6, np.nan])
    thresholds = {"published": 0.5, "calibrated": {"value": 0.5}}
    for source, labels in (("published", [0, 1, 1, -1]), ("calibrated", [0, 0, 1, -1])):
        found = decide(scores, thresholds, source)
        assert found is not None
        assert found.tolist() == labels
    assert decide(scores, {"published": None}, "published") is None


def test_levels_without_an_answer_have_no_threshold() -> None:
    found = build_thresholds([(sample([0], version="v0"), Scores(1.5))], {"document": 2.0}, 0.05)
    assert set(found) == {"document"}
    assert found["document"]["published"] == 2.0
    assert found["document"]["calibrated"]["n"] == 1


def test_derived_levels_are_calibrated_on_derived_scores() -> None:
    words = np.array([0.1, 0.2, 0.3, 0.7, 0.8, 0.9], dtype=np.float32)
    found = build_thresholds(
        [(sample([0, 0], version="v0"), Scores(float("nan"), words=words))], {"word": 0.5}, 0.05
    )
    assert {level: t["calibrated"]["n"] for level, t in found.items()} == {
        "document": 1, "sentence": 2, "word": 6,
    }  # fmt: skip
    assert found["document"]["calibrated"]["value"] == pytest.approx(0.5)
    assert found["sentence"]["calibrated"]["value"] == pytest.approx(0.8)
    assert found["word"]["published"] == 0.5


def test_texts_without_a_score_leave_a_level_out() -> None:
    nothing = Scores(float("nan"), reason="too_short")
    assert build_thresholds([(sample([0], version="v0"), nothing)], {}, 0.05) == {}
