"""Small sources of human texts on disk, and the params that read them."""

import csv
import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from palimpsest.params import Corpus


def corpus(source: Path, **values: Any) -> Corpus:
    """Params of the stage `corpus` that reject nothing, but for what `values` say."""
    given: dict[str, Any] = {
        "source": str(source),
        "format": "texts",
        "language": "en",
        "domains": "all",
        "id_column": "id",
        "text_column": "text",
        "qualify_ids": False,
        "min_sentences": 1,
        "max_sentences": {"default": None},
        "documents_per_domain": None,
        "limit": None,
    }
    return Corpus(**{**given, **values})


def story(sentences: int, about: str = "The cat") -> str:
    """One paragraph with so many sentences."""
    return " ".join(f"{about} slept for {hours} hours." for hours in range(1, sentences + 1))


def write_csv(path: Path, rows: Iterable[Sequence[str]], delimiter: str = ",") -> Path:
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, delimiter=delimiter).writerows(rows)
    return path


def write_jsonl(path: Path, rows: Iterable[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def write_parquet(path: Path, columns: dict[str, list[Any]]) -> Path:
    pq.write_table(pa.table(columns), path)
    return path
