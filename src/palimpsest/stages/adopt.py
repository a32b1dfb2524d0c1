"""The texts of the OpAI-Bench release in the place of generated ones."""

import logging
from collections.abc import Iterable
from functools import partial
from typing import Any

from palimpsest.corpora.opai_bench import HELD_OUT
from palimpsest.errors import InputError
from palimpsest.params import Params
from palimpsest.records import TEXTS, read_documents, write_rows
from palimpsest.stages.files import DOCUMENTS_FILE, texts_folder
from palimpsest.trajectories.adopt import Report, adopt

log = logging.getLogger(__name__)


def adopt_release(params: Params, designs: Iterable[str]) -> list[dict[str, Any]]:
    """Write the designs' texts; what became of the release's rows, counted by reason.

    Raises:
        InputError: a design of which no row gave a text.
    """
    documents = {document.doc_id: document for document in read_documents(DOCUMENTS_FILE)}

    def belongs(held_out: bool, generator: str) -> bool:
        known = params.generators.get(generator)
        return held_out == (generator in HELD_OUT if known is None else known.held_out)

    counts = []
    for design in designs:
        for held_out in (False, True):
            folder = texts_folder(design, held_out)
            with Report(folder / "release.csv") as report:
                wanted = partial(belongs, held_out)
                rows = adopt(params.corpus, design, documents, wanted, report)
                count = write_rows(folder / "texts.parquet", TEXTS, rows)
            if not count and not held_out:
                raise InputError(
                    f"no row of the release gave a text: {report.path} names the rejected ones"
                )
            for row in report.rows():
                log.info("%s by %s: %s, %s: %d", design, row["generator"], row["kind"],
                         row["reason"], row["count"])  # fmt: skip
                counts.append({"design": design, **row})
    return counts
