"""Words as windows of sub-words: nothing is lost, nothing is misplaced."""

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from transformers import AutoTokenizer

from palimpsest.detectors.word_windows import cut, deepest, runs, sub_words
from palimpsest.records import Span, Text
from tests.tiny_encoder import tiny_encoder

lengths = st.lists(st.integers(1, 9), min_size=1, max_size=60)


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return AutoTokenizer.from_pretrained(tiny_encoder(tmp_path_factory.mktemp("encoder")))


def of_words(*words: str) -> Text:
    """A text of words that may hold any character."""
    text, spans = "", []
    for word in words:
        spans.append(Span(len(text), len(text) + len(word)))
        text += word + " "
    return Text("t", text, "en", "d", (), tuple(spans))


@given(lengths, st.integers(1, 12), st.data())
def test_runs_fit_hold_every_word_and_move_on(
    lengths: list[int], capacity: int, data: st.DataObject
) -> None:
    stride = data.draw(st.integers(1, capacity))
    found = runs(lengths, capacity, stride)
    assert (found[0].start, found[-1].stop) == (0, len(lengths))
    for run in found:
        assert sum(min(length, capacity) for length in lengths[run.start : run.stop]) <= capacity
    for run, following in pairwise(found):
        assert run.start < following.start <= run.stop <= following.stop


@given(lengths, st.integers(1, 12))
def test_runs_a_capacity_apart_share_no_word(lengths: list[int], capacity: int) -> None:
    found = runs(lengths, capacity, capacity)
    assert [word for run in found for word in run] == list(range(len(lengths)))


@given(lengths, st.integers(2, 12))
def test_each_word_is_taken_from_a_run_that_holds_it_deepest(
    lengths: list[int], capacity: int
) -> None:
    found = runs(lengths, capacity, capacity // 2)
    words = len(lengths)

    def depth(word: int, run: range) -> float:
        left = word - run.start if run.start else np.inf
        right = run.stop - 1 - word if run.stop < words else np.inf
        return min(left, right)

    for word, index in enumerate(deepest(found, words)):
        holding = [depth(word, run) for run in found if word in run]
        assert word in found[index]
        assert depth(word, found[index]) == max(holding)


def test_words_that_no_run_holds_are_taken_from_none() -> None:
    assert deepest([range(2)], 4).tolist() == [0, 0, -1, -1]


def test_each_word_begins_where_its_window_says(tokenizer: Any) -> None:
    text = of_words("The", "lamps,", "along", "harbourlike", "rivers")
    pieces = sub_words(text, tokenizer)
    assert max(map(len, pieces)) > 1
    window = cut(pieces, range(1, 4), capacity=50, before=2, after=3)
    assert window.input_ids == [2, *pieces[1], *pieces[2], *pieces[3], 3]
    assert [window.input_ids[at] for at in window.first] == [pieces[i][0] for i in range(1, 4)]


def test_words_that_the_tokenizer_drops_or_does_not_know_keep_their_place(tokenizer: Any) -> None:
    strange = ("\x00", "\u200b", "🏮", "龘")
    pieces = sub_words(of_words("The", *strange, "lamps"), tokenizer)
    plain = sub_words(of_words("The", "lamps"), tokenizer)
    assert [pieces[0], pieces[-1]] == plain
    assert pieces[1:-1] == [[tokenizer.unk_token_id]] * len(strange)


def test_names_of_special_tokens_in_a_text_are_mere_characters(tokenizer: Any) -> None:
    (pieces,) = sub_words(of_words("[SEP]"), tokenizer)
    assert tokenizer.sep_token_id not in pieces


def test_a_word_longer_than_a_window_is_cut_to_it() -> None:
    assert runs([90, 1], capacity=5, stride=2) == [range(1), range(1, 2)]
    window = cut([[7] * 90, [8]], range(1), capacity=5, before=2, after=3)
    assert window.input_ids == [2, 7, 7, 7, 7, 7, 3]
