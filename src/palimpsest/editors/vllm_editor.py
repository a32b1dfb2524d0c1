"""vLLM's offline engine as an editor: a local causal LM on GPUs, whole batches at a time."""

import hashlib
import json
import re
from collections.abc import Callable, Iterator
from dataclasses import asdict
from functools import cached_property
from typing import Any

from palimpsest.editors.replies import make_reply
from palimpsest.errors import InputError
from palimpsest.params import Generator
from palimpsest.trajectories.requests import Message, Pull, Reply, Request


class VLLMEditor:
    """Any chat model that vLLM runs, through `LLM.chat` with prefix caching.

    A request is sampled as the model's own generation config says, with the generator's `top_k`,
    its temperature where it has one, and a seed that its content gives. `extra_body` is read as a
    vLLM server reads it: `chat_template_kwargs` go to the chat template, all else to the sampling
    params. vLLM promises the same reply to the same seed only for the same batch on the same
    hardware and version, so it is the journal that makes texts repeatable.

    `engine` makes the `vllm.LLM`, at the first request.

    Raises:
        InputError: at the first request, vLLM that is not installed, an unknown sampling param;
            later, a request longer than the model's context.
    """

    def __init__(
        self, generator: Generator, dtype: str, engine: Callable[..., Any] | None = None
    ) -> None:
        self.model = generator.model
        self.revision = generator.revision
        self.decoding: dict[str, Any] = {
            "top_k": generator.top_k,
            "dtype": dtype,
            "extra_body": generator.extra_body,
        }
        self._batch_size = generator.batch_size
        self._make_engine = engine or _vllm
        self._sampling = dict(generator.extra_body)
        self._template: dict[str, Any] = self._sampling.pop("chat_template_kwargs", {})

    def serve(self, pull: Pull) -> Iterator[list[tuple[Request, Reply]]]:
        """Answer requests until none is ready, up to `batch_size` at once."""
        while batch := pull(self._batch_size):
            chats = [self._chat(request.messages) for request in batch]
            for request, chat in zip(batch, chats, strict=True):
                self._check_length(request, chat)
            outputs = self._engine.chat(
                chats,
                [self._sampling_params(request) for request in batch],
                chat_template_kwargs=self._template,
                use_tqdm=False,
            )
            # vLLM gives the outputs in the order of the chats; strict, should one be missing.
            yield [(request, _reply(request, output))
                   for request, output in zip(batch, outputs, strict=True)]  # fmt: skip

    def _chat(self, messages: tuple[Message, ...]) -> list[dict[str, str]]:
        # A document may contain the model's own markers; broken up, they are text like any other.
        return [
            {
                "role": message.role,
                "content": self._markers.sub(lambda m: f"{m[0][0]} {m[0][1:]}", message.content),
            }
            for message in messages
        ]

    def _check_length(self, request: Request, chat: list[dict[str, str]]) -> None:
        """One chat that is too long would make the engine throw the whole batch away."""
        prompt = self._tokenizer.apply_chat_template(
            chat, add_generation_prompt=True, return_dict=False, **self._template
        )
        context = self._engine.llm_engine.model_config.max_model_len
        if len(prompt) + request.max_tokens > context:
            raise InputError(
                f"a prompt of {len(prompt)} tokens with a reply of up to {request.max_tokens} is "
                f"longer than the context of {self.model}, {context}: lower corpus.max_sentences"
            )

    def _sampling_params(self, request: Request) -> Any:
        identity = json.dumps([self.model, self.revision, self.decoding, asdict(request)])
        params = self._engine.get_default_sampling_params()
        given = {
            "top_k": self.decoding["top_k"],
            **self._sampling,
            "max_tokens": request.max_tokens,
            "seed": int.from_bytes(hashlib.sha256(identity.encode()).digest()[:4]),
        }
        if request.temperature is not None:
            given["temperature"] = request.temperature
        for name, value in given.items():
            if not hasattr(params, name):
                raise InputError(f"extra_body: vLLM has no sampling param {name!r}")
            setattr(params, name, value)
        return params

    @cached_property
    def _engine(self) -> Any:
        return self._make_engine(
            model=self.model,
            revision=self.revision,
            dtype=self.decoding["dtype"],
            enable_prefix_caching=True,
            seed=0,
        )

    @cached_property
    def _tokenizer(self) -> Any:
        return self._engine.get_tokenizer()

    @cached_property
    def _markers(self) -> re.Pattern[str]:
        added = self._tokenizer.added_tokens_decoder.values()
        special = [re.escape(token.content) for token in added if token.special]
        return re.compile("|".join(special) or r"(?!)")


def _reply(request: Request, output: Any) -> Reply:
    completion = output.outputs[0]
    return make_reply(
        request,
        completion.text,
        completion.finish_reason,
        len(completion.token_ids),
        len(output.prompt_token_ids),
    )


def _vllm(**arguments: Any) -> Any:
    try:
        from vllm import LLM
    except ImportError as error:
        raise InputError(
            "the editor vllm needs vLLM, which wants an environment of its own: "
            "pip install 'palimpsest[vllm]' there, or use openai-compatible with a vLLM server "
            "(make serve-generator)"
        ) from error
    return LLM(**arguments)
