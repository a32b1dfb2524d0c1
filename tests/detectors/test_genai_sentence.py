"""GenAI-Sentence: it learns a style, keeps what it learned, and says what it did not read."""

import random
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from sklearn.metrics import f1_score, roc_auc_score
from transformers import DebertaV2Config

from palimpsest.detectors import tagger
from palimpsest.detectors.genai_sentence import GenAISentence
from palimpsest.detectors.interface import Runtime
from palimpsest.detectors.registry import check_settings, make
from palimpsest.detectors.word_windows import deepest, runs, sub_words
from palimpsest.errors import InputError
from palimpsest.records import Labelled, Scores, Span, Text
from tests.texts import labelled, plain, planted_documents, planted_sentence
from tests.tiny_encoder import tiny_encoder

CPU = Runtime(device="cpu")
TRAIN, DEV = planted_documents(6, seed=1, sentences=4), planted_documents(3, seed=2, sentences=4)
TEXTS = [plain(text) for text in planted_documents(4, seed=3, sentences=5)]


def quiet(metric: str, value: float, step: int) -> None:
    pass


@pytest.fixture(scope="module")
def encoder(tmp_path_factory: pytest.TempPathFactory) -> str:
    words = [text.text for text in TRAIN] + ["渡船在下雨之前离开了小岛。"]
    return str(tiny_encoder(tmp_path_factory.mktemp("encoder"), words))


def tiny_settings(encoder: str, **other: Any) -> dict[str, Any]:
    return {
        "model": encoder,
        "learning_rate": 3e-3,
        "batch_size": 2,
        "epochs": 2,
        "warmup": 0.1,
        "lora_targets": ["query", "value"],
        "hidden": 8,
        "max_tokens": 48,
        **other,
    }


@pytest.fixture(scope="module")
def untrained(encoder: str) -> Callable[..., GenAISentence]:
    def build(**settings: Any) -> GenAISentence:
        runtime = Runtime(device="cpu", seed=settings.pop("seed", 0))
        detector = make("genai-sentence", tiny_settings(encoder, **settings), runtime)
        assert isinstance(detector, GenAISentence)
        return detector

    return build


@pytest.fixture(scope="module")
def trained(untrained: Callable[..., GenAISentence]) -> GenAISentence:
    detector = untrained()
    detector.fit(TRAIN, DEV, quiet)
    return detector


def words_of(scores: list[Scores]) -> np.ndarray:
    return np.concatenate([np.asarray(answer.words) for answer in scores])


def test_a_planted_style_is_recovered_from_a_checkpoint(tmp_path: Path) -> None:
    settings = {
        "model": "pip:minilm",
        "learning_rate": 4e-3,
        "batch_size": 4,
        "epochs": 4,
        "warmup": 0.1,
        "lora_targets": ["query", "value"],
        "hidden": 64,
        "max_tokens": 512,
    }
    detector = make("genai-sentence", settings, CPU)
    train, dev = (planted_documents(n, seed, sentences=10) for n, seed in ((32, 1), (5, 2)))
    detector.fit(train, dev, quiet)
    detector.save(tmp_path)
    held_out = planted_documents(20, seed=3)
    scores = GenAISentence.load(tmp_path, CPU).score([plain(text) for text in held_out])

    words = np.concatenate([np.asarray(answer.word_labels) for answer in scores])
    true_words = np.concatenate([text.word_labels for text in held_out])
    assert f1_score(true_words, words) > 0.95
    assert roc_auc_score(true_words, words_of(scores)) > 0.95

    sentences = [
        int(np.mean(np.asarray(answer.word_labels)[inside(text, sentence)]) >= 0.5)
        for text, answer in zip(held_out, scores, strict=True)
        for sentence in text.sentences
    ]
    true_sentences = np.concatenate([text.sentence_labels for text in held_out])
    assert f1_score(true_sentences, sentences) > 0.95


def inside(text: Labelled, sentence: Span) -> list[int]:
    return [i for i, word in enumerate(text.words) if sentence.start <= word.start < sentence.end]


