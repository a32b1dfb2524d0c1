"""The released OpAI-Bench dataset: its files, columns and versions, and its human documents."""

import ast
import hashlib
import json
import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

from palimpsest.corpora.build import Built, Count, Rejection
from palimpsest.corpora.readers import check_present, read_records, wanted_domains
from palimpsest.corpora.sampling import quotas, rank
from palimpsest.errors import InputError, unknown
from palimpsest.params import OPERATIONS, Corpus
from palimpsest.records import Document, Language, Sentence, Span, Split

SPLITS: tuple[Split, ...] = ("train", "dev", "test")
HELD_OUT = ("qwen3-8b",)  # the generators that the paper's averages leave out
RELEASED = "opai-bench-release"  # what stands for the prompt set of adopted texts

# The paper's Table 3. A schedule in params says what would be generated, not what was released.
SCHEDULE = {
    "v0": ("none", 0),
    "v1": ("polish", 15),
    "v2": ("paraphrase", 25),
    "v3": ("style", 40),
    "v4": ("compress", 50),
    "v5": ("expand", 60),
    "v6": ("style", 75),
    "v7": ("paraphrase", 90),
    "v8": ("polish", 100),
}
ABLATIONS = {"ablation1": "coverage", "ablation2": "operation", "ablation3": "independent"}
LEVELS = (25, 50, 75, 100)

# In the order in which the release has them. The first name is the released one, the others are
# those of older deliveries; where a file has several, the last counts (`text` may then be raw).
COLUMNS: dict[str, tuple[str, ...]] = {
    "record_id": ("record_id",),
    "id": ("id",),
    "domain": ("domain",),
    "generator": ("generator", "model_used", "ai_model"),
    "version": ("version",),
    "edit_operation": ("edit_operation", "operation"),
    "split": ("split",),
    "text": ("text", "text_clean"),
    "text_tagged": ("text_tagged",),
    "tokens": ("tokens",),
    "token_labels": ("token_labels", "tok_labels"),
    "sentences": ("sentences",),
    "sentence_labels": ("sentence_labels", "sent_labels"),
    "ai_spans_char": ("ai_spans_char",),
    "ai_spans_token": ("ai_spans_token", "ai_spans_tok"),
    "ai_sentence_ratio": ("ai_sentence_ratio", "AI_sent_ratio"),
    "ai_token_ratio": ("ai_token_ratio", "AI_token_ratio"),
    "ai_char_ratio": ("ai_char_ratio", "AI_char_ratio"),
}
_NEEDED = ("version", "text", "sentences", "ai_spans_char")
# Columns that may name the document; `record_id` names a document in some files, a row in others.
_ID_COLUMNS = ("id", "doc_id", "document_id", "essay_id", "record_id")
_DOMAINS = {"essay": "essays", "report": "reports", "abstract": "abstracts"}
_OPERATION_NAMES = {
    "style_rewrite": "style",
    "para": "paraphrase",
    "para.": "paraphrase",
    "": "none",
}

OPEN_TAG, CLOSE_TAG = "<AI_Start>", "</AI_End>"


class UnusableRowError(ValueError):
    """A row that cannot be used; the message is the reason, the same for all such rows."""


@dataclass(frozen=True, slots=True)
class ReleaseFile:
    """A file of the release and what its place and name say."""

    path: Path
    name: str  # relative to the release's folder
    design: str
    split: Split
    domain: str
    generator: str
    operation: str | None
    coverage: int | None


@dataclass(frozen=True, slots=True)
class ReleaseRow:
    """A row of the release under the present column names; `doc_id` is the same in all versions."""

    file: ReleaseFile
    number: int
    doc_id: str
    domain: str
    generator: str
    version: str
    values: Mapping[str, str]

    @property
    def place(self) -> str:
        return f"{self.file.name}, row {self.number}"

    @property
    def is_human(self) -> bool:
        return self.version in ("v0", "base") or _coverage_in(self.version) == 0

    @property
    def operation(self) -> str | None:
        """What the row's own column says, in this package's names."""
        if (given := self.values.get("edit_operation")) is None:
            return None
        given = given.strip().lower()
        return _OPERATION_NAMES.get(given, given)


