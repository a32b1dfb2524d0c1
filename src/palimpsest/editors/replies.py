"""What a chat model sent, as the reply that is journalled and judged."""

import logging
import re
from collections.abc import Sequence

from palimpsest.trajectories.requests import Message, Reply, Request

log = logging.getLogger(__name__)

# DeepSeek ran out of capacity, vLLM was stopped, OpenRouter's upstream failed: no answer at all.
INTERRUPTED = {"insufficient_system_resource", "abort", "error"}
_WITHHELD = {"content_filter", "tool_calls", "function_call", "refusal"}
_THINKING = re.compile(r"\s*(?:<think>)?.*?</think>", re.DOTALL)


def make_reply(
    request: Request,
    text: str,
    finish: str | None,
    tokens: int | None = None,
    prompt_tokens: int | None = None,
) -> Reply:
    """The reply by a chat completion's `finish_reason`, without a leading block of thought.

    Only `stop` and `length` leave a text: what a filter cut or a tool was to get is an empty reply,
    so that validation rejects it. Tokens that no server counted are estimated from the text.
    """
    if tokens is None:
        tokens = estimate_tokens(text)
    if prompt_tokens is None:
        prompt_tokens = estimate_prompt(request.messages)
    if finish == "length":
        return Reply(without_thinking(text, request), "length", tokens, prompt_tokens)
    if finish != "stop":
        # Gemini: "content_filter: PROHIBITED_CONTENT"
        if str(finish).partition(":")[0] not in _WITHHELD:
            log.warning("finish_reason %r is unknown: such a reply counts as empty", finish)
        text = ""
    return Reply(without_thinking(text, request), "stop", tokens, prompt_tokens)


def without_thinking(text: str, request: Request) -> str:
    """The text after `</think>`; an unclosed block stays, for validation to reject.

    Some chat templates open the block in the prompt, so that the reply holds only its end. Where
    the sentence or its paragraph speaks of `</think>` itself, nothing is taken off.
    """
    if "</think>" not in text or any("</think>" in m.content for m in request.messages):
        return text
    return _THINKING.sub("", text, count=1).lstrip()


def estimate_tokens(text: str) -> int:
    """Four bytes of UTF-8 a token: about right for English, generous for Chinese."""
    return -(-len(text.encode()) // 4)


def estimate_prompt(messages: Sequence[Message]) -> int:
    """As `estimate_tokens`, with four tokens a message for its role and markers."""
    return sum(4 + estimate_tokens(message.content) for message in messages)
