"""The MLflow runs of `train` and `evaluate`: opened, filled, and logged again where one is lost."""

import json
import logging
import shutil
from collections.abc import Mapping
from contextlib import AbstractContextManager
from typing import Any

import pandas as pd

from palimpsest import tracking
from palimpsest.errors import InputError
from palimpsest.evaluation.summary import mlflow_metrics
from palimpsest.locks import alone
from palimpsest.params import Params, project_root
from palimpsest.stages.files import (
    HISTORY_FILE,
    METRICS_FILE,
    MODEL_FOLDER,
    PAGES_FOLDER,
    PLOTS_FOLDER,
    PREDICTIONS_FILE,
    RECORDS_FILE,
    REVISIONS_FILE,
    RUN_FILE,
    SAMPLES_FILE,
    STATISTICS_FILE,
    THRESHOLDS_FILE,
)
from palimpsest.stages.identity import (
    configuration,
    evaluate_key,
    evaluate_params,
    tags,
    thresholds_for,
    title,
    train_key,
    train_params,
)

log = logging.getLogger(__name__)


def only_training(params: Params) -> AbstractContextManager[bool]:
    """One training of a key at a time, in all of DVC's folders; whether this one had to wait."""
    lock_file = project_root() / ".palimpsest" / "locks" / f"train-{train_key(params)}"
    return alone(lock_file, "the same training of another run")


def restore_training(params: Params) -> bool:
    """Put a finished training's model with the same key in place; False where there is none."""
    store = tracking.client()
    experiment_id = tracking.create_store(params.benchmark)
    run_id = tracking.find_finished(store, experiment_id, train_key(params))
    if run_id is None:
        return False
    try:
        model = tracking.artifact(run_id, "model")
    except tracking.LostArtifactError as error:
        log.warning("training all the same: %s", error)
        return False
    shutil.rmtree(MODEL_FOLDER, ignore_errors=True)
    shutil.copytree(model, MODEL_FOLDER)
    log.info("took the model of run %s", run_id)
    return True


def train_run(params: Params) -> AbstractContextManager[tracking.Run]:
    return tracking.tracked(
        params.benchmark,
        "train",
        train_key(params),
        name=f"train {title(params)}",
        params=train_params(params),
        tags=tags(params.train.select, learning=True),
    )


def log_training(run: tracking.Run, thresholds: Mapping[str, Any]) -> None:
    for level, found in thresholds["levels"].items():
        if calibrated := found["calibrated"]:
            run.metric(f"threshold/{level}", calibrated["value"])
    _tag_revisions(run, thresholds)
    run.artifact(MODEL_FOLDER, "model")


def evaluate_run(params: Params, trained: str) -> AbstractContextManager[tracking.Run]:
    """`trained` is the key of the training whose model is evaluated."""
    return tracking.tracked(
        params.benchmark,
        "evaluate",
        evaluate_key(params),
        name=title(params),
        params=evaluate_params(params),
        tags={
            **tags(params.evaluate.select),
            tracking.CONFIGURATIONS: configuration(params),
        },
        parent_key=trained,
    )


def log_evaluation(run: tracking.Run, thresholds: Mapping[str, Any]) -> None:
    _tag_revisions(run, thresholds)
    for metric, value, step in mlflow_metrics(pd.read_parquet(RECORDS_FILE)):
        run.metric(metric, value, step)
    for metric, value in json.loads(METRICS_FILE.read_text()).items():
        run.metric(metric, value)
    for file in (RECORDS_FILE, STATISTICS_FILE, REVISIONS_FILE, THRESHOLDS_FILE):
        run.artifact(file, "tables")
    # what each prediction is held against, so that runs are compared from the store alone
    run.artifact(SAMPLES_FILE)
    run.artifact(PREDICTIONS_FILE)
    run.artifact(PLOTS_FOLDER, "plots")
    run.artifact(PAGES_FOLDER, "trajectories")


def _tag_revisions(run: tracking.Run, thresholds: Mapping[str, Any]) -> None:
    """Which weights the detector's models had, also where params leave that to the hub."""
    for setting, revision in thresholds["revisions"].items():
        run.tag(f"palimpsest.{setting}", revision)


def track(params: Params) -> None:
    """Log the runs behind the present outputs where the store lacks them.

    DVC takes a stage's outputs from its cache without running it, so a store that is new or was
    lost has no run for them.

    Raises:
        InputError: outputs that are missing or that belong to other params.
    """
    thresholds = thresholds_for(params)
    if not RUN_FILE.is_file():
        raise InputError(f"{RUN_FILE} does not exist: run `dvc repro`")
    if json.loads(RUN_FILE.read_text()) != {
        "train": train_key(params),
        "evaluate": evaluate_key(params),
    }:
        raise InputError(f"{RUN_FILE} is of another state of params or code: run `dvc repro`")
    with train_run(params) as run:
        for metric, value, step in json.loads(HISTORY_FILE.read_text()):
            run.metric(metric, value, step)
        log_training(run, thresholds)
    with evaluate_run(params, thresholds["key"]) as run:
        log_evaluation(run, thresholds)
