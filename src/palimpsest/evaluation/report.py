"""All metrics of one run as one long table: every level, version, domain and generator."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from palimpsest.evaluation.bootstrap import auroc_interval
from palimpsest.evaluation.levels import LEVELS, gold, units
from palimpsest.evaluation.metrics import auroc, decision_metrics
from palimpsest.evaluation.thresholds import decide
from palimpsest.records import RECORDS, Level, Scores, frame

MEAN = "mean"  # stands for the in-distribution generators, or for all domains, taken together


@dataclass(frozen=True, slots=True)
class Cell:
    """A version of one domain by one generator."""

    domain: str
    generator: str
    version: str
    operation: str
    coverage: int


@dataclass(frozen=True, slots=True)
class Pool:
    """The units of a cell: labels, scores, decisions by source, and the document of each."""

    labels: np.ndarray
    scores: np.ndarray
    decisions: Mapping[str, np.ndarray]
    documents: np.ndarray


@dataclass(frozen=True, slots=True)
class Context:
    """What stands on every record of a run."""

    detector: str
    regime: str
    design: str
    held_out: frozenset[str]
    resamples: int
    seed: int


def evaluate(
    answers: Iterable[tuple[Mapping[str, Any], Scores]],
    thresholds: Mapping[str, Mapping[str, Any]],
    context: Context,
) -> pd.DataFrame:
    """Records (schema `records.RECORDS`) of a detector's answers to samples.

    Units are pooled over a (domain, version, generator); then means are taken over the
    in-distribution generators, and of everything over the domains. AUROC at a version pools it with
    v0 of the same documents; at document level it carries a bootstrap interval. Undefined metrics
    have no row.
    """
    pools = _pool(answers, thresholds)
    rows = [row for level, cells in pools.items() for row in _level_rows(level, cells, context)]
    records = frame(rows, RECORDS)
    by_domain = _mean_over("generator", records[~records["held_out"]])
    records = pd.concat([records, by_domain], ignore_index=True)
    return pd.concat([records, _mean_over("domain", records)], ignore_index=True)


def _pool(
    answers: Iterable[tuple[Mapping[str, Any], Scores]],
    thresholds: Mapping[str, Mapping[str, Any]],
) -> dict[Level, dict[Cell, Pool]]:
    parts: dict[Level, dict[Cell, list[Pool]]] = {level: defaultdict(list) for level in LEVELS}
    for row, scores in answers:
        cell = Cell(
            domain=row["domain"],
            generator=row["generator"],
            version=row["version"],
            operation=row["operation"],
            coverage=row["target_coverage"],
        )
        for level, unit in units(row, scores):
            decisions = {"decided": unit.decided}
            for source in ("published", "calibrated"):
                decisions[source] = decide(unit.scores, thresholds.get(level, {}), source)
            n = len(unit.scores)
            parts[level][cell].append(
                Pool(
                    gold(row, level),
                    unit.scores,
                    {source: d for source, d in decisions.items() if d is not None},
                    np.full(n, row["doc_id"], dtype=object),
                )
            )
    return {
        level: {cell: _joined(pools) for cell, pools in cells.items()}
        for level, cells in parts.items()
        if cells
    }


def _joined(pools: list[Pool]) -> Pool:
    sources = set.intersection(*(set(pool.decisions) for pool in pools))
    return Pool(
        np.concatenate([pool.labels for pool in pools]),
        np.concatenate([pool.scores for pool in pools]),
        {s: np.concatenate([pool.decisions[s] for pool in pools]) for s in sorted(sources)},
        np.concatenate([pool.documents for pool in pools]),
    )


def _level_rows(
    level: Level, cells: Mapping[Cell, Pool], context: Context
) -> Iterator[dict[str, Any]]:
    human = {(c.domain, c.generator): pool for c, pool in cells.items() if c.version == "v0"}
    for cell, pool in cells.items():
        base = {
            "level": level,
            "version": cell.version,
            "operation": cell.operation,
            "coverage": cell.coverage,
            "domain": cell.domain,
            "generator": cell.generator,
            "held_out": cell.generator in context.held_out,
            "design": context.design,
            "detector": context.detector,
            "regime": context.regime,
            "low": None,
            "high": None,
        }
        for source, decisions in pool.decisions.items():
            known = decisions >= 0
            counts = {"n": int(known.sum()), "n_unscored": int((~known).sum())}
            metrics = decision_metrics(pool.labels[known], decisions[known])
            for metric, value in metrics.items():
                yield {**base, **counts, "threshold": source, "metric": metric, "value": value}
        origin = human.get((cell.domain, cell.generator))
        if cell.version != "v0" and origin is not None:
            yield from _auroc_rows(base, pool, origin, context)


def _auroc_rows(
    base: dict[str, Any], pool: Pool, origin: Pool, context: Context
) -> Iterator[dict[str, Any]]:
    same = np.isin(origin.documents, pool.documents)
    labels = np.concatenate([pool.labels, origin.labels[same]])
    scores = np.concatenate([pool.scores, origin.scores[same]])
    documents = np.concatenate([pool.documents, origin.documents[same]])
    known = ~np.isnan(scores)
    value = auroc(labels[known], scores[known])
    if value is None:
        return
    interval = None
    if base["level"] == "document":
        interval = auroc_interval(
            labels[known],
            scores[known],
            documents[known].astype(str),
            resamples=context.resamples,
            seed=context.seed,
        )
    yield {
        **base,
        "threshold": "none",
        "metric": "auroc",
        "value": value,
        "n": int(known.sum()),
        "n_unscored": int((~known).sum()),
        "low": interval.low if interval else None,
        "high": interval.high if interval else None,
    }


def _mean_over(column: str, records: pd.DataFrame) -> pd.DataFrame:
    """Unweighted means over a column's values; counts are summed, intervals dropped."""
    varying = {column, "value", "n", "n_unscored", "low", "high"}
    keys = [name for name in records.columns if name not in varying]
    means = records.groupby(keys, sort=False, dropna=False, as_index=False).agg(
        value=("value", "mean"), n=("n", "sum"), n_unscored=("n_unscored", "sum")
    )
    means[column] = MEAN
    means[["low", "high"]] = np.nan
    return means[records.columns]


def preferred_threshold(records: pd.DataFrame) -> pd.DataFrame:
    """Of several thresholds behind one number, the one that a table shows.

    Labels that the method decides itself come first, then the published threshold, then the
    calibrated one; threshold-free metrics stay.
    """
    rank = {"none": 0, "decided": 0, "published": 1, "calibrated": 2}
    order = records["threshold"].map(rank)
    number = ["level", "metric", "version", "operation", "domain", "generator", "design"]
    keys = [records[name] for name in (*number, "detector", "regime")]
    return records[order == order.groupby(keys).transform("min")]
