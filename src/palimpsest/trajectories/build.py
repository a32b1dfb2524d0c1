"""Revise human documents version by version: OpAI-Bench's cumulative trajectories (Section 3)."""

import logging
from collections import Counter, deque
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from tqdm import tqdm

from palimpsest.params import Trajectory as TrajectoryParams
from palimpsest.records import SENTENCE_BREAK, Document
from palimpsest.trajectories.prompts import PromptSet
from palimpsest.trajectories.provenance import Revision, SentenceState, sample_row
from palimpsest.trajectories.requests import Editor, Reply, Request
from palimpsest.trajectories.selection import chosen
from palimpsest.trajectories.validation import Target, judge

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Rewrite:
    """What the attempts at one sentence came to; `text` is None where no reply was usable."""

    text: str | None
    attempts: int
    outcome: str


class Usable(NamedTuple):
    """A reply without a hard objection, and its soft ones."""

    text: str
    soft: tuple[str, ...]


@dataclass(slots=True)
class Tally:
    """Counts over all trajectories: (operation, outcome), and each objection to a single reply."""

    outcomes: Counter[tuple[str, str]] = field(default_factory=Counter)
    objections: Counter[tuple[str, str]] = field(default_factory=Counter)
    tokens: int = 0
    dropped: int = 0

    def describe(self) -> str:
        """The counts as one line: `kept` and its kin say what became of the sentences."""
        outcomes: Counter[str] = Counter()
        for (_, outcome), n in self.outcomes.items():
            outcomes[outcome] += n
        objections: Counter[str] = Counter()
        for (_, reason), n in self.objections.items():
            objections[reason] += n
        sentences = ", ".join(f"{reason} {n:,}" for reason, n in outcomes.most_common())
        replies = ", ".join(f"{reason} {n:,}" for reason, n in objections.most_common())
        return (
            f"sentences: {sentences}; objections to replies: {replies or 'none'}; "
            f"dropped trajectories: {self.dropped}"
        )

    def rows(self, generator: str) -> list[dict[str, Any]]:
        """One row for each operation and reason, `kind` saying what is counted."""
        return [
            {"generator": generator, "kind": kind, "operation": op, "reason": reason, "count": n}
            for kind, counts in (("sentence", self.outcomes), ("reply", self.objections))
            for (op, reason), n in sorted(counts.items())
        ] + [
            {"generator": generator, "kind": "trajectory", "operation": "all",
             "reason": "dropped", "count": self.dropped}
        ]  # fmt: skip


Job = Generator[Request, Reply, Rewrite]


def rewrite(
    target: Target,
    context: str,
    operation: str,
    prompts: PromptSet,
    params: TrajectoryParams,
    tally: Tally,
) -> Job:
    """Ask for one sentence until a reply has no objection or the temperatures are used up."""
    messages = prompts.messages(operation, context, target.sentence)
    attempts = len(params.temperatures)
    best: Usable | None = None
    objection = ""
    for attempt, temperature in enumerate(params.temperatures):
        reply = yield Request(
            messages=messages,
            temperature=temperature,
            max_tokens=token_limit(target),
            draw=params.seed * attempts + attempt,
        )
        text = reply.text.strip()
        verdict = judge(reply, target)
        tally.tokens += reply.tokens
        for reason in (verdict.hard,) if verdict.hard else verdict.soft:
            tally.objections[operation, reason] += 1
        if verdict.hard:
            objection = verdict.hard
        elif best is None or len(verdict.soft) < len(best.soft):
            best = Usable(text, verdict.soft)
            if not best.soft:
                break
    if best is None:
        return Rewrite(None, attempts, f"rejected: {objection}")
    if best.text == target.sentence:
        outcome = "unchanged"
    else:
        outcome = "kept: " + ", ".join(best.soft) if best.soft else "accepted"
    return Rewrite(best.text, attempt + 1, outcome)


def token_limit(target: Target) -> int:
    """Room for the longest reply that the operation allows.

    English text is taken to have at least 3.2 characters a token, Chinese text 0.5; a reply that
    runs on is too long anyway.
    """
    characters = len(target.sentence) * target.length[1] / 100
    return 16 + int(characters / (3.2 if target.language == "en" else 0.5))


