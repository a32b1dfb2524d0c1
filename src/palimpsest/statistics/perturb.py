"""Texts with some of their words replaced, as DetectGPT's masking does it (arXiv 2301.11305)."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, Protocol

import numpy as np

from palimpsest.records import Language, Span
from palimpsest.statistics.cache import Cache, code_digest
from palimpsest.statistics.engine import digest

# The authors' settings: gaps of two words with a word between them, in three tenths of the text,
# which their rounding and buffers make about a seventh.
_WORDS, _BUFFER, _SHARE = 2, 1, 0.3

# A copy whose gaps could not be filled is masked anew so many times.
_ATTEMPTS = 10


class Edit(NamedTuple):
    """`new` takes the place of the characters [start, end) of the original."""

    start: int
    end: int
    new: str


@dataclass(frozen=True, slots=True)
class Perturbed:
    """A copy of a text with ordered, disjoint edits."""

    original: str
    edits: tuple[Edit, ...]

    @property
    def text(self) -> str:
        parts, done = [], 0
        for edit in self.edits:
            parts += [self.original[done : edit.start], edit.new]
            done = edit.end
        return "".join((*parts, self.original[done:]))

    def moved(self, span: Span) -> Span:
        """Where a span of the original lies in the copy; an edit that it cuts belongs to it."""
        start, end, shift = span.start, span.end, 0
        for edit in self.edits:
            grown = len(edit.new) - (edit.end - edit.start)
            if edit.end <= span.start:
                start, end = start + grown, end + grown
            elif edit.start < span.end:
                start = min(start, edit.start + shift)
                end = max(span.end, edit.end) + shift + grown
            shift += grown
        return Span(start, end)

    def touches(self, span: Span) -> bool:
        return any(edit.start < span.end and edit.end > span.start for edit in self.edits)


class Filler(Protocol):
    """A model that writes something else into a text's gaps."""

    def fill(
        self, text: str, language: Language, copies: Sequence[Sequence[Span]], seed: int
    ) -> list[list[str] | None]:
        """One fill for each gap of each copy; None for a copy with a gap that was not filled."""
        ...


def gap_count(words: Sequence[Span]) -> int:
    """How many gaps a text gets; none if it has fewer than 14 words."""
    return int(_SHARE * len(words) / (_WORDS + 2 * _BUFFER))


def gaps(words: Sequence[Span], random: np.random.Generator) -> list[Span]:
    """Ordered gaps of two words each, `gap_count` of them."""
    count = gap_count(words)
    free = np.ones(len(words), np.bool_)
    starts: list[int] = []
    while len(starts) < count:
        start = int(random.integers(0, len(words) - _WORDS))
        if free[max(0, start - _BUFFER) : start + _WORDS + _BUFFER].all():
            free[start : start + _WORDS] = False
            starts.append(start)
    return [Span(words[i].start, words[i + _WORDS - 1].end) for i in sorted(starts)]


class Perturber:
    """`count` copies of a text, the same ones for the same text and seed.

    `filler` loads the model, on first need; `identity` is its name and what else decides its fills.
    """

    def __init__(
        self,
        filler: Callable[[], Filler],
        identity: tuple[str, ...],
        count: int,
        seed: int,
        cache: Cache | None,
    ) -> None:
        self._load = filler
        self.count, self.seed, self.cache = count, seed, cache
        self.model = identity[0]
        self.key = json.dumps(
            {
                "code": code_digest("perturb", "fillers", "columns", "reference", "windows"),
                "kind": "perturbed",
                "filler": identity,
                "count": count,
                "seed": seed,
            }
        )

    def perturb(self, text: str, words: Sequence[Span], language: Language) -> list[Perturbed]:
        """The copies that could be filled, in ten attempts; none for a text without gaps."""
        name = digest(f"{language} {text}")
        if self.cache is not None and (known := self.cache.get(self.key, [name])):
            edits = [tuple(Edit(*edit) for edit in copy) for copy in json.loads(known[name])]
        else:
            edits = self._edits(text, words, language)
            if self.cache is not None:
                self.cache.put(self.key, self.model, {name: json.dumps(edits).encode()})
        return [Perturbed(text, copy) for copy in edits]

    @cached_property
    def _filler(self) -> Filler:
        return self._load()

    def _edits(
        self, text: str, words: Sequence[Span], language: Language
    ) -> list[tuple[Edit, ...]]:
        seed = digest(f"{self.seed} {text}")
        random = np.random.default_rng(int.from_bytes(seed, "big"))
        done: list[tuple[Edit, ...]] = []
        for _ in range(_ATTEMPTS):
            copies = [gaps(words, random) for _ in range(self.count - len(done))]
            if not copies or not copies[0]:
                break
            fills = self._filler.fill(text, language, copies, int(random.integers(2**31)))
            done += [
                tuple(Edit(*gap, fill) for gap, fill in zip(copy, filled, strict=True))
                for copy, filled in zip(copies, fills, strict=True)
                if filled is not None
            ]
        return done
