"""A request's messages as a model's chat template takes them."""

import re
from collections.abc import Sequence
from typing import Any

from palimpsest.trajectories.requests import Message


def markers_of(tokenizer: Any) -> re.Pattern[str]:
    """The special tokens with which a model's chats are written."""
    added = tokenizer.added_tokens_decoder.values()
    special = [re.escape(token.content) for token in added if token.special]
    return re.compile("|".join(special) or r"(?!)")


def chat_of(messages: Sequence[Message], markers: re.Pattern[str]) -> list[dict[str, str]]:
    """The messages, in which markers of a document are broken up: text like any other."""
    return [
        {
            "role": message.role,
            "content": markers.sub(lambda found: f"{found[0][0]} {found[0][1:]}", message.content),
        }
        for message in messages
    ]
