"""The baselines: what they count, what they decide, and what they leave open."""

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from palimpsest.detectors.baselines import Length, Majority, Random, Settings
from palimpsest.detectors.interface import Runtime
from palimpsest.errors import InputError
from palimpsest.records import Labelled, Scores, Span
from tests.texts import labelled, plain

HUMAN = labelled([("Rain fell.", 0), ("The old miller closed his door.", 0)], text_id="human")
MIXED = labelled([("Rain fell.", 1), ("The old miller closed his door.", 0)], text_id="mixed")
AI = labelled([("Rain fell.", 1), ("Doors closed.", 1)], text_id="ai")


def quiet(metric: str, value: float, step: int) -> None:
    pass


def majority(*train: Labelled) -> Majority:
    detector = Majority(Settings(), Runtime())
    detector.fit(train, [], quiet)
    return detector


def test_majority_gives_each_level_its_own_commonest_label() -> None:
    # of 3 documents 2 are AI, of 6 sentences 3, of 20 words 6
    (scores,) = majority(HUMAN, MIXED, AI).score([plain(HUMAN)])
    assert scores.document_label == 1
    assert scores.document == pytest.approx(2 / 3)
    assert scores.sentence_labels is not None
    assert scores.sentence_labels.tolist() == [0, 0]
    assert scores.word_labels is not None
    assert scores.word_labels.tolist() == [0] * 8
    assert scores.words == pytest.approx(np.full(8, 6 / 20))


def test_majority_says_the_same_of_every_text() -> None:
    one, other = majority(MIXED, AI).score([plain(HUMAN), plain(AI)])
    assert (one.document, one.document_label) == (other.document, other.document_label)


def test_majority_refuses_to_count_nothing() -> None:
    with pytest.raises(InputError, match=r"widen train\.select"):
        majority()


def test_random_depends_on_seed_and_id_alone() -> None:
    def toss(seed: int, text_id: str, company: int = 0) -> Scores:
        others = [replace(plain(AI), id=f"other-{n}") for n in range(company)]
        coin = Random(Settings(), Runtime(seed=seed))
        return coin.score([*others, replace(plain(MIXED), id=text_id)])[-1]

    first = toss(0, "a")
    assert toss(0, "a", company=5).document == first.document
    assert np.array_equal(np.asarray(toss(0, "a", company=5).words), np.asarray(first.words))
    assert toss(0, "b").document != first.document
    assert toss(1, "a").document != first.document


def test_random_is_fair_at_every_level() -> None:
    coin = Random(Settings(), Runtime())
    scores = coin.score([replace(plain(MIXED), id=str(n)) for n in range(2000)])
    documents = np.array([answer.document_label for answer in scores])
    sentences = np.concatenate([np.asarray(answer.sentence_labels) for answer in scores])
    words = np.concatenate([np.asarray(answer.word_labels) for answer in scores])
    for labels in (documents, sentences, words):
        assert labels.mean() == pytest.approx(0.5, abs=4 * 0.5 / math.sqrt(len(labels)))


def test_a_loaded_coin_keeps_the_seed_that_it_was_saved_with(tmp_path: Path) -> None:
    Random(Settings(), Runtime(seed=7)).save(tmp_path)
    again = Random.load(tmp_path, Runtime(seed=8)).score([plain(AI)])
    fresh = Random(Settings(), Runtime(seed=7)).score([plain(AI)])
    assert again[0].document == fresh[0].document


def test_length_counts_words_of_the_document_and_of_each_sentence() -> None:
    (scores,) = Length(Settings(), Runtime()).score([plain(HUMAN)])
    assert scores.document == 8
    assert scores.sentences is not None
    assert scores.sentences.tolist() == [2, 6]
    assert scores.words is None
    assert (scores.document_label, scores.sentence_labels) == (None, None)


def test_length_counts_a_word_in_every_sentence_that_it_overlaps() -> None:
    # a text whose second sentence begins without a space: "fell.Then" is one word
    text = replace(
        plain(HUMAN),
        text="Rain fell.Then silence.",
        sentences=(Span(0, 10), Span(10, 23)),
        words=(Span(0, 4), Span(5, 14), Span(15, 23)),
    )
    (scores,) = Length(Settings(), Runtime()).score([text])
    assert scores.sentences is not None
    assert scores.sentences.tolist() == [2, 2]
