"""A local server of chat completions over real sockets, whose faults follow a deterministic rule.

It rewrites the sentence that a prompt ends with. What goes wrong is drawn from the hash of a
request: transport faults also from how often it was sent, so that they pass; a model's own
mistakes from the request alone, and only at the first draw, so that a second one can mend them.
"""

import argparse
import asyncio
import hashlib
import json
import socket
import struct
import sys
import threading
from collections import Counter
from collections.abc import Callable, Sequence
from email.utils import formatdate
from time import time
from typing import Any, Self

Answer = tuple[int, dict[str, str], bytes]  # status, headers, body

TRANSPORT = ("429", "429 in seconds", "429 at a date", "500", "timeout", "reset", "cut", "not JSON",
             "no choices", "interrupted")  # fmt: skip
CONTENT = ("empty", "truncated", "thought", "only thought", "refusal", "refusal field", "JSON",
           "two sentences", "preamble", "content filter", "prompt filter")  # fmt: skip


def rewrite(messages: Sequence[dict[str, str]]) -> str:
    """Swap the two words in the middle; shorten or lengthen where that is asked for."""
    asked, _, sentence = messages[-1]["content"].rpartition("\n")
    words = sentence.split()
    middle = len(words) // 2
    words[middle - 1 : middle + 1] = reversed(words[middle - 1 : middle + 1])
    if "Shorten" in asked:
        del words[middle : middle + len(words) // 4]
    elif "Expand" in asked:
        words[middle:middle] = ["quite", "really"] * (len(words) // 6)
    return " ".join(words)


def completion(text: str | None, finish: str = "stop", **message: Any) -> Answer:
    body = {
        "id": "c1",
        "object": "chat.completion",
        "created": 1,
        "model": "stub-2026",
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": text, **message},
                "finish_reason": finish,
            }
        ],
        "usage": {"prompt_tokens": 300, "completion_tokens": 20, "total_tokens": 320},
    }
    return 200, {}, json.dumps(body).encode()


def error(status: int, message: str, headers: dict[str, str] | None = None, **more: str) -> Answer:
    body = json.dumps({"error": {"message": message, "type": "stub", **more}})
    return status, headers or {}, body.encode()


