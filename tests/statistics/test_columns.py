"""The numbers kept for each token, against definitions in double precision."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from palimpsest.records import Span
from palimpsest.statistics.columns import columns
from palimpsest.statistics.tokens import COLUMNS, TokenStatistics
from tests.statistics.cases import close, published_cases, statistics_of


def named(logits: torch.Tensor, targets: torch.Tensor) -> dict[str, np.ndarray]:
    return dict(zip(COLUMNS, columns(logits, targets).numpy(), strict=True))


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


MEANS: dict[str, tuple[str, Callable[[TokenStatistics], Any]]] = {
    "log_likelihood": ("mean_logp", lambda tokens: tokens.logp.mean()),
    "entropy": ("mean_entropy", lambda tokens: tokens.entropy[:-1].mean()),
    "rank": ("neg_mean_rank", lambda tokens: -tokens.rank.mean()),
    "log_rank": ("neg_mean_log_rank", lambda tokens: -np.log(tokens.rank).mean()),
    "lrr": ("lrr", lambda tokens: -tokens.logp.mean() / np.log(tokens.rank).mean()),
}


@pytest.mark.parametrize("case", [p for name in MEANS for p in published_cases(name)])
def test_means_agree_with_the_methods_own_code(case: dict[str, Any]) -> None:
    key, mean = MEANS[case["statistic"]]
    tokens = statistics_of(case["inputs"]["logits"], case["inputs"]["input_ids"])
    assert mean(tokens) == close(case["expected"][key])
