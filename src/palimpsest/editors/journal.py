"""The response journal: every reply is on disk before anything uses it, and is paid for once."""

import hashlib
import json
import sqlite3
from collections import deque
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Self

from palimpsest.errors import InputError
from palimpsest.trajectories.requests import Editor, Pull, Reply, Request


def journal_path(root: Path) -> Path:
    """Outside every stage's outputs, so that neither DVC nor `make clean` deletes paid replies."""
    return root / ".palimpsest" / "journal.sqlite"


def request_key(editor: Editor, request: Request) -> tuple[str, str]:
    """A request's key, and the body of which it is the SHA-256."""
    body = json.dumps(
        {
            "model": editor.model,
            "revision": editor.revision,
            "decoding": editor.decoding,
            **asdict(request),
        },
        sort_keys=True,
        ensure_ascii=False,
    )
    return hashlib.sha256(body.encode()).hexdigest(), body


class Journal:
    """An append-only SQLite file of replies, safe for several processes at once."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self.path = path
        try:
            self._database = sqlite3.connect(path, timeout=60, isolation_level=None)
            self._database.execute("PRAGMA journal_mode=WAL")
            # FULL: a reply that was paid for survives a loss of power, not only of the process.
            self._database.execute("PRAGMA synchronous=FULL")
            self._database.execute(
                "CREATE TABLE IF NOT EXISTS replies (key TEXT PRIMARY KEY, request TEXT NOT NULL, "
                "text TEXT NOT NULL, finish TEXT NOT NULL, tokens INTEGER NOT NULL) WITHOUT ROWID"
            )
        except sqlite3.DatabaseError as error:
            raise InputError(f"{path} is no journal that can be opened: {error}") from error

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._database.close()

    def __len__(self) -> int:
        count: int = self._database.execute("SELECT count(*) FROM replies").fetchone()[0]
        return count

    def find(self, key: str) -> Reply | None:
        row = self._database.execute(
            "SELECT text, finish, tokens FROM replies WHERE key = ?", (key,)
        ).fetchone()
        return Reply(*row) if row else None

    def add(self, key: str, request: str, reply: Reply) -> None:
        try:
            self._database.execute(
                "INSERT OR IGNORE INTO replies VALUES (?, ?, ?, ?, ?)",
                (key, request, reply.text, reply.finish, reply.tokens),
            )
        except sqlite3.OperationalError as error:
            raise InputError(
                f"{self.path} could not take a reply ({error}); what it holds is intact: free some "
                "space and run the same command again"
            ) from error


class JournalledEditor:
    """An editor that answers from a journal what it can and asks another editor for the rest.

    `asked` and `repeated` count the requests that were sent and those that the journal answered.
    """

    def __init__(self, editor: Editor, journal: Journal) -> None:
        self.model = editor.model
        self.revision = editor.revision
        self.decoding = editor.decoding
        self.asked = 0
        self.repeated = 0
        self._editor = editor
        self._journal = journal

    def serve(self, pull: Pull) -> Iterator[tuple[Request, Reply]]:
        """As `Editor.serve`; each new reply is committed before it is handed on."""
        known: deque[tuple[Request, Reply]] = deque()

        def unknown(n: int) -> list[Request]:
            missing: list[Request] = []
            while len(missing) < n and (batch := pull(n - len(missing))):
                for request in batch:
                    reply = self._journal.find(request_key(self, request)[0])
                    if reply is None:
                        missing.append(request)
                    else:
                        self.repeated += 1
                        known.append((request, reply))
            return missing

        while True:
            for request, reply in self._editor.serve(unknown):
                self.asked += 1
                self._journal.add(*request_key(self, request), reply)
                yield request, reply
                while known:
                    yield known.popleft()
            if not known:
                return
            while known:
                yield known.popleft()
