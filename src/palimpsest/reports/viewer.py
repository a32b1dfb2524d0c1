"""One trajectory as one HTML page: what each version changed, and what detectors made of it."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from math import isnan, nan
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader

from palimpsest.errors import InputError
from palimpsest.records import read_rows
from palimpsest.reports.runs import labels
from palimpsest.tracking import evaluations

# detector -> sample_id -> its row of predictions
Predictions = Mapping[str, Mapping[str, Mapping[str, Any]]]

# Okabe and Ito's colours, which readers with any colour vision can tell apart.
OPERATION_COLOURS = {
    "polish": "#0072b2",
    "paraphrase": "#e69f00",
    "style": "#cc79a7",
    "compress": "#d55e00",
    "expand": "#009e73",
}


def trajectory_ids(files: Sequence[Path]) -> list[str]:
    """The ids of all trajectories, in the order of the texts."""
    rows = chain.from_iterable(read_rows(file, ["trajectory_id"]) for file in files)
    return list(dict.fromkeys(row["trajectory_id"] for row in rows))


def read_trajectory(files: Sequence[Path], trajectory_id: str) -> list[dict[str, Any]]:
    """The samples of one trajectory in the order of its versions.

    Raises:
        InputError: a trajectory that is not there; the message names some that are.
    """
    rows: list[dict[str, Any]] = []
    others: set[str] = set()
    for row in chain.from_iterable(map(read_rows, files)):
        if row["trajectory_id"] == trajectory_id:
            rows.append(row)
        elif len(others) < 5:
            others.add(row["trajectory_id"])
    if not rows:
        raise InputError(
            f"{files[0].parent} has no trajectory {trajectory_id!r}; it has, among others, "
            f"{', '.join(sorted(others))}"
        )
    return rows


def first_trajectories(rows: Iterable[Mapping[str, Any]]) -> list[list[Mapping[str, Any]]]:
    """The first trajectory of each domain and variant, from samples in the order of the texts."""
    found: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
    for row in rows:
        group = found.setdefault((row["domain"], row["variant"]), [])
        if not group or group[0]["trajectory_id"] == row["trajectory_id"]:
            group.append(row)
    return list(found.values())


def write_pages(
    trajectories: Iterable[Sequence[Mapping[str, Any]]], predictions: Predictions, folder: Path
) -> None:
    """One page for each trajectory; ids are opaque, so files are named by domain and variant."""
    folder.mkdir(parents=True, exist_ok=True)
    for i, rows in enumerate(trajectories):
        name = "-".join(filter(None, (f"{i:02}", rows[0]["variant"])))
        (folder / f"{name}.html").write_text(render(rows, predictions), encoding="utf-8")


def answers_to(rows: Iterable[Mapping[str, Any]], path: Path) -> dict[str, dict[str, Any]]:
    """Of a file of predictions those for these samples, by sample."""
    samples = {row["sample_id"] for row in rows}
    return {row["sample_id"]: row for row in read_rows(path) if row["sample_id"] in samples}


def predictions_of_runs(benchmark: str, rows: Sequence[Mapping[str, Any]]) -> Predictions:
    """What the finished evaluations in the store say about these samples; nothing if there is none.

    An evaluation of other texts may have samples of the same ids: only those of equal text count.
    """
    try:
        runs = [run for run in evaluations(benchmark) if run.params["design"] == rows[0]["design"]]
    except InputError:  # texts can be looked at before any detector has read them
        return {}
    names = labels(runs)
    shown = {(row["sample_id"], row["text"]): row for row in rows}
    found = {}
    for run in runs:
        judged = read_rows(run.artifact("samples.parquet"), ["sample_id", "text"])
        same = [shown[key] for row in judged if (key := (row["sample_id"], row["text"])) in shown]
        if same:
            predictions = run.artifact("predictions.parquet")
            found[names[run.run_id]] = answers_to(same, predictions)
    return found


def render(rows: Sequence[Mapping[str, Any]], predictions: Predictions) -> str:
    """A page that needs no network, with each detector's scores where there are predictions."""
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent), autoescape=True, trim_blocks=True
    )
    return environment.get_template("viewer.html").render(
        first=rows[0],
        versions=[_version(row, predictions) for row in rows],
        colours=OPERATION_COLOURS,
        detectors=list(predictions),
    )


def _version(row: Mapping[str, Any], predictions: Predictions) -> dict[str, Any]:
    """What a reader sees of one version: its sentences by paragraph, and what detectors say."""
    answers = {name: of_run.get(row["sample_id"], {}) for name, of_run in predictions.items()}
    paragraphs: list[list[dict[str, Any]]] = [[]]
    end_before = 0
    for i, (start, end) in enumerate(row["sentence_spans"]):
        if "\n" in row["text"][end_before:start]:
            paragraphs.append([])
        end_before = end
        history = row["sentence_history"][i]
        changes = [step for step in history if step["outcome"].startswith(("accepted", "kept"))]
        operation = changes[-1]["operation"] if changes else None
        if not history and row["sentence_labels"][i]:
            # an adopted text has no history, but each version revises all AI sentences again
            operation = row["operation"]
        scores = {}
        for name, answer in answers.items():
            score = _sentence_score(row, answer, i)
            if not isnan(score):
                scores[name] = score
        paragraphs[-1].append(
            {
                "id": row["sentence_ids"][i],
                "text": row["text"][start:end],
                "is_ai": row["sentence_labels"][i],
                "operation": operation,
                "unchanged": bool(changes) and changes[-1] is not history[-1],
                "history": history,
                "scores": scores,
            }
        )
    return {
        "name": row["version"],
        "operation": row["operation"],
        "target": row["target_coverage"],
        "realised": 100 * row["ai_sentence_ratio"],
        "paragraphs": paragraphs,
        "cells": [sentence for paragraph in paragraphs for sentence in paragraph],
        "scores": {
            name: answer["document"]
            for name, answer in answers.items()
            if answer and not isnan(answer["document"])
        },
    }


def _sentence_score(row: Mapping[str, Any], answer: Mapping[str, Any], i: int) -> float:
    """The method's own score of a sentence, else the mean of its words'; nan where it has none."""
    if answer.get("sentences") is not None:
        return float(answer["sentences"][i])
    if answer.get("words") is None:
        return nan
    first, last = row["sentence_spans"][i]
    inside = [
        score
        for (start, end), score in zip(row["word_spans"], answer["words"], strict=True)
        if start < last and end > first and not isnan(score)
    ]
    return sum(inside) / len(inside) if inside else nan
