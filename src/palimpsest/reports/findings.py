"""The paper's claims beside our estimates: does each agree, not, or is it too small to say?"""

import json
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from typing import Literal

import numpy as np
import pandas as pd

from palimpsest.evaluation.bootstrap import intervals
from palimpsest.reports.evidence import RESAMPLES
from palimpsest.reports.formats import Table
from palimpsest.reports.reference import opai_results
from palimpsest.reports.runs import LEVELS, Configuration, Runs
from palimpsest.reports.tables import (
    METRICS,
    NO_INTERVAL,
    MissingError,
    demo_note,
    percent,
    scored_note,
)

Verdict = Literal["agrees", "does not", "too small to say"]

MEASURES = ("f1_ai", "auroc")
SCHEDULE = tuple(f"v{i}" for i in range(1, 9))
FINE = ("word", "character")


@dataclass(frozen=True, slots=True)
class Finding:
    """One estimate with its 95 % interval, nan where the documents are too few for one."""

    claim: str
    detector: str
    level: str
    measure: str
    estimate: float
    low: float
    high: float
    verdict: Verdict
    documents: int
    run_id: str


@dataclass(frozen=True, slots=True)
class Claim:
    """What the paper says, in `statement`, and how it is judged, in `test`."""

    name: str
    statement: str
    test: str
    find: Callable[["Claim", Runs], Iterator[Finding]]
    printed: Callable[[], str] = str


def _dip(claim: Claim, runs: Runs) -> Iterator[Finding]:
    for configuration in runs.of_design("cumulative"):
        level = _own_level(runs, configuration)
        curves = runs.evidence.curves(configuration.newest, level)
        for metric in MEASURES:
            curve = curves.along(metric, "", ("v3", "v4", "v5"))
            if curve is not None:
                difference = curve[1] - (curve[0] + curve[2]) / 2
                yield _judged(claim, configuration, level, metric, difference, -1, curves.documents)


def _compress(claim: Claim, runs: Runs) -> Iterator[Finding]:
    for configuration in runs.of_design("operation"):
        level = _own_level(runs, configuration)
        curves = runs.evidence.curves(configuration.newest, level)
        for metric in MEASURES:
            for variant in curves.variants():
                curve = curves.along(metric, variant, ("compress", "expand"))
                if curve is not None:
                    what = f"{METRICS[metric]} at {variant} %"
                    difference = curve[0] - curve[1]
                    yield _judged(claim, configuration, level, what, difference, -1,
                                  curves.documents)  # fmt: skip


def _smooth(claim: Claim, runs: Runs) -> Iterator[Finding]:
    for cumulative, other in runs.in_both("cumulative", "independent"):
        level = _own_level(runs, cumulative)
        common = runs.evidence.documents(cumulative.newest) & runs.evidence.documents(other.newest)
        if not common:
            continue
        both = [runs.evidence.curves(c.newest, level, common) for c in (cumulative, other)]
        for metric in MEASURES:
            found = [curves.along(metric, "", SCHEDULE) for curves in both]
            rough = [np.abs(np.diff(y, n=2, axis=0)).mean(axis=0) for y in found if y is not None]
            if len(rough) == 2:
                yield _judged(claim, cumulative, level, metric, rough[0] - rough[1], 1, len(common),
                              also=other)  # fmt: skip


def _apart(claim: Claim, runs: Runs) -> Iterator[Finding]:
    for configuration in runs.of_design("cumulative"):
        level = runs.level_of(configuration, FINE)
        if level is None:
            continue
        curves = runs.evidence.curves(configuration.newest, level)
        for metric, sign in (("accuracy", -1), ("f1_ai", 1)):
            curve = curves.along(metric, "", ("v1", "v8"))
            if curve is not None:
                difference = curve[1] - curve[0]
                yield _judged(claim, configuration, level, metric, difference, sign,
                              curves.documents)  # fmt: skip


def _monotone(claim: Claim, runs: Runs) -> Iterator[Finding]:
    for configuration in runs.of_design("coverage"):
        level = _own_level(runs, configuration)
        curves = runs.evidence.curves(configuration.newest, level)
        versions = sorted({version for _, _, version in curves.numbers} - {"c000"})
        for metric in MEASURES:
            for variant in curves.variants():
                curve = curves.along(metric, variant, versions)
                if curve is None or len(curve) < 2:
                    continue
                steps = np.diff(curve, axis=0)
                low, high = intervals(steps[:, 1:], level=1 - 0.05 / len(steps))
                place = int(steps[:, 0].argmin())
                verdict: Verdict = "too small to say"
                if (high < 0).any():
                    verdict, place = "agrees", int(high.argmin())
                elif (low > 0).all():
                    verdict = "does not"
                yield Finding(
                    claim.name, configuration.name, level,
                    f"{METRICS[metric]}, {variant}, {versions[place]} to {versions[place + 1]}",
                    float(steps[place, 0]), float(low[place]), float(high[place]), verdict,
                    curves.documents, configuration.run_ids[-1],
                )  # fmt: skip


def _own_level(runs: Runs, configuration: Configuration) -> str:
    level = runs.level_of(configuration, LEVELS)
    assert level is not None, "every run has numbers at some level"
    return level


def _judged(
    claim: Claim,
    configuration: Configuration,
    level: str,
    measure: str,
    difference: np.ndarray,
    sign: int,
    documents: int,
    also: Configuration | None = None,
) -> Finding:
    """A difference, (1 + R,) with its replicates, that the paper finds below (-1) or above 0."""
    (low,), (high,) = intervals(difference[None, 1:])
    verdict: Verdict = "too small to say"
    if low > 0 or high < 0:
        verdict = "agrees" if (low > 0) == (sign > 0) else "does not"
    run_ids = [configuration.run_ids[-1], *([also.run_ids[-1]] if also else [])]
    return Finding(
        claim.name, configuration.name, level, METRICS.get(measure, measure),
        float(difference[0]), float(low), float(high), verdict, documents, " ".join(run_ids),
    )  # fmt: skip


