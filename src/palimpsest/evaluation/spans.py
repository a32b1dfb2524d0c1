"""Spans of characters of many texts at once: the texts lie on one line, with gaps between them."""

from typing import NamedTuple

import numpy as np

IOU = 0.5  # from this overlap on, a predicted and a true span are the same


class Spans(NamedTuple):
    """Half-open [start, end), each (N,), ascending in start."""

    start: np.ndarray
    end: np.ndarray


class Matches(NamedTuple):
    """Places of matched spans among the predicted and among the true ones."""

    predicted: np.ndarray
    true: np.ndarray


def segment_sums(values: np.ndarray, starts: np.ndarray, ends: np.ndarray) -> np.ndarray:
    """The sums of values[start:end], each a function of these values alone (no running total)."""
    bounds = np.stack([starts, ends], axis=1).ravel()
    sums: np.ndarray = np.add.reduceat(np.append(values, values.dtype.type(0)), bounds)[::2]
    return np.where(ends > starts, sums, 0)


def ranges(starts: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """start, start + 1, ... of each length, one range after the other."""
    lengths = lengths.astype(np.int64)
    shift = starts - (np.cumsum(lengths) - lengths)
    return np.repeat(shift, lengths) + np.arange(lengths.sum())


def merged(spans: Spans) -> Spans:
    """The union: spans that overlap or touch become one."""
    if not len(spans.start):
        return spans
    reach = np.maximum.accumulate(spans.end)
    first = np.append(True, spans.start[1:] > reach[:-1])
    return Spans(spans.start[first], reach[np.append(first[1:], True)])


def covered(spans: Spans, size: int) -> np.ndarray:
    """(size,) bool: the characters inside any span."""
    depth = np.bincount(spans.start, minlength=size + 1) - np.bincount(
        spans.end, minlength=size + 1
    )
    return np.cumsum(depth)[:size] > 0


def painted(spans: Spans, scores: np.ndarray, size: int) -> np.ndarray:
    """(size,): the highest score of the spans over each character, 0 outside of all."""
    characters = np.zeros(size)
    order = np.argsort(scores, kind="stable")
    starts, lengths = spans.start[order], (spans.end - spans.start)[order]
    characters[ranges(starts, lengths)] = np.repeat(scores[order], lengths)
    return characters


def runs(spans: Spans, labels: np.ndarray, owner: np.ndarray) -> Spans:
    """The maximal runs of units labelled 1 within one owner, from first start to last end."""
    inside = labels == 1
    goes_on = inside[1:] & inside[:-1] & (owner[1:] == owner[:-1])
    first = inside & ~np.append(False, goes_on)
    last = inside & ~np.append(goes_on, False)
    return Spans(spans.start[first], spans.end[last])


def match(predicted: Spans, true: Spans) -> Matches:
    """One-to-one matches at an intersection over union of at least `IOU`.

    Both sides must be disjoint. Then a span has at most one partner, or two that fill it exactly
    and have no other, of which the first is taken: the greedy matching is the optimal one.
    """
    low = np.searchsorted(true.end, predicted.start, "right")
    high = np.searchsorted(true.start, predicted.end, "left")
    p = np.repeat(np.arange(len(low)), high - low)
    t = ranges(low, high - low)
    start, end = predicted.start[p], predicted.end[p]
    shared = np.minimum(end, true.end[t]) - np.maximum(start, true.start[t])
    union = (end - start) + (true.end[t] - true.start[t]) - shared
    same = shared >= IOU * union
    p, t = p[same], t[same]
    once = (
        np.append(True, p[1:] != p[:-1]) & np.append(True, t[1:] != t[:-1]) if len(p) else same[:0]
    )
    return Matches(p[once], t[once])
