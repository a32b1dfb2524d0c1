"""How many texts there are and how long: the paper's Tables 2, 5 and 6, beside its own numbers."""

from importlib.resources import files

import pandas as pd

from palimpsest.corpora.opai_bench import RELEASED
from palimpsest.reports.formats import Table
from palimpsest.tracking import Evaluation
from palimpsest.trajectories.summary import ALL

MEASURES = {
    "documents": "Documents",
    "trajectories": "Trajectories",
    "samples": "Samples",
    "avg_sentences": "Avg. sentences",
    "avg_words": "Avg. words",
}
SPLITS = ["train", "dev", "test", "total"]
_PRINTED_NAMES = {
    "source_docs": "documents",
    "versioned_samples": "samples",
    "avg_sents": "avg_sentences",
    "avg_tokens": "avg_words",
    "development": "dev",
}


def statistics_tables(run: Evaluation) -> list[Table]:
    """Tables 2, 5 and 6 of the texts that a run was evaluated on.

    The paper's numbers stand beside them where the texts are the released ones. A run from before
    splits were counted has none of these tables.
    """
    facts = run.statistics
    if "split" not in facts:
        return []
    facts = facts[facts["design"] == run.params["design"]]
    together = facts[facts["generator"] == ALL]
    apart = facts[facts["generator"] != ALL]

    domains = _with_total(_sums(together, ["domain"]), {"domain": "total"})
    generators = _with_total(
        _sums(apart, ["held_out", "domain", "generator"]),
        {"domain": "total", "generator": ALL},
    )
    counts = together.pivot_table("samples", "domain", "split", "sum", fill_value=0)
    counts = counts.reindex(columns=SPLITS[:-1], fill_value=0)
    counts.loc["total"] = counts.sum()
    counts["total"] = counts.sum(axis=1)

    design = run.params["design"]
    return [
        _table(
            run, "statistics", f"Statistics of the texts ({design})", domains, ["domain"], MEASURES,
            "opai_statistics",
        ),
        _table(
            run, "statistics-by-generator", f"Statistics of the texts by generator ({design})",
            generators, ["domain", "generator"], {m: MEASURES[m] for m in list(MEASURES)[1:]},
            "opai_statistics_by_generator",
        ),
        _table(
            run, "splits", f"Samples in each split ({design})", counts.reset_index(), ["domain"],
            dict(zip(SPLITS, ["Train", "Dev", "Test", "Total"], strict=True)), "opai_split_counts",
        ),
    ]  # fmt: skip


def _sums(facts: pd.DataFrame, keys: list[str]) -> pd.DataFrame:
    """Counts summed over splits, averages weighed by samples."""
    weighed = facts.assign(
        avg_sentences=facts["avg_sentences"] * facts["samples"],
        avg_words=facts["avg_words"] * facts["samples"],
    )
    sums = weighed.groupby(keys, as_index=False)[list(MEASURES)].sum()
    return sums.assign(
        avg_sentences=sums["avg_sentences"] / sums["samples"],
        avg_words=sums["avg_words"] / sums["samples"],
    )


def _with_total(parts: pd.DataFrame, names: dict[str, str]) -> pd.DataFrame:
    """With one more row, of everything that is not held out."""
    counted = parts[~parts["held_out"]] if "held_out" in parts else parts
    return pd.concat([parts, _sums(counted.assign(**names), list(names))], ignore_index=True)


def _table(
    run: Evaluation,
    name: str,
    caption: str,
    built: pd.DataFrame,
    keys: list[str],
    measures: dict[str, str],
    reference: str,
) -> Table:
    header = [*[key.capitalize() for key in keys], *measures.values()]
    columns, groups, notes = list(measures), [], []
    is_released = run.tags.get("prompt_set") == RELEASED and run.params["design"] == "cumulative"
    if is_released:
        printed = _printed(reference)[[*keys, *measures]]
        built = built.merge(printed, "left", keys, suffixes=("", "_printed"))
        columns += [f"{measure}_printed" for measure in measures]
        header += measures.values()
        groups = [("", len(keys)), ("here", len(measures)), ("paper", len(measures))]
        notes = ["paper: as arXiv 2606.06481v1 prints it."]
    if "held_out" in built and built["held_out"].eq(True).any():
        notes.append("The total leaves held-out generators out.")
    return Table(
        name=name,
        caption=caption,
        header=header,
        groups=groups,
        rows=[
            [*[str(row[key]) for key in keys], *[_cell(column, row[column]) for column in columns]]
            for row in built.to_dict("records")
        ],
        data=built.assign(run_id=run.run_id),
        notes=notes,
    )


def _printed(reference: str) -> pd.DataFrame:
    path = files("palimpsest.reports") / "reference" / f"{reference}.csv"
    with path.open(encoding="utf-8") as file:
        printed = pd.read_csv(file).rename(columns=_PRINTED_NAMES)
    if "generator" in printed:
        printed["generator"] = printed["generator"].str.lower()
    return printed


def _cell(column: str, value: float) -> str:
    if value != value:  # not printed in the paper
        return "–"
    return f"{value:.1f}" if column.startswith("avg_") else f"{int(value):,}"
