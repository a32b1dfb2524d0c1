"""What passes between a trajectory and the editor that rewrites its sentences."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Literal, Protocol


@dataclass(frozen=True, slots=True)
class Message:
    role: Literal["system", "user", "assistant"]
    content: str


@dataclass(frozen=True, slots=True)
class Request:
    """One sentence to rewrite; equal requests have equal replies.

    `draw` tells repeated samples of one prompt apart: repetition x attempts allowed + attempt. A
    temperature of None is the provider's own, which is then not sent.
    """

    messages: tuple[Message, ...]
    temperature: float | None
    max_tokens: int
    draw: int


@dataclass(frozen=True, slots=True)
class Reply:
    """`finish` is `length` where the editor stopped the reply at `max_tokens`.

    It is so with an empty text where prompt and reply do not fit into the model's context: such a
    request is not sent, and validation rejects its sentence by name.

    `tokens` and `prompt_tokens` are what was written and read, as a provider counts and bills it.
    """

    text: str
    finish: Literal["stop", "length"]
    tokens: int
    prompt_tokens: int = 0


# Up to n requests that are ready now; fewer, or none, where none are.
Pull = Callable[[int], list[Request]]


class Editor(Protocol):
    """Who rewrites: a model behind an API, an engine, or a model in this process.

    `serve` answers requests until `pull` gives none while none is in flight. A reply may make
    further requests ready, so it is handed on as soon as it is there, in any order, together with
    those that came at the same time. `model`, `revision` and `decoding` identify what answers; they
    are part of every journal key.
    """

    model: str
    revision: str | None
    decoding: dict[str, Any]

    def serve(self, pull: Pull) -> Iterator[list[tuple[Request, Reply]]]: ...
