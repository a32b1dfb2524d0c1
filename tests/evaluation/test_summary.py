from typing import Any

import pandas as pd
import pytest

from palimpsest.evaluation.report import MEAN
from palimpsest.evaluation.summary import CURVES, by_version, headline, mlflow_metrics, result_lines
from palimpsest.records import Scores
from tests.evaluation.cases import records, sample

THRESHOLDS = {"document": {"published": None, "calibrated": {"value": 0.5}}}


def run(design: str, versions: dict[tuple[str, str], int], **where: Any) -> pd.DataFrame:
    """Three documents of each (variant, version), whose score is the coverage."""
    pairs = [
        (
            sample([1] * (coverage // 25) + [0] * (4 - coverage // 25), doc=f"d{i}",
                   version=version, coverage=coverage, variant=variant, generator=generator,
                   design=design),
            Scores(coverage / 100 + i / 10),
        )
        for (variant, version), coverage in versions.items()
        for generator in where.get("generators", ("near", "far"))
        for i in range(3)
    ]  # fmt: skip
    return records(pairs, THRESHOLDS, design=design, resamples=10)


CUMULATIVE = run("cumulative", {("", "v0"): 0, ("", "v4"): 50, ("", "v6"): 75, ("", "v8"): 100})


def steps(table: pd.DataFrame, name: str) -> dict[int, float]:
    return {step: value for metric, value, step in mlflow_metrics(table) if metric == name}


def test_the_steps_of_a_trajectory_are_its_versions() -> None:
    assert steps(CUMULATIVE, "document/accuracy/mean") == pytest.approx(
        {0: 1.0, 4: 2 / 3, 6: 1.0, 8: 1.0}
    )
    assert set(steps(CUMULATIVE, "document/auroc/essays")) == {4, 6, 8}


def test_the_held_out_generator_stands_apart() -> None:
    assert set(steps(CUMULATIVE, "held-out/far/document/accuracy/essays")) == {0, 4, 6, 8}
    known = CUMULATIVE[~CUMULATIVE["held_out"]]
    assert not any(name.startswith("held-out") for name, _, _ in mlflow_metrics(known))


def test_in_the_design_coverage_the_step_is_the_coverage_and_each_operation_a_curve() -> None:
    table = run(
        "coverage",
        {(v, f"c{c:03}"): c for v in ("compress", "expand") for c in (0, 25, 50, 75, 100)},
    )
    for operation in ("compress", "expand"):
        curve = steps(table, f"document/accuracy/mean/{operation}")
        assert set(curve) == {0, 25, 50, 75, 100}


def test_in_the_design_operation_the_step_is_0_and_the_name_has_operation_and_coverage() -> None:
    table = run(
        "operation",
        {
            (str(c), version): 0 if version == "v0" else c
            for c in (25, 50)
            for version in ("v0", "compress", "expand")
        },
    )
    names = {name for name, _, step in mlflow_metrics(table) if step == 0}
    for name in ("compress-25", "compress-50", "expand-25", "v0-50"):
        assert f"document/accuracy/mean/{name}" in names
    assert all(step == 0 for _, _, step in mlflow_metrics(table))


@pytest.mark.parametrize("design", ["cumulative", "operation"])
def test_no_two_numbers_share_name_and_step(design: str) -> None:
    table = CUMULATIVE
    if design == "operation":
        versions = {(str(c), v): 0 if v == "v0" else c for c in (25, 50) for v in ("v0", "expand")}
        table = run("operation", versions)
    logged = [(name, step) for name, _, step in mlflow_metrics(table)]
    assert len(set(logged)) == len(logged) > 0


def test_only_the_curves_are_logged_by_version() -> None:
    metrics = {name.split("/")[-2] for name, _, _ in mlflow_metrics(CUMULATIVE)}
    assert metrics <= set(CURVES)
    assert {"ai_share", "auprc"} <= set(CUMULATIVE["metric"])


def test_headlines_are_few_and_finite_and_leave_the_held_out_generator_out() -> None:
    numbers = headline(CUMULATIVE)
    assert set(numbers) == {
        "document_accuracy", "document_auroc", "document_coverage_rho", "document_detected",
        "document_f1_ai", "document_inversions",
    }  # fmt: skip
    assert all(pd.notna(number) for number in numbers.values())
    assert numbers == headline(run("cumulative", {
        ("", "v0"): 0, ("", "v4"): 50, ("", "v6"): 75, ("", "v8"): 100,
    }, generators=["near"]))  # fmt: skip


def test_a_result_is_a_line_for_each_level_with_the_headlines_f1() -> None:
    (line,) = result_lines(CUMULATIVE)
    f1 = headline(CUMULATIVE)["document_f1_ai"]
    assert line == f"document: AUROC 1.00 at v8 against v0 (n=6), mean F1-AI {f1:.2f} (n=9)"
    assert result_lines(CUMULATIVE[CUMULATIVE["held_out"]]) == []


def test_versions_of_one_coverage_share_the_results_auroc() -> None:
    versions = {("50", v): 0 if v == "v0" else 50 for v in ("v0", "compress", "expand")}
    (line,) = result_lines(run("operation", versions))
    assert " at compress/expand against v0 (n=12)" in line


def test_the_plotted_table_has_what_mlflow_has_of_the_mean() -> None:
    table = by_version(CUMULATIVE)
    logged = {(n, s) for n, _, s in mlflow_metrics(CUMULATIVE) if not n.startswith("held-out")}
    assert set(zip(table["name"], table["step"], strict=True)) == logged
    assert MEAN in set(table["domain"])
