import gc
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from palimpsest.editors.budget import Budget
from palimpsest.editors.journal import Journal, JournalledEditor
from palimpsest.editors.plan import SAMPLE, TOGETHER, Plan, plan
from palimpsest.errors import InputError
from palimpsest.params import Generator, Price, load_params
from palimpsest.records import Document
from palimpsest.trajectories.assignments import Assignment, Size, assignments
from palimpsest.trajectories.build import _Trajectory, build_trajectories
from palimpsest.trajectories.requests import Reply, Request
from palimpsest.trajectories.tally import Tally
from tests.documents import make_document
from tests.scripted import ScriptedEditor, target_of


def different(i: int) -> Document:
    """Equal sentences would be equal requests, sent once."""
    document = make_document(f"d{i}", 10)
    sentences = [
        replace(s, text=s.text.replace("on day", f"on day {i} of")) for s in document.sentences
    ]
    return replace(document, sentences=tuple(sentences))


DOCUMENTS = [different(i) for i in range(6)]
PRICE = Price(input=1.0, output=10.0, as_of="2026-01-01")


def documents() -> list[Document]:
    return DOCUMENTS


def swap(request: Request) -> str:
    words = target_of(request).split()
    words[-5], words[-6] = words[-6], words[-5]
    return " ".join(words)


def assignment(price: Price | None = PRICE) -> Assignment:
    params = load_params()
    params.generators["smollm2"] = Generator("transformers", "pip:smollm2", price=price)
    sizes = [Size(d.doc_id, d.domain, len(d.sentences)) for d in DOCUMENTS]
    return assignments(params, ["cumulative"], sizes)[0]


def fill(journal: Journal, limit: float | None = None) -> JournalledEditor:
    editor = JournalledEditor(ScriptedEditor(swap), journal, PRICE, Budget(limit))
    for _ in build_trajectories(DOCUMENTS, editor, assignment().brief, Tally()):
        pass
    return editor


def made(journal: Journal, price: Price | None = PRICE) -> Plan:
    return plan(assignment(price), documents, ScriptedEditor(swap), journal)


def test_an_empty_journal_leaves_everything_to_ask(tmp_path: Path) -> None:
    with Journal(tmp_path / "j.sqlite") as journal:
        found = made(journal)
    assert found.revisions == 6 * 47
    assert (found.revisions_held, found.requests_held) == (0, 0)
    assert found.requests_left == round(1.15 * found.revisions)
    assert found.prompt_tokens_left > 100 * found.requests_left
    dollars = (found.prompt_tokens_left + 10 * found.reply_tokens_left) / 1e6
    assert found.cost_left == pytest.approx(dollars, abs=2e-5)


def test_a_complete_journal_leaves_nothing_and_no_request_is_sent(tmp_path: Path) -> None:
    with Journal(tmp_path / "j.sqlite") as journal:
        asked = fill(journal).asked
        found = made(journal)
    assert found.revisions_held == found.revisions
    assert found.requests_held == asked
    assert (found.requests_left, found.cost_left) == (0, 0.0)


def test_without_a_price_there_is_no_cost(tmp_path: Path) -> None:
    with Journal(tmp_path / "j.sqlite") as journal:
        assert made(journal, None).cost_left is None


def test_a_used_up_budget_stops_after_what_is_in_flight_and_a_higher_one_goes_on(
    tmp_path: Path,
) -> None:
    whole = Journal(tmp_path / "whole.sqlite")
    needed = fill(whole).asked
    with Journal(tmp_path / "j.sqlite") as journal:
        with pytest.raises(InputError, match="the limit is"):
            fill(journal, limit=2e-3)
        paid = len(journal)
        # ScriptedEditor counts the words of a reply as its tokens and no prompt
        assert 0 < paid < needed / 2
        assert made(journal).requests_held == paid
        assert fill(journal).asked == needed - paid


def test_a_used_up_budget_stops_nothing_that_the_journal_answers(tmp_path: Path) -> None:
    with Journal(tmp_path / "j.sqlite") as journal:
        spent = fill(journal).asked
        assert fill(journal, limit=0.0).repeated == spent


def test_the_replies_that_use_up_a_budget_may_be_the_last_that_are_needed(tmp_path: Path) -> None:
    with Journal(tmp_path / "whole.sqlite") as whole:
        budget = Budget(limit=1e9)
        editor = JournalledEditor(ScriptedEditor(swap), whole, PRICE, budget)
        list(build_trajectories(DOCUMENTS, editor, assignment().brief, Tally()))
    with Journal(tmp_path / "j.sqlite") as journal:
        fill(journal, limit=budget.spent)
        assert len(journal) == editor.asked


def test_the_documents_that_tokens_are_estimated_from_are_of_all_domains(tmp_path: Path) -> None:
    """Documents come domain by domain, and texts of one domain may be many times as long."""
    short = [replace(d, doc_id=f"s{i}") for i in range(SAMPLE) for d in DOCUMENTS[:1]]
    long = [
        replace(d, sentences=tuple(replace(s, text=s.text * 20) for s in d.sentences))
        for d in short
    ]
    held = [*short, *(replace(d, doc_id=f"l{d.doc_id}") for d in long)]

    def tokens(documents: list[Document]) -> int:
        with Journal(tmp_path / "j.sqlite") as journal:
            found = plan(assignment(), lambda: documents, ScriptedEditor(swap), journal)
        return found.reply_tokens_left

    assert tokens(held) > 3 * tokens(short)


def test_a_plan_of_another_model_finds_nothing_in_the_journal(tmp_path: Path) -> None:
    other = ScriptedEditor(swap)
    other.model = "another"
    with Journal(tmp_path / "j.sqlite") as journal:
        fill(journal)
        found = plan(replace(assignment()), documents, other, journal)
    assert found.requests_held == 0


class Watching(Journal):
    """Counts the trajectories that are in memory when replies are looked for."""

    most = 0

    def find(self, keys: Sequence[str]) -> dict[str, Reply]:
        self.most = max(self.most, sum(isinstance(o, _Trajectory) for o in gc.get_objects()))
        return super().find(keys)


def test_documents_without_replies_do_not_gather_in_memory(tmp_path: Path) -> None:
    with Watching(tmp_path / "j.sqlite") as journal:
        many = map(different, range(5 * TOGETHER))
        plan(assignment(), lambda: many, ScriptedEditor(swap), journal)
        assert 0 < journal.most <= TOGETHER
