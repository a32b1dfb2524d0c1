"""Texts with labels, built sentence by sentence, and documents that carry a planted style."""

import random
from collections.abc import Sequence
from dataclasses import fields

from palimpsest.records import Labelled, Language, Span, Text, word_spans


def labelled(
    sentences: Sequence[tuple[str, int]], *, text_id: str = "t", language: Language = "en"
) -> Labelled:
    """A text of (sentence, label) pairs in one paragraph."""
    between = " " if language == "en" else ""
    text, spans = "", []
    for sentence, _ in sentences:
        start = len(text) + (len(between) if text else 0)
        text += (between if text else "") + sentence
        spans.append(Span(start, len(text)))
    words = word_spans(text, language)
    ai = [span for span, (_, label) in zip(spans, sentences, strict=True) if label]
    return Labelled(
        id=text_id,
        text=text,
        language=language,
        domain="synthetic",
        sentences=tuple(spans),
        words=words,
        doc_id=text_id,
        label=int(bool(ai)),
        sentence_labels=tuple(label for _, label in sentences),
        word_labels=tuple(int(any(w.start < s.end and s.start < w.end for s in ai)) for w in words),
        generator="planted",
        design="cumulative",
        version="v1" if ai else "v0",
        operation="polish" if ai else None,
    )


def plain(text: Labelled) -> Text:
    """The text without what a detector must not see."""
    return Text(**{field.name: getattr(text, field.name) for field in fields(Text)})


# Each sentence is opening, who, hedge, deed, what, ending. Who, deed and what are the same in both
# styles; the other three slots prefer their own style's phrases and take the other's one in fifty
# times, so that no single word tells and a sentence's slots together nearly always do.
_WHO = (
    "the harbour master", "our neighbour", "a young teacher", "the old miller", "the committee",
    "her cousin", "the night porter", "a retired judge", "the choir", "the second engineer",
)  # fmt: skip
_DEED = (
    "repaired", "described", "sold", "forgot", "counted", "painted", "borrowed", "defended",
    "measured", "carried",
)  # fmt: skip
_WHAT = (
    "the garden wall", "seven letters", "a broken clock", "the new timetable", "the boat",
    "an unpaid bill", "the village map", "two copper kettles", "the winter stores", "a blue door",
)  # fmt: skip
_STYLES = (
    (
        ("Well,", "Anyway,", "Last week", "Back then", "So", "Funny enough,"),
        ("sort of", "just", "never quite", "more or less", "only half", "pretty much"),
        ("I think.", "by the way.", "before lunch.", "as usual.", "for a bet.", "in the rain."),
    ),
    (
        ("Moreover,", "Notably,", "In essence,", "Consequently,", "Overall,", "In this context,"),
        ("seamlessly", "effectively", "thereby", "meticulously", "crucially", "ultimately"),
        ("in a holistic manner.", "with lasting impact.", "across the landscape.",
         "to foster growth.", "with great care.", "in equal measure."),
    ),
)  # fmt: skip


def planted_sentence(style: int, draw: random.Random) -> str:
    def slot(index: int) -> str:
        return draw.choice(_STYLES[style if draw.random() > 0.02 else 1 - style][index])

    opening, hedge, ending = slot(0), slot(1), slot(2)
    who, deed, what = draw.choice(_WHO), draw.choice(_DEED), draw.choice(_WHAT)
    return f"{opening} {who} {hedge} {deed} {what} {ending}"


def planted_documents(count: int, seed: int, sentences: int = 12) -> list[Labelled]:
    """Documents whose AI sentences (none to all of them) are written in a style of their own."""
    draw = random.Random(seed)
    documents = []
    for number in range(count):
        share = draw.random()
        labels = [int(draw.random() < share) for _ in range(sentences)]
        pairs = [(planted_sentence(label, draw), label) for label in labels]
        documents.append(labelled(pairs, text_id=f"{seed}-{number}"))
    return documents
