"""Runs made of plausible numbers that no model was asked for."""

from collections.abc import Iterator, Sequence
from typing import Any
from zlib import crc32

import numpy as np
import pandas as pd

from palimpsest.records import Scores, prediction_row
from palimpsest.tracking import Evaluation

DOMAINS = ("abstracts", "essays", "news", "reports")
OPERATIONS = ("compress", "expand", "paraphrase")
SCHEDULE = (
    ("v0", "none", 0), ("v1", "polish", 15), ("v2", "paraphrase", 25), ("v3", "style", 40),
    ("v4", "compress", 50), ("v5", "expand", 60), ("v6", "style", 75), ("v7", "paraphrase", 90),
    ("v8", "polish", 100),
)  # fmt: skip
UNDEFINED_AT_V0 = {"f1_ai", "fnr", "auroc"}


def cells(design: str) -> Iterator[tuple[str, str, str, int]]:
    """(variant, version, operation, coverage) of a design's samples."""
    match design:
        case "coverage":
            for operation in OPERATIONS:
                yield operation, "c000", "none", 0
                for coverage in (25, 50, 75, 100):
                    yield operation, f"c{coverage:03}", operation, coverage
        case "operation":
            for coverage in (25, 50, 75):
                yield str(coverage), "v0", "none", 0
                for operation in OPERATIONS:
                    yield str(coverage), operation, operation, coverage
        case _:
            for version in SCHEDULE:
                yield "", *version


def records(
    detector: str,
    regime: str,
    design: str,
    levels: Sequence[str],
    seed: int = 0,
    generators: Sequence[str] = ("g1", "g2"),
    held_out: Sequence[str] = ("h",),
) -> pd.DataFrame:
    """Numbers that rise with coverage, dip where text is compressed, and differ by detector."""
    rng = np.random.default_rng([seed, crc32(f"{detector}{design}".encode())])
    rows = []
    for level in levels:
        skill = rng.uniform(0.2, 0.9)
        for variant, version, operation, coverage in cells(design):
            for generator in (*generators, *held_out):
                for domain in DOMAINS:
                    recall = skill * (0.3 + 0.7 * coverage / 100)
                    recall -= 0.15 * (operation == "compress")
                    recall = float(np.clip(recall + rng.normal(0, 0.03), 0.01, 0.99))
                    share = 1.0 if level == "document" and coverage else coverage / 100
                    accuracy = share * recall + (1 - share) * 0.95
                    f1 = 2 * share * recall / (share * recall + share + (1 - share) * 0.05)
                    values = {
                        "accuracy": accuracy, "f1_ai": f1, "macro_f1": (f1 + accuracy) / 2,
                        "fnr": 1 - recall, "auroc": 0.5 + recall / 2,
                    }  # fmt: skip
                    for metric, value in values.items():
                        if coverage or metric not in UNDEFINED_AT_V0:
                            rows.append(
                                (level, metric, value, variant, version, operation, coverage,
                                 domain, generator, generator in held_out)
                            )  # fmt: skip
    columns = ["level", "metric", "value", "variant", "version", "operation", "coverage", "domain",
               "generator", "held_out"]  # fmt: skip
    table = pd.DataFrame(rows, columns=columns)
    table = table.assign(
        n=100, n_unscored=0, low=table["value"] - 0.04, high=table["value"] + 0.04, design=design,
        detector=detector, regime=regime,
        threshold=np.where(table["metric"] == "auroc", "none", "calibrated"),
    )  # fmt: skip
    own = table[~table["held_out"]]
    with_mean = pd.concat([table, _mean_over(own, "generator")], ignore_index=True)
    return pd.concat([with_mean, _mean_over(with_mean, "domain")], ignore_index=True)


def _mean_over(table: pd.DataFrame, column: str) -> pd.DataFrame:
    keys = [c for c in table.columns if c not in (column, "value", "low", "high", "n")]
    means = table.groupby(keys, as_index=False, sort=False)[["value", "low", "high", "n"]].mean()
    return means.assign(**{column: "mean"})[table.columns]


def statistics(design: str) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "design": design, "domain": ["essays", "essays", "news"],
            "generator": ["g1", "g2", "g1"], "documents": [4, 2, 3], "trajectories": [4, 2, 3],
            "samples": [36, 18, 27], "avg_sentences": [10.0, 13.0, 20.0],
            "avg_words": [200.0, 230.0, 400.0],
        }
    )  # fmt: skip


def params(detector: str, regime: str, design: str, seed: int = 0, **more: str) -> dict[str, str]:
    return {
        "detector": detector, "regime": regime, "design": design, "profile": "paper",
        "texts": f"texts-{design}", "splits": "splits", "generators": "g1 g2 h",
        "select.domains": "all", "train.seed": str(seed), "seed": "0", **more,
    }  # fmt: skip


def evaluation(
    run_id: str,
    detector: str = "fast-detectgpt",
    regime: str = "zero-shot",
    design: str = "cumulative",
    levels: Sequence[str] = ("document", "sentence"),
    seed: int = 0,
    **more: str,
) -> Evaluation:
    """A run as the store would give it; `more` are further params."""
    return Evaluation(
        run_id,
        params(detector, regime, design, seed, **more),
        {"prompt_set": "few-shot@abc"},
        records(detector, regime, design, levels, seed),
        statistics(design),
    )


def predictions(
    detector: str, design: str, documents: int, seed: int = 0
) -> Iterator[dict[str, Any]]:
    """Document scores that rise with coverage, and fall where text is compressed."""
    rng = np.random.default_rng([seed, crc32(f"{detector}{design}".encode())])
    for number in range(documents):
        for generator in ("g1", "g2", "h"):
            for variant, version, operation, coverage in cells(design):
                place = [f"{DOMAINS[number % 4]}-{number}", generator, design, variant, version]
                score = coverage / 50 - (operation == "compress") + rng.normal()
                scores = Scores(document=float(score))
                yield prediction_row("/".join(filter(None, place)), scores)
