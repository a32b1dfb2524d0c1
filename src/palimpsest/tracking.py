"""The MLflow store: one run for each training and evaluation, found again by its key.

The only module that imports mlflow.
"""

import hashlib
import logging
import os
import platform
import subprocess
import traceback
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from palimpsest.errors import InputError
from palimpsest.params import project_root
from palimpsest.run_keys import digest

if TYPE_CHECKING:
    from mlflow import MlflowClient

log = logging.getLogger(__name__)

KEY = "palimpsest.key"
STAGE = "palimpsest.stage"
# Blank-separated: params that nothing read may differ between equal runs, and a run may serve
# several experiments.
CONFIGURATIONS = "palimpsest.configurations"
EXPERIMENTS = "experiments"


def store_uri() -> str:
    """MLFLOW_TRACKING_URI, else the project's own SQLite file."""
    return os.environ.get("MLFLOW_TRACKING_URI") or f"sqlite:///{project_root() / 'mlflow.db'}"


def client() -> "MlflowClient":
    os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")
    from mlflow import MlflowClient

    logging.getLogger("alembic").setLevel(logging.WARNING)
    return MlflowClient(store_uri())


def create_store(experiment: str) -> str:
    """Create the store's schema and the experiment where they are missing; the experiment's id.

    Done once in set-up, because two first writers of one SQLite file would race.
    """
    store = client()
    found = store.get_experiment_by_name(experiment)
    if found is not None:
        return str(found.experiment_id)
    location = None
    if not os.environ.get("MLFLOW_TRACKING_URI"):
        location = (project_root() / "mlartifacts" / experiment).as_uri()
    return str(store.create_experiment(experiment, artifact_location=location))


@dataclass(slots=True)
class Run:
    """An open run; without an id it swallows what it is given, for the run exists already."""

    store: "MlflowClient"
    id: str | None
    _metrics: list[Any] = field(default_factory=list)

    def metric(self, metric: str, value: float, step: int = 0) -> None:
        """Note one number; MLflow refuses or corrupts what is not finite, so that raises here."""
        from mlflow.entities import Metric

        if value != value or value in (float("inf"), float("-inf")):
            raise ValueError(f"metric {metric} at step {step} is {value}")
        self._metrics.append(Metric(metric, float(value), 0, step))
        if len(self._metrics) == 1000:
            self.flush()

    def tag(self, name: str, value: str) -> None:
        if self.id is not None:
            self.store.set_tag(self.id, name, value)

    def artifact(self, path: Path, folder: str | None = None) -> None:
        if self.id is None:
            return
        send = self.store.log_artifacts if path.is_dir() else self.store.log_artifact
        send(self.id, str(path), folder)

    def flush(self) -> None:
        if self.id is not None and self._metrics:
            self.store.log_batch(self.id, metrics=self._metrics)
        self._metrics = []


@contextmanager
def tracked(
    experiment: str,
    stage: str,
    key: str,
    *,
    name: str,
    params: Mapping[str, Any],
    tags: Mapping[str, str],
    parent_key: str | None = None,
) -> Iterator[Run]:
    """A run for the body, finished or failed with it.

    Where a finished run has the key already, that one is tagged with the present DVC experiment
    and no second one is made. A failed run keeps its traceback as an artifact.
    """
    from mlflow.entities import Param, RunTag

    store = client()
    experiment_id = create_store(experiment)
    finished = find_finished(store, experiment_id, key)
    if finished is not None:
        log.info("run %s has these results already", finished)
        if configuration := tags.get(CONFIGURATIONS):
            _add_word(store, finished, CONFIGURATIONS, configuration)
        if exp := os.environ.get("DVC_EXP_NAME"):
            store.set_tag(finished, "dvc.exp", exp)
        yield Run(store, None)
        return

    all_tags = {KEY: key, STAGE: stage, **environment_tags(), **tags}
    if parent_key and (parent := find_finished(store, experiment_id, parent_key)):
        all_tags["mlflow.parentRunId"] = parent
    run_id = store.create_run(experiment_id, run_name=name, tags=all_tags).info.run_id
    run = Run(store, run_id)
    try:
        store.log_batch(
            run_id,
            params=[Param(k, "null" if v is None else str(v)) for k, v in params.items()],
            tags=[RunTag("mlflow.user", os.environ.get("USER", "unknown"))],
        )
        yield run
        run.flush()
    except BaseException as error:
        status = "KILLED" if isinstance(error, KeyboardInterrupt) else "FAILED"
        store.log_text(run_id, traceback.format_exc(), "traceback.txt")
        store.set_terminated(run_id, status)
        raise
    store.set_terminated(run_id, "FINISHED")


def find_finished(store: "MlflowClient", experiment_id: str, key: str) -> str | None:
    runs = store.search_runs(
        [experiment_id], f"tags.`{KEY}` = '{key}' and attributes.status = 'FINISHED'", max_results=1
    )
    return str(runs[0].info.run_id) if runs else None


def _add_word(store: "MlflowClient", run_id: str, tag: str, word: str) -> None:
    words = store.get_run(run_id).data.tags.get(tag, "").split()
    if word not in words:
        store.set_tag(run_id, tag, " ".join([*words, word]))


def runs_by_configuration(experiment: str) -> dict[str, str]:
    """The newest finished evaluation of each configuration."""
    return {
        word: run.info.run_id
        for run in _finished_evaluations(experiment)
        for word in run.data.tags.get(CONFIGURATIONS, "").split()
    }


