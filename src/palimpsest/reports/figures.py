"""The papers' figures as small multiples; a detector has the same colour everywhere."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from palimpsest.detectors.registry import REGISTRY
from palimpsest.evaluation.report import MEAN
from palimpsest.reports.reference import position, printed
from palimpsest.reports.runs import LEVELS, Configuration, Runs, is_mean
from palimpsest.reports.tables import (
    METRICS,
    NO_INTERVAL,
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
# Five dashes and seven colours, each in turn: 35 detectors in a row have each a pair of its own.
DASHES: tuple[Any, ...] = ("-", "--", ":", "-.", (0, (6, 1.5, 1, 1.5, 1, 1.5)))
FILLS = ("full", "none", "left", "right", "top", "bottom")
GAP = 0.12  # between panels, in panels
LINES = (0.0, 0.25, 0.5, 0.75, 1.0)  # of the grid

_TITLES = {**METRICS, "accuracy": "Accuracy"}
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
    """How a line is drawn: the marker's fill tells one detector's configurations apart.

    No two detectors that the project knows have the same colour and dash, or the same colour and
    marker.
    """

    colour: str
    dash: Any
    marker: str
    fill: str


def looks(runs: Runs) -> dict[tuple[str, str], Look]:
    """(configuration's name, design) -> its look; all but the fill is the detector's own."""
    found = {}
    seen: dict[tuple[str, str], int] = {}
    for configuration in runs.configurations:
        key = (configuration.detector, configuration.design)
        place = _place(configuration.detector)
        found[configuration.name, configuration.design] = Look(
            COLOURS[place % len(COLOURS)],
            DASHES[place % len(DASHES)],
            MARKERS[place % len(MARKERS)],
            FILLS[seen.setdefault(key, 0) % len(FILLS)],
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
                    *_notes(runs, points),
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
            notes=_notes(runs, points),
        )
    ]


def _title(metrics: str) -> str:
    return " and ".join(_TITLES[metric] for metric in metrics.split(" and "))


def names(
    shown: Sequence[tuple[Configuration, str]], levels: Sequence[str]
) -> dict[tuple[str, str], str]:
    """(configuration's name, level) -> what the legend says."""
    return {(c.name, level): named(c, level, levels) for c, level in shown}


def _notes(runs: Runs, points: pd.DataFrame) -> list[str]:
    shaded = "Shaded: the 95 % interval over documents; for several seeds one standard deviation."
    unsure = [NO_INTERVAL] if points["low"].isna().any() else []
    return [shaded, *unsure, *demo_note(runs)]


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
            return means.assign(row=means["metric"].map(_TITLES))
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

    All panels are drawn into one pair of axes, each at its own offset, so that a detector is one
    line with gaps: matplotlib takes a tenth of the time that axes for each panel take.

    Raises:
        MissingError: no points.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.collections import LineCollection
    from matplotlib.figure import Figure as Canvas

    if points.empty:
        raise MissingError("the runs have no such numbers")
    rows, columns = list(dict.fromkeys(points["row"])), _in_order(points)
    ticks = _ticks(points, x)
    lefts = {column: i * (1 + GAP) for i, column in enumerate(columns)}
    bottoms = {row: (len(rows) - 1 - i) * (1 + GAP) for i, row in enumerate(rows)}
    points = points.assign(
        x=points["column"].map(lefts) + points[x].map(ticks),
        y=points["row"].map(bottoms) + points["value"],
        panel=points["row"].map(bottoms) * len(columns) + points["column"].map(lefts),
    )

    width = max(2.5 * len(columns), 7) + 0.9
    legend_columns = max(1, int(width / (0.7 + 0.058 * max(map(len, label_of.values())))))
    legend_lines = -(-len(label_of) // legend_columns)
    below, above = 0.45 + 0.16 * legend_lines, 0.3
    height = 1.75 * len(rows) + below + above
    figure = Canvas(figsize=(width, height))
    FigureCanvasAgg(figure)
    axes = figure.add_axes(
        (0.75 / width, below / height, 1 - 0.85 / width, 1 - (below + above) / height)
    )
    axes.set_axis_off()
    axes.set_xlim(-0.02, len(columns) * (1 + GAP) - GAP + 0.02)
    axes.set_ylim(-0.04, len(rows) * (1 + GAP) - GAP + 0.04)
    grid = [[(left, bottom + y), (left + 1, bottom + y)] for left in lefts.values()
            for bottom in bottoms.values() for y in LINES]  # fmt: skip
    grid += [[(left + at, bottom), (left + at, bottom + 1)] for left in lefts.values()
             for bottom in bottoms.values() for at in ticks.values()]  # fmt: skip
    axes.add_collection(LineCollection(grid, colors="#dddddd", linewidths=0.5), autolim=False)

    handles, shade = [], 0.12 if len(label_of) < 8 else 0.05
    for (name, level), label in label_of.items():
        mine = points[(points["configuration"] == name) & (points["level"] == level)]
        if mine.empty:
            continue
        look = look_of[name, str(mine["design"].iloc[0])]
        line = _with_gaps(mine)
        handles += axes.plot(
            line["x"], line["y"], linestyle=look.dash, color=look.colour, marker=look.marker,
            fillstyle=look.fill, markersize=3.6, markeredgewidth=0.8, linewidth=1.2, label=label,
        )  # fmt: skip
        low, high = (line["y"] - line["value"] + line[side].clip(0, 1) for side in ("low", "high"))
        axes.fill_between(line["x"], low, high, color=look.colour, alpha=shade, linewidth=0)

    text: dict[str, Any] = {"fontsize": 7, "color": "#333333"}
    for column, left in lefts.items():
        axes.text(left + 0.5, max(bottoms.values()) + 1.06, column, ha="center", fontsize=9)
        for name, at in ticks.items():
            tick = f"{name:.0f} %" if x == "coverage" else name
            axes.text(left + at, -0.05, tick, ha="center", va="top", **text)
    for row, bottom in bottoms.items():
        axes.text(-0.19, bottom + 0.5, row, rotation=90, ha="center", va="center", fontsize=8)
        for y in LINES:
            axes.text(-0.03, bottom + y, f"{y:.0%}", ha="right", va="center", **text)
    figure.legend(
        handles=handles,
        loc="lower center",
        ncols=legend_columns,
        fontsize=7,
        frameon=False,
        handlelength=4,  # shows a whole dash
    )
    return (
        _saved(figure, "png", dpi=120, metadata={"Software": None}),
        _saved(figure, "pdf", metadata={"CreationDate": None}),
    )


def _with_gaps(points: pd.DataFrame) -> pd.DataFrame:
    """The points panel by panel from left to right, with an empty one after each panel."""
    gaps = points.drop_duplicates("panel").assign(x=np.inf, y=np.nan, value=np.nan, low=np.nan)
    ordered = pd.concat([points, gaps]).sort_values(["panel", "x"])
    return ordered.replace({"x": {np.inf: np.nan}})


def _saved(figure: Any, kind: str, **options: Any) -> bytes:
    file = BytesIO()
    figure.savefig(file, format=kind, **options)
    return file.getvalue()


def _in_order(points: pd.DataFrame) -> list[str]:
    """The columns: domains in the papers' order, anything else as it comes."""
    found = list(dict.fromkeys(points["column"]))
    return sorted(found, key=[*domains(points), *found].index)


def _ticks(points: pd.DataFrame, x: str) -> dict[Any, float]:
    """Where in a panel, from 0 to 1, each value of x stands: coverage to scale, others evenly."""
    if x == "coverage":
        return {value: value / 100 for value in sorted(set(points["coverage"]))}
    found = versions(points) if x == "version" else sorted(set(points["operation"]))
    return {value: (i + 0.5) / len(found) for i, value in enumerate(found)}
