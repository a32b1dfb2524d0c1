from pathlib import Path
from typing import Any

import pytest

from palimpsest.corpora.opai_bench import (
    fetch,
    listed,
    release_documents,
    release_files,
)
from palimpsest.errors import InputError
from palimpsest.splits import assign
from tests.corpora.sources import corpus
from tests.documents import make_document
from tests.releases import plain_text, trajectory, write_release_file

GPT = "default/train/essays_gpt-5.4.csv"
GEMINI = "default/train/essays_gemini-2.5-flash.csv"


def source(folder: Path, **values: Any) -> Any:
    return corpus(folder, format="opai-bench", **values)


def test_documents_come_from_v0_once_whatever_the_number_of_generators(tmp_path: Path) -> None:
    document = make_document(n=10)
    write_release_file(tmp_path, GPT, trajectory(document, "gpt-5.4"))
    write_release_file(tmp_path, GEMINI, trajectory(document, "gemini-2.5-flash"), old=True)
    built = release_documents(source(tmp_path))
    (found,) = built.documents
    assert found.sentences == document.sentences
    assert (found.split, found.doc_id) == ("train", "d1")
    assert not built.rejections
    assert built.counts["essays"].read == built.counts["essays"].kept == 1


def test_the_folder_gives_the_split_and_equal_texts_one_group(tmp_path: Path) -> None:
    for name, split in (("d1", "train"), ("d2", "train"), ("d3", "test")):
        rows = trajectory(make_document(name), "gpt-5.4", split)
        write_release_file(tmp_path, f"default/{split}/{name}_gpt-5.4.csv", rows)
    documents = release_documents(source(tmp_path)).documents
    assert {d.doc_id: (d.split, d.group) for d in documents} == {
        "d1": ("train", "d1"),
        "d2": ("train", "d1"),
        "d3": ("test", "d3"),  # the release has this text in another split
    }
    assert assign(documents) == {"d1": "train", "d3": "test"}


@pytest.mark.parametrize(
    ("column", "value", "reason"),
    [
        ("text", "Something else.", "sentences: one is not in the text where it should be"),
        ("sentences", "[1, 2]", "sentences: an entry that is empty or no text"),
        ("sentences", "a, b", "sentences: no list"),
        ("sentences", '["only this"]', "sentences: one is not in the text where it should be"),
        ("text", " ", "empty text"),
    ],
)
def test_a_v0_that_differs_or_is_broken_is_rejected_with_its_place(
    tmp_path: Path, column: str, value: str, reason: str
) -> None:
    document = make_document()
    write_release_file(tmp_path, GPT, trajectory(document, "gpt-5.4"))
    rows = trajectory(document, "nano")
    rows[0][column] = value
    write_release_file(tmp_path, "default/train/essays_nano.csv", rows)
    built = release_documents(source(tmp_path))
    assert [d.doc_id for d in built.documents] == ["d1"]
    (rejection,) = built.rejections
    assert rejection.reason == reason
    assert rejection.place == "default/train/essays_nano.csv, row 1"


def test_another_text_or_split_of_a_known_document_is_rejected(tmp_path: Path) -> None:
    write_release_file(tmp_path, GPT, trajectory(make_document("d1", 10), "gpt-5.4"))
    other = [{**row, "id": "d1"} for row in trajectory(make_document("d1", 11), "nano")]
    write_release_file(tmp_path, "default/train/essays_nano.csv", other)
    moved = trajectory(make_document("d1", 10), "mini", "test")
    write_release_file(tmp_path, "default/test/essays_mini.csv", moved)
    built = release_documents(source(tmp_path))
    assert len(built.documents) == 1
    assert [r.reason for r in built.rejections] == [
        "split differs from the one read first",
        "v0 differs from the one read first",
    ]


def test_a_document_without_v0_is_rejected(tmp_path: Path) -> None:
    rows = (
        trajectory(make_document("d1"), "gpt-5.4") + trajectory(make_document("d2"), "gpt-5.4")[1:]
    )
    write_release_file(tmp_path, GPT, rows)
    built = release_documents(source(tmp_path))
    assert [(r.doc_id, r.reason) for r in built.rejections] == [("d2", "no usable v0")]
    count = built.counts["essays"]
    assert (count.read, count.kept, count.rejected) == (2, 1, 1)


def test_white_space_within_the_listed_sentences_may_differ_from_the_text(tmp_path: Path) -> None:
    rows = trajectory(make_document(), "gpt-5.4")
    for row in rows:
        row["text"] = row["text"].replace(" was ", "\nwas ")
    write_release_file(tmp_path, GPT, rows)
    (document,) = release_documents(source(tmp_path)).documents
    assert document.sentences == make_document().sentences


