"""The papers' tables, filled from the runs in the store; the printed values stand beside ours."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pandas as pd

from palimpsest.detectors.registry import REGISTRY
from palimpsest.evaluation.report import MEAN
from palimpsest.reports.formats import Table
from palimpsest.reports.reference import detectors_called, opai_results, printed
from palimpsest.reports.runs import LEVELS, Configuration, Runs, is_mean, model_names
from palimpsest.reports.statistics import statistics_tables

METRICS = {
    "accuracy": "Acc", "f1_ai": "F1-AI", "macro_f1": "Macro-F1", "fnr": "FNR", "auroc": "AUROC",
}  # fmt: skip
# The papers' order of domains; others follow by name, the mean last.
DOMAINS = ("essays", "reports", "news", "abstracts")
NO_INTERVAL = (
    "No interval where a domain has a single document: there is nothing to resample, nor for a "
    "mean that the domain is in."
)


class MissingError(Exception):
    """A table or figure that the runs in the store cannot fill; the message says why."""


@dataclass(frozen=True, slots=True)
class ByVersion:
    """Tables 4 and 8-11 of OpAI-Bench: metrics by version and domain, a block for each detector.

    In per cent, with the change from the previous version in brackets, 0.0 for F1-AI and a dash for
    FNR at v0, where they are undefined: as the paper prints. `levels` are those shown, each
    detector at its own one if it is among them.
    """

    number: int
    metrics: tuple[str, ...]
    levels: tuple[str, ...] = LEVELS
    design: str = "cumulative"

    def __call__(self, runs: Runs) -> list[Table]:
        """The table, and another with the printed values where the paper has the same cells."""
        shown = shown_at(runs, self.design, self.levels)
        numbers = _numbers(runs, shown, self.metrics)
        title = " and ".join(METRICS[metric] for metric in self.metrics)
        places = domains(numbers)
        rows, sources = [], []
        for configuration, level in shown:
            mine = numbers[
                (numbers["configuration"] == configuration.name) & (numbers["level"] == level)
            ]
            block = self._block(named(configuration, level, self.levels), mine, places)
            rows += block
            sources += [configuration.run_ids] * len(block)
        compared = beside_the_paper(self.number, numbers)
        table = Table(
            name=f"table-{self.number:02}",
            caption=f"Table {self.number}: {title} (%) by version and domain",
            header=["Detector", "Version", *[METRICS[m] for _ in places for m in self.metrics]],
            groups=[("", 2), *[(domain, len(self.metrics)) for domain in places]],
            rows=rows,
            data=compared,
            sources=sources,
            notes=[
                *self._notes(runs, numbers),
                scored_note(runs, shown),
                missing(runs, self.design, self._printed()),
            ],
        )
        return [table, *comparison(table, compared)]

    def _block(self, name: str, mine: pd.DataFrame, places: Sequence[str]) -> list[list[str]]:
        keys = zip(mine["domain"], mine["metric"], mine["version"], strict=True)
        cells = dict(zip(keys, zip(mine["value"], mine["sd"], strict=True), strict=True))
        rows = []
        before = ""
        for i, version in enumerate(versions(mine)):
            row = [name if i == 0 else "", version]
            row += [
                _cell(cells, (place, metric), version, before)
                for place in places
                for metric in self.metrics
            ]
            rows.append(row)
            before = version
        return rows

    def _notes(self, runs: Runs, numbers: pd.DataFrame) -> list[str]:
        notes = ["In brackets the change from the previous version."]
        if "f1_ai" in self.metrics:
            notes.append("F1-AI at v0 is undefined and printed as 0.0, as in the paper.")
        if (numbers["seeds"] > 1).any():
            notes.append("± is the standard deviation over seeds.")
        return [*notes, *demo_note(runs)]

    def _printed(self) -> list[tuple[str, tuple[str, ...]]]:
        results = opai_results()
        results = results[results["table"] == self.number]
        found = results[["detector", "level"]].drop_duplicates().to_dict("records")
        return [(row["detector"], (row["level"],)) for row in found]


def _cell(
    cells: Mapping[tuple[str, str, str], tuple[float, float]],
    place: tuple[str, str],
    version: str,
    before: str,
) -> str:
    undefined = {("f1_ai", "v0"): (0.0, float("nan"))}
    value, previous = (
        cells.get((*place, v), undefined.get((place[1], v))) for v in (version, before)
    )
    if value is None:
        return "–"
    text = percent(value[0])
    if value[1] == value[1]:
        text += f" ± {percent(value[1])}"
    if previous is None:
        return text
    change = round(100 * value[0], 1) - round(100 * previous[0], 1)
    return f"{text} ({change:+.1f})".replace("-", "−")


def percent(value: float) -> str:
    return f"{100 * value:.1f}".replace("-", "−")


def versions(numbers: pd.DataFrame) -> list[str]:
    """The versions in the order of their coverage; what spans versions is none."""
    by = (
        numbers[["coverage", "version"]]
        .dropna()
        .drop_duplicates()
        .sort_values(["coverage", "version"])
    )
    return list(dict.fromkeys(by["version"]))


def domains(numbers: pd.DataFrame) -> list[str]:
    """The papers' domains in their order, then others, then the mean."""
    found = set(numbers["domain"]) - {MEAN}
    return [*[d for d in DOMAINS if d in found], *sorted(found - set(DOMAINS)), MEAN]


