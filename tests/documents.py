"""Human documents for tests, made of sentences that are all different, and rows of their texts."""

from collections.abc import Iterable
from typing import Any

from palimpsest.records import TEXTS, Document, Sentence, record_batch

_SUBJECTS = (
    "The miller",
    "A heron",
    "Our neighbour",
    "The old bridge",
    "Every lamp",
    "Her brother",
)
_REST = (
    "was seen at the weir before the rain began",
    "kept the boats from drifting into the reeds",
    "had never been painted in a colour that lasted",
    "took longer to reach the square than anyone expected",
)


def make_document(doc_id: str = "d1", n: int = 10, domain: str = "essays") -> Document:
    """`n` sentences in paragraphs of four."""
    sentences = tuple(
        Sentence(
            id=f"s{i + 1:04d}",
            paragraph=f"p{i // 4 + 1:03d}",
            text=f"{_SUBJECTS[i % 6]} {_REST[i % 4]} on day {i + 1}.",
        )
        for i in range(n)
    )
    return Document(doc_id, domain, "en", doc_id, None, sentences)


def as_written(rows: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Samples as they are read back from a Parquet file, which can be compared."""
    written: list[dict[str, Any]] = record_batch(list(rows), TEXTS).to_pylist()
    return written
