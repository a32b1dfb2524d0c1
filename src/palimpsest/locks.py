"""Locks between processes: what two at once would pay for, or compute, twice."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

log = logging.getLogger(__name__)


@contextmanager
def alone(lock_file: Path, other: str) -> Iterator[bool]:
    """Hold the lock during the body; whether another process, named in the log, had it first.

    A process that is killed holds none any longer.
    """
    lock_file.parent.mkdir(parents=True, exist_ok=True)
    lock = FileLock(lock_file)
    waited = False
    try:
        lock.acquire(blocking=False)
    except Timeout:
        waited = True
        log.info("waiting for %s (%s)", other, lock_file)
        lock.acquire()
    try:
        yield waited
    finally:
        lock.release()
