"""Each criterion by hand and by the methods' own code, and where it is undefined."""

import math
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from palimpsest.statistics import criteria
from palimpsest.statistics.criteria import FAST_DETECTGPT_FITS, Gaussians, fast_detectgpt
from tests.statistics.cases import (
    close,
    drawn_of,
    pair_of,
    published_cases,
    statistics_of,
)


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


def own_code(statistic: str, part: str = "") -> pytest.MarkDecorator:
    """The published cases of a statistic, for the criterion that the test names."""
    found = [
        case for case in published_cases(statistic) if part in case.id or case.values[0] is None
    ]
    return pytest.mark.parametrize("case", found)


MEANS: dict[str, tuple[str, int]] = {
    "log_likelihood": ("mean_logp", 1),
    "entropy": ("mean_entropy", -1),
    "rank": ("neg_mean_rank", 1),
    "log_rank": ("neg_mean_log_rank", 1),
    "lrr": ("lrr", 1),
}


@pytest.mark.parametrize("case", [case for name in MEANS for case in published_cases(name)])
def test_means_agree_with_the_methods_own_code(case: dict[str, Any]) -> None:
    key, sign = MEANS[case["statistic"]]
    tokens = statistics_of(case["inputs"]["logits"], case["inputs"]["input_ids"])
    found = getattr(criteria, case["statistic"])(tokens)
    assert sign * found == close(case["expected"][key])


@own_code("npr")
def test_npr_agrees_with_the_methods_own_code(case: dict[str, Any]) -> None:
    own, *perturbed = (
        statistics_of(one["logits"], one["input_ids"])
        for one in (case["inputs"], *case["inputs"]["perturbed"])
    )
    assert criteria.npr(own, perturbed) == close(case["expected"]["npr"])


@own_code("fast_detectgpt_analytic", "same")
def test_curvature_agrees_with_the_methods_own_code(case: dict[str, Any]) -> None:
    inputs = case["inputs"]
    tokens = statistics_of(inputs["logits_score"], inputs["input_ids"])
    assert fast_detectgpt(tokens) == close(case["expected"]["curvature"])


@own_code("fast_detectgpt_analytic")
def test_a_pairs_curvature_agrees_with_the_methods_own_code(case: dict[str, Any]) -> None:
    inputs = case["inputs"]
    tokens = pair_of(inputs["logits_ref"], inputs["logits_score"], inputs["input_ids"])
    assert criteria.fast_detectgpt_pair(tokens) == close(case["expected"]["curvature"])


@own_code("fast_detectgpt_sampled")
def test_sampled_curvature_agrees_with_the_methods_own_code(case: dict[str, Any]) -> None:
    inputs = case["inputs"]
    tokens = drawn_of(inputs["logits_score"], inputs["input_ids"], inputs["samples"])
    assert criteria.fast_detectgpt_sampled(tokens) == close(case["expected"]["curvature"])


def rows_of(case: dict[str, Any]) -> list[tuple[Any, dict[str, float]]]:
    """Each text of a batch without its padding, and what is expected of it."""
    inputs, rows = case["inputs"], []
    for i, mask in enumerate(inputs["attention_mask"]):
        observer, performer, ids = (
            inputs[name][i][: sum(mask)]
            for name in ("observer_logits", "performer_logits", "input_ids")
        )
        expected = {name: values[i] for name, values in case["expected"].items() if name == "score"}
        rows.append((pair_of(observer, performer, ids), expected))
    return rows


@own_code("binoculars")
def test_binoculars_agrees_with_the_methods_own_code(case: dict[str, Any]) -> None:
    for tokens, expected in rows_of(case):
        assert -criteria.binoculars(tokens) == close(expected["score"])


@own_code("dna_detectllm")
def test_dna_detectllm_agrees_with_the_methods_own_code(case: dict[str, Any]) -> None:
    for tokens, expected in rows_of(case):
        assert -criteria.dna_detectllm(tokens) == close(expected["score"])


@own_code("lapd")
def test_lapd_agrees_with_the_methods_own_code(case: dict[str, Any]) -> None:
    inputs, expected = case["inputs"], case["expected"]
    ids, base, aligned = (inputs[k] for k in ("input_ids", "logits_base", "logits_instruct"))
    tokens = pair_of(base, aligned, ids)
    assert criteria.lapd(tokens) == close(expected["score_analytic"])
    weights = tokens.logp * (tokens.sampling_logp - tokens.logp)
    assert weights.mean() == close(expected["raw"])
    assert (tokens.logp - tokens.sampling_logp).mean() == close(expected["rai"])
    # the authors' own estimate, with the draws that the case fixes
    drawn, drawn_base = (drawn_of(z, ids, inputs["samples"]).drawn for z in (aligned, base))
    drawn_weights = (drawn * (drawn_base - drawn)).mean(1)
    found = criteria.discrepancy(weights.mean(), drawn_weights)
    assert found == close(expected["score_given_samples"])


@own_code("lastde")
def test_lastde_agrees_with_the_methods_own_code(case: dict[str, Any]) -> None:
    inputs = case["inputs"]
    tokens = statistics_of(inputs["logits"], inputs["input_ids"])
    settings = {"embedding": inputs["embed_size"], "scales": inputs["tau_prime"]}
    found = criteria.lastde(tokens, bins_per_token=inputs["epsilon"] / len(tokens), **settings)
    assert found == close(case["expected"]["lastde"])


@own_code("lastde_plusplus")
def test_lastde_pp_agrees_with_the_methods_own_code(case: dict[str, Any]) -> None:
    inputs = case["inputs"]
    tokens = drawn_of(inputs["logits"], inputs["input_ids"], inputs["samples"])
    found = criteria.lastde_pp(
        tokens,
        embedding=inputs["embed_size"],
        bins_per_token=inputs["epsilon_multiplier"],
        scales=inputs["tau_prime"],
    )
    expected = case["expected"]["score"]
    assert found == pytest.approx(expected, rel=case["tolerance_rel"])
