"""Is a reply one sentence that can stand for the target? Every objection has a name.

Hard objections make a reply unusable; soft ones make it second choice. The checks are those that
the paper asks for in Section 3.2 and Appendix J, each spelled out.
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import lru_cache

from palimpsest.corpora.segment import sentences
from palimpsest.records import Language
from palimpsest.trajectories.requests import Reply

COPIED_WORDS = 8  # so many words in a row of a neighbour's are no coincidence

_QUOTES = "\"'“”‘’«»„`"
_PREAMBLE = re.compile(
    r"""(?: here(?:'s|’s|\s+is|\s+are)\b
          | (?:sure|certainly|of\ course|okay|absolutely)\s*[,!.:]
          | (?:the\s+|my\s+)?(?:re)?(?:written|vised|phrased|worded|paraphrased|polished|edited
              |improved|compressed|shortened|expanded|styled)\b[^.:]{0,40}:
          | (?:result|output|answer|response|rewrite|sentence|target\ sentence|paraphrase)\s*:
        )""",
    re.IGNORECASE | re.VERBOSE,
)
# Searched for in folded text: where each branch starts with a small letter or a sign, and no flag
# says to ignore case, the search runs over other characters three times faster.
_SUFFIX = re.compile(
    r"""(?: [(\[]\s*(?:note|rewritten|revised|paraphrased|polished|compressed|expanded|word\ count
              |\d+\ words)\b[^)\]]*[)\]]\W*$
          | i(?<=\bi)\ hope\ this\ helps\b.*$
          | let(?<=\blet)\ me\ know\ if\b.*$
          | note(?<=\bnote):\ .*$
        )""",
    re.VERBOSE,
)
_REFUSAL = re.compile(
    r"""(?: i(?<=\bi)(?:
                \s*(?:'m|’m|\s+am)\s+(?:sorry|unable|not\ able)
              | \s+(?:cannot|can't|can’t|won't)\s+
                (?:help|assist|rewrite|provide|comply|fulfill|do\ that)
            )
          | as(?<=\bas)\ (?:an\ ai\b|a\ language\ model)
        )""",
    re.VERBOSE,
)
_OPENING_MARKER = re.compile(r"#+\s|[-*•]\s|\d+[.)]\s|[{\[]")
_MARKER = re.compile(r"</?\w[^<>\n]{0,40}>|<\|[^|]{1,40}\|>|```|\*\*")
_OPENS = re.compile(rf"(?:^|[:{_QUOTES}])\W*$")
_NUMBER = re.compile(r"\d+(?:[.,:]\d+)*")
_WORD = re.compile(r"[^\W\d_]+(?:['’-][^\W\d_]+)*")
_ENDINGS = ".!?。！？…"
_FUNCTION_WORDS = frozenset(
    "a an and are as at be been but by for from had has have he her his i if in is it its more not "
    "of on or our she so than that the their them there they this to was we were what when which "
    "who will with would you your".split()
)


# A reply that is kept is the next version's sentence, and all of its paragraph's neighbour.
_remembered = lru_cache(maxsize=2**12)


@dataclass(frozen=True, slots=True)
class Target:
    """The sentence that is revised, and what its reply is held against.

    `neighbours` are the other sentences of its paragraph, `examples` the prompt's own sentences;
    `length` is the least and the most per cent of the sentence's words.
    """

    sentence: str
    neighbours: tuple[str, ...]
    examples: tuple[str, ...]
    length: tuple[int, int]
    language: Language
    is_ai: bool


@dataclass(frozen=True, slots=True)
class Verdict:
    """The first hard objection, else all soft ones."""

    hard: str | None = None
    soft: tuple[str, ...] = ()


def judge(reply: Reply, target: Target) -> Verdict:
    """Hold a reply against its target.

    An AI sentence may come back unchanged. A human one may not, nor with other white space only: it
    would then carry the label of an edit that did not happen.
    """
    text = reply.text.strip()
    if hard := _hard(text, reply, target):
        return Verdict(hard=hard)
    if text.split() == target.sentence.split() and not target.is_ai:
        return Verdict(hard="identical")
    return Verdict(soft=_soft(text, target))


def length_window(n_words: int, length: tuple[int, int]) -> tuple[int, int]:
    """The least and the most words of a reply: the lower bound floored, the upper one ceiled."""
    return max(1, n_words * length[0] // 100), max(1, -(-n_words * length[1] // 100))


def _hard(text: str, reply: Reply, target: Target) -> str | None:
    source = target.sentence
    folded, folded_source = text.casefold(), source.casefold()
    if not text:
        return "no room" if reply.finish == "length" else "empty"
    if _new(_OPENING_MARKER.match, text, source) or _new(_MARKER.search, text, source):
        return "marker"
    if reply.finish == "length":
        return "cut off"
    if _new(_REFUSAL.search, folded, folded_source):
        return "refusal"
    if _new(_PREAMBLE.match, text, source):
        return "preamble"
    if _new(_SUFFIX.search, folded, folded_source):
        return "suffix"
    if len(text.splitlines()) > 1:
        return "line break"
    if _quoted(text) and not _quoted(source):
        return "added quotes"
    if _script(text) != _script(source) or (target.language == "en" and _foreign(text, source)):
        return "other language"
    if _n_sentences(text, target.language) > _n_sentences(source, target.language):
        return "more than one sentence"
    new = _runs(text) - _runs(source)
    if _share(new, target.neighbours):
        return "neighbouring text"
    if _share(new, target.examples):
        return "example text"
    return None


def _soft(text: str, target: Target) -> tuple[str, ...]:
    source = target.sentence
    misses = []
    n_source, n_reply = _units(source, target.language), _units(text, target.language)
    low, high = length_window(n_source, target.length)
    if not low <= n_reply <= high and (low, high) != (n_source, n_source):
        misses.append("too short" if n_reply < low else "too long")
    numbers, new_numbers = _NUMBER.findall(source), _NUMBER.findall(text)
    if numbers != new_numbers:
        if Counter(numbers) - Counter(new_numbers):
            misses.append("lost number")
        if Counter(new_numbers) - Counter(numbers):
            misses.append("new number")
    if target.language == "en":
        if _names(source) - _words(text):
            misses.append("lost name")
        if _names(text) - _words(source):
            misses.append("new name")
    if source[-1] in _ENDINGS and not text.rstrip(_QUOTES + ")]").endswith(tuple(_ENDINGS)):
        misses.append("lost end mark")
    return tuple(misses)


def _new(find: Callable[[str], re.Match[str] | None], text: str, source: str) -> bool:
    return find(text) is not None and find(source) is None


def _quoted(text: str) -> bool:
    return len(text) > 1 and text[0] in _QUOTES and text.rstrip(_ENDINGS)[-1:] in tuple(_QUOTES)


@_remembered
def _script(text: str) -> str:
    """The writing system of most letters, as Unicode names it: LATIN, CJK, CYRILLIC."""
    if text.isascii():
        return "LATIN" if any(map(str.isalpha, text)) else ""
    letters = Counter(
        unicodedata.name(c, "UNKNOWN").split()[0].split("-")[0] for c in text if c.isalpha()
    )
    return letters.most_common(1)[0][0] if letters else ""


@_remembered
def _n_sentences(text: str, language: Language) -> int:
    return len(sentences(text, language))


def _foreign(text: str, source: str) -> bool:
    """No English function word in a long reply to a sentence that has some."""
    words = _words(text)
    return (
        len(words) >= 8
        and words.isdisjoint(_FUNCTION_WORDS)
        and not _words(source).isdisjoint(_FUNCTION_WORDS)
    )


def _share(runs: frozenset[str], texts: Iterable[str]) -> bool:
    """Is one of these runs of words in one of the texts?"""
    return bool(runs) and any(not runs.isdisjoint(_runs(text)) for text in texts)


@_remembered
def _folded(text: str) -> list[str]:
    """The text's words in one case; never changed by those who share them."""
    return _WORD.findall(text.casefold())


@_remembered
def _runs(text: str) -> frozenset[str]:
    words = _folded(text)
    return frozenset(map(" ".join, zip(*(words[i:] for i in range(COPIED_WORDS)), strict=False)))


def _units(text: str, language: Language) -> int:
    """Words, or characters where a language writes no blanks."""
    return len(text.split()) if language == "en" else sum(not c.isspace() for c in text)


@_remembered
def _words(text: str) -> frozenset[str]:
    words = _folded(text)
    if text.isascii() and "'" not in text:  # no word has an end to cut off
        return frozenset(words)
    return frozenset(words).union(map(_bare, words))


@_remembered
def _names(text: str) -> frozenset[str]:
    """Capitalised words that do not open the sentence or a quotation, in lower case.

    Nothing in a heading, where most words are capitalised, is a name for that.
    """
    if text[1:].islower():
        return frozenset()
    found = list(_WORD.finditer(text))
    capital = [m for m in found if m[0][0].isupper()]
    if not found or len(capital) > len(found) / 2:
        return frozenset()
    return frozenset(
        _bare(m[0]).casefold()
        for m in capital
        if _bare(m[0]) not in ("I", "A") and not _OPENS.search(text[: m.start()])
    )


def _bare(word: str) -> str:
    return word.partition("'")[0].partition("’")[0]
