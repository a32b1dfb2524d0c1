"""What every registered detector promises. A new detector is one more row in ROWS."""

import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from palimpsest.detectors.interface import Detector, Runtime
from palimpsest.detectors.registry import REGISTRY, detector_class, make
from palimpsest.records import Labelled, Scores, Text
from tests.texts import labelled, plain, planted_documents
from tests.tiny_causal_lm import tiny_causal_lm
from tests.tiny_encoder import tiny_encoder

CPU = Runtime(device="cpu", cache=False)
CHINESE = labelled(
    [("渡船在下雨之前离开了小岛。", 0), ("她数了河边的灯，没有人挥手。", 1)],
    text_id="zh",
    language="zh",
)
TRAIN, DEV = planted_documents(5, seed=1, sentences=4), planted_documents(2, seed=2, sentences=4)
TEST = [*planted_documents(5, seed=3, sentences=6), CHINESE]
EMPTY = replace(plain(TEST[0]), id="empty", text="", sentences=(), words=())
LONG = labelled([(f"The old miller sold boat {n} to nobody we knew.", 0) for n in range(500)])


def nothing(folder: Path) -> dict[str, Any]:
    return {}


def causal_lm(folder: Path) -> dict[str, Any]:
    return {"model": str(tiny_causal_lm(folder)), "max_tokens": 512}


def pair(folder: Path) -> dict[str, Any]:
    model = str(tiny_causal_lm(folder))
    return {"sampling": f"{model}?temperature=1.5", "scoring": model, "max_tokens": 512}


def draws(folder: Path) -> dict[str, Any]:
    return {**pair(folder), "draws": 8}


def perturbed(folder: Path) -> dict[str, Any]:
    given = causal_lm(folder)
    return {**given, "filler": given["model"], "perturbations": 2}


def word_tagger(folder: Path) -> dict[str, Any]:
    return {
        "model": str(tiny_encoder(folder)),
        "learning_rate": 1e-2,
        "batch_size": 2,
        "epochs": 2,
        "warmup": 0.1,
        "lora_targets": ["query", "value"],
        "hidden": 8,
        "max_tokens": 64,
    }


@dataclass(frozen=True)
class Row:
    """`settings` builds the small models that the detector needs and returns its settings."""

    name: str
    settings: Callable[[Path], dict[str, Any]] = nothing


ROWS = [
    Row("majority"),
    Row("random"),
    Row("length"),
    Row("log-likelihood", causal_lm),
    Row("entropy", causal_lm),
    Row("rank", causal_lm),
    Row("log-rank", causal_lm),
    Row("lrr", causal_lm),
    Row("fast-detectgpt", causal_lm),
    Row("lastde", causal_lm),
    Row("fast-detectgpt-pair", pair),
    Row("binoculars", pair),
    Row("dna-detectllm", pair),
    Row("lapd", pair),
    Row("lastde-pp", draws),
    Row("npr", perturbed),
    Row("detectgpt", perturbed),
    Row("genai-sentence", word_tagger),
]


@dataclass(frozen=True)
class Fitted:
    name: str
    settings: dict[str, Any]
    detector: Detector


