"""Detection criteria as functions of a text's token statistics: higher for AI, nan if undefined.

The sums over tokens are float64. Each criterion takes a document's statistics or, as an extension,
those of one sentence in its document.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from palimpsest.statistics.lastde import lastde as diversity_ratio
from palimpsest.statistics.tokens import DrawnStatistics, PairStatistics, TokenStatistics

# What float32 columns tell from zero, for each token: a few units in the last place.
_RESOLUTION = 8 * float(np.finfo(np.float32).eps)


def log_likelihood(tokens: TokenStatistics) -> float:
    """Mean log-probability."""
    return _mean(tokens.logp)


def entropy(tokens: TokenStatistics) -> float:
    """Minus the mean entropy: human text has the larger one, whatever its tokens."""
    return -_mean(tokens.entropy[: len(tokens)])


def rank(tokens: TokenStatistics) -> float:
    """Minus the mean rank, the likeliest token's being 1."""
    return -_mean(tokens.rank)


def log_rank(tokens: TokenStatistics) -> float:
    """Minus the mean natural logarithm of the rank."""
    return -_mean(np.log(tokens.rank))


def lrr(tokens: TokenStatistics) -> float:
    """Log-likelihood log-rank ratio of means (DetectLLM, arXiv 2306.05540, section 3.1).

    Where every token has rank 1, the mean log-rank is floored at that of one token of rank 2.
    """
    if not len(tokens):
        return math.nan
    return -_mean(tokens.logp) / max(-log_rank(tokens), math.log(2) / len(tokens))


def npr(tokens: TokenStatistics, perturbed: Sequence[TokenStatistics]) -> float:
    """Normalised log-rank of the perturbed texts (DetectLLM, section 3.2).

    Undefined where the text's own tokens all have rank 1.
    """
    own = -log_rank(tokens)
    return -float(np.mean([log_rank(p) for p in perturbed])) / own if own > 0 else math.nan


def detectgpt(tokens: TokenStatistics, perturbed: Sequence[TokenStatistics]) -> float:
    """Normalised perturbation discrepancy (DetectGPT, arXiv 2301.11305, Algorithm 1)."""
    return discrepancy(log_likelihood(tokens), np.array([log_likelihood(p) for p in perturbed]))


def fast_detectgpt(tokens: TokenStatistics) -> float:
    """Conditional probability curvature with one model that samples and scores.

    The analytic form of Fast-DetectGPT (arXiv 2310.05130, section 2.3): by how many standard
    deviations the text is likelier than the model's own draws at each position.
    Undefined without scored tokens and where the model is certain, or indifferent, at each.
    """
    entropies = tokens.entropy[: len(tokens)].astype(np.float64)
    m2 = tokens.m2.astype(np.float64)
    # rounding can take a token's variance below zero
    variance = np.clip(m2 - entropies**2, 0, None).sum()
    if variance <= _RESOLUTION * (len(tokens) + m2.sum()):
        return math.nan
    surplus = tokens.logp.sum(dtype=np.float64) + entropies.sum()
    return float(surplus / math.sqrt(variance))


def fast_detectgpt_pair(tokens: PairStatistics) -> float:
    """The same curvature, with one model that samples and another that scores."""
    return _standardised(tokens.logp, tokens.xm[: len(tokens)], tokens.xvar)


def fast_detectgpt_sampled(tokens: DrawnStatistics) -> float:
    """The same curvature, estimated from draws as in the paper's section 2.2."""
    if not len(tokens):
        return math.nan
    return discrepancy(_mean(tokens.logp), tokens.drawn.mean(1, dtype=np.float64))


def lastde(tokens: TokenStatistics, *, embedding: int, bins_per_token: float, scales: int) -> float:
    """Mean log-probability over the spread of the multiscale diversity entropy."""
    (found,) = diversity_ratio(
        tokens.logp[None], embedding=embedding, bins_per_token=bins_per_token, scales=scales
    )
    return float(found)


def lastde_pp(
    tokens: DrawnStatistics, *, embedding: int, bins_per_token: float, scales: int
) -> float:
    """Lastde, standardised by that of the draws (Lastde++)."""
    sequences = np.concatenate([tokens.logp[None], tokens.drawn])
    own, *drawn = diversity_ratio(
        sequences, embedding=embedding, bins_per_token=bins_per_token, scales=scales
    )
    return discrepancy(own, np.array(drawn))


