"""Turn a source of human texts into documents, with a reason for every one that is left out."""

import hashlib
import logging
from bisect import insort
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from palimpsest.corpora.normalise import paragraphs
from palimpsest.corpora.readers import Raw, read_source
from palimpsest.corpora.sampling import passage, quotas, rank
from palimpsest.corpora.segment import sentences
from palimpsest.errors import InputError
from palimpsest.params import Corpus
from palimpsest.records import Document, Language, Sentence

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Rejection:
    doc_id: str
    domain: str
    reason: str
    place: str


@dataclass(frozen=True, slots=True)
class Count:
    """What became of a domain's rows: read = kept + rejected + not_sampled."""

    read: int
    kept: int
    rejected: int
    not_sampled: int


@dataclass(frozen=True, slots=True)
class Built:
    """Documents and rejections, both by domain and id, and the counts of each domain."""

    documents: list[Document]
    rejections: list[Rejection]
    counts: dict[str, Count]


def build_documents(corpus: Corpus) -> Built:
    """Read, normalise, segment, filter and sample the documents of `corpus.source`.

    The source is read twice, so that only ids and the chosen documents are held in memory. A
    domain's documents are looked at in the order of `sampling.rank` until `documents_per_domain` of
    them are accepted; the rest is neither segmented nor rejected.

    Raises:
        InputError: bad input (see `read_source`), an id that two domains share, no document at all.
    """
    survey = _survey(corpus)
    for domain, count in survey.elsewhere.items():
        log.warning(
            "%s: %d rows name another domain in their column 'domain'; in a folder the file's name "
            "counts, and the column where corpus.source is that one file", domain, count,
        )  # fmt: skip
    samples: dict[str, _Sample] = {
        domain: _Sample(corpus.documents_per_domain) for domain in sorted(survey.read)
    }
    for raw in read_source(corpus):
        doc_id = _qualified(raw, corpus)
        usable = survey.first.get(doc_id) == (raw.domain, raw.place)
        if usable and samples[raw.domain].wants(rank(doc_id)):
            group = survey.group[_digest(raw.text)]
            samples[raw.domain].add(rank(doc_id), _document(raw, doc_id, group, corpus))
    kept = {domain: sample.documents for domain, sample in samples.items()}
    rejections = survey.rejections + [r for sample in samples.values() for r in sample.rejections]
    rejections.sort(key=lambda r: (r.domain, r.doc_id, r.place))
    if not any(kept.values()):
        raise _nothing_left(corpus, survey.read, rejections)
    _warn_of_few(kept, corpus)
    if corpus.limit is not None:
        shares = quotas(
            {domain: len(documents) for domain, documents in kept.items()}, corpus.limit
        )
        kept = {domain: documents[: shares[domain]] for domain, documents in kept.items()}
    rejected = Counter(rejection.domain for rejection in rejections)
    counts = {
        domain: Count(read, len(kept[domain]), rejected[domain],
                      read - len(kept[domain]) - rejected[domain])
        for domain, read in sorted(survey.read.items())
    }  # fmt: skip
    documents = [d for domain in kept for d in sorted(kept[domain], key=lambda d: d.doc_id)]
    return Built(documents, rejections, counts)


@dataclass(slots=True)
class _Survey:
    """What the first reading finds.

    `first` gives domain and place of the row that an id stands for. `group` names the texts that
    are equal but for white space, in all domains, by the smallest of their ids. `elsewhere` counts
    the rows whose column `domain` says other than their file's name.
    """

    read: Counter[str] = field(default_factory=Counter)
    first: dict[str, tuple[str, str]] = field(default_factory=dict)
    group: dict[bytes, str] = field(default_factory=dict)
    elsewhere: Counter[str] = field(default_factory=Counter)
    rejections: list[Rejection] = field(default_factory=list)