@pytest.mark.parametrize("column", ["id", "doc_id", "essay_id", "record_id"])
def test_the_column_that_versions_share_names_the_document(tmp_path: Path, column: str) -> None:
    rows = [
        {**{k: v for k, v in row.items() if k not in ("id", "record_id")}, "record_id": f"r{i}",
         column: name}
        for name in ("d1", "d2")
        for i, row in enumerate(trajectory(make_document(name), "gpt-5.4"))
    ]  # fmt: skip
    write_release_file(tmp_path, GPT, rows)
    assert [d.doc_id for d in release_documents(source(tmp_path)).documents] == ["d1", "d2"]


def test_an_id_of_each_row_alone_says_not_what_is_one_document(tmp_path: Path) -> None:
    rows = [
        {k: v for k, v in row.items() if k != "id"}
        for row in trajectory(make_document(), "gpt-5.4")
    ]
    write_release_file(tmp_path, GPT, rows)
    with pytest.raises(InputError, match="no column says which rows are versions of one document"):
        release_documents(source(tmp_path))


def test_domains_that_share_ids_need_qualified_ones(tmp_path: Path) -> None:
    for domain in ("essays", "news"):
        rows = trajectory(make_document("1", domain=domain), "gpt-5.4")
        write_release_file(tmp_path, f"default/train/{domain}_gpt-5.4.csv", rows)
    with pytest.raises(InputError, match="qualify_ids=true"):
        release_documents(source(tmp_path))
    built = release_documents(source(tmp_path, qualify_ids=True))
    assert [d.doc_id for d in built.documents] == ["essays/1", "news/1"]


def test_samples_and_domains_are_chosen_as_in_any_corpus(tmp_path: Path) -> None:
    for domain in ("essays", "news"):
        rows = [
            row
            for i in range(4)
            for row in trajectory(make_document(f"{domain}{i}", domain=domain), "gpt-5.4")
        ]
        write_release_file(tmp_path, f"default/train/{domain}_gpt-5.4.csv", rows)
    two = release_documents(source(tmp_path, documents_per_domain=2, domains=["news"]))
    three = release_documents(source(tmp_path, documents_per_domain=3))
    assert len(two.documents) == 2
    assert {d.doc_id for d in two.documents} < {d.doc_id for d in three.documents}
    assert three.counts["news"].not_sampled == 1
    assert len(release_documents(source(tmp_path, limit=3)).documents) == 3
    with pytest.raises(InputError, match="did you mean 'news'"):
        release_documents(source(tmp_path, domains=["new"]))


def test_paragraphs_are_the_texts_own(tmp_path: Path) -> None:
    write_release_file(tmp_path, GPT, trajectory(make_document(n=10), "gpt-5.4"))
    (document,) = release_documents(source(tmp_path)).documents
    assert plain_text(document) == trajectory(make_document(n=10), "gpt-5.4")[0]["text"]


def test_lists_are_json_or_literals_and_nothing_is_evaluated() -> None:
    assert listed('["a\\n", "\\u4e2d"]') == ["a\n", "中"]
    assert listed("['it\\'s', \"a\"]") == ["it's", "a"]
    assert listed("[(0, 3), [5, 8]]") == [(0, 3), [5, 8]]
    for text in ("__import__('os').getcwd()", "{}", "'a'", "[1", "", "[x]", "[" * 100_000):
        with pytest.raises(ValueError, match=r"."):  # each parser has words of its own
            listed(text)


def test_a_missing_column_names_file_and_both_its_names(tmp_path: Path) -> None:
    rows = [
        {k: v for k, v in row.items() if k != "text"} for row in trajectory(make_document(), "gpt")
    ]
    write_release_file(tmp_path, GPT, rows)
    with pytest.raises(InputError, match=r"essays_gpt-5.4.csv: no column text or text_clean among"):
        release_documents(source(tmp_path))


def test_a_folder_without_the_releases_files_is_no_release(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="is no OpAI-Bench release"):
        release_documents(source(tmp_path))
    write_release_file(tmp_path, "ablations/train/ablation4_essays_g.csv", [])
    with pytest.raises(InputError, match="unknown ablation 'ablation4'"):
        release_files(tmp_path)


def test_the_hub_out_of_reach_is_said_with_the_way_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    with pytest.raises(InputError, match="name their folder in"):
        fetch("OWNER/NAME@main", tmp_path)
    with pytest.raises(InputError, match="write OWNER/NAME"):
        fetch("nowhere", tmp_path)
