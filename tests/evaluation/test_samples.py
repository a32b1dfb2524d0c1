import logging
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from palimpsest.errors import InputError
from palimpsest.evaluation.samples import aligned, collect
from palimpsest.records import Scores, read_batches
from tests.evaluation.cases import predictions, reader, sample, texts

NAMES = [f"d{i}" for i in range(6)]
ROWS = {name: sample([0, 1], doc=name) for name in NAMES}


def text_batches(names: Sequence[str], size: int) -> list[pa.RecordBatch]:
    return [texts(ROWS[n] for n in names[i : i + size]) for i in range(0, len(names), size)]


def prediction_batches(names: Sequence[str], size: int) -> list[pa.RecordBatch]:
    answers = [(ROWS[n]["sample_id"], Scores(float(NAMES.index(n)))) for n in names]
    return [predictions(answers[i : i + size]) for i in range(0, len(answers), size)]


@given(st.sets(st.sampled_from(NAMES)), st.integers(1, 7), st.integers(1, 7))
def test_predictions_stand_beside_their_texts_whatever_the_batches(
    deleted: set[str], text_size: int, prediction_size: int
) -> None:
    kept = [name for name in NAMES if name not in deleted]
    pairs = aligned(text_batches(NAMES, text_size), prediction_batches(kept, prediction_size))
    seen: dict[str, float | None] = {}
    for batch, answers in pairs:
        assert batch.num_rows == answers.num_rows
        scores = answers.column("document").to_pylist()
        seen |= dict(zip(batch.column("doc_id").to_pylist(), scores, strict=True))
    assert seen == {n: None if n in deleted else float(i) for i, n in enumerate(NAMES)}


def test_missing_predictions_are_counted_and_the_first_is_named(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with caplog.at_level(logging.WARNING):
        list(aligned(text_batches(NAMES, 2), prediction_batches(["d0", "d1", "d4"], 2)))
    assert "3 texts have no prediction, d2/near//v1 first" in caplog.text


@pytest.mark.parametrize(
    ("order", "named"),
    [
        (["d1", "d0", "d2", "d3", "d4", "d5"], "row 0: d1/"),
        (["d0", "d1", "d2", "d3", "d4", "d4"], "row 5: d4/"),
        (["d0", "d3", "d2"], "row 1: d3/|row 2: d2/"),
    ],
)
def test_predictions_in_another_order_are_refused(order: list[str], named: str) -> None:
    with pytest.raises(InputError, match=named):
        list(aligned(text_batches(NAMES, 3), prediction_batches(order, 6)))


@pytest.mark.parametrize("place", range(6))
def test_a_prediction_of_no_text_is_refused_by_name(place: int) -> None:
    names = [name for i, name in enumerate(NAMES) if i != place]
    with pytest.raises(InputError, match=f"row {place}: d{place}/near//v1 is not the sample"):
        list(aligned(text_batches(names, 2), prediction_batches(NAMES, 4)))


def test_texts_of_before_there_were_variants_have_the_empty_one() -> None:
    old = [batch.drop_columns(["variant"]) for batch in text_batches(NAMES, 4)]
    found = collect(old, reader(*prediction_batches(NAMES, 3)), {})
    assert set(found.facts["variant"]) == {""}
    assert found.levels["document"].scores.tolist() == [0, 1, 2, 3, 4, 5]


def test_some_samples_keep_their_own_units() -> None:
    answers = [
        (row["sample_id"], Scores(float("nan"), words=np.full(6, i, dtype=np.float32)))
        for i, row in enumerate(ROWS.values())
    ]
    found = collect(
        [texts(ROWS.values())], reader(predictions(answers)), {"word": {"published": 2.5}}
    )
    few = found.only(np.array([4, 1]))
    assert few.facts["doc_id"].tolist() == ["d4", "d1"]
    assert few.levels["word"].scores.tolist() == [4] * 6 + [1] * 6
    assert few.levels["word"].counts["published"].tolist() == [[0, 3, 0, 3], [3, 0, 3, 0]]


@pytest.mark.parametrize("names", [["d0", "d1"], ["d1", "d0"]])
def test_a_batch_without_a_document_score_is_of_the_same_method(names: list[str]) -> None:
    sentences = np.array([0.2, 0.4], np.float32)
    answers = {"d0": Scores(1.0), "d1": Scores(float("nan"), sentences=sentences)}
    batches = (predictions([(ROWS[name]["sample_id"], answers[name])]) for name in names)
    document = collect(text_batches(names, 1), reader(*batches), {}).levels["document"]
    assert document.scores.tolist() == [1.0]
    assert document.scored.tolist() == [int(name == "d0") for name in names]


def test_no_texts_are_an_error() -> None:
    with pytest.raises(InputError, match="no texts"):
        collect([], reader(), {})


def test_batches_come_from_all_files_of_a_folder_without_columns_that_they_lack(
    tmp_path: Path,
) -> None:
    for i, name in enumerate(("a", "b")):
        pq.write_table(pa.table({"n": [i], "m": [0]}), tmp_path / f"{name}.parquet")
    batches = list(read_batches(tmp_path, ["n", "missing"]))
    assert [batch.to_pydict() for batch in batches] == [{"n": [0]}, {"n": [1]}]
    with pytest.raises(InputError, match="does not exist"):
        next(read_batches(tmp_path / "c.parquet"))