class Place(NamedTuple):
    """Where a sample stands in its design."""

    variant: str
    version: str
    operation: str
    coverage: int


def fetch(name: str, folder: Path) -> None:
    """Put the files of a dataset of the Hugging Face hub, OWNER/NAME or OWNER/NAME@REVISION, there.

    A second call goes on where the first was stopped.

    Raises:
        InputError: a name that is none, or a hub that does not answer.
    """
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HfHubHTTPError, LocalEntryNotFoundError, OfflineModeIsEnabled

    repository, _, revision = name.partition("@")
    if not re.fullmatch(r"[\w.-]+/[\w.-]+", repository):
        raise InputError(f"{name} is no dataset's name: write OWNER/NAME or OWNER/NAME@REVISION")
    try:
        snapshot_download(
            repository,
            repo_type="dataset",
            revision=revision or None,
            allow_patterns=["default/*/*.csv", "ablations/*/*.csv"],
            local_dir=folder,
        )
    except (HfHubHTTPError, LocalEntryNotFoundError, OfflineModeIsEnabled, OSError) as error:
        raise InputError(
            f"the Hugging Face hub did not give {name} ({type(error).__name__}): get the files in "
            "another way and name their folder in corpus.source"
        ) from error


def release_files(folder: Path) -> list[ReleaseFile]:
    """All files of the release, those of the main benchmark first.

    Raises:
        InputError: a folder without such files, an unknown ablation.
    """
    found = [
        _file(path, folder, split)
        for config in ("default", "ablations")
        for split in SPLITS
        for path in sorted((folder / config / split).glob("*.csv"))
    ]
    if not found:
        raise InputError(
            f"{folder} is no OpAI-Bench release: it holds no default/{{train,dev,test}}/*.csv and "
            f"no ablations/{{train,dev,test}}/*.csv"
        )
    return found


def _file(path: Path, folder: Path, split: Split) -> ReleaseFile:
    parts = path.stem.split("_")
    design, operation, coverage = "cumulative", None, None
    if path.parent.parent.name == "ablations":
        if parts[0] not in ABLATIONS:
            raise InputError(f"{path}: {unknown('ablation', parts[0], ABLATIONS)}")
        design = ABLATIONS[parts.pop(0)]
        operation = next((part for part in parts if part in OPERATIONS), None)
        coverage = next((level for level in LEVELS if str(level) in parts), None)
        parts = [part for part in parts if part not in (operation, str(coverage))]
    return ReleaseFile(
        path=path,
        name=path.relative_to(folder).as_posix(),
        design=design,
        split=split,
        domain=_DOMAINS.get(parts[0], parts[0]),
        generator="_".join(parts[1:]),
        operation=operation,
        coverage=coverage,
    )


def release_rows(
    files: Sequence[ReleaseFile], qualify_ids: bool, columns: Collection[str] = COLUMNS
) -> Iterator[ReleaseRow]:
    """The files' rows, one at a time, with the values of `columns` only.

    Raises:
        InputError: a broken file, a missing column, no column that says what is one document.
    """
    for file in files:
        _, first = next(read_records(file.path), (0, None))
        if first is None:
            continue
        names = _names(file.path, first)
        is_old = any(name != known for name, known in names.items())
        id_column = _document_column(file.path)
        for number, record in read_records(file.path):
            values = {name: record[names[name]] for name in columns if name in names}
            values |= {name: record[name] for name in ("C_sent_target", "sentence_ids")
                       if name in record}  # fmt: skip
            domain = values.get("domain") or file.domain
            generator = values.get("generator") or file.generator
            if is_old:  # essay, and openai/gpt-5.4
                domain = _DOMAINS.get(domain, domain)
                generator = generator.rsplit("/", 1)[-1].lower()
            doc_id = record[id_column]
            yield ReleaseRow(
                file=file,
                number=number,
                doc_id=f"{domain}/{doc_id}" if qualify_ids else doc_id,
                domain=domain,
                generator=generator,
                version=record[names["version"]].strip(),
                values=values,
            )


