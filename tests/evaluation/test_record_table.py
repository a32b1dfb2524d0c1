"""The record table against scikit-learn, scipy and plain definitions, whatever the answers are."""

from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linear_sum_assignment
from scipy.stats import spearmanr
from sklearn.metrics import (
    accuracy_score,
    average_precision_score,
    brier_score_loss,
    f1_score,
    precision_score,
    recall_score,
    roc_auc_score,
    roc_curve,
)

from palimpsest.evaluation.metrics import BINS
from palimpsest.evaluation.spans import IOU
from palimpsest.records import ScoredSpan, Scores
from tests.evaluation.cases import COVERAGE, records, sample

NAN = float("nan")
VERSIONS = ("v0", "v3", "v5", "v8")

Row = dict[str, Any]
Answers = list[tuple[Row, Scores]]
Numbers = dict[tuple[str, str, str], float]  # by level, metric and version


def found(answers: Answers, **changed: Any) -> Numbers:
    table = records(answers, resamples=0, **changed)
    one = table[(table["domain"] == "essays") & (table["generator"] == "near")]
    keys = one[["level", "metric", "version"]].itertuples(index=False, name=None)
    return dict(zip(keys, one["value"], strict=True))


def decided(labels: np.ndarray, tags: np.ndarray) -> Iterator[tuple[str, float]]:
    if not len(labels):
        return
    yield "accuracy", accuracy_score(labels, tags)
    yield "macro_f1", f1_score(labels, tags, labels=[0, 1], average="macro", zero_division=0)
    yield "ai_share", tags.mean()
    if labels.any():
        yield "f1_ai", f1_score(labels, tags, zero_division=0)
        yield "recall", recall_score(labels, tags)
        yield "fnr", 1 - recall_score(labels, tags)
        if tags.any():
            yield "precision", precision_score(labels, tags)


def ranked(labels: np.ndarray, scores: np.ndarray) -> Iterator[tuple[str, float]]:
    if len(set(labels)) < 2:
        return
    yield "auroc", roc_auc_score(labels, scores)
    yield "auprc", average_precision_score(labels, scores)
    fpr, tpr, _ = roc_curve(labels, scores, drop_intermediate=False)
    for rate in (1, 5):
        yield f"tpr_at_{rate}_fpr", tpr[fpr <= rate / 100].max()


def calibrated(labels: np.ndarray, scores: np.ndarray) -> Iterator[tuple[str, float]]:
    if not len(labels):
        return
    yield "brier", brier_score_loss(labels, scores, pos_label=1)
    bins = np.minimum(np.floor(scores * BINS), BINS - 1)
    parts = [(labels[bins == b], scores[bins == b]) for b in set(bins)]
    yield "ece", sum(len(y) * abs(y.mean() - s.mean()) for y, s in parts) / len(labels)


# --- a word method, at all levels and along the trajectory ---

WORD = st.tuples(st.sampled_from([NAN, 0, 0.25, 0.5, 1]), st.sampled_from([-1, 0, 1]))
ANSWER = st.one_of(st.none(), st.lists(WORD, min_size=6, max_size=6))


@st.composite
def runs(draw: st.DrawFn) -> Answers:
    """A few documents, most versions of each, two sentences of three words; any answers at all."""
    answers: Answers = []
    for i in range(draw(st.integers(1, 3))):
        for version in VERSIONS:
            if (version != "v0" or i) and draw(st.integers(0, 5)) == 0:
                continue
            labels = [0, 0] if version == "v0" else draw(st.sampled_from([[0, 1], [1, 0], [1, 1]]))
            answer = draw(ANSWER)
            scores = Scores(NAN, reason="error")
            if answer is not None:
                words, tags = zip(*answer, strict=True)
                scores = Scores(NAN, words=np.array(words, "f4"), word_labels=np.array(tags, "i1"))
            answers.append((sample(labels, doc=f"d{i}", version=version), scores))
    return answers


