"""What one pass over a text tells about each of its tokens."""

from dataclasses import dataclass, fields
from typing import ClassVar, Protocol, Self, TypeVar

import numpy as np

from palimpsest.records import Span


@dataclass(frozen=True, slots=True)
class Read:
    """What any kind of pass gives for a text; `rows` has one row for each of the pass's columns.

    The n + 1 positions are the n that predict a scored token, and the text's last token, which
    predicts none. A text without tokens has no positions.
    """

    rows: np.ndarray  # (C, n + 1) float32
    char_start: np.ndarray  # (n,) int32, half-open character offsets of the scored tokens
    char_end: np.ndarray  # (n,) int32
    seen: float = 1.0  # the share of the text's characters that the model read


class Statistics(Protocol):
    """One entry for each of the n scored tokens, in the text's order.

    Logarithms are natural. A text's first token is scored only by a model whose tokenizer puts a
    token in front of the text.
    """

    @property
    def seen(self) -> float: ...

    def __len__(self) -> int: ...

    def within(self, span: Span) -> Self:
        """The tokens that share a character with `span`, read in the whole text's context."""
        ...


@dataclass(frozen=True, slots=True)
class TokenStatistics:
    """One model's; p is its distribution where it predicts the token x."""

    COLUMNS: ClassVar = ("logp", "n_greater", "n_equal_before", "entropy", "m2", "lmax")

    logp: np.ndarray  # float32, log p(x)
    n_greater: np.ndarray  # int32, the tokens that are likelier than x
    n_equal_before: np.ndarray  # int32, the tokens as likely as x with a smaller id
    entropy: np.ndarray  # float32, -sum p log p; (n + 1,), after the text's last token too
    m2: np.ndarray  # float32, sum p (log p)^2
    lmax: np.ndarray  # float32, max log p
    char_start: np.ndarray  # int32, half-open character offsets of x
    char_end: np.ndarray
    seen: float = 1.0

    @classmethod
    def of(cls, read: Read) -> Self:
        logp, n_greater, n_equal_before, _, m2, lmax = read.rows[:, :-1]
        return cls(
            logp=logp,
            n_greater=n_greater.astype(np.int32),
            n_equal_before=n_equal_before.astype(np.int32),
            entropy=read.rows[cls.COLUMNS.index("entropy")],
            m2=m2,
            lmax=lmax,
            char_start=read.char_start,
            char_end=read.char_end,
            seen=read.seen,
        )

    def __len__(self) -> int:
        return len(self.logp)

    @property
    def rank(self) -> np.ndarray:
        """(n,) int64, from 1; equal probabilities are ranked by token id."""
        rank: np.ndarray = 1 + self.n_greater.astype(np.int64) + self.n_equal_before
        return rank

    def within(self, span: Span) -> "TokenStatistics":
        """The entropies then have the length of the others."""
        return _within(self, span)


@dataclass(frozen=True, slots=True)
class PairStatistics:
    """Two models' with one vocabulary: p is the sampling model's distribution, q the scoring one's.

    Binoculars calls them observer and performer, LAPD base and aligned. g(v) is LAPD's weight of a
    token, log q(v) (log p(v) - log q(v)). Variances are kept, not second moments, whose difference
    float32 would lose.
    """

    COLUMNS: ClassVar = ("logp", "lmax", "sampling_logp", "xm", "xvar", "gm", "gvar")

    logp: np.ndarray  # float32, log q(x)
    lmax: np.ndarray  # float32, max log q
    sampling_logp: np.ndarray  # float32, log p(x)
    xm: np.ndarray  # float32, sum p log q; (n + 1,), after the text's last token too
    xvar: np.ndarray  # float32, the variance of log q under p
    gm: np.ndarray  # float32, sum p g
    gvar: np.ndarray  # float32, the variance of g under p
    char_start: np.ndarray
    char_end: np.ndarray
    seen: float = 1.0

    @classmethod
    def of(cls, read: Read) -> Self:
        columns = dict(zip(cls.COLUMNS, read.rows[:, :-1], strict=True))
        columns["xm"] = read.rows[cls.COLUMNS.index("xm")]
        return cls(**columns, char_start=read.char_start, char_end=read.char_end, seen=read.seen)

    def __len__(self) -> int:
        return len(self.logp)

    def within(self, span: Span) -> "PairStatistics":
        """The cross moments then have the length of the others."""
        return _within(self, span)


@dataclass(frozen=True, slots=True)
class DrawnStatistics:
    """The text beside alternatives, drawn from the sampling model independently at each position.

    All are read in the text's own context and scored by the scoring model.
    """

    logp: np.ndarray  # (n,) float32, log q(x)
    drawn: np.ndarray  # (N, n) float32, log q of each alternative
    char_start: np.ndarray
    char_end: np.ndarray
    seen: float = 1.0

    @classmethod
    def of(cls, read: Read) -> Self:
        logp, drawn = read.rows[0, :-1], read.rows[1:, :-1]
        return cls(logp, drawn, read.char_start, read.char_end, read.seen)

    def __len__(self) -> int:
        return len(self.logp)

    def within(self, span: Span) -> "DrawnStatistics":
        return _within(self, span)


_S = TypeVar("_S", TokenStatistics, PairStatistics, DrawnStatistics)


def _within(tokens: _S, span: Span) -> _S:
    inside = (tokens.char_start < span.end) & (tokens.char_end > span.start)
    values = {field.name: getattr(tokens, field.name) for field in fields(tokens)}
    seen = values.pop("seen")
    cut = {name: array[..., : len(tokens)][..., inside] for name, array in values.items()}
    return type(tokens)(**cut, seen=seen)
