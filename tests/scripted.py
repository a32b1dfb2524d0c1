"""An editor for tests: it answers by a function, out of order, and notes what it was asked."""

from collections.abc import Callable, Iterator
from typing import Any

from palimpsest.trajectories.requests import Pull, Reply, Request


class ScriptedEditor:
    """Holds `batch` requests at a time and answers one: the last of them, or the oldest."""

    def __init__(
        self, answer: Callable[[Request], str], batch: int = 4, oldest_first: bool = False
    ) -> None:
        self.model = "scripted"
        self.revision: str | None = "1"
        self.decoding: dict[str, Any] = {}
        self.asked: list[Request] = []
        self._answer = answer
        self._batch = batch
        self._next = 0 if oldest_first else -1

    def serve(self, pull: Pull) -> Iterator[list[tuple[Request, Reply]]]:
        flight: list[Request] = []
        while flight := flight + pull(self._batch - len(flight)):
            request = flight.pop(self._next)
            self.asked.append(request)
            text = self._answer(request)
            yield [(request, Reply(text, "stop", len(text.split())))]


def target_of(request: Request) -> str:
    """The sentence that a request of the few-shot prompt set asks about."""
    return request.messages[-1].content.rpartition("\n")[2]
