"""The types that flow through the pipeline, and the Parquet schemas between its stages."""

import gc
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice, starmap
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from palimpsest.errors import InputError

Language = Literal["en", "zh"]
Level = Literal["document", "sentence", "word", "character"]
Split = Literal["train", "dev", "test"]
Reason = Literal["too_short", "truncated", "unparsed", "refused", "error"]

PARAGRAPH_BREAK = "\n\n"
SENTENCE_BREAK = " "


class Span(NamedTuple):
    """Half-open character offsets into a text."""

    start: int
    end: int


class ScoredSpan(NamedTuple):
    start: int
    end: int
    score: float


@dataclass(frozen=True, slots=True)
class Sentence:
    """One sentence of a human document; `id` and `paragraph` are stable over all versions."""

    id: str
    paragraph: str
    text: str


@dataclass(frozen=True, slots=True)
class Document:
    """A normalised human document; documents of one `group` must share a split."""

    doc_id: str
    domain: str
    language: Language
    group: str
    split: Split | None
    sentences: tuple[Sentence, ...]


@dataclass(frozen=True, slots=True)
class Text:
    """All that a detector may see when it scores.

    `id` is opaque; `sentences` and `words` are ordered, disjoint spans of `text`.
    """

    id: str
    text: str
    language: Language
    domain: str
    sentences: tuple[Span, ...]
    words: tuple[Span, ...]


@dataclass(frozen=True, slots=True)
class Labelled(Text):
    """What a detector may see when it learns; a label of 1 means AI, for documents AI involved."""

    doc_id: str
    label: int
    sentence_labels: tuple[int, ...]
    word_labels: tuple[int, ...]
    generator: str
    design: str
    version: str | None
    operation: str | None


@dataclass(frozen=True, slots=True)
class Scores:
    """A detector's answer for one text: higher = more likely AI, always; nan = not scored."""

    document: float
    document_label: int | None = None  # where the method decides itself; -1 = undecided
    sentences: np.ndarray | None = None  # (S,) float32
    words: np.ndarray | None = None  # (W,) float32, one per benchmark word, not per subword
    sentence_labels: np.ndarray | None = None  # (S,) int8 where the method decides; -1 undecided
    word_labels: np.ndarray | None = None  # (W,) int8, likewise
    spans: tuple[ScoredSpan, ...] | None = None  # span methods only
    reason: Reason | None = None
    note: str = ""
    seen: float = 1.0  # share of the text that the method read


# Whether a character is white space, by its code point; no later one is (U+3000 is the last).
_BLANK = np.array([*map(str.isspace, map(chr, range(0x3001))), False])


def word_bounds(text: str, language: Language) -> np.ndarray:
    """The benchmark's words, (W, 2) int32: where each starts and where it ends.

    Runs of non-white-space in English, jieba's words in Chinese.
    """
    if language == "en":
        codes = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), dtype="<u4")
        blank = _BLANK[np.minimum(codes, len(_BLANK) - 1)]
        edges = np.flatnonzero(np.diff(blank, prepend=True, append=True))
        return edges.astype(np.int32).reshape(-1, 2)
    import jieba

    # jieba announces on its own logger that it builds a dictionary
    jieba.setLogLevel("WARNING")
    words = [(start, end) for word, start, end in jieba.tokenize(text) if not word.isspace()]
    return np.array(words, np.int32).reshape(-1, 2)


def word_spans(text: str, language: Language) -> tuple[Span, ...]:
    """The same words as spans, which take seven times as long to make."""
    return tuple(starmap(Span, word_bounds(text, language).tolist()))


_SPANS = pa.list_(pa.list_(pa.int32(), 2))
_LABELS = pa.list_(pa.int8())

DOCUMENTS = pa.schema(
    [
        ("doc_id", pa.string()),
        ("domain", pa.string()),
        ("language", pa.string()),
        ("group", pa.string()),
        ("split", pa.string()),
        (
            "sentences",
            pa.list_(
                pa.struct([("id", pa.string()), ("paragraph", pa.string()), ("text", pa.string())])
            ),
        ),
    ]
)

