import csv
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from palimpsest.corpora.opai_bench import RELEASED, release_documents
from palimpsest.errors import InputError
from palimpsest.records import TEXTS, Document, read_rows, write_rows
from palimpsest.trajectories.adopt import Report, adopt, pairs, runs
from palimpsest.trajectories.provenance import SentenceState, sample_row
from tests.corpora.sources import corpus
from tests.documents import make_document
from tests.releases import record, trajectory, write_release_file

GPT = "default/train/essays_gpt-5.4.csv"


def adopted(
    folder: Path, design: str = "cumulative", wanted: Callable[[str], bool] = bool
) -> tuple[list[dict[str, Any]], Report, list[dict[str, str]]]:
    """The samples, the report and its lines."""
    params = corpus(folder, format="opai-bench")
    documents = {d.doc_id: d for d in release_documents(params).documents}
    with Report(folder / "release.csv") as report:
        rows = list(adopt(params, design, documents, wanted, report))
    with report.path.open(encoding="utf-8", newline="") as file:
        return rows, report, list(csv.DictReader(file))


def changed(document: Document, at: int, /, **values: Any) -> list[dict[str, Any]]:
    """A trajectory of GPT-5.4 with other values in one version."""
    rows = trajectory(document, "gpt-5.4")
    rows[at].update(values)
    return rows


@pytest.mark.parametrize("old", [False, True])
def test_a_consistent_release_is_adopted_without_a_remark(tmp_path: Path, old: bool) -> None:
    document = make_document(n=10)
    records = trajectory(document, "gpt-5.4")
    write_release_file(tmp_path, GPT, records, old=old)
    rows, report, lines = adopted(tmp_path)
    assert lines == []
    assert report.counts == {
        ("gpt-5.4", "row", "adopted"): 9,
        ("gpt-5.4", "trajectory", "complete"): 1,
    }
    assert [row["sample_id"] for row in rows] == [f"d1/gpt-5.4/cumulative/v{v}" for v in range(9)]
    for row, released in zip(rows, records, strict=True):
        assert row["text"] == released["text"]
        assert pairs(row["ai_spans"]) == released["ai_spans_char"]
        assert row["word_labels"] == released["token_labels"]
        assert row["sentence_labels"] == released["sentence_labels"]
        assert row["operation"] == released["edit_operation"]
        assert row["label"] == int(released["version"] != "v0")
    assert [row["target_coverage"] for row in rows] == [0, 15, 25, 40, 50, 60, 75, 90, 100]


def test_a_sample_is_the_one_that_generation_would_have_written(tmp_path: Path) -> None:
    document = make_document()
    write_release_file(tmp_path, GPT, trajectory(document, "gpt-5.4"))
    rows, _, _ = adopted(tmp_path)
    states = [SentenceState(s.id, s.paragraph, s.text) for s in document.sentences]
    made = sample_row(
        document, states, generator="gpt-5.4", prompt_set=RELEASED, design="cumulative", variant="",
        version="v0", operation="none", coverage=0,
    )  # fmt: skip
    write_rows(tmp_path / "adopted.parquet", TEXTS, rows[:1])
    write_rows(tmp_path / "made.parquet", TEXTS, [made])
    assert list(read_rows(tmp_path / "adopted.parquet")) == list(
        read_rows(tmp_path / "made.parquet")
    )


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("tokens", ["other"]),
        ("tokens", "no list"),
        ("token_labels", [0] * 90),
        ("sentence_labels", [0] * 10),
        ("ai_spans_token", [[0, 1]]),
        ("ai_sentence_ratio", 0.9),
        ("ai_token_ratio", "many"),
        ("ai_char_ratio", 0.9),
        ("text_tagged", "<AI_Start>other</AI_End>"),
        ("split", "dev"),
        ("edit_operation", "expand"),
    ],
)
def test_a_column_that_disagrees_is_reported_and_the_row_kept(
    tmp_path: Path, column: str, value: Any
) -> None:
    document = make_document(n=10)
    write_release_file(tmp_path, GPT, changed(document, 3, **{column: value}))
    rows, report, lines = adopted(tmp_path)
    assert len(rows) == 9
    (line,) = lines
    assert (line["file"], line["row"], line["column"]) == (GPT, "4", column)
    assert line["verdict"] == "derived"
    assert line["released"] != line["derived"]
    assert report.counts["gpt-5.4", "column", column] == 1