def binoculars(tokens: PairStatistics) -> float:
    """Minus the ratio of log-perplexity to cross-perplexity (Binoculars, arXiv 2401.12070, eq. 4).

    As in the authors' code, the cross-perplexity of a document also counts the position after its
    last token.
    """
    return _ratio(_mean(tokens.logp), -_mean(tokens.xm))


def dna_detectllm(tokens: PairStatistics) -> float:
    """Minus the mean of the log-perplexity and its repaired minimum, over the cross-perplexity.

    The closed form in DNA-DetectLLM's code; repaired tokens are the scoring model's likeliest.
    """
    return _ratio((_mean(tokens.logp) + _mean(tokens.lmax)) / 2, -_mean(tokens.xm))


def lapd(tokens: PairStatistics) -> float:
    """LAPD (arXiv 2604.16923): the standardised weight that alignment gave to the text's tokens.

    The exact limit of the authors' score for infinitely many draws from the base model.
    """
    logp = tokens.logp.astype(np.float64)
    weight = logp * (tokens.sampling_logp - logp)
    return _standardised(weight, tokens.gm, tokens.gvar)


def discrepancy(own: float, others: np.ndarray) -> float:
    """How many of their standard deviations (n - 1) a value lies above the mean of others."""
    if len(others) < 2 or not np.isfinite(others).all():
        return math.nan
    return _ratio(own - float(others.mean()), float(others.std(ddof=1)))


def _mean(values: np.ndarray) -> float:
    return float(values.mean(dtype=np.float64)) if len(values) else math.nan


def _ratio(above: float, below: float) -> float:
    return above / below if below > 0 else math.nan


def _standardised(values: np.ndarray, means: np.ndarray, variances: np.ndarray) -> float:
    variance = variances.sum(dtype=np.float64)
    if variance <= _RESOLUTION**2 * (len(means) + np.square(means, dtype=np.float64).sum()):
        return math.nan
    surplus = values.sum(dtype=np.float64) - means.sum(dtype=np.float64)
    return float(surplus / math.sqrt(variance))


@dataclass(frozen=True, slots=True)
class Gaussians:
    """The authors' fit of the curvatures of human (0) and AI texts (1) for a pair of models."""

    mu0: float
    sigma0: float
    mu1: float
    sigma1: float

    def probability(self, curvature: float) -> float:
        """The published probability of AI. It rises again for very low curvatures: no score."""
        z0 = (curvature - self.mu0) / self.sigma0
        z1 = (curvature - self.mu1) / self.sigma1
        return 1 / (1 + self.sigma1 / self.sigma0 * math.exp((z1**2 - z0**2) / 2))

    @property
    def threshold(self) -> float:
        """The upper curvature at which the probability is one half."""
        # log pdf1 - log pdf0 as a x^2 + b x + c; sigma1 > sigma0 makes a > 0
        a = (self.sigma0**-2 - self.sigma1**-2) / 2
        b = self.mu1 / self.sigma1**2 - self.mu0 / self.sigma0**2
        c = (self.mu0 / self.sigma0) ** 2 / 2 - (self.mu1 / self.sigma1) ** 2 / 2
        c += math.log(self.sigma0 / self.sigma1)
        return (math.sqrt(b**2 - 4 * a * c) - b) / (2 * a)


# (sampling model, scoring model) -> the fit in the authors' local_infer.py. Their values for any
# other pair (0, 1, 2.3, 1.9) are a guess, so there is no published threshold for those.
FAST_DETECTGPT_FITS = {
    ("tiiuae/falcon-7b", "tiiuae/falcon-7b-instruct"): Gaussians(-0.0707, 0.9520, 2.9306, 1.9039),
    ("EleutherAI/gpt-j-6B", "EleutherAI/gpt-neo-2.7B"): Gaussians(0.2713, 0.9366, 2.2334, 1.8731),
    ("EleutherAI/gpt-neo-2.7B",) * 2: Gaussians(-0.2489, 0.9968, 1.8983, 1.9935),
    (
        "meta-llama/Meta-Llama-3-8B",
        "meta-llama/Meta-Llama-3-8B-Instruct",
    ): Gaussians(0.1603, 1.0791, 2.4686, 2.1582),
}