def _names(path: Path, record: Mapping[str, str]) -> dict[str, str]:
    """Each present column's name in this file, of which `record` is a row."""
    names = {
        name: known for name, all_known in COLUMNS.items() for known in all_known if known in record
    }
    for name in _NEEDED:
        if name not in names:
            raise InputError(
                f"{path}: no column {' or '.join(COLUMNS[name])} among {', '.join(record)}"
            )
    return names


def _document_column(path: Path) -> str:
    """The column that names the document: the first whose values are shared by versions.

    Reading stops at the first such value. Without one, a column made for documents is trusted, and
    `record_id` where there is only one version.
    """
    present: list[str] = []
    versions: dict[tuple[str, str], str] = {}
    for _, record in read_records(path):
        present = [column for column in _ID_COLUMNS if column in record]
        version = record["version"]
        for column in present:
            if versions.setdefault((column, record[column]), version) != version:
                return column
    if not present or (present == ["record_id"] and len(set(versions.values())) > 1):
        raise InputError(
            f"{path}: no column says which rows are versions of one document: "
            f"add one of {', '.join(_ID_COLUMNS[:-1])}"
        )
    return present[0]


def listed(value: str) -> list[Any]:
    """A cell that holds a list as JSON or as a Python literal.

    Raises:
        ValueError: anything else.
    """
    try:
        found = json.loads(value)
    except (ValueError, RecursionError):
        try:
            found = ast.literal_eval(value)
        except (SyntaxError, TypeError, MemoryError, RecursionError) as error:
            raise ValueError("no list") from error
    if not isinstance(found, list):
        raise ValueError("no list")
    return found


def sentences_of(row: ReleaseRow) -> tuple[list[str], list[Span]]:
    """The row's sentences and their spans in its text, which they must cover but for white space.

    The release's sentences have some white space other than the text has it, so only all other
    characters must agree.

    Raises:
        UnusableRowError: sentences that do not do that.
    """
    text = row.values["text"]
    if not text.strip():
        raise UnusableRowError("empty text")
    try:
        sentences = listed(row.values["sentences"])
    except ValueError as error:
        raise UnusableRowError("sentences: no list") from error
    if not all(isinstance(sentence, str) and sentence.strip() for sentence in sentences):
        raise UnusableRowError("sentences: an entry that is empty or no text")
    return sentences, _exact_spans(text, sentences) or _spaced_spans(text, sentences)


def _exact_spans(text: str, sentences: Sequence[str]) -> list[Span] | None:
    """The sentences' spans where the text holds them as they stand, else None."""
    spans, position = [], 0
    for sentence in sentences:
        start = text.find(sentence, position)
        if start < 0 or text[position:start].strip() or sentence != sentence.strip():
            return None
        position = start + len(sentence)
        spans.append(Span(start, position))
    return None if text[position:].strip() else spans


def _spaced_spans(text: str, sentences: Sequence[str]) -> list[Span]:
    """The sentences' spans, whatever the white space in both."""
    offsets = [i for i, character in enumerate(text) if not character.isspace()]
    compact = "".join(text.split())
    spans, position = [], 0
    for sentence in sentences:
        letters = "".join(sentence.split())
        if not compact.startswith(letters, position):
            raise UnusableRowError("sentences: one is not in the text where it should be")
        start, position = offsets[position], position + len(letters)
        spans.append(Span(start, offsets[position - 1] + 1))
    if position != len(compact):
        raise UnusableRowError("sentences: the text goes on after the last")
    return spans


def tagged(text: str, spans: Sequence[Sequence[int]]) -> str:
    """The text with a pair of tags around each span."""
    parts, position = [], 0
    for start, end in spans:
        parts += [text[position:start], OPEN_TAG, text[start:end], CLOSE_TAG]
        position = end
    return "".join([*parts, text[position:]])


