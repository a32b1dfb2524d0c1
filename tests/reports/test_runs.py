from dataclasses import replace

import pytest

from palimpsest.errors import InputError
from palimpsest.reports.runs import choose, is_mean, labels
from tests.reports.synthetic import evaluation


def test_runs_of_one_detector_are_told_apart_by_what_differs() -> None:
    runs = [
        evaluation("r1", "length"),
        evaluation("r2", "length", profile="demo"),
        evaluation("r3", "random"),
    ]
    assert labels(runs) == {
        "r1": "length (profile=paper)",
        "r2": "length (profile=demo)",
        "r3": "random",
    }


def test_runs_that_differ_in_seeds_are_one_configuration_with_a_mean_and_a_deviation() -> None:
    runs = [evaluation(f"r{seed}", seed=seed) for seed in range(3)]
    chosen = choose(runs)
    (configuration,) = chosen.configurations
    assert configuration.name == "fast-detectgpt"
    assert configuration.run_ids == ("r0", "r1", "r2")
    where = "metric == 'auroc' and version == 'v4' and domain == 'news' and generator == 'g1'"
    mine = chosen.of(configuration, "document").query(where)
    values = [run.records.query(f"{where} and level == 'document'")["value"].item() for run in runs]
    assert mine["value"].item() == pytest.approx(sum(values) / 3)
    assert mine["sd"].item() > 0
    assert mine["high"].item() - mine["value"].item() == pytest.approx(mine["sd"].item())
    assert mine["run_id"].item() == "r0 r1 r2"


def test_the_newest_texts_are_shown_and_other_runs_are_listed_with_the_reason() -> None:
    runs = [
        evaluation("old", texts="a"),
        evaluation("elsewhere", splits="others"),
        evaluation("new", texts="b"),
        evaluation("design", design="independent"),
        evaluation("selected", texts="b", generators="g1"),
    ]
    chosen = choose(runs[:4])
    assert [run.run_id for run in chosen.evaluations] == ["new", "design"]
    assert [(run.run_id, reason) for run, reason in chosen.left_out] == [
        ("old", "other texts of the design cumulative"),
        ("elsewhere", "other documents or splits"),
    ]
    assert {run.run_id for run in choose(runs).evaluations} == {"design", "selected"}


def test_older_texts_are_shown_when_they_are_named() -> None:
    runs = [evaluation("old", texts="a"), evaluation("new", texts="b")]
    assert [run.run_id for run in choose(runs, ["a"]).evaluations] == ["old"]
    with pytest.raises(InputError, match="no finished run is on texts c; there are runs on a, b"):
        choose(runs, ["c"])


def test_texts_of_runs_of_an_older_version_cannot_be_asked_for() -> None:
    old = evaluation("old", texts="a")
    old = replace(old, records=old.records.drop(columns="variant"))
    with pytest.raises(InputError, match="no finished run is on texts a; there are runs on b"):
        choose([old, evaluation("new", texts="b")], ["a"])


def test_a_detector_is_shown_at_the_papers_level_else_at_its_own() -> None:
    runs = choose(
        [
            evaluation("r1", "genai-sentence", "trained", levels=("document", "sentence", "word")),
            evaluation("r2", "majority", "baseline", levels=("document", "sentence", "word")),
            evaluation("r3", "mine", levels=("document", "sentence")),
        ]
    )
    levels = ("document", "sentence", "word", "character")
    own = {c.detector: runs.level_of(c, levels) for c in runs.configurations}
    assert own == {"genai-sentence": "sentence", "majority": "word", "mine": "sentence"}
    (mine,) = (c for c in runs.configurations if c.detector == "mine")
    assert runs.level_of(mine, ("word", "character")) is None


def test_the_mean_is_over_generators_that_are_not_held_out() -> None:
    runs = choose([evaluation("r1")])
    numbers = runs.of(runs.configurations[0], "document")
    assert set(numbers["generator"]) == {"g1", "g2", "h", "mean"}
    assert set(numbers[is_mean(numbers)]["generator"]) == {"mean"}
