"""A linear-chain conditional random field over batches of padded sequences."""

import torch
from torch import Tensor, nn


# Own code because pytorch-crf, whose last release is of 2019, has no marginals, and torch-struct's
# dense (B, T, K, K) potentials are made for its semirings rather than for a masked tagger.
class CRF(nn.Module):
    """Scores of starting with, ending with and moving between `tags` tags, learned from data.

    Every method takes emissions (B, T, K) and a boolean mask (B, T) whose rows begin with one or
    more True and are False from some position on; what stands behind the mask changes nothing.
    """

    def __init__(self, tags: int) -> None:
        super().__init__()
        self.start = nn.Parameter(torch.zeros(tags))
        self.end = nn.Parameter(torch.zeros(tags))
        self.transitions = nn.Parameter(torch.zeros(tags, tags))  # [from, to]

    def log_likelihood(self, emissions: Tensor, tags: Tensor, mask: Tensor) -> Tensor:
        """The log-probability (B,), in nats, of each sequence of tags (B, T)."""
        tags = tags.masked_fill(~mask, 0)  # padding often carries -100, which indexes nothing
        last = tags.gather(1, mask.sum(1, keepdim=True) - 1).squeeze(1)
        here = emissions.gather(2, tags.unsqueeze(2)).squeeze(2)
        moves = self.transitions[tags[:, :-1], tags[:, 1:]]
        path = (here * mask).sum(1) + (moves * mask[:, 1:]).sum(1)
        path = self.start[tags[:, 0]] + path + self.end[last]
        return path - torch.logsumexp(self._forward(emissions, mask)[:, -1] + self.end, dim=1)

    def marginals(self, emissions: Tensor, mask: Tensor) -> Tensor:
        """The probability (B, T, K) of each tag at each position, 0 behind the mask."""
        both = self._forward(emissions, mask) + self._backward(emissions, mask)
        return torch.softmax(both, dim=2) * mask.unsqueeze(2)

    def viterbi(self, emissions: Tensor, mask: Tensor) -> Tensor:
        """The most probable sequence of tags (B, T), -1 behind the mask."""
        batch, length, tags = emissions.shape
        stay = torch.arange(tags, device=emissions.device).expand(batch, tags)
        best = self.start + emissions[:, 0]
        came_from = []
        for t in range(1, length):
            here = mask[:, t].unsqueeze(1)
            score, source = (best.unsqueeze(2) + self.transitions).max(dim=1)
            best = torch.where(here, score + emissions[:, t], best)
            came_from.append(torch.where(here, source, stay))
        path = [(best + self.end).argmax(dim=1, keepdim=True)]
        for source in reversed(came_from):
            path.append(source.gather(1, path[-1]))
        return torch.cat(path[::-1], dim=1).masked_fill(~mask, -1)

    def _forward(self, emissions: Tensor, mask: Tensor) -> Tensor:
        """Log-sums (B, T, K) over all beginnings; behind the mask the last one stays."""
        alpha = self.start + emissions[:, 0]
        alphas = [alpha]
        for t in range(1, emissions.shape[1]):
            step = torch.logsumexp(alpha.unsqueeze(2) + self.transitions, dim=1) + emissions[:, t]
            alpha = torch.where(mask[:, t].unsqueeze(1), step, alpha)
            alphas.append(alpha)
        return torch.stack(alphas, dim=1)

    def _backward(self, emissions: Tensor, mask: Tensor) -> Tensor:
        """Log-sums (B, T, K) over all continuations."""
        beta = self.end.expand(emissions.shape[0], -1)
        betas = [beta]
        for t in range(emissions.shape[1] - 1, 0, -1):
            ahead = (emissions[:, t] + beta).unsqueeze(1)
            step = torch.logsumexp(self.transitions + ahead, dim=2)
            beta = torch.where(mask[:, t].unsqueeze(1), step, beta)
            betas.append(beta)
        return torch.stack(betas[::-1], dim=1)
