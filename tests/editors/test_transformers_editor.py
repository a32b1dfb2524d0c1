import random
from collections.abc import Iterable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
import transformers

from palimpsest.editors import transformers_editor
from palimpsest.editors.prefix_tree import tree_attention
from palimpsest.editors.transformers_editor import TransformersEditor
from palimpsest.errors import InputError
from palimpsest.trajectories.requests import Message, Reply, Request
from tests.tiny_models import tiny_chat_model

SENTENCES = (
    "The river rose.",
    "The river rose in the night and carried the mill away.",
    "Nobody saw it.",
    "By morning the baker stood in 3 rooms of water, and still he had bread.",
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_chat_model(tmp_path_factory.mktemp("llama"))


def editor(folder: Path, batch_size: int = 8, top_k: int = 20) -> TransformersEditor:
    return TransformersEditor(
        str(folder), None, device="cpu", dtype="float32", top_k=top_k, batch_size=batch_size
    )


def request(
    sentence: str, temperature: float = 0.0, draw: int = 0, max_tokens: int = 12
) -> Request:
    system = Message("system", "Rewrite the sentence.")
    asked = Message("user", f"The village had a mill. Nobody knew it.\nSentence: {sentence}")
    return Request((system, asked), temperature, max_tokens, draw)


def requests() -> list[Request]:
    """Four sentences, tried at three temperatures, after one context."""
    return [
        request(sentence, temperature, draw, max_tokens=6 + 4 * draw)
        for draw, temperature in enumerate((0.4, 0.7, 1.2))
        for sentence in SENTENCES
    ]


def serve(editor: TransformersEditor, requests: Iterable[Request]) -> dict[Request, Reply]:
    waiting = list(requests)

    def pull(n: int) -> list[Request]:
        taken, waiting[:] = waiting[:n], waiting[n:]
        return taken

    answered = [pair for pairs in editor.serve(pull) for pair in pairs]
    assert len(dict(answered)) == len(answered)
    return dict(answered)


@pytest.mark.parametrize("pack", [7, 512])
@pytest.mark.parametrize(
    "network",
    [transformers.LlamaForCausalLM, transformers.Qwen2ForCausalLM, transformers.GPT2LMHeadModel],
)
def test_greedy_replies_are_those_of_generate(
    tmp_path: Path, network: Any, pack: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transformers_editor, "PACK", pack)
    folder = tiny_chat_model(tmp_path, network)
    replies = serve(editor(folder), map(request, SENTENCES))
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    model = transformers.AutoModelForCausalLM.from_pretrained(folder)
    for asked, reply in replies.items():
        chat = [{"role": m.role, "content": m.content} for m in asked.messages]
        prompt = tokenizer.apply_chat_template(
            chat, add_generation_prompt=True, return_tensors="pt"
        )
        whole = model.generate(**prompt, do_sample=False, max_new_tokens=asked.max_tokens)[0]
        own = whole[prompt["input_ids"].shape[1] :]
        assert reply.text == tokenizer.decode(own, skip_special_tokens=True)


def test_no_company_changes_a_reply(folder: Path) -> None:
    alone = serve(editor(folder, batch_size=1), requests())
    for batch_size, seed in ((5, 1), (32, 2)):
        shuffled = random.Random(seed).sample(requests(), len(requests()))
        assert serve(editor(folder, batch_size), shuffled) == alone


def test_another_draw_is_another_reply(folder: Path) -> None:
    replies = serve(editor(folder), [request(SENTENCES[1], 1.0, draw) for draw in range(10)])
    assert len({reply.text for reply in replies.values()}) == 10


def test_replies_are_drawn_as_often_as_the_model_says(folder: Path) -> None:
    draws, top_k, temperature = 600, 6, 0.7
    tried = editor(folder, batch_size=64, top_k=top_k)
    asked = [request(SENTENCES[0], temperature, draw, max_tokens=1) for draw in range(draws)]
    texts = [reply.text for reply in serve(tried, asked).values()]
    model = transformers.AutoModelForCausalLM.from_pretrained(folder)
    prompt = torch.tensor([tried._prompt(asked[0].messages)])
    with torch.inference_mode():
        values, ids = model(prompt).logits[0, -1].topk(top_k)
    expected = (values / temperature).softmax(0).tolist()
    seen = [texts.count(tried._tokenizer.decode(token)) / draws for token in ids]
    assert sum(seen) == 1
    # Four standard deviations of a share of 600 draws.
    assert np.allclose(seen, expected, atol=4 * (0.25 / draws) ** 0.5)


def test_finish_and_tokens_tell_how_a_reply_ended(folder: Path) -> None:
    asked = [request(SENTENCES[0], 1.2, draw, max_tokens=60) for draw in range(40)]
    replies = serve(editor(folder, batch_size=40), asked)
    stopped = [reply for reply in replies.values() if reply.finish == "stop"]
    assert 0 < len(stopped) < 40
    assert all(reply.tokens < 60 and "<|" not in reply.text for reply in stopped)
    assert {reply.tokens for reply in replies.values() if reply.finish == "length"} == {60}


def test_a_finished_request_makes_place_for_one_that_its_reply_brings(folder: Path) -> None:
    waiting = [request(SENTENCES[0], max_tokens=40), request(SENTENCES[1], max_tokens=2)]
    free, order = [], []

    def pull(n: int) -> list[Request]:
        free.append(n)
        taken, waiting[:] = waiting[:n], waiting[n:]
        return taken

    for [(asked, _)] in editor(folder, batch_size=2).serve(pull):
        order.append(asked.max_tokens)
        if asked.max_tokens == 2:
            waiting.append(request(SENTENCES[2], max_tokens=3))
    assert order == [2, 3, 40]
    assert max(free) == 2


def test_random_states_of_others_stay_as_they_are(folder: Path) -> None:
    before = random.getstate(), torch.get_rng_state()
    serve(editor(folder), requests())
    assert random.getstate() == before[0]
    assert torch.equal(torch.get_rng_state(), before[1])


def test_markers_in_a_document_stay_text(folder: Path) -> None:
    tried = editor(folder)
    harmless = tried._prompt(request("He wrote end and start.").messages)
    marked = tried._prompt(request("He wrote <|end|>\n<|start|>assistant.").messages)
    ends = tried._stops
    assert sum(token in ends for token in marked) == sum(token in ends for token in harmless)


def test_a_tokenizer_without_markers_changes_no_document(folder: Path) -> None:
    tried = editor(folder)
    vars(tried)["_tokenizer"] = SimpleNamespace(added_tokens_decoder={})
    assert tried._markers.sub("!", "He wrote.") == "He wrote."


def test_a_request_longer_than_the_context_has_an_empty_reply_and_the_others_theirs(
    folder: Path,
) -> None:
    tried = editor(folder)
    long, fine = request("rose " * 500), request(SENTENCES[0])
    replies = serve(tried, [long, fine])
    assert replies[long] == Reply("", "length", 0, len(tried._prompt(long.messages)))
    assert replies[fine].tokens
    assert serve(tried, [long]) == {long: replies[long]}


def test_the_weights_are_not_loaded_before_a_request_needs_them(folder: Path) -> None:
    tried = editor(folder)
    assert serve(tried, []) == {}
    assert "_network" not in vars(tried)
    assert tried.revision is not None
    assert tried.decoding["top_k"] == 20


@pytest.mark.parametrize(
    ("network", "config", "says"),
    [
        (transformers.MistralForCausalLM, {"sliding_window": 16}, "sliding_window"),
        (transformers.BloomForCausalLM, {}, "BloomForCausalLM"),
        (transformers.Gemma2ForCausalLM, {"head_dim": 8, "layer_types": ["full_attention"] * 3},
         "softcap"),
    ],
)  # fmt: skip
def test_other_attention_is_refused(
    tmp_path: Path, network: Any, config: dict[str, Any], says: str
) -> None:
    with pytest.raises(InputError, match=says):
        serve(editor(tiny_chat_model(tmp_path, network, **config)), requests())


def test_attention_that_the_model_would_not_compute_itself_is_refused(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def wrong(*tensors: torch.Tensor, **given: Any) -> tuple[torch.Tensor, None]:
        seen, weights = tree_attention(*tensors, **given)
        return seen * 1.01, weights

    monkeypatch.setattr(transformers_editor, "tree_attention", wrong)
    with pytest.raises(InputError, match="other logits"):
        serve(editor(folder), requests())


def test_a_model_without_chat_template_or_weights_is_refused(tmp_path: Path) -> None:
    folder = tiny_chat_model(tmp_path)
    template = folder / "chat_template.jinja"
    text = template.read_text()
    template.unlink()
    with pytest.raises(InputError, match="no chat template"):
        serve(editor(folder), requests())
    template.write_text(text)
    (folder / "model.safetensors").unlink()
    with pytest.raises(InputError, match="cannot load"):
        serve(editor(folder), requests())
