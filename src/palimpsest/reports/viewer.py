"""One trajectory as one HTML page: what each version changed, and what detectors made of it."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader

from palimpsest.errors import InputError
from palimpsest.records import read_rows

# Okabe and Ito's colours, which readers with any colour vision can tell apart.
OPERATION_COLOURS = {
    "polish": "#0072b2",
    "paraphrase": "#e69f00",
    "style": "#cc79a7",
    "compress": "#d55e00",
    "expand": "#009e73",
}


def read_trajectory(texts: Path, trajectory_id: str) -> list[dict[str, Any]]:
    """The samples of one trajectory in the order of its versions.

    Raises:
        InputError: a trajectory that is not there; the message names some that are.
    """
    rows: list[dict[str, Any]] = []
    others: set[str] = set()
    for row in read_rows(texts):
        if row["trajectory_id"] == trajectory_id:
            rows.append(row)
        elif len(others) < 5:
            others.add(row["trajectory_id"])
    if not rows:
        raise InputError(
            f"{texts} has no trajectory {trajectory_id!r}; it has, among others, "
            f"{', '.join(sorted(others))}"
        )
    return rows


def render(rows: Sequence[Mapping[str, Any]], scores: Mapping[str, Mapping[str, Any]]) -> str:
    """A page that needs no network; `scores` are rows of predictions by sample_id, where known."""
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent), autoescape=True, trim_blocks=True
    )
    versions = [
        {
            "name": row["version"],
            "operation": row["operation"],
            "target": row["target_coverage"],
            "realised": 100 * row["ai_sentence_ratio"],
            "paragraphs": _paragraphs(row, scores.get(row["sample_id"], {})),
            "score": scores.get(row["sample_id"], {}).get("document"),
        }
        for row in rows
    ]
    for version in versions:
        version["cells"] = [s for paragraph in version["paragraphs"] for s in paragraph]
    return environment.get_template("viewer.html").render(
        first=rows[0], versions=versions, colours=OPERATION_COLOURS
    )


def _paragraphs(
    row: Mapping[str, Any], prediction: Mapping[str, Any]
) -> list[list[dict[str, Any]]]:
    """The sentences of each paragraph, with what a reader sees of them."""
    paragraphs: list[list[dict[str, Any]]] = [[]]
    end_before = 0
    scores = prediction.get("sentences")
    for i, (start, end) in enumerate(row["sentence_spans"]):
        if "\n" in row["text"][end_before:start]:
            paragraphs.append([])
        end_before = end
        history = row["sentence_history"][i]
        applied = [step for step in history if not step["outcome"].startswith("rejected")]
        paragraphs[-1].append(
            {
                "id": row["sentence_ids"][i],
                "text": row["text"][start:end],
                "operation": applied[-1]["operation"] if applied else None,
                "history": history,
                "score": None if scores is None else scores[i],
            }
        )
    return paragraphs
