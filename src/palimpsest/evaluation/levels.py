"""What a detector's answer says at each level; the one place where coarser levels are derived.

Finer levels are never invented. A coarser score is the mean of the finer units' scores; a document
is labelled AI when any of its sentences is, a sentence when most of its words are (ties: when their
mean score is at least 0.5).
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from palimpsest.records import Level, Scores

LEVELS: tuple[Level, ...] = ("document", "sentence", "word")


@dataclass(frozen=True, slots=True)
class Units:
    """A text's units at one level, all of shape (n,).

    A score of nan means not scored. `decided` are the method's own labels, -1 for undecided.
    """

    scores: np.ndarray
    decided: np.ndarray | None


def gold(row: Mapping[str, Any], level: Level) -> np.ndarray:
    """The true labels of a sample's units."""
    match level:
        case "document":
            return np.array([row["label"]], dtype=np.int8)
        case "sentence":
            return np.array(row["sentence_labels"], dtype=np.int8)
        case "word":
            return np.array(row["word_labels"], dtype=np.int8)
        case _:
            raise ValueError(f"no gold labels at level {level}")


def units(row: Mapping[str, Any], scores: Scores) -> Iterator[tuple[Level, Units]]:
    """The levels at which there is an answer, with the units' scores and decisions."""
    words = _given(scores.words, scores.word_labels)
    sentences = _given(scores.sentences, scores.sentence_labels)
    if sentences is None and words is not None:
        sentences = _sentences_from(words, row)
    decided = None if scores.document_label is None else np.array([scores.document_label], np.int8)
    document = Units(np.array([scores.document], dtype=np.float64), decided)
    # A method whose native level is finer leaves the document to be derived.
    if np.isnan(scores.document) and decided is None and sentences is not None:
        document = _document_from(sentences, words or sentences)
    yield "document", document
    if sentences is not None:
        yield "sentence", sentences
    if words is not None:
        yield "word", words


def _given(scores: np.ndarray | None, decided: np.ndarray | None) -> Units | None:
    if scores is None and decided is None:
        return None
    if scores is None:
        assert decided is not None
        scores = np.full(len(decided), np.nan)
    return Units(scores.astype(np.float64), decided)


def _sentences_from(words: Units, row: Mapping[str, Any]) -> Units:
    scores, decided = [], []
    spans = np.array(row["word_spans"])
    for start, end in row["sentence_spans"]:
        inside = (spans[:, 0] < end) & (spans[:, 1] > start)
        scores.append(_mean(words.scores[inside]))
        if words.decided is not None:
            labels = words.decided[inside]
            labels = labels[labels >= 0]
            share = labels.mean() if labels.size else np.nan
            tie = scores[-1] >= 0.5
            decided.append(-1 if np.isnan(share) else int(tie if share == 0.5 else share > 0.5))
    labels_or_none = np.array(decided, dtype=np.int8) if words.decided is not None else None
    return Units(np.array(scores), labels_or_none)


def _document_from(sentences: Units, native: Units) -> Units:
    decided = None
    if sentences.decided is not None:
        known = sentences.decided[sentences.decided >= 0]
        decided = np.array([known.max() if known.size else -1], dtype=np.int8)
    return Units(np.array([_mean(native.scores)]), decided)


def _mean(scores: np.ndarray) -> float:
    scored = scores[~np.isnan(scores)]
    return float(scored.mean()) if scored.size else float("nan")
