"""`palimpsest tables` on a store of 200 runs."""

import os
import tempfile
import time
from itertools import product
from pathlib import Path
from unittest.mock import patch

from palimpsest.reports.report import write_report
from palimpsest.reports.runs import choose
from palimpsest.tracking import evaluations
from tests.reports.store import log

BENCHMARK = "opai-bench"
DETECTORS = (
    *(("document", "zero-shot", f"statistic-{i}") for i in range(8)),
    *(("document", "zero-shot", name) for name in ("fast-detectgpt", "radar", "desklib")),
    ("sentence", "zero-shot", "adaloc"),
    ("word", "zero-shot", "damasha"),
    ("sentence", "llm-as-detector", "claude-haiku"),
    ("word", "trained", "genai-sentence"),
    ("sentence", "baseline", "length"),
)  # fmt: skip
DESIGNS = ("cumulative", "independent", "coverage", "operation")
SEEDS = 3


def measure() -> dict[str, float]:
    """Three seeds of 16 detectors in four designs, eight of them on twice the documents, too."""
    # without a tracking URI the store is in DVC's root
    with tempfile.TemporaryDirectory() as name, patch.dict(os.environ, {"DVC_ROOT": name}):
        os.environ.pop("MLFLOW_TRACKING_URI", None)
        return _measured(Path(name))


def _measured(folder: Path) -> dict[str, float]:
    count = 0
    for (native, regime, detector), design, seed in product(DETECTORS, DESIGNS, range(SEEDS)):
        log(BENCHMARK, detector, regime, design, native, seed)
        count += 1
    for native, regime, detector in DETECTORS[:8]:
        log(BENCHMARK, detector, regime, "cumulative", native, documents=16)
        count += 1
    begin = time.perf_counter()
    found = evaluations(BENCHMARK)
    read = time.perf_counter()
    runs = choose(found)
    chosen = time.perf_counter()
    paths = write_report(runs, folder / "reports", BENCHMARK)
    end = time.perf_counter()
    return {
        "runs": count,
        "files": len(paths),
        "seconds to read the store": read - begin,
        "seconds to choose and join": chosen - read,
        "seconds to write": end - chosen,
        "seconds": end - begin,
        "MB of index.html": paths[0].stat().st_size / 1e6,
    }
