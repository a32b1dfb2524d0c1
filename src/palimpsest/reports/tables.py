"""The tables of a benchmark, filled from the runs in the store and from nothing else."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path

import pandas as pd

from palimpsest.evaluation.report import MEAN, preferred_threshold
from palimpsest.reports.formats import Table, write
from palimpsest.reports.statistics import statistics_tables
from palimpsest.tracking import Evaluation

# Accuracy and F1 of the AI class, as the paper's Tables 8 and 10 print them.
PRINTED = {"accuracy": "Acc", "f1_ai": "F1-AI"}


def write_tables(evaluations: Sequence[Evaluation], folder: Path) -> list[Path]:
    """Write every table that the runs can fill and return the files, `index.md` first.

    Runs on different texts are not comparable: each set of texts has its own folder when there are
    several.
    """
    by_texts: dict[str, list[Evaluation]] = defaultdict(list)
    for evaluation in evaluations:
        by_texts[f"{evaluation.params['design']}-{evaluation.params['texts']}"].append(evaluation)
    paths = []
    for name, runs in by_texts.items():
        place = folder if len(by_texts) == 1 else folder / name
        for table in [*statistics_tables(runs[-1]), *by_version_tables(runs), listing(runs)]:
            paths += write(table, place)
    index = folder / "index.md"
    pages = [path.read_text(encoding="utf-8") for path in paths if path.suffix == ".md"]
    index.write_text("\n".join(pages), encoding="utf-8")
    return [index, *paths]


def by_version_tables(runs: Sequence[Evaluation]) -> Iterable[Table]:
    """For each level and variant: accuracy and F1-AI by version and domain, each run some rows.

    As the paper prints them: in per cent, with the change from the previous version in brackets,
    and 0.0 for F1-AI at v0, where it is undefined.
    """
    names = labels(runs)
    data = pd.concat(
        [
            preferred_threshold(run.records).assign(run=names[run.run_id], run_id=run.run_id)
            for run in runs
        ],
        ignore_index=True,
    )
    data = data[(data["generator"] == MEAN) & data["metric"].isin(PRINTED)]
    for (level, variant), at_level in data.groupby(["level", "variant"], sort=False):
        domains = [*sorted(set(at_level["domain"]) - {MEAN}), MEAN]
        rows = []
        for run in runs:
            block = at_level[at_level["run_id"] == run.run_id]
            rows += _block(names[run.run_id], block, domains)
        yield Table(
            name=f"versions-{level}" + (f"-{variant}" if variant else ""),
            caption=f"Accuracy and F1-AI (%) at {level} level by version and domain"
            + (f", {variant}" if variant else "")
            + ", with the change from the previous version",
            header=["Detector", "Version", *[PRINTED[m] for _ in domains for m in PRINTED]],
            groups=[("", 2), *[(domain, len(PRINTED)) for domain in domains]],
            rows=rows,
            data=at_level,
            notes=["F1-AI at v0 is undefined and printed as 0.0, as in the paper."],
        )


def _block(name: str, block: pd.DataFrame, domains: Sequence[str]) -> list[list[str]]:
    cells = block.set_index(["domain", "metric", "version"])["value"]
    versions = block.sort_values("coverage", kind="stable")["version"].unique().tolist()
    rows = []
    for i, version in enumerate(versions):
        row = [name if i == 0 else "", version]
        for domain in domains:
            for metric in PRINTED:
                value, before = (
                    cells.get((domain, metric, v), 0.0 if (metric, v) == ("f1_ai", "v0") else None)
                    for v in (version, versions[i - 1])
                )
                if value is None:
                    row.append("–")
                elif i == 0 or before is None:
                    row.append(f"{100 * value:.1f}")
                else:
                    change = round(100 * value, 1) - round(100 * before, 1)
                    row.append(f"{100 * value:.1f} ({change:+.1f})".replace("-", "−"))
        rows.append(row)
    return rows


def listing(runs: Sequence[Evaluation]) -> Table:
    """Every run behind the tables: what it is, how its labels came about, how much it scored."""
    names = labels(runs)
    rows, facts = [], []
    for run in runs:
        own = run.records[(run.records["generator"] != MEAN) & (run.records["domain"] != MEAN)]
        accuracy = preferred_threshold(own[own["metric"] == "accuracy"])
        for level, at_level in accuracy.groupby("level", sort=False):
            facts.append(
                {
                    "run": names[run.run_id],
                    "regime": run.params["regime"],
                    "profile": run.params["profile"],
                    "level": level,
                    "threshold": ", ".join(sorted(set(at_level["threshold"]))),
                    "scored": int(at_level["n"].sum()),
                    "unscored": int(at_level["n_unscored"].sum()),
                    "run_id": run.run_id,
                }
            )
    for fact in facts:
        rows.append([f"{v:,}" if isinstance(v, int) else str(v) for v in fact.values()])
    header = ["Detector", "Regime", "Profile", "Level", "Labels by", "Scored", "Unscored", "Run"]
    return Table(
        name="runs",
        caption="Runs behind the tables",
        header=header,
        rows=rows,
        data=pd.DataFrame(facts),
        notes=["The profile demo has small models and few documents: no benchmark results."],
    )


def labels(runs: Sequence[Evaluation]) -> dict[str, str]:
    """A short name for each run: its detector, and what tells it from others of that detector."""
    names = {}
    for run in runs:
        same = [other for other in runs if other.params["detector"] == run.params["detector"]]
        keys = sorted({key for other in same for key in other.params})
        differing = [k for k in keys if len({other.params.get(k) for other in same}) > 1]
        detail = ", ".join(f"{key}={run.params.get(key, 'none')}" for key in differing)
        names[run.run_id] = run.params["detector"] + (f" ({detail})" if detail else "")
    return names
