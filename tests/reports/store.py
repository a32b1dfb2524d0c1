"""An MLflow store of synthetic runs, filled through tracking's own functions."""

import tempfile
from pathlib import Path

from palimpsest.evaluation.summary import version_number
from palimpsest.records import PREDICTIONS, write_rows
from palimpsest.tracking import tracked
from tests.reports import synthetic

LEVELS = {
    "document": ("document",),
    "sentence": ("document", "sentence"),
    "word": ("document", "sentence", "word"),
}


def log(
    benchmark: str,
    detector: str,
    regime: str,
    design: str,
    native: str = "document",
    seed: int = 0,
    documents: int = 8,
) -> None:
    """One finished evaluation, with the artifacts and the curves that a real one has."""
    params = synthetic.params(detector, regime, design, seed, documents=str(documents))
    tags = {"prompt_set": "few-shot@abc"}
    records = synthetic.records(detector, regime, design, LEVELS[native], seed)
    key = "-".join([detector, regime, design, str(seed), str(documents)])
    with (
        tempfile.TemporaryDirectory() as name,
        tracked(benchmark, "evaluate", key, name=detector, params=params, tags=tags) as run,
    ):
        folder = Path(name)
        tables = folder / "tables"
        tables.mkdir()
        records.to_parquet(tables / "records.parquet", index=False)
        synthetic.statistics(design).to_csv(tables / "statistics.csv", index=False)
        run.artifact(tables, "tables")
        rows = synthetic.predictions(detector, design, documents, seed)
        write_rows(folder / "predictions.parquet", PREDICTIONS, rows)
        run.artifact(folder / "predictions.parquet")
        if design in ("cumulative", "independent"):
            means = records.query("generator == 'mean' and domain == 'mean'")
            for row in means.to_dict("records"):
                metric = f"{row['level']}/{row['metric']}/mean"
                run.metric(metric, row["value"], version_number(row["version"]))
