"""Labels at every level, derived from which sentences were revised; never from comparing texts."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, TypedDict

import numpy as np
from numpy.typing import ArrayLike

from palimpsest.records import PARAGRAPH_BREAK, SENTENCE_BREAK, Document, Span, word_bounds


class Revision(TypedDict):
    """One attempt of a version to revise a sentence, whatever came of it.

    `outcome` is `accepted`, `unchanged` (an AI sentence that came back as it was), `kept: ...` (the
    best reply, with its soft misses) or `rejected: ...` (no usable reply, with the last objection).
    """

    version: str
    operation: str
    generator: str
    attempts: int
    outcome: str


@dataclass(slots=True)
class SentenceState:
    """A sentence as it stands in the current version."""

    id: str
    paragraph: str
    text: str
    is_ai: bool = False
    history: list[Revision] = field(default_factory=list)


def compose(sentences: Sequence[SentenceState]) -> tuple[str, tuple[Span, ...]]:
    """The document's text and each sentence's span in it."""
    parts: list[str] = []
    spans = []
    position = 0
    for i, sentence in enumerate(sentences):
        if i:
            same = sentence.paragraph == sentences[i - 1].paragraph
            parts.append(SENTENCE_BREAK if same else PARAGRAPH_BREAK)
            position += len(parts[-1])
        parts.append(sentence.text)
        spans.append(Span(position, position + len(sentence.text)))
        position += len(sentence.text)
    return "".join(parts), tuple(spans)


def overlapping(words: ArrayLike, spans: ArrayLike) -> list[int]:
    """1 for each word that shares a character with a span; the words ordered and disjoint."""
    (starts, ends), (begins, stops) = (np.reshape(pairs, (-1, 2)).T for pairs in (words, spans))
    labels = [0] * len(starts)
    firsts, lasts = np.searchsorted(ends, begins, "right"), np.searchsorted(starts, stops)
    for first, last in zip(firsts.tolist(), lasts.tolist(), strict=True):
        labels[first:last] = [1] * (last - first)
    return labels


def sample_row(
    document: Document,
    sentences: Sequence[SentenceState],
    *,
    generator: str,
    prompt_set: str,
    design: str,
    variant: str,
    version: str,
    operation: str,
    coverage: int,
) -> dict[str, Any]:
    """One version as a row of the schema `records.TEXTS`.

    The document label is 1 from v1 on, whatever the realised coverage (deviations B1).
    """
    trajectory_id = "/".join(filter(None, (document.doc_id, generator, design, variant)))
    text, spans = compose(sentences)
    words = word_bounds(text, document.language)
    ai_spans = [span for span, s in zip(spans, sentences, strict=True) if s.is_ai]
    word_labels = overlapping(words, ai_spans)
    return {
        "sample_id": f"{trajectory_id}/{version}",
        "trajectory_id": trajectory_id,
        "doc_id": document.doc_id,
        "group": document.group,
        "domain": document.domain,
        "language": document.language,
        "generator": generator,
        "prompt_set": prompt_set,
        "design": design,
        "variant": variant,
        "version": version,
        "operation": operation,
        "target_coverage": coverage,
        "label": int(coverage > 0),
        "text": text,
        "sentence_ids": [s.id for s in sentences],
        "sentence_spans": spans,
        "sentence_labels": [int(s.is_ai) for s in sentences],
        "sentence_history": [list(s.history) for s in sentences],
        "word_spans": words,
        "word_labels": word_labels,
        "ai_spans": ai_spans,
        "ai_sentence_ratio": len(ai_spans) / len(sentences),
        "ai_token_ratio": sum(word_labels) / len(words),
        "ai_char_ratio": sum(end - start for start, end in ai_spans) / len(text),
    }
