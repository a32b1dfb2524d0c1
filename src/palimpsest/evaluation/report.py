"""All metrics of one run as one long table: every level, variant, version, domain and generator."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from palimpsest.errors import InputError
from palimpsest.evaluation import metrics, trajectory
from palimpsest.evaluation.bootstrap import (
    document_weights,
    intervals,
    resampled_ranks,
    resampled_sums,
)
from palimpsest.evaluation.levels import Batches, Thresholds, threshold_value
from palimpsest.evaluation.metrics import ratio
from palimpsest.evaluation.samples import Answered, LevelAnswers, collect
from palimpsest.records import RECORDS, frame

MEAN = "mean"  # stands for the in-distribution generators, or for all domains, taken together
ALL = "all"  # stands for the versions of a trajectory taken together
DIPS = ("accuracy", "f1_ai", "macro_f1", "auroc")  # curves by version whose dip is measured

_TRAJECTORY = ["variant", "domain", "generator"]


@dataclass(frozen=True, slots=True)
class Context:
    """What stands on every record of a run, and how its intervals are made.

    `probabilities` are the levels at which the detector's scores are probabilities of AI.
    """

    detector: str
    regime: str
    design: str
    held_out: frozenset[str]
    resamples: int
    seed: int
    probabilities: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Estimates:
    """Records without their intervals, and each one's replicates, a row of (N, R)."""

    records: pd.DataFrame
    replicates: np.ndarray

    def with_intervals(self) -> pd.DataFrame:
        low, high = intervals(self.replicates)
        return self.records.assign(low=low, high=high)

    def where(self, chosen: "pd.Series[bool]") -> "Estimates":
        return Estimates(self.records[chosen], self.replicates[chosen.to_numpy(dtype=bool)])


def evaluate(
    texts: Iterable[pa.RecordBatch],
    predictions: Batches,
    thresholds: Thresholds,
    context: Context,
) -> pd.DataFrame:
    """Records (schema `records.RECORDS`) of a detector's predictions on texts, as for `collect`.

    Units are pooled over a (variant, domain, generator, version); then means are taken over the
    in-distribution generators, and of everything over the domains. Rank metrics at a version pool
    it with the human version of the same documents. What spans versions has the version `all`.
    Intervals are 95 % percentiles over resampled documents. Undefined metrics have no row.

    Raises:
        InputError: predictions that are not of these texts in this order, an answer with another
            number of units than its text, a probability outside of 0 to 1.
    """
    estimator = Estimator(collect(texts, predictions, thresholds), thresholds, context)
    tables = [estimator.at(level).with_intervals() for level in estimator.levels]
    return pd.concat(tables, ignore_index=True)


@dataclass(frozen=True, slots=True)
class _Cell:
    """A version of one trajectory kind, or all of them: its samples and what records say of it."""

    facts: dict[str, Any]
    samples: np.ndarray

    @property
    def trajectory(self) -> tuple[str, ...]:
        return tuple(self.facts[name] for name in _TRAJECTORY)


class _Rows:
    """Records of one level, growing; of these metrics alone, where they are given."""

    def __init__(
        self,
        level: str,
        thresholds: Mapping[str, Any],
        context: Context,
        metrics: Collection[str] | None,
    ) -> None:
        self.level = level
        self.thresholds = thresholds
        self.context = context
        self.metrics = metrics
        self.records: list[dict[str, Any]] = []
        self.replicates: list[np.ndarray] = []

    def wants(self, metric: str) -> bool:
        return self.metrics is None or metric in self.metrics

    def add(
        self,
        cell: _Cell,
        values: Mapping[str, Any],
        replicates: Mapping[str, np.ndarray],
        *,
        n: int,
        of: int,
        threshold: str = "none",
    ) -> None:
        """Add a cell's metrics from n units of so many."""
        undefined = np.full(self.context.resamples, np.nan)
        for metric, value in values.items():
            if np.isnan(value) or not self.wants(metric):
                continue
            self.replicates.append(replicates.get(metric, undefined))
            self.records.append(
                {
                    **cell.facts,
                    "level": self.level,
                    "metric": metric,
                    "value": float(value),
                    "n": int(n),
                    "n_unscored": int(of - n),
                    "held_out": cell.facts["generator"] in self.context.held_out,
                    "design": self.context.design,
                    "detector": self.context.detector,
                    "regime": self.context.regime,
                    "threshold": threshold,
                    "threshold_value": threshold_value(self.thresholds, threshold),
                }
            )

    def estimates(self) -> Estimates:
        replicates = np.array(self.replicates).reshape(len(self.records), self.context.resamples)
        return Estimates(frame(self.records, RECORDS), replicates)


