"""Chat completions from OpenAI-compatible servers: shared load, pace, and tries until an answer."""

import asyncio
import json
import logging
import random
import re
import time
from collections import Counter
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from itertools import count
from typing import Any

import httpx2
from openai import APIConnectionError, APIStatusError, AsyncOpenAI, DefaultAioHttpClient

from palimpsest.editors.pace import Pace
from palimpsest.editors.replies import INTERRUPTED, estimate_prompt, make_reply
from palimpsest.errors import InputError
from palimpsest.params import Generator
from palimpsest.trajectories.requests import Reply, Request

log = logging.getLogger(__name__)

TRIES = 20  # of one request, about a quarter of an hour; then a fault is taken for permanent
FIRST_TRIES = 5  # while there has been no answer at all, as with a wrong URL
LONGEST_BACKOFF = 60.0  # seconds
LONGEST_WAIT = 3600.0  # seconds that a server may ask for; a day's quota is not waited for

_RETRIED = (408, 409, 425, 429)  # and all from 500 up
# Prompts, or Anthropic's replies, that a filter refuses with status 400: Azure and OpenAI, then
# OpenAI's reasoning models, Anthropic, Qwen, Doubao, DeepSeek.
_FILTERED = re.compile(
    r"content_filter|content_policy|content management policy"
    r"|flagged as potentially violating|content filtering policy|data_?inspection_?failed"
    r"|SensitiveContentDetected|Content Exists Risk|inappropriate content",
    re.IGNORECASE,
)
# Prompts that do not fit: OpenAI, vLLM, Anthropic, Qwen, DeepSeek.
_TOO_LONG = re.compile(
    r"context_length_exceeded|maximum context length|prompt is too long|input length should be"
    r"|longer than the maximum model length",
    re.IGNORECASE,
)
_NO_KEY = re.compile(r"API_KEY_INVALID|API key (?:not valid|expired)")  # Gemini's, with status 400


class LostError(Exception):
    """A try without an answer; the next may bring one, after the `wait` that a server asks for."""

    def __init__(self, kind: str, detail: str = "", wait: float = 0.0) -> None:
        super().__init__(f"{kind}: {detail}" if detail else kind)
        self.kind = kind
        self.wait = wait


@dataclass(slots=True)
class _Server:
    url: str
    client: AsyncOpenAI
    in_flight: int = 0
    failures: int = 0  # since its last answer
    resting_until: float = 0.0  # while others do not rest, they are preferred


