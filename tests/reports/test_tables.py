import shutil
import subprocess
from pathlib import Path

import pandas as pd
import pytest

from palimpsest.reports.formats import escape, latex, markdown
from palimpsest.reports.tables import by_version_tables, labels, listing, write_tables
from palimpsest.tracking import Evaluation
from palimpsest.trajectories.summary import summarise


def evaluation(run_id: str, detector: str = "length", **params: str) -> Evaluation:
    facts = [
        # metric, version, domain, value
        ("accuracy", "v0", "essays", 0.912),
        ("accuracy", "v1", "essays", 0.772),
        ("f1_ai", "v1", "essays", 0.22),
        ("accuracy", "v0", "mean", 0.912),
        ("accuracy", "v1", "mean", 0.772),
        ("f1_ai", "v1", "mean", 0.22),
    ]
    records = pd.DataFrame(
        [
            {
                "level": "sentence", "metric": metric, "value": value, "n": 40, "n_unscored": 2,
                "low": None, "high": None, "version": version, "variant": "",
                "operation": "polish", "coverage": 15 * int(version[1:]), "domain": domain,
                "generator": generator, "held_out": False,
                "design": "cumulative", "detector": detector, "regime": "baseline",
                "threshold": "calibrated",
            }
            for metric, version, domain, value in facts
            for generator in ("g", "mean")
        ]
    )  # fmt: skip
    text = {
        "design": "cumulative", "domain": "essays", "generator": "g", "doc_id": "d", "group": "d",
        "trajectory_id": "d/g", "sentence_spans": [(0, 1)], "word_spans": [(0, 1)],
    }  # fmt: skip
    described = {
        "detector": detector, "design": "cumulative", "texts": "abc", "regime": "baseline",
        "profile": "demo", **params,
    }  # fmt: skip
    return Evaluation(run_id, described, {}, records, summarise([text], {"d": "test"}))


def test_the_version_table_prints_as_the_paper_does() -> None:
    (table,) = by_version_tables([evaluation("r1")])
    assert table.rows == [
        ["length", "v0", "91.2", "0.0", "91.2", "0.0"],
        ["", "v1", "77.2 (−14.0)", "22.0 (+22.0)", "77.2 (−14.0)", "22.0 (+22.0)"],
    ]
    assert "| length | v0 | 91.2 | 0.0 |" in markdown(table)


def test_every_number_is_traceable_to_its_run() -> None:
    (table,) = by_version_tables([evaluation("r1"), evaluation("r2", "random")])
    assert set(table.data["run_id"]) == {"r1", "r2"}
    assert table.data["value"].tolist().count(0.772) == 4


def test_runs_of_one_detector_are_told_apart_by_what_differs() -> None:
    runs = [evaluation("r1", seed="0"), evaluation("r2", seed="1"), evaluation("r3", "random")]
    assert labels(runs) == {"r1": "length (seed=0)", "r2": "length (seed=1)", "r3": "random"}


def test_the_listing_counts_scored_and_unscored_units() -> None:
    assert listing([evaluation("r1")]).rows[0][4:7] == ["calibrated", "80", "4"]


def test_runs_on_different_texts_are_not_put_side_by_side(tmp_path: Path) -> None:
    write_tables([evaluation("r1"), evaluation("r2", texts="def")], tmp_path)
    assert (tmp_path / "cumulative-abc" / "runs.csv").is_file()
    assert "r2" not in (tmp_path / "cumulative-abc" / "runs.csv").read_text()
    assert "r2" in (tmp_path / "cumulative-def" / "runs.csv").read_text()


def test_text_is_escaped_for_latex() -> None:
    assert escape("50 % of a_b & −1 ± 2") == r"50 \% of a\_b \& $-$1 $\pm$ 2"


@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="no TeX is installed")
def test_the_latex_compiles(tmp_path: Path) -> None:
    (table,) = by_version_tables([evaluation("r1")])
    document = (
        r"\documentclass{article}\usepackage{booktabs}\begin{document}"
        + latex(table)
        + r"\end{document}"
    )
    (tmp_path / "t.tex").write_text(document)
    command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "t.tex"]
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)
