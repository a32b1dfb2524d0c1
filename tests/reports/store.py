"""An MLflow store of synthetic runs, filled through tracking's own functions."""

import json
import tempfile
from functools import partial
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from palimpsest.evaluation.report import Context, evaluate
from palimpsest.evaluation.samples import TEXT_COLUMNS
from palimpsest.evaluation.summary import version_number
from palimpsest.records import PREDICTIONS, TEXTS, read_batches, write_rows
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
    compress: float = 0.5,
    judged: bool = False,
) -> None:
    """One finished evaluation, with the artifacts and the curves that a real one has.

    Its records are made up, or where it is `judged` those of its predictions.
    """
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
        samples = pa.Table.from_pylist(list(synthetic.texts(design, documents)), schema=TEXTS)
        pq.write_table(samples.select(TEXT_COLUMNS), folder / "samples.parquet")
        run.artifact(folder / "samples.parquet")
        rows = synthetic.predictions(detector, design, native, documents, seed, compress)
        write_rows(folder / "predictions.parquet", PREDICTIONS, rows)
        run.artifact(folder / "predictions.parquet")
        levels = {"published": None, "calibrated": {"value": 0.5}}
        thresholds = dict.fromkeys(("document", "sentence", "word"), levels)
        if judged:
            records = evaluate(
                read_batches(folder / "samples.parquet"),
                partial(read_batches, folder / "predictions.parquet"),
                thresholds,
                Context(detector, regime, design, frozenset({"h"}), resamples=100, seed=0),
            )
        records.to_parquet(tables / "records.parquet", index=False)
        synthetic.statistics(design).to_csv(tables / "statistics.csv", index=False)
        (tables / "thresholds.json").write_text(json.dumps({"levels": thresholds}))
        run.artifact(tables, "tables")
        if design in ("cumulative", "independent"):
            means = records.query("generator == 'mean' and domain == 'mean' and version != 'all'")
            for row in means.to_dict("records"):
                metric = f"{row['level']}/{row['metric']}/mean"
                run.metric(metric, row["value"], version_number(row["version"]))
