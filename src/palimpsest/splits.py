"""Split documents into train, dev and test so that no group of documents is in two of them."""

import hashlib
import logging
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from palimpsest.errors import InputError
from palimpsest.records import Document, Split

log = logging.getLogger(__name__)


def hash_of(group: str) -> int:
    """The group's place from 0 to 999: SHA-256's first 8 hexadecimal digits mod 1000."""
    return int(hashlib.sha256(group.encode()).hexdigest()[:8], 16) % 1000


def split_of(group: str) -> Split:
    """OpAI-Bench's rule: 70 % train, 15 % dev, 15 % test, by the hash alone."""
    place = hash_of(group)
    return "train" if place < 700 else "dev" if place < 850 else "test"


def assign(documents: Sequence[Document]) -> dict[str, Split]:
    """Each group's split.

    A split that came with the data is kept. Otherwise the hash decides, and in a domain of three
    groups or more that would leave a split empty, the groups nearest the boundary move over it.

    Raises:
        InputError: one group with two supplied splits.
    """
    supplied: dict[str, Split] = {}
    domains: dict[str, set[str]] = defaultdict(set)
    for document in documents:
        domains[document.group].add(document.domain)
        if document.split is not None:
            known = supplied.setdefault(document.group, document.split)
            if known != document.split:
                raise InputError(
                    f"documents of group {document.group!r} come with the splits {known} and "
                    f"{document.split}: give equal texts one split"
                )
    splits = {group: supplied.get(group) or split_of(group) for group in domains}

    members = defaultdict(list)
    for group, homes in domains.items():
        if len(homes) == 1 and group not in supplied:
            members[next(iter(homes))].append(group)
    for domain in sorted(members):
        groups = sorted(members[domain], key=lambda g: (hash_of(g), g))
        if len(groups) >= 3:
            splits.update(_guarded(groups, splits))
    return splits


def _guarded(groups: list[str], splits: dict[str, Split]) -> dict[str, Split]:
    """Groups in the order of their hashes, cut at the two boundaries, none of the parts empty."""
    n = len(groups)
    train = min(max(sum(splits[g] == "train" for g in groups), 1), n - 2)
    dev = min(max(sum(splits[g] == "dev" for g in groups), 1), n - 1 - train)
    return {
        group: "train" if i < train else "dev" if i < train + dev else "test"
        for i, group in enumerate(groups)
    }


def split_rows(documents: Iterable[Document]) -> Iterator[dict[str, Any]]:
    """One row of the schema `records.SPLITS` for each document."""
    held = list(documents)
    splits = assign(held)
    for document in held:
        yield {
            "doc_id": document.doc_id,
            "group": document.group,
            "split": splits[document.group],
        }
