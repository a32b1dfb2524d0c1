"""A text's words as the overlapping windows of sub-words that an encoder can read."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from palimpsest.records import Text


@dataclass(frozen=True, slots=True)
class Window:
    """`first[i]` is where in `input_ids` the word `words[i]` of the text begins."""

    words: range
    input_ids: list[int]
    first: list[int]


def sub_words(text: Text, tokenizer: Any) -> list[list[int]]:
    """The sub-word ids of each of the text's words, never none.

    A word that the tokenizer drops, such as a lone control character, becomes its unknown token:
    it keeps its place among the words. Names of special tokens inside a text are mere characters.
    """
    encoding = tokenizer(
        [text.text[start:end] for start, end in text.words],
        is_split_into_words=True,
        add_special_tokens=False,
        split_special_tokens=True,
        verbose=False,
    )
    pieces: list[list[int]] = [[] for _ in text.words]
    for word, piece in zip(encoding.word_ids(), encoding["input_ids"], strict=True):
        pieces[word].append(piece)
    return [ids or [tokenizer.unk_token_id] for ids in pieces]


def runs(lengths: Sequence[int], capacity: int, stride: int) -> list[range]:
    """Runs of words that together hold every word, each of up to `capacity` sub-words.

    A run begins with the first word that stands `stride` sub-words or more behind the beginning of
    the run before, or where that one ends. Words longer than the capacity count as if cut to it.
    """
    ends = np.cumsum(np.minimum(lengths, capacity))
    begins = np.concatenate(([0], ends[:-1]))
    found = [range(int(np.searchsorted(ends, capacity, side="right")))]
    while found[-1].stop < len(lengths):
        origin = begins[found[-1].start]
        start = min(int(np.searchsorted(begins, origin + stride)), found[-1].stop)
        stop = np.searchsorted(ends, begins[start] + capacity, side="right")
        found.append(range(start, int(stop)))
    return found


def cut(
    pieces: Sequence[Sequence[int]], run: range, capacity: int, before: int, after: int
) -> Window:
    """The window over one run of words between the special tokens `before` and `after`."""
    ids, first = [before], []
    for word in run:
        first.append(len(ids))
        ids.extend(pieces[word][:capacity])
    return Window(run, [*ids, after], first)


def deepest(found: Sequence[range], words: int) -> np.ndarray:
    """For each word (W,) the index of the run that holds it furthest from an edge, -1 if none.

    The text's own beginning and end are no edges: nothing is missing beyond them.
    """
    chosen = np.full(words, -1)
    depth = np.full(words, -1.0)
    for index, run in enumerate(found):
        here = slice(run.start, run.stop)
        at = np.arange(run.start, run.stop)
        left = at - run.start if run.start else np.inf
        right = run.stop - 1 - at if run.stop < words else np.inf
        now = np.broadcast_to(np.minimum(left, right), at.shape)
        better = now > depth[here]
        chosen[here][better] = index
        depth[here][better] = now[better]
    return chosen
