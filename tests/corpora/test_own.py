import json
from pathlib import Path

import pytest

from palimpsest.corpora import demo, own
from palimpsest.corpora.build import build_documents
from palimpsest.corpora.data_folder import dvc_md5
from palimpsest.corpora.own import add
from palimpsest.errors import InputError
from tests.corpora.sources import corpus, write_csv, write_jsonl

HEADER = ("essay_id", "full_text")


def put_demo(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that is taken for the demo's."""
    folder.mkdir()
    for name in demo.DEMO_FILES:
        (folder / name).write_text('{"id": "old", "text": "Old."}\n')
    (folder / "README.md").write_bytes(Path(demo.__file__).with_name("demo.md").read_bytes())
    monkeypatch.setattr(own, "DEMO_MD5", dvc_md5(folder))
    return folder


def test_texts_are_added_as_they_stand_under_the_name_of_their_domain(tmp_path: Path) -> None:
    rows = [("007", "NA"), ("a/b", 'A "text"\r\nof two lines.'), (" ", "")]
    source = write_csv(tmp_path / "train.csv", [HEADER, *rows])
    folder = tmp_path / "data" / "opai-bench"
    assert add(folder, source, "student essays", "essay_id", "full_text") == 3
    assert [file.name for file in folder.iterdir()] == ["student essays.jsonl"]
    lines = (folder / "student essays.jsonl").read_text(encoding="utf-8").splitlines()
    assert [(line["id"], line["text"]) for line in map(json.loads, lines)] == rows


def test_what_was_added_is_a_source(tmp_path: Path) -> None:
    source = write_csv(tmp_path / "train.csv", [HEADER, ("007", "It rained. It poured.")])
    add(tmp_path / "data", source, "essays", "essay_id", "full_text")
    [document] = build_documents(corpus(tmp_path / "data")).documents
    assert (document.doc_id, len(document.sentences)) == ("007", 2)


def test_the_demo_makes_room_as_a_whole_and_own_texts_add_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = put_demo(tmp_path / "data", monkeypatch)
    (folder / "notes.txt").write_text("mine")
    source = write_jsonl(tmp_path / "own.jsonl", [{"id": 1, "text": "New."}])
    add(folder, source, "essays", "id", "text")
    assert sorted(file.name for file in folder.iterdir()) == ["essays.jsonl", "notes.txt"]
    add(folder, source, "reports", "id", "text")
    assert sorted(file.name for file in folder.glob("*.jsonl")) == ["essays.jsonl", "reports.jsonl"]


def test_files_of_ones_own_beside_or_in_the_demo_are_not_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = put_demo(tmp_path / "data", monkeypatch)
    (folder / "news.jsonl").write_text("mine")
    source = write_jsonl(tmp_path / "own.jsonl", [{"id": 1, "text": "New."}])
    with pytest.raises(InputError, match=r"not as it was made: delete .*README\.md to keep"):
        add(folder, source, "letters", "id", "text")
    assert (folder / "news.jsonl").read_text() == "mine"
    (folder / "news.jsonl").write_bytes((folder / "essays.jsonl").read_bytes())
    (folder / "letters.csv").write_text("mine")
    with pytest.raises(InputError, match=r"letters\.csv is there already"):
        add(folder, source, "letters", "id", "text")


def test_a_changed_demo_without_its_readme_is_ones_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = put_demo(tmp_path / "data", monkeypatch)
    (folder / "news.jsonl").write_text("mine")
    source = write_jsonl(tmp_path / "own.jsonl", [{"id": 1, "text": "New."}])
    (folder / "README.md").unlink()
    add(folder, source, "letters", "id", "text")
    assert (folder / "news.jsonl").read_text() == "mine"
    assert (folder / "essays.jsonl").is_file()


def test_own_texts_are_never_overwritten(tmp_path: Path) -> None:
    present = write_csv(tmp_path / "essays.csv", [("id", "text"), ("1", "Mine.")])
    before = present.read_bytes()
    source = write_jsonl(tmp_path / "new.jsonl", [{"id": 1, "text": "New."}])
    with pytest.raises(InputError, match=r"essays\.csv is there already: delete it first"):
        add(tmp_path, source, "essays", "id", "text")
    assert present.read_bytes() == before


@pytest.mark.parametrize(
    ("domain", "column", "complaint"),
    [
        ("../essays", "id", "--domain '../essays'"),
        (".essays", "id", "--domain '.essays'"),
        ("essays", "essay_id", "--id-column"),
    ],
)
def test_a_failed_call_leaves_the_folder_as_it_was(
    domain: str, column: str, complaint: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = put_demo(tmp_path / "data", monkeypatch)
    before = sorted(file.name for file in folder.iterdir())
    source = write_jsonl(tmp_path / "new.jsonl", [{"id": 1, "text": "New."}])
    with pytest.raises(InputError, match=complaint):
        add(folder, source, domain, column, "text")
    assert sorted(file.name for file in folder.iterdir()) == before


def test_a_source_needs_rows(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"nowhere\.csv does not exist"):
        add(tmp_path / "data", tmp_path / "nowhere.csv", "essays", "id", "text")
    empty = write_csv(tmp_path / "empty.csv", [("id", "text")])
    with pytest.raises(InputError, match=r"empty\.csv holds no row"):
        add(tmp_path / "data", empty, "essays", "id", "text")


def test_a_file_that_cannot_be_read_leaves_no_folder(tmp_path: Path) -> None:
    source = write_csv(tmp_path / "train.csv", [HEADER, ("007", "It rained.")])
    with pytest.raises(InputError, match="no column 'body'"):
        add(tmp_path / "data", source, "essays", "essay_id", "body")
    assert not (tmp_path / "data").exists()
