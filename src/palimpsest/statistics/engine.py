"""Statistics of texts, each text read once: answered by the cache, or by models loaded on need."""

import hashlib
import json
import struct
from collections.abc import Generator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from palimpsest.models import exact_revision
from palimpsest.statistics.cache import Cache, code_digest
from palimpsest.statistics.tokens import Read

if TYPE_CHECKING:
    from palimpsest.statistics.passes import Pass
    from palimpsest.statistics.reference import Reference

# Texts that are read, and kept, together: what a killed run loses at most, and what memory holds.
# Fewer with more than 100 draws for each token.
SHARD = 64

_HEADER = struct.Struct("<IId")


@dataclass(frozen=True, slots=True)
class Reading:
    """Which models read, and how; all of it but the device decides the numbers.

    `models` are (name, revision), the scoring model last; `draws` and `seed` are for draws alone.
    """

    kind: Literal["single", "pair", "draws"]
    models: tuple[tuple[str, str | None], ...]
    max_tokens: int
    truncate: bool
    device: str
    dtype: str
    draws: int = 0
    seed: int = 0


class Engine:
    """Without a cache, every text is read anew."""

    def __init__(self, reading: Reading, cache: Cache | None) -> None:
        self.reading = reading
        self.cache = cache

    def read(self, texts: Sequence[str]) -> Generator[Read]:
        """What the pass keeps of each text, in the texts' order, a shard of them at a time.

        A shard is in the cache before its first text is given out, so that a killed run resumes.

        Raises:
            InputError: a model that cannot be loaded, or `max_tokens` that does not fit it.
        """
        size = max(1, SHARD // max(1, self.reading.draws // 100))
        for start in range(0, len(texts), size):
            shard = texts[start : start + size]
            digests = [digest(text) for text in shard]
            known = self._known(digests)
            missing = {d: t for d, t in zip(digests, shard, strict=True) if d not in known}
            known |= self._compute(missing)
            yield from (known[d] for d in digests)

    @cached_property
    def reference(self) -> "Reference":
        """The scoring model, loaded on first use."""
        return self._references[-1]

    @cached_property
    def key(self) -> str:
        """All that decides the numbers, as JSON."""
        reading = self.reading
        return json.dumps(
            {
                "code": code_digest(
                    "columns", "engine", "passes", "reference", "tokens", "windows"
                ),
                "kind": reading.kind,
                "models": self._pinned,
                "max_tokens": reading.max_tokens,
                "truncate": reading.truncate,
                "dtype": reading.dtype,
                "draws": reading.draws,
                "seed": reading.seed,
            }
        )

    @property
    def model(self) -> str:
        """The models' names, as `palimpsest cache` shows them."""
        return " + ".join(dict.fromkeys(name for name, _ in self.reading.models))

    def _known(self, digests: Sequence[bytes]) -> dict[bytes, Read]:
        if self.cache is None:
            return {}
        return {d: _unpacked(value) for d, value in self.cache.get(self.key, digests).items()}

    def _compute(self, texts: dict[bytes, str]) -> dict[bytes, Read]:
        if not texts:
            return {}
        from palimpsest.statistics.passes import read_texts

        reading = self.reading
        found = read_texts(
            self._pass,
            list(texts.values()),
            max_tokens=reading.max_tokens,
            truncate=reading.truncate,
        )
        read = dict(zip(texts, found, strict=True))
        if self.cache is not None:
            self.cache.put(self.key, self.model, {d: _packed(r) for d, r in read.items()})
        return read

    @cached_property
    def _pinned(self) -> tuple[tuple[str, str], ...]:
        from palimpsest.statistics.reference import split_temperature

        return tuple(
            (name, exact_revision(split_temperature(name)[0], revision))
            for name, revision in self.reading.models
        )

    @cached_property
    def _references(self) -> "list[Reference]":
        from palimpsest.statistics.reference import Reference, split_temperature

        loaded: dict[tuple[str, str], Reference] = {}
        references = []
        for name, revision in self._pinned:
            own, temperature = split_temperature(name)
            if (own, revision) not in loaded:
                device, dtype = self.reading.device, self.reading.dtype
                loaded[own, revision] = Reference.load(own, revision, device, dtype)
            reference = loaded[own, revision]
            references.append(
                reference.at_temperature(temperature) if temperature != 1 else reference
            )
        return references

    @cached_property
    def _pass(self) -> "Pass":
        from palimpsest.statistics.passes import DrawsPass, PairPass, SinglePass

        match self.reading.kind:
            case "single":
                return SinglePass(*self._references)
            case "pair":
                return PairPass(*self._references)
            case "draws":
                sampling, scoring = self._references
                return DrawsPass(sampling, scoring, self.reading.draws, self.reading.seed)


def digest(text: str) -> bytes:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()


def _packed(read: Read) -> bytes:
    header = _HEADER.pack(read.rows.shape[0], len(read.char_start), read.seen)
    return b"".join((header, *(x.tobytes() for x in (read.char_start, read.char_end, read.rows))))


def _unpacked(value: bytes) -> Read:
    columns, count, seen = _HEADER.unpack_from(value)

    def array(dtype: Any, start: int, length: int = -1) -> np.ndarray:
        return np.frombuffer(value, dtype, length, offset=_HEADER.size + 4 * start)

    rows = array(np.float32, 2 * count).reshape(columns, -1)
    return Read(rows, array(np.int32, 0, count), array(np.int32, count, count), seen)