def shown_at(
    runs: Runs, design: str, levels: Sequence[str], regimes: Sequence[str] | None = None
) -> list[tuple[Configuration, str]]:
    """A design's configurations that have numbers at one of these levels, each with its level.

    Raises:
        MissingError: none.
    """
    configurations = [c for c in runs.of_design(design) if regimes is None or c.regime in regimes]
    found = [
        (configuration, level)
        for configuration in configurations
        if (level := runs.level_of(configuration, levels)) is not None
    ]
    if not found:
        what = f"no finished run of the design {design}"
        if configurations or runs.of_design(design):
            what += f" with a detector of {' or '.join(levels)} level"
            what += f" that is {' or '.join(regimes)}" if regimes else ""
        raise MissingError(what)
    return found


def named(configuration: Configuration, level: str, levels: Sequence[str]) -> str:
    """A configuration's name with its regime, and its level where a table has several.

    A level finer than the method's own is our extension, and is called so.
    """
    entry = REGISTRY.get(configuration.detector)
    details = [configuration.regime]
    if len(levels) > 1:
        details.append(level)
    if entry and entry.native == "document" and level != "document":
        details.append("extension")
    return f"{configuration.name} [{', '.join(details)}]"


def _numbers(
    runs: Runs, shown: Sequence[tuple[Configuration, str]], metrics: Sequence[str]
) -> pd.DataFrame:
    numbers = pd.concat([runs.of(*each) for each in shown], ignore_index=True)
    return numbers[is_mean(numbers) & numbers["metric"].isin(metrics) & numbers["coverage"].notna()]


def beside_the_paper(table: int, numbers: pd.DataFrame) -> pd.DataFrame:
    """The numbers with the columns `printed` and `difference` (ours - printed), nan without one."""
    known = printed("detectors")[["detector", "regime", "printed"]].drop_duplicates()
    results = opai_results()
    results = results[results["table"] == table].rename(
        columns={"detector": "printed", "value": "printed_value"}
    )
    keys = ["printed", "regime", "level", "domain", "version", "metric"]
    joined = numbers.merge(known, how="left", on=["detector", "regime"]).merge(
        results[[*keys, "printed_value"]], how="left", on=keys
    )
    joined = joined.drop(columns="printed").rename(columns={"printed_value": "printed"})
    return joined.assign(difference=joined["value"] - joined["printed"])


def comparison(table: Table, numbers: pd.DataFrame) -> list[Table]:
    """Ours, the paper's, and the difference, for every cell that both have; none: no table."""
    both = numbers[numbers["printed"].notna()]
    if both.empty:
        return []
    columns = versions(both)
    rows: list[list[str]] = []
    sources: list[tuple[str, ...]] = []
    keys = ["configuration", "threshold", "domain", "metric"]
    shown = list(dict.fromkeys(both["configuration"]))
    both = both.sort_values(
        ["configuration", "domain"],
        key=lambda column: column.map((*shown, *DOMAINS).index),
        kind="stable",
    )
    for (name, threshold, domain, metric), cells in both.groupby(keys, sort=False):
        by = cells.set_index("version").reindex(columns)
        what = f"{domain}, {METRICS[str(metric)]}, labels: {threshold}"
        for source, column in (
            ("ours", "value"),
            ("paper", "printed"),
            ("difference", "difference"),
        ):
            start = [f"{name}: {what}" if source == "ours" else "", source]
            rows.append(start + ["–" if v != v else percent(v) for v in by[column]])
            sources.append(tuple(cells["run_id"].iloc[0].split()) if source != "paper" else ())
    return [
        Table(
            name=f"{table.name}-beside-the-paper",
            caption=table.caption.partition(":")[0] + ": ours beside the printed values (%)",
            header=["Detector", "", *columns],
            rows=rows,
            data=both,
            sources=sources,
            notes=["Other texts, revised by other models, and possibly another backbone: see "
                   "“What differs from the paper”."],
        )
    ]  # fmt: skip