def flawed(fault: str, text: str) -> Answer:
    """A model's or a filter's answer that is not simply the rewritten sentence."""
    match fault:
        case "empty":
            return completion("")
        case "truncated":
            return completion(text[: len(text) // 2], "length")
        case "thought":
            return completion(f"<think>\nTwo words. Swap them?\n</think>\n\n{text}")
        case "only thought":
            return completion("<think>\nTwo words. Swap", "length")
        case "refusal":
            return completion("I'm sorry, but I can't help with that.")
        case "refusal field":
            return completion(None, refusal="I'm sorry, but I can't help with that.")
        case "JSON":
            return completion(json.dumps({"sentence": text}))
        case "two sentences":
            return completion(f"{text} That was all.")
        case "preamble":
            return completion(f"Here is the rewritten sentence: {text}")
        case "content filter":
            return completion(text[:20], "content_filter")
        case "prompt filter":
            return error(400, "The prompt was filtered.", code="content_filter")
    raise AssertionError(fault)


class Stub:
    """The server in a thread; `with Stub() as stub` gives its `url`.

    `answer` may replace the model. `faults` are drawn with probability `share`. `bodies` are the
    requests as they came, `answered` those that got a completion.
    """

    def __init__(
        self,
        faults: Sequence[str] = (),
        *,
        share: float = 0.3,
        latency: float = 0.0,
        hold: float = 2.0,
        answer: Callable[[dict[str, Any]], Answer] | None = None,
    ) -> None:
        self.bodies: list[dict[str, Any]] = []
        self.keys: set[str] = set()
        self.met: Counter[str] = Counter()
        self._transport = [fault for fault in faults if fault in TRANSPORT]
        self._content = [fault for fault in faults if fault in CONTENT]
        self._share = share
        self._latency = latency
        self._hold = hold
        self._answer = answer or (lambda body: completion(rewrite(body["messages"])))
        self._seen: Counter[bytes] = Counter()
        self._loop = asyncio.new_event_loop()

    def __enter__(self) -> Self:
        started = threading.Event()

        def run() -> None:
            self._server = self._loop.run_until_complete(self.listen())
            started.set()
            self._loop.run_forever()

        self._thread = threading.Thread(target=run, daemon=True)
        self._thread.start()
        started.wait()
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._server.close()
        self._loop.run_until_complete(asyncio.sleep(0))
        self._loop.close()

    async def listen(self) -> asyncio.Server:
        loop = asyncio.get_running_loop()
        server = await loop.create_server(lambda: _Connection(self), "127.0.0.1", 0, backlog=512)
        self.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
        return server

    def take(self, connection: "_Connection", path: str, key: str, content: bytes) -> None:
        """Answer one request, or fail at it."""
        body = json.loads(content)
        self.bodies.append(body)
        self.keys.add(key)
        fault = self._fault(content, body.get("seed", 0))
        self.met[fault or "none"] += 1
        later = asyncio.get_running_loop().call_later
        match fault:
            case None:
                given = self._answer(body)
            case "429":
                given = error(429, "Too many requests")
            case "429 in seconds":
                given = error(429, "Too many requests", {"Retry-After": "1"})
            case "429 at a date":
                given = error(429, "Too many", {"Retry-After": formatdate(time() + 1, usegmt=True)})
            case "500":
                given = error(500, "Internal error")
            case "timeout":
                later(self._hold, connection.reset)
                return
            case "reset":
                connection.reset()
                return
            case "cut":
                status, headers, whole = self._answer(body)
                connection.send((status, headers, whole[:40]), len(whole))
                connection.reset()
                return
            case "not JSON":
                given = (200, {"Content-Type": "text/html"}, b"<html>Bad gateway</html>")
            case "no choices":
                given = error(200, "Provider returned error")
            case "interrupted":
                given = completion(None, "insufficient_system_resource")
            case _:
                given = flawed(fault, rewrite(body["messages"]))
        later(self._latency, connection.send, given)

    def _fault(self, content: bytes, draw: int) -> str | None:
        self._seen[content] += 1
        for faults, identity in (
            (self._transport, b"%d %b" % (self._seen[content], content)),
            (self._content if draw == 0 else [], content),
        ):
            if faults:
                number = int.from_bytes(hashlib.sha256(identity).digest()[:8])
                if number / 2**64 < self._share:
                    return faults[number % len(faults)]
        return None


class _Connection(asyncio.Protocol):
    """Just enough of HTTP/1.1: POST with a length, connections kept open."""

    def __init__(self, stub: Stub) -> None:
        self._stub = stub
        self._received = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._received += data
        head, found, content = self._received.partition(b"\r\n\r\n")
        if not found:
            return
        lines = head.decode("latin-1").split("\r\n")
        headers = {n.lower(): v.strip() for n, _, v in (line.partition(":") for line in lines[1:])}
        length = int(headers["content-length"])
        if len(content) >= length:
            self._received = content[length:]
            path, key = lines[0].split()[1], headers["authorization"].removeprefix("Bearer ")
            self._stub.take(self, path, key, content[:length])

    def send(self, answer: Answer, length: int | None = None) -> None:
        status, headers, body = answer
        length = len(body) if length is None else length
        lines = {"Content-Type": "application/json", "Content-Length": str(length), **headers}
        head = "".join(f"{name}: {value}\r\n" for name, value in lines.items())
        if not self._transport.is_closing():
            self._transport.write(f"HTTP/1.1 {status} Stub\r\n{head}\r\n".encode() + body)

    def reset(self) -> None:
        """End the connection with RST, as a crashed server does."""
        connection: socket.socket = self._transport.get_extra_info("socket")
        if connection.fileno() >= 0:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self._transport.abort()


async def _serve(latency: float) -> None:
    stub = Stub(latency=latency)
    server = await stub.listen()
    sys.stdout.write(stub.url + "\n")
    sys.stdout.flush()
    await server.serve_forever()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--latency", type=float, default=0.1, help="seconds")
    asyncio.run(_serve(parser.parse_args().latency))
