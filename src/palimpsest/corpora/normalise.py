"""Bring a human text to one form: line ends, blank lines and outer white space."""

import re

_LINE_END = re.compile(r"\r\n|[\r\v\f\x1c-\x1e\x85\u2028]")
_BLANK_LINES = re.compile(r"\n\s*\n")


def paragraphs(text: str) -> list[str]:
    """The paragraphs of a text, which blank lines part; none is empty.

    Line ends become line feeds, white space around a paragraph goes, that within stays.
    """
    lines = _LINE_END.sub("\n", text).replace("\u2029", "\n\n")
    return [stripped for part in _BLANK_LINES.split(lines) if (stripped := part.strip())]
