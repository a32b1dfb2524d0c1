import re
from dataclasses import replace

import pandas as pd
import pytest

from palimpsest.reports.formats import html, markdown
from palimpsest.reports.reference import opai_results
from palimpsest.reports.runs import Runs, choose
from palimpsest.reports.tables import (
    ByVersion,
    MissingError,
    Statistics,
    listing,
    schedule,
    summary,
    training,
)
from tests.reports.synthetic import evaluation

TABLE_4 = ByVersion(4, ("accuracy", "f1_ai"))


def with_values(run_id: str = "r1", **values: float) -> Runs:
    """One Fast-DetectGPT run whose accuracy and F1-AI at v0, v1 (`a0`, `a1`, `f1`) are given."""
    run = evaluation(run_id)
    known = {
        ("accuracy", "v0"): values["a0"],
        ("accuracy", "v1"): values["a1"],
        ("f1_ai", "v1"): values["f1"],
    }
    kept = run.records
    keys = pd.Series(list(zip(kept["metric"], kept["version"], strict=True)), index=kept.index)
    kept = kept.assign(value=keys.map(known)).dropna(subset="value")
    return choose([replace(run, records=kept)])


def test_a_version_table_prints_as_the_paper_does() -> None:
    table, *_ = TABLE_4(with_values(a0=0.912, a1=0.772, f1=0.22))
    assert table.header == ["Detector", "Version", *["Acc", "F1-AI"] * 5]
    assert [title for title, _ in table.groups] == [
        "", "essays", "reports", "news", "abstracts", "mean",
    ]  # fmt: skip
    assert table.rows == [
        ["fast-detectgpt [zero-shot, document]", "v0", *["91.2", "0.0"] * 5],
        ["", "v1", *["77.2 (−14.0)", "22.0 (+22.0)"] * 5],
    ]
    assert "| v1 | 77.2 (−14.0) | 22.0 (+22.0) |" in markdown(table)


def test_fnr_at_v0_is_a_dash() -> None:
    table, *_ = ByVersion(11, ("macro_f1", "fnr"), ("word",))(
        choose([evaluation("r1", "majority", "baseline", levels=("word",))])
    )
    assert table.rows[0][3::2] == ["–"] * 5
    assert "–" not in table.rows[1]


def test_several_seeds_are_printed_with_their_deviation() -> None:
    table, *_ = TABLE_4(choose([evaluation("r1"), evaluation("r2", seed=1)]))
    assert " ± " in table.rows[3][2]
    assert table.rows[0][0] == "fast-detectgpt [zero-shot, document]"
    assert set(table.data["run_id"]) == {"r1 r2"}


def test_the_printed_values_stand_beside_ours_with_the_difference() -> None:
    table, beside = TABLE_4(with_values(a0=0.5, a1=0.5, f1=0.5))
    printed = (
        opai_results()
        .query(
            "table == 4 and detector == 'Fast-DetectGPT' and domain == 'news' and version == 'v1' "
            "and metric == 'accuracy'"
        )["value"]
        .item()
    )
    cell = beside.data.query("domain == 'news' and version == 'v1' and metric == 'accuracy'")
    assert cell["difference"].item() == pytest.approx(0.5 - printed)
    ours, paper, difference = beside.rows[:3]
    assert ours[0] == "fast-detectgpt: essays, Acc, labels: calibrated"
    assert (ours[2], paper[1], difference[1]) == ("50.0", "paper", "difference")
    assert table.data.query("domain == 'mean'")["printed"].isna().all()


def test_a_detector_of_another_regime_or_level_has_no_printed_values() -> None:
    runs = choose([evaluation("r1", "genai-sentence", "trained", levels=("sentence",))])
    assert len(ByVersion(8, ("accuracy", "f1_ai"), ("sentence",))(runs)) == 1


def test_the_papers_detectors_that_are_missing_are_named_with_the_reason() -> None:
    runs = choose([evaluation("r1", "length", "baseline")])
    note = TABLE_4(runs)[0].notes[-1]
    assert note.startswith("In the paper and not here: ")
    assert "Fast-DetectGPT (implemented, but no finished run on these texts)" in note
    assert re.search(r"RADAR[^()]*\(not implemented yet\)", note)
    note = ByVersion(8, ("accuracy",), ("sentence",))(runs)[0].notes[-1]
    assert "GenAI-Sentence (zero-shot in the paper, implemented as trained only)" in note


def test_a_table_that_no_run_fills_says_why() -> None:
    runs = choose([evaluation("r1", design="independent")])
    with pytest.raises(MissingError, match="no finished run of the design cumulative"):
        TABLE_4(runs)
    with pytest.raises(MissingError, match="no finished run of a trained detector"):
        training(runs)
    with pytest.raises(MissingError, match="with a detector of word or character level"):
        ByVersion(10, ("accuracy",), ("word", "character"))(choose([evaluation("r1")]))


