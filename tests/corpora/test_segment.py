import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from palimpsest.corpora.normalise import paragraphs
from palimpsest.corpora.segment import sentences
from palimpsest.records import Language

PIECES = [
    "Dr. Fox slept. ", "It was 3.5 m; e.g. ", "“Why?” ", 'She said "No!" ', "a ", "U.S. ", "etc.) ",
    "\n", "\n  ", "  ", "\t", "\u00a0", "...", "? ", "!! ",
    "他说：“你好。”", "走了！！", "是吗？…", "（完。）", "天",
]  # fmt: skip
TEXTS = st.lists(st.sampled_from(PIECES)).map("".join)


@pytest.mark.parametrize(
    "text",
    [
        "Dr. Lee and Mrs. J. R. Smith met Prof. Wu in St. Louis.",
        "The U.S. Navy sailed at 5 p.m. on Friday.",
        "The price rose by 2.5 percent to $3.50 a pound.",
        "We saw this in Fig. 2 and in Smith et al. (2019).",
        "Some birds, e.g. Robins, and mammals (i.e. Mice) were counted, cf. Table 3.",
        "Apples, pears, etc. are fruit of ca. 8 cm.",
    ],
)
def test_abbreviations_do_not_end_an_english_sentence(text: str) -> None:
    assert sentences(text, "en") == [text]


def test_english_sentences_end_at_points_marks_and_closing_quotes() -> None:
    text = 'He left in the U.S. He was tired. "Go home!" Was that all? Yes... It was (at last).'
    assert sentences(text, "en") == [
        "He left in the U.S.",
        "He was tired.",
        '"Go home!"',
        "Was that all?",
        "Yes...",
        "It was (at last).",
    ]


def test_white_space_within_a_sentence_becomes_one_space() -> None:
    assert sentences("The old   \n  house\nfell.  It\twas\u00a0 empty.", "en") == [
        "The old house fell.",
        "It was empty.",
    ]


def test_a_paragraph_without_an_end_mark_is_one_sentence() -> None:
    assert sentences("no mark at all", "en") == ["no mark at all"]
    assert sentences("没有句号", "zh") == ["没有句号"]


def test_chinese_sentences_keep_their_marks_and_closing_quotes() -> None:
    text = "他说：“你好。”然后走了！！真的吗？！……（是的。）\n最后一句"
    assert sentences(text, "zh") == [
        "他说：“你好。”",
        "然后走了！！",
        "真的吗？！……",
        "（是的。）",
        "最后一句",
    ]


@given(TEXTS | st.text(), st.sampled_from(["en", "zh"]))
def test_sentences_hold_the_paragraph_in_order_and_white_space_is_single_spaces(
    text: str, language: Language
) -> None:
    for paragraph in paragraphs(text):
        found = sentences(paragraph, language)
        assert found
        for sentence in found:
            assert sentence == sentence.strip() != ""
            assert sentence == " ".join(sentence.split())
        # Nothing but white space lies between sentences; within them only white space changes.
        folded = re.sub(r"\s+", " ", paragraph)
        position = 0
        for sentence in found:
            start = folded.index(sentence, position)
            assert folded[position:start].strip() == ""
            position = start + len(sentence)
        assert folded[position:].strip() == ""


@given(TEXTS | st.text())
def test_a_chinese_sentence_is_not_cut_again(text: str) -> None:
    for paragraph in paragraphs(text):
        for sentence in sentences(paragraph, "zh"):
            assert sentences(sentence, "zh") == [sentence]
