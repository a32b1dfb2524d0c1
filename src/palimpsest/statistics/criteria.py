"""Detection criteria as functions of a text's token statistics; nan where one is undefined."""

import math
from dataclasses import dataclass

import numpy as np

from palimpsest.statistics.tokens import TokenStatistics

# What float32 columns tell from zero, for each token: a few units in the last place.
_RESOLUTION = 8 * float(np.finfo(np.float32).eps)


def fast_detectgpt(tokens: TokenStatistics) -> float:
    """Conditional probability curvature with one model that samples and scores.

    The analytic form of Fast-DetectGPT (arXiv 2310.05130, section 2.3): by how many standard
    deviations the text is likelier than the model's own draws at each position, higher for AI.
    Undefined without scored tokens and where the model is certain, or indifferent, at each.
    """
    entropy = tokens.entropy[: len(tokens)].astype(np.float64)
    m2 = tokens.m2.astype(np.float64)
    # rounding can take a token's variance below zero
    variance = np.clip(m2 - entropy**2, 0, None).sum()
    if variance <= _RESOLUTION * (len(tokens) + m2.sum()):
        return math.nan
    surplus = tokens.logp.sum(dtype=np.float64) + entropy.sum()
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
