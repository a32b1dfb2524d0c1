"""A causal language model in this process as an editor: many requests at once, each seeded."""

import hashlib
import json
import random
import re
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any, Literal

import torch
from torch import Tensor
from transformers import AttentionInterface, AutoModelForCausalLM, AutoTokenizer

from palimpsest.editors.chat import chat_of, markers_of
from palimpsest.editors.prefix_tree import Node, Pack, PrefixTree, pack, tree_attention
from palimpsest.errors import InputError
from palimpsest.models import find_model, pick_device, weights_dtype
from palimpsest.trajectories.requests import Message, Pull, Reply, Request

PACK = 512  # tokens that go through the model at once: more costs memory and is no faster on a CPU
KEPT = 128  # tokens of finished prompts that stay in memory, for each request that may run


@dataclass(eq=False, slots=True)
class Running:
    request: Request
    leaf: Node
    prompt_tokens: int
    random: random.Random


class TransformersEditor:
    """Any causal LM of transformers with a chat template and full attention in every layer.

    A request's reply is drawn from its `top_k` likeliest next tokens at its temperature, with
    random numbers that its content seeds, so no other request changes it; 0 is greedy. What is left
    is rounding: in float32 a logit moves by about 1e-5 with the company of a request, in bfloat16
    by 1e-2, enough to turn some replies. `Reply.tokens` counts the reply without its stop token.

    At most `batch_size` requests run at once; one that has finished makes place for the next, and
    what prompts have in common at their start is computed once (`prefix_tree`). The weights are
    loaded at the first request. Runs on CPU; CUDA and MPS take the same path and have not been run.

    Raises:
        InputError: at the first request, a model that cannot be loaded, has no chat template or no
            stop token, or computes another attention.
    """

    def __init__(
        self,
        model: str,
        revision: str | None,
        *,
        device: str,
        dtype: str,
        top_k: int,
        batch_size: int,
    ) -> None:
        self._files = find_model(model, revision)
        self.model = self._files.name
        self.revision = self._files.revision
        self.decoding: dict[str, Any] = {"top_k": top_k, "dtype": dtype}
        self._top_k = top_k
        self._batch_size = batch_size
        self._device = pick_device(device)
        self._dtype = weights_dtype(dtype)

    def serve(self, pull: Pull) -> Iterator[list[tuple[Request, Reply]]]:
        """Answer requests until none is ready and none runs; each reply comes when it is there."""
        tree = PrefixTree(limit=KEPT * self._batch_size)
        running: list[Running] = []
        while True:
            unanswerable = []
            if free := self._batch_size - len(running):
                for request in pull(free):
                    prompt = self._prompt(request.messages)
                    if len(prompt) + request.max_tokens > self._context:
                        unanswerable.append((request, Reply("", "length", 0, len(prompt))))
                    else:
                        running.append(self._begin(request, prompt, tree))
            if unanswerable:
                yield unanswerable
                continue
            if not running:
                return
            finished = self._step(running, tree)
            running = [each for each in running if each not in finished]
            for each in finished:
                tree.finish(each.leaf)
            if finished:
                yield [(each.request, reply) for each, reply in finished.items()]

    def _begin(self, request: Request, prompt: list[int], tree: PrefixTree) -> Running:
        identity = json.dumps([self.revision or self.model, self.decoding, asdict(request)])
        seed = int.from_bytes(hashlib.sha256(identity.encode()).digest())
        leaf = tree.add(prompt, request.max_tokens)
        return Running(request, leaf, len(prompt), random.Random(seed))

    def _prompt(self, messages: tuple[Message, ...]) -> list[int]:
        chat = chat_of(messages, self._markers)
        return list(
            self._tokenizer.apply_chat_template(chat, add_generation_prompt=True, return_dict=False)
        )

    def _step(self, running: list[Running], tree: PrefixTree) -> dict[Running, Reply]:
        """Read one pack, give every request that it completes a token; return those that finish."""
        by_leaf = {each.leaf: each for each in running}
        batch = pack(tree.root, list(by_leaf), PACK, self._device)
        logits = _read(self._network, batch, self._device)
        ready = [by_leaf[leaf] for leaf in batch.ready]
        finished = {}
        for each, token in zip(ready, _draw(logits, ready, self._top_k), strict=True):
            reply = each.leaf.reply
            stopped = token in self._stops
            if not stopped:
                reply.append(token)
            if stopped or len(reply) == each.request.max_tokens:
                text = self._tokenizer.decode(reply, skip_special_tokens=True)
                finish: Literal["stop", "length"] = "stop" if stopped else "length"
                finished[each] = Reply(text, finish, len(reply), each.prompt_tokens)
        return finished

    @cached_property
    def _tokenizer(self) -> Any:
        tokenizer = self._files.load(AutoTokenizer)
        if not tokenizer.chat_template:
            raise InputError(
                f"model {self.model} has no chat template: choose one trained on instructions"
            )
        return tokenizer

    @property
    def _context(self) -> int:
        context: int = self._network.config.get_text_config().max_position_embeddings
        return context

    @cached_property
    def _markers(self) -> re.Pattern[str]:
        return markers_of(self._tokenizer)

    @cached_property
    def _stops(self) -> set[int]:
        given = self._network.generation_config.eos_token_id
        stops = {*(given if isinstance(given, list) else [given]), self._tokenizer.eos_token_id}
        if stops == {None}:
            raise InputError(f"model {self.model} names no stop token (eos_token_id)")
        return stops - {None}

    @cached_property
    def _network(self) -> Any:
        network = self._files.load(AutoModelForCausalLM, dtype=self._dtype).to(self._device).eval()
        name = type(network).__name__
        if not network._supports_attention_backend:
            raise InputError(f"model {self.model}: {name} takes no attention from outside")
        try:
            faithful = _switch_attention(network, self._device)
        except InputError as error:
            raise InputError(f"model {self.model}: {error}") from error
        if not faithful:
            raise InputError(f"model {self.model}: {name} gives other logits with shared prefixes")
        return network


