"""Cut a paragraph into sentences whose words are one space apart."""

import re
from functools import cache
from typing import TYPE_CHECKING

from palimpsest.records import Language

if TYPE_CHECKING:
    from nltk.tokenize.punkt import PunktSentenceTokenizer

# Punkt's English parameters were learnt from newspapers, which do not write these. An abbreviation
# may still end a sentence: Punkt then looks at the word that follows.
_SCHOLARLY = frozenset("al approx ca cf e.g eq eqs etc fig figs i.e resp sp spp viz".split())

_END = re.compile(r"[.?!]")
_CHINESE_END = re.compile(r"(?<=[。！？…!?])(?![。！？…!?])[”’」』）》】\"']*")


def sentences(paragraph: str, language: Language) -> list[str]:
    """The sentences of one normalised paragraph; white space within one becomes one space.

    English: NLTK's Punkt. Chinese: a sentence ends after a run of 。！？… (or ! ?) and the quotes
    and brackets that close behind it.
    """
    if language == "en":
        # without an end mark before the last character there is nothing to cut
        found = _punkt().tokenize(paragraph) if _END.search(paragraph[:-1]) else [paragraph]
    else:
        ends = [match.end() for match in _CHINESE_END.finditer(paragraph)]
        found = [paragraph[i:j] for i, j in zip([0, *ends], [*ends, None], strict=True)]
    # A hard-wrapped line, two blanks or a tab give a human sentence away: no rewrite has them.
    folded = (" ".join(sentence.split()) for sentence in found)
    return [sentence for sentence in folded if sentence]


@cache
def _punkt() -> "PunktSentenceTokenizer":
    """NLTK's tokenizer with the parameters that it would download, from an installed package."""
    from nltk.tokenize.punkt import PunktParameters, PunktSentenceTokenizer
    from punkt.data import english

    parameters = PunktParameters()
    parameters.abbrev_types = set(english.ABBREV_TYPES | _SCHOLARLY)
    parameters.collocations = set(english.COLLOCATIONS)
    parameters.sent_starters = set(english.SENT_STARTERS)
    parameters.ortho_context.update(english.ORTHO_CONTEXT)
    return PunktSentenceTokenizer(parameters)