def test_every_row_leads_to_its_run() -> None:
    table, *_ = TABLE_4(choose([evaluation("r1"), evaluation("r2", "length", "baseline")]))
    assert table.sources == [("r1",)] * 9 + [("r2",)] * 9
    page = html(table)
    assert page.count('title="run r1"') == 9
    assert '<a href="#run-r2">length [baseline, sentence]</a>' in page
    assert set(table.data["run_id"]) == {"r1", "r2"}


def test_tables_of_the_texts_carry_the_papers_numbers() -> None:
    runs = choose([evaluation("r1")])
    tables = [make(runs)[0] for make in (Statistics(2, 0), Statistics(5, 1), Statistics(6, 2))]
    assert [table.name for table in tables] == ["table-02", "table-05", "table-06"]
    assert tables[0].caption == "Table 2: Statistics of the texts (cumulative)"
    assert tables[2].rows[-1] == ["total", "0", "0", "108", "108"]
    assert tables[1].sources[0] == ("r1",)


def test_the_schedule_stands_beside_the_papers() -> None:
    (table,) = schedule(choose([evaluation("r1")]))
    assert table.rows[4] == ["v4", "compress", "50", "compress", "50"]


def test_training_settings_are_those_that_the_runs_logged() -> None:
    run = evaluation("r1", "genai-sentence", "trained")
    settings = {"settings.model": "pip:minilm", "settings.epochs": "8", "settings.hidden": "128"}
    (table,) = training(choose([replace(run, params={**run.params, **settings})]))
    assert table.rows[0] == [
        "genai-sentence", "pip:minilm", "–", "–", "–", "8", "hidden 128", "ours",
    ]  # fmt: skip
    assert (table.rows[1][0], table.rows[1][-1]) == ("AdaLoc", "paper")
    assert "LoRA r 8, alpha 16, dropout 0.1" in table.rows[1][-2]


def test_the_listing_counts_scored_and_unscored_units() -> None:
    (table,) = listing(choose([evaluation("r1")]))
    row = dict(zip(table.header, table.rows[0], strict=True))
    assert (row["Labels by"], row["Scored"], row["Unscored"]) == ("calibrated", "10,800", "0")


def test_units_of_a_cell_without_any_score_are_counted_and_stand_under_the_tables() -> None:
    run = evaluation("r1", "lastde")
    kept = run.records
    lost = (kept["version"] == "v1") & (kept["domain"] == "news") & (kept["level"] == "document")
    empty = {"value": 0.0, "n": 0, "n_unscored": 100}
    kept.loc[lost & (kept["metric"] == "scored"), list(empty)] = list(empty.values())
    runs = choose([replace(run, records=kept[~lost | (kept["metric"] == "scored")])])
    (table,) = listing(runs)
    row = dict(zip(table.header, table.rows[0], strict=True))
    assert (row["Scored"], row["Unscored"]) == ("10,500", "300")
    for table in (TABLE_4(runs)[0], summary(runs)[0]):
        assert any("lastde 10,500 and 300" in note for note in table.notes)


def test_the_listing_names_both_models_of_a_pair() -> None:
    pair = {"settings.sampling": "org/base", "settings.scoring": "org/tuned"}
    run = evaluation("r1", "binoculars")
    (table,) = listing(choose([replace(run, params={**run.params, **pair})]))
    assert set(table.data["model"]) == {"org/base, org/tuned"}


def test_sentences_of_a_document_method_are_called_an_extension() -> None:
    runs = choose([evaluation("r1"), evaluation("r2", "genai-sentence", "trained")])
    table, *_ = ByVersion(8, ("accuracy", "f1_ai"), ("sentence",))(runs)
    names = [row[0] for row in table.rows if row[0]]
    assert names == ["fast-detectgpt [zero-shot, extension]", "genai-sentence [trained]"]


def test_the_summary_has_auroc_and_f1_of_each_detector() -> None:
    (table,) = summary(choose([evaluation("r1")]))
    assert table.header == ["Detector", "", *[f"v{i}" for i in range(1, 9)]]
    assert [row[1] for row in table.rows] == ["AUROC", "F1-AI"]


def test_a_demo_says_that_it_is_one() -> None:
    table, *_ = TABLE_4(choose([evaluation("r1", profile="demo")]))
    assert any(note.startswith("Demo: ") for note in table.notes)
    table, *_ = TABLE_4(choose([evaluation("r1")]))
    assert not any("Demo" in note for note in table.notes)