def place_of(row: ReleaseRow, ai: int, n: int) -> Place:
    """Where a row with `ai` AI sentences among `n` stands in its file's design.

    A human row of `operation` serves every coverage that its file has: its variant is empty where
    the file's name has none.

    Raises:
        UnusableRowError: a version, an operation or a coverage that cannot be told.
    """
    design = row.file.design
    if design in ("cumulative", "independent"):
        if row.version not in SCHEDULE:
            raise UnusableRowError("version: unknown")
        operation, coverage = SCHEDULE[row.version]
        if coverage and row.operation in OPERATIONS:
            operation = row.operation
        return Place("", row.version, operation, coverage)
    if design == "coverage":
        fixed = row.file.operation or row.operation
        if fixed is None or (fixed == "none" and row.file.operation is None):
            raise UnusableRowError("edit_operation: none")
        coverage = 0 if row.is_human else _coverage(row, ai, n)
        return Place(fixed, f"c{coverage:03}", fixed if coverage else "none", coverage)
    if row.is_human:
        variant = "" if row.file.coverage is None else str(row.file.coverage)
        return Place(variant, "v0", "none", 0)
    named = re.match(r"[a-z]+", row.version)
    operation = named[0] if named and named[0] in OPERATIONS else row.operation or "none"
    if operation == "none":
        raise UnusableRowError("edit_operation: none")
    coverage = _coverage(row, ai, n)
    return Place(str(coverage), operation, operation, coverage)


def released_version(design: str, variant: str, version: str) -> str:
    """A version's name in the release: cov25 for c025, compress_25 for compress at 25 %."""
    match design:
        case "coverage":
            return f"cov{int(version[1:]):02}"
        case "operation":
            return "base" if version == "v0" else f"{version}_{variant}"
        case _:
            return version


def _coverage_in(version: str) -> int | None:
    """25 in cov25, c025 or compress_25, None in v2."""
    found = re.fullmatch(r"(?:c|cov|[a-z]+_)(\d{1,3})", version)
    return int(found[1]) if found else None


