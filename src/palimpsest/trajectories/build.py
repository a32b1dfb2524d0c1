"""Revise human documents version by version, as a design says (OpAI-Bench, Section 3)."""

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from tqdm import tqdm

from palimpsest.corpora.segment import sentences
from palimpsest.params import Trajectory as TrajectoryParams
from palimpsest.records import SENTENCE_BREAK, Document
from palimpsest.trajectories.designs import Route, Version, routes
from palimpsest.trajectories.prompts import PromptSet
from palimpsest.trajectories.provenance import Revision, SentenceState, sample_row
from palimpsest.trajectories.requests import Editor, Request
from palimpsest.trajectories.rewriting import Job, Rewrite, rewrite
from palimpsest.trajectories.selection import count, sentence_order
from palimpsest.trajectories.tally import Tally
from palimpsest.trajectories.validation import Target


@dataclass(frozen=True, slots=True)
class Brief:
    """What all trajectories of one generator under one design have in common."""

    design: str
    generator: str
    prompts: PromptSet
    params: TrajectoryParams


def revisions(brief: Brief, n_sentences: int) -> int:
    """How many sentence revisions a document of so many sentences takes."""
    return sum(
        count(n_sentences, version.coverage)
        for route in routes(brief.design, brief.params)
        for version in route.versions
    )


class _Trajectory:
    """One document on one route, from the human text to the last version."""

    def __init__(self, document: Document, route: Route, brief: Brief, tally: Tally) -> None:
        self.document = document
        self.route = route
        self.brief = brief
        self.tally = tally
        self.order = sentence_order(document.doc_id, len(document.sentences))
        self.sentences = self._human()
        self.waiting = iter(route.versions)
        self.rows = [self._row(Version(route.human, "none", 0))]
        self.dropped = False
        self.done = False
        self._pending = 0
        self._results: dict[int, Rewrite] = {}

    def begin(self) -> list[tuple[int, Job]]:
        """Start the next version: the jobs of its sentences; none when the trajectory is over."""
        for version in self.waiting:
            self.version = version
            if not self.route.cumulative:
                self.sentences = self._human()
            selected = sorted(self.order[: count(len(self.order), self.version.coverage)])
            if selected:
                self._pending = len(selected)
                self._results = {}
                return [(i, self._job(i)) for i in selected]
            self.rows.append(self._row(self.version))
        self.done = True
        return []

    def take(self, i: int, result: Rewrite) -> bool:
        """Note one sentence's result; true when it was the version's last."""
        self._results[i] = result
        self._pending -= 1
        if self._pending:
            return False
        for index, rewritten in sorted(self._results.items()):
            self._apply(index, rewritten)
        if not self.dropped:
            self.rows.append(self._row(self.version))
        return True

    def _human(self) -> list[SentenceState]:
        return [SentenceState(s.id, s.paragraph, s.text) for s in self.document.sentences]

    def _job(self, i: int) -> Job:
        """The paragraph is the context as it stood in the text that this version starts from."""
        sentence, prompts = self.sentences[i], self.brief.prompts
        paragraph = [s.text for s in self.sentences if s.paragraph == sentence.paragraph]
        operation = self.version.operation
        target = Target(
            sentence=sentence.text,
            neighbours=tuple(text for text in paragraph if text != sentence.text),
            examples=prompts.examples(operation),
            length=prompts.length(operation),
            language=self.document.language,
            is_ai=sentence.is_ai,
        )
        context = SENTENCE_BREAK.join(paragraph)
        return rewrite(target, context, operation, prompts, self.brief.params, self.tally)

    def _apply(self, i: int, result: Rewrite) -> None:
        self.tally.outcomes[self.version.operation, result.outcome.partition(":")[0]] += 1
        sentence = self.sentences[i]
        sentence.history.append(
            Revision(
                version=self.version.name,
                operation=self.version.operation,
                generator=self.brief.generator,
                attempts=result.attempts,
                outcome=result.outcome,
            )
        )
        if result.text is not None:
            sentence.text = result.text
            sentence.is_ai = True
        elif self.brief.params.on_rejection == "drop":
            self.dropped = self.done = True

    def _row(self, version: Version) -> dict[str, Any]:
        return sample_row(
            self.document,
            self.sentences,
            generator=self.brief.generator,
            prompt_set=self.brief.prompts.identity,
            design=self.brief.design,
            variant=self.route.variant,
            version=version.name,
            operation=version.operation,
            coverage=version.coverage,
        )


def build_trajectories(
    documents: Iterable[Document],
    editor: Editor,
    brief: Brief,
    tally: Tally,
    bar: "tqdm[Any] | None" = None,
) -> Iterator[dict[str, Any]]:
    """The samples of every document's trajectories, in the documents' order.

    Versions of a trajectory follow each other; trajectories run side by side, as many as the editor
    asks for, and `documents` is read no further than that. `tally` is filled on the way. A dropped
    trajectory leaves no row. `bar` counts the revisions.
    """
    waiting = ((d, route) for d in documents for route in routes(brief.design, brief.params))
    running: dict[int, _Trajectory] = {}
    jobs: dict[Request, list[tuple[int, int, Job]]] = {}
    ready: deque[Request] = deque()
    started = 0
    following = 0  # the trajectory whose rows come next

    def ask(t: int, i: int, job: Job, request: Request) -> None:
        # Equal sentences in equal paragraphs are one request with one reply.
        asking = jobs.setdefault(request, [])
        if not asking:
            ready.append(request)
        asking.append((t, i, job))

    def advance(t: int) -> None:
        for i, job in running[t].begin():
            ask(t, i, job, next(job))

    def pull(n: int) -> list[Request]:
        nonlocal started
        while len(ready) < n and (begun := next(waiting, None)):
            running[started] = _Trajectory(*begun, brief, tally)
            advance(started)
            started += 1
        return [ready.popleft() for _ in range(min(n, len(ready)))]

    def finished() -> Iterator[dict[str, Any]]:
        nonlocal following
        while following in running and running[following].done:
            trajectory = running.pop(following)
            following += 1
            if trajectory.dropped:
                tally.dropped += 1
            else:
                tally.finished += 1
                yield from trajectory.rows

    sentences("One. Two.", "en")  # loads Punkt now, not while a server's first replies wait
    for answered in editor.serve(pull):
        for request, reply in answered:
            for t, i, job in jobs.pop(request):
                try:
                    ask(t, i, job, job.send(reply))
                except StopIteration as stop:
                    if bar is not None:
                        bar.update()
                    if running[t].take(i, stop.value) and not running[t].dropped:
                        advance(t)
        yield from finished()
    # Routes that ask for nothing never reach the editor's loop.
    yield from finished()
