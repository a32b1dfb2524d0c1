from hypothesis import given
from hypothesis import strategies as st

from palimpsest.records import Span, word_spans
from palimpsest.trajectories.provenance import SentenceState, compose, overlapping, sample_row
from tests.documents import make_document

TEXTS = st.text(min_size=1).map(lambda t: "".join(t.split())).filter(bool)


@given(st.lists(st.tuples(TEXTS, st.booleans()), min_size=1, max_size=12), st.integers(1, 5))
def test_spans_cut_each_sentence_out_of_the_text(parts, size):  # type: ignore[no-untyped-def]
    sentences = [
        SentenceState(f"s{i}", f"p{i // size}", text, is_ai)
        for i, (text, is_ai) in enumerate(parts)
    ]
    text, spans = compose(sentences)
    assert [text[start:end] for start, end in spans] == [s.text for s in sentences]


@given(st.text(alphabet="ab \n<>😀é", max_size=60), st.data())
def test_a_word_is_ai_when_it_shares_a_character_with_a_span(text, data):  # type: ignore[no-untyped-def]
    words = word_spans(text, "en")
    cuts = sorted(data.draw(st.sets(st.integers(0, len(text)), max_size=8)))
    spans = [Span(a, b) for a, b in zip(cuts[::2], cuts[1::2], strict=False)]
    expected = [int(any(w.start < b and a < w.end for a, b in spans)) for w in words]
    assert overlapping(words, spans) == expected


def test_markup_in_a_text_changes_no_label() -> None:
    document = make_document(n=3)
    states = [SentenceState(s.id, s.paragraph, s.text) for s in document.sentences]
    states[0].text = "<AI_Start> the tag belongs to the author. </AI_End>"
    states[2].is_ai = True
    row = sample_row(
        document,
        states,
        generator="g",
        prompt_set="p",
        design="cumulative",
        variant="",
        version="v1",
        operation="polish",
        coverage=15,
    )
    assert row["sentence_labels"] == [0, 0, 1]
    ((start, end),) = row["ai_spans"]
    assert row["text"][start:end] == states[2].text
    assert sum(row["word_labels"]) == len(states[2].text.split())
    assert row["ai_sentence_ratio"] == 1 / 3
    assert row["ai_char_ratio"] == (end - start) / len(row["text"])
