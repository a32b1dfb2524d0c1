from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linear_sum_assignment

from palimpsest.evaluation.spans import (
    IOU,
    Spans,
    covered,
    match,
    merged,
    painted,
    ranges,
    runs,
    segment_sums,
)

SIZE = 30
PAIRS = st.lists(
    st.tuples(st.integers(0, SIZE - 1), st.integers(1, 8)).map(
        lambda p: (p[0], min(SIZE, p[0] + p[1]))
    ),
    max_size=8,
).map(sorted)


def spans(pairs: list[tuple[int, int]]) -> Spans:
    table = np.array(pairs, dtype=np.int64).reshape(-1, 2)
    return Spans(table[:, 0], table[:, 1])


def characters(pairs: list[tuple[int, int]]) -> set[int]:
    return {i for start, end in pairs for i in range(start, end)}


@given(PAIRS)
def test_the_union_covers_the_same_characters_in_disjoint_spans(
    pairs: list[tuple[int, int]],
) -> None:
    union = merged(spans(pairs))
    joined = list(zip(union.start.tolist(), union.end.tolist(), strict=True))
    assert characters(joined) == characters(pairs)
    assert all(before[1] < after[0] for before, after in pairwise(joined))
    assert set(np.flatnonzero(covered(spans(pairs), SIZE))) == characters(pairs)


@given(PAIRS)
def test_a_character_has_its_highest_span_s_score(pairs: list[tuple[int, int]]) -> None:
    scores = np.arange(len(pairs), 0, -1) / 10
    expected = [
        max((s for (a, b), s in zip(pairs, scores, strict=True) if a <= i < b), default=0)
        for i in range(SIZE)
    ]
    assert painted(spans(pairs), scores, SIZE).tolist() == expected


def iou(p: tuple[int, int], t: tuple[int, int]) -> float:
    a, b = characters([p]), characters([t])
    return len(a & b) / len(a | b)


@given(PAIRS, PAIRS)
def test_matching_is_one_to_one_and_as_large_as_can_be(
    first: list[tuple[int, int]], second: list[tuple[int, int]]
) -> None:
    predicted, true = merged(spans(first)), merged(spans(second))
    p = list(zip(*(side.tolist() for side in predicted), strict=True))
    t = list(zip(*(side.tolist() for side in true), strict=True))
    found = match(predicted, true)
    assert len(set(found.predicted)) == len(set(found.true)) == len(found.true)
    assert all(iou(p[i], t[j]) >= IOU for i, j in zip(found.predicted, found.true, strict=True))
    if p and t:
        possible = np.array([[iou(a, b) >= IOU for b in t] for a in p])
        rows, columns = linear_sum_assignment(possible, maximize=True)
        assert len(found.true) == possible[rows, columns].sum()


@pytest.mark.parametrize("swapped", [False, True])
def test_of_two_spans_that_fill_one_exactly_the_first_is_its_partner(swapped: bool) -> None:
    whole, halves = spans([(0, 8)]), spans([(0, 4), (4, 8)])
    found = match(halves, whole) if swapped else match(whole, halves)
    assert (found.predicted.tolist(), found.true.tolist()) == ([0], [0])


def test_runs_of_labelled_units_end_with_their_owner() -> None:
    units = spans([(0, 2), (3, 5), (6, 8), (10, 12), (13, 15)])
    found = runs(units, np.array([0, 1, 1, 1, 0]), np.array([0, 0, 0, 1, 1]))
    assert list(zip(found.start.tolist(), found.end.tolist(), strict=True)) == [(3, 8), (10, 12)]


@given(st.lists(st.floats(-1e3, 1e3), max_size=20), st.data())
def test_segment_sums_are_sums_of_slices(values: list[float], data: st.DataObject) -> None:
    bounds = data.draw(
        st.lists(st.tuples(*[st.integers(0, len(values))] * 2).map(sorted), min_size=1, max_size=6)
    )
    starts, ends = np.array(bounds).T
    found = segment_sums(np.array(values, dtype=float), starts, ends)
    assert found == pytest.approx([sum(values[a:b]) for a, b in bounds], abs=1e-9)


def test_ranges_follow_each_other() -> None:
    assert ranges(np.array([5, 0, 9]), np.array([2, 0, 3])).tolist() == [5, 6, 9, 10, 11]
