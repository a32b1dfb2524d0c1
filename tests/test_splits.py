from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from palimpsest.errors import InputError
from palimpsest.splits import assign, hash_of, split_of
from tests.documents import make_document

IDS = st.lists(st.text(min_size=1, max_size=8), min_size=1, max_size=40, unique=True)


def domain(ids: list[str], name: str = "essays"):  # type: ignore[no-untyped-def]
    return [make_document(doc_id, 3, name) for doc_id in ids]


@given(IDS)
def test_three_groups_or_more_fill_every_split(ids: list[str]) -> None:
    splits = assign(domain(ids))
    assert set(splits) == set(ids)
    if len(ids) >= 3:
        assert set(splits.values()) == {"train", "dev", "test"}


@given(IDS)
def test_the_hash_alone_decides_where_no_split_is_empty(ids: list[str]) -> None:
    by_hash = {doc_id: split_of(doc_id) for doc_id in ids}
    if set(by_hash.values()) == {"train", "dev", "test"} or len(ids) < 3:
        assert assign(domain(ids)) == by_hash


@given(IDS)
def test_no_group_of_a_later_split_has_a_smaller_hash(ids: list[str]) -> None:
    splits = assign(domain(ids))
    place = {"train": 0, "dev": 1, "test": 2}
    if len(ids) >= 3:
        order = sorted(ids, key=lambda g: (hash_of(g), g))
        parts = [place[splits[doc_id]] for doc_id in order]
        assert parts == sorted(parts)


def test_the_rule_is_70_15_15_by_the_released_hash() -> None:
    shares = [split_of(f"doc-{i}") for i in range(20_000)]
    assert shares.count("train") / 20_000 == pytest.approx(0.70, abs=0.01)
    assert shares.count("dev") / 20_000 == pytest.approx(0.15, abs=0.01)


def test_equal_texts_share_a_split() -> None:
    documents = domain([f"d{i}" for i in range(9)])
    documents += [replace(documents[0], doc_id="copy"), replace(documents[0], doc_id="copy 2")]
    assert "copy" not in assign(documents)


def test_a_supplied_split_is_kept() -> None:
    documents = [replace(d, split="test") for d in domain(["a", "b", "c", "d"])]
    assert set(assign(documents).values()) == {"test"}


def test_one_group_with_two_supplied_splits_is_an_error() -> None:
    one, two = (replace(make_document("a"), split=s) for s in ("train", "test"))
    with pytest.raises(InputError, match="'a' come with the splits train and test"):
        assign([one, replace(two, doc_id="b")])


def test_a_domain_of_its_own_is_guarded_for_itself() -> None:
    documents = domain(["a", "b", "c"]) + domain(["x", "y", "z"], "news")
    splits = assign(documents)
    assert {splits[g] for g in "abc"} == {splits[g] for g in "xyz"} == {"train", "dev", "test"}


def test_a_known_id_has_its_known_place() -> None:
    # SHA-256("abc") starts with ba7816bf
    assert hash_of("abc") == 0xBA7816BF % 1000
