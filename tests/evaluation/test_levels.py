import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from palimpsest.errors import InputError
from palimpsest.evaluation.levels import Thresholds, own_levels, units
from palimpsest.records import ScoredSpan, Scores
from tests.evaluation.cases import predictions, reader, sample, texts

NAN = float("nan")
TWO = sample([0, 1])  # two sentences of three words


def found(
    *scores: Scores, thresholds: Thresholds | None = None
) -> dict[str, tuple[list[float], dict[str, list[int]]]]:
    """Scores and decisions by level of answers to copies of one text."""
    batch = texts([TWO] * len(scores))
    answers = predictions((TWO["sample_id"], s) for s in scores)
    own = own_levels(reader(answers))
    return {
        level: (u.scores.tolist(), {source: d.tolist() for source, d in u.decisions.items()})
        for level, u in units(batch, answers, thresholds or {}, own).items()
    }


def words(scores: list[float], tags: list[int] | None = None) -> Scores:
    labels = None if tags is None else np.array(tags, dtype=np.int8)
    return Scores(NAN, words=np.array(scores, dtype=np.float32), word_labels=labels)


def test_a_document_method_answers_for_documents_only() -> None:
    assert found(Scores(document=2.5)) == {"document": ([2.5], {})}


def test_words_give_sentences_by_majority_and_documents_by_any_word() -> None:
    levels = found(words([0.1, 0.1, 0.9, 0.8, 0.7, 0.1], [0, 0, 1, 1, 1, 0]))
    assert levels["sentence"][0] == pytest.approx([1.1 / 3, 1.6 / 3])
    assert levels["sentence"][1] == {"decided": [0, 1]}
    assert levels["document"][0] == pytest.approx([0.45])
    assert levels["document"][1] == {"decided": [1]}


def test_one_ai_word_makes_a_document_ai_and_no_sentence() -> None:
    levels = found(words([0.1, 0.9, 0.1, 0.1, 0.1, 0.1], [0, 1, 0, 0, 0, 0]))
    assert levels["sentence"][1] == {"decided": [0, 0]}
    assert levels["document"][1] == {"decided": [1]}


@pytest.mark.parametrize(("second", "label"), [(0.9, 1), (0.2, 0)])
def test_a_tie_of_words_is_settled_by_their_mean_score(second: float, label: int) -> None:
    levels = found(words([0.3, second, NAN, 0, 0, 0], [0, 1, -1, 0, 0, 0]))
    assert levels["sentence"][1] == {"decided": [label, 0]}


def test_unscored_words_do_not_count_and_a_sentence_of_only_such_is_unscored() -> None:
    levels = found(words([0.4, 0.6, 0.8, NAN, NAN, NAN], [0, 1, 1, -1, -1, -1]))
    assert levels["sentence"][0] == pytest.approx([0.6, NAN], nan_ok=True)
    assert levels["sentence"][1] == {"decided": [1, -1]}
    assert levels["document"][1] == {"decided": [1]}


def test_a_published_word_threshold_labels_sentences_and_documents_as_the_papers_do() -> None:
    thresholds = {"word": {"published": 0.5, "calibrated": None}}
    levels = found(words([0.5, 0.6, 0.1, 0.1, 0.1, 0.9]), thresholds=thresholds)
    assert levels["word"][1] == {"published": [1, 1, 0, 0, 0, 1]}
    assert levels["sentence"][1] == {"published": [1, 0]}
    assert levels["document"][1] == {"published": [1]}


def test_a_level_with_a_threshold_of_its_own_keeps_it() -> None:
    thresholds = {"sentence": {"published": 0.3}, "word": {"published": 0.5}}
    levels = found(words([0.9, 0.1, 0.1, 0.1, 0.1, 0.1]), thresholds=thresholds)
    assert levels["sentence"][1] == {"published": [1, 0]}


def test_texts_without_an_answer_are_unscored_beside_texts_with_one() -> None:
    levels = found(Scores(NAN, reason="too_short"), words([0.0] * 6, [0] * 6))
    assert levels["word"][0] == pytest.approx([NAN] * 6 + [0] * 6, nan_ok=True)
    assert levels["word"][1] == {"decided": [-1] * 6 + [0] * 6}
    assert levels["document"][0] == pytest.approx([NAN, 0], nan_ok=True)


