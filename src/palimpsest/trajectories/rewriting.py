"""One sentence's revision: ask, judge the reply, and ask again while there is an objection."""

from collections.abc import Generator
from dataclasses import dataclass

from palimpsest.params import Trajectory
from palimpsest.trajectories.prompts import PromptSet
from palimpsest.trajectories.requests import Reply, Request
from palimpsest.trajectories.tally import Tally
from palimpsest.trajectories.validation import Target, judge


@dataclass(frozen=True, slots=True)
class Rewrite:
    """What the attempts at one sentence came to; `text` is None where no reply was usable."""

    text: str | None
    attempts: int
    outcome: str


Job = Generator[Request, Reply, Rewrite]


def rewrite(
    target: Target,
    context: str,
    operation: str,
    prompts: PromptSet,
    params: Trajectory,
    tally: Tally,
) -> Job:
    """Ask for one sentence until a reply has no objection or the temperatures are used up."""
    messages = prompts.messages(operation, context, target.sentence)
    attempts = len(params.temperatures)
    best: tuple[str, tuple[str, ...]] | None = None  # a reply without hard objection; its soft ones
    objection = ""
    for attempt, temperature in enumerate(params.temperatures):
        reply = yield Request(
            messages=messages,
            temperature=temperature,
            max_tokens=token_limit(target),
            draw=params.seed * attempts + attempt,
        )
        verdict = judge(reply, target)
        tally.tokens += reply.tokens
        for reason in (verdict.hard,) if verdict.hard else verdict.soft:
            tally.objections[operation, reason] += 1
        if verdict.hard:
            objection = verdict.hard
        elif best is None or len(verdict.soft) < len(best[1]):
            # as in human sentences: two blanks or a tab would give the reply away
            best = " ".join(reply.text.split()), verdict.soft
            if not verdict.soft:
                break
    if best is None:
        return Rewrite(None, attempts, f"rejected: {objection}")
    text, misses = best
    if text == target.sentence:
        outcome = "unchanged"
    else:
        outcome = "kept: " + ", ".join(misses) if misses else "accepted"
    return Rewrite(text, attempt + 1, outcome)


def token_limit(target: Target) -> int:
    """Room for the longest reply that the operation allows.

    English text is taken to have at least 3.2 characters a token, Chinese text 0.5; a reply that
    runs on is too long anyway.
    """
    characters = len(target.sentence) * target.length[1] / 100
    return 16 + int(characters / (3.2 if target.language == "en" else 0.5))
