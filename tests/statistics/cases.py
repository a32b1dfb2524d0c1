"""Logits of a few positions as token statistics, and the reference values beside the repository."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import torch

from palimpsest.statistics.columns import columns
from palimpsest.statistics.tokens import TokenStatistics

_PUBLISHED = Path(__file__).parents[3] / "shared" / "cases" / "numeric_cases.json"


def statistics_of(logits: Sequence[Sequence[float]], ids: Sequence[int]) -> TokenStatistics:
    """Row t of the (T, V) logits follows the ids 0 to t; token t is the character t."""
    rows = columns(torch.tensor(logits, dtype=torch.float32), torch.tensor([*ids[1:], 0]))
    offsets = torch.arange(1, len(ids) + 1, dtype=torch.int32).numpy()
    return TokenStatistics.of(rows.numpy(), offsets[:-1], offsets[1:])


def published_cases(statistic: str) -> list[Any]:
    """Values that the methods' own code gives, as pytest parameters; one skipped if absent."""
    if not _PUBLISHED.is_file():
        reason = "the published numeric cases are not beside this checkout"
        return [pytest.param(None, marks=pytest.mark.skip(reason=reason), id="absent")]
    cases = json.loads(_PUBLISHED.read_text())["cases"]
    return [pytest.param(case, id=case["id"]) for case in cases if case["statistic"] == statistic]


def close(expected: float) -> Any:
    return pytest.approx(expected, rel=1e-6, abs=1e-6)