def test_nothing_answered_is_no_level() -> None:
    assert found(Scores(NAN, reason="too_short")) == {}


def test_sentences_of_its_own_are_kept_and_documents_come_from_them() -> None:
    own = Scores(NAN, sentences=np.array([0.2, 0.4], np.float32))
    levels = found(own, thresholds={"sentence": {"published": 0.3}})
    assert set(levels) == {"sentence", "document"}
    assert levels["document"][0] == pytest.approx([0.3])
    assert levels["document"][1] == {"published": [1]}


def test_a_document_that_a_document_method_leaves_out_is_not_scored_by_its_sentences() -> None:
    sentences = np.array([0.2, 0.4], np.float32)
    levels = found(Scores(2.5, sentences=sentences), Scores(NAN, sentences=sentences))
    assert levels["document"][0] == pytest.approx([2.5, NAN], nan_ok=True)
    assert levels["sentence"][0] == pytest.approx([0.2, 0.4] * 2)


def test_a_word_is_ai_when_spans_cover_more_than_half_of_it() -> None:
    # "w0 is here. w1 is here.": half of "is" is no majority; overlapping spans count once
    spans = (ScoredSpan(0, 4, 0.5), ScoredSpan(0, 2, 0.9), ScoredSpan(6, 9, 0.7))
    levels = found(Scores(NAN, spans=spans))
    assert levels["word"][1] == {"decided": [1, 0, 1, 0, 0, 0]}
    assert levels["word"][0] == pytest.approx([0.9, 0.25, 0.42, 0, 0, 0])


def test_no_spans_at_all_mean_no_ai_anywhere() -> None:
    levels = found(Scores(NAN, spans=()))
    assert levels["document"] == ([0.0], {"decided": [0]})


@pytest.mark.parametrize("span", [(-1, 3), (3, 3), (20, 99)])
def test_a_span_outside_of_its_text_is_refused(span: tuple[int, int]) -> None:
    with pytest.raises(InputError, match=r"d0/near//v1 has the span"):
        found(Scores(NAN, spans=(ScoredSpan(*span, 1.0),)))


def test_an_answer_of_another_length_names_its_sample() -> None:
    with pytest.raises(InputError, match=r"d0/near//v1 has 5 values in words.* 6 units"):
        found(words([0.0] * 5))


TAGGED = st.lists(
    st.tuples(st.sampled_from([-1, 0, 1]), st.floats(0, 1, width=32)), min_size=6, max_size=6
)


@given(st.lists(TAGGED, min_size=1, max_size=4))
def test_a_batch_gives_what_its_texts_give_alone(answers: list[list[tuple[int, float]]]) -> None:
    scores = [words([s for _, s in tags], [tag for tag, _ in tags]) for tags in answers]
    together = found(*scores)
    alone = [found(one) for one in scores]
    for level in ("document", "sentence", "word"):
        assert together[level][0] == [s for one in alone for s in one[level][0]]
        missing = [-1] * len(alone[0][level][0])
        decided = [d for one in alone for d in one[level][1].get("decided", missing)]
        assert together[level][1].get("decided", [-1] * len(decided)) == decided


@given(TAGGED)
def test_derived_levels_follow_their_definition(tags: list[tuple[int, float]]) -> None:
    levels = found(words([s for _, s in tags], [tag for tag, _ in tags]))
    sentences = []
    for part in (tags[:3], tags[3:]):
        known = [tag for tag, _ in part if tag >= 0]
        mean = np.mean([s for _, s in part])
        share = np.mean(known) if known else NAN
        sentences.append(-1 if not known else int(mean >= 0.5 if share == 0.5 else share > 0.5))
    document = max(tag for tag, _ in tags)
    assert levels["sentence"][1].get("decided", [-1, -1]) == sentences
    assert levels["document"][1].get("decided", [-1]) == [document]
