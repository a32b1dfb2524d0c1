"""How many texts there are and how long they are: the columns of the paper's Tables 2 and 5."""

from collections.abc import Iterable, Mapping
from typing import Any

import pandas as pd


def summarise(rows: Iterable[Mapping[str, Any]]) -> pd.DataFrame:
    """One row for each (design, domain, generator): counts, and a sample's average size."""
    facts = pd.DataFrame(
        [
            {
                "design": row["design"],
                "domain": row["domain"],
                "generator": row["generator"],
                "doc_id": row["doc_id"],
                "trajectory_id": row["trajectory_id"],
                "sentences": len(row["sentence_spans"]),
                "words": len(row["word_spans"]),
            }
            for row in rows
        ],
        columns=["design", "domain", "generator", "doc_id", "trajectory_id", "sentences", "words"],
    )
    return facts.groupby(["design", "domain", "generator"], as_index=False).agg(
        documents=("doc_id", "nunique"),
        trajectories=("trajectory_id", "nunique"),
        samples=("doc_id", "size"),
        avg_sentences=("sentences", "mean"),
        avg_words=("words", "mean"),
    )
