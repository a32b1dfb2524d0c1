"""Experiments through DVC's queue, on texts that a release holds, so that no model writes any."""

import re
from pathlib import Path

import pytest

from tests.documents import make_document
from tests.e2e.project import Project
from tests.releases import trajectory, write_release_file

pytestmark = pytest.mark.e2e


@pytest.fixture(scope="module")
def release(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("release")
    for split in ("train", "dev", "test"):
        rows = trajectory(make_document(split, n=10), "gpt-5.4", split)
        write_release_file(folder, f"default/{split}/essays_gpt-5.4.csv", rows)
    return folder


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory, release: Path) -> Project:
    made = Project(
        tmp_path_factory.mktemp("project"),
        source=str(release), format="opai-bench", documents_per_domain="null",
    )  # fmt: skip
    made.run("dvc", "repro", "split")
    return made


EXPERIMENT = """
question: Do the baselines differ?
redraws: [Figure 2]
demo:
  grid:
    detector: [length, random]
    corpus.source: [RELEASE, docs/missing]
paper: {}
"""


def test_an_experiment_survives_a_failed_member_and_names_its_log(
    project: Project, release: Path
) -> None:
    experiment = EXPERIMENT.replace("RELEASE", str(release))
    (project.folder / "experiments/baselines.yaml").write_text(experiment)
    output = project.run("palimpsest", "experiment", "baselines", fails=True)
    assert "2 of 4 members of baselines failed" in output
    logs = list((project.folder / ".palimpsest/logs").glob("baselines-*.log"))
    assert len(logs) == 2
    assert all(str(path) in output and "docs/missing" in path.read_text() for path in logs)
    listing = project.run("palimpsest", "experiment")
    assert re.search(r"^baselines +2/4 ", listing, re.MULTILINE)


def test_an_experiment_runs_only_what_is_left_and_ends_with_its_tables(
    project: Project, release: Path
) -> None:
    experiment = EXPERIMENT.replace("RELEASE, docs/missing", str(release))
    path = project.folder / "experiments/baselines.yaml"
    path.write_text(experiment.replace("random", "random, majority"))
    before = len(project.runs())
    output = project.run("palimpsest", "experiment", "baselines")
    assert output.count("\ndone  ") + output.startswith("done  ") == 2
    added = project.runs()[before:]
    assert [(name, stage) for name, stage, _ in added] == [
        ("train majority", "train"),
        ("majority", "evaluate"),
        ("baselines", "summary"),
    ]
    report = project.folder / "reports/experiments/baselines/index.md"
    for name in ("length", "random", "majority"):
        assert f"| {name} [baseline] | v0 |" in report.read_text()
