"""Keys and values of many prompts in one tree, so that a model reads each shared prefix once.

A node holds a run of tokens that all prompts below it share: the worked examples, then a paragraph,
then one prompt's own end and its reply. New tokens of all prompts go through the model as one
packed sequence; `tree_attention` lets each see its own ancestors and nothing else.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from palimpsest.errors import InputError


@dataclass(eq=False)
class Node:
    """Tokens that follow the parent's, from position `start`; the first `read` are in the cache.

    `cache` has keys and values, each (layers, key-value heads, capacity, head size), once a token
    is read. With a tensor for every layer the heap had so many holes that it took twice the memory.
    """

    parent: "Node | None"
    start: int
    tokens: list[int]
    room: int = 0  # for a reply; a node without room belongs to no running prompt
    reply: list[int] = field(default_factory=list)
    children: list["Node"] = field(default_factory=list)
    read: int = 0
    last_used: int = 0
    cache: tuple[Tensor, ...] = ()

    @property
    def unread(self) -> int:
        return len(self.tokens) + len(self.reply) - self.read

    def path(self) -> list["Node"]:
        """The nodes from the root to this one."""
        above = self.parent.path() if self.parent else []
        return [*above, self]

    def below(self) -> Iterator["Node"]:
        for child in self.children:
            yield child
            yield from child.below()

    def shared_with(self, prompt: Sequence[int]) -> int:
        """How many leading tokens are equal; a running prompt's last one stays its own."""
        most = min(len(self.tokens) - bool(self.room), len(prompt))
        return next((i for i in range(most) if self.tokens[i] != prompt[i]), most)

    def split(self, at: int) -> "Node":
        """Cut after `at` tokens and return the upper part, a new node; this one is the lower."""
        assert self.parent
        upper = Node(self.parent, self.start, self.tokens[:at], children=[self])
        upper.read = min(self.read, at)
        upper.cache = self.cached(0, at)
        self.parent.children[self.parent.children.index(self)] = upper
        self.parent, self.start, self.tokens = upper, self.start + at, self.tokens[at:]
        self.read = max(self.read - at, 0)
        self.cache = self.cached(at, None)
        return upper

    def cached(self, start: int, end: int | None) -> tuple[Tensor, ...]:
        """Copies of some tokens' part: a view would keep the memory of all."""
        return tuple(part[:, :, start:end].clone() for part in self.cache)

    def store(self, layer: int, layers: int, *new: Tensor) -> None:
        """Put in the next tokens' keys and values, each (heads, new tokens, head size)."""
        if not self.cache:
            capacity = len(self.tokens) + self.room
            self.cache = tuple(
                part.new_empty(layers, len(part), capacity, part.shape[-1]) for part in new
            )
        for part, tokens in zip(self.cache, new, strict=True):
            part[layer, :, self.read : self.read + tokens.shape[1]] = tokens


class PrefixTree:
    """The prompts that run now, and as many past ones as `limit` tokens hold."""

    def __init__(self, limit: int) -> None:
        self.root = Node(None, 0, [])
        self.limit = limit
        self._clock = 0

    def add(self, prompt: list[int], room: int) -> Node:
        """A leaf for a prompt and its reply; at least the prompt's last token is its own."""
        self._clock += 1
        node = self.root
        while True:
            rest = prompt[node.start + len(node.tokens) :]
            child = max(node.children, key=lambda child: child.shared_with(rest[:-1]), default=None)
            if child is None or not (shared := child.shared_with(rest[:-1])):
                leaf = Node(node, len(prompt) - len(rest), rest, room, last_used=self._clock)
                node.children.append(leaf)
                return leaf
            node = child if shared == len(child.tokens) else child.split(shared)
            node.last_used = self._clock

    def finish(self, leaf: Node) -> None:
        """Forget the reply; keep the prompt for those to come, the least recently used go."""
        leaf.reply, leaf.room, leaf.read = [], 0, len(leaf.tokens)
        leaf.cache = leaf.cached(0, leaf.read)
        excess = sum(len(node.tokens) for node in self.root.below()) - self.limit
        while excess > 0:
            idle = [node for node in self.root.below() if not node.children and not node.room]
            if not idle:
                return
            oldest = min(idle, key=lambda node: node.last_used)
            assert oldest.parent
            oldest.parent.children.remove(oldest)
            excess -= len(oldest.tokens)


