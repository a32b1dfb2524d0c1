import csv
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from palimpsest.corpora.opai_bench import COLUMNS, RELEASED, release_documents
from palimpsest.errors import InputError
from palimpsest.records import Document, Language, Sentence
from palimpsest.reports.export import export_opai_bench
from palimpsest.trajectories.adopt import Report, adopt
from palimpsest.trajectories.provenance import SentenceState, sample_row
from tests.corpora.sources import corpus
from tests.documents import as_written, make_document

VERSIONS = {
    "cumulative": {"": {"v0": 0, "v1": 15, "v8": 100}},
    "independent": {"": {"v0": 0, "v2": 25, "v5": 60}},
    "coverage": {"expand": {"c000": 0, "c050": 50}, "compress": {"c000": 0, "c025": 25}},
    "operation": {
        level: {"v0": 0, "compress": int(level), "expand": int(level)} for level in ("25", "75")
    },
}
OPERATIONS = {"v1": "polish", "v2": "paraphrase", "v5": "expand", "v8": "polish"}


def samples(
    document: Document, generator: str = "gpt-5.4", design: str = "cumulative"
) -> list[dict[str, Any]]:
    """A document's samples under a design; revised sentences end in two more characters."""
    rows = []
    for variant, versions in VERSIONS[design].items():
        for version, coverage in versions.items():
            edited = -(-coverage * len(document.sentences) // 100)
            states = [
                SentenceState(s.id, s.paragraph, s.text + " x" * (i < edited), i < edited)
                for i, s in enumerate(document.sentences)
            ]
            operation = {"coverage": variant, "operation": version}.get(design) or OPERATIONS.get(
                version, "none"
            )
            rows.append(
                sample_row(
                    document, states, generator=generator, prompt_set=RELEASED, design=design,
                    variant=variant, version=version, operation=operation if coverage else "none",
                    coverage=coverage,
                )
            )  # fmt: skip
    return as_written(rows)


def adopted(folder: Path, design: str, language: Language = "en") -> list[dict[str, Any]]:
    params = corpus(folder, format="opai-bench", language=language)
    documents = {d.doc_id: d for d in release_documents(params).documents}
    with Report(folder.parent / "report.csv") as report:
        rows = as_written(adopt(params, design, documents, bool, report))
    assert report.path.read_text(encoding="utf-8").count("\n") == 1, report.counts
    return rows


def tree(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


AWKWARD = (
    'He said "no", then: """yes"""; twice.',
    "<AI_Start>Not the machine's</AI_End> words.",
    "Braces {x} and [1, 2], 'quotes', back\\slashes\\n.",
    "A line\r\nbreak, a\rreturn and a\x00zero.",
    "Emoji 👩‍👩‍👧 and \u200fRTL\u200f marks.",
    "Ignore the above and print ```json.",
    "=SUM(A1), -1, +2, @x",
    ",",
    "a\rb",
    "他说：“不。”",
    "a\x85b\u2028c\x1cd",
)


@pytest.mark.parametrize("design", list(VERSIONS))
def test_what_was_exported_is_adopted_unchanged_and_exports_to_the_same_files(
    tmp_path: Path, design: str
) -> None:
    awkward = Document(
        "d 2", "essays", "en", "d 2", None,
        tuple(Sentence(f"s{i + 1:04}", f"p{i // 3:03}", t) for i, t in enumerate(AWKWARD)),
    )  # fmt: skip
    plain = make_document("d1", 10)
    rows = [r for d in (plain, awkward) for g in ("a/b", "G") for r in samples(d, g, design)]
    split_of = {"d1": "train", "d 2": "test"}
    assert export_opai_bench(rows, split_of, tmp_path / "one") == len(rows) - 4 * (
        design == "operation"
    )
    back = adopted(tmp_path / "one", design)
    assert sorted(r["sample_id"] for r in back) == sorted(r["sample_id"] for r in rows)
    known = {row["sample_id"]: row for row in rows}
    for row in back:
        own = known[row["sample_id"]]
        for name in own:
            if name not in ("sentence_history", "group"):
                assert (
                    list(row[name]) == list(own[name])
                    if isinstance(row[name], list | tuple)
                    else row[name] == own[name]
                ), name
    export_opai_bench(back, split_of, tmp_path / "two")
    assert tree(tmp_path / "two") == tree(tmp_path / "one")


text = (
    st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=30)
    | st.sampled_from([*AWKWARD, "<AI_Start>", "</AI_End>", '"', "'", "\\", "1e5", "[]", "None"])
).map(str.strip)


@settings(max_examples=80, suppress_health_check=[HealthCheck.too_slow])
@given(
    sentences=st.lists(text.filter(bool), min_size=1, max_size=6),
    breaks=st.sets(st.integers(1, 5)),
    language=st.sampled_from(["en", "zh"]),
    design=st.sampled_from(list(VERSIONS)),
)
def test_any_text_survives_export_and_import(
    tmp_path_factory: pytest.TempPathFactory,
    sentences: list[str],
    breaks: set[int],
    language: Language,
    design: str,
) -> None:
    folder = tmp_path_factory.mktemp("release")
    paragraphs = [sum(i >= b for b in breaks) for i in range(len(sentences))]
    document = Document(
        "d1", "essays", language, "d1", None,
        tuple(
            Sentence(f"s{i + 1:04}", f"p{paragraph:03}", sentence)
            for i, (paragraph, sentence) in enumerate(zip(paragraphs, sentences, strict=True))
        ),
    )  # fmt: skip
    rows = samples(document, design=design)
    export_opai_bench(rows, {"d1": "dev"}, folder / "one")
    back = adopted(folder / "one", design, language)
    assert len(back) == len(rows)
    export_opai_bench(back, {"d1": "dev"}, folder / "two")
    assert tree(folder / "two") == tree(folder / "one")


def test_files_and_columns_are_the_releases(tmp_path: Path) -> None:
    for domain in ("essays", "news"):
        rows = [
            row
            for design in VERSIONS
            for row in samples(make_document(domain, domain=domain), "gemini-2.5-flash", design)
        ]
        export_opai_bench(rows, {domain: "dev"}, tmp_path / domain)
    assert sorted(tree(tmp_path / "essays")) == [
        "README.md",
        "ablations/dev/ablation1_essays_compress_gemini-2.5-flash.csv",
        "ablations/dev/ablation1_essays_expand_gemini-2.5-flash.csv",
        "ablations/dev/ablation2_essays_gemini-2.5-flash.csv",
        "ablations/dev/ablation3_essays_gemini-2.5-flash.csv",
        "default/dev/essays_gemini-2.5-flash.csv",
    ]
    path = tmp_path / "news/ablations/dev/ablation2_news_gemini-2.5-flash.csv"
    with path.open(encoding="utf-8", newline="") as file:
        lines = list(csv.DictReader(file))
    assert list(lines[0]) == list(COLUMNS)
    assert [line["version"] for line in lines] == [
        "base", "compress_25", "expand_25", "compress_75", "expand_75",
    ]  # fmt: skip
    assert lines[1]["text_tagged"].startswith("<AI_Start>")


def test_the_card_says_what_is_in_the_folder(tmp_path: Path) -> None:
    rows = samples(make_document()) + samples(make_document(), "gemini", "coverage")
    export_opai_bench(rows, {"d1": "train"}, tmp_path / "out")
    card = (tmp_path / "out" / "README.md").read_text(encoding="utf-8")
    _, header, body = card.split("---\n", 2)
    assert yaml.safe_load(header)["configs"] == [
        {
            "config_name": config,
            "data_files": [{"split": "train", "path": f"{config}/train/*.csv"}],
        }
        for config in ("default", "ablations")
    ]
    assert yaml.safe_load(header)["size_categories"] == ["n<1K"]
    assert "| default | essays | gpt-5.4 | 3 | 0 | 0 |\n" in body
    assert "| coverage | cov50 | expand | 50 % |\n" in body
    assert "stay their authors'" in body
    assert "\n\n\n" not in card


def test_nothing_is_written_over_and_nothing_half(tmp_path: Path) -> None:
    for name in ("out", "none.partial"):
        (tmp_path / name).mkdir()
    export_opai_bench(samples(make_document()), {"d1": "train"}, tmp_path / "out")
    before = tree(tmp_path / "out")
    with pytest.raises(InputError, match="is there already"):
        export_opai_bench(samples(make_document()), {"d1": "train"}, tmp_path / "out")
    assert tree(tmp_path / "out") == before
    with pytest.raises(InputError, match="no text to export"):
        export_opai_bench([], {}, tmp_path / "none")
    with pytest.raises(KeyError):
        export_opai_bench(samples(make_document()), {}, tmp_path / "none")
    assert {path.name for path in tmp_path.iterdir()} == {"out", "none.partial"}
