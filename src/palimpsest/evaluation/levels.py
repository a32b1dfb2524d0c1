"""What a detector's answers say at each level; the one place where coarser levels are derived.

Finer levels are never invented, and a level that the method answers itself is not derived: what it
leaves out there is unscored. Derived answers come from the method's finest units. A score is their
mean. A document is labelled AI when any of them is, a sentence when most of its words are (ties:
when their mean score reaches the threshold, one half for labels that the method decides itself). A
span method's word is AI when its spans cover more than half of it, and scores the mean of its
characters, each with its highest span's score or 0.

Texts and answers come as Arrow batches with the columns of `records.TEXTS` and `PREDICTIONS`.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from palimpsest.errors import InputError
from palimpsest.evaluation.spans import Spans, covered, painted, segment_sums
from palimpsest.records import Level

LEVELS: tuple[Level, ...] = ("document", "sentence", "word")

_GOLD = {"document": "label", "sentence": "sentence_labels", "word": "word_labels"}
_ANSWERS: dict[Level, tuple[str, ...]] = {
    "document": ("document", "document_label"),
    "sentence": ("sentences", "sentence_labels"),
    "word": ("words", "word_labels"),
    "character": ("spans",),
}

Thresholds = Mapping[str, Mapping[str, Any]]  # by level, as thresholds.json holds them
Batches = Callable[[Sequence[str]], Iterable[pa.RecordBatch]]  # a run's rows, in these columns


@dataclass(frozen=True, slots=True)
class Units:
    """The units of a batch's texts at one level, text after text.

    `lengths` (T,) counts each text's units; `labels` (N,) are the true ones. `scores` (N,): nan
    means not scored. `decisions`: labels (N,) by what decided them (`decided` by the method itself,
    the `published` or the `calibrated` threshold), -1 where undecided.
    """

    lengths: np.ndarray
    labels: np.ndarray
    scores: np.ndarray
    decisions: Mapping[str, np.ndarray]

    @property
    def owner(self) -> np.ndarray:
        """(N,): each unit's text."""
        return np.repeat(np.arange(len(self.lengths)), self.lengths)


@dataclass(frozen=True, slots=True)
class _Answers:
    """One level's answers by unit, -1 and nan where there is none, and each text's `lengths` (T,).

    `published` are labels by a finer level's published threshold.
    """

    lengths: np.ndarray
    scores: np.ndarray
    decided: np.ndarray
    published: np.ndarray


def own_levels(predictions: Batches) -> frozenset[Level]:
    """The levels that a method answers itself anywhere in a run; spans are of characters."""
    return frozenset(
        level
        for level, columns in _ANSWERS.items()
        if any(_answered(batch, level).any() for batch in predictions(columns))
    )


def units(
    texts: pa.RecordBatch,
    predictions: pa.RecordBatch,
    thresholds: Thresholds,
    own: Collection[Level],
) -> dict[Level, Units]:
    """The levels that are the method's `own`, and coarser ones; row i of both is the same sample.

    `own` is what `own_levels` says of the whole run: a batch may lack all answers at a level.

    Raises:
        InputError: an answer whose number of units is not its text's, a span outside of its text.
    """
    answers = {level: _own(texts, predictions, level) for level in LEVELS if level in own}
    found: dict[Level, Units] = {}
    if "word" not in own and "character" in own:
        answers["word"] = _words_from_spans(texts, predictions)
    if "word" in answers:
        found["word"] = _units(answers["word"], texts, "word", thresholds)
        if "sentence" not in own:
            answers["sentence"] = _sentences_from(
                answers["word"], found["word"], texts, thresholds.get("word", {})
            )
    if "sentence" in answers:
        found["sentence"] = _units(answers["sentence"], texts, "sentence", thresholds)
        if "document" not in own:
            finest: Level = "word" if "word" in answers else "sentence"
            answers["document"] = _documents_from(answers[finest], found[finest])
    if "document" in answers:
        found["document"] = _units(answers["document"], texts, "document", thresholds)
    return found


def decide(scores: np.ndarray, thresholds: Mapping[str, Any], source: str) -> np.ndarray | None:
    """Labels by one threshold, -1 where there is no score; None where there is no such threshold.

    A published threshold is reached (>=), a calibrated one exceeded (>).
    """
    threshold = threshold_value(thresholds, source)
    if threshold is None:
        return None
    above = scores > threshold if source == "calibrated" else scores >= threshold
    return np.where(np.isnan(scores), -1, above).astype(np.int8)