def by_level(answers: Answers) -> dict[str, pd.DataFrame]:
    """Each unit's sample, document, version, label, score and tag."""
    units: dict[str, list[Row]] = {"word": [], "sentence": [], "document": []}
    for row, answer in answers:
        same = {name: row[name] for name in ("sample_id", "doc_id", "version")}
        scores = np.full(6, NAN) if answer.words is None else answer.words.astype(float)
        tags = np.full(6, -1) if answer.word_labels is None else answer.word_labels
        document = {"label": row["label"], "score": mean(scores), "tag": tags.max()}
        units["document"].append({**same, **document})
        for i, label in enumerate(row["sentence_labels"]):
            three = slice(3 * i, 3 * i + 3)
            score, known = mean(scores[three]), tags[three][tags[three] >= 0]
            tag = -1 if not len(known) else float(known.mean() + 0.1 * (score >= 0.5) > 0.5)
            units["sentence"].append({**same, "label": label, "score": score, "tag": tag})
            units["word"] += [
                {**same, "label": label, "score": s, "tag": t}
                for s, t in zip(scores[three], tags[three], strict=True)
            ]
    return {level: pd.DataFrame(rows) for level, rows in units.items()}


def mean(scores: np.ndarray) -> float:
    known = scores[~np.isnan(scores)]
    return float(known.mean()) if len(known) else NAN


def expected(answers: Answers) -> Numbers:
    numbers: Numbers = {}
    units = by_level(answers)
    for level, table in units.items():
        answered = table["score"].notna() | (table["tag"] >= 0)
        if level != "document" and not answered.any():
            continue
        for version, cell in table.groupby("version"):
            known = cell[cell["tag"] >= 0]
            scored = cell[cell["score"].notna()]
            human = table[(table["version"] == "v0") & table["doc_id"].isin(cell["doc_id"])]
            pool = pd.concat([cell, human]).dropna(subset="score")
            own = [("scored", share_answered(cell)), *decided(*arrays(known, "tag"))]
            if level == "word":
                own += calibrated(*arrays(scored, "score"))
            if version != "v0":
                own += ranked(*arrays(pool, "score"))
            numbers |= {(level, metric, str(version)): value for metric, value in own}
        for metric in ("accuracy", "f1_ai", "macro_f1", "auroc"):
            curve = [numbers.get((level, metric, version), NAN) for version in VERSIONS[1:]]
            if not np.isnan(curve).any():
                fall = min(curve[0], curve[2]) - curve[1]
                numbers[level, f"{metric}_dip", "all"] = max(fall, 0.0)
    for metric, value in along(units["document"], answers):
        numbers["document", metric, "all"] = value
    return numbers


def arrays(units: pd.DataFrame, of: str) -> tuple[np.ndarray, np.ndarray]:
    return units["label"].to_numpy(int), units[of].to_numpy(int if of == "tag" else float)


def share_answered(units: pd.DataFrame) -> float:
    """A sample's answered units are its scored or its decided ones, whichever are more."""
    flags = units.assign(score=units["score"].notna(), tag=units["tag"] >= 0)
    return flags.groupby("sample_id")[["score", "tag"]].sum().max(axis=1).sum() / len(units)


def along(units: pd.DataFrame, answers: Answers) -> Iterator[tuple[str, float]]:
    """What is said of trajectories: the documents' versions in the order of coverage."""
    if units["version"].nunique() < 2:
        return
    coverage = {row["sample_id"]: row["ai_sentence_ratio"] for row, _ in answers}
    units = units.assign(coverage=units["sample_id"].map(coverage))
    order = sorted(set(units["version"]), key=COVERAGE.__getitem__)
    falls, firsts, rhos, judged = [], [], [], 0
    for _, document in units.groupby("doc_id"):
        versions = document.sort_values("version")
        known = versions.dropna(subset="score")
        points = list(zip(known["coverage"], known["score"], strict=True))
        falls += [b[1] < a[1] for a, b in combinations(points, 2) if a[0] < b[0]]
        if len(points) >= 3 and all(len(set(side)) > 1 for side in zip(*points, strict=True)):
            rhos.append(spearmanr(known["coverage"], known["score"]).statistic)
        later = versions[(versions["version"] != "v0") & (versions["tag"] >= 0)]
        judged += len(later) > 0
        firsts += [order.index(version) for version in later[later["tag"] == 1]["version"][:1]]
    if falls:
        yield "inversions", float(np.mean(falls))
    if rhos:
        yield "coverage_rho", float(np.mean(rhos))
    if firsts:
        yield "first_detected", float(np.mean(firsts))
    if judged:
        yield "detected", len(firsts) / judged


