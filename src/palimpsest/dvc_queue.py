"""DVC's experiment queue: put runs in, start workers, see what became of each."""

import logging
import re
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from palimpsest.errors import InputError

log = logging.getLogger(__name__)

Status = Literal["Queued", "Running", "Failed", "Success"]

# What needs no quotes; the words that mean something else do.
_PLAIN = re.compile(r"(?!(?:null|true|false|inf|nan)$)[a-z][\w./@-]*", re.ASCII | re.IGNORECASE)


def put(name: str, overrides: Mapping[str, Any]) -> None:
    """Queue one run of the pipeline, with the workspace as it is and these params.

    Raises:
        InputError: DVC refuses; its message is passed on.
    """
    settings = [f"{key}={written(value)}" for key, value in overrides.items()]
    _dvc("exp", "run", "--queue", "--name", name, *(f"--set-param={s}" for s in settings))


def start(jobs: int) -> None:
    """Start workers in the background; they end by themselves when the queue is empty."""
    _dvc("queue", "start", "--jobs", str(jobs))


def statuses() -> dict[str, Status]:
    """What the queue knows of each named run; one that was queued again counts as it is now."""
    from dvc.repo import Repo

    rank = ("Failed", "Success", "Queued", "Running")
    with Repo() as repo:
        entries = repo.experiments.celery_queue.status()
    entries.sort(key=lambda entry: rank.index(entry["status"]))
    return {entry["name"]: entry["status"] for entry in entries if entry["name"]}


def idle() -> bool:
    """Is no worker there?"""
    from dvc.repo import Repo

    with Repo() as repo:
        return not repo.experiments.celery_queue.worker_status()


def output(name: str) -> str:
    """What a run has printed so far."""
    return _dvc("queue", "logs", name)


def result(name: str, path: Path) -> str:
    """A file that a run has left, from DVC's cache."""
    from dvc.api import read

    return str(read(path.as_posix(), rev=name))


def written(value: Any) -> str:
    """A value in the grammar of `--set-param`.

    Raises:
        InputError: a string that the grammar cannot hold.
    """
    match value:
        case None:
            return "null"
        case bool():
            return str(value).lower()
        case int() | float():
            return repr(value)
        case str() if _PLAIN.fullmatch(value):
            return value
        case str() if not set("'\\$") & set(value):
            return f"'{value}'"
        case Mapping():
            return "{" + ",".join(f"{key}:{written(item)}" for key, item in value.items()) + "}"
        case Sequence() if not isinstance(value, str):
            return "[" + ",".join(map(written, value)) + "]"
        case _:
            raise InputError(f"{value!r} cannot be given as a param on a command line")


def _dvc(*arguments: str) -> str:
    # A file, not a pipe: a worker in the background keeps what it inherits open until it ends.
    with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as output:
        done = subprocess.run(["dvc", *arguments], stdout=output, stderr=subprocess.STDOUT)
        output.seek(0)
        said = output.read()
    if done.returncode:
        raise InputError(f"dvc {' '.join(arguments[:3])}: {said.strip().removeprefix('ERROR: ')}")
    return said