def test_older_spellings_of_domains_and_operations_are_no_disagreement(tmp_path: Path) -> None:
    rows = changed(make_document(), 3, domain="essay", edit_operation="style_rewrite")
    write_release_file(tmp_path, GPT, rows, old=True)
    found, _, lines = adopted(tmp_path)
    assert (found[3]["domain"], found[3]["operation"]) == ("essays", "style")
    assert lines == []


def test_rounded_ratios_agree(tmp_path: Path) -> None:
    rows = trajectory(make_document(), "gpt-5.4")
    for row in rows:
        row["ai_char_ratio"] = round(row["ai_char_ratio"], 4)
    write_release_file(tmp_path, GPT, rows)
    assert adopted(tmp_path)[2] == []


@pytest.mark.parametrize(
    ("column", "value", "reason"),
    [
        ("ai_spans_char", "[[5]]", "ai_spans_char: no list of pairs"),
        ("ai_spans_char", "none", "ai_spans_char: no list of pairs"),
        ("ai_spans_char", "[[9000, 9001]]", "ai_spans_char: a span outside the text"),
        ("ai_spans_char", "[[0.5, 5]]", "ai_spans_char: no list of pairs"),
        ("ai_spans_char", "[[-3, 5]]", "ai_spans_char: a span outside the text"),
        ("ai_spans_char", "[[0, 9], [8, 12]]", "ai_spans_char: spans that overlap"),
        ("text", "", "empty text"),
        ("sentences", "['One.' 'Two.']", "sentences: one is not in the text where it should be"),
        ("version", "v9", "version: unknown"),
    ],
)
def test_a_row_that_cannot_be_used_is_rejected_with_a_reason(
    tmp_path: Path, column: str, value: str, reason: str
) -> None:
    write_release_file(tmp_path, GPT, changed(make_document(), 8, **{column: value}))
    rows, report, lines = adopted(tmp_path)
    assert len(rows) == 8
    assert [(line["row"], line["verdict"], line["column"]) for line in lines] == [
        ("9", "rejected", reason)
    ]
    assert report.counts["gpt-5.4", "row", f"rejected: {reason}"] == 1
    assert report.counts["gpt-5.4", "trajectory", "complete"] == 1


def test_sentences_that_ran_together_are_not_adopted_as_one(tmp_path: Path) -> None:
    rows = trajectory(make_document(), "gpt-5.4")
    rows[1]["sentences"] = "[" + " ".join(map(repr, rows[1]["sentences"])) + "]"
    write_release_file(tmp_path, GPT, rows)
    assert [line["column"] for line in adopted(tmp_path)[2]] == [
        "sentences: not as many as sentence_labels"
    ]


def test_a_span_beyond_the_text_is_cut_and_an_empty_one_dropped(tmp_path: Path) -> None:
    rows = trajectory(make_document(), "gpt-5.4")
    end = len(rows[8]["text"])
    rows[8]["ai_spans_char"][-1][1] = end + 1
    rows[8]["ai_spans_char"].insert(0, [0, 0])
    write_release_file(tmp_path, GPT, rows)
    found, _, lines = adopted(tmp_path)
    assert found[8]["ai_spans"][-1][1] == end
    assert found[8]["ai_spans"][0] == found[8]["sentence_spans"][0]
    assert [line["column"] for line in lines] == ["ai_spans_char"]


def test_a_span_that_is_no_sentence_labels_the_sentences_that_it_touches(tmp_path: Path) -> None:
    rows = trajectory(make_document(n=10), "gpt-5.4")
    _, end = rows[8]["ai_spans_char"][0]
    rows[1]["ai_spans_char"] = [[end - 5, end]]
    write_release_file(tmp_path, GPT, rows)
    found, _, lines = adopted(tmp_path)
    assert sum(found[1]["sentence_labels"]) >= 1
    assert found[1]["ai_spans"] == [(end - 5, end)]
    assert "ai_spans_char" in {line["column"] for line in lines}


def test_a_revised_version_without_ai_text_stays_ai_and_is_reported(tmp_path: Path) -> None:
    bare = record(make_document(), "gpt-5.4", "v0", "none", 0)
    rows = changed(make_document(), 1, **{**bare, "version": "v1", "edit_operation": "polish"})
    write_release_file(tmp_path, GPT, rows)
    found, _, lines = adopted(tmp_path)
    assert (found[1]["label"], sum(found[1]["sentence_labels"])) == (1, 0)
    assert [line["derived"] for line in lines] == ["no AI sentence in v1"]


