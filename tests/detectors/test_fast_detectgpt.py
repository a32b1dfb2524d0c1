"""Fast-DetectGPT as a detector: what it scores, what it leaves out, and what it saves.

The other zero-shot detectors share its code.
"""

import math
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from palimpsest.detectors.fast_detectgpt import FastDetectGPT, Settings
from palimpsest.detectors.interface import Detector, Runtime
from palimpsest.detectors.registry import make
from palimpsest.errors import InputError
from palimpsest.records import Level, Text
from palimpsest.statistics.criteria import fast_detectgpt
from palimpsest.statistics.reference import Reference
from tests.statistics.cases import token_statistics
from tests.texts import labelled, plain
from tests.tiny_causal_lm import tiny_causal_lm

SENTENCES = [
    ("The ferry left the island before the rain reached the harbour.", 0),
    ("She counted the lamps 🏮 along the river, and one of them was missing.", 1),
    ("Nobody waved.", 0),
]
TEXT = plain(labelled(SENTENCES))
CHINESE = plain(labelled([("渡船在下雨之前离开了小岛。", 0), ("没有人挥手。", 1)], language="zh"))


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(tiny_causal_lm(tmp_path_factory.mktemp("model")))


def detector(model: str, **settings: object) -> Detector:
    given = {"model": model, "max_tokens": 512, **settings}
    return make("fast-detectgpt", given, Runtime(device="cpu", cache=False))


def test_a_document_is_scored_by_its_curvature(model: str) -> None:
    (scores,) = detector(model).score([TEXT])
    reference = Reference.load(model, None, "cpu", "float32")
    (tokens,) = token_statistics(reference, [TEXT.text], max_tokens=512)
    assert scores.document == pytest.approx(fast_detectgpt(tokens), rel=1e-6)
    assert (scores.reason, scores.seen, scores.words) == (None, 1.0, None)


def test_sentences_are_scored_in_the_documents_context(model: str) -> None:
    scores, changed = detector(model).score(
        [TEXT, plain(labelled([("The ferry left at four.", 0), *SENTENCES[1:]]))]
    )
    assert scores.sentences is not None
    assert changed.sentences is not None
    assert scores.sentences.shape == (3,)
    assert scores.sentences.dtype == np.float32
    assert np.isfinite(scores.sentences).all()
    assert not np.allclose(scores.sentences[1:], changed.sentences[1:], rtol=1e-3)
    (early,) = detector(model).score([plain(labelled(SENTENCES[:2]))])
    assert early.sentences == pytest.approx(scores.sentences[:2], rel=1e-4)


def test_one_sentence_that_is_the_text_scores_as_the_document(model: str) -> None:
    (scores,) = detector(model).score([plain(labelled(SENTENCES[:1]))])
    assert scores.sentences == pytest.approx([scores.document], rel=1e-5)


def test_chinese_is_scored(model: str) -> None:
    (scores,) = detector(model).score([CHINESE])
    assert math.isfinite(scores.document)
    assert scores.sentences is not None
    assert np.isfinite(scores.sentences).all()


@pytest.mark.parametrize("text", ["", "x"])
def test_a_text_without_a_scored_token_says_so(model: str, text: str) -> None:
    (scores,) = detector(model).score([replace(TEXT, text=text, sentences=(), words=())])
    assert math.isnan(scores.document)
    assert scores.reason == "too_short"


def test_the_last_sentence_of_a_long_text_is_scored_through_windows(model: str) -> None:
    long = plain(labelled(SENTENCES * 60))
    (scores,) = detector(model).score([long])
    assert scores.sentences is not None
    assert np.isfinite(scores.sentences).all()
    assert (scores.seen, scores.reason) == (1.0, None)


def test_truncation_leaves_what_it_did_not_read_unscored(model: str) -> None:
    (scores,) = detector(model, max_tokens=48, long_text="truncate").score([TEXT])
    assert scores.sentences is not None
    assert math.isfinite(scores.document)
    assert math.isfinite(scores.sentences[0])
    assert math.isnan(scores.sentences[2])
    assert scores.seen < 1
    assert scores.reason == "truncated"


def test_a_saved_detector_scores_the_same(model: str, tmp_path: Path) -> None:
    texts = [TEXT, CHINESE]
    first = detector(model, max_tokens=48)
    first.fit([], [], lambda metric, value, step: None)
    first.save(tmp_path / "model")
    again = FastDetectGPT.load(tmp_path / "model", Runtime(device="cpu", cache=False))
    assert [s.document for s in again.score(texts)] == [s.document for s in first.score(texts)]


def test_the_threshold_is_published_for_the_authors_models_only() -> None:
    def published(model: str) -> Mapping[Level, float]:
        return FastDetectGPT(Settings(model=model, max_tokens=1024), Runtime()).published

    assert published("EleutherAI/gpt-neo-2.7B") == {"document": pytest.approx(1.00655, abs=5e-6)}
    assert published("pip:smollm2") == {}


def test_an_unknown_way_with_long_texts_is_refused(model: str) -> None:
    with pytest.raises(InputError, match="did you mean 'windows'"):
        detector(model, long_text="window")


def text_of(words: int) -> Text:
    return plain(labelled([("rain " * words + ".", 0)]))


def test_scores_keep_the_texts_order(model: str) -> None:
    texts = [text_of(9), TEXT, text_of(3), CHINESE]
    found = detector(model)
    together = [scores.document for scores in found.score(texts)]
    assert together == pytest.approx([found.score([t])[0].document for t in texts], rel=1e-4)
