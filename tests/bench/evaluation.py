"""Evaluation at the benchmark's size, on synthetic answers of a word-level method."""

import resource
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from itertools import islice, product
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from palimpsest.evaluation.bootstrap import (
    document_weights,
    intervals,
    resampled_ranks,
    resampled_sums,
)
from palimpsest.evaluation.metrics import decision_metrics
from palimpsest.evaluation.report import ALL, Context, evaluate
from palimpsest.evaluation.samples import TEXT_COLUMNS
from palimpsest.records import PREDICTIONS, TEXTS, read_batches

COVERAGE = (0, 15, 25, 40, 50, 60, 75, 90, 100)
DOMAINS = ("abstracts", "essays", "news", "reports", "stories")
GENERATORS = ("a", "b", "c", "d")
SENTENCE = 20  # words of a sentence
THRESHOLDS = {level: {"published": 0.5} for level in ("document", "sentence", "word")}


def measure() -> dict[str, float]:
    """Seconds, GiB, and how many times faster than scikit-learn slice by slice."""
    with tempfile.TemporaryDirectory() as folder:
        figures = whole(Path(folder), documents=7_778)
    return {**figures, **against_scikit_learn(), **bootstrap()}


def whole(folder: Path, documents: int) -> dict[str, float]:
    """All metrics of documents x 4 generators x 9 versions, of about 430 words each."""
    texts, predictions = write(folder, documents)
    words = sum(row_group_values(predictions))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    begin = time.perf_counter()
    records = run(texts, predictions, resamples=0)
    seconds = time.perf_counter() - begin
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return {
        "samples": documents * len(GENERATORS) * len(COVERAGE),
        "word scores": words,
        "records": len(records),
        "all metrics, s": seconds,
        "peak memory before, GiB": before / 2**20,
        "peak memory, GiB": peak / 2**20,
    }


def against_scikit_learn(documents: int = 100) -> dict[str, float]:
    """The same numbers by scikit-learn, called for each slice on arrays that lie ready."""
    with tempfile.TemporaryDirectory() as folder:
        texts, predictions = write(Path(folder), documents)
        begin = time.perf_counter()
        records = run(texts, predictions, resamples=0)
        ours = time.perf_counter() - begin
        columns = ["label", "domain", "generator", "version", "sentence_labels", "word_labels"]
        table = pq.read_table(texts, columns=columns).to_pandas()
        answers = pq.read_table(predictions, columns=["words", "word_labels"]).to_pandas()
        table = table.assign(words=answers["words"], tags=answers["word_labels"])
    theirs = 0.0
    differences = []
    keys = ["level", "domain", "generator", "version", "metric"]
    own = records[(records["version"] != ALL) & (records["threshold"] != "published")]
    numbers = dict(zip(own[keys].itertuples(index=False, name=None), own["value"], strict=True))
    for (domain, generator), cell in table.groupby(["domain", "generator"]):
        slices = {version: arrays(part) for version, part in cell.groupby("version")}
        for version, by_level in slices.items():
            for level, (labels, tags, scores) in by_level.items():
                human = slices["v0"][level]
                pool = (np.append(labels, human[0]), np.append(scores, human[2]))
                begin = time.perf_counter()
                found = scikit_learn(labels, tags, *pool)
                theirs += time.perf_counter() - begin
                for metric, value in found.items():
                    key = (level, domain, generator, version, metric)
                    differences.append(numbers[key] - value)
    worst = float(np.abs(differences).max())
    if not worst < 1e-9:
        raise AssertionError(f"scikit-learn differs by {worst}")
    return {
        "numbers compared with scikit-learn": len(differences),
        "largest difference": worst,
        "scikit-learn's calls, s": theirs,
        "all metrics of these, files read, s": ours,
        "times as fast": theirs / ours,
    }


def bootstrap(documents: int = 15_000, cells: int = 20, resamples: int = 1000) -> dict[str, float]:
    """Intervals of document-level metrics."""
    rng = np.random.default_rng(0)
    owner = np.arange(documents)

    def seconds(body: Callable[[np.ndarray], object]) -> float:
        begin = time.perf_counter()
        weights = document_weights(documents, resamples, 0, "essays")
        for _ in range(cells):
            body(weights)
        return time.perf_counter() - begin

    def counting(weights: np.ndarray) -> None:
        counts = rng.multinomial(1, [0.1, 0.2, 0.3, 0.4], documents)
        for values in decision_metrics(resampled_sums(counts, owner, weights)).values():
            intervals(values[None])

    def ranking(weights: np.ndarray) -> None:
        ai, human = rng.normal(0.5, 1, documents), rng.normal(0, 1, documents)
        for values in resampled_ranks(ai, human, owner, owner, weights).values():
            intervals(values[None])

    return {
        "bootstrap of counting metrics, s": seconds(counting),
        "bootstrap of AUROC, AUPRC and TPR at FPR, s": seconds(ranking),
    }


def run(texts: Path, predictions: Path, resamples: int) -> pd.DataFrame:
    context = Context("synthetic", "trained", "cumulative", frozenset({"d"}), resamples, 0)
    return evaluate(
        read_batches(texts, TEXT_COLUMNS), partial(read_batches, predictions), THRESHOLDS, context
    )


