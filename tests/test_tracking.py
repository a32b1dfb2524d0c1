import shutil
from pathlib import Path

import pandas as pd
import pytest

from palimpsest.errors import InputError
from palimpsest.tracking import (
    add_configuration,
    add_to_experiment,
    artifact,
    client,
    create_store,
    evaluations,
    find_finished,
    params_of,
    runs_by_configuration,
    tracked,
)


@pytest.fixture(scope="module")
def empty_store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """MLflow takes seconds to create its schema: once, then copied."""
    folder = tmp_path_factory.mktemp("store")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DVC_ROOT", str(folder))
        create_store("other")
    return folder / "mlflow.db"


@pytest.fixture(autouse=True)
def root(tmp_path: Path, empty_store: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    shutil.copy(empty_store, tmp_path)
    monkeypatch.setenv("DVC_ROOT", str(tmp_path))
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    return tmp_path


def log_run(
    key: str, stage: str = "evaluate", folder: Path | None = None, **params: object
) -> str | None:
    with tracked("bench", stage, key, name="n", params=params, tags={}) as run:
        run.metric("document/accuracy/mean", 0.5, 1)
        if folder:
            run.artifact(folder, "tables")
        return run.id


def count() -> int:
    store = client()
    return len(store.search_runs([create_store("bench")]))


def test_a_finished_key_is_not_logged_twice() -> None:
    first = log_run("k", learning_rate=2e-6)
    assert first is not None
    assert log_run("k", learning_rate=2e-6) is None
    assert log_run("other", learning_rate=2e-6) is not None
    assert count() == 2


def test_a_run_that_failed_keeps_its_traceback_and_is_tried_again(root: Path) -> None:
    with (
        pytest.raises(ZeroDivisionError),
        tracked("bench", "train", "k", name="n", params={}, tags={}),
    ):
        _ = 1 / 0
    (failed,) = client().search_runs([create_store("bench")])
    assert failed.info.status == "FAILED"
    traces = list((root / "mlartifacts").rglob("traceback.txt"))
    assert "ZeroDivisionError" in traces[0].read_text()
    assert log_run("k") is not None


def test_an_evaluation_is_the_child_of_its_training() -> None:
    parent = log_run("train key", "train")
    with tracked(
        "bench", "evaluate", "k", name="n", params={}, tags={}, parent_key="train key"
    ) as run:
        child = run.id
    assert child is not None
    assert client().get_run(child).data.tags["mlflow.parentRunId"] == parent


def test_the_dvc_experiment_that_repeats_a_run_is_noted_on_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    run_id = log_run("k")
    monkeypatch.setenv("DVC_EXP_NAME", "brave-otter")
    log_run("k")
    assert run_id is not None
    assert client().get_run(run_id).data.tags["dvc.exp"] == "brave-otter"


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_a_number_that_is_not_finite_is_refused(value: float) -> None:
    with (
        pytest.raises(ValueError, match="metric m at step 0"),
        tracked("bench", "train", "k", name="n", params={}, tags={}) as run,
    ):
        run.metric("m", value, 0)


def test_the_newest_run_of_a_configuration_counts(tmp_path: Path) -> None:
    folder = tmp_path / "tables"
    folder.mkdir()
    pd.DataFrame({"value": [1.0]}).to_parquet(folder / "records.parquet")
    pd.DataFrame({"domain": ["null"]}).to_csv(folder / "statistics.csv", index=False)
    log_run("old code", folder=folder, detector="length")
    newer = log_run("new code", folder=folder, detector="length")
    other = log_run("k", folder=folder, detector="random")
    found = evaluations("bench")
    assert [e.run_id for e in found] == [newer, other]
    assert found[0].statistics["domain"].tolist() == ["null"]


def test_artifacts_on_this_machine_are_read_where_they_lie(tmp_path: Path, root: Path) -> None:
    folder = tmp_path / "tables"
    folder.mkdir()
    pd.DataFrame({"a": [1]}).to_parquet(folder / "records.parquet")
    pd.DataFrame({"a": [1]}).to_csv(folder / "statistics.csv")
    run_id = log_run("k", folder=folder)
    assert run_id is not None
    kept = root / "mlartifacts/bench" / run_id / "artifacts/tables"
    (run,) = evaluations("bench")
    assert run.artifact("tables") == artifact(run_id, "tables") == kept


def test_a_run_that_lost_its_artifacts_is_left_out_by_name(
    tmp_path: Path, root: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder = tmp_path / "tables"
    folder.mkdir()
    pd.DataFrame({"a": [1]}).to_parquet(folder / "records.parquet")
    pd.DataFrame({"a": [1]}).to_csv(folder / "statistics.csv")
    kept, lost = log_run("k", folder=folder, seed=0), log_run("l", folder=folder, seed=1)
    shutil.rmtree(root / "mlartifacts/bench" / str(lost))
    assert [run.run_id for run in evaluations("bench")] == [kept]
    assert f"run {lost} has lost its artifact tables" in caplog.text


def test_an_empty_store_is_an_error_that_says_what_to_do() -> None:
    with pytest.raises(InputError, match="run `dvc repro` first"):
        evaluations("bench")


def test_the_store_lies_in_the_project_also_from_a_temporary_folder(
    root: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path_factory.mktemp("experiment"))
    log_run("k")
    assert (root / "mlflow.db").is_file()
    assert find_finished(client(), create_store("bench"), "k")


def test_a_finished_run_may_stand_for_another_configuration() -> None:
    run_id = log_run("k")
    add_configuration("bench", "k", "c1")
    add_configuration("bench", "k", "c2")
    add_configuration("bench", "no such key", "c3")
    assert runs_by_configuration("bench") == {"c1": run_id, "c2": run_id}


def test_params_are_found_by_the_experiments_that_a_run_carries() -> None:
    run_ids = [log_run(key, detector=key) for key in ("a", "b")]
    add_to_experiment("main", [str(run_ids[0])])
    add_to_experiment("main-too", map(str, run_ids))
    assert params_of("bench", "main") == [{"detector": "a"}]
    assert params_of("no such benchmark", "main") == []
