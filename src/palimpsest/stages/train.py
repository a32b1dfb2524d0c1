"""A fitted detector and its thresholds."""

import shutil
from typing import Any

from palimpsest.detectors.interface import Runtime
from palimpsest.detectors.registry import find, make
from palimpsest.evaluation.thresholds import build_thresholds
from palimpsest.params import Params
from palimpsest.records import Labelled, labelled_of, text_of
from palimpsest.stages.files import HISTORY_FILE, MODEL_FOLDER, THRESHOLDS_FILE, write_json
from palimpsest.stages.identity import made_for, train_key
from palimpsest.stages.runs import log_training, only_training, restore_training, train_run
from palimpsest.stages.selection import selected


def train(params: Params) -> None:
    """Fit the detector and calibrate its thresholds on human dev texts.

    Of runs that are at the same training at once, one trains, and the others take its model.
    """
    with only_training(params) as waited:
        if not (waited and restore_training(params)):
            _train(params)


def _train(params: Params) -> None:
    given = params.detector_settings()
    learns = find(params.detector, given).regime in ("trained", "baseline")
    detector = make(params.detector, given, Runtime(params.device, params.dtype, params.train.seed))
    splits = {"train", "dev"} if learns else {"dev"}
    parts: dict[str, list[Labelled]] = {"train": [], "dev": []}
    human: dict[str, dict[str, Any]] = {}  # by document: every trajectory starts with the same text
    for row, its_split in selected(params.train.select, splits, learning=True):
        if learns:
            parts[its_split].append(labelled_of(row))
        if its_split == "dev" and row["operation"] == "none":
            human[row["doc_id"]] = row

    history: list[tuple[str, float, int]] = []
    with train_run(params) as run:

        def note(metric: str, value: float, step: int) -> None:
            history.append((metric, value, step))
            run.metric(metric, value, step)

        shutil.rmtree(MODEL_FOLDER, ignore_errors=True)
        MODEL_FOLDER.mkdir(parents=True)
        detector.fit(parts["train"], parts["dev"], note)
        detector.save(MODEL_FOLDER)
        scores = detector.score([text_of(row) for row in human.values()])
        answers = zip(human.values(), scores, strict=True)
        levels = build_thresholds(answers, detector.published, params.train.fpr)
        made = {
            "key": train_key(params),
            "made_for": made_for(params),
            "revisions": getattr(detector, "revisions", {}),
            "levels": levels,
        }
        write_json(THRESHOLDS_FILE, made)
        write_json(HISTORY_FILE, history)
        log_training(run, made)
