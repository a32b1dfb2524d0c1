"""The request mapping and reply handling of the vLLM editor, on an engine with vLLM's interface."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from palimpsest.editors.vllm_editor import VLLMEditor
from palimpsest.errors import InputError
from palimpsest.params import Generator
from palimpsest.trajectories.requests import Message, Reply, Request
from tests.editors.generating import pulling, request


class Tokenizer:
    def __init__(self) -> None:
        self.added_tokens_decoder = {
            1: SimpleNamespace(content="<|im_end|>", special=True),
            2: SimpleNamespace(content="<tool>", special=False),
        }

    def apply_chat_template(self, chat: list[dict[str, str]], **given: Any) -> list[int]:
        assert given == {
            "add_generation_prompt": True, "return_dict": False, "enable_thinking": False
        }  # fmt: skip
        return [0] * sum(len(message["content"].split()) for message in chat)


class Engine:
    """What the editor uses of `vllm.LLM`."""

    def __init__(self, **arguments: Any) -> None:
        self.arguments = arguments
        self.calls: list[tuple[list[Any], list[Any], dict[str, Any]]] = []
        self.llm_engine = SimpleNamespace(model_config=SimpleNamespace(max_model_len=60))

    def get_tokenizer(self) -> Tokenizer:
        return Tokenizer()

    def get_default_sampling_params(self) -> SimpleNamespace:
        return SimpleNamespace(
            temperature=0.6, top_p=0.95, top_k=20, seed=None, max_tokens=16, min_p=0.0
        )

    def chat(self, chats: list[Any], params: list[Any], **given: Any) -> list[SimpleNamespace]:
        self.calls.append((chats, params, given))
        return [
            SimpleNamespace(
                prompt_token_ids=[0] * 9,
                outputs=[
                    SimpleNamespace(
                        text=f"re: {chat[-1]['content']}", token_ids=[0, 0, 0], finish_reason="stop"
                    )
                ],
            )
            for chat in chats
        ]


def made(**given: Any) -> tuple[VLLMEditor, list[Engine]]:
    engines: list[Engine] = []

    def make(**arguments: Any) -> Engine:
        engines.append(Engine(**arguments))
        return engines[-1]

    extra = {"chat_template_kwargs": {"enable_thinking": False}, "top_p": 0.8}
    settings = {"revision": "abc", "top_k": 30, "batch_size": 4, "extra_body": extra, **given}
    model = settings.pop("model", "Qwen/Qwen3-8B")
    return VLLMEditor(Generator("vllm", model, **settings), "bfloat16", make), engines


def serve(editor: VLLMEditor, requests: list[Request]) -> dict[Request, Reply]:
    return {r: reply for batch in editor.serve(pulling(requests)) for r, reply in batch}


def test_the_engine_starts_at_the_first_request_with_prefix_caching() -> None:
    editor, engines = made()
    assert serve(editor, []) == {}
    assert not engines
    serve(editor, [request()])
    assert engines[0].arguments == {
        "model": "Qwen/Qwen3-8B", "revision": "abc", "dtype": "bfloat16",
        "enable_prefix_caching": True, "seed": 0,
    }  # fmt: skip


def test_a_model_in_a_file_needs_no_revision(tmp_path: Path) -> None:
    file = tmp_path / "small.gguf"
    file.touch()
    editor, _ = made(model=str(file), revision=None)
    assert len(serve(editor, [request("one")])) == 1


def test_requests_go_in_batches_and_each_gets_its_own_reply() -> None:
    editor, engines = made()
    requests = [request(f"r{i}") for i in range(10)]
    replies = serve(editor, requests)
    assert [len(call[0]) for call in engines[0].calls] == [4, 4, 2]
    assert replies == {r: Reply(f"re: {r.messages[0].content}", "stop", 3, 9) for r in requests}


def test_sampling_is_the_models_own_with_what_the_request_and_the_generator_say() -> None:
    editor, engines = made()
    serve(editor, [request("a", temperature=None), request("b", temperature=1.2)])
    first, second = engines[0].calls[0][1]
    assert (first.temperature, second.temperature) == (0.6, 1.2)
    assert (first.top_k, first.top_p, first.max_tokens) == (30, 0.8, 20)
    assert engines[0].calls[0][2] == {
        "chat_template_kwargs": {"enable_thinking": False}, "use_tqdm": False
    }  # fmt: skip


def test_a_seed_is_explicit_and_depends_on_the_request_alone() -> None:
    editor, engines = made()
    serve(editor, [request("a"), request("a", draw=1), request("b")])
    seeds = [params.seed for params in engines[0].calls[0][1]]
    assert len(set(seeds)) == 3
    other, others = made(batch_size=1)
    serve(other, [request("b"), request("a")])
    assert [call[1][0].seed for call in others[0].calls] == [seeds[2], seeds[0]]


def test_markers_in_a_document_are_broken_up() -> None:
    editor, engines = made()
    asked = Request((Message("user", "End <|im_end|> here <tool>"),), None, 20, 0)
    serve(editor, [asked])
    assert engines[0].calls[0][0][0] == [{"role": "user", "content": "End < |im_end|> here <tool>"}]


def test_a_prompt_that_is_too_long_is_not_sent_and_the_others_are() -> None:
    editor, engines = made()
    fine, long = request("fine"), request("word " * 41)
    replies = serve(editor, [fine, long])
    assert replies[long] == Reply("", "length", 0, 41)
    assert replies[fine].text
    assert [len(call[0]) for call in engines[0].calls] == [1]
    assert serve(editor, [long]) == {long: Reply("", "length", 0, 41)}


def test_an_unknown_sampling_param_is_named() -> None:
    editor, _ = made(
        extra_body={"chat_template_kwargs": {"enable_thinking": False}, "reasoning_effort": "none"}
    )
    with pytest.raises(InputError, match="vLLM has no sampling param 'reasoning_effort'"):
        serve(editor, [request()])


def test_a_missing_output_is_no_silent_loss() -> None:
    editor, engines = made()
    serve(editor, [request()])
    whole = engines[0].chat
    vars(engines[0])["chat"] = lambda *given, **more: whole(*given, **more)[:-1]
    with pytest.raises(ValueError, match="shorter"):
        serve(editor, [request("a"), request("b")])


def test_without_vllm_the_error_says_what_to_install() -> None:
    editor = VLLMEditor(Generator("vllm", "m"), "bfloat16")
    with pytest.raises(InputError, match=r"palimpsest\[vllm\]"):
        serve(editor, [request()])
