"""The user's store of what passes read: one SQLite file beside the archives, shared by processes.

SQLite in WAL mode, because a shard must appear whole or not at all, two processes may write at
once, and least recently used entries must go without a walk over many thousand files. WAL needs a
local disk: where the user cache lies on a network file system, point PALIMPSEST_CACHE elsewhere.
"""

import hashlib
import os
import sqlite3
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from palimpsest.archives import cache_folder
from palimpsest.errors import InputError

_SCHEMA = (
    "CREATE TABLE kinds (id INTEGER PRIMARY KEY, name TEXT UNIQUE, model TEXT)",
    "CREATE TABLE entries"
    " (kind INTEGER, text BLOB, value BLOB, used REAL, PRIMARY KEY (kind, text))",
    "CREATE INDEX by_use ON entries (used)",
)

# A moment of use is written down again after so many seconds: reading stays cheap.
_STALE = 600


@dataclass(frozen=True, slots=True)
class Usage:
    model: str
    entries: int
    bytes: int


def code_digest(*modules: str) -> str:
    """The source of these modules of `statistics`: part of a key, so that no stale number is read.

    A reworded comment costs a pass; that is cheaper than a version number that someone forgets.
    """
    sources = (Path(__file__).with_name(f"{module}.py").read_bytes() for module in modules)
    return hashlib.sha256(b"".join(sources)).hexdigest()[:16]


class Cache:
    """Bytes by (kind of pass, text); the least recently used go when the file exceeds `limit`."""

    def __init__(self, path: Path, limit: int) -> None:
        self.path = path
        self.limit = limit

    @classmethod
    def of_user(cls) -> "Cache":
        """In the user's cache folder, with PALIMPSEST_STATISTICS_GB (4) as limit.

        Raises:
            InputError: a limit that is no number above zero.
        """
        given = os.environ.get("PALIMPSEST_STATISTICS_GB", "4")
        try:
            limit = int(float(given) * 2**30)
        except ValueError:
            limit = 0
        if limit <= 0:
            raise InputError(f"PALIMPSEST_STATISTICS_GB is {given!r}; give a number above 0")
        return cls(cache_folder() / "statistics.sqlite", limit)

    def get(self, kind: str, texts: Sequence[bytes]) -> dict[bytes, bytes]:
        """The values of those `texts` (digests) that are known."""
        with self._open() as store:
            found = {}
            for text in texts:
                row = store.execute(
                    "SELECT entries.rowid, value FROM entries JOIN kinds ON kind = id "
                    "WHERE name = ? AND text = ?",
                    (kind, text),
                ).fetchone()
                if row:
                    found[text] = row
            now = time.time()
            store.executemany(
                "UPDATE entries SET used = ? WHERE rowid = ? AND used < ?",
                [(now, rowid, now - _STALE) for rowid, _ in found.values()],
            )
        return {text: value for text, (_, value) in found.items()}

    def put(self, kind: str, model: str, values: Mapping[bytes, bytes]) -> None:
        """Keep all values or, if the process dies, none; `model` is what `usage` counts by."""
        now = time.time()
        with self._open() as store:
            store.execute("INSERT OR IGNORE INTO kinds (name, model) VALUES (?, ?)", (kind, model))
            store.executemany(
                "INSERT OR REPLACE INTO entries SELECT id, ?, ?, ? FROM kinds WHERE name = ?",
                [(text, value, now, kind) for text, value in values.items()],
            )
            self._evict(store, now)

    def usage(self) -> list[Usage]:
        """What each model's passes take, the largest first."""
        if not self.path.exists():
            return []
        with self._open() as store:
            rows = store.execute(
                "SELECT model, count(*), sum(length(value)) AS size FROM entries "
                "JOIN kinds ON kind = id GROUP BY model ORDER BY size DESC"
            ).fetchall()
        return [Usage(*row) for row in rows]

    def clear(self, model: str | None = None) -> int:
        """Forget everything, or what one model's passes read; the number of entries that went.

        Raises:
            InputError: a model that the cache holds nothing of.
        """
        known = {usage.model for usage in self.usage()}
        if model is not None and model not in known:
            names = ", ".join(sorted(known)) or "nothing"
            raise InputError(f"the cache holds nothing of {model!r}; it has {names}")
        if not known:
            return 0
        with self._open() as store:
            return store.execute(
                "DELETE FROM entries WHERE kind IN (SELECT id FROM kinds WHERE model = ?1 OR ?1 "
                "IS NULL)",
                (model,),
            ).rowcount

    def _evict(self, store: sqlite3.Connection, now: float) -> None:
        pages, free, size = (
            store.execute(f"PRAGMA {name}").fetchone()[0]
            for name in ("page_count", "freelist_count", "page_size")
        )
        excess = (pages - free) * size - self.limit
        if excess <= 0:
            return
        going, freed = [], 0
        # a tenth more than must go, so that not every shard evicts
        for rowid, length in store.execute(
            "SELECT rowid, length(value) FROM entries WHERE used < ? ORDER BY used", (now,)
        ):
            if freed > excess + self.limit // 10:
                break
            going.append((rowid,))
            freed += length
        store.executemany("DELETE FROM entries WHERE rowid = ?", going)

    @contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        """One transaction, alone with the file."""
        try:
            if not self.path.exists():
                self._create()
            with closing(sqlite3.connect(self.path, timeout=60, isolation_level=None)) as store:
                # after a loss of power the last shards may be missing, never half there
                store.execute("PRAGMA synchronous = NORMAL")
                store.execute("BEGIN IMMEDIATE")
                yield store
                store.execute("COMMIT")
        except (OSError, sqlite3.Error) as error:
            raise InputError(
                f"{self.path}: {error}; delete the file, or set PALIMPSEST_CACHE to another folder"
            ) from error

    def _create(self) -> None:
        """Make the file aside and put it in place whole: the first of two makers wins.

        Where two connections change one file's journal mode at once, SQLite lets one fail.
        """
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=self.path.parent) as aside:
            made = Path(aside) / self.path.name
            with closing(sqlite3.connect(made, isolation_level=None)) as store:
                # lets the file shrink; counts only before its first table
                store.execute("PRAGMA auto_vacuum = FULL")
                store.execute("PRAGMA journal_mode = WAL")
                for statement in _SCHEMA:
                    store.execute(statement)
            with suppress(FileExistsError):
                os.link(made, self.path)
