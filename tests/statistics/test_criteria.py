"""Fast-DetectGPT's curvature and the published thresholds."""

import math
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from palimpsest.statistics.criteria import FAST_DETECTGPT_FITS, Gaussians, fast_detectgpt
from tests.statistics.cases import close, published_cases, statistics_of


def test_curvature_by_hand() -> None:
    # p = 3/4, 1/4: log p has mean m and variance s at each position; the text takes the likelier
    # token twice and the other once
    high, low = math.log(3 / 4), math.log(1 / 4)
    tokens = statistics_of([[high, low]] * 4, [1, 0, 0, 1])
    mean = 0.75 * high + 0.25 * low
    variance = 0.75 * high**2 + 0.25 * low**2 - mean**2
    expected = (2 * high + low - 3 * mean) / math.sqrt(3 * variance)
    assert fast_detectgpt(tokens) == close(expected)


def test_the_models_own_draws_have_curvature_zero_on_average_and_unit_spread() -> None:
    draw = torch.Generator().manual_seed(1)
    logits = 2 * torch.randn(41, 50, generator=draw)
    texts = torch.multinomial(logits.softmax(1), 400, replacement=True, generator=draw).T
    found = [
        fast_detectgpt(statistics_of(logits.tolist(), [0, *ids[:-1].tolist()])) for ids in texts
    ]
    assert np.mean(found) == pytest.approx(0, abs=0.2)
    assert np.std(found) == pytest.approx(1, abs=0.15)


def test_likelier_tokens_raise_it() -> None:
    logits = [[3.0, 1.0, 0.0]] * 6
    scores = [fast_detectgpt(statistics_of(logits, [0] + [token] * 5)) for token in (0, 1, 2)]
    assert scores == sorted(scores, reverse=True)


@pytest.mark.parametrize(
    ("logits", "ids"),
    [
        pytest.param([[0.0, 1.0]], [0], id="one token"),
        pytest.param([[0.0, 90.0, -5.0]] * 3, [1, 1, 1], id="a certain model"),
        pytest.param([[0.7] * 1000] * 3, [1, 2, 3], id="an indifferent model"),
    ],
)
def test_it_is_undefined_without_anything_to_draw(
    logits: list[list[float]], ids: list[int]
) -> None:
    assert math.isnan(fast_detectgpt(statistics_of(logits, ids)))


ONE_MODEL = [case for case in published_cases("fast_detectgpt_analytic") if "pair" not in case.id]


@pytest.mark.parametrize("case", ONE_MODEL)
def test_curvature_agrees_with_the_methods_own_code(case: dict[str, Any]) -> None:
    inputs = case["inputs"]
    tokens = statistics_of(inputs["logits_score"], inputs["input_ids"])
    assert fast_detectgpt(tokens) == close(case["expected"]["curvature"])


@pytest.mark.parametrize("case", published_cases("fast_detectgpt_probability"))
def test_probability_agrees_with_the_methods_own_code(case: dict[str, Any]) -> None:
    inputs = case["inputs"]
    fit = Gaussians(*(inputs[name] for name in ("mu0", "sigma0", "mu1", "sigma1")))
    found = [fit.probability(curvature) for curvature in inputs["curvature"]]
    assert found == close(case["expected"]["prob_ai"])


@pytest.mark.parametrize(
    ("pair", "threshold"),
    [
        (("tiiuae/falcon-7b", "tiiuae/falcon-7b-instruct"), 1.31186),
        (("EleutherAI/gpt-j-6B", "EleutherAI/gpt-neo-2.7B"), 1.44275),
        (("EleutherAI/gpt-neo-2.7B", "EleutherAI/gpt-neo-2.7B"), 1.00655),
    ],
)
def test_the_threshold_is_the_upper_crossing(pair: tuple[str, str], threshold: float) -> None:
    assert FAST_DETECTGPT_FITS[pair].threshold == pytest.approx(threshold, abs=5e-6)


@given(st.sampled_from(sorted(FAST_DETECTGPT_FITS)), st.floats(0, 50))
def test_above_the_threshold_the_probability_is_above_one_half(
    pair: tuple[str, str], above: float
) -> None:
    fit = FAST_DETECTGPT_FITS[pair]
    assert fit.probability(fit.threshold + above) >= 0.5 - 1e-12
    assert fit.probability(fit.threshold - 0.01) < 0.5
