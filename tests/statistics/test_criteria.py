"""Each criterion by hand and by the methods' own code, and where it is undefined."""

import math
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from palimpsest.statistics import criteria
from palimpsest.statistics.criteria import FAST_DETECTGPT_FITS, Gaussians, fast_detectgpt
from palimpsest.statistics.lastde import lastde as diversity_ratio
from palimpsest.statistics.tokens import DrawnStatistics
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


# p = 1/2, 1/4, 1/8, 1/8, so that logarithms are whole numbers of ln 2
EIGHTHS = np.log([1 / 2, 1 / 4, 1 / 8, 1 / 8]).tolist()
LN2 = math.log(2)


def test_means_by_hand() -> None:
    tokens = statistics_of([EIGHTHS] * 4, [3, 0, 1, 3])  # ranks 1, 2, 4
    assert criteria.log_likelihood(tokens) == close(-2 * LN2)
    assert criteria.entropy(tokens) == close(-1.75 * LN2)
    assert criteria.rank(tokens) == close(-7 / 3)
    assert criteria.log_rank(tokens) == close(-LN2)
    assert criteria.lrr(tokens) == close(2)


def test_lrr_has_a_floor_where_every_token_is_the_likeliest() -> None:
    tokens = statistics_of([EIGHTHS] * 5, [0] * 5)
    assert criteria.lrr(tokens) == close(LN2 / (LN2 / 4))


def test_npr_and_detectgpt_by_hand() -> None:
    own = statistics_of([EIGHTHS] * 3, [0, 0, 1])  # log-ranks 0, 1; log-likelihoods -1, -2
    copies = [statistics_of([EIGHTHS] * 3, ids) for ids in ([0, 1, 1], [0, 1, 3], [0, 3, 3])]
    assert criteria.npr(own, copies) == close((1 + 1.5 + 2) / 3 / 0.5)
    # -1.5 against -2, -2.5, -3
    assert criteria.detectgpt(own, copies) == close((-1.5 + 2.5) / 0.5)


def test_npr_is_undefined_where_the_texts_own_tokens_are_all_the_likeliest() -> None:
    own, copy = (statistics_of([EIGHTHS] * 2, [0, token]) for token in (0, 1))
    assert math.isnan(criteria.npr(own, [copy]))


def test_detectgpt_is_undefined_without_a_spread() -> None:
    own, copy = (statistics_of([EIGHTHS] * 2, [0, token]) for token in (0, 1))
    assert math.isnan(criteria.detectgpt(own, [copy]))
    assert math.isnan(criteria.detectgpt(own, [copy, copy]))


QUARTERS = np.log([1 / 4] * 4).tolist()


def test_binoculars_and_dna_detectllm_by_hand() -> None:
    # scored by EIGHTHS: the tokens cost 1 and 3 ln 2, their repairs 1 ln 2 each; the observer is
    # indifferent, so that the cross-perplexity is the mean of 1, 2, 3, 3 ln 2, also at the end
    tokens = pair_of([QUARTERS] * 3, [EIGHTHS] * 3, [1, 0, 2])
    assert criteria.binoculars(tokens) == close(-2 / 2.25)
    assert criteria.dna_detectllm(tokens) == close(-(2 + 1) / 2 / 2.25)


def test_binoculars_counts_the_position_after_the_last_token() -> None:
    tokens = pair_of([QUARTERS] * 2 + [[0.0, -99, -99, -99]], [EIGHTHS] * 3, [1, 0, 2])
    assert criteria.binoculars(tokens) == close(-2 / ((2.25 + 2.25 + 1) / 3))


def test_a_pair_of_the_same_model_has_that_models_curvature_and_nothing_to_align() -> None:
    logits = torch.randn(12, 30, generator=torch.Generator().manual_seed(2)).tolist()
    ids = list(range(12))
    pair = pair_of(logits, logits, ids)
    assert criteria.fast_detectgpt_pair(pair) == close(fast_detectgpt(statistics_of(logits, ids)))
    assert math.isnan(criteria.lapd(pair))


def test_lapd_by_hand() -> None:
    # aligned EIGHTHS, base QUARTERS: log q (log p - log q) is m (2 - m) ln^2 2 for q = 2^-m
    tokens = pair_of([QUARTERS] * 3, [EIGHTHS] * 3, [2, 0, 1])
    g = np.array([1, 0, -3, -3.0])
    expected = ((g[0] - g.mean()) + (g[1] - g.mean())) / math.sqrt(2 * g.var())
    assert criteria.lapd(tokens) == close(expected)


