from collections.abc import Iterator
from typing import Any

import pandas as pd
import pytest

from palimpsest.evaluation.report import MEAN, Context, evaluate, preferred_threshold
from palimpsest.evaluation.summary import by_version, headline, mlflow_metrics
from palimpsest.records import Scores

CONTEXT = Context("d", "zero-shot", "cumulative", frozenset({"far"}), resamples=100, seed=0)
THRESHOLDS = {"document": {"published": None, "calibrated": {"value": 0.0}}}


def answers(
    scores: dict[tuple[str, str, str], list[float]],
) -> Iterator[tuple[dict[str, Any], Scores]]:
    """(domain, generator, version) -> one document score each."""
    for (domain, generator, version), values in scores.items():
        for i, value in enumerate(values):
            row = {
                "doc_id": f"{domain}{i}",
                "domain": domain,
                "generator": generator,
                "version": version,
                "operation": "none" if version == "v0" else "polish",
                "target_coverage": 0 if version == "v0" else 15,
                "label": int(version != "v0"),
            }
            yield row, Scores(document=value)


RECORDS = evaluate(
    answers(
        {
            ("essays", "near", "v0"): [-1, -1, 1, -1],
            ("essays", "near", "v1"): [1, 1, 1, float("nan")],
            ("essays", "near2", "v0"): [-1, -1, -1, -1],
            ("essays", "near2", "v1"): [-2, -2, -2, 2],
            ("essays", "far", "v0"): [-1, -1, -1, -1],
            ("essays", "far", "v1"): [-2, -2, -2, -2],
            ("news", "near", "v0"): [-1, -1],
            ("news", "near", "v1"): [1, -1],
        }
    ),
    THRESHOLDS,
    CONTEXT,
)


def value(metric: str, **where: str) -> float:
    rows = RECORDS[RECORDS["metric"] == metric]
    for column, wanted in where.items():
        rows = rows[rows[column] == wanted]
    assert len(rows) == 1, rows
    return float(rows["value"].iloc[0])


def test_units_are_pooled_and_unscored_ones_counted() -> None:
    cell = RECORDS[
        (RECORDS["metric"] == "accuracy") & (RECORDS["generator"] == "near")
        & (RECORDS["domain"] == "essays") & (RECORDS["version"] == "v1")
    ]  # fmt: skip
    assert cell[["value", "n", "n_unscored"]].values.tolist() == [[1.0, 3, 1]]


def test_the_mean_is_over_generators_then_domains_and_never_over_the_held_out_one() -> None:
    essays = value("accuracy", generator=MEAN, domain="essays", version="v1")
    assert essays == pytest.approx((1.0 + 0.25) / 2)
    both = value("accuracy", generator=MEAN, domain=MEAN, version="v1")
    assert both == pytest.approx((essays + 0.5) / 2)


def test_undefined_metrics_have_no_row() -> None:
    at_v0 = set(RECORDS[RECORDS["version"] == "v0"]["metric"])
    assert at_v0 == {"accuracy", "macro_f1"}
    assert RECORDS["value"].notna().all()


def test_auroc_is_a_version_against_v0_of_the_same_documents() -> None:
    assert value("auroc", generator="near", domain="essays", version="v1") == pytest.approx(
        (4 / 4 + 4 / 4 + 4 / 4 - 3 * 0.5 / 4) / 3
    )


def test_every_record_says_where_its_threshold_came_from() -> None:
    decided = RECORDS[RECORDS["metric"] != "auroc"]
    assert set(decided["threshold"]) == {"calibrated"}
    assert set(RECORDS[RECORDS["metric"] == "auroc"]["threshold"]) == {"none"}


def test_a_published_threshold_is_preferred_to_a_calibrated_one() -> None:
    thresholds = {"document": {"published": 5.0, "calibrated": {"value": 0.0}}}
    records = evaluate(answers({("e", "near", "v1"): [1.0, 9.0]}), thresholds, CONTEXT)
    accuracy = records[(records["metric"] == "accuracy") & (records["domain"] == "e")]
    assert sorted(accuracy["threshold"].unique()) == ["calibrated", "published"]
    assert set(preferred_threshold(accuracy)["threshold"]) == {"published"}


def test_mlflow_sees_means_by_version_and_the_held_out_generator_apart() -> None:
    logged = list(mlflow_metrics(RECORDS))
    names = {name for name, _, _ in logged}
    means = {step: number for name, number, step in logged if name == "document/accuracy/mean"}
    assert means[1] == pytest.approx(0.5625)
    assert "held-out/far/document/accuracy/essays" in names
    assert len({(name, step) for name, _, step in logged}) == len(logged)


def test_headlines_are_few_and_finite() -> None:
    numbers = headline(RECORDS)
    assert set(numbers) == {"document_accuracy", "document_auroc", "document_f1_ai"}
    assert all(pd.notna(number) for number in numbers.values())
    assert set(by_version(RECORDS)["step"]) == {0, 1}


def test_mlflow_sees_a_run_without_a_held_out_generator() -> None:
    known = RECORDS[~RECORDS["held_out"]]
    assert not any(name.startswith("held-out") for name, _, _ in mlflow_metrics(known))
