"""Mistakes in `dvc exp run -S`, in a project where nothing is built yet."""

import time

import pytest

from tests.e2e.project import Project

pytestmark = pytest.mark.e2e


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    return Project(tmp_path_factory.mktemp("project"), source="docs/example")


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("detector=fast-detectgtp", "fast-detectgtp"),
        ("detectors.fast-detectgpt.max_tokens=abc", "max_tokens"),
        ("train.frp=0.1", "frp"),
        ("corpus.text_column=body", "body"),
        ("corpus.source=nowhere", "nowhere"),
    ],
)
def test_a_mistake_stops_before_any_work(project: Project, setting: str, message: str) -> None:
    begin = time.monotonic()
    output = project.run("dvc", "exp", "run", "--temp", "-S", setting, fails=True)
    assert message in output
    assert time.monotonic() - begin < 30
