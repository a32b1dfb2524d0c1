import csv
from dataclasses import replace
from pathlib import Path

import pytest

from palimpsest.errors import InputError
from palimpsest.records import TEXTS, write_rows
from palimpsest.reports.review import Item, read, sample, write
from palimpsest.trajectories.requests import Request
from tests.scripted import ScriptedEditor
from tests.trajectories.test_build import build, swap


def texts(folder: Path, design: str = "cumulative") -> list[Path]:
    def answer(request: Request) -> str:
        return "" if request.messages[-1].content.endswith("on day 3.") else swap(request)

    path = folder / f"{design}.parquet"
    write_rows(path, TEXTS, build(ScriptedEditor(answer), design=design))
    return [path]


@pytest.mark.parametrize("design", ["cumulative", "independent"])
def test_target_and_reply_are_the_sentence_before_and_after(tmp_path: Path, design: str) -> None:
    items = sample(texts(tmp_path, design), 1000, seed=0)
    assert len({(item.sample_id, item.sentence_id) for item in items}) == len(items)
    for item in items:
        if item.verdict.startswith("rejected"):
            assert item.reply == ""
            assert item.target.endswith("on day 3.")
        else:
            assert item.reply != item.target
            assert sorted(item.reply.split()) == sorted(item.target.split())


def test_a_sample_is_seeded_and_takes_the_operations_in_turn(tmp_path: Path) -> None:
    files = texts(tmp_path)
    first = sample(files, 9, seed=1)
    assert first == sample(files, 9, seed=1)
    assert first != sample(files, 9, seed=2)
    assert [item.operation for item in first[:3]] == ["polish", "paraphrase", "expand"]


def test_a_filled_in_sheet_gives_shares_with_intervals(tmp_path: Path) -> None:
    _, sheet = write(sample(texts(tmp_path), 12, seed=0), tmp_path / "review")
    with sheet.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    for row, ok in zip(rows, ["yes", "No ", "", *["yes"] * 9], strict=True):
        row["ok"] = ok
    with sheet.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    total = read(sheet).to_dict("records")[-1]
    assert (total["operation"], total["good"], total["bad"], total["open"]) == ("all", 10, 1, 1)
    assert total["low"] < total["share"] == 10 / 11 < total["high"]


def test_a_sheet_with_answers_is_not_overwritten(tmp_path: Path) -> None:
    item = Item("s", "s0001", "g", "polish", "accepted", "a", "b")
    for _ in range(2):
        _, sheet = write([item], tmp_path / "review")
    write([replace(item, ok="yes")], tmp_path / "review")
    filled = sheet.read_text()
    with pytest.raises(InputError, match="has a reviewer's answers"):
        write([item], tmp_path / "review")
    assert sheet.read_text() == filled


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("operation,ok\npolish,maybe\n", "row 2: ok is 'maybe'"),
        ("operation,ok\npolish,\n", "column ok is empty"),
        ("operation\npolish\n", "no column 'ok'"),
    ],
)
def test_a_sheet_that_cannot_be_read_says_where(tmp_path: Path, content: str, message: str) -> None:
    path = tmp_path / "review.csv"
    path.write_text(content)
    with pytest.raises(InputError, match=message):
        read(path)


def test_texts_on_the_page_are_data(tmp_path: Path) -> None:
    evil = '</script><script>alert("x")</script>'
    page, _ = write([Item("s", "s0001", "g", "polish", "accepted", evil, evil)], tmp_path / "r")
    assert "<script>alert" not in page.read_text()
