"""Paired comparisons of runs, between detectors or between designs, on the documents they share."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from scipy.stats import norm

from palimpsest.errors import InputError
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

    def documents(self, domain: str = MEAN) -> set[str]:
        """Those with a text by a generator that is not held out; of one domain, or of all."""
        held_out = pa.array(sorted(self.context.held_out), type=pa.string())
        found: set[str] = set()
        for batch in self._texts(["sample_id", "doc_id", "domain", "generator"]):
            wanted = pc.invert(pc.is_in(batch.column("generator"), value_set=held_out))
            if domain != MEAN:
                wanted = pc.and_(wanted, pc.equal(batch.column("domain"), domain))
            found.update(batch.filter(wanted).column("doc_id").to_pylist())
        return found

    def _texts(self, columns: list[str]) -> Iterator[pa.RecordBatch]:
        ids = [b.column("sample_id") for b in read_batches(self.predictions, ["sample_id"])]
        predicted = pa.chunked_array(ids, type=pa.string())
        for batch in read_batches(self.texts, columns):
            yield batch.filter(pc.is_in(batch.column("sample_id"), value_set=predicted))


def compare(
    runs: Mapping[str, Saved],
    level: str,
    *,
    metrics: Collection[str] = ("accuracy", "f1_ai", "auroc"),
    domain: str = MEAN,
    resamples: int = 1000,
    seed: int = 0,
) -> pd.DataFrame:
    """Every pair's difference (first - second) in the generators' mean, by metric and version.

    All runs are restricted to the documents that all have, and resampled with the same draws.
    `low` and `high` are the 95 % percentiles of the differences. `p` is two-sided, from the
    difference's bootstrap standard error under normality: the share of resamples beyond zero
    cannot be below 1 / resamples, of which a correction over many pairs leaves nothing. It is
    never below 2^(1 - documents), the least that a sign test can say. `p_holm` is corrected over
    all rows of the table.

    Raises:
        InputError: runs that share no document.
    """
    common = set.intersection(*(run.documents(domain) for run in runs.values()))
    if not common:
        raise InputError(f"{', '.join(runs)} share no document: compare runs on one split")
    found = {
        name: replicates_of(run, common, level, metrics, domain, resamples, seed)
        for name, run in runs.items()
    }
    rows = [
        {"first": first, "second": second, "level": level, "domain": domain, **row}
        for first, second in combinations(found, 2)
        for row in differences(found[first], found[second], len(common))
    ]
    columns = ["first", "second", "level", *_NUMBER, "domain", "difference", "low", "high", "p",
               "documents"]  # fmt: skip
    table = pd.DataFrame(rows, columns=columns)
    return table.assign(p_holm=holm(table["p"].to_numpy(dtype=float)))


def differences(first: Numbers, second: Numbers, documents: int) -> Iterator[dict[str, Any]]:
    """First - second in each number that both have, as rows of `compare`; p is uncorrected."""
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
    """The two-sided p-value of a difference, as in `compare`."""
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


def replicates_of(
    run: Saved,
    documents: set[str],
    level: str,
    metrics: Collection[str],
    domain: str,
    resamples: int,
    seed: int,
) -> Numbers:
    """The run's numbers by metric, variant and version, each with its replicates.

    There are none of a run on held-out generators alone.
    """
    answered = run.answered()
    facts = answered.facts
    chosen = facts["doc_id"].isin(documents) & ~facts["generator"].isin(run.context.held_out)
    if not chosen.any():
        return {}
    answered = answered.only(np.flatnonzero(chosen))
    context = replace(run.context, resamples=resamples, seed=seed)
    dips = any(metric.endswith("_dip") for metric in metrics)
    estimates = Estimator(answered, run.thresholds, context).at(level, dips=dips)
    records = estimates.records
    wanted = (
        (records["generator"] == MEAN)
        & ~records["held_out"]
        & (records["domain"] == domain)
        & records["metric"].isin(metrics)
    )
    shown = preferred_threshold(records[wanted])
    numbers = shown[_NUMBER].itertuples(index=False, name=None)
    return dict(
        zip(
            numbers,
            zip(shown["value"], estimates.replicates[shown.index], strict=True),
            strict=True,
        )
    )