def test_a_human_version_with_ai_text_is_rejected(tmp_path: Path) -> None:
    write_release_file(tmp_path, GPT, changed(make_document(), 0, ai_spans_char=[[0, 10]]))
    _, _, lines = adopted(tmp_path)
    assert [line["column"] for line in lines] == ["ai_spans_char: the human version has AI text"]


def test_lost_sentences_get_ids_of_their_own(tmp_path: Path) -> None:
    shorter = record(make_document(n=9), "gpt-5.4", "v8", "polish", 100)
    write_release_file(tmp_path, GPT, changed(make_document(n=10), 8, **shorter))
    rows, _, lines = adopted(tmp_path)
    assert rows[8]["sentence_ids"][0] == "r0001"
    assert rows[7]["sentence_ids"][0] == "s0001"
    assert [(line["column"], line["released"]) for line in lines] == [("sentences", "9 sentences")]


def test_incomplete_trajectories_and_repeated_samples_are_counted(tmp_path: Path) -> None:
    rows = [
        *trajectory(make_document("d1"), "gpt-5.4"),
        *trajectory(make_document("d2"), "gpt-5.4"),
    ]
    write_release_file(tmp_path, GPT, [*rows[:-2], rows[0]])
    found, report, _ = adopted(tmp_path)
    assert len(found) == 16
    assert report.counts["gpt-5.4", "trajectory", "incomplete"] == 1
    assert (
        report.counts["gpt-5.4", "row", "rejected: repeated: the sample was in an earlier row"] == 1
    )


def test_only_the_generators_and_documents_asked_for_are_adopted(tmp_path: Path) -> None:
    write_release_file(tmp_path, GPT, trajectory(make_document(), "gpt-5.4"))
    other = "default/train/essays_gemini-2.5-flash.csv"
    write_release_file(tmp_path, other, trajectory(make_document(), "gemini-2.5-flash"))
    rows, report, _ = adopted(tmp_path, wanted=lambda name: name != "gpt-5.4")
    assert {row["generator"] for row in rows} == {"gemini-2.5-flash"}
    assert {generator for generator, _, _ in report.counts} == {"gemini-2.5-flash"}
    params = corpus(tmp_path, format="opai-bench")
    with Report(tmp_path / "release.csv") as report:
        assert list(adopt(params, "cumulative", {}, bool, report)) == []
    assert report.counts["gpt-5.4", "row", "left out: document not taken"] == 9


def test_documents_of_a_domain_that_was_not_taken_are_not_mixed_up(tmp_path: Path) -> None:
    for domain in ("essays", "news"):
        rows = trajectory(make_document("1", domain=domain), "gpt-5.4")
        write_release_file(tmp_path, f"default/train/{domain}_gpt-5.4.csv", rows)
    params = corpus(tmp_path, format="opai-bench", domains=["news"])
    documents = {d.doc_id: d for d in release_documents(params).documents}
    with Report(tmp_path / "release.csv") as report:
        found = list(adopt(params, "cumulative", documents, bool, report))
    assert [row["domain"] for row in found] == ["news"] * 9


def test_a_rejected_row_is_one_line_whatever_else_is_wrong_with_it(tmp_path: Path) -> None:
    rows = changed(make_document(), 3, tokens="?", version="v9", ai_char_ratio=0.9)
    write_release_file(tmp_path, GPT, rows)
    _, report, lines = adopted(tmp_path)
    assert [line["verdict"] for line in lines] == ["rejected"]
    assert not any(kind == "column" for _, kind, _ in report.counts)


def test_a_human_row_that_no_revision_follows_is_rejected(tmp_path: Path) -> None:
    rows = [record(make_document(), "gemini-2.5-flash", "base", "none", 0)]
    write_release_file(tmp_path, "ablations/train/ablation2_essays_gemini-2.5-flash.csv", rows)
    found, report, lines = adopted(tmp_path, "operation")
    assert found == []
    assert [line["column"] for line in lines] == ["human row without any revised version"]
    assert report.counts["gemini-2.5-flash", "row", "adopted"] == 0


def write_coverage(folder: Path, versions: Sequence[str], **values: Any) -> None:
    rows = [
        {
            **record(make_document(n=12), "gemini-2.5-flash", version, "expand", level),
            "edit_operation": "expand" if level else "none",
            **values,
        }
        for version, level in zip(versions, (0, 25, 50, 75, 100), strict=True)
    ]
    write_release_file(folder, "ablations/train/ablation1_essays_expand_gemini-2.5-flash.csv", rows)