def missing(runs: Runs, design: str, wanted: Sequence[tuple[str, tuple[str, ...]]]) -> str:
    """The paper's detectors that are not shown, by the reason; `wanted` are names and levels."""
    present = {(c.detector, c.regime) for c in runs.of_design(design)}
    absent: dict[str, list[str]] = {}
    for name, levels in wanted:
        ours = detectors_called(name, levels)
        if not present & set(ours):
            absent.setdefault(_reason(ours), []).append(name)
    if not absent:
        return "All detectors of the paper are here."
    return "In the paper and not here: " + "; ".join(
        f"{', '.join(names)} ({reason})" for reason, names in absent.items()
    ) + "."  # fmt: skip


def _reason(ours: Sequence[tuple[str, str]]) -> str:
    """Why there is no run of any of these (detector, regime), all one detector of the paper."""
    known = [(name, regime) for name, regime in ours if name in REGISTRY]
    if not known:
        return "not implemented yet"
    if any(REGISTRY[name].regime == regime for name, regime in known):
        return "implemented, but no finished run on these texts"
    name, regime = known[0]
    return f"{regime} in the paper, implemented as {REGISTRY[name].regime} only"


def scored_note(runs: Runs, shown: Sequence[tuple[Configuration, str]]) -> str:
    """How many units each configuration scored, and left unscored, over all cells of its texts."""
    alike = len({(c.design, level) for c, level in shown}) == 1
    partly = []
    for configuration, level in shown:
        scored, left = _scored(runs.of(configuration, level))
        where = "" if alike else f" ({configuration.design}, {level})"
        if left:
            partly.append(f"{configuration.name}{where} {scored:,} and {left:,}")
    if not partly:
        return "Every unit is scored."
    return f"Units scored and unscored: {', '.join(partly)}; all others scored every one."


def _scored(numbers: pd.DataFrame) -> tuple[int, int]:
    """Scored and unscored units of a configuration at a level."""
    own = numbers[
        (numbers["metric"] == "scored")
        & (numbers["generator"] != MEAN)
        & (numbers["domain"] != MEAN)
    ]
    return int(own["n"].sum()), int(own["n_unscored"].sum())


def demo_note(runs: Runs) -> list[str]:
    if not runs.is_demo:
        return []
    return ["Demo: small models and few documents, no benchmark results."]


def printed_table(number: int, title: str, file: str) -> Table:
    """A table of the paper that holds facts and no results, as printed."""
    content = printed(file)
    return Table(
        name=f"table-{number:02}",
        caption=f"Table {number}: {title}",
        header=[str(column).replace("_", " ") for column in content.columns],
        rows=[[cell or "–" for cell in row] for row in content.to_numpy().tolist()],
        data=content,
        notes=["As printed in the paper."],
    )


def related_benchmarks(_: Runs) -> list[Table]:
    """Table 1: what other benchmarks have. D document, S sentence, B boundary, M multi."""
    return [printed_table(1, "related benchmarks", "opai_related_benchmarks")]


def schedule(runs: Runs) -> list[Table]:
    """Table 3: operation and coverage of each version, the paper's and that of our texts."""
    (configuration, level), *_ = shown_at(runs, "cumulative", LEVELS)
    numbers = runs.of(configuration, level).dropna(subset="coverage")
    ours = numbers[["version", "operation", "coverage"]].drop_duplicates("version")
    theirs = printed("opai_schedule").drop(columns="operation_printed")
    both = theirs.merge(ours, on="version", how="outer", suffixes=("_paper", ""))
    rows = [
        ["–" if pd.isna(cell) else str(cell) for cell in row]
        for row in both.astype({"coverage": "Int64"}).to_numpy().tolist()
    ]
    return [
        Table(
            name="table-03",
            caption="Table 3: operation and share of sentences (%) by version",
            header=["Version", "Operation", "Coverage", "Operation", "Coverage"],
            groups=[("", 1), ("paper", 2), ("ours", 2)],
            rows=rows,
            data=both.assign(run_id=" ".join(configuration.run_ids)),
            sources=[configuration.run_ids] * len(rows),
        )
    ]


