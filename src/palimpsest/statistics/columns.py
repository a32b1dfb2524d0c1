"""Reduce causal language models' logits to the few numbers per token that are kept."""

from collections.abc import Callable

import torch

# Numbers in one slice of logits on a CPU: with its two copies it stays in a core's own cache,
# which is three times as fast as main memory.
_SLICE = 2**18

# Excluded tokens have log p = -inf, whose product with p = 0 must be 0; and the square of a
# scoring model's -inf must not swallow a sum. No model tells less likely tokens apart.
_FLOOR = -1e4


def columns(logits: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    """(6, T) float32, in the order of `TokenStatistics.COLUMNS`.

    Args:
        logits: (T, V), in any precision; they are reduced in float32, since a log-softmax in half
            precision overflows on peaked distributions.
        targets: (T,) the ids that follow.
    """
    return _sliced(_columns, logits, targets)


def pair_columns(
    sampling: torch.Tensor, scoring: torch.Tensor, targets: torch.Tensor
) -> torch.Tensor:
    """(7, T) float32, in the order of `PairStatistics.COLUMNS`, for the logits of two models.

    Where one vocabulary is padded further than the other, both are cut to the smaller before the
    softmax, as the authors of Fast-DetectGPT do.
    """
    return _sliced(_pair_columns, *_cropped(sampling, scoring), targets)


def drawn_columns(
    sampling: torch.Tensor, scoring: torch.Tensor, targets: torch.Tensor, uniforms: torch.Tensor
) -> torch.Tensor:
    """(1 + N, T) float32: the scoring model's log-probability of the target and of N draws.

    Args:
        sampling: (T, V1) logits of the model that draws.
        scoring: (T, V2) logits of the model that scores.
        targets: (T,) the ids that follow.
        uniforms: (T, N) numbers in [0, 1), of which `drawn` makes tokens.
    """
    return _sliced(_drawn_columns, *_cropped(sampling, scoring), targets, uniforms)


@torch.inference_mode()
def _sliced(reduce: Callable[..., torch.Tensor], *inputs: torch.Tensor) -> torch.Tensor:
    logits = inputs[0]
    if logits.device.type != "cpu":
        return reduce(*inputs)
    # The last slice is filled up: several threads share out a sum by the number of rows, and what
    # is kept of a row must not depend on its neighbours by even a bit.
    rows = max(1, _SLICE // logits.shape[1])
    slices = zip(*(torch.split(part, rows) for part in inputs), strict=True)
    found = [reduce(*(_filled(part, rows) for part in parts)) for parts in slices]
    return torch.cat(found, dim=1)[:, : len(logits)]


def _filled(part: torch.Tensor, rows: int) -> torch.Tensor:
    missing = rows - len(part)
    if not missing:
        return part
    return torch.cat([part, part[-1:].expand(missing, *part.shape[1:])])


def _cropped(one: torch.Tensor, other: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    width = min(one.shape[1], other.shape[1])
    return one[:, :width], other[:, :width]


def _at(values: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    return values.gather(1, targets[:, None]).squeeze(1)


def _columns(logits: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    logits = logits.float()
    scratch = torch.empty_like(logits)
    at_target = logits.gather(1, targets[:, None])
    # zeros and ones as float32 add up fast, and exactly below 2^24
    n_greater = torch.gt(logits, at_target, out=scratch).sum(1)
    n_at_least = torch.ge(logits, at_target, out=scratch).sum(1)

    n_equal_before = torch.zeros_like(n_greater)
    tied = (n_at_least - n_greater > 1).nonzero().squeeze(1)  # rare: only these are looked at again
    equal = logits[tied] == at_target[tied]
    before = torch.arange(logits.shape[1], device=logits.device) < targets[tied, None]
    n_equal_before[tied] = (equal & before).sum(1, dtype=torch.float32)

    logp = logits.log_softmax(1)
    own = _at(logp, targets)
    lmax = logp.amax(1)
    logp.clamp_(min=_FLOOR)
    product = torch.exp(logp, out=scratch).mul_(logp)
    entropy = -product.sum(1)
    m2 = product.mul_(logp).sum(1)
    return torch.stack([own, n_greater, n_equal_before, entropy, m2, lmax])


def _pair_columns(
    sampling: torch.Tensor, scoring: torch.Tensor, targets: torch.Tensor
) -> torch.Tensor:
    log_p = sampling.float().log_softmax(1).clamp_(min=_FLOOR)
    log_q = scoring.float().log_softmax(1).clamp_(min=_FLOOR)
    p = log_p.exp()
    own, own_p, lmax = _at(log_q, targets), _at(log_p, targets), log_q.amax(1)
    weight = log_p.sub_(log_q).mul_(log_q)

    def moments(values: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        mean = (p * values).sum(1)
        return mean, values.sub_(mean[:, None]).square_().mul_(p).sum(1)

    return torch.stack([own, lmax, own_p, *moments(log_q), *moments(weight)])


def _drawn_columns(
    sampling: torch.Tensor, scoring: torch.Tensor, targets: torch.Tensor, uniforms: torch.Tensor
) -> torch.Tensor:
    log_q = scoring.float().log_softmax(1)
    tokens = drawn(sampling, uniforms)
    return torch.cat([_at(log_q, targets)[None], log_q.gather(1, tokens).T])


def drawn(logits: torch.Tensor, uniforms: torch.Tensor) -> torch.Tensor:
    """(T, N) ids where the cumulative distributions of (T, V) logits pass (T, N) numbers < 1."""
    # float64: the steps of a float32 sum near one are wider than many a token; MPS has none
    place = torch.device("cpu") if logits.device.type == "mps" else logits.device
    cumulative = logits.to(place).float().softmax(1).cumsum(1, dtype=torch.float64)
    tokens = torch.searchsorted(cumulative, uniforms.to(place) * cumulative[:, -1:], right=True)
    return tokens.clamp_(max=cumulative.shape[1] - 1).to(logits.device)
