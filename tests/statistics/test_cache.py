"""The store of what passes read: two writers, a limit, and what a user sees of it."""

import sqlite3
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import pytest

from palimpsest.cli import main
from palimpsest.errors import InputError
from palimpsest.statistics.cache import Cache, Usage

LIMIT = 2**30


def of(path: Path, limit: int = LIMIT) -> Cache:
    return Cache(path / "deep" / "statistics.sqlite", limit)


def test_what_was_put_is_found_under_its_own_kind_only(tmp_path: Path) -> None:
    of(tmp_path).put("single", "m", {b"a": b"1", b"b": b"2"})
    of(tmp_path).put("pair", "m", {b"a": b"3"})
    again = of(tmp_path)
    assert again.get("single", [b"a", b"b", b"c"]) == {b"a": b"1", b"b": b"2"}
    assert again.get("pair", [b"a", b"b"]) == {b"a": b"3"}
    assert again.get("draws", [b"a"]) == {}


def test_a_second_writer_of_the_same_text_changes_nothing(tmp_path: Path) -> None:
    cache = of(tmp_path)
    for _ in range(2):
        cache.put("single", "m", {b"a": b"1"})
    assert cache.usage() == [Usage("m", 1, 1)]


_WRITER = """
import sys
from pathlib import Path
from palimpsest.statistics.cache import Cache
cache = Cache(Path(sys.argv[1]), 2**30)
for shard in range(20):
    names = [f"{sys.argv[2]}-{shard}-{i}".encode() for i in range(5)]
    cache.put("single", "m", {name: name * 200 for name in names})
    assert cache.get("single", names) == {name: name * 200 for name in names}
"""


def test_processes_that_write_at_once_lose_nothing(tmp_path: Path) -> None:
    path = tmp_path / "statistics.sqlite"
    writers = [subprocess.Popen([sys.executable, "-c", _WRITER, str(path), name]) for name in "abc"]
    assert [writer.wait() for writer in writers] == [0, 0, 0]
    assert Cache(path, LIMIT).usage()[0].entries == 3 * 20 * 5


def test_first_writers_that_start_at_once_all_get_in(tmp_path: Path) -> None:
    writers = 8
    ready = Barrier(writers)

    def write(path: Path, name: int) -> None:
        ready.wait()
        of(path).put("single", "m", {bytes([name]): b"1"})

    with ThreadPoolExecutor(writers) as pool:
        for attempt in range(20):
            path = tmp_path / str(attempt)
            list(pool.map(write, [path] * writers, range(writers)))
            assert of(path).usage() == [Usage("m", writers, writers)]


def test_a_shard_that_fails_leaves_nothing_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise sqlite3.OperationalError("database or disk is full")

    cache = of(tmp_path)
    monkeypatch.setattr(Cache, "_evict", fail)
    with pytest.raises(InputError, match="disk is full"):
        cache.put("single", "m", {b"a": b"1"})
    assert cache.get("single", [b"a"]) == {}


def test_above_the_limit_the_least_recently_used_go(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = iter(range(0, 10**6, 10**4))
    monkeypatch.setattr("palimpsest.statistics.cache.time.time", lambda: float(next(clock)))
    cache = of(tmp_path, limit=2**20)
    names = [bytes([i]) for i in range(9)]
    for name in names[:8]:
        cache.put("single", "m", {name: name * 100_000})
    assert cache.get("single", names[:1])  # used again
    for turn in range(3):
        cache.put("single", "m", {bytes([8 + turn]): bytes(100_000)})
    kept = cache.get("single", names)
    assert names[0] in kept
    assert names[1] not in kept
    assert cache.path.stat().st_size < 1.3 * 2**20


def test_usage_is_by_model_and_clearing_forgets_one_or_all(tmp_path: Path) -> None:
    cache = of(tmp_path)
    assert cache.usage() == []
    assert cache.clear() == 0
    cache.put("single", "m", {b"a": b"1"})
    cache.put("pair", "m", {b"a": b"22"})
    cache.put("single of n", "n", {b"a": b"4444"})
    assert cache.usage() == [Usage("n", 1, 4), Usage("m", 2, 3)]
    assert cache.clear("m") == 2
    assert cache.usage() == [Usage("n", 1, 4)]
    assert cache.clear() == 1
    assert cache.usage() == []


def test_clearing_an_unknown_model_names_those_there_are(tmp_path: Path) -> None:
    of(tmp_path).put("single", "pip:smollm2", {b"a": b"1"})
    with pytest.raises(InputError, match=r"nothing of 'pip:smollm'; it has pip:smollm2"):
        of(tmp_path).clear("pip:smollm")


def test_a_file_that_is_no_cache_is_named_with_the_fix(tmp_path: Path) -> None:
    path = tmp_path / "statistics.sqlite"
    path.write_text("not a database, and long enough to be read as one" * 50)
    with pytest.raises(InputError, match=r"statistics\.sqlite: file is not a database; delete"):
        Cache(path, LIMIT).get("single", [b"a"])


def test_the_users_cache_lies_beside_the_archives_with_a_limit_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PALIMPSEST_CACHE", str(tmp_path))
    monkeypatch.setenv("PALIMPSEST_STATISTICS_GB", "0.5")
    cache = Cache.of_user()
    assert (cache.path, cache.limit) == (tmp_path / "statistics.sqlite", 2**29)
    monkeypatch.setenv("PALIMPSEST_STATISTICS_GB", "much")
    with pytest.raises(InputError, match="PALIMPSEST_STATISTICS_GB is 'much'"):
        Cache.of_user()


def test_the_command_shows_the_place_and_each_models_share_and_clears_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PALIMPSEST_CACHE", str(tmp_path))
    Cache.of_user().put("single", "pip:smollm2", {b"a": bytes(2**20)})
    Cache.of_user().put("pair", "one + other", {b"a": bytes(2**19), b"b": b""})
    assert main(["cache"]) == 0
    head, *models = capsys.readouterr().out.splitlines()
    assert head == f"{tmp_path / 'statistics.sqlite'}: 3 entries, 1.5 of 4096 MiB"
    assert [line.split(maxsplit=3) for line in models] == [
        ["1", "1.0", "MiB", "pip:smollm2"],
        ["2", "0.5", "MiB", "one + other"],
    ]
    assert main(["cache", "clear", "--model", "pip:smollm2"]) == 0
    assert capsys.readouterr().out == "forgot 1 entries\n"
    assert main(["cache", "clear"]) == 0
    assert capsys.readouterr().out == "forgot 2 entries\n"
    assert Cache.of_user().usage() == []
