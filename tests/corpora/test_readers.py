from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from palimpsest.corpora.readers import Raw, read_source, read_table
from palimpsest.errors import InputError
from tests.corpora.sources import corpus, write_csv, write_jsonl, write_parquet

# Ids and texts that a reader which guesses types, or cleans up, would change.
ROWS = [
    ("007", "NA"),
    ("a/b/../c", "null"),
    (" blank ", "1e5"),
    ("7", "nan"),
    ("ü", 'Two "quoted"\nlines, <AI_Start>\r\n\u2028'),
    ("last", ""),
]


def as_csv(folder: Path, name: str = "essays") -> Path:
    return write_csv(folder / f"{name}.csv", [("id", "text"), *ROWS])


def as_tsv(folder: Path, name: str = "essays") -> Path:
    return write_csv(folder / f"{name}.tsv", [("id", "text"), *ROWS], delimiter="\t")


def as_jsonl(folder: Path, name: str = "essays") -> Path:
    return write_jsonl(folder / f"{name}.jsonl", [{"id": i, "text": t} for i, t in ROWS])


def as_parquet(folder: Path, name: str = "essays") -> Path:
    columns = {"id": [i for i, _ in ROWS], "text": [t for _, t in ROWS]}
    return write_parquet(folder / f"{name}.parquet", columns)


FORMATS = [as_csv, as_tsv, as_jsonl, as_parquet]


@pytest.mark.parametrize("write", FORMATS)
def test_values_are_read_as_they_stand(write: Callable[[Path], Path], tmp_path: Path) -> None:
    path = write(tmp_path)
    assert list(read_source(corpus(tmp_path))) == [
        Raw(doc_id, "essays", text, f"{path}, row {number}")
        for number, (doc_id, text) in enumerate(ROWS, start=1)
    ]


@pytest.mark.parametrize("write", FORMATS)
def test_a_missing_column_names_file_columns_and_fix(
    write: Callable[[Path], Path], tmp_path: Path
) -> None:
    path = write(tmp_path)
    with pytest.raises(InputError) as caught:
        list(read_source(corpus(tmp_path, text_column="full_text")))
    message = str(caught.value)
    assert f"{path}, row 1: no column 'full_text' among id, text" in message
    assert "-S corpus.text_column=NAME" in message
    assert "\n" not in message


def test_a_missing_column_has_the_nearest_one_as_a_hint(tmp_path: Path) -> None:
    path = write_csv(tmp_path / "a.csv", [("essay_id", "full_text"), ("1", "a")])
    with pytest.raises(InputError, match=r"among essay_id, full_text: did you mean 'full_text'\?"):
        list(read_table(path, "essay_id", "text"))


def test_json_numbers_keep_their_digits_and_null_is_no_text(tmp_path: Path) -> None:
    path = tmp_path / "news.jsonl"
    path.write_text('{"id": 12, "text": 1.50}\n{"id": 1e5, "text": null}\n{"id":true,"text":NaN}\n')
    assert [(row.id, row.text) for row in read_table(path, "id", "text")] == [
        ("12", "1.50"),
        ("1e5", ""),
        ("true", "NaN"),
    ]


def test_parquet_numbers_become_texts(tmp_path: Path) -> None:
    path = write_parquet(tmp_path / "news.parquet", {"id": [7, 8], "text": ["a", None]})
    assert [(row.id, row.text) for row in read_table(path, "id", "text")] == [("7", "a"), ("8", "")]


def test_a_byte_order_mark_is_no_part_of_the_first_column(tmp_path: Path) -> None:
    path = tmp_path / "news.csv"
    path.write_bytes("\ufeffid,text\n1,a\n".encode())
    assert [row.id for row in read_table(path, "id", "text")] == ["1"]


def test_a_field_may_be_as_long_as_a_book(tmp_path: Path) -> None:
    path = write_csv(tmp_path / "reports.csv", [("id", "text"), ("1", "word " * 100_000)])
    assert [len(row.text) for row in read_table(path, "id", "text")] == [500_000]


def test_other_files_of_a_folder_are_no_domains(tmp_path: Path) -> None:
    as_csv(tmp_path)
    for name in ("README.md", ".news.csv", "notes.txt"):
        (tmp_path / name).write_text("not data")
    assert {raw.domain for raw in read_source(corpus(tmp_path))} == {"essays"}