@pytest.mark.parametrize(
    "versions",
    [
        ["cov00", "cov25", "cov50", "cov75", "cov100"],
        ["c000", "c025", "c050", "c075", "c100"],
        ["v0", "v1", "v2", "v3", "v4"],  # told by the number of AI sentences
    ],
)
def test_ablation_1_is_the_design_coverage(tmp_path: Path, versions: list[str]) -> None:
    write_coverage(tmp_path, versions)
    rows, _, lines = adopted(tmp_path, "coverage")
    assert lines == []
    assert [row["sample_id"] for row in rows] == [
        f"d1/gemini-2.5-flash/coverage/expand/c{level:03}" for level in (0, 25, 50, 75, 100)
    ]
    assert [row["operation"] for row in rows] == ["none", *["expand"] * 4]
    assert {row["variant"] for row in rows} == {"expand"}
    assert [row["target_coverage"] for row in rows] == [0, 25, 50, 75, 100]


def test_the_target_that_older_rows_carry_names_the_coverage(tmp_path: Path) -> None:
    document = make_document(n=12)
    rows = [
        {**record(document, "gemini-2.5-flash", "v0", "none", 0), "C_sent_target": 0.0},
        {**record(document, "gemini-2.5-flash", "v1", "expand", 10), "C_sent_target": 0.1},
        {**record(document, "gemini-2.5-flash", "v2", "expand", 10), "C_sent_target": "x"},
        {**record(document, "gemini-2.5-flash", "v3", "expand", 10), "C_sent_target": ""},
        {**record(document, "gemini-2.5-flash", "v4", "expand", 10), "C_sent_target": 10},
    ]
    write_release_file(
        tmp_path, "ablations/train/ablation1_essays_expand_gemini-2.5-flash.csv", rows
    )
    found, _, lines = adopted(tmp_path, "coverage")
    assert [row["version"] for row in found] == ["c000", "c010"]
    assert [line["column"] for line in lines] == [
        "C_sent_target: no number",
        "coverage: neither named nor told by the number of AI sentences",
        "coverage: not from 1 to 100",
    ]


def test_ablation_2_is_the_design_operation_with_a_human_text_for_each_coverage(
    tmp_path: Path,
) -> None:
    document = make_document(n=12)
    rows = [record(document, "gemini-2.5-flash", "base", "none", 0)] + [
        record(document, "gemini-2.5-flash", f"{operation}_{level}", operation, level)
        for level in (25, 50)
        for operation in ("compress", "paraphrase")
    ]
    write_release_file(tmp_path, "ablations/test/ablation2_essays_gemini-2.5-flash.csv", rows)
    found, report, lines = adopted(tmp_path, "operation")
    assert [line["column"] for line in lines] == ["split"] * 5  # the records say train
    assert [row["sample_id"] for row in found] == [
        f"d1/gemini-2.5-flash/operation/{level}/{version}"
        for level in (25, 50)
        for version in ("v0", "compress", "paraphrase")
    ]
    assert {row["trajectory_id"] for row in found} == {
        "d1/gemini-2.5-flash/operation/25",
        "d1/gemini-2.5-flash/operation/50",
    }
    assert report.counts["gemini-2.5-flash", "row", "adopted"] == 5
    write_release_file(
        tmp_path, "ablations/test/ablation2_essays_gemini-2.5-flash.csv", [*rows[1:], rows[0]]
    )
    later, _, _ = adopted(tmp_path, "operation")
    assert sorted(row["sample_id"] for row in later) == sorted(row["sample_id"] for row in found)


def test_ablation_3_is_the_design_independent(tmp_path: Path) -> None:
    rows = trajectory(make_document(), "gemini-2.5-flash")
    write_release_file(tmp_path, "ablations/train/ablation3_essays_gemini-2.5-flash.csv", rows)
    found, _, lines = adopted(tmp_path, "independent")
    assert [row["trajectory_id"] for row in found] == ["d1/gemini-2.5-flash/independent"] * 9
    assert lines == []
    with pytest.raises(InputError, match="no texts of the design 'cumulative'"):
        adopted(tmp_path, "cumulative")


def test_runs_are_the_maximal_ones() -> None:
    assert runs([1, 1, 0, 0, 1]) == [[0, 2], [4, 5]]
    assert runs([]) == runs([0]) == []