def test_a_checkpoint_holds_what_was_trained_and_no_base_weights(
    trained: GenAISentence, tmp_path: Path
) -> None:
    trained.save(tmp_path)
    weights = load_file(tmp_path / "weights.safetensors")
    lora = [name for name in weights if "lora_B" in name]
    assert len(lora) == 4  # query and value of two layers
    assert all(weights[name].abs().max() > 0 for name in lora)  # it starts as zeros
    assert {name.split(".")[0] for name in weights} == {"encoder", "gru", "head", "crf"}
    assert all("lora" in name for name in weights if name.startswith("encoder"))


def test_a_loaded_detector_scores_the_same_and_without_lora_it_would_not(
    trained: GenAISentence, tmp_path: Path
) -> None:
    before = words_of(trained.score(TEXTS))
    trained.save(tmp_path)
    assert np.array_equal(words_of(GenAISentence.load(tmp_path, CPU).score(TEXTS)), before)
    weights = load_file(tmp_path / "weights.safetensors")
    blank = {k: torch.zeros_like(v) if "lora_B" in k else v for k, v in weights.items()}
    save_file(blank, tmp_path / "weights.safetensors")
    assert not np.allclose(words_of(GenAISentence.load(tmp_path, CPU).score(TEXTS)), before, 1e-3)


def test_a_checkpoint_that_lacks_a_weight_is_refused(
    trained: GenAISentence, tmp_path: Path
) -> None:
    trained.save(tmp_path)
    weights = load_file(tmp_path / "weights.safetensors")
    del weights["crf.transitions"]
    save_file(weights, tmp_path / "weights.safetensors")
    with pytest.raises(InputError, match=r"crf\.transitions"):
        GenAISentence.load(tmp_path, CPU)


def test_a_checkpoint_of_other_base_weights_is_refused(
    untrained: Callable[..., GenAISentence], tmp_path: Path
) -> None:
    folder = tiny_encoder(tmp_path / "encoder")
    detector = untrained(model=str(folder), epochs=1)
    detector.fit(TRAIN, DEV, quiet)
    detector.save(tmp_path / "model")
    tiny_encoder(folder, positions=50)
    with pytest.raises(InputError, match="train again"):
        GenAISentence.load(tmp_path / "model", CPU)


def test_a_folder_without_a_checkpoint_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no genai-sentence checkpoint"):
        GenAISentence.load(tmp_path, CPU)


def test_training_reports_both_losses_and_the_dev_f1_each_epoch(
    untrained: Callable[..., GenAISentence],
) -> None:
    seen: dict[str, list[int]] = {}
    untrained(epochs=3).fit(
        TRAIN, DEV, lambda metric, value, step: seen.setdefault(metric, []).append(step)
    )
    assert seen == {metric: [1, 2, 3] for metric in ("train_loss", "dev_loss", "dev_f1_ai")}


def test_the_epoch_with_the_best_dev_f1_and_among_equals_the_lowest_loss_is_kept(
    untrained: Callable[..., GenAISentence], monkeypatch: pytest.MonkeyPatch
) -> None:
    verdicts = [(0.2, 1.0), (0.9, 0.5), (0.5, 0.1), (0.9, 0.4), (0.9, 0.4)]
    epochs: list[dict[str, torch.Tensor]] = []

    def judge(network: tagger.Tagger, *rest: Any) -> tuple[float, float]:
        epochs.append({k: v.detach().clone() for k, v in network.trained().items()})
        return verdicts[len(epochs) - 1]

    monkeypatch.setattr(tagger, "judge", judge)
    detector = untrained(epochs=len(verdicts))
    detector.fit(TRAIN, DEV, quiet)
    assert detector.tagger is not None
    kept = detector.tagger.trained()
    same = [all(torch.equal(kept[k], v) for k, v in epoch.items()) for epoch in epochs]
    assert same == [False, False, False, True, False]


