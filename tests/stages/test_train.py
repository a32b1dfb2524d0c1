import logging
import shutil
import time
from pathlib import Path
from threading import Event, Thread

import pytest

from palimpsest.detectors.baselines import Length
from palimpsest.params import load_params
from palimpsest.run_keys import digest
from palimpsest.stages.files import MODEL_FOLDER
from palimpsest.stages.runs import only_training
from tests.stages.project import make_project, run, select


class TrainingError(Exception):
    """What a detector raises here when it is trained."""


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project whose store holds a finished training."""
    folder = tmp_path_factory.mktemp("root")
    make_project(folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DVC_ROOT", str(folder))
        patch.delenv("MLFLOW_TRACKING_URI", raising=False)
        patch.chdir(folder)
        select()
        run("corpus", "generate", "split", "train")
    return folder


@pytest.fixture(autouse=True)
def workspace(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A second folder of the project, without a model, where training fails."""
    folder = tmp_path / "workspace"
    shutil.copytree(root, folder, ignore=shutil.ignore_patterns("mlflow.db", "mlartifacts"))
    monkeypatch.setenv("DVC_ROOT", str(root))
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    monkeypatch.chdir(folder)
    shutil.rmtree(MODEL_FOLDER)

    def fit(*_: object) -> None:
        raise TrainingError

    monkeypatch.setattr(Length, "fit", fit)


def train_while_another_does(caplog: pytest.LogCaptureFixture) -> None:
    """Run the stage while its lock is held; the holder ends when the stage says that it waits."""
    params, begun = load_params(), Event()

    def hold() -> None:
        with only_training(params):
            begun.set()
            deadline = time.monotonic() + 60
            while "waiting for the same training" not in caplog.text:
                assert time.monotonic() < deadline
                time.sleep(0.01)

    holder = Thread(target=hold)
    holder.start()
    begun.wait()
    try:
        with caplog.at_level(logging.INFO):
            run("train")
    finally:
        holder.join()


def test_a_run_that_waited_for_the_same_training_takes_its_model(
    root: Path, caplog: pytest.LogCaptureFixture
) -> None:
    train_while_another_does(caplog)
    assert digest(MODEL_FOLDER) == digest(root / MODEL_FOLDER)


def test_a_run_that_waited_trains_where_the_model_is_lost(
    root: Path, caplog: pytest.LogCaptureFixture
) -> None:
    kept = (root / "mlartifacts").rename(root / "kept")
    with pytest.raises(TrainingError):
        train_while_another_does(caplog)
    assert "has lost its artifact model" in caplog.text
    shutil.rmtree(root / "mlartifacts", ignore_errors=True)
    kept.rename(root / "mlartifacts")


def test_a_run_that_need_not_wait_trains_as_it_was_told() -> None:
    with pytest.raises(TrainingError):
        run("train")
