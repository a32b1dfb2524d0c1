"""Each document's split."""

import logging

from palimpsest.params import Params
from palimpsest.records import SPLITS, read_documents, write_rows
from palimpsest.splits import split_rows
from palimpsest.stages.files import DOCUMENTS_FILE, SPLITS_FILE

log = logging.getLogger(__name__)


def split(_: Params) -> None:
    """Write each document's split."""
    count = write_rows(SPLITS_FILE, SPLITS, split_rows(read_documents(DOCUMENTS_FILE)))
    log.info("%d documents are in a split", count)
