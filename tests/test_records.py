import re
import sys

from hypothesis import given
from hypothesis import strategies as st

from palimpsest.records import word_bounds


@given(st.text())
def test_english_words_are_the_runs_of_what_is_no_white_space(text: str) -> None:
    expected = [[*match.span()] for match in re.finditer(r"\S+", text)]
    assert word_bounds(text, "en").tolist() == expected


def test_every_white_space_character_ends_a_word() -> None:
    blanks = [c for c in map(chr, range(sys.maxunicode + 1)) if c.isspace()]
    assert all(word_bounds(f"a{blank}b", "en").tolist() == [[0, 1], [2, 3]] for blank in blanks)


def test_a_text_without_words_has_none() -> None:
    assert len(word_bounds("", "en")) == len(word_bounds(" \n\u3000", "en")) == 0