class Completions:
    """The servers of one generator, as they are used on one event loop.

    Raises:
        InputError: by `reply`: a key that is refused (401, 403), an unknown model or URL (404), a
            spent quota, a request that the server calls wrong, faults that do not end.
    """

    def __init__(self, generator: Generator, key: str | None) -> None:
        self.lost: Counter[str] = Counter()
        self._generator = generator
        self._key = key
        self._requests = Pace(generator.requests_per_minute)
        self._tokens = Pace(generator.tokens_per_minute)
        self._answered_by: set[str] = set()
        # aiohttp, because a request through the client's own transport takes half as long again.
        self._servers = [
            _Server(
                url,
                AsyncOpenAI(
                    base_url=url,
                    api_key=key or "none",  # what a server without keys ignores
                    max_retries=0,
                    timeout=generator.timeout,
                    http_client=DefaultAioHttpClient(timeout=generator.timeout),
                ),
            )
            for url in generator.base_urls
        ]

    async def close(self) -> None:
        for server in self._servers:
            await server.client.close()

    async def reply(self, request: Request) -> Reply:
        """Send a request until it is answered: the same draw, with longer and longer waits."""
        clock = asyncio.get_running_loop().time
        for tries in count(1):
            now = clock()
            server = min(self._servers, key=lambda s: (s.resting_until > now, s.in_flight))
            try:
                reply = await self._ask(server, request)
            except LostError as lost:
                self.lost[lost.kind] += 1
                server.failures += 1
                server.resting_until = clock() + _backoff(server.failures)
                wait = max(lost.wait, _backoff(tries))
                if tries >= (TRIES if self._answered_by else FIRST_TRIES) or wait > LONGEST_WAIT:
                    slower = ", with a requests_per_minute that it grants"
                    raise InputError(
                        f"{server.url} gave no answer in {tries} tries ({lost}; wait {wait:.0f} s);"
                        " what was answered is in the journal: run the same command again when the "
                        f"server is well{slower if lost.kind == 'status 429' else ''}"
                    ) from lost
                if tries % 5 == 0:
                    log.warning("%s: %s, try %d, the next in %.0f s", server.url, lost, tries, wait)
                await asyncio.sleep(wait)
            else:
                server.failures = 0
                server.resting_until = 0.0
                return reply
        raise AssertionError

    async def _ask(self, server: _Server, request: Request) -> Reply:
        body = self._body(request)
        limit: int = body[self._generator.limit_field]
        expected = estimate_prompt(request.messages) + limit
        await self._requests.take(1)
        await self._tokens.take(expected)
        server.in_flight += 1
        try:
            async with asyncio.timeout(self._generator.timeout):
                # `chat.completions.create` takes twice the time: it makes typed copies of all.
                response = await server.client.post(
                    "/chat/completions", cast_to=httpx2.Response, body=body
                )
            reply = self._read(response.content, request)
        except APIStatusError as error:
            reply = self._refused(server.url, error, request)
        except TimeoutError as error:
            raise LostError("timeout", f"{self._generator.timeout:g} s") from error
        except (APIConnectionError, OSError) as error:
            raise LostError("connection", str(error.__cause__ or error)) from error
        finally:
            server.in_flight -= 1
        self._tokens.give_back(expected - reply.prompt_tokens - reply.tokens)
        return reply

    def _body(self, request: Request) -> dict[str, Any]:
        body: dict[str, Any] = {
            "model": self._generator.model,
            "messages": [{"role": m.role, "content": m.content} for m in request.messages],
            self._generator.limit_field: request.max_tokens + self._generator.thinking_tokens,
            **self._generator.extra_body,
        }
        if request.temperature is not None:
            body["temperature"] = request.temperature
        if self._generator.seeds:
            body["seed"] = request.draw
        return body

    def _read(self, content: bytes, request: Request) -> Reply:
        try:
            body = json.loads(content)
            # Gemini gives no choice at all where its filter stopped the prompt.
            choices: list[Any] = body["choices"] or [{"finish_reason": "content_filter"}]
            choice = choices[0]
            finish = choice["finish_reason"]
            message = choice.get("message") or {}
            text = message.get("content") or message.get("refusal") or ""
            usage = body.get("usage") or {}
            answered_by = str(body.get("model"))
            text.encode()  # half a surrogate pair cannot be stored
        except (ValueError, LookupError, TypeError, AttributeError) as error:
            raise LostError("no completion", str(content[:80])) from error
        if finish in INTERRUPTED:
            raise LostError(f"finish_reason {finish}")
        if answered_by not in self._answered_by:
            self._answered_by.add(answered_by)
            if answered_by != self._generator.model:
                log.info("%s: replies come from %s", self._generator.model, answered_by)
        return make_reply(
            request, text, finish, usage.get("completion_tokens"), usage.get("prompt_tokens")
        )

    def _refused(self, url: str, error: APIStatusError, request: Request) -> Reply:
        """What an error status means: a filter's empty reply, a try that is lost, or the end."""
        status, said = error.status_code, str(error.body)
        if status == 429 and "insufficient_quota" in said:
            problem = f"{url}: no quota is left for the key in {self._generator.key_variable}"
        elif status in _RETRIED or status >= 500:
            raise LostError(f"status {status}", wait=_retry_after(error.response.headers))
        elif status == 400 and _FILTERED.search(said):
            return make_reply(request, "", "content_filter")
        elif status == 400 and _TOO_LONG.search(said):
            return make_reply(request, "", "length")
        elif status in (401, 403) or (status == 400 and _NO_KEY.search(said)):
            variable = self._generator.key_variable
            whose = f"in {variable}" if variable else "(none is given: set key_variable)"
            problem = f"{url} refuses the API key {whose}"
        elif status == 404:
            problem = f"{url} knows no model {self._generator.model}, or the URL is wrong"
        else:
            problem = f"{url} does not take a request for {self._generator.model}"
        said = " ".join(said.split())[:300]
        if self._key:  # some servers repeat it
            said = said.replace(self._key, "***")
        raise InputError(f"{problem} (status {status}: {said})") from error


def _backoff(n: int) -> float:
    """Seconds before the next try after `n` failures: 0.5, 1, 2 ... 60, less up to a half."""
    return min(LONGEST_BACKOFF, 0.25 * 2.0**n) * random.uniform(0.5, 1)


def _retry_after(headers: httpx2.Headers) -> float:
    """The seconds of a `Retry-After`, which may be a number or an HTTP date; 0 without one."""
    given = headers.get("retry-after", "")
    try:
        return max(0.0, float(given))
    except ValueError:
        pass
    try:
        return max(0.0, parsedate_to_datetime(given).timestamp() - time.time())
    except ValueError:
        return 0.0