def test_domains_limit_which_files_are_read(tmp_path: Path) -> None:
    as_csv(tmp_path, "essays")
    as_jsonl(tmp_path, "news")
    (tmp_path / "pairs.csv").write_text("this,has,neither\n")
    raws = list(read_source(corpus(tmp_path, domains=["news"])))
    assert {raw.domain for raw in raws} == {"news"}


def test_one_file_is_a_domain_unless_it_names_them(tmp_path: Path) -> None:
    path = as_csv(tmp_path)
    assert {raw.domain for raw in read_source(corpus(path))} == {"essays"}
    mixed = write_csv(
        tmp_path / "all.csv", [("id", "text", "domain"), ("1", "a", "news"), ("2", "b", "reports")]
    )
    assert [raw.domain for raw in read_source(corpus(mixed))] == ["news", "reports"]
    assert [raw.doc_id for raw in read_source(corpus(mixed, domains=["reports"]))] == ["2"]


def write_text(name: str, content: str | bytes) -> Callable[[Path], Path]:
    def write(folder: Path) -> Path:
        path = folder / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write


@pytest.mark.parametrize(
    ("write", "complaint"),
    [
        (write_text("a.csv", 'id,text\n1,a\n2,"never closed\n3,c\n'), "row 2: unexpected end"),
        (write_text("a.csv", "id,text\n1,a\n2,b,c\n"), "row 2: 3 fields where the header has 2"),
        (write_text("a.csv", "id,text\n1\n"), "row 1: 1 fields where the header has 2"),
        (write_text("a.csv", "id,text,text\n1,a,b\n"), "two columns have the same name"),
        (write_text("a.csv", b"id,text\n1,a\n2,caf\xe9\n"), "not UTF-8: save the file as UTF-8"),
        (write_text("a.jsonl", '{"id": 1, "text": "a"}\n{"id": 2\n'), "row 2: Expecting"),
        (write_text("a.jsonl", "[1, 2]\n"), "row 1: a line is no JSON object"),
        (write_text("a.jsonl", '{"id": 1, "text": ["a"]}\n'), "row 1: a text is expected"),
        (write_text("a.jsonl", '{"id": 1}\n'), "row 1: no column 'text' among id"),
        (write_text("a.parquet", "no parquet"), "row 1: "),
        (write_text("a.xlsx", "no table"), "unknown ending of a data file '.xlsx'"),
        (write_text("a.csv", "id,text,domain\n1,a,\n"), "row 1: the column 'domain' is empty"),
    ],
)
def test_a_broken_file_is_named_with_its_row(
    write: Callable[[Path], Path], complaint: str, tmp_path: Path
) -> None:
    path = write(tmp_path)
    with pytest.raises(InputError) as caught:
        list(read_source(corpus(path)))
    assert complaint in str(caught.value)
    assert path.suffix in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_missing_source_says_how_to_get_one(tmp_path: Path) -> None:
    with pytest.raises(
        InputError, match=r"nowhere does not exist: run `make data` .* corpus\.source"
    ):
        list(read_source(corpus(tmp_path / "nowhere")))


@pytest.mark.parametrize(
    ("domains", "complaint"),
    [
        (["essay"], r"unknown domain 'essay': did you mean 'essays'\?"),
        ("essays", r"corpus\.domains is 'essays': give `all` or a list"),
        ([], r"give `all` or a list"),
    ],
)
def test_domains_must_be_a_list_of_those_that_are_there(
    domains: Any, complaint: str, tmp_path: Path
) -> None:
    as_csv(tmp_path)
    with pytest.raises(InputError, match=complaint):
        list(read_source(corpus(tmp_path, domains=domains)))


def test_a_domain_that_one_file_lacks_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="unknown domain 'news'"):
        list(read_source(corpus(as_csv(tmp_path), domains=["news"])))


def test_a_folder_needs_data_and_one_file_per_domain(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="holds no data file"):
        list(read_source(corpus(tmp_path)))
    as_csv(tmp_path)
    as_jsonl(tmp_path)
    with pytest.raises(InputError, match="name the same domain: keep one"):
        list(read_source(corpus(tmp_path)))


def test_a_blank_line_is_no_row(tmp_path: Path) -> None:
    lines = '{"id": "1", "text": "a"}\n\n{"id": "2", "text": "b"}\n \n'
    path = write_text("a.jsonl", lines)(tmp_path)
    assert [raw.doc_id for raw in read_source(corpus(path))] == ["1", "2"]
