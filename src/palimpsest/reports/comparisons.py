"""Which detectors differ, and which designs: paired differences with corrected p-values."""

from collections.abc import Sequence
from itertools import combinations

import pandas as pd

from palimpsest.evaluation.comparison import Numbers, differences, holm
from palimpsest.evaluation.report import MEAN
from palimpsest.reports.evidence import RESAMPLES, Curves
from palimpsest.reports.formats import Table
from palimpsest.reports.runs import LEVELS, Configuration, Runs, is_mean
from palimpsest.reports.tables import NO_INTERVAL, MissingError, demo_note, percent, scored_note

MOST = 20  # configurations in one table, which are 190 pairs
SIGNIFICANT = 0.05

Pair = tuple[Configuration, Configuration]


def comparisons(runs: Runs) -> list[Table]:
    """For each level all pairs of detectors on the cumulative design, then each one's two designs.

    Raises:
        MissingError: no two runs that can be compared.
    """
    tables = [table for make in (_detectors, _designs) for level in LEVELS
              if (table := make(runs, level)) is not None]  # fmt: skip
    if not tables:
        raise MissingError("no two runs of the design cumulative, nor one in two designs")
    return tables


def _detectors(runs: Runs, level: str) -> Table | None:
    present = [c for c in runs.of_design("cumulative") if (c.name, c.design, level) in runs.numbers]
    able = [c for c in present if _versions(runs, c, level)]
    shown = {c.name for c in sorted(able, key=lambda c: c.recency)[-MOST:]}
    pairs = list(combinations([c for c in able if c.name in shown], 2))
    reasons = {
        f"Only the {MOST} newest configurations are compared; left out": [
            c.name for c in able if c.name not in shown
        ],
        "No AUROC, for labels without scores or texts without an answer": [
            c.name for c in present if not _versions(runs, c, level)
        ],
    }
    notes = [f"{reason}: {', '.join(names)}." for reason, names in reasons.items() if names]
    what = f"detectors at {level} level"
    return _table(runs, level, pairs, "detectors", what, ["Detector", "minus"], notes)


def _designs(runs: Runs, level: str) -> Table | None:
    pairs = [
        pair
        for pair in runs.in_both("cumulative", "independent")
        if all(_versions(runs, c, level) for c in pair)
    ]
    what = f"cumulative minus independent at {level} level"
    return _table(runs, level, pairs, "designs", what, ["Detector"], [])


def _versions(runs: Runs, configuration: Configuration, level: str) -> set[tuple[float, str]]:
    """(coverage, version) wherever a configuration has an AUROC; a method of labels alone has none.

    Versions of one name are comparable between designs where their coverage is the same, too.
    """
    numbers = runs.numbers.get((configuration.name, configuration.design, level))
    if numbers is None:
        return set()
    has = is_mean(numbers) & (numbers["domain"] == MEAN) & (numbers["metric"] == "auroc")
    found = numbers[has].dropna(subset="coverage")
    return set(zip(found["coverage"], found["version"], strict=True))


def _differences(runs: Runs, level: str, pairs: Sequence[Pair]) -> pd.DataFrame:
    """First - second in AUROC, in the mean over versions and at the last one; rows of a CSV.

    All pairs are compared on the documents and versions that all have; empty where there are none.
    """
    members = {c.newest.run_id: c for pair in pairs for c in pair}
    if not members:
        return pd.DataFrame()
    shared = frozenset.intersection(*(runs.evidence.documents(c.newest) for c in members.values()))
    if not shared:
        return pd.DataFrame()
    curves = {name: runs.evidence.curves(c.newest, level, shared) for name, c in members.items()}
    common = set.intersection(*(_versions(runs, c, level) for c in members.values()))
    versions = [
        version
        for _, version in sorted(common)
        if all(("auroc", "", version) in own.numbers for own in curves.values())
    ]
    if not versions:
        return pd.DataFrame()
    numbers = {name: _numbers(own, versions) for name, own in curves.items()}
    found = [
        {
            "first": first.name,
            "second": second.name,
            "first_design": first.design,
            "second_design": second.design,
            "level": level,
            **row,
            "run_id": f"{first.newest.run_id} {second.newest.run_id}",
        }
        for first, second in pairs
        for row in differences(
            numbers[first.newest.run_id], numbers[second.newest.run_id], len(shared)
        )
    ]
    data = pd.DataFrame(found)
    data["p_holm"] = holm(data["p"].to_numpy(dtype=float))
    data.loc[data["low"].isna(), ["p", "p_holm"]] = float("nan")
    return data


def _table(
    runs: Runs,
    level: str,
    pairs: Sequence[Pair],
    kind: str,
    what: str,
    header: list[str],
    notes: list[str],
) -> Table | None:
    data = _differences(runs, level, pairs)
    if data.empty:
        return None
    rows, sources, before = [], [], ""
    for run_ids, cells in data.groupby("run_id", sort=False):
        names = [cells["first"].iloc[0], cells["second"].iloc[0]][: len(header)]
        rows.append([names[0] if names[0] != before else "", *names[1:], *_cells(cells)])
        sources.append(tuple(str(run_ids).split())[::-1])  # the page links a row to the last run
        before = names[0]
    members = {c.newest.run_id: c for pair in pairs for c in pair}
    clear = data[data["p_holm"] < SIGNIFICANT]["version"].value_counts()
    groups = list(dict.fromkeys(data["version"]))
    counts = " and ".join(f"{clear.get(group, 0)} ({group})" for group in groups)
    return Table(
        name=f"comparisons-{kind}-{level}",
        caption=f"Comparisons: {what}, AUROC in points",
        header=[*header, *["Difference", "95 % interval", "p", "corrected"] * len(groups)],
        groups=[("", len(header)), *[(group, 4) for group in groups]],
        rows=rows,
        data=data,
        notes=[
            "Means over domains and in-distribution generators on the "
            f"{data['documents'].iloc[0]:,} documents that all share, by {RESAMPLES:,} paired "
            "resamples of these. Of several seeds the newest run speaks.",
            f"Corrected: by Holm for the {len(data)} differences of this table; below "
            f"{SIGNIFICANT} are then, of {len(rows)} pairs, {counts}.",
            *notes,
            scored_note(runs, [(c, level) for c in members.values()]),
            *([NO_INTERVAL] if data["low"].isna().any() else []),
            *demo_note(runs),
        ],
        sources=sources,
    )


def _numbers(curves: Curves, versions: Sequence[str]) -> Numbers:
    """The mean over versions and the last version, under what the table calls them."""
    curve = curves.along("auroc", "", versions)
    assert curve is not None, "versions are those that every run has"
    whole = f"mean of {versions[0]} to {versions[-1]}"
    values = {whole: curve.mean(axis=0), versions[-1]: curve[-1]}
    return {("auroc", "", name): (float(v[0]), v[1:]) for name, v in values.items()}


def _cells(differences: pd.DataFrame) -> list[str]:
    cells = []
    for row in differences.to_dict("records"):
        known = row["low"] == row["low"]
        cells += [
            percent(row["difference"]),
            f"{percent(row['low'])} to {percent(row['high'])}" if known else "–",
            *(_p(row[name]) if known else "–" for name in ("p", "p_holm")),
        ]
    return cells


def _p(value: float) -> str:
    return "<0.001" if value < 0.001 else f"{value:.3f}"
