"""Experiments: one YAML file for each question that the papers ask, run as comparable runs."""

import json
import logging
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import Any

from omegaconf import OmegaConf
from omegaconf.errors import OmegaConfBaseException
from tqdm import tqdm
from yaml import YAMLError

from palimpsest import dvc_queue, tracking
from palimpsest.detectors.registry import check_settings
from palimpsest.errors import InputError, unknown
from palimpsest.params import Params, flat, load_params, project_root
from palimpsest.reports.report import write_report
from palimpsest.reports.runs import choose
from palimpsest.run_keys import short_digest
from palimpsest.stages.files import RUN_FILE
from palimpsest.stages.identity import configuration, title

log = logging.getLogger(__name__)

FOLDER = Path("experiments")
REPORTS = Path("reports/experiments")
POLL = 1.0  # seconds between two looks at the queue
LOOKS = 5  # a run that starts may for a moment be neither queued nor running


@dataclass
class Size:
    """Params that every member has, and the grid whose combinations are the members."""

    set: dict[str, Any] = field(default_factory=dict)
    grid: dict[str, list[Any]] = field(default_factory=dict)


@dataclass
class Experiment:
    question: str
    redraws: list[str]
    demo: Size
    paper: Size


@dataclass(frozen=True, slots=True)
class Member:
    """One run of the pipeline: `key` is its configuration, `varied` what sets it apart.

    `logged` are the params that its run has in the store, as far as they are known beforehand.
    """

    key: str
    varied: dict[str, Any]
    overrides: dict[str, Any]
    logged: dict[str, str]

    def __str__(self) -> str:
        return ", ".join(f"{key}={value}" for key, value in self.varied.items())


def names() -> list[str]:
    """All experiments in the project's folder."""
    return sorted(path.stem for path in FOLDER.glob("*.yaml"))


def load(name: str) -> Experiment:
    """Read and check an experiment.

    Raises:
        InputError: no such experiment, an unknown or missing key, a value of the wrong type.
    """
    if name not in names():
        raise unknown("experiment", name, names())
    path = FOLDER / f"{name}.yaml"
    try:
        given = OmegaConf.load(path)
        found = OmegaConf.to_object(OmegaConf.merge(OmegaConf.structured(Experiment), given))
        for size in ("demo", "paper"):
            path = FOLDER / "sizes" / f"{size}.yaml"
            common = OmegaConf.to_object(OmegaConf.load(path))
            getattr(found, size).set = {**common, **getattr(found, size).set}
    except YAMLError as error:
        raise InputError(f"{path} is not YAML: {str(error).splitlines()[0]}") from error
    except OmegaConfBaseException as error:
        raise InputError(f"{path}: {error.full_key}: {str(error).splitlines()[0]}") from error
    assert isinstance(found, Experiment)
    return found


def members(size: Size) -> list[Member]:
    """Every combination of the grid, checked against the schema of params.yaml.

    Raises:
        InputError: a key or value that params.yaml would not take.
    """
    result = []
    for values in product(*size.grid.values()):
        varied = dict(zip(size.grid, values, strict=True))
        overrides = {**size.set, **varied}
        params = load_params(overrides=overrides)
        check_settings(params.detector, params.detector_settings())
        result.append(Member(configuration(params), varied, overrides, _logged(params)))
    return result


def _logged(params: Params) -> dict[str, str]:
    known = {
        "detector": title(params),
        "profile": params.profile,
        **{f"train.{key}": value for key, value in flat(params.train).items()},
        **flat(params.evaluate),
    }
    return {key: "null" if value is None else str(value) for key, value in known.items()}


def finished(benchmark: str, group: Sequence[Member]) -> dict[str, str]:
    """The evaluation run of each member that has one, by the member's key."""
    runs = tracking.runs_by_configuration(benchmark)
    return {member.key: runs[member.key] for member in group if member.key in runs}


def stale(benchmark: str, name: str, group: Sequence[Member]) -> list[Member]:
    """Those that the experiment has run before, with code, texts or params that have changed."""
    earlier = tracking.params_of(benchmark, name)
    done = finished(benchmark, group)
    return [
        member
        for member in group
        if member.key not in done and any(member.logged.items() <= run.items() for run in earlier)
    ]


def listing(size_name: str) -> Iterator[str]:
    """Of each experiment how much is done and what it redraws, and below it what it asks."""
    yield f"{'experiment':26} {'done':>5} {'stale':>5}  redraws"
    for name in names():
        experiment = load(name)
        size = getattr(experiment, size_name)
        group = members(size)
        done = f"{len(finished(_benchmark(size), group))}/{len(group)}"
        before = len(stale(_benchmark(size), name, group))
        yield f"{name:26} {done:>5} {before or '':>5}  {', '.join(experiment.redraws)}"
        yield f"    {experiment.question}"
    yield "stale: run before with other code, texts or params; `make experiment` runs it again"


