"""What `generate` will ask and cost, told beforehand."""

import logging
from dataclasses import asdict, replace
from functools import partial

import pandas as pd

from palimpsest.editors.factory import make_editor
from palimpsest.editors.journal import Journal, journal_path
from palimpsest.editors.plan import plan as plan_of
from palimpsest.errors import InputError
from palimpsest.params import Params, project_root
from palimpsest.stages.generate import all_assignments, documents_of

log = logging.getLogger(__name__)


def plan(params: Params) -> pd.DataFrame:
    """One row for each design and generator; asks nothing.

    Raises:
        InputError: a corpus that is a release with texts, or that is not built yet.
    """
    if params.corpus.format == "opai-bench":
        raise InputError("corpus.source is a release: generate adopts its texts and asks no model")
    with Journal(journal_path(project_root())) as journal:
        plans = [
            plan_of(
                assignment,
                partial(documents_of, assignment),
                # nothing is asked, so no API key is needed
                make_editor(
                    replace(assignment.generator, key_variable=None), params.device, params.dtype
                ),
                journal,
            )
            for assignment in all_assignments(params)
        ]
    log.info("nothing was asked; held is what the journal answers, left an estimate of the rest")
    return pd.DataFrame(map(asdict, plans))
