"""A run's records, condensed: what MLflow plots by version, and a dozen numbers to sort by."""

from collections.abc import Iterator

import pandas as pd

from palimpsest.evaluation.report import ALL, MEAN, preferred_threshold

CURVES = ("accuracy", "f1_ai", "macro_f1", "fnr", "auroc")
HEADLINES = ("accuracy", "f1_ai", "auroc")
TRAJECTORY_HEADLINES = ("inversions", "coverage_rho", "detected")


def version_number(version: str) -> int:
    """The step at which a version's metrics are logged: v3 -> 3."""
    return int(version[1:])


def by_version(records: pd.DataFrame) -> pd.DataFrame:
    """The curves of the generators' mean: one row for each (level, metric, domain, version).

    `name` and `step` are those of `mlflow_metrics`.
    """
    shown = _curves(records[(records["generator"] == MEAN) & ~records["held_out"]])
    columns = ["name", "step", "level", "metric", "domain", "version", "variant", "value",
               "n", "n_unscored"]  # fmt: skip
    return shown[columns]


def mlflow_metrics(records: pd.DataFrame) -> Iterator[tuple[str, float, int]]:
    """(name, value, step) of the curves; the other metrics are in the records alone.

    The name is `<level>/<metric>/<domain>`, the step the version's number. In the design `coverage`
    `/<operation>` follows and the step is the coverage in per cent; in `operation` it is
    `/<version>-<coverage>`, where the version is named by its operation, and the step is 0. For
    generators that are held out `held-out/<generator>/` comes first.
    """
    known = by_version(records)
    yield from zip(known["name"], known["value"], known["step"], strict=True)
    held_out = _curves(records[records["held_out"]])
    names = "held-out/" + held_out["generator"] + "/" + held_out["name"]
    yield from zip(names, held_out["value"], held_out["step"], strict=True)


def headline(records: pd.DataFrame) -> dict[str, float]:
    """`<level>_<metric>`: the mean over versions, and variants, of the domains' mean."""
    shown = _means(records)
    by = shown["version"] != ALL
    shown = shown[
        (by & shown["metric"].isin(HEADLINES)) | (~by & shown["metric"].isin(TRAJECTORY_HEADLINES))
    ]
    means = shown.groupby(shown["level"] + "_" + shown["metric"])["value"].mean()
    return {str(name): float(value) for name, value in means.items()}


def result_lines(records: pd.DataFrame) -> list[str]:
    """One line for each level: the highest coverage's AUROC against v0, and `headline`'s F1-AI.

    n counts the units behind a number.
    """
    shown = _means(records)
    shown = shown[shown["version"] != ALL]
    result = []
    for level, at_level in shown.groupby("level", sort=False):
        said = []
        auroc = at_level[at_level["metric"] == "auroc"]
        last = auroc[auroc["coverage"] == auroc["coverage"].max()]
        if len(last):
            versions = "/".join(last["version"].unique())
            said.append(
                f"AUROC {last['value'].mean():.2f} at {versions} against v0 (n={last['n'].sum()})"
            )
        f1 = at_level[at_level["metric"] == "f1_ai"]
        if len(f1):
            said.append(f"mean F1-AI {f1['value'].mean():.2f} (n={f1['n'].sum()})")
        if said:
            result.append(f"{level}: {', '.join(said)}")
    return result


def _means(records: pd.DataFrame) -> pd.DataFrame:
    """The means over in-distribution generators and domains, with the threshold that is shown."""
    means = (records["generator"] == MEAN) & (records["domain"] == MEAN)
    return preferred_threshold(records[means & ~records["held_out"]])


def _curves(records: pd.DataFrame) -> pd.DataFrame:
    """The curves' records with MLflow's `name` and `step`."""
    curves = records[records["metric"].isin(CURVES) & (records["version"] != ALL)]
    shown = preferred_threshold(curves)
    name = shown["level"] + "/" + shown["metric"] + "/" + shown["domain"]
    fixed = shown["design"] == "operation"
    suffix = shown["variant"].where(~fixed, shown["version"] + "-" + shown["variant"])
    step = shown["coverage"].where(shown["design"] == "coverage", 0).astype(int)
    numbered = ~shown["design"].isin(["coverage", "operation"])
    step = step.where(~numbered, shown["version"].where(numbered, "v0").map(version_number))
    name = name.where(suffix == "", name + "/" + suffix)
    return shown.assign(name=name, step=step)
