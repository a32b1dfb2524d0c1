import resource
import sqlite3
import time
from pathlib import Path
from threading import Thread

import pytest

from palimpsest.editors.journal import (
    HELD,
    Entry,
    Journal,
    JournalledEditor,
    entry_of,
    journal_path,
    only_writer,
)
from palimpsest.errors import InputError
from palimpsest.trajectories.requests import Message, Pull, Reply, Request
from tests.scripted import ScriptedEditor


def request(content: str = "hello", temperature: float = 0.4, draw: int = 0) -> Request:
    return Request((Message("user", content),), temperature, 20, draw)


def pulling(requests: list[Request]) -> Pull:
    waiting = list(requests)

    def pull(n: int) -> list[Request]:
        taken, waiting[:] = waiting[:n], waiting[n:]
        return taken

    return pull


def echo(request: Request) -> str:
    return "re: " + request.messages[-1].content


def replies(editor: JournalledEditor, pull: Pull) -> dict[Request, Reply]:
    return {request: reply for answered in editor.serve(pull) for request, reply in answered}


def test_a_second_editor_is_asked_nothing_that_the_first_has_answered(tmp_path: Path) -> None:
    requests = [request(f"r{i}") for i in range(9)]
    journal = Journal(tmp_path / "j.sqlite")
    first, second = ScriptedEditor(echo), ScriptedEditor(echo)
    answered = replies(JournalledEditor(first, journal), pulling(requests[:5]))
    again = replies(JournalledEditor(second, journal), pulling(requests))
    assert set(second.asked) == set(requests[5:])
    assert {r: again[r] for r in answered} == answered
    assert len(again) == len(journal) == 9


def test_a_reply_is_on_disk_before_it_is_handed_on(tmp_path: Path) -> None:
    path = tmp_path / "j.sqlite"
    editor = JournalledEditor(ScriptedEditor(echo), Journal(path))
    for count, _ in enumerate(editor.serve(pulling([request("a"), request("b")])), start=1):
        with sqlite3.connect(path) as other:
            assert other.execute("SELECT count(*) FROM replies").fetchone() == (count,)


def test_requests_that_an_answer_makes_ready_are_served_from_the_journal(
    tmp_path: Path,
) -> None:
    journal = Journal(tmp_path / "j.sqlite")
    chain = [request(f"step {i}") for i in range(4)]
    replies(JournalledEditor(ScriptedEditor(echo), journal), pulling(chain))
    ready = chain[:1]

    def pull(n: int) -> list[Request]:
        taken, ready[:] = ready[:n], ready[n:]
        return taken

    idle = ScriptedEditor(echo)
    seen = []
    for answered in JournalledEditor(idle, journal).serve(pull):
        seen += [asked for asked, _ in answered]
        ready += chain[len(seen) : len(seen) + 1]
    assert seen == chain
    assert idle.asked == []


def test_an_editor_may_ask_for_more_at_once_than_sqlite_takes_in_a_query(tmp_path: Path) -> None:
    requests = [request(f"r{i}") for i in range(300)]
    with Journal(tmp_path / "j.sqlite") as journal:
        journal._database.setlimit(sqlite3.SQLITE_LIMIT_VARIABLE_NUMBER, 100)
        asked = ScriptedEditor(echo, batch=300)
        replies(JournalledEditor(asked, journal), pulling(requests[::2]))
        again = replies(JournalledEditor(asked, journal), pulling(requests))
    assert set(again) == set(requests)
    assert sorted(map(str, asked.asked)) == sorted(map(str, requests))


@pytest.mark.parametrize(
    "other", [request("hello!"), request(temperature=0.7), request(draw=1)], ids=str
)
def test_what_is_asked_decides_the_key(other: Request) -> None:
    editor = ScriptedEditor(echo)
    assert entry_of(editor, request()) == entry_of(editor, request())
    assert entry_of(editor, request()) != entry_of(editor, other)


def test_another_model_revision_or_decoding_has_another_key() -> None:
    editor, other = ScriptedEditor(echo), ScriptedEditor(echo)
    for name, value in (("model", "m"), ("revision", "2"), ("decoding", {"top_k": 5})):
        setattr(other, name, value)
        assert entry_of(editor, request()) != entry_of(other, request())