@dataclass(frozen=True, slots=True)
class Block:
    """The queries of one pack that see one node: its `new` tokens, then all those below it."""

    node: Node
    first: int
    last: int
    new: int
    hidden: Tensor | None  # (new, new): what a new token must not see yet


@dataclass(slots=True)
class Pack:
    """What goes through the model at once; `ends` are the indices of the finished prompts' ends."""

    tokens: list[int] = field(default_factory=list)
    positions: list[int] = field(default_factory=list)
    blocks: list[Block] = field(default_factory=list)
    ready: list[Node] = field(default_factory=list)
    ends: list[int] = field(default_factory=list)


def pack(root: Node, leaves: Sequence[Node], size: int, device: str) -> Pack:
    """The next at most `size` unread tokens of the leaves' paths, first leaves first.

    `ready` holds the leaves that will be read to their end, in the order of `ends`.
    """
    new: dict[Node, int] = {}
    for leaf in leaves:
        for node in leaf.path():
            if node not in new:
                new[node] = min(node.unread, size)
                size -= new[node]
    result = Pack()

    def visit(node: Node, ready: bool) -> None:
        first, count = len(result.tokens), new[node]
        result.tokens += (node.tokens + node.reply)[node.read : node.read + count]
        begin = node.start + node.read
        result.positions += range(begin, begin + count)
        ready = ready and count == node.unread
        if ready and count and node.room:
            result.ready.append(node)
            result.ends.append(len(result.tokens) - 1)
        for child in node.children:
            if child in new:
                visit(child, ready)
        last = len(result.tokens)
        if node.read + count and last > first:
            hidden = torch.ones(count, count, dtype=torch.bool, device=device).triu(1)
            result.blocks.append(Block(node, first, last, count, hidden if count > 1 else None))

    visit(root, True)
    return result


def tree_attention(
    module: Any, query: Tensor, key: Tensor, value: Tensor, _mask: Tensor | None, /, **given: Any
) -> tuple[Tensor, None]:
    """Attention of a pack's tokens over their ancestors in the tree.

    Shapes: query (1, heads, tokens, size), key and value (1, key-value heads, tokens, size);
    result (1, tokens, heads, size). `blocks` comes through the model's keyword arguments.

    Raises:
        InputError: attention that is more than softmax(QK)V over all earlier tokens.
    """
    for extra in ("sliding_window", "softcap", "s_aux"):
        if given.get(extra) is not None:
            raise InputError(f"its attention has {extra}, which this editor does not compute")
    blocks: list[Block] = given["blocks"]
    layer, layers = module.layer_idx, module.config.num_hidden_layers
    heads, tokens = key.shape[1:3]
    group = query.shape[1] // heads
    scaled = query[0] * (given.get("scaling") or query.shape[-1] ** -0.5)
    # Token by token, so that a block's queries are one slice and its scores one matrix product.
    queries = scaled.unflatten(0, (heads, group)).transpose(1, 2).flatten(1, 2)
    columns = max(block.node.start + block.node.read + block.new for block in blocks)
    scores = queries.new_full((*queries.shape[:2], columns), -torch.inf)
    for block in blocks:
        node, length = block.node, block.node.read + block.new
        if block.new:
            own = slice(block.first, block.first + block.new)
            node.store(layer, layers, key[0, :, own], value[0, :, own])
        first, count = block.first * group, (block.last - block.first) * group
        seen = scores.narrow(1, first, count).narrow(2, node.start, length)
        keys = node.cache[0][layer].narrow(1, 0, length)
        seen.copy_(queries.narrow(1, first, count).bmm(keys.mT))
        if block.hidden is not None:
            newest = seen.narrow(1, 0, block.new * group).narrow(2, node.read, block.new)
            newest.unflatten(1, (block.new, group)).masked_fill_(block.hidden[:, None], -torch.inf)
    weights = scores.softmax(-1, dtype=torch.float32).to(value.dtype)
    result = queries.new_zeros(*queries.shape[:2], value.shape[-1])
    for block in blocks:
        node, length = block.node, block.node.read + block.new
        first, count = block.first * group, (block.last - block.first) * group
        part = weights.narrow(1, first, count).narrow(2, node.start, length)
        values = node.cache[1][layer].narrow(1, 0, length)
        result.narrow(1, first, count).add_(part.bmm(values))
    merged = result.unflatten(1, (tokens, group)).transpose(0, 1).flatten(1, 2)
    return merged.unsqueeze(0), None
