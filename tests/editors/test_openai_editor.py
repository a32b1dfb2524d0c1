import asyncio
import json
import logging
import socket
import time
from collections import Counter
from collections.abc import Sequence
from email.utils import formatdate
from typing import Any

import pytest

from palimpsest.editors import completions
from palimpsest.editors.completions import Completions
from palimpsest.editors.openai_editor import OpenAIEditor
from palimpsest.errors import InputError
from palimpsest.trajectories.requests import Reply, Request
from tests.editors.generating import editor, generator, pulling, request
from tests.editors.http_stub import TRANSPORT, Answer, Stub, completion, error


def serve(asked: OpenAIEditor, requests: Sequence[Request]) -> dict[Request, Reply]:
    return {r: reply for batch in asked.serve(pulling(requests)) for r, reply in batch}


def echo(body: dict[str, Any]) -> Answer:
    return completion("re: " + body["messages"][-1]["content"])


def test_every_request_gets_its_own_reply() -> None:
    requests = [request(f"r{i}") for i in range(150)]
    with Stub(answer=echo) as stub:
        replies = serve(editor(stub.url), requests)
    assert {r: reply.text for r, reply in replies.items()} == {
        r: "re: " + r.messages[0].content for r in requests
    }
    assert set(replies.values()) >= {Reply("re: r0", "stop", 20, 300)}


def test_the_body_holds_what_the_generator_says_and_nothing_else() -> None:
    extra = {"reasoning_effort": "none", "chat_template_kwargs": {"enable_thinking": False}}
    given = editor(
        "http://unused", extra_body=extra, limit_field="max_completion_tokens", thinking_tokens=30
    )
    with Stub(answer=echo) as stub:
        serve(editor(stub.url, seeds=False), [request("a", temperature=None)])
        given._generator.base_urls = [stub.url]
        serve(given, [request("b", draw=3)])
    plain = {"model": "stub", "messages": [{"role": "user", "content": "a"}], "max_tokens": 20}
    assert stub.bodies[0] == plain
    assert stub.bodies[1] == {
        "model": "stub",
        "messages": [{"role": "user", "content": "b"}],
        "max_completion_tokens": 50,
        "temperature": 0.4,
        "seed": 3,
        **extra,
    }
    assert stub.keys == {"secret"}
    assert given.decoding["extra_body"] == extra
    assert "secret" not in json.dumps(given.decoding)
    assert stub.url not in json.dumps(given.decoding)


def test_no_more_requests_are_in_flight_than_concurrency_allows() -> None:
    with Stub(answer=echo, latency=0.02) as stub:
        begin = time.perf_counter()
        serve(editor(stub.url, concurrency=4), [request(str(i)) for i in range(40)])
        assert time.perf_counter() - begin > 40 / 4 * 0.02


def test_nothing_is_sent_where_nothing_is_asked() -> None:
    assert serve(editor("http://127.0.0.1:9/v1"), []) == {}


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(completions, "LONGEST_BACKOFF", 0.01)


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("fault", TRANSPORT)
def test_a_lost_answer_is_asked_for_again_as_the_same_draw(fault: str) -> None:
    with Stub([fault], share=0.4, answer=echo, hold=2.0) as stub:
        requests = [request(f"r{i}") for i in range(12)]
        replies = serve(editor(stub.url, timeout=1.0), requests)
    assert {reply.text for reply in replies.values()} == {f"re: r{i}" for i in range(12)}
    assert stub.met[fault] > 1
    assert len(stub.bodies) == 12 + stub.met[fault]


@pytest.mark.parametrize("form", ["seconds", "date"])
def test_retry_after_is_honoured(form: str) -> None:
    times: list[float] = []

    def answer(body: dict[str, Any]) -> Answer:
        times.append(time.time())
        wait = "2" if form == "seconds" else formatdate(times[0] + 3, usegmt=True)
        return error(429, "slow down", {"Retry-After": wait}) if len(times) == 1 else echo(body)

    with Stub(answer=answer) as stub:
        serve(editor(stub.url), [request()])
    assert 1.9 < times[1] - times[0] < 4


def test_a_wait_beyond_an_hour_is_an_error_not_a_day_asleep() -> None:
    with (
        Stub(answer=lambda _: error(429, "tomorrow", {"Retry-After": "86400"})) as stub,
        pytest.raises(InputError, match="again when the server is well, with a requests_per_min"),
    ):
        serve(editor(stub.url), [request()])