@pytest.fixture(scope="module", params=ROWS, ids=lambda row: row.name)
def fitted(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Fitted:
    row: Row = request.param
    settings = row.settings(tmp_path_factory.mktemp("model"))
    detector = make(row.name, settings, CPU)
    detector.fit(TRAIN, DEV, lambda metric, value, step: None)
    return Fitted(row.name, settings, detector)


def texts() -> list[Text]:
    return [plain(text) for text in TEST]


def numbers(scores: Scores) -> dict[str, np.ndarray]:
    """All that an answer says in numbers; what it does not say is left out."""
    fields = ("document", "document_label", "sentences", "words", "sentence_labels", "word_labels")
    given = {name: getattr(scores, name) for name in fields}
    return {name: np.asarray(value) for name, value in given.items() if value is not None}


def assert_same(one: Scores, other: Scores, relative: float = 0.0) -> None:
    assert (one.reason, one.note, one.seen) == (other.reason, other.note, other.seen)
    left, right = numbers(one), numbers(other)
    assert left.keys() == right.keys()
    for name, values in left.items():
        np.testing.assert_allclose(values, right[name], rtol=relative, atol=0, err_msg=name)


def test_every_registered_detector_has_a_row() -> None:
    assert {row.name for row in ROWS} == set(REGISTRY)


def test_its_native_level_is_the_registrys_and_it_answers_there(fitted: Fitted) -> None:
    native = fitted.detector.native
    assert native == REGISTRY[fitted.name].native
    for scores in fitted.detector.score(texts()):
        given = numbers(scores)[{"word": "words", "sentence": "sentences"}.get(native, native)]
        assert np.isfinite(given).all()


def test_it_gives_one_answer_for_each_text_and_one_number_for_each_unit(fitted: Fitted) -> None:
    answers = fitted.detector.score(texts())
    assert len(answers) == len(TEST)
    for text, scores in zip(TEST, answers, strict=True):
        units = {"sentence": len(text.sentences), "word": len(text.words)}
        for name, values in numbers(scores).items():
            level = name.split("_")[0].removesuffix("s")
            assert values.shape == ((units[level],) if level in units else ()), name
            if level in units:
                assert values.dtype == (np.int8 if name.endswith("labels") else np.float32), name
    assert fitted.detector.score([]) == []


def test_it_is_deterministic(fitted: Fitted) -> None:
    again = make(fitted.name, fitted.settings, CPU)
    again.fit(TRAIN, DEV, lambda metric, value, step: None)
    first, second, refitted = (d.score(texts()) for d in (fitted.detector, fitted.detector, again))
    for one, two, three in zip(first, second, refitted, strict=True):
        assert_same(one, two)
        assert_same(one, three)


def test_saved_and_loaded_it_gives_the_same_numbers(fitted: Fitted, tmp_path: Path) -> None:
    fitted.detector.save(tmp_path / "model")
    loaded = detector_class(fitted.name, fitted.settings).load(tmp_path / "model", CPU)
    answers = zip(fitted.detector.score(texts()), loaded.score(texts()), strict=True)
    for before, after in answers:
        assert_same(before, after)


def test_what_it_saves_is_the_same_bytes_each_time(fitted: Fitted, tmp_path: Path) -> None:
    def files(folder: Path) -> dict[str, bytes]:
        fitted.detector.save(folder)
        return {path.name: path.read_bytes() for path in folder.iterdir()}

    assert files(tmp_path / "one") == files(tmp_path / "two")


def test_an_empty_text_is_nan_with_a_reason_and_disturbs_no_other(fitted: Fitted) -> None:
    first, empty, last = fitted.detector.score([plain(TEST[0]), EMPTY, plain(TEST[1])])
    assert np.isnan(empty.document)
    assert empty.reason is not None
    assert_same(first, fitted.detector.score([plain(TEST[0])])[0], relative=1e-4)
    assert_same(last, fitted.detector.score([plain(TEST[1])])[0], relative=1e-4)


def test_the_last_word_of_a_text_of_5000_is_scored(fitted: Fitted) -> None:
    assert len(LONG.words) == 5000
    (scores,) = fitted.detector.score([plain(LONG)])
    assert (scores.seen, scores.reason) == (1.0, None)
    native = fitted.detector.native
    given = numbers(scores)[{"word": "words", "sentence": "sentences"}.get(native, native)]
    assert np.isfinite(given).all()


def test_shuffling_or_resizing_the_batch_changes_no_score(fitted: Fitted) -> None:
    together = fitted.detector.score(texts())
    order = np.random.default_rng(0).permutation(len(TEST))
    shuffled = fitted.detector.score([texts()[i] for i in order])
    for place, i in enumerate(order):
        assert_same(shuffled[place], together[i], relative=1e-4)
    for text, scores in zip(texts(), together, strict=True):
        assert_same(fitted.detector.score([text])[0], scores, relative=1e-4)


def test_labels_are_out_of_reach(fitted: Fitted) -> None:
    def flipped(text: Labelled) -> Labelled:
        return replace(
            text,
            label=1 - text.label,
            sentence_labels=tuple(1 - label for label in text.sentence_labels),
            word_labels=tuple(1 - label for label in text.word_labels),
            generator="another",
            version="v8",
        )

    blind = fitted.detector.score(texts())
    for one, two, three in zip(
        blind,
        fitted.detector.score(TEST),
        fitted.detector.score([flipped(text) for text in TEST]),
        strict=True,
    ):
        assert_same(one, two)
        assert_same(one, three)


_IMPORT_ALL = """
import json, logging, os, pkgutil, random, sys, warnings
import numpy, torch, palimpsest.detectors
def state():
    return {
        "gradients": torch.is_grad_enabled(),
        "threads": torch.get_num_threads(),
        "dtype": str(torch.get_default_dtype()),
        "deterministic": torch.are_deterministic_algorithms_enabled(),
        "torch random": torch.random.get_rng_state().tolist(),
        "numpy random": str(numpy.random.get_state()),
        "python random": str(random.getstate()),
        "environment": dict(os.environ),
        "folder": os.getcwd(),
        "logging": (logging.root.level, len(logging.root.handlers)),
    }
before, changed = state(), {}
for module in pkgutil.iter_modules(palimpsest.detectors.__path__, "palimpsest.detectors."):
    __import__(module.name)
    changed[module.name] = [key for key, value in state().items() if value != before[key]]
print(json.dumps(changed))
"""

_IMPORT_TARGETS = """
import importlib, json, sys
from palimpsest.detectors.registry import REGISTRY
for entry in REGISTRY.values():
    importlib.import_module(entry.module)
print(json.dumps([name for name in ("torch", "transformers", "peft") if name in sys.modules]))
"""


def run(code: str) -> Any:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


def test_importing_a_detector_changes_no_global() -> None:
    changed = run(_IMPORT_ALL)
    assert len(changed) >= len({entry.module for entry in REGISTRY.values()})
    assert {name: keys for name, keys in changed.items() if keys} == {}


def test_the_modules_that_hold_settings_import_without_torch() -> None:
    assert run(_IMPORT_TARGETS) == []