def _survey(corpus: Corpus) -> _Survey:
    found = _Survey()
    for raw in read_source(corpus):
        found.read[raw.domain] += 1
        if raw.ignored not in (None, "", raw.domain):
            found.elsewhere[raw.domain] += 1
        doc_id = _qualified(raw, corpus)
        domain, place = found.first.get(doc_id, (raw.domain, None))
        if domain != raw.domain:
            raise InputError(
                f"{place} and {raw.place} have the same id {doc_id!r}: ids must differ between "
                f"domains; `-S corpus.qualify_ids=true` puts the domain before each id"
            )
        if reason := _unusable(raw, repeated=place is not None):
            printable = doc_id.encode(errors="replace").decode()
            found.rejections.append(Rejection(printable, raw.domain, reason, raw.place))
            continue
        found.first[doc_id] = (raw.domain, raw.place)
        digest = _digest(raw.text)
        found.group[digest] = min(doc_id, found.group.get(digest, doc_id))
    return found


@dataclass(slots=True)
class _Sample:
    """The first `size` accepted documents in the order of `rank`, whatever order they come in."""

    size: int | None
    accepted: list[tuple[str, Document]] = field(default_factory=list)
    refused: list[tuple[str, Rejection]] = field(default_factory=list)

    def wants(self, order: str) -> bool:
        return self.size is None or len(self.accepted) < self.size or order < self.accepted[-1][0]

    def add(self, order: str, result: Document | Rejection) -> None:
        if isinstance(result, Rejection):
            self.refused.append((order, result))
        else:
            insort(self.accepted, (order, result), key=lambda pair: pair[0])
            if self.size is not None:
                del self.accepted[self.size :]

    @property
    def documents(self) -> list[Document]:
        return [document for _, document in self.accepted]

    @property
    def rejections(self) -> list[Rejection]:
        """Those before the last accepted document, so that the order of the files is no matter."""
        return [rejection for order, rejection in self.refused if self.wants(order)]


def _qualified(raw: Raw, corpus: Corpus) -> str:
    return f"{raw.domain}/{raw.doc_id}" if corpus.qualify_ids else raw.doc_id


def _digest(text: str) -> bytes:
    return hashlib.sha256(" ".join(text.split()).encode()).digest()


def _unusable(raw: Raw, repeated: bool) -> str | None:
    if not raw.doc_id.strip():
        return "empty id"
    if repeated:
        return "repeated id"
    if not raw.text.strip():
        return "empty text"
    try:
        (raw.doc_id + raw.text).encode()
    except UnicodeEncodeError:
        return "half a character (a lone surrogate)"
    return None


def _document(raw: Raw, doc_id: str, group: str, corpus: Corpus) -> Document | Rejection:
    language: Language = "zh" if corpus.language == "zh" else "en"
    text: Sequence[Sequence[str]] = [sentences(part, language) for part in paragraphs(raw.text)]
    least = corpus.min_sentences
    most = corpus.max_sentences.get(raw.domain, corpus.max_sentences["default"])
    count = sum(map(len, text))
    if count < least:
        return Rejection(doc_id, raw.domain, f"fewer than {least} sentences", raw.place)
    if most is not None and count > most:
        chosen = passage(text, least, most, doc_id)
        if chosen is None:
            reason = f"no passage of {least} to {most} sentences at paragraph bounds"
            return Rejection(doc_id, raw.domain, reason, raw.place)
        text = chosen
    pairs = [(number, s) for number, part in enumerate(text, start=1) for s in part]
    return Document(
        doc_id=doc_id,
        domain=raw.domain,
        language=language,
        group=group,
        split=None,
        sentences=tuple(
            Sentence(id=f"s{position:04}", paragraph=f"p{number:03}", text=sentence)
            for position, (number, sentence) in enumerate(pairs, start=1)
        ),
    )


def _nothing_left(
    corpus: Corpus, read: Counter[str], rejections: Sequence[Rejection]
) -> InputError:
    if not read:
        return InputError(f"{corpus.source} holds no document: check corpus.source")
    reasons = Counter(rejection.reason for rejection in rejections).most_common()
    listed = ", ".join(f"{count} {reason}" for reason, count in reasons)
    return InputError(
        f"{corpus.source}: every document was rejected ({listed}): check corpus.min_sentences, "
        f"corpus.max_sentences and corpus.text_column"
    )


def _warn_of_few(kept: dict[str, list[Document]], corpus: Corpus) -> None:
    for domain, documents in kept.items():
        if len(documents) < (corpus.documents_per_domain or 1):
            log.warning(
                "%s: only %d documents can be used; corpus.documents_per_domain asks for %s",
                domain, len(documents), corpus.documents_per_domain or "all",
            )  # fmt: skip
