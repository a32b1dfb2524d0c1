"""What a reader sees: the report, a trajectory and the MLflow UI, in a real browser."""

import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.error import URLError
from urllib.request import urlopen

import pytest

from palimpsest.reports.report import write_report
from palimpsest.reports.runs import choose
from palimpsest.reports.viewer import render
from palimpsest.tracking import client, evaluations, store_uri
from tests.browser import chromium
from tests.reports.store import log
from tests.scripted import ScriptedEditor
from tests.trajectories.test_build import DOCUMENTS, build, swap

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(chromium.find() is None, reason="no Chromium is installed"),
]

BENCHMARK = "opai-bench"
DESKTOP, PHONE = (1280, 1600), (390, 1200)
SIZES = pytest.mark.parametrize("size", [DESKTOP, PHONE], ids=["desktop", "phone"])


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("store")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DVC_ROOT", str(folder))
        patch.delenv("MLFLOW_TRACKING_URI", raising=False)
        for design in ("cumulative", "independent"):
            log(BENCHMARK, "fast-detectgpt", "zero-shot", design)
            log(BENCHMARK, "genai-sentence", "trained", design, "word")
        yield folder


def shows(page: chromium.Page) -> None:
    """A page that says nothing on the console and whose picture has something on it."""
    assert not page.console
    assert page.screenshot.stat().st_size > 10_000


@SIZES
def test_the_report_renders(store: Path, tmp_path: Path, size: tuple[int, int]) -> None:
    index, *_ = write_report(choose(evaluations(BENCHMARK)), tmp_path / "reports", BENCHMARK)
    page = chromium.visit(index.as_uri(), tmp_path / "report.png", size)
    shows(page)
    for heading in ("Findings", "Table 4", "Table 8", "Figure 9", "Figure 21"):
        assert f">{heading}:" in page.dom
    assert "no finished run of the design coverage" in page.dom


@SIZES
def test_a_trajectory_renders(tmp_path: Path, size: tuple[int, int]) -> None:
    path = tmp_path / "trajectory.html"
    path.write_text(render(build(ScriptedEditor(swap), DOCUMENTS[:1]), {}), encoding="utf-8")
    page = chromium.visit(path.as_uri(), tmp_path / "trajectory.png", size)
    shows(page)
    assert "paraphrase" in page.dom


def test_mlflows_charts_show_the_runs_by_version(store: Path, tmp_path: Path) -> None:
    experiment = client().get_experiment_by_name(BENCHMARK).experiment_id
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "mlflow", "ui", "--host", "127.0.0.1", "--port", str(port)]
    with (tmp_path / "mlflow.log").open("w") as output:
        server = subprocess.Popen(
            [*command, "--workers", "1", "--backend-store-uri", store_uri()],
            stdout=output, stderr=output, start_new_session=True,
        )  # fmt: skip
    try:
        wait_for(f"http://127.0.0.1:{port}/health")
        url = f"http://127.0.0.1:{port}/#/experiments/{experiment}/runs?compareRunsMode=CHART"
        page = chromium.visit(url, tmp_path / "mlflow.png", DESKTOP, seconds=20)
    finally:
        server.terminate()
        server.wait(30)
    assert page.screenshot.stat().st_size > 10_000
    assert "fast-detectgpt" in page.dom
    assert "document/auroc" in page.dom


def wait_for(url: str, seconds: float = 90) -> None:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            with urlopen(url, timeout=5):
                return
        except (URLError, OSError):
            time.sleep(0.5)
    pytest.fail(f"{url} does not answer")
