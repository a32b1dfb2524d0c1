"""What one pass of a causal language model tells about each token of a text."""

from dataclasses import dataclass
from typing import Self

import numpy as np

from palimpsest.records import Span

COLUMNS = ("logp", "n_greater", "n_equal_before", "entropy", "m2", "lmax")


@dataclass(frozen=True, slots=True)
class TokenStatistics:
    """One entry for each of the n scored tokens, in the text's order.

    p is the model's distribution where it predicts the token x, logarithms are natural. A text's
    first token is scored only by a model whose tokenizer puts a token in front of the text.
    """

    logp: np.ndarray  # float32, log p(x)
    n_greater: np.ndarray  # int32, the tokens that are likelier than x
    n_equal_before: np.ndarray  # int32, the tokens as likely as x with a smaller id
    entropy: np.ndarray  # float32, -sum p log p; (n + 1,), after the text's last token too
    m2: np.ndarray  # float32, sum p (log p)^2
    lmax: np.ndarray  # float32, max log p
    char_start: np.ndarray  # int32, half-open character offsets of x
    char_end: np.ndarray
    seen: float = 1.0  # the share of the text's characters that the model read

    @classmethod
    def of(
        cls, rows: np.ndarray, char_start: np.ndarray, char_end: np.ndarray, seen: float = 1.0
    ) -> Self:
        """From (6, n + 1) `COLUMNS`: n positions that predict a scored token, and the last.

        The last predicts none, so its entropy alone is kept. An empty text has no positions.
        """
        logp, n_greater, n_equal_before, _, m2, lmax = rows[:, :-1]
        return cls(
            logp=logp,
            n_greater=n_greater.astype(np.int32),
            n_equal_before=n_equal_before.astype(np.int32),
            entropy=rows[COLUMNS.index("entropy")],
            m2=m2,
            lmax=lmax,
            char_start=char_start,
            char_end=char_end,
            seen=seen,
        )

    def __len__(self) -> int:
        return len(self.logp)

    @property
    def rank(self) -> np.ndarray:
        """(n,) int64, from 1; equal probabilities are ranked by token id."""
        rank: np.ndarray = 1 + self.n_greater.astype(np.int64) + self.n_equal_before
        return rank

    def within(self, span: Span) -> Self:
        """The tokens that share a character with `span`; the entropies then have their length."""
        inside = (self.char_start < span.end) & (self.char_end > span.start)
        columns = {name: getattr(self, name)[: len(self)][inside] for name in COLUMNS}
        return type(self)(
            **columns,
            char_start=self.char_start[inside],
            char_end=self.char_end[inside],
            seen=self.seen,
        )
