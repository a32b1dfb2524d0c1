"""How many texts there are and how long they are: the numbers of the paper's Tables 2, 5 and 6."""

from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import pandas as pd

COLUMNS = (
    "design", "domain", "generator", "doc_id", "group", "trajectory_id", "sentence_spans",
    "word_spans",
)  # fmt: skip
ALL = "all"  # stands for the in-distribution generators together


@dataclass(slots=True)
class _Cell:
    documents: set[str] = field(default_factory=set)
    trajectories: set[str] = field(default_factory=set)
    samples: int = 0
    sentences: int = 0
    words: int = 0

    def add(self, row: Mapping[str, Any]) -> None:
        self.documents.add(row["group"])
        self.trajectories.add(row["trajectory_id"])
        self.samples += 1
        self.sentences += len(row["sentence_spans"])
        self.words += len(row["word_spans"])


def summarise(
    rows: Iterable[Mapping[str, Any]], split_of: Mapping[str, str], held_out: Container[str]
) -> pd.DataFrame:
    """Counts, and a sample's average size, for each design, domain, generator and split.

    Of each row `COLUMNS` are read, `split_of` gives a document's split. The generator `all` stands
    for those that are not held out. Documents with equal texts are one, as in Table 2.
    """
    cells: dict[tuple[str, str, str, bool, str], _Cell] = {}
    for row in rows:
        generator, apart = row["generator"], row["generator"] in held_out
        for name in (generator,) if apart else (generator, ALL):
            key = row["design"], row["domain"], name, apart, split_of[row["doc_id"]]
            cells.setdefault(key, _Cell()).add(row)
    names = ["design", "domain", "generator", "held_out", "split"]
    return pd.DataFrame(
        [
            {
                **dict(zip(names, key, strict=True)),
                "documents": len(cell.documents),
                "trajectories": len(cell.trajectories),
                "samples": cell.samples,
                "avg_sentences": cell.sentences / cell.samples,
                "avg_words": cell.words / cell.samples,
            }
            for key, cell in sorted(cells.items())
        ],
        columns=[*names, "documents", "trajectories", "samples", "avg_sentences", "avg_words"],
    )
