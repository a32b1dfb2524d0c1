"""Each text is read once by each kind of pass, whatever asks for it and in which order."""

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from palimpsest.statistics import engine, passes
from palimpsest.statistics.cache import Cache
from palimpsest.statistics.engine import Engine, Reading
from palimpsest.statistics.reference import Reference
from palimpsest.statistics.tokens import Read
from tests.tiny_causal_lm import tiny_causal_lm

TEXTS = [f"The ferry counted {i} lamps before the rain reached street {i}." for i in range(9)]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(tiny_causal_lm(tmp_path_factory.mktemp("model")))


@pytest.fixture
def cache(tmp_path: Path) -> Cache:
    return Cache(tmp_path / "statistics.sqlite", 2**30)


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The texts that a model has read, in order."""
    read: list[str] = []
    real = passes.read_texts

    def counted(kind: Any, texts: Sequence[str], **options: Any) -> list[Read]:
        read.extend(texts)
        return real(kind, texts, **options)

    monkeypatch.setattr(passes, "read_texts", counted)
    return read


def reading(model: str, **changes: Any) -> Reading:
    plain = Reading("single", ((model, None),), 512, False, "cpu", "float32")
    return replace(plain, **changes)


def kinds(model: str) -> list[Reading]:
    flat = (f"{model}?temperature=1.5", None)
    return [
        reading(model),
        reading(model, kind="pair", models=(flat, (model, None))),
        reading(model, kind="draws", models=(flat, (model, None)), draws=4),
    ]


def same(one: Read, other: Read) -> bool:
    arrays = ("rows", "char_start", "char_end")
    return one.seen == other.seen and all(
        np.array_equal(getattr(one, name), getattr(other, name)) for name in arrays
    )


@pytest.mark.parametrize("kind", range(3))
def test_a_second_reading_loads_no_model_and_gives_the_same_bits(
    model: str, cache: Cache, kind: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = [*TEXTS, "", "x"]
    first = list(Engine(kinds(model)[kind], cache).read(texts))

    def refuse(*_: Any) -> None:
        raise AssertionError("a model was loaded")

    monkeypatch.setattr(Reference, "load", refuse)
    second = list(Engine(kinds(model)[kind], cache).read(texts[::-1]))
    assert all(map(same, first, second[::-1]))


def test_each_kind_reads_each_text_once(model: str, cache: Cache, seen: list[str]) -> None:
    for _ in range(2):
        for kind in kinds(model):
            list(Engine(kind, cache).read([*TEXTS, TEXTS[0]]))
    assert sorted(seen) == sorted(3 * TEXTS)


@pytest.mark.parametrize(
    "change",
    [{"max_tokens": 256}, {"truncate": True}, {"dtype": "bfloat16"}, {"draws": 5}, {"seed": 1}],
)
def test_whatever_can_change_the_numbers_is_part_of_the_key(
    model: str, change: dict[str, Any]
) -> None:
    draws = kinds(model)[2]
    assert Engine(replace(draws, **change), None).key != Engine(draws, None).key
    assert Engine(replace(draws, device="cuda"), None).key == Engine(draws, None).key


def test_every_module_that_a_pass_runs_through_is_part_of_the_key(
    model: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    found, todo = set(), ["engine"]
    while todo:
        found.add(module := todo.pop())
        source = Path(engine.__file__).with_name(f"{module}.py").read_text()
        todo += {*re.findall(r"from palimpsest\.statistics\.(\w+) import", source)} - found
    digested: list[str] = []
    monkeypatch.setattr(engine, "code_digest", lambda *modules: digested.extend(modules))
    assert Engine(reading(model), None).key
    assert set(digested) == found - {"cache"}  # keeps bytes as they are


def test_other_weights_under_the_same_name_are_another_key(tmp_path: Path) -> None:
    folder = tiny_causal_lm(tmp_path)
    before = Engine(reading(str(folder)), None).key
    with (folder / "model.safetensors").open("ab") as weights:
        weights.write(b"0")
    assert Engine(reading(str(folder)), None).key != before


def test_a_killed_run_has_kept_its_finished_shards(
    model: str, cache: Cache, monkeypatch: pytest.MonkeyPatch, seen: list[str]
) -> None:
    monkeypatch.setattr(engine, "SHARD", 4)
    run = Engine(reading(model), cache).read(TEXTS)
    for _ in range(5):  # the second shard is read, and kept, before its first text is given out
        next(run)
    run.close()
    assert len(seen) == 8
    again = list(Engine(reading(model), cache).read(TEXTS))
    assert seen[8:] == TEXTS[8:]
    assert all(map(same, again, Engine(reading(model), None).read(TEXTS)))


def test_without_a_cache_nothing_is_written(
    model: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PALIMPSEST_CACHE", str(tmp_path))
    list(Engine(reading(model), None).read(TEXTS))
    assert list(tmp_path.iterdir()) == []


def test_a_pair_of_one_model_at_two_temperatures_is_loaded_once(
    model: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    loads: list[str] = []
    load = Reference.load

    def counted(name: str, *rest: Any) -> Reference:
        loads.append(name)
        return load(name, *rest)

    monkeypatch.setattr(Reference, "load", counted)
    list(Engine(kinds(model)[1], None).read(TEXTS[:1]))
    assert loads == [model]
