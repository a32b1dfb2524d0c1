"""Logits of a few positions as statistics, and the reference values beside the repository."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from palimpsest.statistics.columns import columns, pair_columns
from palimpsest.statistics.passes import SinglePass, read_texts
from palimpsest.statistics.reference import Reference
from palimpsest.statistics.tokens import DrawnStatistics, PairStatistics, Read, TokenStatistics

_PUBLISHED = Path(__file__).parents[3] / "shared" / "cases" / "numeric_cases.json"

Logits = Sequence[Sequence[float]]


def statistics_of(logits: Logits, ids: Sequence[int]) -> TokenStatistics:
    """Row t of the (T, V) logits follows the ids 0 to t; token t is the character t."""
    return TokenStatistics.of(_read(columns(torch.tensor(logits).float(), _targets(ids)), ids))


def pair_of(sampling: Logits, scoring: Logits, ids: Sequence[int]) -> PairStatistics:
    p, q = torch.tensor(sampling).float(), torch.tensor(scoring).float()
    return PairStatistics.of(_read(pair_columns(p, q, _targets(ids)), ids))


def drawn_of(logits: Logits, ids: Sequence[int], draws: Sequence[Sequence[int]]) -> DrawnStatistics:
    """`draws` has, for each scored position, the ids that were drawn there."""
    logp = torch.tensor(logits).log_softmax(1)
    tokens = torch.cat([_targets(ids)[:-1, None], torch.tensor(draws)], dim=1)
    last = torch.zeros(1, tokens.shape[1])
    rows = torch.cat([logp[:-1].gather(1, tokens), last]).T.float()
    return DrawnStatistics.of(_read(rows, ids))


def token_statistics(
    reference: Reference, texts: Sequence[str], **settings: Any
) -> list[TokenStatistics]:
    """One model's statistics of each text's tokens; settings are those of `read_texts`."""
    return [
        TokenStatistics.of(read) for read in read_texts(SinglePass(reference), texts, **settings)
    ]


def _targets(ids: Sequence[int]) -> torch.Tensor:
    return torch.tensor([*ids[1:], 0])


def _read(rows: torch.Tensor, ids: Sequence[int]) -> Read:
    offsets = np.arange(1, len(ids) + 1, dtype=np.int32)
    return Read(rows.numpy(), offsets[:-1], offsets[1:])


def published_cases(statistic: str) -> list[Any]:
    """Values that the methods' own code gives, as pytest parameters; one skipped if absent."""
    if not _PUBLISHED.is_file():
        reason = "the published numeric cases are not beside this checkout"
        return [pytest.param(None, marks=pytest.mark.skip(reason=reason), id="absent")]
    cases = json.loads(_PUBLISHED.read_text())["cases"]
    return [pytest.param(case, id=case["id"]) for case in cases if case["statistic"] == statistic]


def close(expected: float | list[float]) -> Any:
    return pytest.approx(expected, rel=1e-6, abs=1e-6)