class Estimator:
    """Estimates of one run, level by level, on the same resamples of its documents."""

    def __init__(self, answered: Answered, thresholds: Thresholds, context: Context) -> None:
        self.answered = answered
        self.thresholds = thresholds
        self.context = context
        facts = answered.facts
        self.owner = np.empty(len(facts), dtype=np.int64)  # each sample's document in its domain
        self.weights: dict[str, np.ndarray] = {}
        documents = facts["doc_id"].to_numpy(dtype=object)
        for domain, samples in facts.groupby("domain").indices.items():
            names, self.owner[samples] = np.unique(documents[samples], return_inverse=True)
            self.weights[str(domain)] = document_weights(
                len(names), context.resamples, context.seed, str(domain)
            )
        self.cells = list(_cells(facts, [*_TRAJECTORY, "version", "operation", "coverage"]))
        self.human = {c.trajectory: c.samples for c in self.cells if c.facts["coverage"] == 0}

    @property
    def levels(self) -> list[str]:
        return [*self.answered.levels, *(["span"] if self.answered.spans is not None else [])]

    def at(self, level: str, by_version: Collection[str] | None = None) -> Estimates:
        """All estimates at a level, means and what spans versions included.

        `by_version` restricts them to these metrics at single versions, and their means.
        """
        rows = _Rows(level, self.thresholds.get(level, {}), self.context, by_version)
        for cell in self.cells:
            if level == "span":
                self._spans(rows, cell)
            else:
                self._units(rows, cell, self.answered.levels[level])
        if level == "document" and by_version is None:
            for cell in _cells(self.answered.facts, _TRAJECTORY):
                self._trajectories(rows, cell)
        own = rows.estimates()
        own = _joined([own, _mean_over("generator", own.where(~own.records["held_out"]))])
        own = _joined([own, _mean_over("domain", own)])
        return _joined([own, _dips(own)]) if by_version is None else own

    def _units(self, rows: _Rows, cell: _Cell, answers: LevelAnswers) -> None:
        """Metrics of decisions, of scores as probabilities, and of scores as a ranking."""
        units, judged = answers.units[cell.samples], answers.answered(cell.samples)
        of = units.sum()
        if rows.wants("scored"):
            sums = np.column_stack([judged, units])
            self._ratios(rows, cell, _share("scored"), sums, judged.sum(), of)
        for source, counts in answers.counts.items():
            sums = counts[cell.samples]
            self._ratios(rows, cell, metrics.decision_metrics, sums, sums.sum(), of, source)
        if len(answers.scores):
            if rows.level in self.context.probabilities:
                self._calibration(rows, cell, answers)
            self._ranks(rows, cell, answers)

    def _calibration(self, rows: _Rows, cell: _Cell, answers: LevelAnswers) -> None:
        places, scored = answers.places(cell.samples), answers.scored[cell.samples]
        labels, scores = answers.labels[places], answers.scores[places]
        if len(scores) and not (scores.min() >= 0 and scores.max() <= 1):
            raise InputError(
                f"{self.context.detector} declares its {rows.level} scores probabilities, and they "
                f"range from {scores.min():g} to {scores.max():g}"
            )
        sample = np.repeat(np.arange(len(scored)), scored)
        sums = metrics.calibration_sums(labels, scores, sample, len(scored))
        of = answers.units[cell.samples].sum()
        self._ratios(rows, cell, metrics.calibration_metrics, sums, scored.sum(), of)

    def _ranks(self, rows: _Rows, cell: _Cell, answers: LevelAnswers) -> None:
        human = self.human.get(cell.trajectory)
        if human is None or cell.facts["coverage"] == 0:
            return
        same = np.isin(self.owner[human], self.owner[cell.samples])
        samples = np.concatenate([cell.samples, human[same]])
        places, scored = answers.places(samples), answers.scored[samples]
        scores, ai = answers.scores[places], answers.labels[places] == 1
        values = metrics.rank_metrics(scores[ai], scores[~ai])
        replicates = {}
        weights = self._weights(cell)
        if values and weights is not None:
            owner = np.repeat(self.owner[samples], scored)
            replicates = resampled_ranks(scores[ai], scores[~ai], owner[ai], owner[~ai], weights)
        rows.add(cell, values, replicates, n=scored.sum(), of=answers.units[samples].sum())

    def _spans(self, rows: _Rows, cell: _Cell) -> None:
        assert self.answered.spans is not None
        sums = self.answered.spans[cell.samples]
        known = ~np.isnan(sums[:, 0])
        sums = np.where(known[:, None], sums, 0)
        self._ratios(rows, cell, metrics.span_metrics, sums, known.sum(), len(known), "decided")

    def _trajectories(self, rows: _Rows, cell: _Cell) -> None:
        """Metrics over the versions of a trajectory, where these have an order of coverage."""
        facts = self.answered.facts.iloc[cell.samples]
        versions = facts.drop_duplicates("version").sort_values("target_coverage")
        if len(versions) < 2 or versions["target_coverage"].duplicated().any():
            return
        documents, row = np.unique(self.owner[cell.samples], return_inverse=True)
        column = pd.Index(versions["version"]).get_indexer(pd.Index(facts["version"]))

        def grid(values: np.ndarray, missing: float) -> np.ndarray:
            table = np.full((len(documents), len(versions)), missing)
            table[row, column] = values
            return table

        def add(name: str, sums: np.ndarray, unscored: np.ndarray, threshold: str = "none") -> None:
            # n counts trajectories that have a value, n_unscored those with an unscored version
            n = (sums[:, 1] > 0).sum()
            of = n + len(np.unique(row[unscored]))
            self._ratios(rows, one_each, _share(name), sums, n, of, threshold)

        # one sample stands for each document
        one_each = _Cell(cell.facts, cell.samples[np.unique(row, return_index=True)[1]])
        answers = self.answered.levels["document"]
        scores = np.full(len(cell.samples), np.nan)
        scores[answers.scored[cell.samples] == 1] = answers.scores[answers.places(cell.samples)]
        coverage = grid(facts["ai_sentence_ratio"].to_numpy(), np.nan)
        by_version, unscored = grid(scores, np.nan), np.isnan(scores)
        add("inversions", trajectory.inversions(by_version, coverage), unscored)
        add("coverage_rho", trajectory.rank_correlations(by_version, coverage), unscored)
        for source, counts in answers.counts.items():
            passed, alarms, misses, hits = counts[cell.samples].T
            decisions = np.where(passed + misses > 0, 0, np.where(alarms + hits > 0, 1, -1))
            first, detected = trajectory.first_detected(grid(decisions, -1))
            add("first_detected", first, decisions < 0, source)
            add("detected", detected, decisions < 0, source)

    def _ratios(
        self,
        rows: _Rows,
        cell: _Cell,
        function: Callable[[np.ndarray], Mapping[str, np.ndarray]],
        sums: np.ndarray,
        n: int,
        of: int,
        threshold: str = "none",
    ) -> None:
        """Add metrics that are a function of the samples' sums (S, C)."""
        replicates: Mapping[str, np.ndarray] = {}
        weights = self._weights(cell)
        if weights is not None:
            replicates = function(resampled_sums(sums, self.owner[cell.samples], weights))
        rows.add(cell, function(sums.sum(axis=0)), replicates, n=n, of=of, threshold=threshold)

    def _weights(self, cell: _Cell) -> np.ndarray | None:
        """The weights of the domain's documents; None where there is a single one to resample."""
        weights = self.weights[cell.facts["domain"]]
        owner = self.owner[cell.samples]
        return weights if weights.shape[1] and (owner != owner[0]).any() else None


