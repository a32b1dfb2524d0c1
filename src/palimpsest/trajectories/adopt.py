"""The released OpAI-Bench rows as texts: labels from their character spans, all else checked."""

import csv
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from operator import index
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from palimpsest.corpora.opai_bench import (
    RELEASED,
    SCHEDULE,
    Place,
    ReleaseRow,
    UnusableRowError,
    listed,
    place_of,
    release_files,
    release_rows,
    sentences_of,
    tagged,
)
from palimpsest.errors import InputError
from palimpsest.params import Corpus
from palimpsest.records import Document, Span, word_bounds
from palimpsest.trajectories.provenance import overlapping

_RATIO_TOLERANCE = 5e-5  # a ratio that was rounded to four digits agrees
_EXCERPT = 60  # characters of a value in the report


@dataclass(slots=True)
class Report:
    """Every row that was rejected or disagrees with itself, as a CSV, and counts of all rows.

    `counts` is by (generator, kind, reason): what became of rows, which columns disagree in how
    many rows, and how many trajectories lack versions. A rejected row's columns do not count.
    """

    path: Path
    counts: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    _pending: list[tuple[str, str, str]] = field(default_factory=list)
    _file: Any = None
    _lines: Any = None

    def __enter__(self) -> Self:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        # a lone surrogate may stand in a list's escapes, never in UTF-8
        self._file = self.path.open("w", encoding="utf-8", errors="backslashreplace", newline="")
        self._lines = csv.writer(self._file, lineterminator="\n", quoting=csv.QUOTE_NONNUMERIC)
        self._lines.writerow(["file", "row", "verdict", "column", "released", "derived"])
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:  # fmt: skip
        self._file.close()

    def disagrees(self, row: ReleaseRow, column: str, released: Any, derived: Any) -> None:
        """Note that the row is used with the derived value; both are cut to where they differ."""
        released, derived = str(released), str(derived)
        start = next(
            (i for i, (a, b) in enumerate(zip(released, derived, strict=False)) if a != b),
            min(len(released), len(derived)),
        )
        shown = slice(max(0, start - _EXCERPT // 2), start + _EXCERPT // 2)
        self._pending.append((column, released[shown], derived[shown]))

    def adopted(self, row: ReleaseRow) -> None:
        for cells in self._pending:
            self._lines.writerow([row.file.name, row.number, "derived", *cells])
        for column in {column for column, _, _ in self._pending}:
            self.counts[row.generator, "column", column] += 1
        self._pending.clear()
        self.counts[row.generator, "row", "adopted"] += 1

    def rejected(self, row: ReleaseRow, reason: str) -> None:
        self._pending.clear()
        self._lines.writerow([row.file.name, row.number, "rejected", reason, "", ""])
        self.counts[row.generator, "row", f"rejected: {reason}"] += 1

    def rows(self) -> list[dict[str, Any]]:
        """The counts as rows of artifacts/revisions.csv."""
        return [
            {"generator": generator, "kind": kind, "operation": "all", "reason": reason, "count": n}
            for (generator, kind, reason), n in sorted(self.counts.items())
        ]


def adopt(
    corpus: Corpus,
    design: str,
    documents: Mapping[str, Document],
    wanted: Callable[[str], bool],
    report: Report,
) -> Iterator[dict[str, Any]]:
    """Rows of the schema `records.TEXTS` for one design, in the order of the release's files.

    `wanted` says which of the release's generators count. A human row that serves several coverages
    (design `operation`) is given for each.

    Raises:
        InputError: bad files, a design that the release does not have.
    """
    files = [f for f in release_files(Path(corpus.source)) if f.design == design]
    if not files:
        raise InputError(f"{corpus.source} has no texts of the design {design!r}")
    shared: dict[str, tuple[ReleaseRow, dict[str, Any]]] = {}  # human rows without a variant
    variants: dict[str, set[str]] = defaultdict(set)
    trajectories: Counter[tuple[str, str]] = Counter()
    known: set[str] = set()
    for row in release_rows(files, corpus.qualify_ids):
        if not wanted(row.generator):
            continue
        document = documents.get(row.doc_id)
        if document is None or document.domain != row.domain:
            report.counts[row.generator, "row", "left out: document not taken"] += 1
            continue
        base = f"{row.doc_id}/{row.generator}/{design}"
        try:
            sample = _sample(row, document, report)
            variant = sample["variant"]
            key = f"{base}/{variant}/{sample['version']}"
            if key in known:
                raise UnusableRowError("repeated: the sample was in an earlier row")
            known.add(key)
        except UnusableRowError as error:
            report.rejected(row, str(error))
            continue
        report.adopted(row)
        if design == "operation" and not variant:
            shared[base] = row, sample
            found = [{**sample, "variant": other} for other in sorted(variants[base])]
        elif variant not in variants[base]:
            variants[base].add(variant)
            found = [{**shared[base][1], "variant": variant}] if base in shared else []
            found.append(sample)
        else:
            found = [sample]
        for one in found:
            trajectory = f"{base}/{one['variant']}" if one["variant"] else base
            trajectories[row.generator, trajectory] += 1
            yield {
                **one,
                "sample_id": f"{trajectory}/{one['version']}",
                "trajectory_id": trajectory,
                "generator": row.generator,
                "design": design,
            }
    for base, (row, _) in shared.items():
        if not variants[base]:
            report.counts[row.generator, "row", "adopted"] -= 1
            report.rejected(row, "human row without any revised version")
    full = max(trajectories.values(), default=0)
    for (generator, _), n in trajectories.items():
        report.counts[generator, "trajectory", "complete" if n == full else "incomplete"] += 1


def _sample(row: ReleaseRow, document: Document, report: Report) -> dict[str, Any]:
    """A row's part of `records.TEXTS` that does not depend on where it stands."""
    _, spans = sentences_of(row)
    text = row.values["text"]
    ai_spans = _ai_spans(row, text, report)
    sentence_labels = overlapping(spans, ai_spans)
    if row.is_human and ai_spans:
        raise UnusableRowError("ai_spans_char: the human version has AI text")
    place = place_of(row, sum(sentence_labels), len(spans))
    words = word_bounds(text, document.language)
    word_labels = overlapping(words, ai_spans)
    ratios = {
        "ai_sentence_ratio": sum(sentence_labels) / len(spans),
        "ai_token_ratio": sum(word_labels) / len(words),
        "ai_char_ratio": sum(end - start for start, end in ai_spans) / len(text),
    }
    _check_lists(
        row,
        report,
        tokens=[text[start:end] for start, end in words.tolist()],
        token_labels=word_labels,
        sentence_labels=sentence_labels,
        ai_spans_token=runs(word_labels),
    )
    _check_values(row, place, document, tagged(text, ai_spans), ratios, report)
    edited = [span for span, label in zip(spans, sentence_labels, strict=True) if label]
    if edited != ai_spans:
        report.disagrees(row, "ai_spans_char", pairs(ai_spans), f"sentences {pairs(edited)}")
    if not (edited or row.is_human):
        report.disagrees(row, "ai_spans_char", "[]", f"no AI sentence in {place.version}")
    return {
        "doc_id": document.doc_id,
        "group": document.group,
        "domain": document.domain,
        "language": document.language,
        "prompt_set": RELEASED,
        "variant": place.variant,
        "version": place.version,
        "operation": place.operation,
        "target_coverage": place.coverage,
        "label": int(not row.is_human),  # deviations B1
        "text": text,
        "sentence_ids": _sentence_ids(row, document, len(spans), report),
        "sentence_spans": spans,
        "sentence_labels": sentence_labels,
        "sentence_history": [[] for _ in spans],  # the release has none
        "word_spans": words,
        "word_labels": word_labels,
        "ai_spans": ai_spans,
        **ratios,
    }


def _ai_spans(row: ReleaseRow, text: str, report: Report) -> list[Span]:
    """The row's AI spans, ordered, disjoint, none empty or beyond the text."""
    try:
        released = sorted(
            (index(start), index(end)) for start, end in listed(row.values["ai_spans_char"])
        )
    except (ValueError, TypeError) as error:
        raise UnusableRowError("ai_spans_char: no list of pairs") from error
    spans = [Span(start, min(end, len(text))) for start, end in released if start < end]
    if any(start < 0 or start >= len(text) for start, _ in spans):
        raise UnusableRowError("ai_spans_char: a span outside the text")
    if any(b.start < a.end for a, b in pairwise(spans)):
        raise UnusableRowError("ai_spans_char: spans that overlap")
    if spans != released:
        report.disagrees(row, "ai_spans_char", pairs(released), pairs(spans))
    return spans


def pairs(spans: Iterable[tuple[int, int]]) -> list[list[int]]:
    return [list(span) for span in spans]


def runs(labels: Sequence[int]) -> list[list[int]]:
    """The half-open ranges of neighbouring units that are labelled 1."""
    found: list[list[int]] = []
    for i, label in enumerate(labels):
        if label and found and found[-1][1] == i:
            found[-1][1] = i + 1
        elif label:
            found.append([i, i + 1])
    return found


def _check_lists(row: ReleaseRow, report: Report, **derived: list[Any]) -> None:
    for column, expected in derived.items():
        if column not in row.values:
            continue
        try:
            released = listed(row.values[column])
        except ValueError:
            report.disagrees(row, column, row.values[column], expected)
            continue
        if column == "sentence_labels" and len(released) != len(expected):
            # two adjacent Python strings are one: a list printed without commas looks like this
            raise UnusableRowError("sentences: not as many as sentence_labels")
        if column == "ai_spans_token":
            released = [list(pair) if isinstance(pair, tuple) else pair for pair in released]
        if released != expected:
            report.disagrees(row, column, released, expected)


def _check_values(
    row: ReleaseRow,
    place: Place,
    document: Document,
    text_tagged: str,
    ratios: Mapping[str, float],
    report: Report,
) -> None:
    scheduled = SCHEDULE[place.version][0] if place.version in SCHEDULE else place.operation
    if row.operation not in (None, scheduled):
        report.disagrees(row, "edit_operation", row.operation, f"{place.version}: {scheduled}")
    for column, released, expected in (
        ("split", row.values.get("split", row.file.split), document.split),
        ("text_tagged", row.values.get("text_tagged", text_tagged), text_tagged),
    ):
        if released != expected:
            report.disagrees(row, column, released, expected)
    for column, ratio in ratios.items():
        if column in row.values:
            try:
                agrees = abs(float(row.values[column]) - ratio) <= _RATIO_TOLERANCE
            except ValueError:
                agrees = False
            if not agrees:
                report.disagrees(row, column, row.values[column], ratio)


def _sentence_ids(row: ReleaseRow, document: Document, n: int, report: Report) -> list[str]:
    """The row's own ids, else the document's; where sentences were lost it is not known which."""
    try:
        own = listed(row.values["sentence_ids"])
    except (KeyError, ValueError):
        own = []
    if (
        len(own) == n
        and all(isinstance(i, str) and i.isascii() for i in own)
        and len(set(own)) == n
    ):
        return own
    ids = [sentence.id for sentence in document.sentences]
    if len(ids) == n:
        return ids
    report.disagrees(row, "sentences", f"{n} sentences", f"{len(ids)} in the document")
    return [f"r{i:04}" for i in range(1, n + 1)]
