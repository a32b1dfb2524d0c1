"""Paired comparisons of runs, between detectors or between designs, on the documents they share."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from scipy.stats import norm

from palimpsest.evaluation.bootstrap import intervals
from palimpsest.evaluation.levels import Thresholds
from palimpsest.evaluation.report import MEAN, Context, Estimator, preferred_threshold
from palimpsest.evaluation.samples import TEXT_COLUMNS, Answered, collect
from palimpsest.records import read_batches

_NUMBER = ["metric", "variant", "version"]

# (metric, variant, version) -> a run's value and its replicates (R,)
Numbers = Mapping[tuple[str, ...], tuple[float, np.ndarray]]


@dataclass(frozen=True, slots=True)
class Saved:
    """What a finished evaluation has left: its predictions, and the texts that hold theirs."""

    texts: Path
    predictions: Path
    thresholds: Thresholds
    context: Context

    def answered(self) -> Answered:
        """The texts that have predictions, with these."""
        predictions = partial(read_batches, self.predictions)
        return collect(self._texts(TEXT_COLUMNS), predictions, self.thresholds)

    def documents(self) -> set[str]:
        """Those with a text by a generator that is not held out."""
        held_out = pa.array(sorted(self.context.held_out), type=pa.string())
        found: set[str] = set()
        for batch in self._texts(["sample_id", "doc_id", "generator"]):
            wanted = pc.invert(pc.is_in(batch.column("generator"), value_set=held_out))
            found.update(batch.filter(wanted).column("doc_id").to_pylist())
        return found

    def _texts(self, columns: list[str]) -> Iterator[pa.RecordBatch]:
        ids = [b.column("sample_id") for b in read_batches(self.predictions, ["sample_id"])]
        predicted = pa.chunked_array(ids, type=pa.string())
        for batch in read_batches(self.texts, columns):
            yield batch.filter(pc.is_in(batch.column("sample_id"), value_set=predicted))


def differences(first: Numbers, second: Numbers, documents: int) -> Iterator[dict[str, Any]]:
    """First - second in each number that both have; p is not corrected.

    `low` and `high` are the 95 % percentiles of the differences, by the replicates of one resample
    each.
    """
    for number in [number for number in first if number in second]:
        (value, replicates), (other, others) = first[number], second[number]
        difference, resampled = value - other, replicates - others
        low, high = intervals(resampled[None])
        yield {
            **dict(zip(_NUMBER, number, strict=True)),
            "difference": difference,
            "low": low[0],
            "high": high[0],
            "p": p_value(difference, resampled, documents),
            "documents": documents,
        }


def p_value(difference: float, replicates: np.ndarray, documents: int) -> float:
    """The two-sided p-value of a difference, from its replicates' standard error under normality.

    The share of replicates beyond zero cannot be below one of them, of which a correction over many
    pairs leaves nothing. p is never below 2^(1 - documents), the least that a sign test can say.
    """
    least = min(1.0, 2.0 ** (1 - documents))
    defined = replicates[~np.isnan(replicates)]
    if difference == 0 or len(defined) < 2:
        return 1.0
    error = defined.std(ddof=1)
    if error == 0:
        return least
    return float(max(2 * norm.sf(abs(difference) / error), least))


def holm(p: np.ndarray) -> np.ndarray:
    """Holm's step-down correction: the error of the whole family is controlled."""
    order = np.argsort(p, kind="stable")
    steps = np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1))
    corrected = np.empty_like(p)
    corrected[order] = np.minimum(steps, 1)
    return corrected


def numbers_of(
    run: Saved, documents: Collection[str], level: str, metrics: Collection[str]
) -> Numbers:
    """A run's numbers in the mean over generators and domains, each with its replicates.

    Runs restricted to the same documents are resampled with the same draws. There are no numbers of
    a run on held-out generators alone.
    """
    answered = run.answered()
    facts = answered.facts
    chosen = facts["doc_id"].isin(documents) & ~facts["generator"].isin(run.context.held_out)
    if not chosen.any():
        return {}
    answered = answered.only(np.flatnonzero(chosen))
    estimates = Estimator(answered, run.thresholds, run.context).at(level, metrics)
    records = estimates.records
    means = (records["generator"] == MEAN) & (records["domain"] == MEAN)
    shown = preferred_threshold(records[means])
    numbers = shown[_NUMBER].itertuples(index=False, name=None)
    return dict(
        zip(
            numbers,
            zip(shown["value"], estimates.replicates[shown.index], strict=True),
            strict=True,
        )
    )
