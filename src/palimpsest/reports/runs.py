"""Which of the store's runs a report shows, and all their numbers as one table."""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

import pandas as pd

from palimpsest.detectors.registry import REGISTRY
from palimpsest.errors import InputError
from palimpsest.evaluation.report import MEAN, preferred_threshold
from palimpsest.records import RECORDS
from palimpsest.reports.evidence import Evidence
from palimpsest.reports.reference import paper_level, position
from palimpsest.tracking import Evaluation

# Runs that differ in these alone are one configuration.
SEEDS = frozenset({"seed", "train.seed"})
# Runs that differ in one of these were judged on different texts.
TEXTS = ("texts", "generators", "select.domains")
REGIMES = ("zero-shot", "llm-as-detector", "trained", "baseline")
LEVELS = ("document", "sentence", "word", "character")
METRICS = ("accuracy", "f1_ai", "macro_f1", "fnr", "auroc", "scored")

_NUMBER = [
    "level", "metric", "variant", "version", "operation", "coverage", "domain", "generator",
    "held_out", "threshold",
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class Configuration:
    """Runs that differ in their seeds alone, oldest first, and the name that they go by.

    `recency` grows with the time of the newest one.
    """

    name: str
    runs: tuple[Evaluation, ...]
    recency: int

    @property
    def newest(self) -> Evaluation:
        """Of several seeds the run that stands for all where documents are resampled."""
        return self.runs[-1]

    @property
    def detector(self) -> str:
        return self.runs[-1].params["detector"]

    @property
    def regime(self) -> str:
        return self.runs[-1].params["regime"]

    @property
    def design(self) -> str:
        return self.runs[-1].params["design"]

    @property
    def apart_from_design(self) -> frozenset[tuple[str, str]]:
        """What the same detector in another design shares with it."""
        own = SEEDS | {"design", "select.design", "texts"}
        return frozenset((k, v) for k, v in self.runs[-1].params.items() if k not in own)

    @property
    def run_ids(self) -> tuple[str, ...]:
        return tuple(run.run_id for run in self.runs)


@dataclass(frozen=True, slots=True)
class Runs:
    """The configurations of a report, each on its design's one set of texts.

    `numbers` holds, for each (configuration's name, design, level), one row for each (metric,
    variant, version, domain, generator): the mean `value` over the seeds, their standard deviation
    `sd` (nan for one run) and the interval `low` to `high` (for several seeds, one sd around the
    mean). Of several thresholds behind a number it has the preferred one. `left_out` pairs other
    runs with the reason. `evidence` gives what the records do not hold.
    """

    configurations: tuple[Configuration, ...]
    numbers: Mapping[tuple[str, str, str], pd.DataFrame]
    left_out: tuple[tuple[Evaluation, str], ...] = ()
    evidence: Evidence = field(default_factory=Evidence, compare=False, repr=False)

    @property
    def evaluations(self) -> list[Evaluation]:
        return [run for configuration in self.configurations for run in configuration.runs]

    @property
    def is_demo(self) -> bool:
        return any(run.params["profile"] == "demo" for run in self.evaluations)

    def of_design(self, design: str) -> list[Configuration]:
        return [c for c in self.configurations if c.design == design]

    def in_both(self, first: str, second: str) -> list[tuple[Configuration, Configuration]]:
        """The configurations that were run in two designs, each as a pair."""
        others = {c.apart_from_design: c for c in self.of_design(second)}
        pairs = ((c, others.get(c.apart_from_design)) for c in self.of_design(first))
        return [(own, other) for own, other in pairs if other is not None]

    def of(self, configuration: Configuration, level: str) -> pd.DataFrame:
        """A configuration's numbers at a level."""
        return self.numbers[configuration.name, configuration.design, level]

    def level_of(self, configuration: Configuration, levels: Sequence[str]) -> str | None:
        """The level, one of `levels`, at which a configuration is shown; None where it has none.

        Its own one is the paper's for the detector, else the registry's, else the finest it has.
        """
        name, design = configuration.name, configuration.design
        has = [level for level in LEVELS if (name, design, level) in self.numbers]
        entry = REGISTRY.get(configuration.detector)
        own = paper_level(configuration.detector, configuration.regime) or (
            entry.native if entry else has[-1]
        )
        if own in has and own in levels:
            return own
        return next((level for level in levels if level in has), None)


def choose(evaluations: Sequence[Evaluation], texts: Collection[str] = ()) -> Runs:
    """The runs to show: of each design those on the newest texts, all with one split.

    `evaluations` are oldest first. `texts` names sets of texts (the param of the runs) that are
    taken before newer ones.

    Raises:
        InputError: texts on which there is no run, or runs of an older version alone.
    """
    current = [run for run in evaluations if _is_current(run)]
    if not current:
        raise InputError("all runs are of an older palimpsest: run `dvc repro`")
    known = {run.params["texts"] for run in current}
    if missing := set(texts) - known:
        raise InputError(
            f"no finished run is on texts {', '.join(sorted(missing))}; there are runs on "
            f"{', '.join(sorted(known))}"
        )
    wanted = [run for run in current if run.params["texts"] in texts] or current
    splits = wanted[-1].params["splits"]
    chosen: dict[str, tuple[str, ...]] = {}
    for run in [*current, *wanted]:  # a later one replaces an earlier one
        if run.params["splits"] == splits:
            chosen[run.params["design"]] = _texts_of(run)
    shown, left_out = [], []
    for run in evaluations:
        if not _is_current(run):
            left_out.append((run, "recorded by an older palimpsest"))
        elif run.params["splits"] != splits:
            left_out.append((run, "other documents or splits"))
        elif _texts_of(run) != chosen[run.params["design"]]:
            left_out.append((run, f"other texts of the design {run.params['design']}"))
        else:
            shown.append(run)
    configurations = _configurations(shown)
    return Runs(configurations, _numbers(configurations), tuple(left_out))


def _is_current(run: Evaluation) -> bool:
    return set(RECORDS.names) <= set(run.records.columns)


def _texts_of(run: Evaluation) -> tuple[str, ...]:
    return tuple(run.params.get(name, "") for name in TEXTS)


def _configurations(runs: Sequence[Evaluation]) -> tuple[Configuration, ...]:
    """In the order of regimes, then of the paper, then of names."""
    groups: dict[tuple[tuple[str, str], ...], list[Evaluation]] = defaultdict(list)
    for run in runs:
        groups[tuple(sorted((k, v) for k, v in run.params.items() if k not in SEEDS))].append(run)
    names: dict[str, str] = {}
    for design in {run.params["design"] for run in runs}:
        newest = [group[-1] for group in groups.values() if group[-1].params["design"] == design]
        names |= labels(newest, SEEDS)
    place = {run.run_id: i for i, run in enumerate(runs)}
    found = [
        Configuration(names[group[-1].run_id], tuple(group), place[group[-1].run_id])
        for group in groups.values()
    ]

    def order(configuration: Configuration) -> tuple[int, int, str]:
        place = position(configuration.detector)
        regime = configuration.regime
        return (
            REGIMES.index(regime) if regime in REGIMES else len(REGIMES),
            len(found) if place is None else place,
            configuration.name,
        )

    return tuple(sorted(found, key=order))


def _numbers(configurations: Sequence[Configuration]) -> dict[tuple[str, str, str], pd.DataFrame]:
    numbers = {}
    for configuration in configurations:
        records = pd.concat([_preferred(run.records) for run in configuration.runs])
        if len(configuration.runs) > 1:
            by_seed = records.groupby(_NUMBER, sort=False, dropna=False, as_index=False)
            records = by_seed.agg(
                value=("value", "mean"), sd=("value", "std"), n=("n", "first"),
                n_unscored=("n_unscored", "first"), seeds=("value", "size"),
            )  # fmt: skip
            records["low"] = records["value"] - records["sd"]
            records["high"] = records["value"] + records["sd"]
        columns = [*_NUMBER, "value", "sd", "seeds", "low", "high", "n", "n_unscored"]
        described = records[columns].assign(
            configuration=configuration.name,
            detector=configuration.detector,
            regime=configuration.regime,
            design=configuration.design,
            run_id=" ".join(configuration.run_ids),
        )
        for level, at_level in described.groupby("level", sort=False):
            numbers[configuration.name, configuration.design, str(level)] = at_level
    return numbers


def _preferred(records: pd.DataFrame) -> pd.DataFrame:
    shown = preferred_threshold(records[records["metric"].isin(METRICS)])
    return shown.assign(sd=float("nan"), seeds=1)


def labels(runs: Sequence[Evaluation], ignored: Collection[str] = ()) -> dict[str, str]:
    """A short name for each run: its detector, and what tells it from others of that detector."""
    names = {}
    for run in runs:
        same = [other for other in runs if other.params["detector"] == run.params["detector"]]
        keys = sorted({key for other in same for key in other.params} - set(ignored))
        differing = [k for k in keys if len({other.params.get(k) for other in same}) > 1]
        detail = ", ".join(f"{key}={run.params.get(key, 'none')}" for key in differing)
        names[run.run_id] = run.params["detector"] + (f" ({detail})" if detail else "")
    return names


def model_names(run: Evaluation) -> str:
    """The models that a run's detector reads texts with, as its params name them."""
    keys = ("model", "sampling", "scoring", "filler")
    names = (run.params.get(f"settings.{key}") for key in keys)
    return ", ".join(dict.fromkeys(name for name in names if name)) or "–"


def is_mean(numbers: pd.DataFrame) -> pd.Series:
    """Which numbers are the mean over the in-distribution generators."""
    return (numbers["generator"] == MEAN) & ~numbers["held_out"].astype(bool)
