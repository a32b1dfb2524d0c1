"""One pass over texts: batches, windows and offsets leave the statistics what they are."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import CohereConfig, Gemma2Config, GPT2Config, GraniteConfig, LlamaConfig

from palimpsest.errors import InputError
from palimpsest.statistics.passes import DrawsPass, PairPass, read_texts
from palimpsest.statistics.reference import Reference, split_temperature
from palimpsest.statistics.tokens import DrawnStatistics, PairStatistics, TokenStatistics
from palimpsest.statistics.windows import cut
from tests.statistics.cases import token_statistics
from tests.tiny_causal_lm import tiny_causal_lm

SHORT = "Nobody waved."
LONG = " ".join(
    f"The ferry counted {i} lamps before the rain reached street {i}." for i in range(9)
)
TEXTS = [LONG, SHORT, "Warm bread, and the whole street smelled of it: 面包!", "Rain.", "", "x"]


def load(folder: Path, config: Any = None, **options: Any) -> Reference:
    return Reference.load(str(tiny_causal_lm(folder, config, **options)), None, "cpu", "float32")


@pytest.fixture(scope="module")
def reference(tmp_path_factory: pytest.TempPathFactory) -> Reference:
    return load(tmp_path_factory.mktemp("plain"))


@pytest.fixture(scope="module")
def with_bos(tmp_path_factory: pytest.TempPathFactory) -> Reference:
    return load(tmp_path_factory.mktemp("bos"), bos=True)


def assert_same(found: TokenStatistics, expected: TokenStatistics) -> None:
    for name in (*TokenStatistics.COLUMNS, "char_start", "char_end"):
        mine, theirs = getattr(found, name), getattr(expected, name)
        assert mine.dtype == theirs.dtype
        np.testing.assert_allclose(mine, theirs, rtol=1e-4, atol=1e-5, err_msg=name)


def by_definition(reference: Reference, text: str) -> dict[str, np.ndarray]:
    """What the whole model, called once on one text, says about it."""
    encoded = reference.encode(text)
    ids = torch.tensor([*reference.prefix, *encoded.ids.tolist()])
    with torch.inference_mode():
        logits = reference.model(input_ids=ids[None]).logits[0].double()
    logp = logits.log_softmax(1)
    own = logp[:-1].gather(1, ids[1:, None])
    return {
        "logp": own[:, 0].numpy(),
        "n_greater": (logp[:-1] > own).sum(1).numpy(),
        "entropy": -(logp.exp() * logp).sum(1).numpy(),
        "m2": (logp.exp() * logp**2).sum(1)[:-1].numpy(),
        "lmax": logp[:-1].max(1).values.numpy(),
    }


@pytest.mark.parametrize("bos", [False, True])
def test_statistics_are_those_of_the_whole_model(
    reference: Reference, with_bos: Reference, bos: bool
) -> None:
    model = with_bos if bos else reference
    tokens = len(model.encode(LONG).ids)
    (found,) = token_statistics(model, [LONG], max_tokens=2048)
    assert len(found) == tokens - (not bos)
    assert len(found.entropy) == len(found) + 1
    for name, expected in by_definition(model, LONG).items():
        np.testing.assert_allclose(getattr(found, name), expected, rtol=1e-4, err_msg=name)


SMALL = {"num_hidden_layers": 2, "num_attention_heads": 4, "initializer_range": 0.3}
WIDTH = {"hidden_size": 32, "intermediate_size": 48, "num_key_value_heads": 4}


@pytest.mark.parametrize(
    "config",
    [
        pytest.param(
            Gemma2Config(**SMALL, **WIDTH, head_dim=8, final_logit_softcapping=2.0), id="Gemma 2"
        ),
        pytest.param(CohereConfig(**SMALL, **WIDTH, logit_scale=0.5), id="Cohere"),
        pytest.param(GraniteConfig(**SMALL, **WIDTH, logits_scaling=4.0), id="Granite"),
        pytest.param(GPT2Config(n_embd=32, n_layer=2, n_head=4, initializer_range=0.3), id="GPT-2"),
    ],
)
def test_families_that_change_their_logits_are_read_as_they_are(
    tmp_path: Path, config: Any
) -> None:
    model = load(tmp_path, config)
    (found,) = token_statistics(model, [LONG], max_tokens=1024)
    for name, expected in by_definition(model, LONG).items():
        np.testing.assert_allclose(getattr(found, name), expected, rtol=1e-4, err_msg=name)


def test_a_model_that_changes_its_logits_otherwise_is_refused(reference: Reference) -> None:
    class Doubled(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.config, self.base_model = reference.model.config, reference.model.base_model
            self.device = reference.device
            self.get_output_embeddings = reference.model.get_output_embeddings

        def forward(self, **inputs: torch.Tensor) -> Any:
            output = reference.model(**inputs)
            output.logits = 2 * output.logits
            return output

    with pytest.raises(InputError, match="doubled changes its logits"):
        Reference(Doubled(), reference.tokenizer, "doubled")


@pytest.mark.parametrize("batch_tokens", [1, 64, 4096])
@pytest.mark.parametrize("order", [1, -1])
def test_batches_and_order_change_nothing(
    reference: Reference, batch_tokens: int, order: int
) -> None:
    alone = [token_statistics(reference, [text], max_tokens=2048)[0] for text in TEXTS]
    together = token_statistics(
        reference, TEXTS[::order], max_tokens=2048, batch_tokens=batch_tokens
    )
    for found, expected in zip(together[::order], alone, strict=True):
        assert_same(found, expected)


def test_small_chunks_change_nothing(reference: Reference, monkeypatch: pytest.MonkeyPatch) -> None:
    (whole,) = token_statistics(reference, [LONG], max_tokens=2048)
    monkeypatch.setattr("palimpsest.statistics.reference.CHUNK", 1000)
    head, rows = Reference.head, []

    def counted(model: Reference, hidden: torch.Tensor) -> torch.Tensor:
        rows.append(len(hidden))
        return head(model, hidden)

    monkeypatch.setattr(Reference, "head", counted)
    (chunked,) = token_statistics(reference, [LONG], max_tokens=2048)
    assert_same(chunked, whole)
    assert sum(rows) == len(chunked) + 1
    assert (max(rows) - 1) * reference.vocabulary < 1000


@pytest.mark.parametrize("bos", [False, True])
def test_windows_score_a_token_as_a_text_that_begins_with_the_window_would(
    reference: Reference, with_bos: Reference, bos: bool
) -> None:
    model = with_bos if bos else reference
    (found,) = token_statistics(model, [LONG], max_tokens=40)
    encoded = model.encode(LONG)
    n, room = len(encoded.ids), 40 - bos
    assert n > 3 * room
    assert len(found) == n - (not bos)
    assert found.char_end.tolist() == encoded.char_end[not bos :].tolist()

    for window in cut(0, n, room):
        span = slice(int(encoded.char_start[window.start]), int(encoded.char_end[window.end - 1]))
        assert (
            model.encode(LONG[span]).ids.tolist() == encoded.ids[window.start : window.end].tolist()
        )
        (alone,) = token_statistics(model, [LONG[span]], max_tokens=2048)
        # the window's own first token is no scored token of a text without BOS
        count = min(window.end - window.first, len(alone))
        end = window.end - (not bos)
        for name in ("logp", "n_greater", "entropy", "m2", "lmax"):
            here = getattr(found, name)[end - count : end]
            there = getattr(alone, name)[: len(alone)][-count:]
            np.testing.assert_allclose(here, there, rtol=1e-4, err_msg=name)


def test_truncation_reports_the_share_that_was_read(reference: Reference) -> None:
    encoded = reference.encode(LONG)
    cut, whole = token_statistics(reference, [LONG, SHORT], max_tokens=40, truncate=True)
    assert len(cut) == 39
    assert cut.char_end[-1] == encoded.char_end[39]
    assert cut.seen == pytest.approx(encoded.char_end[39] / len(LONG))
    assert whole.seen == 1.0


def test_texts_without_a_token_to_predict_from_have_no_scored_token(
    reference: Reference, with_bos: Reference
) -> None:
    assert [len(s) for s in token_statistics(reference, ["", "x"], max_tokens=8)] == [0, 0]
    assert [len(s) for s in token_statistics(with_bos, ["", "x"], max_tokens=8)] == [0, 1]
    assert token_statistics(reference, [], max_tokens=8) == []


@pytest.mark.parametrize(
    "text", ["Tea 🫖 for two 👩‍🚀.", "天气很好,我们去散步。", "naïve\r\n\tcafé"]
)
def test_offsets_cut_the_text_into_its_characters(with_bos: Reference, text: str) -> None:
    (found,) = token_statistics(with_bos, [text], max_tokens=2048)
    covered = {
        i for span in zip(found.char_start, found.char_end, strict=True) for i in range(*span)
    }
    assert covered == set(range(len(text)))
    assert (np.diff(found.char_start) >= 0).all()
    assert (found.char_end > found.char_start).all()


def test_a_special_tokens_name_in_a_text_is_text(with_bos: Reference) -> None:
    encoded = with_bos.encode("a <s> b")
    assert with_bos.prefix[0] not in encoded.ids
    assert encoded.char_end[-1] == len("a <s> b")


def test_more_tokens_than_the_model_reads_are_refused(tmp_path: Path) -> None:
    model = load(tmp_path, positions=64)
    with pytest.raises(InputError, match=r"max_tokens is 65, but .* reads 64 at most"):
        token_statistics(model, ["x"], max_tokens=65)


def test_a_window_without_room_to_predict_is_refused(with_bos: Reference) -> None:
    with pytest.raises(InputError, match="max_tokens is 2; give at least 3"):
        token_statistics(with_bos, ["x"], max_tokens=2)


def test_a_model_that_overflows_in_half_precision_is_refused(tmp_path: Path) -> None:
    folder = str(tiny_causal_lm(tmp_path, LlamaConfig(**SMALL, **WIDTH)))
    weights = load_file(tmp_path / "model.safetensors")
    weights["model.layers.0.mlp.down_proj.weight"] *= 1e6
    save_file(weights, tmp_path / "model.safetensors", {"format": "pt"})
    Reference.load(folder, None, "cpu", "bfloat16")
    with pytest.raises(InputError, match="overflows with weights in float16: give another dtype"):
        Reference.load(folder, None, "cpu", "float16")


def test_weights_in_half_precision_have_statistics_in_single_precision(tmp_path: Path) -> None:
    folder = str(tiny_causal_lm(tmp_path))
    half, whole = (
        token_statistics(Reference.load(folder, None, "cpu", dtype), [LONG], max_tokens=512)[0]
        for dtype in ("bfloat16", "float32")
    )
    for name in ("logp", "entropy", "m2", "lmax"):
        assert getattr(half, name).dtype == np.float32
        np.testing.assert_allclose(
            getattr(half, name).mean(), getattr(whole, name).mean(), rtol=0.02, err_msg=name
        )


def test_a_model_that_cannot_be_loaded_is_named(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text('{"model_type": "llama"}')
    with pytest.raises(InputError, match="cannot load"):
        Reference.load(str(tmp_path), None, "cpu", "float32")


@pytest.mark.parametrize("given", ["0", "-1", "hot", "", "nan", "inf"])
def test_a_temperature_that_is_none_is_refused(given: str) -> None:
    with pytest.raises(InputError, match="give a number above 0"):
        split_temperature(f"pip:smollm2?temperature={given}")


def test_a_model_at_a_temperature_is_that_model_with_its_logits_divided(
    reference: Reference,
) -> None:
    hidden = torch.randn(3, 32)
    warm = reference.at_temperature(2.0)
    torch.testing.assert_close(warm.head(hidden), reference.head(hidden) / 2)
    torch.testing.assert_close(warm.at_temperature(0.5).head(hidden), reference.head(hidden))
    assert warm.name == f"{reference.name}?temperature=2"


@pytest.mark.parametrize("larger", ["sampling", "scoring"])
def test_a_vocabulary_may_have_more_tokens_than_its_partner(
    tmp_path: Path, reference: Reference, larger: str
) -> None:
    """As GPT-J's and GPT-Neo's, Fast-DetectGPT's own pair."""
    padded = load(tmp_path)
    padded.tokenizer.add_tokens(["<|extratoken_1|>", "<|extratoken_2|>"])
    padded.model.resize_token_embeddings(len(padded.tokenizer))
    pair = Reference(padded.model, padded.tokenizer, "padded"), reference
    kind = PairPass(*(pair if larger == "sampling" else pair[::-1]))
    (found,) = read_texts(kind, [f"{LONG} <|extratoken_2|>"], max_tokens=2048)
    tokens = reference.encode(f"{LONG} <|extratoken_2|>")
    assert found.char_end.tolist() == tokens.char_end[1:].tolist()
    assert np.isfinite(found.rows).all()


