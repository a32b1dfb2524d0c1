import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest

from palimpsest.errors import InputError
from palimpsest.records import PREDICTIONS, TEXTS, Scores, prediction_row, write_rows
from palimpsest.reports import viewer
from palimpsest.reports.viewer import predictions_of_runs, read_trajectory, render
from tests.reports.synthetic import evaluation
from tests.scripted import ScriptedEditor
from tests.trajectories.test_build import DOCUMENTS, build, swap

ROWS = build(ScriptedEditor(swap), DOCUMENTS[:1])


class _Text(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.text = ""
        self.tags: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)

    def handle_data(self, data: str) -> None:
        self.text += data


def parsed(page: str) -> _Text:
    parser = _Text()
    parser.feed(page)
    return parser


def test_every_sentence_of_every_version_is_on_the_page() -> None:
    text = parsed(render(ROWS, {})).text
    for row in ROWS:
        for start, end in row["sentence_spans"]:
            assert row["text"][start:end] in text


def test_a_text_is_data_and_never_markup() -> None:
    evil = "<script>alert(1)</script> & {{ first }}"
    row = {**ROWS[0], "text": evil, "sentence_spans": [[0, len(evil)]], "sentence_ids": ["s0001"],
           "sentence_history": [[]]}  # fmt: skip
    page = parsed(render([row], {}))
    assert "script" not in page.tags
    assert evil in page.text


def test_a_sentence_that_a_version_left_alone_is_pale_in_the_colour_of_its_last_change() -> None:
    def step(version: str, operation: str, outcome: str) -> dict[str, object]:
        return {"version": version, "operation": operation, "outcome": outcome, "attempts": 1}

    histories = {
        "polish": [step("v1", "polish", "accepted")],
        "polish unchanged": [
            step("v1", "polish", "kept: too long"),
            step("v2", "style", "unchanged"),
        ],
        "style unchanged": [
            step("v1", "style", "accepted"),
            step("v2", "expand", "rejected: empty"),
        ],
        "none": [step("v1", "polish", "rejected: refusal")],
    }
    n = len(histories)
    row = {**ROWS[0], "text": "a b c d", "sentence_spans": [[2 * i, 2 * i + 1] for i in range(n)],
           "sentence_ids": ["s"] * n, "sentence_labels": [1, 1, 1, 0],
           "sentence_history": list(histories.values())}  # fmt: skip
    cells = re.search(r'class="bars">(.*?)</span>', render([row], {}))
    assert cells
    assert re.findall(r'class="([^"]+)"', cells[1]) == list(histories)


def test_the_page_asks_the_network_for_nothing() -> None:
    page = render(ROWS, {})
    assert not re.search(r"(?:src|href)\s*=|url\(|@import", page)


def test_scores_stand_beside_sentences_and_versions() -> None:
    n = len(ROWS[1]["sentence_spans"])
    mine = {ROWS[1]["sample_id"]: {"document": 3.25, "sentences": [0.125] * n}}
    text = parsed(render(ROWS, {"mine": mine})).text
    assert "3.25" in text
    assert text.count(" 0.12") == 2 * n  # beside each sentence and in its history
    theirs = {ROWS[1]["sample_id"]: {"document": float("nan"), "sentences": None}}
    several = parsed(render(ROWS, {"mine": mine, "theirs": theirs})).text
    assert several.count("mine 0.125") == n  # too many numbers beside a sentence hide the text
    assert "theirs" not in several


def test_a_word_methods_score_of_a_sentence_is_the_mean_of_its_words() -> None:
    row = ROWS[1]
    words = [float(i) for i in range(len(row["word_spans"]))]
    answer = {"document": float("nan"), "sentences": None, "words": words}
    first = len(row["text"][slice(*row["sentence_spans"][0])].split())
    text = parsed(render(ROWS, {"tagger": {row["sample_id"]: answer}})).text
    assert f"tagger {sum(words[:first]) / first:.3f}" in text


def test_a_trajectory_that_is_not_there_is_an_error_that_names_some(tmp_path: Path) -> None:
    path = tmp_path / "texts.parquet"
    write_rows(path, TEXTS, ROWS)
    read = read_trajectory([path], "a/1/g/cumulative")
    assert [row["text"] for row in read] == [row["text"] for row in ROWS]
    with pytest.raises(InputError, match="among others, a/1/g/cumulative"):
        read_trajectory([path], "a/2/g/cumulative")


def test_texts_are_shown_before_any_detector_has_read_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def none(_: str) -> None:
        raise InputError("holds no finished evaluation")

    monkeypatch.setattr(viewer, "evaluations", none)
    assert predictions_of_runs("opai-bench", ROWS) == {}


def test_scores_of_another_text_of_the_same_name_are_not_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    changed = [{**row, "text": row["text"].upper()} if i else row for i, row in enumerate(ROWS)]
    write_rows(tmp_path / "samples.parquet", TEXTS, changed)
    answers = (prediction_row(row["sample_id"], Scores(document=1.5)) for row in ROWS)
    write_rows(tmp_path / "predictions.parquet", PREDICTIONS, answers)
    run = replace(evaluation("r", "length"), location=tmp_path.as_uri())
    monkeypatch.setattr(viewer, "evaluations", lambda _: [run])
    found = predictions_of_runs("opai-bench", ROWS)
    assert list(found["length"]) == [ROWS[0]["sample_id"]]


def test_revised_sentences_without_a_history_are_not_shown_as_human() -> None:
    row = {**ROWS[3], "sentence_history": [[] for _ in ROWS[3]["sentence_ids"]]}
    page = render([row], {})
    assert page.count(f'class="s {row["operation"]}"') == sum(row["sentence_labels"]) > 0
    assert page.count('class="s "') == row["sentence_labels"].count(0)
    assert "revised, history unknown" in page
