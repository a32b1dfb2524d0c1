from collections.abc import Iterator

import numpy as np
import pandas as pd
import pytest

from palimpsest.evaluation.comparison import holm
from palimpsest.reports import comparisons as module
from palimpsest.reports.comparisons import comparisons
from palimpsest.reports.formats import Table, html
from palimpsest.reports.runs import Runs, choose
from palimpsest.reports.tables import MissingError
from palimpsest.tracking import evaluations
from tests.reports.store import log
from tests.reports.synthetic import evaluation, left_out

BENCHMARK = "opai-bench"


@pytest.fixture(scope="module", autouse=True)
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DVC_ROOT", str(tmp_path_factory.mktemp("project")))
        patch.delenv("MLFLOW_TRACKING_URI", raising=False)
        yield


@pytest.fixture(scope="module")
def runs(store: None) -> Runs:
    """Three detectors on 24 documents, one with two seeds; `low` misses what is compressed."""
    for design in ("cumulative", "independent"):
        log(BENCHMARK, "lrr", "zero-shot", design, "document", documents=24, judged=True)
        log(BENCHMARK, "low", "trained", design, "word", documents=24, compress=3, judged=True)
    log(BENCHMARK, "lrr", "zero-shot", "cumulative", "document", 1, documents=24, judged=True)
    log(BENCHMARK, "high", "zero-shot", "cumulative", "word", documents=24, judged=True)
    return choose(evaluations(BENCHMARK))


@pytest.fixture(scope="module")
def tables(runs: Runs) -> dict[str, Table]:
    return {table.name.removeprefix("comparisons-"): table for table in comparisons(runs)}


def test_each_level_has_all_pairs_of_detectors_and_each_detectors_designs(
    tables: dict[str, Table],
) -> None:
    assert list(tables) == [
        "detectors-document", "detectors-sentence", "detectors-word",
        "designs-document", "designs-sentence", "designs-word",
    ]  # fmt: skip
    pairs = [(row[0], row[1]) for row in tables["detectors-document"].rows]
    assert pairs == [("lrr", "high"), ("", "low"), ("high", "low")]
    assert [row[0] for row in tables["designs-document"].rows] == ["lrr", "low"]
    assert [row[0] for row in tables["designs-word"].rows] == ["low"]


def test_a_difference_is_that_of_the_numbers_in_the_records(
    runs: Runs, tables: dict[str, Table]
) -> None:
    def auroc(detector: str, design: str) -> pd.Series:
        (configuration,) = (c for c in runs.of_design(design) if c.name == detector)
        records = configuration.newest.records
        chosen = records.query(
            "metric == 'auroc' and level == 'document' and domain == 'mean' and generator == 'mean'"
            " and not held_out and version != 'all'"
        )
        return chosen.set_index("version")["value"]

    data = tables["detectors-document"].data.query("first == 'lrr' and second == 'low'")
    expected = auroc("lrr", "cumulative") - auroc("low", "cumulative")
    assert len(expected) == 8
    assert data["version"].tolist() == ["mean of v1 to v8", "v8"]
    assert data["difference"].tolist() == pytest.approx([expected.mean(), expected["v8"]])

    data = tables["designs-document"].data.query("first == 'low'")
    expected = auroc("low", "cumulative") - auroc("low", "independent")
    assert data["difference"].tolist() == pytest.approx([expected.mean(), expected["v8"]])
    assert set(data["first_design"]) == {"cumulative"}
    assert set(data["second_design"]) == {"independent"}


def test_p_values_are_corrected_over_the_whole_table(tables: dict[str, Table]) -> None:
    table = tables["detectors-document"]
    data = table.data
    assert len(data) == 6
    np.testing.assert_array_equal(data["p_holm"], holm(data["p"].to_numpy()))
    assert (data["low"] <= data["difference"]).all()
    assert (data["difference"] <= data["high"]).all()
    assert set(data["documents"]) == {24}
    assert "the 6 differences of this table" in table.notes[1]
    below = (data["p_holm"] < 0.05).groupby(data["version"]).sum()
    assert f"of 3 pairs, {below['mean of v1 to v8']} (mean of v1 to v8)" in table.notes[1]
    assert below["mean of v1 to v8"] > 0


def test_every_cell_leads_to_both_runs_and_the_first_name_to_its_own(
    runs: Runs, tables: dict[str, Table]
) -> None:
    table = tables["detectors-document"]
    ids = {c.name: c.newest.run_id for c in runs.of_design("cumulative")}
    expected = table.data["first"].map(ids) + " " + table.data["second"].map(ids)
    assert table.data["run_id"].tolist() == expected.tolist()
    assert f'<a href="#run-{ids["high"]}">high</a>' in html(table)


def test_of_too_many_the_newest_are_compared_and_the_others_named(
    runs: Runs, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MOST", 2)
    table, *_ = comparisons(runs)
    assert [row[:2] for row in table.rows] == [["lrr", "high"]]
    assert "Only the 2 newest configurations are compared; left out: low." in table.notes


def test_without_intervals_there_are_no_p_values() -> None:
    for detector in ("lrr", "low"):
        log("small", detector, "zero-shot", "cumulative", documents=1)
    table, *_ = comparisons(choose(evaluations("small")))
    assert table.rows[0][3:6] == ["–", "–", "–"]
    assert table.data[["low", "p", "p_holm"]].isna().all(axis=None)
    assert any(note.startswith("No interval where a domain has") for note in table.notes)


def test_a_single_run_is_compared_with_nothing() -> None:
    with pytest.raises(MissingError, match="no two runs of the design cumulative"):
        comparisons(choose([evaluation("r1")]))


def test_what_was_left_unscored_stands_under_every_table(runs: Runs) -> None:
    for table in comparisons(choose(left_out(evaluations(BENCHMARK)))):
        (note,) = [note for note in table.notes if note.startswith("Units scored and unscored: ")]
        for name in {row[0] for row in table.rows} - {""}:
            assert f"{name} " in note
        assert ("(independent, " in note) == table.name.startswith("comparisons-designs")
