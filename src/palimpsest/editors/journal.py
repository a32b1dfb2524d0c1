"""The response journal: every reply is on disk before anything uses it, and is paid for once."""

import hashlib
import json
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, NamedTuple, Self

from palimpsest.editors.budget import Budget
from palimpsest.errors import InputError
from palimpsest.locks import alone
from palimpsest.params import Price
from palimpsest.trajectories.requests import Editor, Pull, Reply, Request


def journal_path(root: Path) -> Path:
    """Outside every stage's outputs, so that neither DVC nor `make clean` deletes paid replies."""
    return root / ".palimpsest" / "journal.sqlite"


# Requests that are looked up together, and replies that wait to be handed on: more would fill the
# memory, and SQLite takes no more than some thousand keys in a query.
HELD = 64


def only_writer(root: Path) -> AbstractContextManager[bool]:
    """One generation at a time: two at once would pay for the same replies twice."""
    lock_file = journal_path(root).with_suffix(".lock")
    return alone(lock_file, "another generation in this project")


class Entry(NamedTuple):
    """A request's key, and the body of which it is the SHA-256."""

    key: str
    body: str


_encode = json.JSONEncoder(sort_keys=True, ensure_ascii=False).encode


def entry_of(editor: Editor, request: Request) -> Entry:
    body = _encode(
        {
            "model": editor.model,
            "revision": editor.revision,
            "decoding": editor.decoding,
            "messages": [{"role": m.role, "content": m.content} for m in request.messages],
            "temperature": request.temperature,
            "max_tokens": request.max_tokens,
            "draw": request.draw,
        }
    )
    return Entry(hashlib.sha256(body.encode()).hexdigest(), body)


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
                "text TEXT NOT NULL, finish TEXT NOT NULL, tokens INTEGER NOT NULL, "
                "prompt_tokens INTEGER NOT NULL DEFAULT 0)"
            )
            columns = self._database.execute("PRAGMA table_info(replies)").fetchall()
            if "prompt_tokens" not in {name for _, name, *_ in columns}:  # of version 0.1
                self._database.execute(
                    "ALTER TABLE replies ADD COLUMN prompt_tokens INTEGER NOT NULL DEFAULT 0"
                )
        except sqlite3.OperationalError as error:
            raise InputError(
                f"{path} could not be opened ({error}) and is left as it is: see that the disk has "
                "space and the folder can be written, and run the same command again"
            ) from error
        except sqlite3.DatabaseError as error:
            raise InputError(f"{path} is no journal that can be opened: {error}") from error

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._database.close()

    def __len__(self) -> int:
        ((count,),) = self._all("SELECT count(*) FROM replies")
        return int(count)

    def find(self, keys: Sequence[str]) -> dict[str, Reply]:
        """The replies that there are, by the keys of their requests.

        Raises:
            InputError: a damaged file.
        """
        asked = ", ".join("?" * len(keys))
        rows = self._all(
            f"SELECT key, text, finish, tokens, prompt_tokens FROM replies WHERE key IN ({asked})",
            keys,
        )
        return {key: Reply(*reply) for key, *reply in rows}

    def _all(self, query: str, values: Sequence[str] = ()) -> list[Any]:
        try:
            return self._database.execute(query, values).fetchall()
        except sqlite3.DatabaseError as error:
            raise self._unreadable(error) from error

    def _unreadable(self, error: sqlite3.DatabaseError) -> InputError:
        return InputError(
            f"{self.path} could not be read ({error}): if it is damaged, `sqlite3 {self.path} "
            ".recover | sqlite3 NEW` saves the replies that can be read, and NEW takes its place"
        )

    def add(self, answered: Sequence[tuple[Entry, Reply]]) -> None:
        """Commit replies in one transaction, all or none; an earlier reply to a request stays.

        Raises:
            InputError: a full disk or another reason for which SQLite cannot write, a damaged file.
        """
        try:
            with self._database:
                self._database.execute("BEGIN IMMEDIATE")
                self._database.executemany(
                    "INSERT OR IGNORE INTO replies VALUES (?, ?, ?, ?, ?, ?)",
                    [
                        (*entry, reply.text, reply.finish, reply.tokens, reply.prompt_tokens)
                        for entry, reply in answered
                    ],
                )
        except sqlite3.OperationalError as error:
            raise InputError(
                f"{self.path} could not take a reply ({error}); what it holds is intact: free some "
                "space and run the same command again"
            ) from error
        except sqlite3.DatabaseError as error:
            raise self._unreadable(error) from error


class JournalledEditor:
    """An editor that answers from a journal what it can and asks another editor for the rest.

    `asked` and `repeated` count the requests that were sent and those that the journal answered.
    New replies are paid for from the budget; when it is used up, the journal goes on answering, and
    the first request that it cannot answer ends the work after what is in flight.

    Raises:
        InputError: while serving, a request that the budget has no money left for.
    """

    def __init__(
        self,
        editor: Editor,
        journal: Journal,
        price: Price | None = None,
        budget: Budget | None = None,
    ) -> None:
        self.model = editor.model
        self.revision = editor.revision
        self.decoding = editor.decoding
        self.asked = 0
        self.repeated = 0
        self._editor = editor
        self._journal = journal
        self._price = price
        self._budget = budget or Budget()

    def serve(self, pull: Pull) -> Iterator[list[tuple[Request, Reply]]]:
        """As `Editor.serve`; new replies are committed before they are handed on."""
        known: list[tuple[Request, Reply]] = []
        entries: dict[Request, Entry] = {}
        refused = False

        def unknown(n: int) -> list[Request]:
            nonlocal refused
            missing: list[Request] = []
            while len(missing) < n and len(known) < HELD and not refused:
                batch = pull(min(n - len(missing), HELD))
                if not batch:
                    break
                asked = [(request, entry_of(self, request)) for request in batch]
                replies = self._journal.find([entry.key for _, entry in asked])
                for request, entry in asked:
                    if entry.key in replies:
                        known.append((request, replies[entry.key]))
                    elif self._budget.exhausted:
                        refused = True
                    else:
                        entries[request] = entry
                        missing.append(request)
            return missing

        def found() -> list[tuple[Request, Reply]]:
            taken, known[:] = known[:], []
            self.repeated += len(taken)
            return taken

        while True:
            for answered in self._editor.serve(unknown):
                self._journal.add([(entries.pop(request), reply) for request, reply in answered])
                self._budget.pay(self._price, (reply for _, reply in answered))
                self.asked += len(answered)
                yield answered + found()
            if refused:
                raise InputError(
                    f"${self._budget.spent:.2f} are spent and the limit is ${self._budget.limit}: "
                    "every reply is in the journal, and the same command with more goes on there"
                )
            if not known:
                return
            yield found()
