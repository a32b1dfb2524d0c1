"""Samples and answers as the Parquet files hold them, from a few words per sample."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pandas as pd
import pyarrow as pa

from palimpsest.evaluation.levels import Batches
from palimpsest.evaluation.report import Context, evaluate
from palimpsest.records import PREDICTIONS, TEXTS, Scores, prediction_row, word_spans

SCHEMA = TEXTS if "variant" in TEXTS.names else TEXTS.append(pa.field("variant", pa.string()))

# of OpAI-Bench's schedule
COVERAGE = {f"v{t}": c for t, c in enumerate((0, 15, 25, 40, 50, 60, 75, 90, 100))}


def sample(
    labels: Sequence[int] = (0,),
    *,
    doc: str = "d0",
    version: str = "v1",
    coverage: int | None = None,
    domain: str = "essays",
    generator: str = "near",
    variant: str = "",
    design: str = "cumulative",
) -> dict[str, Any]:
    """A text of one sentence of three words for each label; label 1 makes all three AI."""
    sentences = [f"w{i} is here." for i in range(len(labels))]
    text = " ".join(sentences)
    starts = [sum(len(s) + 1 for s in sentences[:i]) for i in range(len(labels))]
    spans = [[start, start + len(s)] for start, s in zip(starts, sentences, strict=True)]
    share = sum(labels) / len(labels) if labels else 0.0
    target = COVERAGE[version] if coverage is None else coverage
    return {
        "sample_id": f"{doc}/{generator}/{variant}/{version}",
        "trajectory_id": f"{doc}/{generator}/{design}/{variant}",
        "doc_id": doc,
        "domain": domain,
        "generator": generator,
        "design": design,
        "variant": variant,
        "version": version,
        "operation": "polish" if target else "none",
        "target_coverage": target,
        "label": int(target > 0),
        "text": text,
        "sentence_spans": spans,
        "sentence_labels": list(labels),
        "word_spans": [list(span) for span in word_spans(text, "en")],
        "word_labels": [label for label in labels for _ in range(3)],
        "ai_spans": [span for span, label in zip(spans, labels, strict=True) if label],
        "ai_sentence_ratio": share,
    }


def texts(rows: Iterable[dict[str, Any]]) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist(list(rows), schema=SCHEMA)


def predictions(answers: Iterable[tuple[str, Scores]]) -> pa.RecordBatch:
    rows = [prediction_row(sample_id, scores) for sample_id, scores in answers]
    return pa.RecordBatch.from_pylist(rows, schema=PREDICTIONS)


def reader(*batches: pa.RecordBatch) -> Batches:
    """Predictions as `evaluate` and `collect` read them."""
    return lambda columns: [batch.select(columns) for batch in batches]


def context(**changed: Any) -> Context:
    values: dict[str, Any] = {
        "detector": "d", "regime": "zero-shot", "design": "cumulative",
        "held_out": frozenset({"far"}), "resamples": 50, "seed": 0,
    }  # fmt: skip
    return Context(**{**values, **changed})


def records(
    answers: Iterable[tuple[dict[str, Any], Scores]],
    thresholds: Mapping[str, Any] | None = None,
    **changed: Any,
) -> pd.DataFrame:
    """The records of samples with their answers."""
    pairs = list(answers)
    return evaluate(
        [texts(row for row, _ in pairs)],
        reader(predictions((row["sample_id"], scores) for row, scores in pairs)),
        thresholds or {},
        context(**changed),
    )


def only(table: pd.DataFrame, metric: str, **where: str) -> pd.Series:
    """The one record of a metric that has these values."""
    rows = table[table["metric"] == metric]
    for column, wanted in where.items():
        rows = rows[rows[column] == wanted]
    assert len(rows) == 1, rows.to_string()
    return rows.iloc[0]
