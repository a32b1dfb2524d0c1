"""A small synthetic OpAI-Bench release on disk, in the present and in the older style."""

import csv
import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from palimpsest.corpora.opai_bench import SCHEDULE, tagged
from palimpsest.records import PARAGRAPH_BREAK, Document, word_spans
from palimpsest.trajectories.adopt import runs
from palimpsest.trajectories.provenance import SentenceState, compose, overlapping
from palimpsest.trajectories.selection import chosen

OLD_NAMES = {
    "edit_operation": "operation",
    "generator": "model_used",
    "text": "text_clean",
    "token_labels": "tok_labels",
    "sentence_labels": "sent_labels",
    "ai_spans_token": "ai_spans_tok",
    "ai_sentence_ratio": "AI_sent_ratio",
    "ai_token_ratio": "AI_token_ratio",
    "ai_char_ratio": "AI_char_ratio",
    "id": "doc_id",
}


def record(
    document: Document,
    generator: str,
    version: str,
    operation: str,
    coverage: int,
    *,
    split: str = "train",
) -> dict[str, Any]:
    """One row of the release; its lists are Python lists still."""
    edited = set(chosen(document.doc_id, len(document.sentences), coverage))
    sentences = [
        SentenceState(s.id, s.paragraph, f"Well, {operation}: {s.text}" if i in edited else s.text)
        for i, s in enumerate(document.sentences)
    ]
    text, spans = compose(sentences)
    ai_spans = [list(spans[i]) for i in sorted(edited)]
    words = word_spans(text, document.language)
    labels = overlapping(words, [spans[i] for i in sorted(edited)])
    return {
        "record_id": f"{document.doc_id}-{generator}-{version}",
        "id": document.doc_id,
        "domain": document.domain,
        "generator": generator,
        "version": version,
        "edit_operation": operation,
        "split": split,
        "text": text,
        "text_tagged": tagged(text, ai_spans),
        "tokens": [text[start:end] for start, end in words],
        "token_labels": labels,
        "sentences": [s.text for s in sentences],
        "sentence_labels": [int(i in edited) for i in range(len(sentences))],
        "ai_spans_char": ai_spans,
        "ai_spans_token": runs(labels),
        "ai_sentence_ratio": len(edited) / len(sentences),
        "ai_token_ratio": sum(labels) / len(labels),
        "ai_char_ratio": sum(end - start for start, end in ai_spans) / len(text),
    }


def trajectory(document: Document, generator: str, split: str = "train") -> list[dict[str, Any]]:
    return [
        record(document, generator, version, operation, coverage, split=split)
        for version, (operation, coverage) in SCHEDULE.items()
    ]


def write_release_file(
    folder: Path, name: str, records: Sequence[dict[str, Any]], *, old: bool = False
) -> Path:
    """Write records; `old`: older column names, Python literals, the model with its provider."""
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    rows: Iterable[dict[str, Any]] = records
    if old:
        rows = [
            {
                OLD_NAMES.get(k, k): f"provider/{v}" if k == "generator" else v
                for k, v in r.items()
                if k != "record_id"
            }
            for r in records
        ]
    render = repr if old else lambda value: json.dumps(value, ensure_ascii=False)
    with path.open("w", encoding="utf-8", newline="") as file:
        lines = csv.writer(file)
        for i, row in enumerate(rows):
            if not i:
                lines.writerow(row)
            lines.writerow([render(v) if isinstance(v, list) else v for v in row.values()])
    return path


def plain_text(document: Document) -> str:
    """The human text as the release composes it."""
    text, _ = compose([SentenceState(s.id, s.paragraph, s.text) for s in document.sentences])
    assert PARAGRAPH_BREAK in text
    return text