def test_the_first_reply_to_a_request_stays(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "j.sqlite")
    journal.add([(Entry("k", "{}"), Reply("first", "stop", 1))])
    journal.add([(Entry("k", "{}"), Reply("second", "stop", 1))])
    assert journal.find(["k"])["k"].text == "first"


def test_a_file_that_is_no_journal_is_a_clear_error(tmp_path: Path) -> None:
    path = tmp_path / "j.sqlite"
    path.write_text("not a database at all, but long enough to be looked at as one " * 20)
    with pytest.raises(InputError, match=r"j\.sqlite is no journal"):
        Journal(path)


def test_a_full_disk_is_a_clear_error_and_leaves_the_journal_intact(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "j.sqlite")
    journal.add([(Entry("before", "{}"), Reply("kept", "stop", 1))])
    journal._database.execute("PRAGMA max_page_count = 3")
    with pytest.raises(InputError, match="is intact: free some space"):
        journal.add([(Entry("after", "x" * 100_000), Reply("lost", "stop", 1))])
    assert journal.find(["before", "after"]) == {"before": Reply("kept", "stop", 1)}


def test_a_journal_on_a_full_disk_is_not_called_broken(tmp_path: Path) -> None:
    path = tmp_path / "j.sqlite"
    with Journal(path) as journal:
        journal.add([(Entry("k", "{}"), Reply("paid", "stop", 1))])
    unlimited = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1024, unlimited[1]))
    try:
        with pytest.raises(InputError, match=r"j\.sqlite could not be opened .* left as it is"):
            Journal(path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, unlimited)
    with Journal(path) as journal:
        assert journal.find(["k"])["k"].text == "paid"


def test_a_damaged_journal_is_a_clear_error_that_says_how_to_save_the_rest(tmp_path: Path) -> None:
    path = tmp_path / "j.sqlite"
    with Journal(path) as journal:
        journal.add([(Entry(f"k{i}", "x" * 1000), Reply("kept", "stop", 1)) for i in range(50)])
    whole = path.read_bytes()
    path.write_bytes(whole[:4096] + b"\xff" * (len(whole) - 4096))  # the schema's page stays
    with Journal(path) as journal:
        with pytest.raises(InputError, match=r"j\.sqlite could not be read .*\.recover"):
            journal.find(["k1"])
        with pytest.raises(InputError, match=r"j\.sqlite could not be read .*\.recover"):
            journal.add([(Entry("new", "{}"), Reply("new", "stop", 1))])


def test_the_journal_lies_outside_every_stages_outputs(tmp_path: Path) -> None:
    assert "artifacts" not in journal_path(tmp_path).parts


def test_a_complete_journal_starts_no_more_work_than_it_hands_on(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "j.sqlite")
    requests = [request(f"r{i}") for i in range(3 * HELD)]
    editor = ScriptedEditor(echo)
    journal.add([(entry_of(editor, r), Reply(echo(r), "stop", 1)) for r in requests])
    taken = 0

    def pull(n: int) -> list[Request]:
        nonlocal taken
        batch = requests[taken : taken + n]
        taken += len(batch)
        return batch

    first = next(JournalledEditor(editor, journal).serve(pull))
    assert len(first) == taken < HELD + 64


def test_a_journal_of_the_first_version_keeps_its_replies(tmp_path: Path) -> None:
    path = tmp_path / "j.sqlite"
    with sqlite3.connect(path) as old:
        old.execute(
            "CREATE TABLE replies (key TEXT PRIMARY KEY, request TEXT NOT NULL, text TEXT NOT NULL,"
            " finish TEXT NOT NULL, tokens INTEGER NOT NULL) WITHOUT ROWID"
        )
        old.execute("INSERT INTO replies VALUES ('k', '{}', 'paid', 'stop', 1)")
    for _ in range(2):
        with Journal(path) as journal:
            assert journal.find(["k"]) == {"k": Reply("paid", "stop", 1, 0)}


def test_a_second_generation_waits_for_the_first(tmp_path: Path) -> None:
    order = []

    def generation(name: str) -> None:
        with only_writer(tmp_path):
            order.append(f"{name} begins")
            time.sleep(0.2)
            order.append(f"{name} ends")

    threads = [Thread(target=generation, args=(name,)) for name in ("one", "two")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [step.split()[1] for step in order] == ["begins", "ends", "begins", "ends"]