def test_training_leaves_the_global_random_states_alone_and_nothing_on_disk(
    untrained: Callable[..., GenAISentence], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def draws() -> tuple[float, float, float]:
        return random.random(), float(np.random.random()), float(torch.rand(()))

    def seed() -> None:
        random.seed(5)
        np.random.seed(5)
        torch.manual_seed(5)

    monkeypatch.chdir(tmp_path)
    seed()
    expected = draws()
    seed()
    untrained(epochs=1).fit(TRAIN, DEV, quiet)
    assert draws() == expected
    assert not list(tmp_path.iterdir())


def test_the_seed_decides_what_is_learned(
    untrained: Callable[..., GenAISentence], trained: GenAISentence
) -> None:
    same, other = untrained(), untrained(seed=1)
    same.fit(TRAIN, DEV, quiet)
    other.fit(TRAIN, DEV, quiet)
    assert np.array_equal(words_of(same.score(TEXTS)), words_of(trained.score(TEXTS)))
    assert not np.allclose(words_of(other.score(TEXTS)), words_of(trained.score(TEXTS)))


@pytest.mark.parametrize(
    ("train", "dev", "says"),
    [
        ([], DEV, "finds none"),
        ([labelled([("Rain fell.", 0)])], DEV, "only human words"),
        ([labelled([("Rain fell.", 1)])], DEV, "only AI words"),
        (TRAIN, [], "needs dev texts"),
    ],
)
def test_texts_that_teach_nothing_are_refused(
    untrained: Callable[..., GenAISentence],
    train: list[Labelled],
    dev: list[Labelled],
    says: str,
) -> None:
    with pytest.raises(InputError, match=says):
        untrained().fit(train, dev, quiet)


def test_it_never_scores_untrained(untrained: Callable[..., GenAISentence]) -> None:
    with pytest.raises(InputError, match="not trained"):
        untrained().score(TEXTS)


def test_a_long_text_takes_each_word_from_the_window_that_holds_it_deepest(
    trained: GenAISentence,
) -> None:
    sentences = [(planted_sentence(n % 2, random.Random(n)), n % 2) for n in range(30)]
    long = plain(labelled(sentences))
    (scores,) = trained.score([long])
    assert (scores.seen, scores.reason) == (1.0, None)
    lengths = [len(pieces) for pieces in sub_words(long, trained.tokenizer)]
    found = runs(lengths, 46, 23)
    chosen = deepest(found, len(lengths))
    assert len(found) > 5
    for index, run in enumerate(found):
        (alone,) = trained.score([replace(long, words=long.words[run.start : run.stop])])
        here = chosen[run.start : run.stop] == index
        expected, expected_labels = np.asarray(alone.words), np.asarray(alone.word_labels)
        whole, labels = np.asarray(scores.words), np.asarray(scores.word_labels)
        assert whole[run.start : run.stop][here] == pytest.approx(expected[here], rel=1e-4)
        assert np.array_equal(labels[run.start : run.stop][here], expected_labels[here])


def test_truncation_leaves_what_it_did_not_read_unscored(
    untrained: Callable[..., GenAISentence],
) -> None:
    detector = untrained(long_text="truncate", epochs=1)
    detector.fit(TRAIN, DEV, quiet)
    sentences = [("The old miller counted seven letters as usual.", 0)] * 12
    (scores,) = detector.score([plain(labelled(sentences))])
    words, labels = np.asarray(scores.words), np.asarray(scores.word_labels)
    read = int(np.isfinite(words).sum())
    assert 0 < read < len(words)
    assert np.isnan(words[read:]).all()
    assert (labels[:read] >= 0).all()
    assert (labels[read:] == -1).all()
    assert scores.seen == pytest.approx(read / len(words), abs=0.05)
    assert scores.reason == "truncated"


def test_a_word_longer_than_a_window_is_scored_and_counted_as_read_in_part(
    trained: GenAISentence,
) -> None:
    (scores,) = trained.score([plain(labelled([("The old " + "!" * 90 + " sold.", 0)]))])
    assert np.isfinite(np.asarray(scores.words)).all()
    assert 0 < scores.seen < 1
    assert scores.reason == "truncated"


def test_words_that_the_tokenizer_drops_move_no_other_words_scores(
    trained: GenAISentence,
) -> None:
    def score(strange: str) -> np.ndarray:
        text = f"The old miller {strange} sold the boat."
        words = [Span(0, 3), Span(4, 7), Span(8, 14), Span(15, 15 + len(strange))]
        rest = 16 + len(strange)
        words += [Span(rest, rest + 4), Span(rest + 5, rest + 8), Span(rest + 9, rest + 14)]
        (answer,) = trained.score([Text("t", text, "en", "d", (Span(0, len(text)),), tuple(words))])
        return np.asarray(answer.words)

    assert np.isfinite(score("\x00")).all()
    assert np.array_equal(score("\x00"), score("🏮"))  # both are the unknown token


@pytest.mark.parametrize(
    ("key", "value", "says"),
    [
        ("learning_rate", 0.0, "above 0"),
        ("learning_rate", "abc", "learning_rate"),
        ("epochs", -1, "above 0"),
        ("warmup", 1.5, "share of all steps"),
        ("max_tokens", 3, "8 tokens"),
        ("lora_targets", [], "at least one"),
        ("long_text", "window", "did you mean 'windows'"),
        ("learning_rat", 1e-3, "did you mean 'learning_rate'"),
    ],
)
def test_a_setting_that_cannot_be_is_refused_by_name(
    untrained: Callable[..., GenAISentence], key: str, value: object, says: str
) -> None:
    with pytest.raises(InputError, match=says):
        untrained(**{key: value})


def test_settings_take_the_shapes_that_params_have(encoder: str) -> None:
    given = {
        "model": encoder,
        "revision": None,
        "learning_rate": "2e-6",
        "batch_size": 8,
        "epochs": 12,
        "warmup": 0.1,
        "lora_targets": ["query", "value"],
        "hidden": 128,
        "max_tokens": 64,
        "long_text": "windows",
    }
    assert check_settings("genai-sentence", given).learning_rate == 2e-6


def test_layers_that_the_encoder_has_not_are_refused(
    untrained: Callable[..., GenAISentence],
) -> None:
    with pytest.raises(InputError, match="lora_targets"):
        untrained(lora_targets=["query_proj"]).fit(TRAIN, DEV, quiet)


def test_windows_that_the_encoder_cannot_read_are_refused(
    untrained: Callable[..., GenAISentence],
) -> None:
    with pytest.raises(InputError, match="reads 64 at most"):
        untrained(max_tokens=65)


def test_the_published_encoders_family_trains_on_its_own_layers(
    untrained: Callable[..., GenAISentence], tmp_path: Path
) -> None:
    folder = tiny_encoder(tmp_path / "encoder", kind=DebertaV2Config)
    targets = ["query_proj", "value_proj"]
    detector = untrained(model=str(folder), lora_targets=targets, epochs=1)
    detector.fit(TRAIN, DEV, quiet)
    detector.save(tmp_path / "model")
    before, after = detector.score(TEXTS), GenAISentence.load(tmp_path / "model", CPU).score(TEXTS)
    assert np.array_equal(words_of(before), words_of(after))
    assert np.isfinite(words_of(before)).all()


def test_base_weights_of_half_precision_leave_what_is_trained_in_full(
    encoder: str, tmp_path: Path
) -> None:
    settings = tiny_settings(encoder, epochs=1)
    half = Runtime(device="cpu", dtype="bfloat16")
    detector = make("genai-sentence", settings, half)
    detector.fit(TRAIN, DEV, quiet)
    detector.save(tmp_path)
    weights = load_file(tmp_path / "weights.safetensors")
    assert {value.dtype for value in weights.values()} == {torch.float32}
    before, after = detector.score(TEXTS), GenAISentence.load(tmp_path, half).score(TEXTS)
    assert np.array_equal(words_of(before), words_of(after))


def test_training_that_diverges_says_so(untrained: Callable[..., GenAISentence]) -> None:
    with pytest.raises(InputError, match="lower learning_rate"):
        untrained(learning_rate=1e30).fit(TRAIN, DEV, quiet)


def test_a_batchs_company_changes_no_score(trained: GenAISentence) -> None:
    longer = plain(labelled([("The old miller counted seven letters.", 0)] * 4, text_id="longer"))
    alone = [trained.score([text])[0] for text in TEXTS]
    together = trained.score([*TEXTS, longer])[: len(TEXTS)]
    assert words_of(alone) == pytest.approx(words_of(together), rel=1e-4)


def test_a_text_of_no_words_is_not_scored(trained: GenAISentence) -> None:
    empty = replace(TEXTS[0], text="", sentences=(), words=())
    (scores,) = trained.score([empty])
    assert np.isnan(scores.document)
    assert np.asarray(scores.words).shape == (0,)
    assert scores.reason == "too_short"
