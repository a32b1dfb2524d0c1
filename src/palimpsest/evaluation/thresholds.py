"""Thresholds: the published one where there is one, and one calibrated on human dev texts."""

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from palimpsest.evaluation.levels import own_levels, units
from palimpsest.records import (
    PREDICTIONS,
    TEXTS,
    Level,
    Scores,
    prediction_row,
    record_batch,
)


@dataclass(frozen=True, slots=True)
class Calibrated:
    """Above `value` a unit is called AI; `rate` of the `n` human units were, `fpr` was asked for.

    `too_few` says that n human units cannot show so small a rate; `value` is their largest score.
    """

    value: float
    fpr: float
    rate: float
    n: int
    too_few: bool


def calibrate(human_scores: np.ndarray, fpr: float) -> Calibrated | None:
    """The smallest human score that at most a share `fpr` of the human scores exceed.

    Exact order statistic, whatever the scores' scale; nan scores are left out; none: None.
    """
    scores = np.sort(human_scores[~np.isnan(human_scores)])[::-1]
    n = len(scores)
    if n == 0:
        return None
    allowed = int(fpr * n + 1e-9)
    value = float(scores[allowed])
    return Calibrated(value, fpr, float((scores > value).mean()), n, too_few=allowed == 0)


def build_thresholds(
    human: Iterable[tuple[Mapping[str, Any], Scores]], published: Mapping[Level, float], fpr: float
) -> dict[str, dict[str, Any]]:
    """Each level's thresholds as thresholds.json holds them.

    `human` are the v0 dev samples with their scores; null stands where there is no threshold.
    """
    pairs = list(human)
    texts = record_batch([dict(row) for row, _ in pairs], TEXTS)
    answers = [prediction_row(row["sample_id"], scores) for row, scores in pairs]
    predictions = record_batch(answers, PREDICTIONS)
    own = own_levels(lambda columns: [predictions.select(columns)])
    found = units(texts, predictions, {}, own)
    result: dict[str, dict[str, Any]] = {}
    for level, unit in found.items():
        calibrated = calibrate(unit.scores, fpr)
        result[level] = {
            "published": published.get(level),
            "calibrated": asdict(calibrated) if calibrated else None,
        }
    return result