def params_of(experiment: str, name: str) -> list[dict[str, str]]:
    """The params of every finished evaluation that carries an experiment's name."""
    return [
        run.data.params
        for run in _finished_evaluations(experiment)
        if name in run.data.tags.get(EXPERIMENTS, "").split()
    ]


def add_configuration(experiment: str, key: str, configuration: str) -> None:
    """Let the finished run with this key, if there is one, stand for a configuration, too."""
    store = client()
    if run_id := find_finished(store, create_store(experiment), key):
        _add_word(store, run_id, CONFIGURATIONS, configuration)


def add_to_experiment(name: str, run_ids: Iterable[str]) -> None:
    """Let runs carry an experiment's name, so that the UI filters by it."""
    store = client()
    for run_id in run_ids:
        _add_word(store, run_id, EXPERIMENTS, name)


def summarise_experiment(
    benchmark: str, name: str, run_ids: Collection[str], folders: Mapping[str, Path]
) -> None:
    """One run for an experiment's results: its tables and figures, and its runs' pages.

    Runs that were summarised before are not summarised again.
    """
    key = hashlib.sha256("\n".join([name, *sorted(run_ids)]).encode()).hexdigest()[:32]
    tags = {EXPERIMENTS: name, "runs": " ".join(sorted(run_ids))}
    with tracked(benchmark, "summary", key, name=name, params={}, tags=tags) as run:
        for folder, path in folders.items():
            run.artifact(path, folder)


def _finished_evaluations(experiment: str) -> Iterator[Any]:
    """MLflow's runs, oldest first; none where there is no such experiment."""
    store = client()
    found = store.get_experiment_by_name(experiment)
    token = None
    while found is not None:
        page = store.search_runs(
            [found.experiment_id],
            f"tags.`{STAGE}` = 'evaluate' and attributes.status = 'FINISHED'",
            order_by=["attributes.start_time ASC"],
            page_token=token,
        )
        yield from page
        token = page.token
        if not token:
            return


def environment_tags() -> dict[str, str]:
    """Where a run came from: commit, uncommitted changes, DVC experiment, lock file, versions."""
    tags = {
        "python": platform.python_version(),
        "torch": version("torch"),
        "transformers": version("transformers"),
        "platform": platform.platform(),
    }
    lock = Path("requirements.lock")
    if lock.is_file():
        tags["requirements.lock"] = digest(lock)[:12]
    if exp := os.environ.get("DVC_EXP_NAME"):
        tags["dvc.exp"] = exp
        tags["dvc.baseline"] = os.environ.get("DVC_EXP_BASELINE_REV", "")
    commit = _git("rev-parse", "HEAD")
    if commit:
        changed = _git("status", "--porcelain", "--", ".", ":!dvc.lock", ":!params.yaml")
        tags["git.commit"] = commit
        tags["git.dirty"] = str(bool(changed)).lower()
    return tags


def _git(*arguments: str) -> str:
    done = subprocess.run(["git", *arguments], capture_output=True, text=True)
    return done.stdout.strip() if done.returncode == 0 else ""


@dataclass(frozen=True, slots=True)
class Evaluation:
    """A finished evaluation as the store holds it; `location` is the URI of its artifacts."""

    run_id: str
    location: str
    params: Mapping[str, str]
    tags: Mapping[str, str]
    records: pd.DataFrame
    statistics: pd.DataFrame

    def artifact(self, path: str) -> Path:
        """As `artifact`."""
        return _artifact(self.run_id, self.location, path)


def evaluations(experiment: str, run_ids: Collection[str] | None = None) -> list[Evaluation]:
    """The newest finished evaluation of each configuration, oldest first; of these runs, or of all.

    Runs whose params are equal are one configuration; of those the newest counts.

    Raises:
        InputError: a store without the experiment or without finished evaluations.
    """
    newest: dict[tuple[tuple[str, str], ...], Any] = {}
    for run in _finished_evaluations(experiment):
        if run_ids is None or run.info.run_id in run_ids:
            newest[tuple(sorted(run.data.params.items()))] = run
    if not newest:
        raise InputError(
            f"{store_uri()} holds no finished evaluation of {experiment}: run `dvc repro` first"
        )

    result = []
    for run in sorted(newest.values(), key=lambda r: r.info.start_time):
        try:
            folder = _artifact(run.info.run_id, run.info.artifact_uri, "tables")
        except LostArtifactError as error:
            log.warning("left out: %s", error)
            continue
        result.append(
            Evaluation(
                run_id=run.info.run_id,
                location=run.info.artifact_uri,
                params=run.data.params,
                tags=run.data.tags,
                records=pd.read_parquet(folder / "records.parquet"),
                statistics=pd.read_csv(folder / "statistics.csv", keep_default_na=False),
            )
        )
    return result


class LostArtifactError(InputError):
    """A run whose artifact is no longer where the store says."""


def artifact(run_id: str, path: str) -> Path:
    """A run's artifact: the store's own file where that is on this machine, else a copy of it.

    Raises:
        LostArtifactError: it is not there.
    """
    return _artifact(run_id, client().get_run(run_id).info.artifact_uri, path)


def _artifact(run_id: str, location: str, path: str) -> Path:
    from mlflow.artifacts import download_artifacts
    from mlflow.exceptions import MlflowException

    try:
        # by the run's id MLflow would copy local files, too
        found = download_artifacts(artifact_uri=f"{location}/{path}", tracking_uri=store_uri())
    except (MlflowException, OSError) as error:
        raise LostArtifactError(
            f"run {run_id} has lost its artifact {path}: restore mlartifacts/, or delete the run "
            "and repeat it"
        ) from error
    return Path(found)