@torch.inference_mode()
def _read(network: Any, batch: Pack, device: str) -> Tensor:
    """Logits (prompts in `batch.ready`, vocabulary); then the batch's tokens are in the tree."""
    logits: Tensor = network(
        input_ids=torch.tensor([batch.tokens], device=device),
        position_ids=torch.tensor([batch.positions], device=device),
        use_cache=False,
        logits_to_keep=torch.tensor(batch.ends, dtype=torch.long, device=device),
        blocks=batch.blocks,
    ).logits[0]
    for block in batch.blocks:
        block.node.read += block.new
    return logits


def _draw(logits: Tensor, running: list[Running], top_k: int) -> list[int]:
    """Each request's next token."""
    values, ids = (part.cpu() for part in logits.float().topk(min(top_k, logits.shape[-1])))
    likeliest = ids[:, 0]
    # By token id: by probability, two tokens a rounding error apart could change places.
    ids, order = ids.sort()
    temperatures = torch.tensor([_temperature(each.request) for each in running])[:, None]
    randoms = torch.tensor([each.random.random() for each in running], dtype=torch.double)[:, None]
    cumulated = (values.gather(1, order).double() / temperatures).softmax(-1).cumsum(-1)
    drawn = ids.gather(1, (cumulated < randoms * cumulated[:, -1:]).sum(-1, keepdim=True))
    tokens: list[int] = torch.where(temperatures[:, 0] > 0, drawn[:, 0], likeliest).tolist()
    return tokens


def _temperature(request: Request) -> float:
    """A model in this process has no temperature of its own but the distribution as it is."""
    return 1.0 if request.temperature is None else request.temperature


def _switch_attention(network: Any, device: str) -> bool:
    """Let the model compute attention over the prefix tree; True where its logits stay its own."""
    size = network.get_input_embeddings().num_embeddings
    prompt = [token % size for token in range(16)]
    with torch.inference_mode():
        own = network(input_ids=torch.tensor([prompt], device=device), use_cache=False).logits[
            0, -1
        ]
    AttentionInterface.register("prefix_tree", tree_attention)
    network.set_attn_implementation("prefix_tree")
    tree = PrefixTree(limit=0)
    leaves = [tree.add([*prompt[:7], 0], room=1), tree.add(prompt, room=1)]
    while leaves[1].unread:
        shared = _read(network, pack(tree.root, leaves, 5, device), device)[-1:]
    error = (shared[0] - own).norm() / own.norm()
    return bool(error < torch.finfo(own.dtype).eps ** 0.5)
