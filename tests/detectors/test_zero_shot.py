"""The panel as a whole: the passes it needs, what it cannot score, thresholds, direction."""

import csv
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from palimpsest.detectors import zero_shot
from palimpsest.detectors.interface import Detector, Runtime
from palimpsest.detectors.registry import REGISTRY, make
from palimpsest.errors import InputError
from palimpsest.models import is_here
from palimpsest.params import load_params
from palimpsest.records import Level, Text, word_spans
from palimpsest.statistics import passes
from palimpsest.statistics.cache import Cache
from palimpsest.statistics.fillers import T5Filler
from palimpsest.statistics.tokens import Read
from tests.texts import labelled, plain, planted_documents
from tests.tiny_causal_lm import tiny_causal_lm
from tests.tiny_t5 import tiny_t5

DEED = "The night porter sold an unpaid bill to the second engineer."
TEXTS = [plain(text) for text in planted_documents(3, seed=4, sentences=5)]
PANEL = [name for name, entry in REGISTRY.items() if entry.family]
PASSES = [name for name in PANEL if REGISTRY[name].family != "perturbations"]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(tiny_causal_lm(tmp_path_factory.mktemp("model")))


@pytest.fixture
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache = Cache(tmp_path / "statistics.sqlite", 2**30)
    monkeypatch.setattr(Cache, "of_user", lambda: cache)


def settings(name: str, model: str) -> dict[str, Any]:
    one = {"model": model, "max_tokens": 256}
    pair = {"sampling": f"{model}?temperature=1.5", "scoring": model, "max_tokens": 256}
    return {
        "one model": one,
        "two models": pair,
        "draws": {**pair, "draws": 6},
        "perturbations": {**one, "filler": model, "perturbations": 4},
    }[REGISTRY[name].family]


def detector(name: str, model: str, cache: bool = False, **changes: Any) -> Detector:
    given = {**settings(name, model), **changes}
    return make(name, given, Runtime(device="cpu", cache=cache))


@pytest.mark.parametrize("order", [1, -1])
@pytest.mark.usefixtures("own_cache")
def test_three_kinds_of_pass_serve_twelve_detectors_in_any_order(
    model: str, order: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: Counter[str] = Counter()
    real = passes.read_texts

    def counted(kind: passes.Pass, texts: Sequence[str], **options: Any) -> list[Read]:
        read[type(kind).__name__] += len(texts)
        return real(kind, texts, **options)

    monkeypatch.setattr(passes, "read_texts", counted)
    assert len(PASSES) == 12
    for name in PASSES[::order]:
        detector(name, model, cache=True).score(TEXTS)
    assert read == {"SinglePass": 3, "PairPass": 3, "DrawsPass": 3}


@pytest.mark.usefixtures("own_cache")
@pytest.mark.parametrize("name", PANEL)
def test_scores_from_the_cache_are_those_of_the_models(name: str, model: str) -> None:
    computed = detector(name, model).score(TEXTS)
    for _ in range(2):
        for one, other in zip(
            computed, detector(name, model, cache=True).score(TEXTS), strict=True
        ):
            assert one.document == other.document
            assert one.sentences is not None
            assert other.sentences is not None
            assert np.array_equal(one.sentences, other.sentences, equal_nan=True)


@pytest.mark.parametrize("name", PANEL)
@pytest.mark.parametrize("text", ["", "x"])
def test_a_text_without_a_scored_token_is_too_short_for_every_detector(
    name: str, text: str, model: str
) -> None:
    short = replace(TEXTS[0], text=text, sentences=(), words=word_spans(text, "en"))
    (scores,) = detector(name, model).score([short])
    assert np.isnan(scores.document)
    assert scores.reason == "too_short"
    assert "0 scored tokens" in scores.note


SHORT = ("No one waved.", 0)  # 6 scored tokens


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("npr", "no gap among its 6 scored tokens"),
        ("detectgpt", "no gap among its 6 scored tokens"),
        ("lastde-pp", "6 scored tokens; the method needs 19"),
    ],
)
def test_a_method_that_needs_more_of_a_text_says_so(name: str, why: str, model: str) -> None:
    (scores,) = detector(name, model).score([plain(labelled([SHORT]))])
    assert np.isnan(scores.document)
    assert (scores.reason, scores.note) == ("too_short", why)
    (long,) = detector(name, model).score(TEXTS[:1])
    assert np.isfinite(long.document)