def _printed_dip() -> str:
    f1 = _printed_curves("f1_ai")
    dips = f1["v4"] - (f1["v3"] + f1["v5"]) / 2
    return f"Printed in Tables 8 and 10: {_below(dips)}."


def _printed_apart() -> str:
    accuracy, f1 = (
        curves.loc[["DAMASHA", "GigaCheck"]]
        for curves in map(_printed_curves, ("accuracy", "f1_ai"))
    )
    return "Printed in Table 10 from v1 to v8: " + "; ".join(
        f"{name} accuracy {percent(accuracy['v8'][name] - accuracy['v1'][name])}, F1-AI "
        f"{percent(f1['v8'][name] - f1['v1'][name])} points"
        for name in f1.index
    ) + "."  # fmt: skip


def _below(differences: pd.Series) -> str:
    below = int((differences < 0).sum())
    median = percent(differences.median())
    return f"below 0 for {below} of {len(differences)} detectors, median {median}"


def _printed_curves(metric: str) -> pd.DataFrame:
    """Detectors by versions, the mean over domains."""
    results = opai_results()
    chosen = results[results["table"].isin([8, 10]) & (results["metric"] == metric)]
    return chosen.pivot_table("value", "detector", "version")


CLAIMS = (
    Claim(
        "Dip at v4",
        "Detectability dips in mid-trajectory, around v4 (compress).",
        "v4 minus the mean of v3 and v5; below 0 agrees.",
        _dip,
        _printed_dip,
    ),
    Claim(
        "Compress harder than expand",
        "At equal coverage, compressed text is harder to detect than expanded text.",
        "Compress minus expand in the design operation; below 0 agrees.",
        _compress,
    ),
    Claim(
        "Independent smoother",
        "Curves by version are smoother when each version is made from v0.",
        "Mean absolute second difference over v1 to v8, cumulative minus independent; above 0 "
        "agrees.",
        _smooth,
    ),
    Claim(
        "Accuracy falls, F1-AI rises",
        "For word-level methods accuracy falls while F1-AI rises along the trajectory.",
        "v8 minus v1 at word or character level; accuracy below 0 and F1-AI above 0 agree.",
        _apart,
        _printed_apart,
    ),
    Claim(
        "Not monotone in coverage",
        "Within one operation detectability does not always grow with coverage.",
        "The steps from one coverage to the next, with intervals that hold for all steps "
        "together; a fall agrees, only rises do not.",
        _monotone,
    ),
)


def findings(runs: Runs) -> list[Table]:
    """One table of all claims.

    Raises:
        MissingError: no claim can be judged by these runs.
    """
    rows: list[list[str]] = []
    sources: list[tuple[str, ...]] = []
    notes = []
    found: list[Finding] = []
    for claim in CLAIMS:
        own = list(claim.find(claim, runs))
        counts = Counter(finding.verdict for finding in own)
        verdicts = (
            ", ".join(f"{n} × {name}" for name, n in counts.items()) or "no run to judge it by"
        )
        notes.append(
            " ".join([f"{claim.name}: {claim.statement} {claim.test}", claim.printed()]).strip()
            + f" Ours: {verdicts}."
        )
        for finding in own:
            rows.append(_row(finding, first=finding is own[0]))
            sources.append(tuple(finding.run_id.split()))
        found += own
    if not found:
        raise MissingError("no run of a design by which a claim is judged")
    method = (
        "Means over domains and in-distribution generators. Intervals: 95 % percentiles of a "
        f"paired bootstrap over source documents, {RESAMPLES:,} resamples, each of one comparison. "
        "Of several seeds the newest run speaks."
    )
    judged = {(run_id, finding.level) for finding in found for run_id in finding.run_id.split()}
    shown = [
        (c, level)
        for c in runs.configurations
        for level in LEVELS
        if judged & {(run_id, level) for run_id in c.run_ids}
    ]
    unsure = [NO_INTERVAL] if any(np.isnan(finding.low) for finding in found) else []
    return [
        Table(
            name="findings",
            caption="Findings: the paper's claims beside our estimates, in points",
            header=["Claim", "Detector", "Level", "Measure", "Estimate", "95 % interval",
                    "Verdict", "Documents"],
            rows=rows,
            data=pd.DataFrame(map(asdict, found)),
            notes=[*notes, method, scored_note(runs, shown), *unsure, *demo_note(runs)],
            sources=sources,
        )
    ]  # fmt: skip


def _row(finding: Finding, *, first: bool) -> list[str]:
    undefined = np.isnan(finding.low)
    interval = f"{percent(finding.low)} to {percent(finding.high)}"
    return [
        finding.claim if first else "",
        finding.detector,
        finding.level,
        finding.measure,
        percent(finding.estimate),
        "–" if undefined else interval,
        finding.verdict,
        f"{finding.documents:,}",
    ]


def as_json(table: Table) -> str:
    """The claims with what they say, and every estimate in [0, 1], null where there is none."""
    claims = [
        {"name": claim.name, "statement": claim.statement, "test": claim.test} for claim in CLAIMS
    ]
    estimates = json.loads(table.data.to_json(orient="records"))
    return json.dumps({"claims": claims, "findings": estimates}, indent=2) + "\n"