def training(runs: Runs) -> list[Table]:
    """Table 7: training settings, ours as the runs logged them, then the paper's.

    Raises:
        MissingError: no run of a trained detector.
    """
    trained = [c for c in runs.configurations if c.regime == "trained"]
    if not trained:
        raise MissingError("no finished run of a trained detector")
    columns = {
        "backbone": "model", "lora_targets": "lora_targets", "learning_rate": "learning_rate",
        "batch": "batch_size", "epochs": "epochs",
    }  # fmt: skip
    facts: dict[str, dict[str, Any]] = {}
    for configuration in trained:
        params = configuration.runs[-1].params
        settings = {k.removeprefix("settings."): v for k, v in params.items() if "settings." in k}
        known = {column: settings.pop(name, "–") for column, name in columns.items()}
        rest = ", ".join(f"{name} {value}" for name, value in sorted(settings.items()))
        facts.setdefault(
            configuration.name,
            {
                "detector": configuration.name,
                **known,
                "setting": rest,
                "source": "ours",
                "run_id": configuration.run_ids[-1],
            },
        )
    theirs = printed("opai_training")
    lora = theirs["lora_r"].where(theirs["lora_r"] == "", "LoRA r " + theirs["lora_r"]
                                  + ", alpha " + theirs["lora_alpha"] + ", dropout "
                                  + theirs["lora_dropout"])  # fmt: skip
    setting = (theirs["setting"] + ", " + lora).str.removesuffix(", ")
    theirs = theirs[["detector", *columns]].assign(setting=setting, source="paper", run_id="")
    data = pd.concat([pd.DataFrame(facts.values()), theirs], ignore_index=True)
    return [
        Table(
            name="table-07",
            caption="Table 7: training settings",
            header=["Detector", *[c.replace("_", " ") for c in columns], "other settings", "of"],
            rows=[[cell or "–" for cell in row] for row in data.iloc[:, :-1].to_numpy().tolist()],
            data=data,
            sources=[(run_id,) if run_id else () for run_id in data["run_id"]],
            notes=demo_note(runs),
        )
    ]


@dataclass(frozen=True, slots=True)
class Statistics:
    """Tables 2, 5 and 6: one of `statistics_tables` of the newest run, by its place there."""

    number: int
    place: int

    def __call__(self, runs: Runs) -> list[Table]:
        newest = (runs.of_design("cumulative") or runs.configurations)[-1].runs[-1]
        tables = statistics_tables(newest)
        if not tables:
            raise MissingError("the runs are from before texts were counted by split")
        table = tables[self.place]
        return [
            replace(
                table,
                name=f"table-{self.number:02}",
                caption=f"Table {self.number}: {table.caption}",
                sources=[(newest.run_id,)] * len(table.rows),
            )
        ]


def summary(runs: Runs) -> list[Table]:
    """Ours: AUROC and F1-AI by version at each detector's own level, the mean over domains."""
    shown = shown_at(runs, "cumulative", LEVELS)
    numbers = _numbers(runs, shown, ("auroc", "f1_ai"))
    numbers = numbers[numbers["domain"] == MEAN]
    columns = [v for v in versions(numbers) if v != "v0"]
    rows, sources = [], []
    for configuration, level in shown:
        mine = numbers[
            (numbers["configuration"] == configuration.name) & (numbers["level"] == level)
        ]
        for metric in ("auroc", "f1_ai"):
            values = mine[mine["metric"] == metric].set_index("version")["value"].reindex(columns)
            name = named(configuration, level, LEVELS) if metric == "auroc" else ""
            cells = ["–" if v != v else percent(v) for v in values]
            rows.append([name, METRICS[metric], *cells])
            sources.append(configuration.run_ids)
    return [
        Table(
            name="summary",
            caption="Detectability by version (%), the mean over domains and generators",
            header=["Detector", "", *columns],
            rows=rows,
            data=numbers,
            sources=sources,
            notes=[
                "AUROC compares a version's scores with v0's and needs no threshold; F1-AI is of "
                "the method's own labels, else of its published threshold, else of a calibrated "
                "one.",
                scored_note(runs, shown),
                *demo_note(runs),
            ],
        )
    ]  # fmt: skip


def listing(runs: Runs) -> list[Table]:
    """Every run behind the report: what it is, how its labels came about, how much it scored."""
    facts = []
    for configuration in runs.configurations:
        for level in LEVELS:
            if (configuration.name, configuration.design, level) not in runs.numbers:
                continue
            numbers = runs.of(configuration, level)
            labelled = numbers[numbers["metric"] == "accuracy"]
            scored, unscored = _scored(numbers)
            facts += [
                {
                    "detector": configuration.name,
                    "regime": configuration.regime,
                    "profile": run.params["profile"],
                    "design": configuration.design,
                    "level": level,
                    "threshold": ", ".join(sorted(set(labelled["threshold"]))),
                    "scored": scored,
                    "unscored": unscored,
                    "model": model_names(run),
                    "texts": run.params["texts"],
                    "run_id": run.run_id,
                }
                for run in configuration.runs
            ]
    header = ["Detector", "Regime", "Profile", "Design", "Level", "Labels by", "Scored",
              "Unscored", "Model", "Texts", "Run"]  # fmt: skip
    return [
        Table(
            name="runs",
            caption="Runs behind the report",
            header=header,
            rows=[[f"{v:,}" if isinstance(v, int) else str(v) for v in f.values()] for f in facts],
            data=pd.DataFrame(facts),
            sources=[(str(fact["run_id"]),) for fact in facts],
            lists_runs=True,
            notes=demo_note(runs),
        )
    ]
