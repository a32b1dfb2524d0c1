"""How fast and how lean trajectories are made from a server's replies.

The stub runs in a process of its own. The bare client is what one writes first:
`AsyncOpenAI().chat.completions.create` in as many tasks as may be in flight.
"""

import asyncio
import logging
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from openai import AsyncOpenAI

from palimpsest.editors.journal import Journal, JournalledEditor
from palimpsest.records import TEXTS, write_rows
from palimpsest.trajectories.build import build_trajectories
from palimpsest.trajectories.requests import Pull, Reply, Request
from palimpsest.trajectories.tally import Tally
from tests.editors.generating import BRIEF, PROMPTS, documents, editor

IN_FLIGHT = 64
SENTENCES = 20  # of a document, which makes 48 requests


@contextmanager
def stub(latency: float) -> Iterator[str]:
    """The URL of a stub that answers after `latency` seconds."""
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.editors.http_stub", "--latency", str(latency)],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout
    try:
        yield process.stdout.readline().strip()
    finally:
        process.kill()
        process.wait()


def bare_rate(url: str, n: int) -> float:
    """Requests/s of the bare client, all of one typical prompt."""
    sentences = [sentence.text for sentence in documents(1)[0].sentences]
    prompt = PROMPTS.messages("polish", " ".join(sentences[:4]), sentences[0])
    messages: Any = [{"role": m.role, "content": m.content} for m in prompt]

    async def run() -> float:
        waiting = iter(range(n))
        async with AsyncOpenAI(base_url=url, api_key="none", max_retries=0) as client:

            async def work() -> None:
                for _ in waiting:
                    await client.chat.completions.create(
                        model="stub", messages=messages, max_tokens=40
                    )

            begin = time.perf_counter()
            await asyncio.gather(*(work() for _ in range(IN_FLIGHT)))
            return n / (time.perf_counter() - begin)

    return asyncio.run(run())


@dataclass
class Watched:
    """An editor that notes when its replies are handed on, and memory after 1,000 of them."""

    editor: JournalledEditor
    times: list[float] = field(default_factory=list)
    memory: int = 0

    def __post_init__(self) -> None:
        self.model = self.editor.model
        self.revision = self.editor.revision
        self.decoding = self.editor.decoding

    def serve(self, pull: Pull) -> Iterator[list[tuple[Request, Reply]]]:
        self.times.append(time.perf_counter())
        for answered in self.editor.serve(pull):
            self.times += [time.perf_counter()] * len(answered)
            if not self.memory and len(self.times) > 1000:
                self.memory = _peak_memory()
            yield answered

    def rate(self, begin: float = 0.0, end: float = 1.0) -> float:
        """Requests/s in a part of the run."""
        first, last = (round(part * (len(self.times) - 1)) for part in (begin, end))
        return (last - first) / (self.times[last] - self.times[first])


def make_texts(url: str, n: int) -> Watched:
    """N documents through journal, validation and building into Parquet."""
    with tempfile.TemporaryDirectory() as folder, Journal(Path(folder) / "j.sqlite") as journal:
        asking = editor(url, concurrency=IN_FLIGHT, timeout=60.0)
        watched = Watched(JournalledEditor(asking, journal))
        given = documents(n, SENTENCES)
        rows = build_trajectories(given, watched, BRIEF, Tally())
        write_rows(Path(folder) / "texts.parquet", TEXTS, rows)
        return watched


def measure(n: int = 210, bare: int = 3000, slow: int = 50) -> dict[str, float]:
    """Rates and their ratios; 210 documents are about 10,000 requests."""
    logging.getLogger("httpx2").setLevel(logging.WARNING)  # it has a line for every request
    with stub(0.1) as url:
        before = bare_rate(url, bare // 2)
        ours = make_texts(url, n)
        growth = (_peak_memory() - ours.memory) / 2**20
        base = 2 / (1 / before + 1 / bare_rate(url, bare // 2))
    with stub(1.0) as url:
        # The first second has no reply, and at the end documents wait for their last version.
        steady = make_texts(url, slow).rate(0.1, 0.7)
    return {
        "requests": len(ours.times) - 1,
        "bare client, requests/s": base,
        "ours, requests/s": ours.rate(),
        "ours / bare client (at least 0.85)": ours.rate() / base,
        "at 1 s latency, requests/s in the middle of the run": steady,
        "at 1 s latency, share of 64 (at least 0.90)": steady / IN_FLIGHT,
        "memory growth after 1,000 requests, MiB (at most 300)": growth,
    }


def _peak_memory() -> int:
    """Bytes."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024
