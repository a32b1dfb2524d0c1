"""Models behind an OpenAI-compatible API as an editor: many requests in flight, each paid once."""

import asyncio
import logging
import socket
import threading
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from palimpsest.editors.completions import Completions
from palimpsest.params import Generator
from palimpsest.trajectories.requests import Pull, Reply, Request

log = logging.getLogger(__name__)

DRAIN = 5.0  # seconds in which replies that are paid for may still come after a request has failed


class OpenAIEditor:
    """A model behind one or several OpenAI-compatible servers, which share the load.

    The body that a request is sent in, without what the request itself says, is `decoding` and so
    part of every journal key; servers, API key and pace are not. With `seeds` a request's draw is
    its `seed`; without, every request is a new sample of the provider's.

    Raises:
        InputError: while serving, what `Completions` raises.
    """

    def __init__(self, generator: Generator, key: str | None) -> None:
        self.model = generator.model
        self.revision = generator.revision
        self.decoding: dict[str, Any] = {
            "extra_body": generator.extra_body,
            "limit_field": generator.limit_field,
            "thinking_tokens": generator.thinking_tokens,
            "seeds": generator.seeds,
        }
        self._generator = generator
        self._key = key

    def serve(self, pull: Pull) -> Iterator[list[tuple[Request, Reply]]]:
        """As `Editor.serve`; closing the generator cancels what is in flight."""
        ready = pull(self._generator.concurrency)
        if not ready:
            return
        with asyncio.Runner(loop_factory=_Loop) as runner:
            flight = _Flight(Completions(self._generator, self._key))
            try:
                while answered := runner.run(flight.next(ready)):
                    yield answered
                    ready = pull(self._generator.concurrency - len(flight.running))
            finally:
                runner.run(flight.close())


class _Flight:
    """The requests under way in one call of `serve`."""

    def __init__(self, completions: Completions) -> None:
        self._completions = completions
        self.running: set[asyncio.Task[tuple[Request, Reply]]] = set()
        self._finished: list[asyncio.Task[tuple[Request, Reply]]] = []
        self._arrival = asyncio.Event()
        self._failure: BaseException | None = None

    async def next(self, ready: list[Request]) -> list[tuple[Request, Reply]]:
        """Send what is ready and wait for one answer or more; none where none is under way."""
        if self._failure:
            raise self._failure
        for request in ready:
            task = asyncio.create_task(self._answer(request))
            self.running.add(task)
            task.add_done_callback(self._note)
        if not self.running and not self._finished:
            return []
        await self._arrival.wait()
        self._failure = next(filter(None, (task.exception() for task in self._finished)), None)
        if self._failure and self.running:
            await asyncio.wait(self.running, timeout=DRAIN)
        finished, self._finished = self._finished, []
        self._arrival.clear()
        answered = [task.result() for task in finished if not task.exception()]
        if self._failure and not answered:
            raise self._failure
        return answered

    async def close(self) -> None:
        for task in self.running:
            task.cancel()
        await asyncio.gather(*self.running, return_exceptions=True)
        await self._completions.close()
        if lost := self._completions.lost:
            log.info("sent again after %s",
                     ", ".join(f"{kind} {n:,}" for kind, n in lost.most_common()))  # fmt: skip

    async def _answer(self, request: Request) -> tuple[Request, Reply]:
        return request, await self._completions.reply(request)

    def _note(self, task: asyncio.Task[tuple[Request, Reply]]) -> None:
        self.running.discard(task)
        self._finished.append(task)
        self._arrival.set()


class _Loop(asyncio.SelectorEventLoop):
    """Looks names up in daemon threads; asyncio's own threads keep a stopped program waiting."""

    async def getaddrinfo(self, host: Any, port: Any, **options: Any) -> Any:
        found = self.create_future()

        def settle(setter: Any, value: Any) -> None:
            if not found.done():
                setter(value)

        def look_up() -> None:
            setter: Any = found.set_result
            value: Any
            try:
                value = socket.getaddrinfo(host, port, **options)
            except OSError as error:
                setter, value = found.set_exception, error
            with suppress(RuntimeError):  # the loop has been closed meanwhile
                self.call_soon_threadsafe(settle, setter, value)

        threading.Thread(target=look_up, daemon=True).start()
        return await found
