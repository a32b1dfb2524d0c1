"""What generation will ask and cost, and how much of it the journal holds, before any request."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from heapq import nsmallest
from itertools import islice

from tqdm import tqdm

from palimpsest.corpora.sampling import rank
from palimpsest.editors.budget import cost
from palimpsest.editors.journal import Journal, JournalledEditor
from palimpsest.records import SENTENCE_BREAK, Document
from palimpsest.trajectories.assignments import Assignment
from palimpsest.trajectories.build import build_trajectories
from palimpsest.trajectories.designs import routes
from palimpsest.trajectories.requests import Editor, Pull, Reply, Request
from palimpsest.trajectories.selection import chosen
from palimpsest.trajectories.tally import Tally

SAMPLE = 200  # random documents whose sentences stand for all when tokens are estimated
TOGETHER = 64  # documents
ASSUMED_ATTEMPTS = 1.15  # requests for one revision, until the journal shows some
ENOUGH = 100  # revisions that the journal must show for that
CHARACTERS_PER_TOKEN = {"en": 4.0, "zh": 1.5}


@dataclass(frozen=True, slots=True)
class Plan:
    """Counts of one assignment; what is left is an estimate, its cost None without a price."""

    design: str
    generator: str
    documents: int
    revisions: int
    revisions_held: int
    requests_held: int
    requests_left: int
    prompt_tokens_left: int
    reply_tokens_left: int
    cost_left: float | None


class _Silent:
    """An editor that answers nothing, so that only the journal does."""

    def __init__(self, editor: Editor) -> None:
        self.model, self.revision, self.decoding = editor.model, editor.revision, editor.decoding

    def serve(self, pull: Pull) -> Iterator[list[tuple[Request, Reply]]]:
        while pull(64):
            pass
        yield from ()


def plan(
    assignment: Assignment,
    documents: Callable[[], Iterable[Document]],
    editor: Editor,
    journal: Journal,
) -> Plan:
    """Follow each trajectory as far as the journal's replies lead, and estimate the rest.

    A request left takes as many tokens as one about a human sentence does, at 4 characters a token
    in English and 1.5 in Chinese. Replies are taken to have the middle of their operation's range.
    """
    tally = Tally()
    replaying = JournalledEditor(_Silent(editor), journal)
    remaining = iter(documents())
    title = f"in the journal: {assignment.brief.design}, {assignment.brief.generator}"
    with tqdm(total=assignment.revisions, desc=title, unit="sentence") as bar:
        # what the journal does not answer stays in memory until its few documents are done
        while few := list(islice(remaining, TOGETHER)):
            for _ in build_trajectories(few, replaying, assignment.brief, tally, bar):
                pass
    done = sum(tally.outcomes.values())
    left = assignment.revisions - done
    attempts = replaying.repeated / done if done >= ENOUGH else ASSUMED_ATTEMPTS
    requests = round(left * attempts)
    # documents come domain by domain: the first ones would stand for one domain only
    sampled = nsmallest(SAMPLE, documents(), key=lambda document: rank(document.doc_id))
    prompt, reply = _tokens(assignment, sampled)
    price = assignment.generator.price
    return Plan(
        design=assignment.brief.design,
        generator=assignment.brief.generator,
        documents=len(assignment.documents),
        revisions=assignment.revisions,
        revisions_held=done,
        requests_held=replaying.repeated,
        requests_left=requests,
        prompt_tokens_left=round(requests * prompt),
        reply_tokens_left=round(requests * reply),
        cost_left=None if price is None else cost(price, requests * prompt, requests * reply),
    )


def _tokens(assignment: Assignment, documents: Iterable[Document]) -> tuple[float, float]:
    """The mean number of tokens that a request reads and that its reply has."""
    brief, prompts = assignment.brief, assignment.brief.prompts
    n, read, written = 0, 0.0, 0.0
    versions = [v for route in routes(brief.design, brief.params) for v in route.versions]
    for document in documents:
        per_token = CHARACTERS_PER_TOKEN[document.language]
        for version in versions:
            length = sum(prompts.length(version.operation)) / 200
            for i in chosen(document.doc_id, len(document.sentences), version.coverage):
                sentence = document.sentences[i]
                context = SENTENCE_BREAK.join(
                    s.text for s in document.sentences if s.paragraph == sentence.paragraph
                )
                messages = prompts.messages(version.operation, context, sentence.text)
                read += sum(len(message.content) for message in messages) / per_token
                written += len(sentence.text) * length / per_token
                n += 1
    return (read / n, written / n) if n else (0.0, 0.0)
