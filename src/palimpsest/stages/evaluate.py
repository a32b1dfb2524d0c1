"""Predictions on the test texts and all metrics."""

import logging
from collections.abc import Iterator
from functools import partial
from itertools import chain, islice
from typing import Any

from tqdm import tqdm

from palimpsest.detectors.interface import Detector, Runtime
from palimpsest.detectors.registry import detector_class, find
from palimpsest.evaluation.report import Context
from palimpsest.evaluation.report import evaluate as evaluate_predictions
from palimpsest.evaluation.samples import TEXT_COLUMNS
from palimpsest.evaluation.summary import by_version, headline, result_lines
from palimpsest.params import Params
from palimpsest.records import (
    PREDICTIONS,
    RECORDS,
    prediction_row,
    read_batches,
    text_of,
    write_batches,
    write_frame,
    write_rows,
)
from palimpsest.reports.viewer import answers_to, first_trajectories, write_pages
from palimpsest.stages.files import (
    METRICS_FILE,
    MODEL_FOLDER,
    PAGES_FOLDER,
    PLOTS_FOLDER,
    PREDICTIONS_FILE,
    RECORDS_FILE,
    RUN_FILE,
    SAMPLES_FILE,
    write_json,
)
from palimpsest.stages.identity import evaluate_key, thresholds_for, title
from palimpsest.stages.runs import evaluate_run, log_evaluation
from palimpsest.stages.selection import batches, held_out_generators, selected

log = logging.getLogger(__name__)

TEXTS_AT_ONCE = 64  # scored in one call, so that memory does not grow with the corpus


def evaluate(params: Params) -> None:
    """Score the selected test texts and put every metric into one table."""
    given = params.detector_settings()
    thresholds = thresholds_for(params)
    runtime = Runtime(params.device, params.dtype, params.train.seed)
    detector = detector_class(params.detector, given).load(MODEL_FOLDER, runtime)
    select = params.evaluate.select
    context = Context(
        detector=title(params),
        regime=find(params.detector, given).regime,
        design=select.design,
        held_out=held_out_generators(select),
        resamples=params.evaluate.resamples,
        seed=params.evaluate.seed,
        probabilities=getattr(detector, "probabilities", frozenset()),
    )

    def test_rows() -> Iterator[dict[str, Any]]:
        return (row for row, _ in selected(select, {"test"}))

    with evaluate_run(params, thresholds["key"]) as run:
        total = write_batches(SAMPLES_FILE, batches(select, {"test"}, TEXT_COLUMNS))
        write_rows(PREDICTIONS_FILE, PREDICTIONS, _score(detector, test_rows(), total))
        samples, predictions = read_batches(SAMPLES_FILE), partial(read_batches, PREDICTIONS_FILE)
        records = evaluate_predictions(samples, predictions, thresholds["levels"], context)
        write_frame(RECORDS_FILE, RECORDS, records)
        write_json(METRICS_FILE, headline(records))
        PLOTS_FOLDER.mkdir(exist_ok=True)
        by_version(records).to_csv(PLOTS_FOLDER / "by_version.csv", index=False)
        shown = first_trajectories(test_rows())
        answered = answers_to(chain.from_iterable(shown), PREDICTIONS_FILE)
        write_pages(shown, {title(params): answered}, PAGES_FOLDER)
        write_json(RUN_FILE, {"train": thresholds["key"], "evaluate": evaluate_key(params)})
        log_evaluation(run, thresholds)
    for line in result_lines(records):
        log.info("%s, %s", title(params), line)
    log.info("next: `make tables` for tables and figures, `make ui` to compare runs")


def _score(
    detector: Detector, rows: Iterator[dict[str, Any]], total: int
) -> Iterator[dict[str, Any]]:
    """Predictions in the rows' order, some texts at a time, so that memory does not grow."""
    with tqdm(desc="score", unit="text", total=total) as bar:
        while chunk := list(islice(rows, TEXTS_AT_ONCE)):
            answers = detector.score([text_of(row) for row in chunk])
            for row, scores in zip(chunk, answers, strict=True):
                yield prediction_row(row["sample_id"], scores)
            bar.update(len(chunk))
