import hashlib
import random

from hypothesis import given
from hypothesis import strategies as st

from palimpsest.trajectories.selection import chosen, sentence_order


@given(st.text(), st.integers(1, 60), st.integers(0, 100), st.integers(0, 100))
def test_a_larger_coverage_chooses_all_that_a_smaller_one_does(doc_id, n, a, b):  # type: ignore[no-untyped-def]
    assert set(chosen(doc_id, n, min(a, b))) <= set(chosen(doc_id, n, max(a, b)))


@given(st.text(), st.integers(1, 60))
def test_nothing_at_0_and_everything_at_100(doc_id: str, n: int) -> None:
    assert chosen(doc_id, n, 0) == []
    assert chosen(doc_id, n, 100) == list(range(n))


def test_the_number_is_rounded_up_exactly() -> None:
    assert len(chosen("d", 20, 15)) == 3
    assert len(chosen("d", 21, 15)) == 4
    assert len(chosen("d", 1, 15)) == 1


def test_the_order_is_the_released_rule_and_depends_on_the_id_alone() -> None:
    seed = int(hashlib.sha256(b"essay 7||sent_order").hexdigest()[:8], 16)
    expected = list(range(12))
    random.Random(seed).shuffle(expected)
    assert sentence_order("essay 7", 12) == expected
    assert sentence_order("essay 8", 12) != expected
