"""What a user is told about which detectors can run on this machine."""

from pathlib import Path

import pytest

from palimpsest.cli import main
from palimpsest.detectors import catalogue
from palimpsest.detectors.catalogue import ability, models_of
from palimpsest.detectors.registry import REGISTRY, Entry
from tests.tiny_causal_lm import tiny_causal_lm

PLAIN = Entry("module:Class", "zero-shot", "document", "a paper")
CPU = ("cpu", "float32")
FALCONS = ("tiiuae/falcon-7b", "tiiuae/falcon-7b-instruct")


@pytest.fixture(autouse=True)
def nothing_fetched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PALIMPSEST_CACHE", str(tmp_path / "cache"))


def test_models_are_found_among_any_settings_once() -> None:
    settings = {
        "sampling": "pip:smollm2?temperature=1.1",
        "scoring": "pip:smollm2",
        "judges": ["someone/judge-7b?temperature=0.9"],
        "revision": None,
        "long_text": "windows",
        "max_tokens": 512,
    }
    assert models_of(settings) == (
        "pip:smollm2?temperature=1.1",
        "pip:smollm2",
        "someone/judge-7b?temperature=0.9",
    )


def test_a_detector_without_models_or_with_a_model_in_a_folder_runs(tmp_path: Path) -> None:
    assert ability(PLAIN, (), *CPU) == "runs here"
    assert ability(PLAIN, (str(tiny_causal_lm(tmp_path / "model")),), *CPU) == "runs here"


def test_a_package_that_is_not_installed_and_a_model_that_is_not_here_are_named(
    tmp_path: Path,
) -> None:
    entry = Entry("module:Class", "zero-shot", "document", "a paper", packages=("no_such_module",))
    found = ability(entry, ("pip:minilm?temperature=2", "pip:minilm", "someone/small"), *CPU)
    assert found == "needs package no_such_module, download"
    here = str(tiny_causal_lm(tmp_path / "model"))
    found = ability(PLAIN, (here, "pip:minilm", "someone/small"), *CPU)
    assert found == "needs download of pip:minilm and someone/small"


@pytest.mark.parametrize(
    ("models", "device", "dtype", "memory", "expected"),
    [
        (FALCONS, "cuda", "bfloat16", 80, None),
        (FALCONS, "cuda", "bfloat16", 24, "31 GiB of memory on cuda (here 24)"),
        (FALCONS, "cpu", "float32", 48, "63 GiB of memory on cpu (here 48)"),
        (("openai-community/gpt2-xl",), "cuda", "float32", 0, "7 GiB of memory on cuda (here 0)"),
        (("someone/deberta-v3-base",), "cuda", "float32", 0, None),
    ],
)
def test_memory_is_asked_for_by_the_size_in_a_models_name_and_the_dtype(
    models: tuple[str, ...],
    device: str,
    dtype: str,
    memory: int,
    expected: str | None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(catalogue, "_memory", lambda place: float(memory) if place == device else 0)
    found = ability(PLAIN, models, device, dtype)
    assert (expected in found) if expected else ("memory" not in found)


def test_a_machine_has_memory_and_a_missing_gpu_has_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    assert catalogue._memory("cpu") > 1
    assert catalogue._memory("cuda") == 0


def test_the_command_lists_every_detector_with_the_models_of_both_profiles(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["detectors"]) == 0
    head, *lines = capsys.readouterr().out.splitlines()
    assert head.split() == ["detector", "level", "family", "regime", "paper"]
    listed = {lines[i].split()[0]: lines[i : i + 3] for i in range(0, len(lines), 3)}
    assert list(listed) == list(REGISTRY)
    about, demo, paper = listed["lapd"]
    assert about.split(maxsplit=2) == [
        "lapd",
        "document",
        "two models     zero-shot  arXiv 2604.16923",
    ]
    assert demo.startswith("    demo   pip:smollm2?temperature=1.1 + pip:smollm2: ")
    assert paper.startswith(
        "    paper  meta-llama/Llama-2-7b-hf + meta-llama/Llama-2-7b-chat-hf: needs download"
    )
    assert listed["majority"][1:] == [
        "    demo   no model: runs here",
        "    paper  no model: runs here",
    ]
