import logging
from pathlib import Path

import pytest

from palimpsest.corpora.build import Built, build_documents
from palimpsest.errors import InputError
from palimpsest.records import DOCUMENTS, document_row, read_documents, write_rows
from tests.corpora.sources import corpus, story, write_csv

HEADER = ("id", "text")


def reasons(built: Built) -> dict[str, str]:
    return {rejection.place.rpartition(" ")[2]: rejection.reason for rejection in built.rejections}


def many(folder: Path, **domains: int) -> Path:
    """A source with so many documents of ten sentences in each domain."""
    for domain, count in domains.items():
        rows = [(f"{domain} {n}", story(10, f"The {domain} number {n}")) for n in range(count)]
        write_csv(folder / f"{domain}.csv", [HEADER, *rows])
    return folder


def test_sentences_and_paragraphs_are_numbered_through_the_document(tmp_path: Path) -> None:
    text = "One came. Two\r\ncame.\r\n\r\n\r\n  Three came."
    write_csv(tmp_path / "news.csv", [HEADER, ("007", text)])
    [document] = build_documents(corpus(tmp_path)).documents
    assert (document.doc_id, document.domain, document.language) == ("007", "news", "en")
    assert [(s.id, s.paragraph, s.text) for s in document.sentences] == [
        ("s0001", "p001", "One came."),
        ("s0002", "p001", "Two came."),
        ("s0003", "p002", "Three came."),
    ]


def test_every_rejected_row_has_a_reason_and_a_place(tmp_path: Path) -> None:
    rows = [
        ("good", story(10)),
        ("short", story(9)),
        ("good", story(11)),
        (" ", story(10)),
        ("nothing", " \n "),
        ("long paragraph", story(13)),
    ]
    path = write_csv(tmp_path / "news.csv", [HEADER, *rows])
    built = build_documents(corpus(tmp_path, min_sentences=10, max_sentences={"default": 12}))
    assert [document.doc_id for document in built.documents] == ["good"]
    assert reasons(built) == {
        "2": "fewer than 10 sentences",
        "3": "repeated id",
        "4": "empty id",
        "5": "empty text",
        "6": "no passage of 10 to 12 sentences at paragraph bounds",
    }
    assert f"{path}, row 2" in [rejection.place for rejection in built.rejections]
    count = built.counts["news"]
    assert (count.read, count.kept, count.rejected, count.not_sampled) == (6, 1, 5, 0)


def test_half_a_character_is_a_rejection(tmp_path: Path) -> None:
    (tmp_path / "news.jsonl").write_text(
        '{"id": "1", "text": "A \\ud83d is no character."}\n{"id": "2", "text": "Fine."}\n'
    )
    built = build_documents(corpus(tmp_path))
    assert reasons(built) == {"1": "half a character (a lone surrogate)"}


@pytest.mark.parametrize("text", ["NA", "null", "007", "<AI_Start> It rained. </AI_End>", "{0}"])
def test_a_text_may_say_anything(text: str, tmp_path: Path) -> None:
    write_csv(tmp_path / "news.csv", [HEADER, ("1", text)])
    [document] = build_documents(corpus(tmp_path)).documents
    assert " ".join(s.text for s in document.sentences) == text


def test_ids_are_opaque_through_the_file_that_holds_them(tmp_path: Path) -> None:
    ids = ["../../etc", "007", "7", " 7 ", "NA", "a\nb", "C:\\x", "ü"]
    write_csv(tmp_path / "news.csv", [HEADER, *((i, f"Text of {i!r}.") for i in ids)])
    built = build_documents(corpus(tmp_path))
    write_rows(tmp_path / "documents.parquet", DOCUMENTS, map(document_row, built.documents))
    assert sorted(d.doc_id for d in read_documents(tmp_path / "documents.parquet")) == sorted(ids)


def test_an_id_that_two_domains_share_is_an_error_until_ids_are_qualified(tmp_path: Path) -> None:
    news = write_csv(tmp_path / "news.csv", [HEADER, ("0", "Other."), ("1", "News.")])
    reports = write_csv(tmp_path / "reports.csv", [HEADER, ("1", "Report.")])
    with pytest.raises(InputError) as caught:
        build_documents(corpus(tmp_path))
    assert f"{news}, row 2 and {reports}, row 1 have the same id '1'" in str(caught.value)
    assert "-S corpus.qualify_ids=true" in str(caught.value)
    built = build_documents(corpus(tmp_path, qualify_ids=True))
    assert [d.doc_id for d in built.documents] == ["news/0", "news/1", "reports/1"]


def test_equal_texts_share_a_group_in_all_domains_and_are_all_kept(tmp_path: Path) -> None:
    same = [story(12) + "\n\n" + story(12, "A dog"), story(12) + " \r\n" + story(12, "A dog")]
    write_csv(tmp_path / "essays.csv", [HEADER, ("b", same[0]), ("c", "Something else.")])
    write_csv(tmp_path / "news.csv", [HEADER, ("d", same[1]), ("a", " " + same[0])])
    built = build_documents(corpus(tmp_path, max_sentences={"default": 12, "news": None}))
    groups = {document.doc_id: document.group for document in built.documents}
    assert groups == {"a": "a", "b": "a", "c": "c", "d": "a"}