def arrays(part: pd.DataFrame) -> dict[str, tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Labels, decisions and scores of a slice at each level."""
    labels, tags, scores = (
        np.concatenate(part[n].tolist()) for n in ("word_labels", "tags", "words")
    )
    sentences: dict[str, list[float]] = {"gold": [], "tag": [], "score": []}
    documents: dict[str, list[float]] = {"tag": [], "score": []}
    for row in part.to_dict("records"):
        starts = np.arange(0, len(row["words"]), SENTENCE)
        n = np.diff(starts, append=len(row["words"]))
        means = np.add.reduceat(row["words"].astype(float), starts) / n
        share = np.add.reduceat(row["tags"].astype(float), starts) / n
        decided = np.where(share == 0.5, means >= 0.5, share > 0.5)
        sentences["gold"] += row["sentence_labels"].tolist()
        sentences["tag"] += decided.tolist()
        sentences["score"] += means.tolist()
        documents["tag"].append(row["tags"].max())
        documents["score"].append(np.add.reduce(row["words"].astype(float)) / n.sum())
    return {
        "word": (labels, tags, scores),
        "sentence": (
            np.array(sentences["gold"]),
            np.array(sentences["tag"], int),
            np.array(sentences["score"]),
        ),
        "document": (
            part["label"].to_numpy(),
            np.array(documents["tag"], int),
            np.array(documents["score"]),
        ),
    }


def scikit_learn(
    labels: np.ndarray, tags: np.ndarray, pooled_labels: np.ndarray, scores: np.ndarray
) -> dict[str, float]:
    from sklearn import metrics

    found = {
        "accuracy": metrics.accuracy_score(labels, tags),
        "macro_f1": metrics.f1_score(labels, tags, labels=[0, 1], average="macro", zero_division=0),
    }
    if labels.any():
        found["f1_ai"] = metrics.f1_score(labels, tags, zero_division=0)
        found["recall"] = metrics.recall_score(labels, tags)
        found["fnr"] = 1 - found["recall"]
        if tags.any():
            found["precision"] = metrics.precision_score(labels, tags)
        found["auroc"] = metrics.roc_auc_score(pooled_labels, scores)
        found["auprc"] = metrics.average_precision_score(pooled_labels, scores)
        fpr, tpr, _ = metrics.roc_curve(pooled_labels, scores, drop_intermediate=False)
        found["tpr_at_1_fpr"] = tpr[fpr <= 0.01].max()
        found["tpr_at_5_fpr"] = tpr[fpr <= 0.05].max()
    return found


def write(folder: Path, documents: int) -> tuple[Path, Path]:
    """Synthetic texts and predictions; scores say something about the labels."""
    texts, predictions = folder / "texts.parquet", folder / "predictions.parquet"
    facts = iter(product(range(documents), GENERATORS, range(len(COVERAGE))))
    rng = np.random.default_rng(0)
    schema = pa.schema([TEXTS.field(n) for n in TEXT_COLUMNS if n in TEXTS.names])
    with pq.ParquetWriter(texts, schema) as one, pq.ParquetWriter(predictions, PREDICTIONS) as two:
        while rows := list(islice(facts, 1000)):
            for writer, table in zip((one, two), _tables(rows, rng, schema), strict=True):
                writer.write_table(table)
    return texts, predictions


def _tables(
    rows: list[tuple[int, str, int]], rng: np.random.Generator, schema: pa.Schema
) -> Iterator[pa.Table]:
    sentences = rng.integers(10, 34, len(rows))
    words = sentences * SENTENCE
    coverage = np.array([COVERAGE[t] for _, _, t in rows])
    ai = rng.random(sentences.sum()) < np.repeat(coverage, sentences) / 100
    word_labels = np.repeat(ai, SENTENCE).astype(np.int8)
    scores = (0.6 * rng.random(len(word_labels)) + 0.3 * word_labels).astype(np.float32)

    def lists(values: pa.Array, lengths: np.ndarray) -> pa.Array:
        return pa.ListArray.from_arrays(
            pa.array(np.append(0, np.cumsum(lengths)), pa.int32()), values
        )

    def spans(count: np.ndarray, size: int) -> pa.Array:
        place = np.arange(count.sum()) - np.repeat(np.cumsum(count) - count, count)
        pairs = np.stack([place * size, place * size + size - 1], axis=1).astype(np.int32)
        return lists(pa.FixedSizeListArray.from_arrays(pa.array(pairs.ravel()), 2), count)

    ids = [f"{d:06}/{g}/v{t}" for d, g, t in rows]
    facts = {
        "sample_id": ids,
        "doc_id": [f"{d:06}" for d, _, _ in rows],
        "variant": [""] * len(rows),
        "domain": [DOMAINS[d % len(DOMAINS)] for d, _, _ in rows],
        "generator": [g for _, g, _ in rows],
        "version": [f"v{t}" for _, _, t in rows],
        "operation": ["none" if t == 0 else "polish" for _, _, t in rows],
        "target_coverage": coverage.astype(np.int16),
        "ai_sentence_ratio": coverage / 100,
        "label": (coverage > 0).astype(np.int8),
        "text": ["word " * n for n in words],
        "sentence_spans": spans(sentences, 5 * SENTENCE),
        "sentence_labels": lists(pa.array(ai.astype(np.int8)), sentences),
        "word_spans": spans(words, 5),
        "word_labels": lists(pa.array(word_labels), words),
        "ai_spans": pa.nulls(len(rows), schema.field("ai_spans").type),
    }
    yield pa.table({name: facts[name] for name in schema.names}, schema=schema)
    nothing = pa.nulls(len(rows))
    tags = (scores >= 0.45).astype(np.int8)
    answers = dict.fromkeys(PREDICTIONS.names, nothing)
    answers |= {
        "sample_id": pa.array(ids),
        "document": pa.array(np.full(len(rows), np.nan)),
        "words": lists(pa.array(scores), words),
        "word_labels": lists(pa.array(tags), words),
    }
    arrays = [answers[f.name].cast(f.type) for f in PREDICTIONS]
    yield pa.Table.from_arrays(arrays, schema=PREDICTIONS)


def row_group_values(path: Path) -> Iterator[int]:
    """How many words each row group holds."""
    for batch in read_batches(path, ["words"]):
        yield len(batch.column("words").flatten())
