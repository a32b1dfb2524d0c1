from collections.abc import Collection
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import norm

from palimpsest.evaluation.comparison import Saved, differences, holm, numbers_of, p_value
from palimpsest.records import Scores
from tests.evaluation.cases import context, predictions, sample, texts

DOCUMENTS = 24


def save(
    folder: Path, name: str, skill: float, *, design: str = "cumulative", skipped: int = -1
) -> Saved:
    """A run whose scores tell v4 from v0 as well as `skill` says."""
    rng = np.random.default_rng(len(name))
    pairs: list[tuple[dict[str, Any], Scores]] = []
    for i in range(DOCUMENTS):
        for version in ("v0", "v4"):
            if i == skipped:
                continue
            label = int(version == "v4")
            row = sample([label], doc=f"d{i}", version=version, design=design)
            pairs.append((row, Scores(skill * (label - 0.5) + rng.normal())))
    for kind, batch in (
        ("texts", texts(row for row, _ in pairs)),
        ("predictions", predictions((row["sample_id"], s) for row, s in pairs)),
    ):
        pq.write_table(pa.Table.from_batches([batch]), folder / f"{name}-{kind}.parquet")
    return Saved(
        folder / f"{name}-texts.parquet",
        folder / f"{name}-predictions.parquet",
        {"document": {"published": 0.0}},
        context(detector=name, design=design),
    )


def compared(
    first: Saved, second: Saved, metrics: Collection[str] = ("accuracy", "f1_ai", "auroc")
) -> pd.DataFrame:
    """On the documents that both have."""
    documents = first.documents() & second.documents()
    one, other = (numbers_of(run, documents, "document", metrics) for run in (first, second))
    return pd.DataFrame(differences(one, other, len(documents)))


def test_a_better_detector_is_better_and_a_run_equals_itself(tmp_path: Path) -> None:
    good, bad = save(tmp_path, "good", 4.0), save(tmp_path, "bad", 0.0)
    table = compared(good, bad)
    assert len(table) == 4  # accuracy at v0 and v4, F1-AI and AUROC at v4
    better = table[table["metric"] == "auroc"].iloc[0]
    assert better["difference"] > better["low"] > 0
    assert better["p"] < 0.05
    assert better["documents"] == DOCUMENTS
    same = compared(good, good)
    assert (same[["difference", "low", "high"]] == 0).all(axis=None)
    assert (same["p"] == 1).all()


def test_pairing_is_what_makes_a_comparison_sharp(tmp_path: Path) -> None:
    first = save(tmp_path, "first", 1.0)
    table = compared(first, replace(first, context=context(detector="another")))
    assert (table["high"] - table["low"]).max() == 0


def test_a_run_on_held_out_generators_alone_has_no_number_to_compare(tmp_path: Path) -> None:
    run = save(tmp_path, "first", 1.0)
    held_out = replace(run, context=replace(run.context, held_out=frozenset({"near"})))
    of_documents = held_out.documents()
    assert numbers_of(held_out, of_documents, "document", ["auroc"]) == {}


def test_designs_are_compared_on_the_documents_that_both_have(tmp_path: Path) -> None:
    cumulative = save(tmp_path, "first", 2.0)
    independent = save(tmp_path, "second", 2.0, design="independent", skipped=3)
    table = compared(cumulative, independent, ["accuracy"])
    assert set(table["documents"]) == {DOCUMENTS - 1}
    assert table["version"].tolist() == ["v0", "v4"]


def test_texts_outside_of_the_predictions_do_not_count(tmp_path: Path) -> None:
    whole = save(tmp_path, "first", 2.0)
    rows = pq.read_table(whole.predictions)
    few = tmp_path / "few.parquet"
    pq.write_table(rows.slice(4), few)
    run = Saved(whole.texts, few, whole.thresholds, whole.context)
    assert len(run.documents()) == DOCUMENTS - 2
    assert run.answered().levels["document"].scored.all()


def test_documents_of_held_out_generators_alone_do_not_count(tmp_path: Path) -> None:
    """They would take draws in one run that the other does not have."""
    rows = [sample([1], doc="d0"), sample([1], doc="d1", generator="far")]
    pq.write_table(pa.Table.from_batches([texts(rows)]), tmp_path / "t.parquet")
    answers = predictions((row["sample_id"], Scores(1.0)) for row in rows)
    pq.write_table(pa.Table.from_batches([answers]), tmp_path / "p.parquet")
    run = Saved(tmp_path / "t.parquet", tmp_path / "p.parquet", {}, context())
    assert run.documents() == {"d0"}


def test_p_is_the_normal_one_of_the_bootstrap_error() -> None:
    replicates = np.random.default_rng(0).normal(0.2, 0.1, 1000)
    p = p_value(0.2, replicates, 1000)
    assert p == pytest.approx(2 * norm.sf(0.2 / replicates.std(ddof=1)))


@pytest.mark.parametrize(("documents", "least"), [(1, 1.0), (3, 0.25), (11, 2**-10)])
def test_few_documents_cannot_say_much(documents: int, least: float) -> None:
    assert p_value(1.0, np.ones(100), documents) == least
    assert p_value(1.0, 1 + np.random.default_rng(0).normal(0, 1e-3, 100), documents) == least
    assert p_value(0.0, np.zeros(100), documents) == 1


def test_p_values_are_uniform_where_there_is_no_difference() -> None:
    rng = np.random.default_rng(0)
    weights = rng.multinomial(40, np.full(40, 1 / 40), 300) / 40
    below = []
    for _ in range(400):
        differences = rng.normal(0, 1, 40)
        below.append(p_value(differences.mean(), weights @ differences, 40) < 0.05)
    assert 0.02 < np.mean(below) < 0.09


@given(st.lists(st.floats(0, 1), min_size=1, max_size=12))
def test_holm_rejects_as_the_step_down_procedure_does(p: list[float]) -> None:
    corrected = holm(np.array(p))
    for level in (0.01, 0.05, 0.5):
        rejected = 0
        for step, value in enumerate(sorted(p)):
            if value * (len(p) - step) > level:
                break
            rejected += 1
        assert (corrected <= level).sum() == rejected
    assert (corrected >= np.array(p)).all()
    assert (corrected <= 1).all()
