"""The demo as `make repro` has left it in this checkout."""

from pathlib import Path

import numpy as np
import pytest

from palimpsest.detectors.interface import Runtime
from palimpsest.detectors.registry import make
from palimpsest.evaluation.bootstrap import document_weights, intervals, resampled_ranks
from palimpsest.records import read_rows, text_of
from tests.e2e.provenance import check_provenance

TEXTS = Path("artifacts/texts/cumulative/texts.parquet")

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.skipif(not TEXTS.exists(), reason="`make repro` has not built the demo here"),
]


def test_every_sample_keeps_its_provenance() -> None:
    assert check_provenance(Path()) > 0


def test_fast_detectgpt_with_the_generator_as_reference_finds_v8() -> None:
    rows = [row for row in read_rows(TEXTS) if row["version"] in ("v0", "v8")]
    _, owner = np.unique([row["doc_id"] for row in rows], return_inverse=True)
    settings = {"model": "pip:smollm2", "max_tokens": 1024}
    detector = make("fast-detectgpt", settings, Runtime())
    scores = np.array([answer.document for answer in detector.score(list(map(text_of, rows)))])
    ai = np.array([row["label"] for row in rows]) == 1
    weights = document_weights(owner.max() + 1, 1000, 0, "demo")
    ranks = resampled_ranks(scores[ai], scores[~ai], owner[ai], owner[~ai], weights)
    low, _ = intervals(ranks["auroc"][None])
    assert low[0] > 0.5
