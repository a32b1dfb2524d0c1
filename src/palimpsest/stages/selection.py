"""The texts that `train.select` and `evaluate.select` name, read a batch at a time."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from palimpsest.errors import InputError, unknown
from palimpsest.params import Selection
from palimpsest.records import read_batches, read_rows
from palimpsest.stages.files import SPLITS_FILE, texts_folder


def selected(
    select: Selection, splits: set[str], learning: bool = False
) -> Iterator[tuple[dict[str, Any], str]]:
    """The samples that a selection names in these splits as rows, each with its split."""
    split_of = _split_of()
    for batch in batches(select, splits, learning=learning):
        for row in batch.to_pylist():
            yield row, split_of[row["doc_id"]]


def batches(
    select: Selection,
    splits: set[str],
    columns: Sequence[str] | None = None,
    learning: bool = False,
) -> Iterator[pa.RecordBatch]:
    """The same samples in columns.

    Raises:
        InputError: a selection that names something unknown, or no sample at all.
    """
    split_of = _split_of()
    found = False
    for folder, names in sources(select, learning):
        for batch in read_batches(folder, columns):
            facts = batch.select(["doc_id", "generator", "domain"]).to_pandas()
            chosen = facts["doc_id"].map(split_of).isin(splits)
            chosen &= facts["generator"].isin(names)
            if select.domains != "all":
                chosen &= facts["domain"].isin(select.domains)
            if chosen.any():
                found = True
                yield batch.filter(pa.array(chosen))
    if not found:
        raise InputError(
            f"no text of design {select.design} is in the splits {sorted(splits)}, domains "
            f"{select.domains} and generators {select.generators}: take more documents or others"
        )


def sources(select: Selection, learning: bool = False) -> list[tuple[Path, set[str]]]:
    """The folders of texts that a selection reads, each with the generators that it takes there.

    Raises:
        InputError: an unknown domain or generator, or a held-out generator to learn from.
    """
    pairs = [
        {
            (row["generator"], row["domain"])
            for row in read_rows(texts_folder(select.design, held), ["generator", "domain"])
        }
        for held in (False, True)
    ]
    if select.domains != "all":
        domains = {domain for found in pairs for _, domain in found}
        for name in sorted(set(select.domains) - domains):
            raise unknown("domain", name, domains)
    ordinary, held_out = ({generator for generator, _ in found} for found in pairs)
    known = ordinary if learning else ordinary | held_out
    match select.generators:
        case "all":
            wanted = known
        case "in-distribution":
            wanted = ordinary
        case "held-out":
            wanted = held_out
        case str() as name:
            wanted = {name}
        case names:
            wanted = set(names)
    for name in sorted(wanted - known):
        raise unknown("generator to learn from" if learning else "generator", name, known)
    parts = [(texts_folder(select.design), wanted & ordinary)]
    parts.append((texts_folder(select.design, held_out=True), wanted & held_out))
    return [(folder, names) for folder, names in parts if names]


def held_out_generators(select: Selection) -> frozenset[str]:
    """Those of a selection's generators that no detector has seen."""
    held_out = texts_folder(select.design, held_out=True)
    return frozenset(
        name for folder, names in sources(select) if folder == held_out for name in names
    )


def _split_of() -> dict[str, str]:
    return {row["doc_id"]: row["split"] for row in read_rows(SPLITS_FILE)}