def _cells(facts: pd.DataFrame, by: Sequence[str]) -> Iterator[_Cell]:
    given = facts.rename(columns={"target_coverage": "coverage"})
    group = given.groupby(list(by), sort=False, dropna=False).ngroup().to_numpy()
    whole = {"version": ALL, "operation": ALL, "coverage": None}
    for members, own in enumerate(given[list(by)].drop_duplicates().to_dict("records")):
        known = {name: None if pd.isna(own[name]) else own[name] for name in by}
        yield _Cell({**whole, **known}, np.flatnonzero(group == members))


def _share(name: str) -> Callable[[np.ndarray], dict[str, np.ndarray]]:
    return lambda sums: {name: ratio(sums[..., 0], sums[..., 1])}


def _joined(parts: Sequence[Estimates]) -> Estimates:
    return Estimates(
        pd.concat([part.records for part in parts], ignore_index=True),
        np.concatenate([part.replicates for part in parts]),
    )


def _groups(records: pd.DataFrame, without: set[str]) -> tuple[np.ndarray, np.ndarray]:
    """An order in which rows that agree in all other columns are together; each group's start."""
    keys = [name for name in records.columns if name not in without | {"value", *_COUNTS}]
    group = records.groupby(keys, sort=False, dropna=False).ngroup().to_numpy()
    order = np.argsort(group, kind="stable")
    return order, np.flatnonzero(np.diff(group[order], prepend=-1))


