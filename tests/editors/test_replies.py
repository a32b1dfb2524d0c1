import pytest

from palimpsest.editors.replies import estimate_prompt, estimate_tokens, make_reply
from palimpsest.trajectories.requests import Message, Reply, Request
from palimpsest.trajectories.validation import Target, judge

SENTENCE = "The ferry was late because of the thick fog."
TARGET = Target(SENTENCE, (), (), (85, 115), "en", is_ai=False)


def request(content: str = SENTENCE) -> Request:
    return Request((Message("user", content),), None, 40, 0)


@pytest.mark.parametrize(
    ("text", "finish", "expected"),
    [
        ("A line.", "stop", Reply("A line.", "stop", 3, 7)),
        ("A li", "length", Reply("A li", "length", 3, 7)),
        ("A li", "content_filter", Reply("", "stop", 3, 7)),
        ("", "content_filter: PROHIBITED_CONTENT", Reply("", "stop", 3, 7)),
        ("{}", "tool_calls", Reply("", "stop", 3, 7)),
        ("A line.", None, Reply("", "stop", 3, 7)),
    ],
)
def test_only_a_reply_that_ended_by_itself_or_at_the_limit_has_a_text(
    text: str, finish: str | None, expected: Reply
) -> None:
    assert make_reply(request(), text, finish, 3, 7) == expected


def test_an_unknown_finish_reason_is_said(caplog: pytest.LogCaptureFixture) -> None:
    make_reply(request(), "A line.", "eos", 3, 7)
    assert "finish_reason 'eos' is unknown" in caplog.text
    caplog.clear()
    make_reply(request(), "", "content_filter", 3, 7)
    assert not caplog.text


@pytest.mark.parametrize(
    "begin", ["<think>\nLate?\n</think>\n\n", "Late?</think>", "<think></think> "]
)
def test_a_thought_before_the_answer_is_taken_off(begin: str) -> None:
    answer = "Thick fog made the ferry late."
    assert make_reply(request(), begin + answer, "stop").text == answer


def test_an_unclosed_thought_stays_for_validation_to_reject() -> None:
    reply = make_reply(request(), "<think>\nThe ferry", "length")
    assert judge(reply, TARGET).hard == "marker"


def test_a_text_that_speaks_of_thoughts_itself_loses_nothing() -> None:
    reply = make_reply(request("The tag </think> ends it."), "It ends at </think> now.", "stop")
    assert reply.text == "It ends at </think> now."


@pytest.mark.parametrize(
    ("text", "finish", "objection"),
    [
        ("I'm sorry, but I can't help with that.", "stop", "refusal"),
        ("The ferry", "content_filter", "empty"),
        ("The ferry was", "length", "cut off"),
    ],
)
def test_validation_names_what_a_model_withheld(text: str, finish: str, objection: str) -> None:
    assert judge(make_reply(request(), text, finish), TARGET).hard == objection


def test_tokens_that_no_server_counted_are_estimated() -> None:
    reply = make_reply(request(), SENTENCE, "stop")
    assert reply.tokens == estimate_tokens(SENTENCE) == 11
    assert reply.prompt_tokens == estimate_prompt(request().messages) == 15
    assert estimate_tokens("浓雾使渡轮晚点") == 6