def test_sentences_without_a_score_are_counted_by_the_reason(model: str) -> None:
    text = plain(labelled([(DEED, 0), SHORT, (DEED, 0), SHORT]))
    (scores,) = detector("lastde-pp", model).score([text])
    assert scores.sentences is not None
    assert np.isnan(scores.sentences).tolist() == [False, True, False, True]
    assert (scores.reason, scores.note) == (None, "2 of 4 sentences too_short")
    cut = detector("lastde-pp", model, max_tokens=54, long_text="truncate")
    (scores,) = cut.score([text])
    assert scores.reason == "truncated"
    assert scores.note == "1 of 4 sentences too_short; 2 of 4 sentences truncated"


def test_a_text_that_is_long_enough_but_undefined_is_not_called_too_short(model: str) -> None:
    (scores,) = detector("lapd", model, sampling=model).score(TEXTS[:1])
    assert np.isnan(scores.document)
    assert scores.reason == "error"
    assert "undefined for its" in scores.note


def test_copies_that_no_filler_could_fill_are_an_error(
    model: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(T5Filler, "_LENGTH", 5)
    t5 = detector("npr", model, filler=str(tiny_t5(tmp_path, steps=0)))
    (scores,) = t5.score(TEXTS[:1])
    assert np.isnan(scores.document)
    assert (scores.reason, scores.note) == ("error", "0 of 4 copies")


def test_a_sentence_is_scored_by_its_own_tokens_and_edits(model: str) -> None:
    (scores,) = detector("npr", model, perturbations=1).score(TEXTS[:1])
    assert scores.sentences is not None
    # one copy leaves some sentence alone, and there is nothing to compare there
    alone = int(np.isnan(scores.sentences).sum())
    assert 0 < alone < len(scores.sentences)
    assert scores.note.endswith(f"1 of 1 copies; {alone} of 5 sentences too_short")


def test_fills_by_a_causal_model_are_labelled_as_a_variant(model: str, tmp_path: Path) -> None:
    (variant,) = detector("npr", model).score(TEXTS[:1])
    assert variant.note == f"variant: gaps filled by {model}; 4 of 4 copies"
    t5 = detector("npr", model, filler=str(tiny_t5(tmp_path / "t5")))
    (papers,) = t5.score(TEXTS[:1])
    assert papers.note == "4 of 4 copies"
    assert np.isfinite(papers.document)


def test_draws_in_the_place_of_sums_come_close_to_them(model: str) -> None:
    exact = detector("fast-detectgpt-pair", model).score(TEXTS)
    drawn = detector("fast-detectgpt-pair", model, draws=3000).score(TEXTS)
    for one, other in zip(exact, drawn, strict=True):
        assert other.document == pytest.approx(one.document, rel=0.05)


def test_the_seed_decides_the_draws(model: str) -> None:
    first, again, other = (
        detector("lastde-pp", model, seed=seed).score(TEXTS)[0].document for seed in (0, 0, 1)
    )
    assert first == again
    assert first != other


@pytest.mark.parametrize("name", PANEL)
def test_what_it_saves_names_the_weights_of_each_of_its_models(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(zero_shot, "exact_revision", lambda name, revision: f"commit of {name}")
    detector(name, "someone/small").save(tmp_path)
    saved = json.loads((tmp_path / "settings.json").read_text())
    revisions = [value for key, value in saved.items() if key.endswith("revision")]
    assert revisions
    assert set(revisions) == {"commit of someone/small"}


@pytest.mark.parametrize(
    ("name", "key", "value", "least"),
    [
        ("lastde", "scales", 1, 2),
        ("lastde", "bins_per_token", 0.5, 1),
        ("lastde-pp", "embedding", 0, 1),
        ("lastde-pp", "draws", 1, 2),
        ("fast-detectgpt-pair", "draws", -1, 2),
        ("npr", "perturbations", 0, 1),
        ("detectgpt", "perturbations", 1, 2),
    ],
)
def test_numbers_that_would_leave_every_text_unscored_are_refused(
    name: str, key: str, value: float, least: int
) -> None:
    changes: dict[str, Any] = {key: value}
    with pytest.raises(InputError, match=f"{key} is {value}; give {least} or more"):
        detector(name, "someone/small", **changes)


FALCONS = {"sampling": "tiiuae/falcon-7b", "scoring": "tiiuae/falcon-7b-instruct"}


@pytest.mark.parametrize(
    ("name", "changes", "expected"),
    [
        ("binoculars", FALCONS, {"document": -0.8536432310785527}),
        ("binoculars", {**FALCONS, "mode": "accuracy"}, {"document": -0.9015310749276843}),
        ("binoculars", {}, {}),
        ("dna-detectllm", FALCONS, {}),
        ("fast-detectgpt-pair", FALCONS, {"document": pytest.approx(1.31186, abs=5e-6)}),
        ("fast-detectgpt-pair", {}, {}),
        ("lrr", {}, {}),
    ],
)
def test_thresholds_are_the_authors_and_for_their_models_only(
    name: str, changes: dict[str, Any], expected: Mapping[Level, float], model: str
) -> None:
    assert detector(name, model, **changes).published == expected


LLAMAS = {
    "sampling": "meta-llama/Llama-2-7b-hf",
    "scoring": "meta-llama/Llama-2-7b-chat-hf",
}
GPT2 = {"model": "openai-community/gpt2-xl"}
T5 = {**GPT2, "filler": "google-t5/t5-3b"}


@pytest.mark.parametrize(
    ("name", "models", "has_threshold"),
    [
        ("binoculars", FALCONS, True),
        ("fast-detectgpt-pair", FALCONS, True),
        ("fast-detectgpt", {"model": "EleutherAI/gpt-neo-2.7B"}, True),
        ("dna-detectllm", FALCONS, False),
        ("lapd", LLAMAS, False),
        ("lrr", GPT2, False),
        ("npr", T5, False),
        ("detectgpt", T5, False),
    ],
)
def test_the_paper_profile_has_the_published_models_and_their_thresholds(
    name: str, models: dict[str, str], has_threshold: bool
) -> None:
    params = load_params()
    params.profile = "paper"
    given = params.detector_settings(name)
    assert {key: given[key] for key in models} == models
    assert bool(make(name, given, Runtime("cpu")).published) == has_threshold


PAIRS = Path(__file__).parents[3] / "shared" / "data" / "english" / "pairs.csv"


@pytest.mark.usefixtures("own_cache")
@pytest.mark.skipif(not PAIRS.is_file(), reason="the pairs are not beside this checkout")
@pytest.mark.skipif(not is_here("pip:smollm2"), reason="SmolLM2 is not in the cache")
def test_llama_2s_abstracts_score_above_human_ones() -> None:
    """The direction of every statistic, with the demo's settings, on a few words of a few texts."""
    with PAIRS.open(encoding="utf-8", newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["domain"] == "abstracts"]
    human, llama = (
        [_beginning(row["text"]) for row in rows if row["generator"] == name]
        for name in ("human", "llama-2-70b")
    )
    params = load_params()
    params.profile = "demo"
    for name in PANEL:
        count = 2 if REGISTRY[name].family == "perturbations" else 4
        texts = [*human[:count], *llama[:count]]
        answers = make(name, params.detector_settings(name), Runtime("cpu")).score(texts)
        labels = [0] * count + [1] * count
        assert roc_auc_score(labels, [scores.document for scores in answers]) > 0.5, name


def _beginning(text: str) -> Text:
    words = word_spans(text, "en")[:60]
    return Text("t", text[: words[-1].end], "en", "abstracts", (), words)
