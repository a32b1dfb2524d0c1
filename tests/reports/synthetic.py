"""Runs made of plausible numbers that no model was asked for."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any
from zlib import crc32

import numpy as np
import pandas as pd

from palimpsest.records import Scores, prediction_row
from palimpsest.tracking import Evaluation
from palimpsest.trajectories.summary import summarise

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
                        "fnr": 1 - recall, "auroc": 0.5 + recall / 2, "scored": 1.0,
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
        detector=detector, regime=regime, threshold_value=0.5,
        threshold=np.where(table["metric"].isin(["auroc", "scored"]), "none", "calibrated"),
    )  # fmt: skip
    own = table[~table["held_out"]]
    with_mean = pd.concat([table, _mean_over(own, "generator")], ignore_index=True)
    return pd.concat([with_mean, _mean_over(with_mean, "domain")], ignore_index=True)


def _mean_over(table: pd.DataFrame, column: str) -> pd.DataFrame:
    keys = [c for c in table.columns if c not in (column, "value", "low", "high", "n")]
    means = table.groupby(keys, as_index=False, sort=False)[["value", "low", "high", "n"]].mean()
    return means.assign(**{column: "mean"})[table.columns]


def texts(design: str, documents: int = 1) -> Iterator[dict[str, Any]]:
    """A design's samples, four sentences of four words each."""
    words = [(5 * i, 5 * i + 4) for i in range(16)]
    sentences = [(20 * i, 20 * i + 19) for i in range(4)]
    for number in range(documents):
        domain = DOMAINS[number % 4]
        for generator in ("g1", "g2", "h"):
            for variant, version, operation, coverage in cells(design):
                ai = -(-4 * coverage // 100)
                place = [f"{domain}-{number}", generator, design, variant]
                trajectory_id = "/".join(filter(None, place))
                yield {
                    "sample_id": f"{trajectory_id}/{version}",
                    "trajectory_id": trajectory_id,
                    "doc_id": place[0],
                    "group": place[0],
                    "domain": domain,
                    "language": "en",
                    "generator": generator,
                    "design": design,
                    "variant": variant,
                    "version": version,
                    "operation": operation,
                    "target_coverage": coverage,
                    "label": int(ai > 0),
                    "text": "word " * 15 + "word",
                    "sentence_spans": sentences,
                    "sentence_labels": [int(i < ai) for i in range(4)],
                    "word_spans": words,
                    "word_labels": [int(i < 4 * ai) for i in range(16)],
                    "ai_spans": sentences[:ai],
                    "ai_sentence_ratio": ai / 4,
                }


def predictions(
    detector: str, design: str, native: str, documents: int, seed: int = 0, compress: float = 0.5
) -> Iterator[dict[str, Any]]:
    """Scores above those of human texts, by `compress` less so where text is compressed."""
    rng = np.random.default_rng([seed, crc32(f"{detector}{design}".encode())])
    for row in texts(design, documents):
        shift = compress * (row["operation"] == "compress")
        labels = {"sentence": row["sentence_labels"], "word": row["word_labels"]}
        fine = {
            level: (np.array(of) * (1.5 - shift) + rng.normal(size=len(of))).astype(np.float32)
            for level, of in labels.items()
        }
        document = row["target_coverage"] / 50 - shift + rng.normal()
        scores = Scores(
            document=float(document) if native == "document" else float("nan"),
            sentences=fine["sentence"] if native == "sentence" else None,
            words=fine["word"] if native == "word" else None,
        )
        yield prediction_row(row["sample_id"], scores)


def statistics(design: str) -> pd.DataFrame:
    rows = list(texts(design, 4))
    return summarise(rows, {row["doc_id"]: "test" for row in rows})


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
        "mlartifacts/none",
        params(detector, regime, design, seed, **more),
        {"prompt_set": "few-shot@abc"},
        records(detector, regime, design, levels, seed),
        statistics(design),
    )


def left_out(runs: Sequence[Evaluation]) -> list[Evaluation]:
    """The same runs with one unit unscored in each cell."""
    return [
        replace(run, records=run.records.assign(n_unscored=run.records["n_unscored"].clip(lower=1)))
        for run in runs
    ]