def test_two_models_that_cut_texts_differently_are_no_pair(
    reference: Reference, with_bos: Reference
) -> None:
    with pytest.raises(InputError, match="cut texts into different tokens"):
        PairPass(reference, with_bos)


@pytest.mark.parametrize("kind", ["pair", "draws"])
def test_a_pass_of_two_models_is_each_text_alone_whatever_the_batch(
    reference: Reference, tmp_path: Path, kind: str
) -> None:
    other = load(tmp_path, GPT2Config(n_embd=32, n_layer=2, n_head=4, initializer_range=0.3))
    made = PairPass(other, reference) if kind == "pair" else DrawsPass(other, reference, 5, seed=3)
    alone = [read_texts(made, [text], max_tokens=48)[0] for text in TEXTS]
    for batch_tokens in (1, 64, 4096):
        together = read_texts(made, TEXTS[::-1], max_tokens=48, batch_tokens=batch_tokens)
        for found, expected in zip(together[::-1], alone, strict=True):
            np.testing.assert_allclose(found.rows, expected.rows, rtol=1e-4, atol=1e-5)


def test_a_pairs_own_columns_are_those_of_its_models(reference: Reference, tmp_path: Path) -> None:
    other = load(tmp_path, GPT2Config(n_embd=32, n_layer=2, n_head=4, initializer_range=0.3))
    (read,) = read_texts(PairPass(other, reference), [LONG], max_tokens=48)
    pair = PairStatistics.of(read)
    for model, name in ((reference, "logp"), (other, "sampling_logp")):
        (single,) = token_statistics(model, [LONG], max_tokens=48)
        np.testing.assert_allclose(getattr(pair, name), single.logp, rtol=1e-4)
    (read,) = read_texts(DrawsPass(other, reference, 5, 0), [LONG], max_tokens=48)
    np.testing.assert_allclose(DrawnStatistics.of(read).logp, pair.logp, rtol=1e-4)
