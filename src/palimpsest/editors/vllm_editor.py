"""vLLM's offline engine as an editor: a local causal LM on GPUs, whole batches at a time."""

import hashlib
import json
import re
from collections.abc import Callable, Iterator
from dataclasses import asdict
from functools import cached_property
from pathlib import Path
from typing import Any

from palimpsest.editors.chat import chat_of, markers_of
from palimpsest.editors.replies import make_reply
from palimpsest.errors import InputError
from palimpsest.models import find_model
from palimpsest.params import Generator
from palimpsest.trajectories.requests import Pull, Reply, Request


class VLLMEditor:
    """Any chat model that vLLM runs, through `LLM.chat` with prefix caching.

    A request is sampled as the model's own generation config says, with the generator's `top_k`,
    its temperature where it has one, and a seed that its content gives. `extra_body` is read as a
    vLLM server reads it: `chat_template_kwargs` go to the chat template, all else to the sampling
    params. vLLM promises the same reply to the same seed only for the same batch on the same
    hardware and version, so it is the journal that makes texts repeatable.

    `engine` makes the `vllm.LLM`, at the first request.

    Raises:
        InputError: at the first request, vLLM that is not installed, an unknown sampling param.
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
            chats = {request: chat_of(request.messages, self._markers) for request in batch}
            # One chat that is too long would make the engine throw the whole batch away.
            lengths = {request: self._length(chat) for request, chat in chats.items()}
            context = self._engine.llm_engine.model_config.max_model_len
            fitting = [r for r in batch if lengths[r] + r.max_tokens <= context]
            outputs = (
                self._engine.chat(
                    [chats[request] for request in fitting],
                    [self._sampling_params(request) for request in fitting],
                    chat_template_kwargs=self._template,
                    use_tqdm=False,
                )
                if fitting
                else []
            )
            # vLLM gives the outputs in the order of the chats; strict, should one be missing.
            replies = dict(zip(fitting, outputs, strict=True))
            yield [
                (r, _reply(r, replies[r]) if r in replies else Reply("", "length", 0, lengths[r]))
                for r in batch
            ]

    def _length(self, chat: list[dict[str, str]]) -> int:
        return len(
            self._tokenizer.apply_chat_template(
                chat, add_generation_prompt=True, return_dict=False, **self._template
            )
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
        engine = self._make_engine(
            model=self.model,
            revision=self.revision,
            dtype=self.decoding["dtype"],
            enable_prefix_caching=True,
            seed=0,
        )
        if not Path(self.model).exists():  # vLLM reads more kinds of files than find_model knows
            find_model(self.model, self.revision).warn_unpinned()
        return engine

    @cached_property
    def _tokenizer(self) -> Any:
        return self._engine.get_tokenizer()

    @cached_property
    def _markers(self) -> re.Pattern[str]:
        return markers_of(self._tokenizer)


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