class _Trajectory:
    """One document on its way from v0 to the last version."""

    def __init__(self, document: Document, generator: str, prompts: PromptSet,
                 params: TrajectoryParams, tally: Tally) -> None:  # fmt: skip
        self.document = document
        self.generator = generator
        self.prompts = prompts
        self.params = params
        self.tally = tally
        self.sentences = [SentenceState(s.id, s.paragraph, s.text) for s in document.sentences]
        self.steps = iter(params.schedule.items())
        self.rows = [self._row("v0", "none", 0)]
        self.dropped = False
        self.done = False
        self._pending = 0
        self._results: dict[int, Rewrite] = {}

    def begin(self) -> list[tuple[int, Job]]:
        """Start the next version: the jobs of its sentences; none when the trajectory is over."""
        for version, step in self.steps:
            self.version, self.step = version, step
            selected = chosen(self.document.doc_id, len(self.sentences), self.step.coverage)
            if selected:
                self._pending = len(selected)
                self._results = {}
                return [(i, self._job(i)) for i in selected]
            self.rows.append(self._row(self.version, self.step.operation, self.step.coverage))
        self.done = True
        return []

    def _job(self, i: int) -> Job:
        """The paragraph is the context as it stood in the version that this one starts from."""
        sentence = self.sentences[i]
        paragraph = [s.text for s in self.sentences if s.paragraph == sentence.paragraph]
        target = Target(
            sentence=sentence.text,
            neighbours=tuple(text for text in paragraph if text != sentence.text),
            examples=self.prompts.examples(self.step.operation),
            length=self.prompts.length(self.step.operation),
            language=self.document.language,
            is_ai=sentence.is_ai,
        )
        context = SENTENCE_BREAK.join(paragraph)
        return rewrite(target, context, self.step.operation, self.prompts, self.params, self.tally)

    def take(self, i: int, result: Rewrite) -> bool:
        """Note one sentence's result; true when it was the version's last."""
        self._results[i] = result
        self._pending -= 1
        if self._pending:
            return False
        for index, rewritten in sorted(self._results.items()):
            self._apply(index, rewritten)
        if not self.dropped:
            self.rows.append(self._row(self.version, self.step.operation, self.step.coverage))
        return True

    def _apply(self, i: int, result: Rewrite) -> None:
        self.tally.outcomes[self.step.operation, result.outcome.partition(":")[0]] += 1
        sentence = self.sentences[i]
        sentence.history.append(
            Revision(
                version=self.version,
                operation=self.step.operation,
                generator=self.generator,
                attempts=result.attempts,
                outcome=result.outcome,
            )
        )
        if result.text is not None:
            sentence.text = result.text
            sentence.is_ai = True
        elif self.params.on_rejection == "drop":
            self.dropped = self.done = True

    def _row(self, version: str, operation: str, coverage: int) -> dict[str, Any]:
        return sample_row(
            self.document,
            self.sentences,
            trajectory_id=f"{self.document.doc_id}/{self.generator}/cumulative",
            generator=self.generator,
            prompt_set=self.prompts.identity,
            design="cumulative",
            version=version,
            operation=operation,
            coverage=coverage,
        )


def build_trajectories(
    documents: Sequence[Document],
    editor: Editor,
    generator: str,
    prompts: PromptSet,
    params: TrajectoryParams,
    tally: Tally,
) -> Iterator[dict[str, Any]]:
    """The samples of every document's trajectory, in the documents' order.

    Versions of a document follow each other; documents run side by side, as many as the editor
    asks for. `tally` is filled on the way. A dropped trajectory leaves no row.
    """
    total = sum(
        len(chosen(d.doc_id, len(d.sentences), step.coverage))
        for d in documents
        for step in params.schedule.values()
    )
    waiting = deque(range(len(documents)))
    running: dict[int, _Trajectory] = {}
    jobs: dict[Request, list[tuple[int, int, Job]]] = {}
    ready: deque[Request] = deque()
    following = 0  # the document whose rows come next

    def ask(d: int, i: int, job: Job, request: Request) -> None:
        # Equal sentences in equal paragraphs are one request with one reply.
        if request not in jobs:
            ready.append(request)
        jobs.setdefault(request, []).append((d, i, job))

    def advance(d: int) -> None:
        for i, job in running[d].begin():
            ask(d, i, job, next(job))

    def pull(n: int) -> list[Request]:
        while len(ready) < n and waiting:
            d = waiting.popleft()
            running[d] = _Trajectory(documents[d], generator, prompts, params, tally)
            advance(d)
        return [ready.popleft() for _ in range(min(n, len(ready)))]

    with tqdm(total=total, desc=f"generate {generator}", unit="sentence", smoothing=0.1) as bar:
        for answered in editor.serve(pull):
            for request, reply in answered:
                for d, i, job in jobs.pop(request):
                    try:
                        ask(d, i, job, job.send(reply))
                    except StopIteration as stop:
                        bar.update()
                        if running[d].take(i, stop.value) and not running[d].dropped:
                            advance(d)
            while following in running and running[following].done:
                finished = running.pop(following)
                following += 1
                if finished.dropped:
                    tally.dropped += 1
                else:
                    yield from finished.rows
    # Documents whose schedule asks for nothing never reach the editor's loop.
    while following in running:
        yield from running.pop(following).rows
        following += 1
