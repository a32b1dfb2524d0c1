"""A run's records, condensed: what MLflow plots by version, and a dozen numbers to sort by."""

from collections.abc import Iterator

import pandas as pd

from palimpsest.evaluation.report import MEAN, preferred_threshold

HEADLINES = ("accuracy", "f1_ai", "auroc")


def version_number(version: str) -> int:
    """The step at which a version's metrics are logged: v3 -> 3."""
    return int(version[1:])


def by_version(records: pd.DataFrame) -> pd.DataFrame:
    """One row for each (level, metric, domain, version), the generators' mean, with its step."""
    shown = preferred_threshold(records)
    shown = shown[(shown["generator"] == MEAN) & ~shown["held_out"]]
    columns = ["level", "metric", "domain", "version", "value", "n", "n_unscored"]
    return shown[columns].assign(step=shown["version"].map(version_number))


def mlflow_metrics(records: pd.DataFrame) -> Iterator[tuple[str, float, int]]:
    """(name, value, step), the name `<level>/<metric>/<domain>`.

    Generators that are held out stand under `held-out/<generator>/`.
    """
    known = by_version(records)
    names = known["level"] + "/" + known["metric"] + "/" + known["domain"]
    yield from zip(names, known["value"], known["step"], strict=True)
    held_out = preferred_threshold(records[records["held_out"]])
    names = pd.Series("held-out", index=held_out.index, dtype=str)
    for column in ("generator", "level", "metric", "domain"):
        names = names + "/" + held_out[column]
    steps = held_out["version"].map(version_number)
    yield from zip(names, held_out["value"], steps, strict=True)


def headline(records: pd.DataFrame) -> dict[str, float]:
    """`<level>_<metric>`: the mean over the versions of the domains' mean."""
    table = by_version(records)
    table = table[(table["domain"] == MEAN) & table["metric"].isin(HEADLINES)]
    means = table.groupby(table["level"] + "_" + table["metric"])["value"].mean()
    return {str(name): float(value) for name, value in means.items()}