@pytest.mark.parametrize(
    ("status", "code", "message"),
    [
        (401, "", r"refuses the API key in STUB_KEY \(status 401: .*no \*\*\*.*\)"),
        (403, "", "refuses the API key in STUB_KEY"),
        (404, "", "http.* knows no model stub, or the URL is wrong"),
        (400, "", "does not take a request for stub .*status 400.*no "),
        (402, "", "does not take a request for stub .*status 402"),
        (400, "API_KEY_INVALID", "refuses the API key in STUB_KEY"),
        (429, "insufficient_quota", "no quota is left for the key in STUB_KEY"),
    ],
)
def test_what_no_retry_mends_stops_at_once(status: int, code: str, message: str) -> None:
    requests = [request(str(i)) for i in range(300)]
    with (
        Stub(answer=lambda _: error(status, "no secret", code=code)) as stub,
        pytest.raises(InputError, match=message) as caught,
    ):
        serve(editor(stub.url, key_variable="STUB_KEY", timeout=30), requests)
    assert len(stub.bodies) <= 64
    assert "secret" not in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("content_filter", "The response was filtered."),
        ("invalid_prompt", "Your prompt was flagged as potentially violating our usage policy."),
        ("", "Output blocked by content filtering policy"),
        ("data_inspection_failed", "Input text data is not proper."),
    ],
)
def test_a_prompt_that_a_filter_refuses_has_an_empty_reply_and_ends_nothing(
    code: str, said: str
) -> None:
    def answer(body: dict[str, Any]) -> Answer:
        bad = body["messages"][0]["content"] == "bad"
        return error(400, said, code=code) if bad else echo(body)

    with Stub(answer=answer) as stub:
        replies = serve(editor(stub.url), [request("bad"), request("good")])
    assert [reply.text for reply in replies.values()].count("") == 1
    assert replies[request("bad")].finish == "stop"
    assert replies[request("good")].text == "re: good"


def test_replies_that_come_beside_a_failure_are_handed_on_before_it() -> None:
    def answer(body: dict[str, Any]) -> Answer:
        return error(400, "bad") if body["messages"][0]["content"] == "bad" else echo(body)

    requests = [request("bad"), *(request(f"r{i}") for i in range(20))]
    replies: dict[Request, Reply] = {}

    def collect(url: str) -> None:
        for batch in editor(url).serve(pulling(requests)):
            replies.update(batch)

    with Stub(answer=answer, latency=0.1) as stub, pytest.raises(InputError, match="400"):
        collect(stub.url)
    assert set(replies) == set(requests[1:])


@pytest.mark.usefixtures("impatient")
def test_a_url_that_nobody_answers_at_is_given_up_soon() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{unused.getsockname()[1]}/v1"
        with pytest.raises(InputError, match=rf"{url} gave no answer in 5 tries \(connection"):
            serve(editor(url), [request()])


@pytest.mark.usefixtures("impatient")
def test_a_request_that_fails_for_ever_ends_the_run_though_others_are_answered() -> None:
    def answer(body: dict[str, Any]) -> Answer:
        return error(500, "no") if body["messages"][0]["content"] == "bad" else echo(body)

    with Stub(answer=answer) as stub, pytest.raises(InputError, match="in 20 tries"):
        serve(editor(stub.url), [request("bad"), *(request(f"r{i}") for i in range(9))])


def test_servers_share_the_load_and_a_dead_one_gets_little_of_it() -> None:
    requests = [request(f"r{i}") for i in range(200)]
    with Stub(answer=echo, latency=0.02) as one, Stub(answer=echo, latency=0.02) as two:
        serve(editor(one.url, two.url, concurrency=16), requests)
        assert min(len(one.bodies), len(two.bodies)) > 60
        dead = Stub(answer=lambda _: error(503, "down"), latency=0.02)
        with dead:
            replies = serve(editor(one.url, dead.url, concurrency=16), requests)
    assert len(replies) == 200
    assert len(dead.bodies) < 60


@pytest.mark.parametrize(
    "pace", [{"requests_per_minute": 1200}, {"tokens_per_minute": 1200 * 320}], ids=str
)
def test_a_pace_in_requests_or_tokens_is_kept(pace: dict[str, int]) -> None:
    with Stub(answer=echo) as stub:  # which says that each request cost 320 tokens
        begin = time.perf_counter()
        serve(editor(stub.url, concurrency=1, **pace), [request(str(i)) for i in range(21)])
        assert 1.0 <= time.perf_counter() - begin < 3


def test_closing_the_generator_cancels_what_is_in_flight() -> None:
    with Stub(answer=echo, latency=0.01) as stub:
        replies = editor(stub.url, concurrency=2).serve(
            pulling([request(str(i)) for i in range(9)])
        )
        next(replies)
        replies.close()  # type: ignore[attr-defined]
        time.sleep(0.1)
        assert len(stub.bodies) < 6


def test_where_another_model_answers_than_was_asked_the_log_says_so_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with Stub(answer=echo) as stub, caplog.at_level(logging.INFO):
        serve(editor(stub.url), [request(str(i)) for i in range(5)])
    assert caplog.text.count("stub: replies come from stub-2026") == 1
    assert "secret" not in caplog.text


def test_the_waits_grow_and_are_never_equal() -> None:
    waits = [completions._backoff(n) for n in range(1, 12)]
    assert len(set(waits)) == len(waits)
    assert waits[0] <= 0.5
    assert 30 <= waits[-1] <= 60


@pytest.mark.usefixtures("impatient")
def test_the_lost_tries_are_counted_by_kind() -> None:
    async def ask(url: str) -> Counter[str]:
        servers = Completions(generator(url), None)
        await servers.reply(request())
        await servers.close()
        return servers.lost

    answers = iter([error(500, "no"), error(429, "no"), completion(None, "abort")])
    with Stub(answer=lambda body: next(answers, echo(body))) as stub:
        lost = asyncio.run(ask(stub.url))
    assert lost == {"status 500": 1, "status 429": 1, "finish_reason abort": 1}
    assert stub.keys == {"none"}