_COUNTS = ("n", "n_unscored", "low", "high")


def _mean_over(column: str, estimates: Estimates) -> Estimates:
    """Unweighted means over a column's values, replicate by replicate; counts are summed."""
    records, replicates = estimates.records, estimates.replicates
    if records.empty:
        return estimates
    order, starts = _groups(records, {column})
    members = np.diff(starts, append=len(order))

    def total(values: np.ndarray) -> np.ndarray:
        return np.add.reduceat(values[order], starts, axis=0)

    means = records.iloc[order[starts]].copy()
    means[column] = MEAN
    means["value"] = total(records["value"].to_numpy()) / members
    for name in ("n", "n_unscored"):
        means[name] = total(records[name].to_numpy())
    return Estimates(means, total(replicates) / members[:, None])


def _dips(estimates: Estimates) -> Estimates:
    """The depth of each curve's dip over the versions with AI, in the order of coverage."""
    records = estimates.records
    on_curve = records["metric"].isin(DIPS) & (records["coverage"] > 0)
    curves = estimates.where(on_curve & (records["version"] != ALL))
    records, replicates = curves.records, curves.replicates
    if records.empty:
        return curves
    order, starts = _groups(records, {"version", "operation", "coverage"})
    coverage, values = (records[name].to_numpy() for name in ("coverage", "value"))
    kept, depths, of_replicates = [], [], []
    for start, members in zip(starts, np.split(order, starts[1:]), strict=True):
        by_coverage = members[np.argsort(coverage[members])]
        if len(members) >= 3 and (np.diff(coverage[by_coverage]) > 0).all():
            kept.append(start)
            depths.append(float(metrics.dip_depth(values[by_coverage])))
            of_replicates.append(metrics.dip_depth(replicates[by_coverage]))
    if not kept:
        return curves.where(pd.Series(False, index=records.index))
    dips = records.iloc[order[kept]].assign(
        value=depths, version=ALL, operation=ALL, coverage=np.nan
    )
    dips["metric"] += "_dip"
    for name in ("n", "n_unscored"):
        totals = np.add.reduceat(records[name].to_numpy()[order], starts)
        dips[name] = totals[np.searchsorted(starts, kept)]
    return Estimates(dips, np.array(of_replicates))


def preferred_threshold(records: pd.DataFrame) -> pd.DataFrame:
    """Of several thresholds behind one number of a run, the one that a table shows.

    Labels that the method decides itself come first, then the published threshold, then the
    calibrated one; threshold-free metrics stay.
    """
    rank = {"none": 0, "decided": 0, "published": 1, "calibrated": 2}
    order = records["threshold"].map(rank)
    number = ["level", "metric", "variant", "version", "operation", "domain", "generator"]
    keys = [records[name] for name in number]
    return records[order == order.groupby(keys).transform("min")]
