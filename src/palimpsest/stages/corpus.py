"""Human documents from the source: normalised, in sentences, filtered, sampled."""

import logging
from dataclasses import asdict

import pandas as pd

from palimpsest.corpora.build import build_documents
from palimpsest.corpora.opai_bench import release_documents
from palimpsest.params import Params
from palimpsest.records import DOCUMENTS, document_row, write_rows
from palimpsest.stages.files import ARTIFACTS, DOCUMENTS_FILE

log = logging.getLogger(__name__)


def corpus(params: Params) -> None:
    """Write the documents, and each rejected one with its reason."""
    build = release_documents if params.corpus.format == "opai-bench" else build_documents
    built = build(params.corpus)
    write_rows(DOCUMENTS_FILE, DOCUMENTS, map(document_row, built.documents))
    columns = ["doc_id", "domain", "reason", "place"]
    rejected = pd.DataFrame(list(map(asdict, built.rejections)), columns=columns)
    rejected.to_csv(ARTIFACTS / "rejected.csv", index=False)
    for domain, count in built.counts.items():
        counts = (f"{n} {name.replace('_', ' ')}" for name, n in asdict(count).items())
        log.info("%s: %s", domain, ", ".join(counts))
    if any(count.not_sampled for count in built.counts.values()):
        most, limit = params.corpus.documents_per_domain, params.corpus.limit
        log.info("not sampled: corpus.documents_per_domain=%s, corpus.limit=%s", most, limit)
    for reason, n in rejected["reason"].value_counts().items():
        log.info("rejected, %s: %d", reason, n)
