"""The papers' figures as small multiples; a detector has the same colour everywhere."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from io import BytesIO
from pathlib import Path
from typing import Any

import pandas as pd

from palimpsest.detectors.registry import REGISTRY
from palimpsest.evaluation.report import MEAN
from palimpsest.reports.reference import position, printed
from palimpsest.reports.runs import LEVELS, Configuration, Runs, is_mean
from palimpsest.reports.tables import (
    METRICS,
    MissingError,
    demo_note,
    domains,
    missing,
    named,
    shown_at,
    versions,
)

# Okabe and Ito's colours, which readers with any colour vision can tell apart; yellow is too pale.
COLOURS = ("#0072b2", "#e69f00", "#009e73", "#d55e00", "#cc79a7", "#56b4e9", "#000000")
MARKERS = "os^DvPX*<>h"
DASHES = ("-", "--", ":", "-.")

_LEVELS = {
    "document": ("document",),
    "sentence": ("sentence",),
    "token and span": ("word", "character"),
}


@dataclass(frozen=True, slots=True)
class Figure:
    """A drawn figure in both formats, and `data`: its points, each with the run that it is from."""

    name: str
    caption: str
    png: bytes
    pdf: bytes
    data: pd.DataFrame
    notes: list[str]


def write(figure: Figure, folder: Path) -> list[Path]:
    folder.mkdir(parents=True, exist_ok=True)
    files = {
        ".png": figure.png,
        ".pdf": figure.pdf,
        ".csv": figure.data.to_csv(index=False).encode(),
    }
    paths = []
    for suffix, content in files.items():
        path = folder / (figure.name + suffix)
        path.write_bytes(content)
        paths.append(path)
    return paths


@dataclass(frozen=True, slots=True)
class Look:
    """How a line is drawn; the dash tells one detector's configurations apart."""

    colour: str
    marker: str
    dash: str


def looks(runs: Runs) -> dict[tuple[str, str], Look]:
    """(configuration's name, design) -> its look; colour and marker are the detector's alone."""
    found = {}
    seen: dict[tuple[str, str], int] = {}
    for configuration in runs.configurations:
        key = (configuration.detector, configuration.design)
        place = _place(configuration.detector)
        found[configuration.name, configuration.design] = Look(
            COLOURS[place % len(COLOURS)],
            MARKERS[place % len(MARKERS)],
            DASHES[seen.setdefault(key, 0) % len(DASHES)],
        )
        seen[key] += 1
    return found


@cache
def _place(detector: str) -> int:
    """The paper's detectors first, then the registry's others; of foreign ones a digest's."""
    place = position(detector)
    if place is not None:
        return place
    others = [name for name in REGISTRY if position(name) is None]
    start = len(set(printed("detectors")["detector"]))
    return start + (others.index(detector) if detector in others else sum(detector.encode()))


@dataclass(frozen=True, slots=True)
class Grid:
    """One of OpAI-Bench's Figures 2-21, as `reference/opai_figures.csv` describes it."""

    number: int

    @property
    def title(self) -> str:
        facts = self._facts()
        regimes = facts["regimes"].replace(";", " and ")
        return (
            f"{_title(facts['metric'])} at {facts['level']} level by {facts['x']}, {regimes} "
            f"detectors, design {facts['design']}"
        )

    def _facts(self) -> pd.Series:
        table = printed("opai_figures")
        return table[table["figure"] == str(self.number)].iloc[0]

    def __call__(self, runs: Runs) -> list[Figure]:
        facts = self._facts()
        levels, design, x = _LEVELS[facts["level"]], facts["design"], facts["x"]
        metrics, regimes = facts["metric"].split(" and "), facts["regimes"].split(";")
        shown = shown_at(runs, design, levels, regimes)
        points = _points(runs, shown, metrics)
        points = _in_rows(points[points["domain"] != MEAN], facts["rows"].partition(" (")[0])
        points = points.assign(column=points["domain"])
        if x == "operation":
            points = points[points["operation"] != "none"]
        png, pdf = _drawn(points, x, names(shown, levels), looks(runs))
        return [
            Figure(
                name=f"figure-{self.number:02}",
                caption=f"Figure {self.number}: {self.title}",
                png=png,
                pdf=pdf,
                data=points,
                notes=[
                    missing(runs, design, [(d, levels) for d in facts["detectors"].split(";")]),
                    *_notes(runs),
                ],
            )
        ]


def detectability(runs: Runs) -> list[Figure]:
    """Ours: AUROC and F1-AI by version, the mean over domains, at each detector's own level."""
    shown = shown_at(runs, "cumulative", LEVELS)
    points = _points(runs, shown, ("auroc", "f1_ai"))
    points = points[(points["domain"] == MEAN) & is_mean(points)]
    points = points.assign(row="", column=points["metric"].map(METRICS)).sort_values(
        "metric", kind="stable"
    )
    png, pdf = _drawn(points, "version", names(shown, LEVELS), looks(runs))
    return [
        Figure(
            name="detectability",
            caption="Detectability by version: AUROC against v0, and F1-AI; the mean over domains",
            png=png,
            pdf=pdf,
            data=points,
            notes=_notes(runs),
        )
    ]


def _title(metrics: str) -> str:
    return " and ".join(METRICS[metric] for metric in metrics.split(" and "))


