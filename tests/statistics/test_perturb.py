"""Where words are replaced, where spans go then, and which copies of a text come out."""

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from palimpsest.records import Language, Span, word_spans
from palimpsest.statistics.cache import Cache
from palimpsest.statistics.perturb import Edit, Perturbed, Perturber, gaps

TEXT = "The baker opened his shop and the whole street smelled of warm bread, as it had for years."
WORDS = word_spans(TEXT, "en")


@given(st.integers(0, 300), st.integers(0, 2**32))
def test_gaps_are_two_words_each_with_a_word_between_and_a_seventh_of_the_text(
    count: int, seed: int
) -> None:
    words = [Span(3 * i, 3 * i + 2) for i in range(count)]
    found = gaps(words, np.random.default_rng(seed))
    assert len(found) == int(0.3 * count / 4)
    assert all(gap.end - gap.start == 5 for gap in found)
    assert all(b.start - a.end >= 4 for a, b in pairwise(found))


@st.composite
def edited(draw: st.DrawFn) -> tuple[Perturbed, Span]:
    pieces = draw(st.lists(st.tuples(st.text("ab", max_size=4), st.text("xy"), st.text("z"))))
    original, edits = "", []
    for kept, old, new in pieces:
        original += kept
        edits.append(Edit(len(original), len(original) + len(old), new))
        original += old
    original += draw(st.text("ab", min_size=1))
    start, end = sorted(draw(st.integers(0, len(original))) for _ in range(2))
    return Perturbed(original, tuple(edits)), Span(start, end)


@given(edited())
def test_a_span_moves_with_its_characters_and_takes_in_the_edits_that_it_cuts(
    given_: tuple[Perturbed, Span],
) -> None:
    copy, span = given_
    start, end = copy.moved(span)
    kept = [i for i in range(*span) if copy.original[i] in "ab"]
    inside = copy.text[start:end]
    assert [c for c in inside if c in "ab"] == [copy.original[i] for i in kept]
    cut = [e for e in copy.edits if e.start < span.end and e.end > span.start]
    assert inside.count("z") >= sum(len(edit.new) for edit in cut)
    assert copy.touches(span) == bool(cut)


def test_edits_are_written_into_the_text() -> None:
    copy = Perturbed("one two three four", (Edit(0, 3, "1"), Edit(8, 13, "iii")))
    assert copy.text == "1 two iii four"
    assert copy.text[slice(*copy.moved(Span(14, 18)))] == "four"


class Scripted:
    """Fills gaps with numbers; every `failing`-th copy fails."""

    def __init__(self, failing: int = 0) -> None:
        self.failing, self.asked = failing, 0

    def fill(
        self, text: str, language: Language, copies: Sequence[Sequence[Span]], seed: int
    ) -> list[list[str] | None]:
        filled: list[list[str] | None] = []
        for gaps_ in copies:
            self.asked += 1
            fails = self.failing and self.asked % self.failing == 0
            filled.append(None if fails else [f"{seed % 97}" for _ in gaps_])
        return filled


def perturber(filler: Scripted, cache: Cache | None = None, seed: int = 0) -> Perturber:
    return Perturber(lambda: filler, ("m", "1"), 4, seed, cache)


def test_copies_depend_on_text_and_seed_alone() -> None:
    alone = perturber(Scripted()).perturb(TEXT, WORDS, "en")
    later = perturber(Scripted())
    later.perturb(TEXT[:-1], WORDS, "en")
    assert later.perturb(TEXT, WORDS, "en") == alone
    assert len({copy.text for copy in alone}) > 1
    assert perturber(Scripted(), seed=1).perturb(TEXT, WORDS, "en") != alone


def test_a_copy_that_fails_is_masked_anew() -> None:
    filler = Scripted(failing=3)
    assert len(perturber(filler).perturb(TEXT, WORDS, "en")) == 4
    assert filler.asked == 5


def test_a_filler_that_always_fails_is_given_up_after_ten_attempts() -> None:
    filler = Scripted(failing=1)
    assert perturber(filler).perturb(TEXT, WORDS, "en") == []
    assert filler.asked == 40


def test_a_text_without_gaps_has_no_copies_and_asks_for_nothing() -> None:
    filler = Scripted()
    assert perturber(filler).perturb("Nobody waved.", word_spans("Nobody waved.", "en"), "en") == []
    assert filler.asked == 0


def test_copies_are_made_once(tmp_path: Path) -> None:
    cache = Cache(tmp_path / "statistics.sqlite", 2**20)
    first = perturber(Scripted(), cache).perturb(TEXT, WORDS, "en")

    def refuse() -> Scripted:
        pytest.fail("a filler was loaded")

    again = Perturber(refuse, ("m", "1"), 4, 0, cache)
    assert again.perturb(TEXT, WORDS, "en") == first
    other = Perturber(Scripted, ("m", "2"), 4, 0, cache)
    assert other.key != again.key
