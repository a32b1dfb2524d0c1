"""Each document revised step by step, with the provenance of every sentence."""

import logging
from collections.abc import Iterable, Iterator
from typing import Any

import pandas as pd
from tqdm import tqdm

from palimpsest.editors.budget import Budget
from palimpsest.editors.factory import make_editor
from palimpsest.editors.journal import Journal, JournalledEditor, journal_path, only_writer
from palimpsest.errors import InputError
from palimpsest.params import Params, project_root
from palimpsest.records import TEXTS, Document, read_documents, read_rows, write_rows
from palimpsest.splits import split_rows
from palimpsest.stages.adopt import adopt_release
from palimpsest.stages.files import DOCUMENTS_FILE, REVISIONS_FILE, STATISTICS_FILE, texts_folder
from palimpsest.trajectories.assignments import Assignment, Size, assignments
from palimpsest.trajectories.build import build_trajectories
from palimpsest.trajectories.summary import COLUMNS, summarise
from palimpsest.trajectories.tally import Tally

log = logging.getLogger(__name__)


def generate(params: Params, max_cost: float | None = None) -> None:
    """Every selected design's trajectories, from the journal where it holds the replies.

    `max_cost` is the sum in US dollars at which no more requests are sent.

    Raises:
        InputError: more dropped trajectories or rejected revisions than the params allow, a cost
            limit that is reached or that nothing has a price for.
    """
    designs = params.designs
    if params.corpus.format == "opai-bench":
        _write_tables(designs, adopt_release(params, designs))
        return

    budget = Budget(max_cost)
    work = [(assignment, Tally()) for assignment in all_assignments(params)]
    if max_cost is not None:
        if not max_cost >= 0:  # nan would never be reached
            raise InputError(f"--max-cost is {max_cost}: give a sum in US dollars")
        _require_prices(assignment for assignment, _ in work)
    # All at once, so that a missing API key shows before any work.
    editors = {
        assignment.brief.generator: make_editor(assignment.generator, params.device, params.dtype)
        for assignment, _ in work
    }

    def rows(journal: Journal, assignment: Assignment, tally: Tally) -> Iterator[dict[str, Any]]:
        brief = assignment.brief
        price = assignment.generator.price
        editor = JournalledEditor(editors[brief.generator], journal, price, budget)
        documents = documents_of(assignment)
        title = f"{brief.design}, {brief.generator}"
        with tqdm(total=assignment.revisions, desc=title, unit="sentence", smoothing=0.1) as bar:
            yield from build_trajectories(documents, editor, brief, tally, bar)
        log.info("%s by %s: %d requests sent, %d answered by the journal; %s", brief.design,
                 brief.generator, editor.asked, editor.repeated, tally.describe())  # fmt: skip

    root = project_root()
    with only_writer(root), Journal(journal_path(root)) as journal:
        for design in designs:
            for held_out in (False, True):
                part = [
                    each
                    for each in work
                    if each[0].brief.design == design and each[0].generator.held_out == held_out
                ]
                texts = texts_folder(design, held_out) / "texts.parquet"
                write_rows(texts, TEXTS, (row for each in part for row in rows(journal, *each)))
    revisions = [
        {"design": assignment.brief.design, "generator": assignment.brief.generator, **row}
        for assignment, tally in work
        for row in tally.rows()
    ]
    _write_tables(designs, revisions)
    if budget.spent:
        log.info("$%.2f spent", budget.spent)
    for assignment, tally in work:
        generator = assignment.brief.generator
        if tally.dropped_share > params.trajectory.max_dropped:
            raise InputError(
                f"{tally.dropped} of {tally.dropped + tally.finished} trajectories of "
                f"{generator} were dropped, more than trajectory.max_dropped allows; "
                f"{REVISIONS_FILE} counts the reasons, and "
                "trajectory.on_rejection=later keeps such sentences human"
            )
        if tally.rejected_share > params.trajectory.max_rejected:
            raise InputError(
                f"{tally.rejected_share:.0%} of {generator}'s revisions had no reply that could be "
                f"used, more than trajectory.max_rejected allows; {REVISIONS_FILE} counts the "
                "reasons"
            )


def all_assignments(params: Params) -> list[Assignment]:
    """The work of every generator under every selected design.

    Raises:
        InputError: no documents, a prompt set that is missing or wrong.
    """
    if not DOCUMENTS_FILE.is_file():
        # `dvc repro` alone would go on to ask, and pay for, what a plan is to tell first
        raise InputError(f"{DOCUMENTS_FILE} does not exist: run `dvc repro corpus`")
    sizes = [Size(d.doc_id, d.domain, len(d.sentences)) for d in read_documents(DOCUMENTS_FILE)]
    return assignments(params, params.designs, sizes)


def documents_of(assignment: Assignment) -> Iterator[Document]:
    """The documents that an assignment edits."""
    return (d for d in read_documents(DOCUMENTS_FILE) if d.doc_id in assignment.documents)


def _require_prices(work: Iterable[Assignment]) -> None:
    for assignment in work:
        if assignment.generator.price is None:
            name = assignment.brief.generator
            raise InputError(
                f"--max-cost needs a price: set generators.{name}.price in params.yaml"
            )


def _write_tables(designs: Iterable[str], revisions: list[dict[str, Any]]) -> None:
    """What the texts hold, and what became of each revision."""
    splits = {row["doc_id"]: row["split"] for row in split_rows(read_documents(DOCUMENTS_FILE))}
    facts = [
        summarise(read_rows(texts_folder(design, held_out), COLUMNS), splits, held_out)
        for design in designs
        for held_out in (False, True)
    ]
    pd.concat(facts).to_csv(STATISTICS_FILE, index=False)
    pd.DataFrame(revisions).to_csv(REVISIONS_FILE, index=False)
