"""Where the stages' files lie, from the project's folder."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from palimpsest.errors import InputError

ARTIFACTS = Path("artifacts")
DOCUMENTS_FILE = ARTIFACTS / "documents.parquet"
SPLITS_FILE = ARTIFACTS / "splits.parquet"
STATISTICS_FILE = ARTIFACTS / "statistics.csv"
REVISIONS_FILE = ARTIFACTS / "revisions.csv"
MODEL_FOLDER = ARTIFACTS / "model"
THRESHOLDS_FILE = MODEL_FOLDER / "thresholds.json"
HISTORY_FILE = MODEL_FOLDER / "history.json"
SAMPLES_FILE = ARTIFACTS / "samples.parquet"
PREDICTIONS_FILE = ARTIFACTS / "predictions.parquet"
RECORDS_FILE = ARTIFACTS / "records.parquet"
METRICS_FILE = ARTIFACTS / "metrics.json"
RUN_FILE = ARTIFACTS / "run.json"
PLOTS_FOLDER = ARTIFACTS / "plots"
PAGES_FOLDER = ARTIFACTS / "trajectories"


def texts_folder(design: str, held_out: bool = False) -> Path:
    """Where a design's texts are; held-out generators' are apart, so that no training sees them."""
    return ARTIFACTS / ("texts-held-out" if held_out else "texts") / design


def text_files(design: str) -> list[Path]:
    """All files with texts of a design.

    Raises:
        InputError: the design is not built.
    """
    folders = (texts_folder(design, held_out) for held_out in (False, True))
    files = [file for folder in folders for file in sorted(folder.glob("*.parquet"))]
    if not files:
        raise InputError(
            f"{texts_folder(design)} does not exist: run `dvc repro generate`, or for another "
            f"design `dvc exp run -S evaluate.select.design={design}`"
        )
    return files


def write_json(path: Path, content: Mapping[str, Any] | list[Any]) -> None:
    path.write_text(json.dumps(content, indent=2, sort_keys=True, allow_nan=False) + "\n")
