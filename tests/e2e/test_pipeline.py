"""The real pipeline through DVC: SmolLM2 revises three essays, two detectors judge them."""

import os
import re
import signal
import sqlite3
import time
from pathlib import Path
from typing import Any

import pytest

from palimpsest.records import read_rows
from tests.e2e.project import Project
from tests.e2e.provenance import check_provenance

pytestmark = pytest.mark.e2e

# One paragraph of each essay: every request takes a second.
SHORT = {"source": "docs/example", "min_sentences": "3", "default": "4"}
TEXTS = Path("artifacts/texts/cumulative/texts.parquet")


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    made = Project(tmp_path_factory.mktemp("project"), **SHORT)
    made.run("dvc", "repro")
    return made


@pytest.fixture(scope="module")
def samples(project: Project) -> list[dict[str, Any]]:
    return list(read_rows(project.folder / TEXTS))


def test_a_second_repro_does_nothing(project: Project) -> None:
    before = project.runs()
    begin = time.monotonic()
    output = project.run("dvc", "repro")
    assert time.monotonic() - begin < 15
    assert project.stages_run(output) == []
    assert project.runs() == before


def test_every_sample_keeps_its_provenance(project: Project) -> None:
    assert check_provenance(project.folder) == 3


def test_most_chosen_sentences_were_revised(samples: list[dict[str, Any]]) -> None:
    last = [row for row in samples if row["version"] == "v8"]
    assert sum(row["ai_sentence_ratio"] for row in last) / len(last) > 0.8


def test_another_detector_trains_and_evaluates_and_nothing_else(project: Project) -> None:
    output = project.run("dvc", "exp", "run", "--temp", "-S", "detector=genai-sentence")
    assert project.stages_run(output) == ["train", "evaluate"]
    assert project.runs() == [
        ("train fast-detectgpt", "train", "FINISHED"),
        ("fast-detectgpt", "evaluate", "FINISHED"),
        ("train genai-sentence", "train", "FINISHED"),
        ("genai-sentence", "evaluate", "FINISHED"),
    ]


def test_a_baseline_can_be_queued(project: Project) -> None:
    project.run("dvc", "exp", "run", "--queue", "-S", "detector=length")
    project.run("dvc", "queue", "start")
    project.run("dvc", "queue", "status")
    deadline = time.monotonic() + 120
    while ("length", "evaluate", "FINISHED") not in project.runs():
        assert time.monotonic() < deadline, project.run("dvc", "queue", "logs", "-1")
        time.sleep(2)


def test_tables_show_every_detector_at_every_version(project: Project) -> None:
    project.run("palimpsest", "tables")
    tables = project.folder / "reports/tables"
    table = (tables / "table-08.md").read_text()
    for detector in (
        "fast-detectgpt [zero-shot, extension]",
        "genai-sentence [trained]",
        "length [baseline]",
    ):
        assert f"| {detector} | v0 |" in table
    assert all(table.count(f"| v{t} |") == 3 for t in range(9))
    assert (tables / "table-02.tex").read_text().count(r"\\") == 3


def test_a_comment_in_a_metrics_file_evaluates_anew_and_nothing_else(project: Project) -> None:
    before = len(project.runs())
    with (project.folder / "src/palimpsest/evaluation/metrics.py").open("a") as file:
        file.write("\n# a comment\n")
    assert project.stages_run(project.run("dvc", "repro")) == ["evaluate"]
    assert len(project.runs()) == before + 1


def test_evaluating_other_generators_does_not_train(project: Project) -> None:
    output = project.run("dvc", "exp", "run", "-S", "evaluate.select.generators=in-distribution")
    assert project.stages_run(output) == ["evaluate"]


def test_another_design_is_built_and_evaluated_without_training(project: Project) -> None:
    output = project.run("dvc", "exp", "run", "--temp", "-S", "evaluate.select.design=independent")
    assert project.stages_run(output) == ["generate", "evaluate"]
    with sqlite3.connect(project.folder / "mlflow.db") as store:
        steps = store.execute(
            "SELECT runs.run_uuid, params.value, count(DISTINCT metrics.step) FROM runs "
            "JOIN params ON params.run_uuid = runs.run_uuid AND params.key = 'design' "
            "JOIN metrics ON metrics.run_uuid = runs.run_uuid "
            "AND metrics.key = 'document/accuracy/essays' "
            "WHERE runs.name = 'fast-detectgpt' GROUP BY 1, 2"
        ).fetchall()
    assert {(design, count) for _, design, count in steps} == {
        ("cumulative", 9),
        ("independent", 9),
    }


def test_a_lost_store_is_rebuilt_from_the_outputs(project: Project) -> None:
    lost = project.folder / "mlflow.db"
    kept = lost.rename(project.folder / "kept.db")
    project.run("palimpsest", "track")
    assert [stage for _, stage, _ in project.runs()] == ["train", "evaluate"]
    lost.unlink()
    kept.rename(lost)


def test_a_killed_generation_resumes_to_the_same_bytes_and_repeats_no_request(
    project: Project, tmp_path: Path
) -> None:
    second = Project(tmp_path, **SHORT)
    journal = tmp_path / ".palimpsest/journal.sqlite"
    # Most replies are there: those that are missing, in all versions, take the model a minute.
    journal.parent.mkdir(exist_ok=True)
    with sqlite3.connect(project.folder / ".palimpsest/journal.sqlite") as whole:
        whole.execute("VACUUM INTO ?", (str(journal),))
    with sqlite3.connect(journal) as part:
        part.execute("DELETE FROM replies WHERE rowid % 5 = 0")
    total, left = replies(project.folder / ".palimpsest/journal.sqlite"), replies(journal)
    process = second.start("dvc", "repro", "generate")
    while replies(journal) < left + 8:
        assert process.poll() is None, process.communicate()[0]
        time.sleep(0.1)
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
    answered = replies(journal)

    output = second.run("dvc", "repro", "generate")
    assert (tmp_path / TEXTS).read_bytes() == (project.folder / TEXTS).read_bytes()
    sent = int(re.findall(r"(\d+) requests sent", output)[-1])
    assert 0 < sent == replies(journal) - answered < total - left


def replies(journal: Path) -> int:
    if not journal.exists():
        return 0
    with sqlite3.connect(journal, timeout=30) as database:
        try:
            return int(database.execute("SELECT count(*) FROM replies").fetchone()[0])
        except sqlite3.OperationalError:  # the table comes a moment after the file
            return 0
