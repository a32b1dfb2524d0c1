"""A sheet of revisions for the manual check that the paper asks for (Section 3.2), and its sums."""

import csv
import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from heapq import nsmallest
from itertools import chain, zip_longest
from pathlib import Path
from typing import Any

import pandas as pd
from jinja2 import Environment, FileSystemLoader
from scipy.stats import binomtest

from palimpsest.errors import InputError
from palimpsest.params import OPERATIONS
from palimpsest.records import read_rows

ANSWERS = ("yes", "no")


@dataclass(frozen=True, slots=True)
class Item:
    """One revision: the sentence that it started from, what came of it, and the reviewer's answer.

    `reply` is empty where there was no usable one.
    """

    sample_id: str
    sentence_id: str
    generator: str
    operation: str
    verdict: str
    target: str
    reply: str
    ok: str = ""
    note: str = ""


def sample(files: Sequence[Path], size: int, seed: int) -> list[Item]:
    """A seeded sample of revisions, the operations in turn, in an order that mixes them.

    Raises:
        InputError: texts without a single revision.
    """
    order = {operation: _Smallest(size) for operation in OPERATIONS}
    for item in _items(chain.from_iterable(map(read_rows, files))):
        key = f"{seed}\n{item.sample_id}\n{item.sentence_id}"
        order[item.operation].add(hashlib.sha256(key.encode()).hexdigest(), item)
    turns = zip_longest(*(smallest.sorted() for smallest in order.values()))
    items = [item for turn in turns for item in turn if item is not None][:size]
    if not items:
        raise InputError(f"{files[0].parent} records no revision of any sentence")
    return items


class _Smallest:
    """The items with the n smallest keys, in memory for 2 n."""

    def __init__(self, n: int) -> None:
        self.n = n
        self._held: list[tuple[str, Item]] = []

    def add(self, key: str, item: Item) -> None:
        self._held.append((key, item))
        if len(self._held) > 2 * self.n:
            self._held = nsmallest(self.n, self._held, key=lambda pair: pair[0])

    def sorted(self) -> list[Item]:
        return [item for _, item in nsmallest(self.n, self._held, key=lambda pair: pair[0])]


def _items(rows: Iterable[Mapping[str, Any]]) -> Iterator[Item]:
    """The revisions that each version tried; versions of a trajectory follow each other."""
    human: Mapping[str, Any] = {}
    before: Mapping[str, Any] = {}
    for row in rows:
        if row["trajectory_id"] != human.get("trajectory_id"):
            human = before = row
        origin = before if row["design"] == "cumulative" else human
        for i, history in enumerate(row["sentence_history"]):
            for step in history[-1:]:
                if step["version"] != row["version"]:
                    continue
                rejected = step["outcome"].startswith("rejected")
                yield Item(
                    sample_id=row["sample_id"],
                    sentence_id=row["sentence_ids"][i],
                    generator=step["generator"],
                    operation=step["operation"],
                    verdict=step["outcome"],
                    target=_cut(origin, i),
                    reply="" if rejected else _cut(row, i),
                )
        before = row


def _cut(row: Mapping[str, Any], i: int) -> str:
    start, end = row["sentence_spans"][i]
    text: str = row["text"][start:end]
    return text


def write(items: Sequence[Item], path: Path) -> list[Path]:
    """Write `path`.html, which fills in the sheet by a click, and `path`.csv; return the files.

    Raises:
        InputError: a sheet of that name that a reviewer has begun to fill in.
    """
    page, sheet = path.with_suffix(".html"), path.with_suffix(".csv")
    if sheet.is_file():
        begun = pd.read_csv(sheet, dtype=str, keep_default_na=False)
        if any((begun[column] != "").any() for column in ("ok", "note") if column in begun):
            raise InputError(f"{sheet} has a reviewer's answers: give another --output or move it")
    path.parent.mkdir(parents=True, exist_ok=True)
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent), autoescape=True, trim_blocks=True
    )
    names = [field.name for field in fields(Item)]
    rows = list(map(asdict, items))
    content = environment.get_template("review.html").render(rows=rows, names=names)
    page.write_text(content, encoding="utf-8")
    with sheet.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, names)
        writer.writeheader()
        writer.writerows(rows)
    return [page, sheet]


def read(path: Path) -> pd.DataFrame:
    """Sums of a filled-in sheet: for each operation and for all, the share of good revisions.

    `low` and `high` are Wilson's 95 % interval. Rows without an answer are counted as open.

    Raises:
        InputError: a missing file or column, an answer other than yes and no, no answer at all.
    """
    if not path.is_file():
        raise InputError(f"{path} does not exist: `palimpsest review` writes one")
    rows = pd.read_csv(path, dtype=str, keep_default_na=False)
    for column in ("operation", "ok"):
        if column not in rows:
            raise InputError(f"{path} has no column {column!r}")
    answers = rows["ok"].str.strip().str.lower()
    for number, answer in enumerate(answers, start=2):
        if answer and answer not in ANSWERS:
            raise InputError(f"{path}, row {number}: ok is {answer!r}; write yes or no, or nothing")
    if not answers.isin(ANSWERS).any():
        raise InputError(f"{path}: the column ok is empty; write yes or no")
    groups = [*answers.groupby(rows["operation"]), ("all", answers)]
    return pd.DataFrame([_sums(str(name), given) for name, given in groups])


def _sums(name: str, answers: "pd.Series[str]") -> dict[str, Any]:
    good, bad = (int((answers == answer).sum()) for answer in ANSWERS)
    sums: dict[str, Any] = {"operation": name, "good": good, "bad": bad}
    sums["open"] = len(answers) - good - bad
    if good + bad:
        interval = binomtest(good, good + bad).proportion_ci(method="wilson")
        sums |= {"share": good / (good + bad), "low": interval.low, "high": interval.high}
    return sums
