"""A run's samples and answers in columns, read batch by batch: what all metrics are made from.

Decisions are kept as counts for each sample, scores unit by unit.
"""

import logging
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from palimpsest.errors import InputError
from palimpsest.evaluation.levels import (
    LEVELS,
    Batches,
    Line,
    Thresholds,
    Units,
    own_levels,
    unit_counts,
    units,
)
from palimpsest.evaluation.metrics import confusion_code
from palimpsest.evaluation.spans import covered, match, merged, ranges, runs
from palimpsest.records import PREDICTIONS

log = logging.getLogger(__name__)

_NAMES = PREDICTIONS.names
FACTS = [
    "sample_id", "doc_id", "variant", "domain", "generator", "version", "operation",
    "target_coverage", "ai_sentence_ratio",
]  # fmt: skip
# the columns of `texts` that evaluation reads
TEXT_COLUMNS = [
    *FACTS, "label", "text", "sentence_spans", "sentence_labels", "word_spans", "word_labels",
    "ai_spans",
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class LevelAnswers:
    """Answers at one level to S samples.

    `units` (S,) counts each sample's units. `counts`: by source of the decision (S, 4), as in
    `metrics.decision_metrics`. Scored units lie sample after sample in `labels` and `scores`,
    from `first` (S,) on, `scored` (S,) of each; none where a level has decisions only.
    """

    units: np.ndarray
    counts: dict[str, np.ndarray]
    first: np.ndarray
    scored: np.ndarray
    labels: np.ndarray
    scores: np.ndarray

    def answered(self, samples: np.ndarray) -> np.ndarray:
        """How many units of each of these samples have a score or a decision."""
        decided = (counts[samples].sum(axis=1) for counts in self.counts.values())
        answered: np.ndarray = np.maximum.reduce([self.scored[samples], *decided])
        return answered

    def places(self, samples: np.ndarray) -> np.ndarray:
        """Where the scored units of these samples lie."""
        return ranges(self.first[samples], self.scored[samples])

    def only(self, samples: np.ndarray) -> "LevelAnswers":
        places = self.places(samples) if len(self.scores) else np.empty(0, np.int64)
        return LevelAnswers(
            self.units[samples],
            {source: counts[samples] for source, counts in self.counts.items()},
            np.cumsum(self.scored[samples]) - self.scored[samples],
            self.scored[samples],
            self.labels[places],
            self.scores[places],
        )


@dataclass(frozen=True, slots=True)
class Answered:
    """All samples (`facts`, one row each) with their answers by level.

    `spans` (S, 4), of span methods only: matched, predicted and true spans, and the sum of the
    matches' boundary errors in characters; nan where a sample has no answer.
    """

    facts: pd.DataFrame
    levels: dict[str, LevelAnswers]
    spans: np.ndarray | None

    def only(self, samples: np.ndarray) -> "Answered":
        """Some of the samples, by their places."""
        return Answered(
            self.facts.iloc[samples].reset_index(drop=True),
            {level: answers.only(samples) for level, answers in self.levels.items()},
            None if self.spans is None else self.spans[samples],
        )


def collect(
    texts: Iterable[pa.RecordBatch], predictions: Batches, thresholds: Thresholds
) -> Answered:
    """Read texts (`TEXT_COLUMNS`) and predictions, both in the same order of samples.

    A text without a prediction is unscored at every level. `predictions` are read more than once,
    since the last of them may be the first to show which levels the method answers itself.

    Raises:
        InputError: a prediction that is of no text, or in another order than the texts.
    """
    facts: list[pd.DataFrame] = []
    levels = {level: _Collector() for level in LEVELS}
    characters, spans = _Collector(), []
    own = own_levels(predictions)
    for batch, answers in aligned(texts, predictions(_NAMES)):
        facts.append(_facts(batch))
        found = units(batch, answers, thresholds, own)
        for level, collector in levels.items():
            collector.add(unit_counts(batch, level), found.get(level))
        length, counts, matched = _span_sums(batch, answers)
        characters.add_counts(length, {"decided": counts})
        spans.append(matched)
    if not facts:
        raise InputError("there are no texts to evaluate")
    done = {level: collector.joined() for level, collector in levels.items()}
    sums = np.concatenate(spans)
    has_spans = not np.isnan(sums).all()
    if has_spans:
        done["character"] = characters.joined()
    return Answered(
        pd.concat(facts, ignore_index=True),
        {
            level: answers
            for level, answers in done.items()
            if level == "document" or answers.scored.any() or answers.counts
        },
        sums if has_spans else None,
    )


def aligned(
    texts: Iterable[pa.RecordBatch], predictions: Iterable[pa.RecordBatch]
) -> Iterator[tuple[pa.RecordBatch, pa.RecordBatch]]:
    """Each batch of texts with its predictions row by row, null where a text has none."""
    waiting = PREDICTIONS.empty_table()
    coming = iter(predictions)
    position = missing = 0
    first_missing = ""
    for batch in texts:
        while waiting.num_rows < batch.num_rows and (more := next(coming, None)) is not None:
            waiting = pa.concat_tables([waiting, pa.Table.from_batches([more]).select(_NAMES)])
        ahead = waiting.slice(0, batch.num_rows).combine_chunks()
        ids, answered = batch.column("sample_id"), ahead.column("sample_id")
        found = pc.index_in(ids, value_set=answered)
        places = found.drop_null().to_numpy()
        wrong = np.flatnonzero(places != np.arange(len(places)))
        if wrong.size:
            raise _misplaced(answered[int(wrong[0])].as_py(), position + int(wrong[0]))
        if found.null_count:
            first_missing = first_missing or ids.filter(found.is_null())[0].as_py()
            missing += found.null_count
            ahead = ahead.take(found)
        waiting = waiting.slice(len(places))
        position += len(places)
        yield batch, _single(ahead, batch.num_rows)
    rest = waiting if waiting.num_rows else next(coming, None)
    if rest is not None and rest.num_rows:
        raise _misplaced(rest.column("sample_id")[0].as_py(), position)
    if missing:
        log.warning("%d texts have no prediction, %s first: unscored", missing, first_missing)


def _single(table: pa.Table, rows: int) -> pa.RecordBatch:
    columns = [column.combine_chunks() for column in table.columns]
    assert all(len(column) == rows for column in columns)
    return pa.RecordBatch.from_arrays(columns, schema=table.schema)


def _misplaced(sample: str, row: int) -> InputError:
    return InputError(
        f"predictions, row {row}: {sample} is not the sample that the texts have here; predictions "
        "must be of the selected texts and in their order: evaluate again"
    )


def _facts(batch: pa.RecordBatch) -> pd.DataFrame:
    if "variant" not in batch.schema.names:  # texts of before there were variants
        batch = batch.append_column("variant", pa.array([""] * batch.num_rows, pa.string()))
    facts: pd.DataFrame = batch.select(FACTS).to_pandas()
    return facts.fillna({"variant": ""})


class _Collector:
    """Joins one level's answers, batch after batch."""

    def __init__(self) -> None:
        self.units: list[np.ndarray] = []
        self.scored: list[np.ndarray] = []
        self.labels: list[np.ndarray] = []
        self.scores: list[np.ndarray] = []
        self.counts: dict[str, list[np.ndarray]] = {}

    def add(self, unit_counts: np.ndarray, found: Units | None) -> None:
        """Add a batch in which `found` is what was answered at this level, if anything was."""
        if found is None:
            self.add_counts(unit_counts, {})
            return
        owner, n = found.owner, len(unit_counts)
        counts = {}
        for source, decisions in found.decisions.items():
            code = owner * 4 + confusion_code(found.labels, decisions)
            counts[source] = np.bincount(code[decisions >= 0], minlength=4 * n).reshape(n, 4)
        known = ~np.isnan(found.scores)
        self.labels.append(found.labels[known])
        self.scores.append(found.scores[known])
        self.add_counts(unit_counts, counts, np.bincount(owner[known], minlength=n))

    def add_counts(
        self,
        unit_counts: np.ndarray,
        counts: dict[str, np.ndarray],
        scored: np.ndarray | None = None,
    ) -> None:
        nothing = np.zeros((len(unit_counts), 4), dtype=np.int32)
        for source in {*counts, *self.counts}:
            before = self.counts.setdefault(
                source, [np.zeros((len(u), 4), np.int32) for u in self.units]
            )
            before.append(counts.get(source, nothing).astype(np.int32))
        self.units.append(unit_counts.astype(np.int32))
        self.scored.append(nothing[:, 0] if scored is None else scored.astype(np.int32))

    def joined(self) -> LevelAnswers:
        def joined(parts: list[np.ndarray]) -> np.ndarray:
            whole = np.concatenate(parts) if parts else np.empty(0)
            parts.clear()
            return whole

        scored = joined(self.scored)
        return LevelAnswers(
            joined(self.units),
            {source: joined(self.counts[source]) for source in sorted(self.counts)},
            np.cumsum(scored) - scored,
            scored,
            joined(self.labels),
            joined(self.scores),
        )


def _span_sums(
    batch: pa.RecordBatch, answers: pa.RecordBatch
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Each text's characters, their counts (T, 4), and its sums of span matching (T, 4)."""
    line = Line.of(batch)
    n = batch.num_rows
    answered = answers.column("spans").is_valid().to_numpy(zero_copy_only=False)
    if not answered.any():
        return line.length, np.zeros((n, 4)), np.full((n, 4), np.nan)
    predicted, _ = line.predicted(batch, answers)
    words = line.place(batch, "word_spans")
    labels = batch.column("word_labels").flatten().to_numpy(zero_copy_only=False)

    # each text's characters and the gap behind them, which no span reaches
    owner = np.repeat(np.arange(n), line.length + 1)
    gold = covered(line.place(batch, "ai_spans"), line.size)
    code = confusion_code(gold.astype(np.int8), covered(predicted, line.size).astype(np.int8))
    counts = np.bincount(owner * 4 + code, minlength=4 * n).reshape(n, 4)
    counts[:, 0] -= 1  # the gap
    counts[~answered] = 0

    true = runs(words, labels, np.repeat(np.arange(n), unit_counts(batch, "word")))
    found = merged(predicted)
    pairs = match(found, true)
    errors = (
        np.abs(found.start[pairs.predicted] - true.start[pairs.true])
        + np.abs(found.end[pairs.predicted] - true.end[pairs.true])
    ) / 2

    def by_text(starts: np.ndarray, weights: np.ndarray | None = None) -> np.ndarray:
        text = np.searchsorted(line.base, starts, "right") - 1
        return np.bincount(text, weights, minlength=n).astype(float)

    matched = true.start[pairs.true]
    sums = [by_text(matched), by_text(found.start), by_text(true.start), by_text(matched, errors)]
    return line.length, counts, np.where(answered[:, None], np.column_stack(sums), np.nan)