# One row per sample. `sentence_history` holds, for each sentence, every revision that was tried.
TEXTS = pa.schema(
    [
        ("sample_id", pa.string()),
        ("trajectory_id", pa.string()),
        ("doc_id", pa.string()),
        ("group", pa.string()),
        ("domain", pa.string()),
        ("language", pa.string()),
        ("generator", pa.string()),
        ("prompt_set", pa.string()),
        ("design", pa.string()),
        ("variant", pa.string()),
        ("version", pa.string()),
        ("operation", pa.string()),
        ("target_coverage", pa.int16()),
        ("label", pa.int8()),
        ("text", pa.string()),
        ("sentence_ids", pa.list_(pa.string())),
        ("sentence_spans", _SPANS),
        ("sentence_labels", _LABELS),
        (
            "sentence_history",
            pa.list_(
                pa.list_(
                    pa.struct(
                        [
                            ("version", pa.string()),
                            ("operation", pa.string()),
                            ("generator", pa.string()),
                            ("attempts", pa.int16()),
                            ("outcome", pa.string()),
                        ]
                    )
                )
            ),
        ),
        ("word_spans", _SPANS),
        ("word_labels", _LABELS),
        ("ai_spans", _SPANS),
        ("ai_sentence_ratio", pa.float64()),
        ("ai_token_ratio", pa.float64()),
        ("ai_char_ratio", pa.float64()),
    ]
)

SPLITS = pa.schema([("doc_id", pa.string()), ("group", pa.string()), ("split", pa.string())])

PREDICTIONS = pa.schema(
    [
        ("sample_id", pa.string()),
        ("document", pa.float64()),
        ("document_label", pa.int8()),
        ("sentences", pa.list_(pa.float32())),
        ("words", pa.list_(pa.float32())),
        ("sentence_labels", _LABELS),
        ("word_labels", _LABELS),
        (
            "spans",
            pa.list_(
                pa.struct([("start", pa.int32()), ("end", pa.int32()), ("score", pa.float64())])
            ),
        ),
        ("reason", pa.string()),
        ("note", pa.string()),
        ("seen", pa.float64()),
    ]
)

# One row per number. `threshold` says where the threshold behind a decision came from:
# published, calibrated, decided (the method's own labels) or none (threshold-free metrics).
# `version` is "all" and `coverage` null where a number spans a trajectory's versions.
RECORDS = pa.schema(
    [
        ("level", pa.string()),
        ("metric", pa.string()),
        ("value", pa.float64()),
        ("n", pa.int64()),
        ("n_unscored", pa.int64()),
        ("low", pa.float64()),
        ("high", pa.float64()),
        ("version", pa.string()),
        ("variant", pa.string()),
        ("operation", pa.string()),
        ("coverage", pa.int16()),
        ("domain", pa.string()),
        ("generator", pa.string()),
        ("held_out", pa.bool_()),
        ("design", pa.string()),
        ("detector", pa.string()),
        ("regime", pa.string()),
        ("threshold", pa.string()),
        ("threshold_value", pa.float64()),
    ]
)


# Texts and spans hardly repeat: without dictionaries files are smaller and written twice as fast.
_LAYOUT = {"compression": "zstd", "use_dictionary": False}


def write_rows(path: Path, schema: pa.Schema, rows: Iterable[dict[str, Any]]) -> int:
    """Write rows to a Parquet file in bounded memory and return how many there were.

    The file appears under its name only when it is complete.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(path.name + ".partial")
    count = 0
    remaining = iter(rows)
    chunks = iter(lambda: list(islice(remaining, 100)), [])
    batches = (record_batch(chunk, schema) for chunk in chunks)
    # A row is hundreds of Python objects, and the garbage collector goes through all that live
    # again and again. So few rows are such objects at a time, and what is older is left out.
    gc.freeze()
    try:
        with pq.ParquetWriter(partial, schema, **_LAYOUT) as writer:
            while group := list(islice(batches, 10)):
                count += sum(map(len, group))
                writer.write_table(pa.Table.from_batches(group))
        partial.replace(path)
    finally:
        gc.unfreeze()
        partial.unlink(missing_ok=True)  # `dvc checkout` would stop at a file that it does not know
    return count


_NONE = np.empty((0, 2), np.int32)


def record_batch(rows: list[dict[str, Any]], schema: pa.Schema) -> pa.RecordBatch:
    """Rows as Arrow's columns; a value that a row lacks is null, spans must be there.

    Arrow's own `from_pylist` takes no arrays of pairs, and lists of pairs cost a fifth of a build.
    """

    def column(field: pa.Field) -> pa.Array:
        values: list[Any] = [row.get(field.name) for row in rows]
        if field.type != _SPANS:
            return pa.array(values, field.type)
        pairs = [np.reshape(np.asarray(value, np.int32), (-1, 2)) for value in values]
        offsets = np.cumsum([0, *map(len, values)], dtype=np.int32)
        return pa.ListArray.from_arrays(
            offsets,
            pa.FixedSizeListArray.from_arrays(np.concatenate([_NONE, *pairs]).ravel(), 2),
        )

    return pa.RecordBatch.from_arrays([column(field) for field in schema], schema=schema)


def write_batches(path: Path, batches: Iterator[pa.RecordBatch]) -> int:
    """Write batches of one schema, of which there is at least one; how many rows there are."""
    first = next(batches)
    count = 0
    with pq.ParquetWriter(path, first.schema, **_LAYOUT) as writer:
        for batch in chain([first], batches):
            writer.write_batch(batch)
            count += len(batch)
    return count


def write_frame(path: Path, schema: pa.Schema, content: pd.DataFrame) -> None:
    """Write a DataFrame to a Parquet file with exactly the schema's columns and types."""
    pq.write_table(pa.Table.from_pandas(content, schema=schema, preserve_index=False), path)