def _coverage(row: ReleaseRow, ai: int, n: int) -> int:
    """The nominal coverage: from version, file name or target; else from the AI sentences' number.

    The number tells it where just one level asks for so many sentences, ceil(coverage x n).
    """
    coverage = _coverage_in(row.version) or row.file.coverage
    if coverage is None and (target := row.values.get("C_sent_target")):
        try:
            coverage = round(100 * float(target))
        except (ValueError, OverflowError) as error:
            raise UnusableRowError("C_sent_target: no number") from error
    if coverage is None:
        possible = [level for level in LEVELS if -(-level * n // 100) == ai]
        if len(possible) != 1:
            raise UnusableRowError("coverage: neither named nor told by the number of AI sentences")
        return possible[0]
    if not 0 < coverage <= 100:
        raise UnusableRowError("coverage: not from 1 to 100")
    return coverage


def release_documents(corpus: Corpus) -> Built:
    """The human documents of `corpus.source`, from its v0 rows, with the release's split.

    Every generator's file repeats v0. The first one read is the document; one that differs in text,
    sentences or split is rejected with that reason. Documents are taken as they are: of the params
    only domains, qualify_ids, documents_per_domain and limit apply.

    Raises:
        InputError: bad input, an id that two domains share, no document at all.
    """
    files = release_files(Path(corpus.source))
    language: Language = "zh" if corpus.language == "zh" else "en"
    wanted = wanted_domains(corpus.domains)
    documents: dict[str, Document] = {}
    first: dict[str, tuple[bytes, str]] = {}  # digest of text and sentences, and place
    seen: dict[str, tuple[str, str]] = {}  # domain and place of each id
    domains: set[str] = set()
    rejections: list[Rejection] = []

    columns = ("domain", "generator", "split", "text", "sentences")
    for row in release_rows(files, corpus.qualify_ids, columns):
        domains.add(row.domain)
        if wanted is not None and row.domain not in wanted:
            continue
        domain, place = seen.setdefault(row.doc_id, (row.domain, row.place))
        if domain != row.domain:
            raise InputError(
                f"{place} and {row.place} have the same id {row.doc_id!r}: ids must differ between "
                f"domains; `-S corpus.qualify_ids=true` puts the domain before each id"
            )
        if not row.is_human:
            continue
        try:
            if not row.doc_id.strip():
                raise UnusableRowError("empty id")
            digest = _digest(row.values["text"] + "\0" + row.values["sentences"])
            if row.doc_id not in documents:
                documents[row.doc_id] = _document(row, language)
                first[row.doc_id] = digest, row.place
            elif first[row.doc_id][0] != digest and _differs(row, documents[row.doc_id], language):
                raise UnusableRowError("v0 differs from the one read first")
            elif row.file.split != documents[row.doc_id].split:
                raise UnusableRowError("split differs from the one read first")
        except UnusableRowError as error:
            rejections.append(Rejection(row.doc_id, row.domain, str(error), row.place))
    if wanted is not None:
        check_present(wanted, domains, Path(corpus.source))
    rejections += [
        Rejection(doc_id, domain, "no usable v0", place)
        for doc_id, (domain, place) in seen.items()
        if doc_id not in documents
    ]
    return _sampled(_grouped(documents.values()), rejections, corpus)


def _document(row: ReleaseRow, language: Language) -> Document:
    sentences, spans = sentences_of(row)
    text = row.values["text"]
    paragraph, found = 1, []
    for i, (sentence, span) in enumerate(zip(sentences, spans, strict=True)):
        if i and re.search(r"\n\s*\n", text[spans[i - 1].end : span.start]):
            paragraph += 1
        # as in every document, no sentence holds a line break
        folded = re.sub(r"\s*\n\s*", " ", sentence).strip()
        found.append(Sentence(f"s{i + 1:04}", f"p{paragraph:03}", folded))
    return Document(row.doc_id, row.domain, language, row.doc_id, row.file.split, tuple(found))


def _differs(row: ReleaseRow, document: Document, language: Language) -> bool:
    """Whether a v0 gives another document; its list may just be written in another way."""
    return _document(row, language).sentences != document.sentences


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode(errors="surrogatepass")).digest()


def _grouped(documents: Collection[Document]) -> list[Document]:
    """Documents with equal texts in one group, unless the release has them in different splits."""
    group: dict[tuple[bytes, Split | None], str] = {}
    keys = []
    for document in documents:
        words = " ".join(sentence.text for sentence in document.sentences).split()
        keys.append((_digest(" ".join(words)), document.split))
        group[keys[-1]] = min(document.doc_id, group.get(keys[-1], document.doc_id))
    return [replace(d, group=group[key]) for d, key in zip(documents, keys, strict=True)]


def _sampled(documents: Sequence[Document], rejections: list[Rejection], corpus: Corpus) -> Built:
    by_domain = defaultdict(list)
    for document in sorted(documents, key=lambda d: rank(d.doc_id)):
        by_domain[document.domain].append(document)
    if not by_domain:
        raise InputError(f"{corpus.source} holds no usable v0: {len(rejections)} were rejected")
    rejected = Counter(rejection.domain for rejection in rejections)
    kept = {domain: by_domain[domain][: corpus.documents_per_domain] for domain in by_domain}
    if corpus.limit is not None:
        shares = quotas({domain: len(found) for domain, found in kept.items()}, corpus.limit)
        kept = {domain: found[: shares[domain]] for domain, found in kept.items()}
    counts = {
        domain: Count(
            read=len(by_domain[domain]) + rejected[domain],
            kept=len(kept.get(domain, ())),
            rejected=rejected[domain],
            not_sampled=len(by_domain[domain]) - len(kept.get(domain, ())),
        )
        for domain in sorted(set(by_domain) | set(rejected))
    }
    rejections.sort(key=lambda r: (r.domain, r.doc_id, r.place))
    chosen = [d for domain in sorted(kept) for d in sorted(kept[domain], key=lambda d: d.doc_id)]
    return Built(chosen, rejections, counts)
