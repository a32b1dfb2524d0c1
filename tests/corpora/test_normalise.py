import re

from hypothesis import given
from hypothesis import strategies as st

from palimpsest.corpora.normalise import paragraphs
from palimpsest.records import PARAGRAPH_BREAK

LINE_ENDS = ["\n", "\r\n", "\r", "\v", "\f", "\x1c", "\x1d", "\x1e", "\x85", "\u2028", "\u2029"]
TEXTS = st.lists(st.sampled_from([*LINE_ENDS, " ", "\t", "\u00a0", "a", "b.", "天"])).map("".join)


def normalise(text: str) -> str:
    return PARAGRAPH_BREAK.join(paragraphs(text))


def test_every_line_end_becomes_a_line_feed() -> None:
    assert normalise("one\r\ntwo\rthree\vfour\ffive\x85six\u2028seven") == (
        "one\ntwo\nthree\nfour\nfive\nsix\nseven"
    )


def test_blank_lines_part_paragraphs_however_many_and_whatever_they_hold() -> None:
    assert paragraphs("\n\n  one\n \t\n\n\r\n two \n  \nthree\n") == ["one", "two", "three"]
    assert paragraphs("one\u2029two") == ["one", "two"]


def test_white_space_within_a_paragraph_stays() -> None:
    assert paragraphs("a  b\n  c") == ["a  b\n  c"]


def test_a_text_without_a_character_has_no_paragraph() -> None:
    assert paragraphs("") == paragraphs(" \r\n\u3000\u2029 ") == []


@given(TEXTS | st.text())
def test_normalising_twice_changes_nothing_more(text: str) -> None:
    once = normalise(text)
    assert normalise(once) == once
    assert paragraphs(once) == paragraphs(text)


@given(TEXTS | st.text())
def test_normalising_only_touches_white_space(text: str) -> None:
    assert "".join(normalise(text).split()) == "".join(text.split())
    assert not re.search("[\r\v\f\x1c-\x1e\x85\u2028\u2029]|\n{3}", normalise(text))