@given(runs())
@settings(max_examples=20)
def test_every_number_of_a_word_method_is_the_reference_s_and_no_other_is_there(
    answers: Answers,
) -> None:
    assert found(answers, probabilities=frozenset({"word"})) == pytest.approx(expected(answers))


# --- a span method ---

SPANS = st.lists(st.tuples(st.integers(0, 34), st.integers(1, 24)), max_size=4)


def runs_of(characters: set[int]) -> list[tuple[int, int]]:
    return [
        (i, next(j for j in range(i, 99) if j not in characters))
        for i in sorted(characters)
        if i - 1 not in characters
    ]


def characters_of(spans: Sequence[Sequence[int]]) -> set[int]:
    return {i for start, end in spans for i in range(start, end)}


def true_runs(row: Row) -> list[tuple[int, int]]:
    """From the first to the last word of AI sentences in a row."""
    inside = characters_of(row["ai_spans"])
    return runs_of(inside | {i for i in range(1, 35) if {i - 1, i + 1} <= inside})


def iou(one: tuple[int, int], other: tuple[int, int]) -> float:
    a, b = characters_of([one]), characters_of([other])
    return len(a & b) / len(a | b)


@given(st.lists(st.tuples(st.lists(st.integers(0, 1), min_size=3, max_size=3), st.none() | SPANS),
                min_size=1, max_size=3))  # fmt: skip
@settings(max_examples=30)
def test_spans_and_characters_are_counted_as_they_are_defined(
    drawn: list[tuple[list[int], list[tuple[int, int]] | None]],
) -> None:
    answers: Answers = []
    labels, tags, errors = [], [], []
    predicted = true = 0
    for i, (sentences, pairs) in enumerate(drawn):
        row = sample(sentences, doc=f"d{i}")
        assert len(row["text"]) == 35
        spans = None if pairs is None else [(a, min(35, a + n)) for a, n in pairs]
        given_spans = None if spans is None else tuple(ScoredSpan(a, b, 0.9) for a, b in spans)
        answers.append((row, Scores(NAN, spans=given_spans)))
        if spans is None:
            continue
        labels += [int(c in characters_of(row["ai_spans"])) for c in range(35)]
        tags += [int(c in characters_of(spans)) for c in range(35)]
        ours, theirs = runs_of(characters_of(spans)), true_runs(row)
        predicted, true = predicted + len(ours), true + len(theirs)
        free = dict.fromkeys(theirs)
        matches = []
        for one in ours:
            if partner := next((t for t in free if iou(one, t) >= IOU), None):
                del free[partner]
                matches.append((one, partner))
        if ours and theirs:
            possible = np.array([[iou(p, t) >= IOU for t in theirs] for p in ours])
            assert len(matches) == possible[linear_sum_assignment(possible, maximize=True)].sum()
        errors += [(abs(p[0] - t[0]) + abs(p[1] - t[1])) / 2 for p, t in matches]
    numbers = found(answers)
    own = {
        f"{level} {metric}": value
        for (level, metric, _), value in numbers.items()
        if level in ("span", "character") and metric != "scored"
    }
    wanted = {f"character {m}": v for m, v in decided(np.array(labels), np.array(tags))}
    if true:
        wanted |= {
            "span recall": len(errors) / true,
            "span f1": 2 * len(errors) / (predicted + true),
        }
        if predicted:
            wanted["span precision"] = len(errors) / predicted
    if errors:
        wanted["span boundary_error"] = float(np.mean(errors))
    assert own == pytest.approx(wanted)
