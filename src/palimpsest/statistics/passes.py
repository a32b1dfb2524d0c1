"""One forward pass of a causal language model over many texts: statistics of their tokens."""

from collections.abc import Sequence
from itertools import chain

import numpy as np
import torch
from tqdm import tqdm

from palimpsest.errors import InputError
from palimpsest.statistics.columns import columns
from palimpsest.statistics.reference import Encoded, Reference
from palimpsest.statistics.tokens import COLUMNS, TokenStatistics
from palimpsest.statistics.windows import Window, batches, cut


def token_statistics(
    reference: Reference,
    texts: Sequence[str],
    *,
    max_tokens: int,
    truncate: bool = False,
    batch_tokens: int = 2048,
) -> list[TokenStatistics]:
    """The statistics of each text's tokens, in the texts' order.

    Args:
        reference: the model that reads.
        texts: of any length; an empty one has no scored token.
        max_tokens: the most tokens that the model reads at once, the tokenizer's BOS included.
        truncate: read only the first `max_tokens` of a longer text, not overlapping windows of it.
        batch_tokens: the most tokens in one batch, padding included; changes no result beyond
            rounding.

    Raises:
        InputError: `max_tokens` that is above the model's context or too small to predict from.
    """
    capacity = max_tokens - len(reference.prefix)
    if reference.context is not None and max_tokens > reference.context:
        raise InputError(
            f"max_tokens is {max_tokens}, but {reference.name} reads {reference.context} at most"
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
    # a pass of a few seconds needs no bar; without a terminal there is none
    with tqdm(total=total, unit="tok", unit_scale=True, delay=5, disable=None) as progress:
        for batch in batches(todo, batch_tokens):
            read.update(zip(batch, _read(reference, encoded, batch), strict=True))
            progress.update(sum(window.length for window in batch))
    return [
        _joined(text, encoding, windows[-1].end if windows else 0, [read[w] for w in windows])
        for text, encoding, windows in zip(texts, encoded, plan, strict=True)
    ]


def _read(
    reference: Reference, encoded: Sequence[Encoded], batch: Sequence[Window]
) -> list[np.ndarray]:
    """Each window's columns at the positions that predict its scored tokens, and at its last."""
    prefix = reference.prefix
    shape = len(batch), len(prefix) + max(window.length for window in batch)
    ids, targets = np.zeros(shape, np.int64), np.zeros(shape, np.int64)
    rows = np.zeros(shape, np.bool_)
    for i, window in enumerate(batch):
        tokens = [*prefix, *encoded[window.text].ids[window.start : window.end]]
        before_first = len(prefix) + window.first - window.start - 1
        ids[i, : len(tokens)] = tokens
        targets[i, : len(tokens) - 1] = tokens[1:]
        rows[i, max(0, before_first) : len(tokens)] = True

    def put(array: np.ndarray) -> torch.Tensor:
        return torch.from_numpy(array).to(reference.device)

    wanted = put(targets[rows])
    chunks = []
    for logits in reference.logits(put(ids), put(rows)):
        now, wanted = wanted.tensor_split([len(logits)])
        chunks.append(columns(logits, now))
    whole = torch.cat(chunks, dim=1).cpu().numpy()
    return np.split(whole, rows.sum(1).cumsum()[:-1], axis=1)


def _joined(
    text: str, encoding: Encoded, end: int, windows: Sequence[np.ndarray]
) -> TokenStatistics:
    """A text's statistics from those of its windows, which reach to the token `end`."""
    # a window's last position predicts what the next one scores: only the text's last is kept
    parts = [*(part[:, :-1] for part in windows[:-1]), *windows[-1:]]
    rows = np.concatenate([np.empty((len(COLUMNS), 0), np.float32), *parts], axis=1)
    first = end - max(0, rows.shape[1] - 1)
    whole = end == len(encoding.ids)
    return TokenStatistics.of(
        rows,
        encoding.char_start[first:end],
        encoding.char_end[first:end],
        seen=1.0 if whole else float(encoding.char_end[end - 1] / len(text)),
    )
