"""How many texts there are and how long they are: the numbers of the paper's Tables 2, 5 and 6."""

from collections.abc import Iterable, Mapping
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

    def counts(self) -> tuple[int, int, int, float, float]:
        n = self.samples
        return len(self.documents), len(self.trajectories), n, self.sentences / n, self.words / n


def summarise(
    rows: Iterable[Mapping[str, Any]], split_of: Mapping[str, str], held_out: bool = False
) -> pd.DataFrame:
    """Counts, and a sample's average size, for each design, domain, generator and split.

    Of each row `COLUMNS` are read; `split_of` gives a document's split. The generator `all` stands
    for all of those that are not held out. Documents with equal texts are one, as in Table 2.
    """
    cells: dict[tuple[str, str, str, str], _Cell] = {}
    for row in rows:
        for generator in (row["generator"],) if held_out else (row["generator"], ALL):
            key = row["design"], row["domain"], generator, split_of[row["doc_id"]]
            cells.setdefault(key, _Cell()).add(row)
    names = ["design", "domain", "generator", "split"]
    counted = ["documents", "trajectories", "samples", "avg_sentences", "avg_words"]
    return pd.DataFrame(
        [(*key, *cell.counts(), held_out) for key, cell in sorted(cells.items())],
        columns=[*names, *counted, "held_out"],
    )
