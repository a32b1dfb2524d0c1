"""Read human documents from CSV, TSV, JSONL and Parquet; every value is a text, as it stands."""

import csv
import json
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from palimpsest.errors import InputError, hint, unknown
from palimpsest.params import Corpus


@dataclass(frozen=True, slots=True)
class Row:
    """One row of a user's table; `domain` where the table has such a column."""

    id: str
    text: str
    domain: str | None
    place: str


@dataclass(frozen=True, slots=True)
class Raw:
    """A document as its source has it; `place` says file and row.

    `ignored` is what a column `domain` says where it does not count.
    """

    doc_id: str
    domain: str
    text: str
    place: str
    ignored: str | None = None


def read_source(corpus: Corpus) -> Iterator[Raw]:
    """The documents of `corpus.source`, file by file.

    A folder holds one file per domain, whose name without its ending is the domain, whatever a
    column `domain` says. In one file that column names it, where there is one, else the file's name
    does.

    Raises:
        InputError: a source that is missing or unreadable, a missing column, an absent domain.
    """
    source = Path(corpus.source)
    wanted = wanted_domains(corpus.domains)
    if source.is_dir():
        files = _domain_files(source)
        if wanted is not None:
            check_present(wanted, set(files), source)
            files = {domain: file for domain, file in files.items() if domain in wanted}
        for domain, file in files.items():
            for row in read_table(file, corpus.id_column, corpus.text_column):
                yield Raw(row.id, domain, row.text, row.place, row.domain)
    elif source.is_file():
        seen = set()
        for row in read_table(source, corpus.id_column, corpus.text_column):
            domain = source.stem if row.domain is None else row.domain
            if not domain:
                raise InputError(f"{row.place}: the column 'domain' is empty: name one")
            seen.add(domain)
            if wanted is None or domain in wanted:
                yield Raw(row.id, domain, row.text, row.place)
        if wanted is not None:
            check_present(wanted, seen, source)
    else:
        raise InputError(
            f"{source} does not exist: run `make data` for the demo, or set corpus.source"
        )


def read_table(path: Path, id_column: str, text_column: str) -> Iterator[Row]:
    """The rows of one file; rows are counted from 1, without a header.

    Raises:
        InputError: an unknown ending, a broken file, a missing column; names file and row.
    """
    for number, record in read_records(path):
        place = f"{path}, row {number}"
        for column, option in ((id_column, "id_column"), (text_column, "text_column")):
            if column not in record:
                raise InputError(
                    f"{place}: no column {column!r} among {', '.join(record)}: "
                    f"{hint(column, record)}name the right one with `-S corpus.{option}=NAME`, or "
                    f"--{option.replace('_', '-')}"
                )
        domain = _text(record["domain"], place) if "domain" in record else None
        yield Row(_text(record[id_column], place), _text(record[text_column], place),
                  domain, place)  # fmt: skip


def read_records(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """The rows of one file as they stand, each with its number.

    Raises:
        InputError: an unknown ending, a broken file; names file and row.
    """
    if path.suffix.lower() not in _FORMATS:
        raise unknown("ending of a data file", path.suffix, _FORMATS)
    number = 0
    try:
        for number, record in enumerate(_FORMATS[path.suffix.lower()](path), start=1):
            yield number, record
    except UnicodeDecodeError as error:
        raise InputError(
            f"{path}, after row {number}: not UTF-8: save the file as UTF-8"
        ) from error
    except (csv.Error, json.JSONDecodeError, pa.ArrowInvalid) as error:
        raise InputError(f"{path}, row {number + 1}: {error}") from error


def wanted_domains(domains: Any) -> set[str] | None:
    """The domains that `corpus.domains` names, None for all."""
    if domains == "all":
        return None
    if not isinstance(domains, list) or not domains:
        raise InputError(f"corpus.domains is {domains!r}: give `all` or a list such as [essays]")
    return {str(domain) for domain in domains}


def check_present(wanted: set[str], found: set[str], source: Path) -> None:
    """Raise for a domain that the source does not have."""
    for domain in sorted(wanted - found):
        raise InputError(f"corpus.domains: {source}: {unknown('domain', domain, found)}")


def _domain_files(folder: Path) -> dict[str, Path]:
    files: dict[str, Path] = {}
    for file in sorted(folder.iterdir()):
        if file.suffix.lower() not in _FORMATS or file.name.startswith("."):
            continue
        if file.stem in files:
            raise InputError(
                f"{files[file.stem]} and {file} name the same domain: keep one of them"
            )
        files[file.stem] = file
    if not files:
        raise InputError(
            f"{folder} holds no data file ({', '.join(_FORMATS)}): run `make data` for the demo, "
            f"or `palimpsest data add`"
        )
    return files


def _text(value: Any, place: str) -> str:
    match value:
        case str():
            return value
        case None:
            return ""
        case bool():
            return str(value).lower()
        case list() | dict():
            raise InputError(f"{place}: a text is expected, not a list or a mapping")
        case _:
            return str(value)


def _delimited(path: Path, delimiter: str) -> Iterator[dict[str, Any]]:
    csv.field_size_limit(sys.maxsize)  # a book in one field is no error
    with path.open(encoding="utf-8-sig", newline="") as file:
        # strict: else a quote that is never closed swallows the rest of the file
        lines = csv.reader(file, delimiter=delimiter, strict=True)
        header = next(lines, [])
        if len(set(header)) < len(header):
            raise InputError(f"{path}: two columns have the same name: {', '.join(header)}")
        for line in lines:
            if len(line) != len(header) and line:
                raise csv.Error(f"{len(line)} fields where the header has {len(header)}")
            if line:
                yield dict(zip(header, line, strict=True))


def _json_lines(path: Path) -> Iterator[dict[str, Any]]:
    with path.open(encoding="utf-8-sig", newline="\n") as file:
        for line in filter(str.strip, file):
            # numbers keep their literal text: 007, 1e5 and 1.50 may be ids
            record = json.loads(line, parse_float=str, parse_int=str, parse_constant=str)
            if not isinstance(record, dict):
                raise json.JSONDecodeError("a line is no JSON object", line.strip(), 0)
            yield record


def _parquet(path: Path) -> Iterator[dict[str, Any]]:
    with pq.ParquetFile(path) as parquet:
        for batch in parquet.iter_batches(batch_size=100):
            yield from batch.to_pylist()


_FORMATS: dict[str, Callable[[Path], Iterator[dict[str, Any]]]] = {
    ".csv": lambda path: _delimited(path, ","),
    ".tsv": lambda path: _delimited(path, "\t"),
    ".jsonl": _json_lines,
    ".parquet": _parquet,
}
