from collections.abc import Iterator

import numpy as np
import pandas as pd
import pytest

from palimpsest.reports.findings import as_json, findings
from palimpsest.reports.formats import Table
from palimpsest.reports.runs import choose
from palimpsest.reports.tables import MissingError, summary
from palimpsest.tracking import evaluations
from tests.reports.store import log
from tests.reports.synthetic import evaluation, left_out

BENCHMARK = "opai-bench"


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Table]:
    """Two detectors of 24 documents: one scores compressed text low, the other high.

    Both leave some units unscored.
    """
    folder = tmp_path_factory.mktemp("project")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DVC_ROOT", str(folder))
        patch.delenv("MLFLOW_TRACKING_URI", raising=False)
        for design in ("cumulative", "independent", "coverage", "operation"):
            log(BENCHMARK, "low", "zero-shot", design, "word", documents=24, compress=2)
            log(BENCHMARK, "high", "zero-shot", design, "word", documents=24, compress=-2)
        (found,) = findings(choose(left_out(evaluations(BENCHMARK))))
        yield found


def of(table: Table, claim: str, detector: str) -> pd.DataFrame:
    rows = table.data[(table.data["claim"] == claim) & (table.data["detector"] == detector)]
    assert not rows.empty
    return rows


def test_a_dip_is_found_where_compressed_text_scores_low_and_not_where_it_scores_high(
    table: Table,
) -> None:
    for claim in ("Dip at v4", "Compress harder than expand"):
        low, high = of(table, claim, "low"), of(table, claim, "high")
        assert set(low["verdict"]) == {"agrees"}
        assert (low["high"] < 0).all()
        assert "agrees" not in set(high["verdict"])
        assert "does not" in set(high["verdict"])


def test_an_estimate_lies_in_its_interval_and_says_what_it_is_from(table: Table) -> None:
    known = table.data.dropna(subset="low")
    assert (known["low"] <= known["high"]).all()
    assert (known["documents"] == 24).all()
    assert known["estimate"].between(known["low"] - 0.1, known["high"] + 0.1).all()
    smoother = of(table, "Independent smoother", "low")
    assert smoother["run_id"].str.contains(" ").all()


def test_a_verdict_needs_an_interval_beyond_zero(table: Table) -> None:
    small = table.data[table.data["verdict"] == "too small to say"]
    assert ((small["low"] <= 0) & (small["high"] >= 0)).all()


def test_all_claims_are_on_the_table_with_their_counts(table: Table) -> None:
    assert [note.partition(":")[0] for note in table.notes[:5]] == [
        "Dip at v4", "Compress harder than expand", "Independent smoother",
        "Accuracy falls, F1-AI rises", "Not monotone in coverage",
    ]  # fmt: skip
    assert "below 0 for 8 of 9 detectors" in table.notes[0]
    assert sum(row[0] != "" for row in table.rows) == 5
    assert '"claim": "Dip at v4"' in as_json(table)


def test_an_estimate_is_the_difference_of_the_numbers_in_the_tables(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DVC_ROOT", str(tmp_path_factory.mktemp("project")))
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    log(BENCHMARK, "low", "zero-shot", "cumulative", "word", documents=8, judged=True)
    runs = choose(evaluations(BENCHMARK))
    (table,) = findings(runs)
    (printed,) = summary(runs)
    f1 = {v: float(printed.rows[1][printed.header.index(v)]) for v in ("v3", "v4", "v5")}
    estimate = of(table, "Dip at v4", "low").query("measure == 'F1-AI'")["estimate"].item()
    assert 100 * estimate == pytest.approx(f1["v4"] - (f1["v3"] + f1["v5"]) / 2, abs=0.1)


def test_what_was_left_unscored_stands_under_the_table(table: Table) -> None:
    (note,) = [note for note in table.notes if note.startswith("Units scored and unscored: ")]
    for design in ("cumulative", "independent", "coverage", "operation"):
        assert f"low ({design}, word) " in note


def test_one_document_is_too_small_to_say(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DVC_ROOT", str(tmp_path_factory.mktemp("project")))
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    log(BENCHMARK, "low", "zero-shot", "cumulative", "word", documents=1, compress=9)
    (table,) = findings(choose(evaluations(BENCHMARK)))
    assert set(table.data["verdict"]) == {"too small to say"}
    assert np.isnan(table.data["low"]).all()
    assert {row[5] for row in table.rows} == {"–"}
    assert any(note.startswith("No interval where a domain has") for note in table.notes)


def test_no_run_to_judge_by_is_a_reason() -> None:
    with pytest.raises(MissingError, match="no run of a design by which a claim is judged"):
        findings(choose([evaluation("r1", design="independent")]))
