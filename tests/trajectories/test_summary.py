from typing import Any

import pandas as pd

from palimpsest.trajectories.summary import ALL, COLUMNS, summarise

SPLIT_OF = {"d1": "train", "d2": "train", "d3": "test"}


def row(doc_id: str, generator: str = "a", group: str = "", sentences: int = 2) -> dict[str, Any]:
    return {
        "design": "cumulative", "domain": "essays", "generator": generator, "doc_id": doc_id,
        "group": group or doc_id, "trajectory_id": f"{doc_id}/{generator}",
        "sentence_spans": [(0, 1)] * sentences, "word_spans": [(0, 1)] * 10,
    }  # fmt: skip


def counts(table: pd.DataFrame, generator: str, split: str) -> "pd.Series[Any]":
    found = table[(table["generator"] == generator) & (table["split"] == split)]
    assert len(found) == 1
    return found.iloc[0]


def test_samples_are_counted_by_generator_and_split_and_over_all_generators() -> None:
    rows = [row("d1"), row("d1", sentences=4), row("d2"), row("d3"), row("d1", "b")]
    assert set(rows[0]) == set(COLUMNS)
    table = summarise(rows, SPLIT_OF)
    train = counts(table, "a", "train")
    assert (train["documents"], train["trajectories"], train["samples"]) == (2, 2, 3)
    assert (train["avg_sentences"], train["avg_words"]) == (8 / 3, 10)
    every = counts(table, ALL, "train")
    assert (every["documents"], every["trajectories"], every["samples"]) == (2, 3, 4)
    assert counts(table, "a", "test")["samples"] == 1


def test_equal_texts_are_one_document() -> None:
    table = summarise([row("d1"), row("d2", group="d1")], SPLIT_OF)
    assert counts(table, ALL, "train")["documents"] == 1


def test_held_out_texts_are_counted_apart() -> None:
    table = summarise([row("d1", "h")], SPLIT_OF, held_out=True)
    assert table["generator"].tolist() == ["h"]
    assert table["held_out"].tolist() == [True]


def test_no_texts_make_no_rows() -> None:
    assert summarise([], {}).empty
