"""The CRF against the enumeration of all sequences of tags."""

from itertools import pairwise, product

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from palimpsest.detectors.crf import CRF


def random_crf(tags: int, seed: int) -> CRF:
    crf = CRF(tags).double()
    draw = torch.Generator().manual_seed(seed)
    for parameter in crf.parameters():
        with torch.no_grad():
            parameter.copy_(torch.randn(parameter.shape, generator=draw, dtype=torch.float64))
    return crf


def path_score(crf: CRF, emissions: Tensor, path: tuple[int, ...]) -> Tensor:
    score = crf.start[path[0]] + crf.end[path[-1]]
    for position, tag in enumerate(path):
        score = score + emissions[position, tag]
    for here, there in pairwise(path):
        score = score + crf.transitions[here, there]
    return score


def enumerate_paths(crf: CRF, emissions: Tensor) -> dict[tuple[int, ...], Tensor]:
    length, tags = emissions.shape
    return {path: path_score(crf, emissions, path) for path in product(range(tags), repeat=length)}


@st.composite
def batches(draw: st.DrawFn) -> tuple[CRF, Tensor, Tensor, Tensor]:
    """A CRF, emissions, tags and a mask over sequences of different lengths."""
    tags = draw(st.integers(2, 3))
    lengths = draw(st.lists(st.integers(1, 5), min_size=1, max_size=3))
    seed = draw(st.integers(0, 2**31))
    random = torch.Generator().manual_seed(seed)
    shape = (len(lengths), max(lengths))
    emissions = 2 * torch.randn((*shape, tags), generator=random, dtype=torch.float64)
    gold = torch.randint(tags, shape, generator=random)
    mask = torch.arange(shape[1]) < torch.tensor(lengths).unsqueeze(1)
    return random_crf(tags, seed), emissions, gold, mask


@given(batches())
@settings(max_examples=40)
def test_likelihoods_marginals_and_paths_equal_the_enumeration(
    batch: tuple[CRF, Tensor, Tensor, Tensor],
) -> None:
    crf, emissions, gold, mask = batch
    likelihoods = crf.log_likelihood(emissions, gold, mask)
    marginals = crf.marginals(emissions, mask)
    paths = crf.viterbi(emissions, mask)
    for row, length in enumerate(mask.sum(1).tolist()):
        scores = enumerate_paths(crf, emissions[row, :length])
        total = torch.logsumexp(torch.stack(list(scores.values())), 0)
        true = scores[tuple(gold[row, :length].tolist())] - total
        assert likelihoods[row].item() == pytest.approx(true.item(), abs=1e-9)
        expected = torch.zeros_like(emissions[row, :length])
        for path, score in scores.items():
            for position, tag in enumerate(path):
                expected[position, tag] += (score - total).exp()
        assert torch.allclose(marginals[row, :length], expected, atol=1e-9)
        assert tuple(paths[row, :length].tolist()) == max(scores, key=lambda path: scores[path])


@given(batches())
@settings(max_examples=20)
def test_what_stands_behind_the_mask_changes_nothing(
    batch: tuple[CRF, Tensor, Tensor, Tensor],
) -> None:
    crf, emissions, gold, mask = batch
    other = torch.where(mask.unsqueeze(2), emissions, torch.full_like(emissions, 1e4))
    padded = gold.masked_fill(~mask, -100)
    assert torch.equal(
        crf.log_likelihood(emissions, gold, mask), crf.log_likelihood(other, padded, mask)
    )
    assert torch.equal(crf.marginals(emissions, mask), crf.marginals(other, mask))
    assert torch.equal(crf.viterbi(emissions, mask), crf.viterbi(other, mask))
    assert (crf.marginals(other, mask)[~mask] == 0).all()
    assert (crf.viterbi(other, mask)[~mask] == -1).all()


def test_the_gradient_of_the_likelihood_is_that_of_finite_differences() -> None:
    crf = random_crf(2, seed=5)
    draw = torch.Generator().manual_seed(6)
    emissions = torch.randn((2, 4, 2), generator=draw, dtype=torch.float64, requires_grad=True)
    tags = torch.tensor([[0, 1, 1, 0], [1, 0, 0, 0]])
    mask = torch.tensor([[True] * 4, [True, True, False, False]])
    parameters = tuple(crf.parameters())

    def likelihood(emissions: Tensor, *parameters: Tensor) -> Tensor:
        return crf.log_likelihood(emissions, tags, mask)

    assert torch.autograd.gradcheck(likelihood, (emissions, *parameters))


def test_training_recovers_transitions_that_the_emissions_do_not_show() -> None:
    crf = CRF(2)
    tags = (torch.arange(12) % 2).expand(4, 12)  # always alternating
    mask = torch.ones(4, 12, dtype=torch.bool)
    emissions = torch.zeros(4, 12, 2)
    optimiser = torch.optim.Adam(crf.parameters(), lr=0.3)
    for _ in range(60):
        optimiser.zero_grad()
        torch.autograd.backward(-crf.log_likelihood(emissions, tags, mask).mean())
        optimiser.step()
    assert torch.equal(crf.viterbi(emissions, mask), tags)