def report(name: str, size_name: str, jobs: int) -> list[Path]:
    """Run what is left, then write the experiment's tables and figures from its runs alone."""
    run_ids = run(name, size_name, jobs)
    benchmark = _benchmark(getattr(load(name), size_name))
    folder = REPORTS / name
    paths = write_report(choose(tracking.evaluations(benchmark, run_ids)), folder, benchmark)
    folders = {"report": folder}
    for run_id in run_ids:
        folders[f"trajectories/{run_id}"] = tracking.artifact(run_id, "trajectories")
    tracking.summarise_experiment(benchmark, name, run_ids, folders)
    return paths


def run(name: str, size_name: str, jobs: int) -> list[str]:
    """Run what is left of an experiment through DVC's queue and return the ids of all its runs.

    A second call goes on where the first was stopped: finished members are found in the store,
    queued and running ones in the queue.

    Raises:
        InputError: a member that failed, after the others have had their turn; its log is named.
    """
    size = getattr(load(name), size_name)
    group = members(size)
    benchmark = _benchmark(size)
    done = finished(benchmark, group)
    for member in group:
        log.info("%s  %s", "done" if member.key in done else "left", member)

    left = [member for member in group if member.key not in done]
    failed = _work_off(name, benchmark, left, jobs) if left else {}
    done = finished(benchmark, group)
    tracking.add_to_experiment(name, done.values())
    for member in left:
        if member.key not in done and member.key not in failed:
            failed[member.key] = (
                "DVC had its results in the cache, but the store has no run of them: "
                "`dvc exp apply` it and run `palimpsest track`"
            )
    if failed:
        lines = [f"{member}: {failed[member.key]}" for member in left if member.key in failed]
        raise InputError(
            f"{len(failed)} of {len(group)} members of {name} failed; the others are done:\n"
            + "\n".join(lines)
        )
    return list(done.values())


def _benchmark(size: Size) -> str:
    return load_params(overrides=size.set).benchmark


def _work_off(name: str, benchmark: str, left: Sequence[Member], jobs: int) -> dict[str, str]:
    """Queue the members, wait for all, and return each failed one's log file by its key."""
    known = dvc_queue.statuses()
    waiting: dict[str, Member] = {}
    for member in tqdm(left, desc="queue", unit="run", leave=False):
        prefix = f"{name}-{short_digest(member.key)[:8]}"
        alive = [n for n, s in known.items() if n.startswith(prefix) and s in ("Queued", "Running")]
        queued = alive[0] if alive else f"{prefix}-{time.strftime('%H%M%S')}"
        if not alive:
            dvc_queue.put(queued, member.overrides)
        waiting[queued] = member
    dvc_queue.start(jobs)

    failed = {}
    with tqdm(total=len(left), desc=name, unit="run") as bar:
        for queued, status in _outcomes(waiting, jobs):
            bar.update()
            member = waiting[queued]
            if status == "Success":
                # Where its texts or results were in DVC's cache, no stage has logged this member.
                key = json.loads(dvc_queue.result(queued, RUN_FILE))["evaluate"]
                tracking.add_configuration(benchmark, key, member.key)
            else:
                failed[member.key] = str(_keep_log(queued))
                log.error("failed: %s; its log is %s", member, failed[member.key])
    return failed


def _keep_log(queued: str) -> Path:
    try:
        printed = dvc_queue.output(queued)
    except InputError as error:  # as where it was taken out of the queue
        printed = f"{error}\n"
    path = project_root() / ".palimpsest" / "logs" / f"{queued}.log"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(printed, encoding="utf-8")
    return path


def _outcomes(waiting: dict[str, Member], jobs: int) -> Iterator[tuple[str, dvc_queue.Status]]:
    """Each run's name and status when it ends."""
    open_names = set(waiting)
    unseen: Counter[str] = Counter()
    quiet = 0
    while open_names:
        time.sleep(POLL)
        known = dvc_queue.statuses()
        for queued in sorted(open_names):
            unseen[queued] = 0 if queued in known else unseen[queued] + 1
            status = "Failed" if unseen[queued] == LOOKS else known.get(queued, "Queued")
            if status in ("Success", "Failed"):
                open_names.remove(queued)
                yield queued, status
        # A worker that was killed leaves its queue behind.
        running = any(known.get(queued) == "Running" for queued in open_names)
        quiet = 0 if running or not open_names else quiet + 1
        if quiet > 20 and dvc_queue.idle():
            dvc_queue.start(jobs)
            quiet = 0
