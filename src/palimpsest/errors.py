"""The one exception that means: what the user gave is wrong, and here is the fix."""

from collections.abc import Iterable
from difflib import get_close_matches


class InputError(ValueError):
    """A mistake in params, files or arguments; its message is one line that names place and fix."""


def unknown(kind: str, name: str, known: Iterable[str]) -> InputError:
    """The error for a name that is not among `known`, with the nearest known one."""
    names = sorted(known)
    return InputError(f"unknown {kind} {name!r}: {hint(name, names)}known are {', '.join(names)}")


def hint(name: str, known: Iterable[str]) -> str:
    """The question whether the nearest known name was meant, and a blank; empty if none is near."""
    near = get_close_matches(name, list(known), n=1)
    return f"did you mean {near[0]!r}? " if near else ""
