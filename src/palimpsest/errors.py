"""The one exception that means: what the user gave is wrong, and here is the fix."""

from collections.abc import Iterable
from difflib import get_close_matches


class InputError(ValueError):
    """A mistake in params, files or arguments; its message is one line that names place and fix."""


def unknown(kind: str, name: str, known: Iterable[str]) -> InputError:
    """The error for a name that is not among `known`, with the nearest known one."""
    names = sorted(known)
    near = get_close_matches(name, names, n=1)
    hint = f"did you mean {near[0]!r}? " if near else ""
    return InputError(f"unknown {kind} {name!r}: {hint}known are {', '.join(names)}")