def read_batches(path: Path, columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
    """The rows of a Parquet file, or of all Parquet files of a folder in name order, in batches.

    Columns that a file lacks are left out.

    Raises:
        InputError: no such file.
    """
    files = sorted(path.glob("*.parquet")) if path.is_dir() else [path]
    if not files or not files[0].exists():
        raise InputError(f"{path} does not exist: run `dvc repro` to build it")
    for file in files:
        with pq.ParquetFile(file) as parquet:
            names = parquet.schema_arrow.names
            wanted = None if columns is None else [name for name in columns if name in names]
            yield from parquet.iter_batches(batch_size=1000, columns=wanted)


def read_rows(path: Path, columns: Sequence[str] | None = None) -> Iterator[dict[str, Any]]:
    """The same rows one by one."""
    for batch in read_batches(path, columns):
        yield from batch.to_pylist()


def frame(rows: Iterable[dict[str, Any]], schema: pa.Schema) -> pd.DataFrame:
    """Rows as a DataFrame with the schema's columns, also when there are none."""
    content: pd.DataFrame = record_batch(list(rows), schema).to_pandas()
    return content


def document_row(document: Document) -> dict[str, Any]:
    return {
        "doc_id": document.doc_id,
        "domain": document.domain,
        "language": document.language,
        "group": document.group,
        "split": document.split,
        "sentences": [
            {"id": s.id, "paragraph": s.paragraph, "text": s.text} for s in document.sentences
        ],
    }


def read_documents(path: Path) -> Iterator[Document]:
    for row in read_rows(path):
        yield Document(**{**row, "sentences": tuple(Sentence(**s) for s in row["sentences"])})


def _spans(pairs: Iterable[Sequence[int]]) -> tuple[Span, ...]:
    return tuple(Span(start, end) for start, end in pairs)


def _unlabelled(row: dict[str, Any]) -> dict[str, Any]:
    return {
        "id": row["sample_id"],
        "text": row["text"],
        "language": row["language"],
        "domain": row["domain"],
        "sentences": _spans(row["sentence_spans"]),
        "words": _spans(row["word_spans"]),
    }


def text_of(row: dict[str, Any]) -> Text:
    """The part of a sample's row that a detector may see when it scores."""
    return Text(**_unlabelled(row))


def labelled_of(row: dict[str, Any]) -> Labelled:
    """A sample's row with its labels, for a detector that learns."""
    return Labelled(
        **_unlabelled(row),
        doc_id=row["doc_id"],
        label=row["label"],
        sentence_labels=tuple(row["sentence_labels"]),
        word_labels=tuple(row["word_labels"]),
        generator=row["generator"],
        design=row["design"],
        version=row["version"],
        operation=row["operation"],
    )


def prediction_row(sample_id: str, scores: Scores) -> dict[str, Any]:
    def listed(values: np.ndarray | None) -> list[Any] | None:
        return None if values is None else values.tolist()

    return {
        "sample_id": sample_id,
        "document": scores.document,
        "document_label": scores.document_label,
        "sentences": listed(scores.sentences),
        "words": listed(scores.words),
        "sentence_labels": listed(scores.sentence_labels),
        "word_labels": listed(scores.word_labels),
        "spans": None if scores.spans is None else [s._asdict() for s in scores.spans],
        "reason": scores.reason,
        "note": scores.note,
        "seen": scores.seen,
    }