def test_a_long_document_gives_a_passage_of_its_own_paragraphs(tmp_path: Path) -> None:
    text = "\n\n".join(story(4, f"The cat {number}") for number in range(20))
    write_csv(tmp_path / "reports.csv", [HEADER, ("r", text)])
    write_csv(tmp_path / "news.csv", [HEADER, ("n", text)])
    built = build_documents(
        corpus(tmp_path, min_sentences=10, max_sentences={"default": None, "reports": 12})
    )
    whole, passage = built.documents
    assert (whole.doc_id, len(whole.sentences)) == ("n", 80)
    assert (passage.doc_id, len(passage.sentences)) == ("r", 12)
    assert passage.sentences[0].id == "s0001"
    assert [s.paragraph for s in passage.sentences] == [
        f"p{number:03}" for number in (1, 2, 3) for _ in range(4)
    ]
    texts = [s.text for s in whole.sentences]
    start = texts.index(passage.sentences[0].text)
    assert start % 4 == 0
    assert texts[start : start + 12] == [s.text for s in passage.sentences]


@pytest.mark.parametrize("key", ["documents_per_domain", "limit"])
def test_a_larger_sample_holds_the_smaller_one(key: str, tmp_path: Path) -> None:
    source = many(tmp_path, essays=25, news=9, reports=3)
    smaller: set[str] = set()
    for size in (1, 2, 3, 4, 7, 12, 20, 40):
        larger = {d.doc_id for d in build_documents(corpus(source, **{key: size})).documents}
        assert smaller <= larger
        smaller = larger
    assert len(smaller) == 37


def test_a_sample_is_no_matter_of_the_order_of_rows(tmp_path: Path) -> None:
    rows = [(str(n), story(8 + n % 5, f"Cat {n}")) for n in range(40)]
    built = []
    for name, order in (("forth", rows), ("back", rows[::-1])):
        (tmp_path / name).mkdir()
        write_csv(tmp_path / name / "news.csv", [HEADER, *order])
        built.append(
            build_documents(corpus(tmp_path / name, min_sentences=10, documents_per_domain=5))
        )
    assert built[0].documents == built[1].documents
    assert [r.doc_id for r in built[0].rejections] == [r.doc_id for r in built[1].rejections]
    count = built[0].counts["news"]
    assert count.kept == 5
    assert count.read == 40 == count.kept + count.rejected + count.not_sampled
    assert count.not_sampled > 0


def test_a_limit_is_spread_over_the_domains(tmp_path: Path) -> None:
    built = build_documents(corpus(many(tmp_path, essays=12, news=6, reports=2), limit=10))
    assert {d: c.kept for d, c in built.counts.items()} == {"essays": 6, "news": 3, "reports": 1}
    assert {d: c.not_sampled for d, c in built.counts.items()} == {
        "essays": 6,
        "news": 3,
        "reports": 1,
    }


def test_too_few_documents_are_a_warning(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        build_documents(corpus(many(tmp_path, essays=5, news=2), documents_per_domain=3))
    assert [record.getMessage() for record in caplog.records] == [
        "news: only 2 documents can be used; corpus.documents_per_domain asks for 3"
    ]


def test_a_source_without_a_document_is_an_error(tmp_path: Path) -> None:
    write_csv(tmp_path / "news.csv", [HEADER])
    with pytest.raises(InputError, match=r"holds no document: check corpus\.source"):
        build_documents(corpus(tmp_path))


def test_a_source_whose_every_document_is_rejected_is_an_error_with_counts(tmp_path: Path) -> None:
    rows = [("1", story(3)), ("2", ""), ("3", story(2)), ("3", story(12))]
    write_csv(tmp_path / "news.csv", [HEADER, *rows])
    with pytest.raises(InputError) as caught:
        build_documents(corpus(tmp_path, min_sentences=10))
    message = str(caught.value)
    assert "every document was rejected" in message
    assert "2 fewer than 10 sentences, 1 empty text, 1 repeated id" in message
    assert "corpus.min_sentences" in message
    assert "\n" not in message


def test_chinese_texts_are_cut_at_their_own_marks(tmp_path: Path) -> None:
    write_csv(tmp_path / "news.csv", [HEADER, ("1", "今天下雨。他没来！\n\n为什么？")])
    [document] = build_documents(corpus(tmp_path, language="zh")).documents
    assert [(s.paragraph, s.text) for s in document.sentences] == [
        ("p001", "今天下雨。"),
        ("p001", "他没来！"),
        ("p002", "为什么？"),
    ]


SHARED = Path(__file__).parents[3] / "shared" / "data" / "english"


@pytest.mark.skipif(not SHARED.is_dir(), reason="needs ../shared/data/english")
def test_real_texts_give_documents_in_all_four_domains() -> None:
    domains = ["essays", "news", "reports", "abstracts"]
    built = build_documents(corpus(SHARED, domains=domains, min_sentences=10))
    kept = {domain: count.kept for domain, count in built.counts.items()}
    assert kept == {"abstracts": 106, "essays": 110, "news": 100, "reports": 96}
    texts = [s.text for d in built.documents for s in d.sentences]
    assert all(len(text.splitlines()) == 1 for text in texts)


def test_a_column_domain_that_a_folder_ignores_is_counted_in_a_warning(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    names = ["news", "blogs", "blogs"]
    rows = [(str(n), story(2, f"Cat {n}"), name) for n, name in enumerate(names)]
    path = write_csv(tmp_path / "news.csv", [(*HEADER, "domain"), *rows])
    write_csv(tmp_path / "essays.csv", [HEADER, ("e", story(2))])
    built = build_documents(corpus(tmp_path))
    assert {document.domain for document in built.documents} == {"essays", "news"}
    (warning,) = caplog.messages
    assert warning.startswith("news: 2 rows name another domain")
    caplog.clear()
    build_documents(corpus(path, domains=["blogs"]))
    assert caplog.messages == []