def threshold_value(thresholds: Mapping[str, Any], source: str) -> float | None:
    """The threshold from a source, of those that thresholds.json holds for a level."""
    threshold = thresholds.get(source)
    value: float | None = threshold["value"] if isinstance(threshold, Mapping) else threshold
    return value


def unit_counts(texts: pa.RecordBatch, level: Level) -> np.ndarray:
    """(T,): each text's number of units."""
    column = texts.column(_GOLD[level])
    return _lengths(column) if pa.types.is_list(column.type) else np.ones(len(column), np.int64)


def _answered(predictions: pa.RecordBatch, level: Level) -> np.ndarray:
    """(T,): the texts of which the method itself says anything at a level."""
    missing = [pc.is_null(predictions.column(name), nan_is_null=True) for name in _ANSWERS[level]]
    answered: np.ndarray = ~np.all([m.to_numpy(zero_copy_only=False) for m in missing], axis=0)
    return answered


def _own(texts: pa.RecordBatch, predictions: pa.RecordBatch, level: Level) -> _Answers:
    """What the method itself says at a level."""
    lengths = unit_counts(texts, level)
    scores, labels = (predictions.column(name) for name in _ANSWERS[level])
    undecided = np.full(lengths.sum(), -1, dtype=np.int8)
    if level == "document":
        values = scores.to_numpy(zero_copy_only=False)
        decided = labels.fill_null(-1).to_numpy(zero_copy_only=False)
        return _Answers(lengths, values, decided, undecided)
    for name, column in zip(_ANSWERS[level], (scores, labels), strict=True):
        wrong = np.flatnonzero(
            column.is_valid().to_numpy(zero_copy_only=False) & (_lengths(column) != lengths)
        )
        if wrong.size:
            sample, has = texts.column("sample_id")[wrong[0]].as_py(), _lengths(column)[wrong[0]]
            raise InputError(
                f"the answer to {sample} has {has} values in {name}, and the text "
                f"{lengths[wrong[0]]} units: evaluate these predictions with the texts they are of"
            )
    values = _spread(scores, lengths, np.float32(np.nan))
    return _Answers(lengths, values, _spread(labels, lengths, np.int8(-1)), undecided)


def _spread(column: pa.ListArray, lengths: np.ndarray, missing: np.generic) -> np.ndarray:
    """All lists' values in one array, with `missing` for each unit of a text that has no list."""
    if column.null_count == len(column):
        return np.full(lengths.sum(), missing)
    values: np.ndarray = column.flatten().to_numpy(zero_copy_only=False)
    if not column.null_count:
        return values
    spread = np.full(lengths.sum(), missing)
    spread[np.repeat(column.is_valid().to_numpy(zero_copy_only=False), lengths)] = values
    return spread


def _units(answers: _Answers, texts: pa.RecordBatch, level: Level, thresholds: Thresholds) -> Units:
    own = thresholds.get(level, {})
    decisions = {"decided": answers.decided, "published": decide(answers.scores, own, "published")}
    decisions["calibrated"] = decide(answers.scores, own, "calibrated")
    if decisions["published"] is None:
        decisions["published"] = answers.published
    labels = texts.column(_GOLD[level])
    labels = labels.flatten() if pa.types.is_list(labels.type) else labels
    return Units(
        answers.lengths,
        labels.to_numpy(zero_copy_only=False),
        answers.scores,
        {source: d for source, d in decisions.items() if d is not None and (d >= 0).any()},
    )


def _sentences_from(
    words: _Answers, found: Units, texts: pa.RecordBatch, thresholds: Mapping[str, Any]
) -> _Answers:
    lengths = unit_counts(texts, "sentence")
    line = Line.of(texts)
    word_at, sentence_at = line.place(texts, "word_spans"), line.place(texts, "sentence_spans")
    first = np.searchsorted(word_at.end, sentence_at.start, "right")
    last = np.searchsorted(word_at.start, sentence_at.end, "left")
    scores = _means(words.scores, first, last)

    def majority(source: str, tie: float) -> np.ndarray:
        ai, known = _counts(found.decisions.get(source), first, last)
        label = np.where(2 * ai == known, scores >= tie, 2 * ai > known)
        return np.where(known > 0, label, -1).astype(np.int8)

    published = thresholds.get("published")
    return _Answers(
        lengths,
        scores,
        majority("decided", 0.5),
        majority("published", np.nan if published is None else published),
    )


