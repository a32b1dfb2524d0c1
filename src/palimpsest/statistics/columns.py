"""Reduce a causal language model's logits to the few numbers per token that are kept."""

import torch

# Numbers in one slice of logits on a CPU: with its two copies it stays in a core's own cache,
# which is three times as fast as main memory.
_SLICE = 2**18


@torch.inference_mode()
def columns(logits: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    """(6, T) float32, in the order of `tokens.COLUMNS`, for (T, V) logits and the (T,) ids after.

    Logits in half precision are cast first: a log-softmax in half precision overflows on peaked
    distributions.
    """
    logits = logits.float()
    rows = max(1, _SLICE // logits.shape[1]) if logits.device.type == "cpu" else len(logits)
    slices = zip(torch.split(logits, rows), torch.split(targets, rows), strict=True)
    return torch.cat([_columns(*part) for part in slices], dim=1)


def _columns(logits: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
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
    own = logp.gather(1, targets[:, None]).squeeze(1)
    lmax = logp.amax(1)
    # an excluded token has p = 0 and log p = -inf, whose product must be 0
    logp.clamp_(min=torch.finfo(torch.float32).min)
    product = torch.exp(logp, out=scratch).mul_(logp)
    entropy = -product.sum(1)
    m2 = product.mul_(logp).sum(1)
    return torch.stack([own, n_greater, n_equal_before, entropy, m2, lmax])
