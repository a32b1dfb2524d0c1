"""The papers' printed numbers, and which of our detectors each printed name is."""

from functools import cache
from pathlib import Path

import pandas as pd

# The papers' words for what we call otherwise.
_LEVELS = {"token": "word", "span": "character"}
_REGIMES = {"zero_shot": "zero-shot", "llm_as_detector": "llm-as-detector"}


@cache
def printed(name: str) -> pd.DataFrame:
    """A file of this folder, every cell a string as it was printed, "" where nothing was."""
    return pd.read_csv(Path(__file__).parent / f"{name}.csv", dtype=str, keep_default_na=False)


@cache
def opai_results() -> pd.DataFrame:
    """OpAI-Bench's Tables 4 and 8-11 with our names for levels and regimes; `value` in [0, 1]."""
    results = printed("opai_results")
    results = results[results["value"] != ""]
    return results.assign(
        table=results["table"].astype(int),
        level=results["granularity"].replace(_LEVELS),
        regime=results["regime"].replace(_REGIMES),
        value=results["value"].astype(float) / 100,
    ).drop(columns="granularity")


def paper_level(detector: str, regime: str) -> str | None:
    """The level at which the paper judges a detector; None where it is not the paper's."""
    found = _known().get((detector, regime))
    return found[1] if found else None


def detectors_called(name: str, levels: tuple[str, ...]) -> list[tuple[str, str]]:
    """Our (detector, regime) for a printed name at any of these levels."""
    return [
        key for key, (its_name, level) in _known().items() if its_name == name and level in levels
    ]


def position(detector: str) -> int | None:
    """A detector's place among the paper's, the same wherever it is shown."""
    names = list(dict.fromkeys(detector for detector, _ in _known()))
    return names.index(detector) if detector in names else None


@cache
def _known() -> dict[tuple[str, str], tuple[str, str]]:
    """(detector, regime) -> (printed name, level), in the paper's order."""
    rows = printed("detectors").to_dict("records")
    return {(row["detector"], row["regime"]): (row["printed"], row["level"]) for row in rows}
