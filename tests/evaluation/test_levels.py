import numpy as np
import pytest

from palimpsest.evaluation.levels import units
from palimpsest.records import Level, Scores

NAN = float("nan")
# two sentences of two and three words
ROW = {
    "sentence_spans": [[0, 5], [6, 14]],
    "word_spans": [[0, 2], [3, 5], [6, 8], [9, 11], [12, 14]],
}


def labels_and_scores(scores: Scores) -> dict[Level, tuple[list[float], list[int] | None]]:
    return {
        level: (u.scores.tolist(), None if u.decided is None else u.decided.tolist())
        for level, u in units(ROW, scores)
    }


def test_a_document_method_answers_for_documents_only() -> None:
    assert labels_and_scores(Scores(document=2.5)) == {"document": ([2.5], None)}


def test_words_give_sentences_by_majority_and_documents_by_any_sentence() -> None:
    words = np.array([0.1, 0.1, 0.9, 0.8, 0.1], dtype=np.float32)
    tags = np.array([0, 0, 1, 1, 0], dtype=np.int8)
    found = labels_and_scores(Scores(document=NAN, words=words, word_labels=tags))
    assert found["sentence"][0] == pytest.approx([0.1, 0.6])
    assert found["sentence"][1] == [0, 1]
    assert found["document"][0] == pytest.approx([0.4])
    assert found["document"][1] == [1]


@pytest.mark.parametrize(("second", "label"), [(0.9, 1), (0.2, 0)])
def test_a_tie_of_words_is_settled_by_their_mean_score(second: float, label: int) -> None:
    words = np.array([0.3, second, 0, 0, 0], dtype=np.float32)
    tags = np.array([0, 1, 0, 0, 0], dtype=np.int8)
    found = labels_and_scores(Scores(document=NAN, words=words, word_labels=tags))
    assert found["sentence"][1] == [label, 0]


def test_unscored_words_do_not_count_and_a_sentence_of_only_such_is_unscored() -> None:
    words = np.array([0.4, 0.6, NAN, NAN, NAN], dtype=np.float32)
    tags = np.array([0, 1, -1, -1, -1], dtype=np.int8)
    found = labels_and_scores(Scores(document=NAN, words=words, word_labels=tags, seen=0.4))
    assert found["sentence"][0][0] == pytest.approx(0.5)
    assert np.isnan(found["sentence"][0][1])
    assert found["sentence"][1] == [1, -1]
    assert found["document"][1] == [1]


def test_a_text_that_failed_as_a_whole_is_unscored_at_its_level() -> None:
    found = labels_and_scores(Scores(document=NAN, reason="too_short"))
    assert np.isnan(found["document"][0][0])