def _documents_from(finest: _Answers, found: Units) -> _Answers:
    ends = np.cumsum(finest.lengths)
    first = ends - finest.lengths

    def any_unit(source: str) -> np.ndarray:
        ai, known = _counts(found.decisions.get(source), first, ends)
        return np.where(known > 0, ai > 0, -1).astype(np.int8)

    ones = np.ones(len(ends), np.int64)
    scores = _means(finest.scores, first, ends)
    return _Answers(ones, scores, any_unit("decided"), any_unit("published"))


def _words_from_spans(texts: pa.RecordBatch, predictions: pa.RecordBatch) -> _Answers:
    lengths = unit_counts(texts, "word")
    answered = _answered(predictions, "character")
    scores = np.full(lengths.sum(), np.nan, np.float32)
    decided = np.full(lengths.sum(), -1, np.int8)
    undecided = decided.copy()
    if answered.any():
        line = Line.of(texts)
        spans, values = line.predicted(texts, predictions)
        at = line.place(texts, "word_spans")
        size = at.end - at.start
        known = np.repeat(answered, lengths)
        painted_on = segment_sums(painted(spans, values, line.size), at.start, at.end)
        inside = segment_sums(covered(spans, line.size).astype(np.int32), at.start, at.end)
        scores[known] = (painted_on / size)[known]
        decided[known] = (2 * inside > size)[known]
    return _Answers(lengths, scores, decided, undecided)


@dataclass(frozen=True, slots=True)
class Line:
    """A batch's texts on one line of characters, a gap of one between them: `base` is their start.

    `length` (T,) is each text's number of characters, `size` the line's.
    """

    base: np.ndarray
    length: np.ndarray

    @classmethod
    def of(cls, texts: pa.RecordBatch) -> "Line":
        length = (
            pc.utf8_length(texts.column("text")).to_numpy(zero_copy_only=False).astype(np.int64)
        )
        return cls(np.cumsum(length + 1) - (length + 1), length)

    @property
    def size(self) -> int:
        return int(self.base[-1] + self.length[-1]) + 1 if len(self.base) else 0

    def place(self, texts: pa.RecordBatch, name: str) -> Spans:
        """A column of spans, where they lie on the line."""
        column = texts.column(name)
        start, end = column.flatten().flatten().to_numpy(zero_copy_only=False).reshape(-1, 2).T
        base = np.repeat(self.base, _lengths(column))
        return Spans(start + base, end + base)

    def predicted(
        self, texts: pa.RecordBatch, predictions: pa.RecordBatch
    ) -> tuple[Spans, np.ndarray]:
        """The method's spans in ascending order, and their scores.

        Raises:
            InputError: a span that is empty or reaches outside of its text.
        """
        column = predictions.column("spans")
        owner = np.repeat(np.arange(len(column)), _lengths(column))
        start, end, score = (
            field.to_numpy(zero_copy_only=False) for field in column.flatten().flatten()
        )
        wrong = np.flatnonzero((start < 0) | (start >= end) | (end > self.length[owner]))
        if wrong.size:
            i = wrong[0]
            raise InputError(
                f"the answer to {texts.column('sample_id')[owner[i]].as_py()} has the span "
                f"[{start[i]}, {end[i]}), and the text {self.length[owner[i]]} characters"
            )
        order = np.lexsort((start, owner))
        base = self.base[owner]
        return Spans((start + base)[order], (end + base)[order]), score[order]


def _lengths(column: pa.ListArray) -> np.ndarray:
    lengths: np.ndarray = (
        pc.list_value_length(column).fill_null(0).to_numpy(zero_copy_only=False).astype(np.int64)
    )
    return lengths


def _means(values: np.ndarray, first: np.ndarray, last: np.ndarray) -> np.ndarray:
    """The means of values[first:last] without nan ones; nan where there are none."""
    known = ~np.isnan(values)
    n = segment_sums(known.astype(np.int32), first, last)
    total = segment_sums(np.where(known, values, 0).astype(np.float64), first, last)
    means: np.ndarray = np.divide(total, n, out=np.full(len(n), np.nan), where=n > 0)
    return means


def _counts(
    labels: np.ndarray | None, first: np.ndarray, last: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """How many of labels[first:last] are 1, and how many are known."""
    if labels is None:
        return np.zeros(len(first), np.int32), np.zeros(len(first), np.int32)
    ai, known = ((labels == 1).astype(np.int32), (labels >= 0).astype(np.int32))
    return segment_sums(ai, first, last), segment_sums(known, first, last)
