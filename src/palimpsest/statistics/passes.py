"""One forward pass over many texts: batches of windows in, the numbers kept of each text out."""

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import ClassVar

import numpy as np
import torch
from tqdm import tqdm

from palimpsest.errors import InputError
from palimpsest.statistics.columns import columns, drawn_columns, pair_columns
from palimpsest.statistics.reference import Encoded, Reference, logits
from palimpsest.statistics.tokens import PairStatistics, Read, TokenStatistics
from palimpsest.statistics.windows import Window, batches, cut, padded


@dataclass(frozen=True, slots=True)
class Batch:
    """Windows of several texts, padded on the right, of which R positions are wanted.

    `parts` has a window's text and first scored token, and the number of its wanted positions.
    """

    ids: torch.Tensor  # (B, T)
    rows: torch.Tensor  # (B, T) bool
    targets: torch.Tensor  # (R,) the ids after the wanted positions; 0 after a text's last
    parts: Sequence[tuple[str, int, int]]


class Pass(ABC):
    """A kind of pass; its last model is the one that scores.

    `columns` reduces T positions to (C, T): each model's (T, V) logits, and the same T rows of each
    of `inputs`.

    Raises:
        InputError: models whose tokenizers differ.
    """

    columns: ClassVar[Callable[..., torch.Tensor]]

    def __init__(self, *references: Reference) -> None:
        self.references = references
        first, *others = references
        for other in others:
            # GPT-J's tokenizer is GPT-2's, with names for its padding: one may have more tokens
            few, many = sorted((one.tokenizer.get_vocab() for one in (first, other)), key=len)
            if not few.items() <= many.items() or first.prefix != other.prefix:
                raise InputError(
                    f"{first.name} and {other.name} cut texts into different tokens: "
                    "give two models with one tokenizer"
                )

    @property
    @abstractmethod
    def width(self) -> int:
        """C, the number of columns."""

    def inputs(self, batch: Batch) -> list[torch.Tensor]:
        """(R, ...) tensors beside the logits."""
        return [batch.targets]

    def read(self, batch: Batch) -> torch.Tensor:
        """(C, R)."""
        rest, chunks = self.inputs(batch), []
        for parts in logits(self.references, batch.ids, batch.rows):
            count = len(parts[0])
            chunks.append(self.columns(*parts, *(tensor[:count] for tensor in rest)))
            rest = [tensor[count:] for tensor in rest]
        return torch.cat(chunks, dim=1)


class SinglePass(Pass):
    """One model, for `TokenStatistics`."""

    width = len(TokenStatistics.COLUMNS)
    columns = staticmethod(columns)


class PairPass(Pass):
    """A sampling and a scoring model of one vocabulary, for `PairStatistics`."""

    width = len(PairStatistics.COLUMNS)
    columns = staticmethod(pair_columns)


class DrawsPass(Pass):
    """Alternatives from a sampling model, scored by another or the same: `DrawnStatistics`.

    The draws of a text depend on the text, the seed and the windows that it is read in, and on
    nothing else.
    """

    columns = staticmethod(drawn_columns)

    def __init__(self, sampling: Reference, scoring: Reference, draws: int, seed: int) -> None:
        super().__init__(sampling, scoring)
        self.draws, self.seed = draws, seed

    @property
    def width(self) -> int:
        return 1 + self.draws

    def inputs(self, batch: Batch) -> list[torch.Tensor]:
        return [batch.targets, torch.cat([self._uniforms(*part) for part in batch.parts])]

    def _uniforms(self, text: str, first: int, positions: int) -> torch.Tensor:
        digest = hashlib.sha256(f"{self.seed} {first} {text}".encode()).digest()
        random = np.random.default_rng(int.from_bytes(digest, "big"))
        return torch.from_numpy(random.random((positions, self.draws)))