def test_sampled_curvature_by_hand() -> None:
    tokens = drawn_of([EIGHTHS] * 3, [1, 0, 1], [[0, 1, 3], [0, 3, 3]])
    # -1.5 against -1, -2.5, -3, with spread over n - 1
    drawn = np.array([-1, -2.5, -3])
    expected = (-1.5 - drawn.mean()) / drawn.std(ddof=1)
    assert criteria.fast_detectgpt_sampled(tokens) == close(expected)


def test_many_draws_give_the_analytic_curvature() -> None:
    draw = torch.Generator().manual_seed(4)
    sampling, scoring = (2 * torch.randn(30, 40, generator=draw) for _ in "pq")
    ids = torch.randint(40, (30,), generator=draw).tolist()
    samples = torch.multinomial(sampling[:-1].softmax(1), 20_000, replacement=True, generator=draw)
    drawn = drawn_of(scoring.tolist(), ids, samples.tolist())
    analytic = criteria.fast_detectgpt_pair(pair_of(sampling.tolist(), scoring.tolist(), ids))
    assert criteria.fast_detectgpt_sampled(drawn) == pytest.approx(analytic, abs=0.05)


def lastde_by_definition(logp: np.ndarray, embedding: int, bins: int, scales: int) -> float:
    """Scale by scale, orbit by orbit."""
    entropies = []
    for scale in range(1, scales + 1):
        y = [logp[i : i + scale].mean() for i in range(len(logp) - scale + 1)]
        orbits = [np.array(y[i : i + embedding]) for i in range(len(y) - embedding + 1)]
        cosines = [
            float(a @ b / (np.linalg.norm(a) * np.linalg.norm(b))) for a, b in pairwise(orbits)
        ]
        counts, _ = np.histogram(np.clip(cosines, -1, 1), bins, (-1, 1))
        q = counts[counts > 0] / counts.sum()
        entropies.append(-(q * np.log(q)).sum() / np.log(bins))
    return float(logp.mean() / np.std(entropies, ddof=1))


@pytest.mark.parametrize(("embedding", "scales"), [(3, 5), (4, 15), (2, 3)])
def test_lastde_is_its_definition(embedding: int, scales: int) -> None:
    logp = -np.random.default_rng(5).gamma(1.5, 2, (4, 60)).astype(np.float32)
    found = diversity_ratio(logp, embedding=embedding, bins_per_token=8, scales=scales)
    expected = [lastde_by_definition(row, embedding, 480, scales) for row in logp]
    assert np.allclose(found, expected, rtol=1e-6)


def test_many_long_sequences_are_taken_in_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    logp = -np.random.default_rng(6).gamma(1.5, 2, (7, 50))
    whole = diversity_ratio(logp, embedding=3, bins_per_token=10, scales=5)
    monkeypatch.setattr("palimpsest.statistics.lastde._BINS", 1200)
    assert np.array_equal(diversity_ratio(logp, embedding=3, bins_per_token=10, scales=5), whole)


def test_lastde_needs_a_cosine_at_every_scale() -> None:
    logits = torch.randn(20, 30, generator=torch.Generator().manual_seed(7)).tolist()
    texts = [statistics_of(logits[:n], list(range(n))) for n in (8, 9)]
    scored = [criteria.lastde(text, embedding=3, bins_per_token=10, scales=5) for text in texts]
    assert [math.isnan(score) for score in scored] == [True, False]  # 7 and 8 scored tokens


def test_lastde_is_undefined_for_a_course_without_change() -> None:
    tokens = statistics_of([EIGHTHS] * 20, [0] * 20)
    assert math.isnan(criteria.lastde(tokens, embedding=3, bins_per_token=10, scales=5))


def test_nothing_to_score_is_undefined_for_every_criterion() -> None:
    one, two = statistics_of([EIGHTHS], [0]), pair_of([EIGHTHS], [QUARTERS], [0])
    none = DrawnStatistics(np.empty(0), np.empty((4, 0)), np.empty(0), np.empty(0))
    found = [
        *(f(one) for f in (criteria.log_likelihood, criteria.entropy, criteria.rank)),
        *(f(one) for f in (criteria.log_rank, criteria.lrr, criteria.fast_detectgpt)),
        *(f(two) for f in (criteria.fast_detectgpt_pair, criteria.binoculars)),
        *(f(two) for f in (criteria.dna_detectllm, criteria.lapd)),
        criteria.fast_detectgpt_sampled(none),
        diversity_ratio(one.logp[None], embedding=3, bins_per_token=10.0, scales=5)[0],
        criteria.lastde_pp(none, embedding=4, bins_per_token=8.0, scales=15),
        criteria.npr(one, [one]),
        criteria.detectgpt(one, [one, one]),
    ]
    assert np.isnan(found).all()


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
