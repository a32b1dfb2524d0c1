"""Models that fill gaps: a T5 taught to, and a causal model against its own definition."""

import re
from pathlib import Path

import numpy as np
import pytest
import torch

from palimpsest.errors import InputError
from palimpsest.records import Span, word_spans
from palimpsest.statistics.columns import drawn
from palimpsest.statistics.fillers import CausalFiller, T5Filler, _Sampling, is_t5
from palimpsest.statistics.perturb import gaps
from palimpsest.statistics.reference import Reference
from tests.tiny_causal_lm import tiny_causal_lm
from tests.tiny_t5 import tiny_t5

TEXT = "The old ferry left the island before the heavy rain reached the harbour . " * 4
LONG = TEXT * 8
CPU = (None, "cpu", "float32")


@pytest.fixture(scope="module")
def t5(tmp_path_factory: pytest.TempPathFactory) -> T5Filler:
    return T5Filler.load(str(tiny_t5(tmp_path_factory.mktemp("t5"))), *CPU)


@pytest.fixture(scope="module")
def reference(tmp_path_factory: pytest.TempPathFactory) -> Reference:
    return Reference.load(str(tiny_causal_lm(tmp_path_factory.mktemp("plain"))), *CPU)


@pytest.fixture(scope="module")
def with_bos(tmp_path_factory: pytest.TempPathFactory) -> Reference:
    return Reference.load(str(tiny_causal_lm(tmp_path_factory.mktemp("bos"), bos=True)), *CPU)


def copies_of(text: str, count: int, seed: int = 0) -> list[list[Span]]:
    random = np.random.default_rng(seed)
    return [gaps(word_spans(text, "en"), random) for _ in range(count)]


def test_a_t5_fills_every_gap_of_a_copy_or_the_copy_fails(t5: T5Filler) -> None:
    copies = copies_of(TEXT, 12)
    filled = [fills for fills in t5.fill(TEXT, "en", copies, seed=1) if fills is not None]
    assert len(filled) > 6
    assert {len(fills) for fills in filled} == {len(copies[0])}
    assert len({word for fills in filled for fill in fills for word in fill.split()}) > 4
    assert not any("<" in fill for fills in filled for fill in fills)


def test_a_t5s_fills_depend_on_the_seed_and_on_no_global_state(t5: T5Filler) -> None:
    copies = copies_of(TEXT, 4)
    before = torch.random.get_rng_state()
    first = t5.fill(TEXT, "en", copies, seed=1)
    assert torch.equal(torch.random.get_rng_state(), before)
    torch.manual_seed(9)
    assert t5.fill(TEXT, "en", copies, seed=1) == first
    assert t5.fill(TEXT, "en", copies, seed=2) != first


def test_a_t5_samples_from_its_50_likeliest_tokens_at_their_probabilities() -> None:
    logits = torch.linspace(4, 0, 60)
    left = _Sampling(0)(torch.empty(0), logits.expand(4000, -1))
    assert (left > -torch.inf).sum(1).eq(1).all()
    found = left.argmax(1).bincount(minlength=60) / 4000
    assert found[:50].numpy() == pytest.approx(logits[:50].softmax(0).numpy(), abs=0.02)
    assert not found[50:].any()


def test_a_long_text_is_masked_in_parts_that_hold_all_of_it(t5: T5Filler) -> None:
    (copy,) = copies_of(LONG, 1)
    parts = t5._masked(LONG, copy)
    assert [count for _, count in parts] == [24, len(copy) - 24]
    whole = iter(copy)
    restored = [
        re.sub(r"<extra_id_\d+>", lambda _: LONG[slice(*next(whole))], text) for text, _ in parts
    ]
    assert LONG.startswith(restored[0])
    assert LONG.endswith(restored[1])
    assert sum(map(len, restored)) >= len(LONG)


def test_an_output_that_lacks_sentinels_fails(
    t5: T5Filler, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(T5Filler, "_LENGTH", 5)
    assert t5.fill(TEXT, "en", copies_of(TEXT, 3), seed=1) == [None] * 3


def by_definition(reference: Reference, gap: Span, uniforms: np.ndarray) -> str:
    """Ten tokens, each drawn after reading all before it from the beginning."""
    encoded = reference.encode(TEXT)
    ids = [*reference.prefix, *encoded.ids[encoded.char_end <= gap.start].tolist()]
    begin = len(ids)
    for uniform in uniforms:
        with torch.inference_mode():
            logits = reference.model(input_ids=torch.tensor([ids])).logits[:, -1]
        ids.append(int(drawn(logits, torch.tensor([[uniform]]))))
    written: str = reference.tokenizer.decode(ids[begin:], skip_special_tokens=True)
    words = word_spans(written, "en")[:2]
    return written[words[0].start : words[-1].end]


@pytest.mark.parametrize("bos", [False, True])
def test_a_causal_model_continues_what_stands_before_the_gap(
    reference: Reference, with_bos: Reference, bos: bool
) -> None:
    model = with_bos if bos else reference
    copies = [[gap for gap in copy if gap.start] for copy in copies_of(TEXT, 5)]
    found = CausalFiller(model, 512).fill(TEXT, "en", copies, seed=3)
    uniforms = np.random.default_rng(3).random((sum(map(len, copies)), 10))
    expected = iter(uniforms)
    for copy, fills in zip(copies, found, strict=True):
        assert fills == [by_definition(model, gap, next(expected)) for gap in copy]


def test_a_gap_without_anything_before_it_is_filled_by_a_model_with_a_bos_only(
    reference: Reference, with_bos: Reference
) -> None:
    copies = [[Span(0, 7)], [Span(8, 18)]]
    first, second = CausalFiller(reference, 512).fill(TEXT, "en", copies, seed=0)
    assert first is None
    assert second is not None
    assert all(CausalFiller(with_bos, 512).fill(TEXT, "en", copies, seed=0))


def test_gaps_behind_the_models_window_are_filled_from_a_later_one(reference: Reference) -> None:
    (copy,) = copies_of(LONG, 1)
    copy = [gap for gap in copy if gap.start]
    assert len(reference.encode(LONG).ids) > 3 * 100
    (fills,) = CausalFiller(reference, 100).fill(LONG, "en", [copy], seed=0)
    assert fills is not None
    assert all(fills)


def test_a_filler_is_known_by_its_config(t5: T5Filler, tmp_path: Path) -> None:
    assert is_t5(str(tiny_t5(tmp_path / "t5", steps=0)), None)
    assert not is_t5(str(tiny_causal_lm(tmp_path / "causal")), None)
    with pytest.raises(InputError, match="without config"):
        is_t5(str(tmp_path), None)
