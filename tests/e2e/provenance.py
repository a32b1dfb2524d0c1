"""What must hold for every sample of a cumulative dataset, whoever wrote it."""

from itertools import pairwise
from pathlib import Path
from typing import Any

from palimpsest.records import Document, read_documents, read_rows
from palimpsest.trajectories.selection import chosen


def check_provenance(folder: Path) -> int:
    """Assert it for all of a project's samples; the number of trajectories."""
    documents = {d.doc_id: d for d in read_documents(folder / "artifacts/documents.parquet")}
    trajectories: dict[str, list[dict[str, Any]]] = {}
    for row in read_rows(folder / "artifacts/texts/cumulative/texts.parquet"):
        _check_spans(row, documents[row["doc_id"]])
        _check_labels(row)
        trajectories.setdefault(row["trajectory_id"], []).append(row)
    for rows in trajectories.values():
        assert [row["version"] for row in rows] == [f"v{t}" for t in range(9)]
        ai = [{i for i, label in enumerate(row["sentence_labels"]) if label} for row in rows]
        assert all(earlier <= later for earlier, later in pairwise(ai))
    return len(trajectories)


def _check_spans(row: dict[str, Any], document: Document) -> None:
    """Spans cut exactly the AI sentences out; human ones are byte for byte those of v0."""
    labels = row["sentence_labels"]
    assert row["ai_spans"] == [s for s, ai in zip(row["sentence_spans"], labels, strict=True) if ai]
    for (start, end), original, ai in zip(
        row["sentence_spans"], document.sentences, labels, strict=True
    ):
        assert ai or row["text"][start:end] == original.text
        assert row["text"][start:end].strip() == row["text"][start:end] != ""
    ai_sentences = {i for i, label in enumerate(labels) if label}
    assert ai_sentences <= set(chosen(row["doc_id"], len(labels), row["target_coverage"]))


def _check_labels(row: dict[str, Any]) -> None:
    """Word labels and realised coverage agree with the spans; the history explains each label."""
    words = [
        int(any(start < b and a < end for a, b in row["ai_spans"]))
        for start, end in row["word_spans"]
    ]
    assert row["word_labels"] == words
    assert [row["text"][a:b] for a, b in row["word_spans"]] == row["text"].split()
    assert row["ai_sentence_ratio"] == sum(row["sentence_labels"]) / len(row["sentence_labels"])
    assert row["ai_token_ratio"] == sum(words) / len(words)
    assert row["ai_char_ratio"] == sum(b - a for a, b in row["ai_spans"]) / len(row["text"])
    assert row["label"] == int(row["version"] != "v0")
    for label, history in zip(row["sentence_labels"], row["sentence_history"], strict=True):
        assert label == int(any(not e["outcome"].startswith("rejected") for e in history))