def names(
    shown: Sequence[tuple[Configuration, str]], levels: Sequence[str]
) -> dict[tuple[str, str], str]:
    """(configuration's name, level) -> what the legend says."""
    return {(c.name, level): named(c, level, levels) for c, level in shown}


def _notes(runs: Runs) -> list[str]:
    shaded = "Shaded: the 95 % interval over documents; for several seeds one standard deviation."
    return [shaded, *demo_note(runs)]


def _points(
    runs: Runs, shown: Sequence[tuple[Configuration, str]], metrics: Sequence[str]
) -> pd.DataFrame:
    numbers = pd.concat([runs.of(*each) for each in shown], ignore_index=True)
    return numbers[numbers["metric"].isin(metrics) & numbers["coverage"].notna()]


def _in_rows(points: pd.DataFrame, by: str) -> pd.DataFrame:
    """The points with the title of their `row`: each generator alone, else the generators' mean.

    A design's `variant` is its operation in the design `coverage` and the reverse.
    """
    if by == "generator":
        own = points[points["generator"] != MEAN]
        held_out = own["held_out"].map({True: ", held out", False: ""})
        return own.assign(row=own["generator"] + held_out)
    means = points[is_mean(points)]
    match by:
        case "metric":
            return means.assign(row=means["metric"].map(METRICS))
        case "operation":
            return means.assign(row=means["variant"])
        case "coverage":
            return means.assign(row=means["variant"] + " %")
        case _:
            raise ValueError(f"no rows by {by}")


def _drawn(
    points: pd.DataFrame,
    x: str,
    label_of: Mapping[tuple[str, str], str],
    look_of: Mapping[tuple[str, str], Look],
) -> tuple[bytes, bytes]:
    """A grid of the points' rows and columns as PNG and PDF.

    Raises:
        MissingError: no points.
    """
    from matplotlib.axes import Axes
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure as Canvas

    if points.empty:
        raise MissingError("the runs have no such numbers")
    rows = list(dict.fromkeys(points["row"]))
    columns = _in_order(points)
    ticks = _ticks(points, x)
    legend_lines = -(-len(label_of) // 3)
    width, bottom, top = 2.5 * len(columns) + 0.9, 0.55 + 0.2 * legend_lines, 0.3
    height = 1.75 * len(rows) + bottom + top
    figure = Canvas(figsize=(width, height))
    FigureCanvasAgg(figure)
    axes: list[list[Axes]] = figure.subplots(
        len(rows), len(columns), sharex=True, sharey=True, squeeze=False
    ).tolist()
    figure.subplots_adjust(
        left=0.75 / width, right=1 - 0.1 / width, bottom=bottom / height, top=1 - top / height,
        wspace=0.06, hspace=0.1,
    )  # fmt: skip
    drawn = {}
    by = ["row", "column", "configuration", "level", "design"]
    for key, line in points.groupby(by, sort=False):
        row, column, name, level, design = map(str, key)
        axis = axes[rows.index(row)][columns.index(column)]
        look = look_of[name, design]
        line = line.assign(at=line[x].map(ticks)).sort_values("at")
        drawn[name, level] = axis.plot(
            line["at"], 100 * line["value"], look.dash, color=look.colour, marker=look.marker,
            markersize=3.2, linewidth=1.2, label=label_of[name, level],
        )[0]  # fmt: skip
        if line["low"].notna().any():
            axis.fill_between(line["at"].to_numpy(), 100 * line["low"], 100 * line["high"],
                              color=look.colour, alpha=0.12, linewidth=0)  # fmt: skip
    for i, row in enumerate(rows):
        for j, column in enumerate(columns):
            axis = axes[i][j]
            axis.set_ylim(-3, 103)
            axis.grid(alpha=0.25, linewidth=0.5)
            axis.spines[["top", "right"]].set_visible(False)
            axis.tick_params(labelsize=7, length=2)
            if i == 0:
                axis.set_title(column, fontsize=9)
            if j == 0:
                axis.set_ylabel(f"{row}\n%" if row else "%", fontsize=8)
    axes[0][0].set_xticks(list(ticks.values()), list(map(str, ticks)))
    figure.legend(
        handles=[drawn[key] for key in label_of if key in drawn],
        loc="lower center", ncols=3, fontsize=7, frameon=False,
    )  # fmt: skip
    return (
        _saved(figure, "png", dpi=120, metadata={"Software": None}),
        _saved(figure, "pdf", metadata={"CreationDate": None}),
    )


def _saved(figure: Any, kind: str, **options: Any) -> bytes:
    file = BytesIO()
    figure.savefig(file, format=kind, **options)
    return file.getvalue()


def _in_order(points: pd.DataFrame) -> list[str]:
    """The columns: domains in the papers' order, anything else as it comes."""
    found = list(dict.fromkeys(points["column"]))
    return sorted(found, key=[*domains(points), *found].index)


def _ticks(points: pd.DataFrame, x: str) -> dict[str, float]:
    """Where each value of x stands: coverage to scale, versions and operations one by one."""
    if x == "coverage":
        return {value: float(value) for value in sorted(set(points["coverage"]))}
    found = versions(points) if x == "version" else sorted(set(points["operation"]))
    return {value: float(i) for i, value in enumerate(found)}
