"""Trajectories without waiting for a model: a journal that holds every reply, and sample rows."""

import random
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from palimpsest.editors.journal import Journal, JournalledEditor
from palimpsest.params import load_params
from palimpsest.records import TEXTS, Document, Sentence, write_rows
from palimpsest.trajectories.build import Brief, build_trajectories
from palimpsest.trajectories.prompts import load_prompt_set
from palimpsest.trajectories.provenance import Revision, SentenceState, sample_row
from palimpsest.trajectories.requests import Request
from palimpsest.trajectories.tally import Tally
from tests.scripted import ScriptedEditor

SENTENCES = 20  # a document of the paper has 19.3 on average, of 22 words
WORDS = (
    "the of and a river market morning people seemed water under bridge slowly between council "
    "answer report carried because window several against evening letter harvest distant"
).split()
LENGTHS = {"compress": 0.7, "expand": 1.3}  # of the reply, in the target's words


def document(number: int) -> Document:
    draw = random.Random(number)
    sentences = tuple(
        Sentence(
            id=f"s{i + 1:04d}",
            paragraph=f"p{i // 5 + 1:03d}",
            text=f"The {' '.join(draw.choices(WORDS, k=18))} in {draw.randint(1, 99)} days.",
        )
        for i in range(SENTENCES)
    )
    return Document(f"d{number}", "essays", "en", f"d{number}", None, sentences)


def rewritten(request: Request) -> str:
    """A usable reply: the words in another order, as many as the operation asks for."""
    content = request.messages[-1].content
    first, *middle = content.rpartition("\n")[2].split()
    middle, last = middle[:-3], middle[-3:]
    random.Random(content).shuffle(middle)
    share = next((s for name, s in LENGTHS.items() if f"Operation: {name}" in content), 1.0)
    middle = (middle * 2)[: int(share * len(middle))]
    return " ".join([first, *middle, *last])


def rows(
    journal: Journal, n: int, tally: Tally
) -> tuple[Iterator[dict[str, Any]], JournalledEditor]:
    params = load_params().trajectory
    brief = Brief("cumulative", "scripted", load_prompt_set(params, "opai-bench"), params)
    editor = JournalledEditor(ScriptedEditor(rewritten, 64, oldest_first=True), journal)
    return build_trajectories(map(document, range(n)), editor, brief, tally), editor


def measure(n: int = 150, times: int = 5) -> dict[str, float]:
    """The fastest of some runs: what else the machine does can only make one slower."""
    with tempfile.TemporaryDirectory() as folder, Journal(Path(folder) / "j.sqlite") as journal:
        texts = Path(folder) / "texts.parquet"
        write_rows(texts, TEXTS, rows(journal, n, Tally())[0])
        replays = [replayed(texts, journal, n) for _ in range(times)]
        assemblies = [assembled(Path(folder), 9 * n) for _ in range(times)]
        return {
            "replayed sentences/s, fastest (at least 5,000)": max(replays),
            "replayed sentences/s, slowest": min(replays),
            "assembled samples/s, fastest (at least 1,500)": max(assemblies),
            "assembled samples/s, slowest": min(assemblies),
        }


def replayed(texts: Path, journal: Journal, n: int) -> float:
    """Sentences/s from a journal that holds every reply to Parquet."""
    tally = Tally()
    again, editor = rows(journal, n, tally)
    begin = time.perf_counter()
    write_rows(texts, TEXTS, again)
    seconds = time.perf_counter() - begin
    assert editor.asked == 0
    return sum(tally.outcomes.values()) / seconds


def assembled(folder: Path, n: int) -> float:
    """Samples/s from sentences to Parquet; half of the sentences revised four times."""
    revision = Revision(
        version="v1", operation="polish", generator="scripted", attempts=1, outcome="accepted"
    )
    given = []
    for number in range(n):
        made = document(number)
        states = [SentenceState(s.id, s.paragraph, s.text) for s in made.sentences]
        for state in states[::2]:
            state.is_ai, state.history = True, [revision] * 4
        given.append((made, states))
    begin = time.perf_counter()
    samples = (
        sample_row(
            made, states, generator="scripted", prompt_set="none", design="cumulative",
            variant="", version="v4", operation="compress", coverage=50,
        )
        for made, states in given
    )  # fmt: skip
    write_rows(folder / "assembled.parquet", TEXTS, samples)
    return n / (time.perf_counter() - begin)
