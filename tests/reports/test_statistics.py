from dataclasses import replace
from typing import Any

import pandas as pd

from palimpsest.corpora.opai_bench import RELEASED
from palimpsest.reports.formats import markdown
from palimpsest.reports.statistics import statistics_tables
from palimpsest.tracking import Evaluation
from palimpsest.trajectories.summary import ALL


def run(prompt_set: str = "few-shot", design: str = "cumulative") -> Evaluation:
    def fact(domain: str, generator: str, split: str, samples: int, words: float) -> dict[str, Any]:
        return {
            "design": design, "domain": domain, "generator": generator, "split": split,
            "documents": samples // 9, "trajectories": samples // 9, "samples": samples,
            "avg_sentences": words / 20, "avg_words": words, "held_out": generator == "qwen3-8b",
        }  # fmt: skip

    facts = [
        fact("essays", "gpt-5.4", "train", 27, 300), fact("essays", "gpt-5.4", "test", 9, 500),
        fact("essays", ALL, "train", 27, 300), fact("essays", ALL, "test", 9, 500),
        fact("essays", "qwen3-8b", "test", 9, 700), fact("news", "gpt-5.4", "dev", 18, 200),
        fact("news", ALL, "dev", 18, 200),
    ]  # fmt: skip
    statistics = pd.DataFrame([*facts, {**facts[0], "design": "another", "samples": 1000}])
    return Evaluation(
        "r1", "", {"design": design}, {"prompt_set": prompt_set}, pd.DataFrame(), statistics
    )


def test_domains_are_weighed_by_samples_and_leave_held_out_generators_out() -> None:
    by_domain, _, _ = statistics_tables(run())
    assert by_domain.rows == [
        ["essays", "4", "4", "36", "17.5", "350.0"],
        ["news", "2", "2", "18", "10.0", "200.0"],
        ["total", "6", "6", "54", "15.0", "300.0"],
    ]
    assert set(by_domain.data["run_id"]) == {"r1"}


def test_generators_stand_apart_and_held_out_ones_are_in_no_total() -> None:
    _, by_generator, _ = statistics_tables(run())
    assert by_generator.rows == [
        ["essays", "gpt-5.4", "4", "36", "17.5", "350.0"],
        ["news", "gpt-5.4", "2", "18", "10.0", "200.0"],
        ["essays", "qwen3-8b", "1", "9", "35.0", "700.0"],
        ["total", "all", "6", "54", "15.0", "300.0"],
    ]
    assert by_generator.notes == ["The total leaves held-out generators out."]


def test_splits_are_counted_with_totals_both_ways() -> None:
    _, _, splits = statistics_tables(run())
    assert splits.rows == [
        ["essays", "27", "0", "9", "36"],
        ["news", "0", "18", "0", "18"],
        ["total", "27", "18", "9", "54"],
    ]


def test_the_papers_numbers_stand_beside_the_released_texts_only() -> None:
    by_domain, by_generator, splits = statistics_tables(run(RELEASED))
    assert by_domain.rows[0][6:] == ["3,969", "7,906", "71,154", "21.0", "398.8"]
    assert by_domain.rows[-1][6:] == ["15,722", "31,089", "279,794", "19.3", "426.1"]
    assert by_generator.rows[0][6:] == ["1,969", "17,721", "20.9", "383.6"]
    assert by_generator.rows[2][6:] == ["–"] * 4  # the paper does not count Qwen3-8B
    assert by_generator.rows[-1][6:] == ["31,089", "279,794", "19.3", "426.1"]
    assert splits.rows[-1][5:] == ["196,031", "42,363", "41,400", "279,794"]
    assert "paper Samples" in markdown(by_domain)
    for prompt_set, design in (("few-shot", "cumulative"), (RELEASED, "independent")):
        assert len(statistics_tables(run(prompt_set, design))[0].header) == 6


def test_the_printed_tables_agree_with_each_other_as_far_as_they_do() -> None:
    by_domain, by_generator, splits = (t.data for t in statistics_tables(run(RELEASED)))
    essays = by_domain["domain"] == "essays"
    assert by_domain.loc[essays, "samples_printed"].item() == splits["total_printed"].iloc[0]
    total = by_generator["domain"] == "total"
    assert by_generator.loc[total, "samples_printed"].item() == 279_794


def test_a_run_from_before_splits_were_counted_has_no_such_table() -> None:
    old = run()
    statistics = old.statistics.drop(columns="split")
    assert statistics_tables(replace(old, statistics=statistics)) == []
