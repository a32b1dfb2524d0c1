"""The numbers kept for each token, against definitions in double precision."""

import numpy as np
import pytest
import torch

from palimpsest.records import Span
from palimpsest.statistics.columns import columns, drawn_columns, pair_columns
from palimpsest.statistics.tokens import PairStatistics, TokenStatistics
from tests.statistics.cases import statistics_of


def named(logits: torch.Tensor, targets: torch.Tensor) -> dict[str, np.ndarray]:
    return dict(zip(TokenStatistics.COLUMNS, columns(logits, targets).numpy(), strict=True))


def test_columns_are_their_definitions() -> None:
    draw = torch.Generator().manual_seed(0)
    logits = 4 * torch.randn(20, 300, generator=draw)
    targets = torch.randint(300, (20,), generator=draw)
    found = named(logits, targets)

    logp = logits.double().log_softmax(1)
    own = logp.gather(1, targets[:, None])
    expected = {
        "logp": own[:, 0],
        "n_greater": (logp > own).sum(1),
        "n_equal_before": torch.zeros(20),
        "entropy": -(logp.exp() * logp).sum(1),
        "m2": (logp.exp() * logp**2).sum(1),
        "lmax": logp.max(1).values,
    }
    for name, values in expected.items():
        np.testing.assert_allclose(found[name], values.numpy(), rtol=2e-6, atol=1e-6, err_msg=name)


def test_equal_logits_are_ranked_by_id() -> None:
    logits = torch.tensor([[1.0, 5.0, 1.0, 1.0, 0.0]] * 4 + [[2.0] * 5])
    found = named(logits, torch.tensor([0, 2, 3, 1, 4]))
    assert found["n_greater"].tolist() == [1, 1, 1, 0, 0]
    assert found["n_equal_before"].tolist() == [0, 1, 2, 0, 4]


def test_an_excluded_token_counts_for_nothing() -> None:
    logits = torch.tensor([[0.3, -torch.inf, 1.2, -0.7]])
    kept = torch.tensor([[0.3, 1.2, -0.7]])
    with_excluded = columns(logits, torch.tensor([2]))
    assert with_excluded.tolist() == columns(kept, torch.tensor([1])).tolist()


def test_a_large_common_offset_changes_nothing() -> None:
    logits = torch.tensor([[0.25, 1.5, -2.0, 0.0]])
    shifted = columns(logits + 96, torch.tensor([3]))
    torch.testing.assert_close(columns(logits, torch.tensor([3])), shifted)


def test_half_precision_logits_are_reduced_in_single_precision() -> None:
    logits = torch.tensor([[40.0, 0.0, -30.0, 12.5]], dtype=torch.float16)
    found = columns(logits, torch.tensor([1]))
    assert found.dtype == torch.float32
    assert torch.equal(found, columns(logits.float(), torch.tensor([1])))


# powers of two, so that each value can be checked by hand
EIGHTHS = np.log([[1 / 2, 1 / 4, 1 / 8, 1 / 8], [1 / 8, 1 / 8, 1 / 4, 1 / 2], [1 / 4] * 4])


def test_values_by_hand() -> None:
    tokens = statistics_of(EIGHTHS.tolist(), [3, 1, 0])
    np.testing.assert_allclose(tokens.logp / np.log(2), [-2, -3], rtol=1e-6)
    np.testing.assert_allclose(tokens.entropy / np.log(2), [1.75, 1.75, 2], rtol=1e-6)
    np.testing.assert_allclose(tokens.m2 / np.log(2) ** 2, [3.75, 3.75], rtol=1e-6)
    np.testing.assert_allclose(tokens.lmax / np.log(2), [-1, -1], rtol=1e-6)
    assert tokens.rank.tolist() == [2, 3]


def test_a_span_takes_the_tokens_that_share_a_character_with_it() -> None:
    tokens = statistics_of(EIGHTHS.tolist(), [3, 1, 0])  # the characters [1, 2) and [2, 3)
    part = tokens.within(Span(2, 5))
    assert part.logp.tolist() == tokens.logp[1:].tolist()


def named_pair(p: torch.Tensor, q: torch.Tensor, targets: torch.Tensor) -> dict[str, np.ndarray]:
    return dict(zip(PairStatistics.COLUMNS, pair_columns(p, q, targets).numpy(), strict=True))


def test_pair_columns_are_their_definitions() -> None:
    draw = torch.Generator().manual_seed(0)
    sampling, scoring = (4 * torch.randn(20, 300, generator=draw) for _ in "pq")
    targets = torch.randint(300, (20,), generator=draw)
    found = named_pair(sampling, scoring, targets)

    log_p, log_q = sampling.double().log_softmax(1), scoring.double().log_softmax(1)
    p, weight = log_p.exp(), log_q * (log_p - log_q)
    xm, gm = (p * log_q).sum(1), (p * weight).sum(1)
    expected = {
        "logp": log_q.gather(1, targets[:, None])[:, 0],
        "lmax": log_q.max(1).values,
        "sampling_logp": log_p.gather(1, targets[:, None])[:, 0],
        "xm": xm,
        "xvar": (p * (log_q - xm[:, None]) ** 2).sum(1),
        "gm": gm,
        "gvar": (p * (weight - gm[:, None]) ** 2).sum(1),
    }
    for name, values in expected.items():
        np.testing.assert_allclose(found[name], values.numpy(), rtol=5e-6, atol=1e-6, err_msg=name)


def test_a_vocabulary_that_is_padded_further_is_cut_before_the_softmax() -> None:
    draw = torch.Generator().manual_seed(0)
    one, other = torch.randn(6, 30, generator=draw), torch.randn(6, 30, generator=draw)
    padded = torch.cat([one, torch.full((6, 4), 9.0)], dim=1)
    targets = torch.arange(6)
    expected = pair_columns(one, other, targets)
    assert torch.equal(pair_columns(padded, other, targets), expected)
    swapped = pair_columns(other, one, targets)
    assert torch.equal(pair_columns(other, padded, targets), swapped)


def test_what_either_model_of_a_pair_excludes_leaves_the_moments_finite() -> None:
    one = torch.tensor([[0.3, -torch.inf, 1.2]])
    other = torch.tensor([[0.1, 0.2, 0.3]])
    for p, q in ((one, other), (other, one), (one, one)):
        assert pair_columns(p, q, torch.tensor([2])).isfinite().all()


def test_draws_have_the_sampling_models_frequencies_and_the_scoring_models_scores() -> None:
    p, q = torch.tensor([[0.5, 0.2, 0.3]]), torch.tensor([[0.1, 0.6, 0.3]])
    uniforms = torch.linspace(0, 1, 1001, dtype=torch.float64)[None, :-1]
    own, *drawn = drawn_columns(p.log(), q.log(), torch.tensor([1]), uniforms)[:, 0].tolist()
    assert own == pytest.approx(np.log(0.6))
    counts = [sum(d == pytest.approx(np.log(share)) for d in drawn) for share in (0.1, 0.6, 0.3)]
    assert counts == pytest.approx([500, 200, 300], abs=1)


def test_a_draw_is_never_a_token_that_is_excluded() -> None:
    sampling = torch.tensor([[-torch.inf, 1.0, -torch.inf]])
    uniforms = torch.tensor([[0.0, 0.5, np.nextafter(1, 0)]], dtype=torch.float64)
    scoring = torch.tensor([[0.0, 5.0, 0.0]])
    own, *drawn = drawn_columns(sampling, scoring, torch.tensor([1]), uniforms)[:, 0].tolist()
    assert drawn == [own] * 3
