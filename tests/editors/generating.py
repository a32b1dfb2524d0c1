"""A small dataset through the OpenAI-compatible editor, for the tests that break its servers."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from palimpsest.editors.journal import Journal, JournalledEditor
from palimpsest.editors.openai_editor import OpenAIEditor
from palimpsest.params import Ablations, Generator, Step, Trajectory
from palimpsest.records import TEXTS, Document, write_rows
from palimpsest.trajectories.build import Brief, build_trajectories
from palimpsest.trajectories.prompts import load_prompts
from palimpsest.trajectories.requests import Editor, Message, Pull, Request
from palimpsest.trajectories.tally import Tally
from tests.documents import as_written, make_document

PROMPTS = load_prompts(Path("src/palimpsest/trajectories/prompt_sets/few-shot.yaml"))
PARAMS = Trajectory(
    seed=0,
    generators=["g"],
    prompt_sets="",
    prompts="",
    schedule={
        "v1": Step("polish", 20),
        "v2": Step("paraphrase", 50),
        "v3": Step("compress", 70),
        "v4": Step("expand", 100),
    },
    temperatures=[0.4, 1.0],
    on_rejection="later",
    max_dropped=0.0,
    max_rejected=1.0,
    ablations=Ablations(["g"], ["expand"], [100], [100]),
)
BRIEF = Brief("cumulative", "g", PROMPTS, PARAMS)


def documents(n: int, sentences: int = 8) -> list[Document]:
    """Documents without a sentence in common, so that none shares another's requests."""
    return [
        replace(
            document,
            sentences=tuple(
                replace(s, text=f"{s.text[:-1]} of year {i}.") for s in document.sentences
            ),
        )
        for i in range(n)
        for document in [make_document(f"d{i}", sentences)]
    ]


def generator(*urls: str, **given: Any) -> Generator:
    settings = {"timeout": 1.0, "seeds": True, **given}
    return Generator("openai-compatible", "stub", base_urls=list(urls), **settings)


def editor(*urls: str, **given: Any) -> OpenAIEditor:
    return OpenAIEditor(generator(*urls, **given), "secret")


def build(
    editor: Editor, documents: Sequence[Document], tally: Tally | None = None
) -> list[dict[str, Any]]:
    return as_written(build_trajectories(documents, editor, BRIEF, tally or Tally()))


def write_dataset(url: str, folder: Path, n: int, concurrency: int) -> None:
    """Texts in folder/texts.parquet by way of folder/journal.sqlite."""
    with Journal(folder / "journal.sqlite") as journal:
        asking = JournalledEditor(editor(url, concurrency=concurrency), journal)
        rows = build_trajectories(documents(n), asking, BRIEF, Tally())
        write_rows(folder / "texts.parquet", TEXTS, rows)


def request(content: str = "hello", draw: int = 0, temperature: float | None = 0.4) -> Request:
    return Request((Message("user", content),), temperature, 20, draw)


def pulling(requests: Sequence[Request]) -> Pull:
    waiting = list(requests)

    def pull(n: int) -> list[Request]:
        taken, waiting[:] = waiting[:n], waiting[n:]
        return taken

    return pull