def read_texts(
    kind: Pass,
    texts: Sequence[str],
    *,
    max_tokens: int,
    truncate: bool = False,
    batch_tokens: int = 2048,
) -> list[Read]:
    """What the pass keeps of each text, in the texts' order.

    Args:
        kind: the pass and its models.
        texts: of any length; an empty one has no scored token.
        max_tokens: the most tokens that a model reads at once, the tokenizer's BOS included.
        truncate: read only the first `max_tokens` of a longer text, not overlapping windows of it.
        batch_tokens: the most tokens in one batch, padding included; changes no result beyond
            rounding.

    Raises:
        InputError: `max_tokens` that is above the model's context or too small to predict from.
    """
    # of two tokenizers the one whose tokens both models know
    reference = min(kind.references, key=lambda one: len(one.tokenizer))
    capacity = max_tokens - len(reference.prefix)
    contexts = [one.context for one in kind.references if one.context is not None]
    for one in kind.references:
        if one.context is not None and max_tokens > one.context:
            raise InputError(
                f"max_tokens is {max_tokens}, but {one.name} reads {one.context} at most"
            )
    if capacity < 2:
        raise InputError(f"max_tokens is {max_tokens}; give at least {len(reference.prefix) + 2}")

    encoded = [reference.encode(text) for text in texts]
    plan = [cut(i, len(encoding.ids), capacity) for i, encoding in enumerate(encoded)]
    if truncate:
        plan = [windows[:1] for windows in plan]
    todo = list(chain.from_iterable(plan))
    read: dict[Window, np.ndarray] = {}
    total = sum(window.length for window in todo)
    # a pass of a few seconds needs no bar
    with tqdm(total=total, unit="tok", unit_scale=True, delay=5, leave=False) as progress:
        for windows in batches(todo, batch_tokens):
            batch = _batch(reference, min(contexts, default=None), texts, encoded, windows)
            whole = kind.read(batch).cpu().numpy()
            ends = np.cumsum([positions for _, _, positions in batch.parts])
            read.update(zip(windows, np.split(whole, ends[:-1], axis=1), strict=True))
            progress.update(sum(window.length for window in windows))
    return [
        _joined(text, encoding, windows[-1].end if windows else 0, kind.width,
                [read[window] for window in windows])
        for text, encoding, windows in zip(texts, encoded, plan, strict=True)
    ]  # fmt: skip


def _batch(
    reference: Reference,
    context: int | None,
    texts: Sequence[str],
    encoded: Sequence[Encoded],
    windows: Sequence[Window],
) -> Batch:
    """The positions that predict each window's scored tokens, and its last.

    A batch is never wider than the `context` of all models.
    """
    prefix = reference.prefix
    width = len(prefix) + padded(windows[0].length)
    shape = len(windows), min(width, context or width)
    ids, targets = np.zeros(shape, np.int64), np.zeros(shape, np.int64)
    rows = np.zeros(shape, np.bool_)
    for i, window in enumerate(windows):
        tokens = [*prefix, *encoded[window.text].ids[window.start : window.end]]
        before_first = len(prefix) + window.first - window.start - 1
        ids[i, : len(tokens)] = tokens
        targets[i, : len(tokens) - 1] = tokens[1:]
        rows[i, max(0, before_first) : len(tokens)] = True

    def put(array: np.ndarray) -> torch.Tensor:
        return torch.from_numpy(array).to(reference.device)

    parts = [
        (texts[window.text], window.first, int(count))
        for window, count in zip(windows, rows.sum(1), strict=True)
    ]
    return Batch(put(ids), put(rows), put(targets[rows]), parts)


def _joined(
    text: str, encoding: Encoded, end: int, width: int, windows: Sequence[np.ndarray]
) -> Read:
    """What is kept of a text, from its windows, which reach to the token `end`."""
    # a window's last position predicts what the next one scores: only the text's last is kept
    parts = [*(part[:, :-1] for part in windows[:-1]), *windows[-1:]]
    rows = np.concatenate([np.empty((width, 0), np.float32), *parts], axis=1)
    first = end - max(0, rows.shape[1] - 1)
    whole = end == len(encoding.ids)
    return Read(
        rows,
        encoding.char_start[first:end],
        encoding.char_end[first:end],
        seen=1.0 if whole else float(encoding.char_end[end - 1] / len(text)),
    )
