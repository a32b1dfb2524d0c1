from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import accuracy_score, f1_score, roc_auc_score

from palimpsest.errors import InputError
from palimpsest.evaluation.report import ALL, MEAN, preferred_threshold
from palimpsest.records import ScoredSpan, Scores
from tests.evaluation.cases import COVERAGE, only, records, sample

NAN = float("nan")
THRESHOLDS = {"document": {"published": None, "calibrated": {"value": 0.0}}}

Answers = list[tuple[dict[str, Any], Scores]]


def documents(scores: dict[tuple[str, str, str], list[float]]) -> Answers:
    """(domain, generator, version) -> one document score each."""
    return [
        (
            sample([int(version != "v0")], doc=f"{domain}{i}", domain=domain, generator=generator,
                   version=version),
            Scores(document=value),
        )
        for (domain, generator, version), values in scores.items()
        for i, value in enumerate(values)
    ]  # fmt: skip


GIVEN: dict[tuple[str, str, str], list[float]] = {
    ("essays", "near", "v0"): [-1, -1, 1, -1],
    ("essays", "near", "v1"): [1, 1, 1, NAN],
    ("essays", "near2", "v0"): [-1, -1, -1, -1],
    ("essays", "near2", "v1"): [-2, -2, -2, 2],
    ("essays", "far", "v0"): [-1, -1, -1, -1],
    ("essays", "far", "v1"): [-2, -2, -2, -2],
    ("news", "near", "v0"): [-1, -1],
    ("news", "near", "v1"): [1, -1],
}
RECORDS = records(documents(GIVEN), THRESHOLDS)


def value(metric: str, **where: str) -> float:
    return float(only(RECORDS, metric, **where)["value"])


def test_units_are_pooled_and_unscored_ones_counted() -> None:
    cell = only(RECORDS, "accuracy", generator="near", domain="essays", version="v1")
    assert cell[["value", "n", "n_unscored"]].tolist() == [1.0, 3, 1]


def test_the_mean_is_over_generators_then_domains_and_never_over_the_held_out_one() -> None:
    essays = value("accuracy", generator=MEAN, domain="essays", version="v1")
    assert essays == pytest.approx((1.0 + 0.25) / 2)
    both = value("accuracy", generator=MEAN, domain=MEAN, version="v1")
    assert both == pytest.approx((essays + 0.5) / 2)
    assert value("accuracy", generator="far", domain=MEAN, version="v1") == 0


def test_undefined_metrics_have_no_row() -> None:
    at_v0 = set(RECORDS[RECORDS["version"] == "v0"]["metric"])
    assert at_v0 == {"accuracy", "macro_f1", "ai_share", "scored"}
    assert RECORDS["value"].notna().all()


def test_auroc_is_a_version_against_the_human_one_of_the_same_documents() -> None:
    expected = roc_auc_score([0, 0, 0, 0, 1, 1, 1], [-1, -1, 1, -1, 1, 1, 1])
    assert value("auroc", generator="near", domain="essays", version="v1") == expected
    shortened = [pair for pair in documents(GIVEN) if pair[0]["sample_id"] != "essays2/near//v1"]
    found = only(records(shortened, THRESHOLDS), "auroc", generator="near", domain="essays")
    assert found["value"] == roc_auc_score([0, 0, 0, 1, 1], [-1, -1, -1, 1, 1])
    assert found[["n", "n_unscored"]].tolist() == [5, 1]


def test_every_record_says_where_its_threshold_came_from() -> None:
    decided = RECORDS[RECORDS["metric"] == "accuracy"]
    assert set(decided["threshold"]) == {"calibrated"}
    assert set(decided["threshold_value"]) == {0.0}
    free = RECORDS[RECORDS["metric"] == "auroc"]
    assert set(free["threshold"]) == {"none"}
    assert free["threshold_value"].isna().all()


def test_decided_labels_come_before_a_published_threshold_and_that_before_a_calibrated_one() -> (
    None
):
    thresholds = {"document": {"published": 5.0, "calibrated": {"value": 0.0}}}
    given = [(sample([1], doc=f"d{i}"), Scores(document=score)) for i, score in enumerate((1, 9))]
    table = records(given, thresholds)
    assert set(table["threshold"]) == {"none", "published", "calibrated"}
    assert set(preferred_threshold(table)["threshold"]) == {"none", "published"}
    decided = [(row, Scores(s.document, document_label=1)) for row, s in given]
    assert set(preferred_threshold(records(decided, thresholds))["threshold"]) == {
        "none",
        "decided",
    }


# --- what is missing shows, and only there ---


def grid(seed: int = 0) -> Answers:
    """Word scores and labels of 4 documents in 2 domains, 2 generators, 4 versions."""
    rng = np.random.default_rng(seed)
    pairs = []
    for d in range(8):
        for generator in ("near", "near2"):
            for version in ("v0", "v2", "v4", "v8"):
                k = COVERAGE[version] // 25
                row = sample([1] * k + [0] * (4 - k), doc=f"d{d}", generator=generator,
                             version=version, domain="essays" if d < 4 else "news")  # fmt: skip
                scores = (0.6 * rng.random(12) + 0.4 * np.array(row["word_labels"])).astype("f4")
                tags = (scores > 0.5).astype(np.int8)
                pairs.append((row, Scores(NAN, words=scores, word_labels=tags)))
    return pairs


KEYS = ["level", "metric", "version", "domain", "generator", "threshold"]
WHOLE = records(grid())


def changed(table: pd.DataFrame) -> pd.DataFrame:
    """The rows of `WHOLE` that another table has not or has otherwise."""
    both = WHOLE.merge(table, on=KEYS, how="outer", suffixes=("", "_now"), indicator=True)
    same = both["_merge"] == "both"
    for name in ("value", "n", "n_unscored", "low", "high"):
        same &= (both[name] == both[f"{name}_now"]) | (
            both[name].isna() & both[f"{name}_now"].isna()
        )
    return both[~same]


def test_one_unscored_human_word_changes_only_the_cells_that_it_belongs_to() -> None:
    pairs = grid()
    row, scores = pairs[0]
    assert (row["domain"], row["generator"], row["version"]) == ("essays", "near", "v0")
    assert scores.words is not None
    assert scores.word_labels is not None
    scores.words[3], scores.word_labels[3] = NAN, -1
    found = changed(records(pairs))
    assert set(found["domain"]) == {"essays", MEAN}
    assert set(found["generator"]) == {"near", MEAN}
    # decisions at other versions stay; their ranking against the human version does not
    elsewhere = found[~found["version"].isin(["v0", ALL])]
    assert set(elsewhere["metric"]) <= {"auroc", "auprc", "tpr_at_1_fpr", "tpr_at_5_fpr"}
    word = found[(found["level"] == "word") & (found["domain"] == "essays")]
    assert (word["n_unscored_now"] >= 1).all()
    assert {"accuracy", "macro_f1", "scored", "auroc"} <= set(word["metric"])


def test_one_deleted_prediction_changes_only_its_cells_and_is_counted_there() -> None:
    pairs = [(row, Scores(NAN) if i == 5 else s) for i, (row, s) in enumerate(grid())]
    row = pairs[5][0]
    assert (row["domain"], row["generator"], row["version"]) == ("essays", "near2", "v2")
    found = changed(records(pairs))
    assert set(found["domain"]) == {"essays", MEAN}
    assert set(found["generator"]) == {"near2", MEAN}
    assert set(found["version"]) == {"v2", ALL}
    scored = found[found["metric"].isin(["accuracy", "scored"]) & (found["domain"] == "essays")]
    unscored = scored.groupby("level")["n_unscored_now"].unique().to_dict()
    assert unscored == {"document": [1], "sentence": [4], "word": [12]}


def test_a_document_more_changes_no_other_domain() -> None:
    more = [(sample([1, 0, 0, 0], doc="new", domain="news", version="v2"), grid()[1][1])]
    found = changed(records([*grid(), *more]))
    assert set(found["domain"]) == {"news", MEAN}


def test_the_order_of_samples_changes_nothing() -> None:
    pairs = grid()
    assert changed(records(pairs[::-1])).empty


# --- degenerate inputs ---


def test_a_detector_that_scores_nothing_says_so() -> None:
    table = records([(sample([1], doc=f"d{i}"), Scores(NAN, reason="error")) for i in range(3)])
    assert set(table["metric"]) == {"scored"}
    found = only(table, "scored", domain="essays", generator="near")
    assert found[["value", "n", "n_unscored"]].tolist() == [0.0, 0, 3]


def test_one_document_has_values_and_no_intervals() -> None:
    pairs = [pair for pair in grid() if pair[0]["doc_id"] == "d0"]
    table = records(pairs)
    assert {"accuracy", "auroc", "coverage_rho", "accuracy_dip"} <= set(table["metric"])
    assert table["low"].isna().all()
    assert table["high"].isna().all()


def test_equal_scores_rank_nothing() -> None:
    table = records([(row, Scores(0.5)) for row, _ in grid()])
    assert (table[table["metric"] == "auroc"]["value"] == 0.5).all()
    assert (table[table["metric"] == "inversions"]["value"] == 0).all()
    assert "coverage_rho" not in set(table["metric"])


def test_without_resamples_there_are_values_alone() -> None:
    table = records(grid(), resamples=0)
    assert table["low"].isna().all()
    assert (table["value"].to_numpy() == WHOLE["value"].to_numpy()).all()


def test_samples_without_a_coverage_are_a_cell_of_their_own() -> None:
    rows = [{**sample([1], doc=f"d{i}"), "target_coverage": None} for i in range(2)]
    table = records([(row, Scores(1.0)) for row in rows], THRESHOLDS)
    found = only(table, "accuracy", domain="essays", generator="near")
    assert found[["value", "n"]].tolist() == [1.0, 2]
    assert pd.isna(found["coverage"])


# --- against scikit-learn, slice by slice ---


def test_every_slice_agrees_with_scikit_learn() -> None:
    frame = pd.DataFrame(
        [
            {**row, "words": scores.words, "tags": scores.word_labels}
            for row, scores in grid()
        ]
    )  # fmt: skip
    for (domain, generator), cell in frame.groupby(["domain", "generator"]):
        human = cell[cell["version"] == "v0"]
        for version, part in cell.groupby("version"):
            where = {"level": "word", "domain": str(domain), "generator": str(generator),
                     "version": str(version)}  # fmt: skip
            labels = np.concatenate(part["word_labels"].tolist())
            tags = np.concatenate(part["tags"].tolist())
            accuracy = only(WHOLE, "accuracy", **where)["value"]
            assert accuracy == pytest.approx(accuracy_score(labels, tags), abs=1e-9)
            macro = f1_score(labels, tags, labels=[0, 1], average="macro", zero_division=0)
            assert only(WHOLE, "macro_f1", **where)["value"] == pytest.approx(macro, abs=1e-9)
            if version != "v0":
                pool = pd.concat([part, human])
                auroc = roc_auc_score(
                    np.concatenate(pool["word_labels"].tolist()),
                    np.concatenate(pool["words"].tolist()),
                )
                assert only(WHOLE, "auroc", **where)["value"] == pytest.approx(auroc, abs=1e-9)


# --- intervals ---


def test_intervals_hold_their_values_also_of_means() -> None:
    means = WHOLE[(WHOLE["domain"] == MEAN) & (WHOLE["generator"] == MEAN)]
    measured = means[means["metric"].isin(["accuracy", "auroc", "macro_f1"])]
    assert (measured["low"] <= measured["value"]).all()
    assert (measured["value"] <= measured["high"]).all()
    assert (measured["low"] < measured["high"]).any()


def test_a_mean_over_domains_is_surer_than_one_domain() -> None:
    found = WHOLE[(WHOLE["metric"] == "auroc") & (WHOLE["generator"] == MEAN)]
    width = (found["high"] - found["low"]).groupby(found["domain"]).mean()
    assert width[MEAN] < width["essays"]
    assert width[MEAN] < width["news"]


def test_a_seed_fixes_the_intervals() -> None:
    assert changed(records(grid(), seed=0)).empty
    other = changed(records(grid(), seed=1))
    assert not other.empty
    assert (other["value"] == other["value_now"]).all()


# --- variants ---


def test_variants_never_mix() -> None:
    pairs = []
    for variant, score in (("compress", 1.0), ("expand", -1.0)):
        for i in range(2):
            for version, coverage in (("c000", 0), ("c050", 50)):
                row = sample([int(coverage > 0)], doc=f"d{i}", version=version, coverage=coverage,
                             variant=variant, design="coverage")  # fmt: skip
                pairs.append((row, Scores(score if coverage else 0.0)))
    table = records(pairs, THRESHOLDS, design="coverage")
    for variant, auroc in (("compress", 1.0), ("expand", 0.0)):
        where = {"variant": variant, "domain": MEAN, "generator": MEAN}
        assert only(table, "auroc", version="c050", **where)["value"] == auroc
        assert only(table, "inversions", **where)["value"] == 1 - auroc


def test_versions_of_equal_coverage_are_no_trajectory() -> None:
    pairs = []
    for i in range(3):
        for version in ("v0", "compress", "paraphrase", "expand"):
            row = sample([int(version != "v0"), 0], doc=f"d{i}", version=version, variant="50",
                         coverage=0 if version == "v0" else 50, design="operation")  # fmt: skip
            pairs.append((row, Scores(float(len(version)))))
    table = records(pairs, THRESHOLDS, design="operation")
    assert ALL not in set(table["version"])
    assert set(table[table["metric"] == "auroc"]["version"]) == {"compress", "paraphrase", "expand"}


# --- probabilities and spans ---


def test_calibration_is_measured_where_scores_are_probabilities() -> None:
    assert not {"brier", "ece"} & set(WHOLE["metric"])
    table = records(grid(), probabilities=frozenset({"word"}))
    assert set(table[table["metric"] == "brier"]["level"]) == {"word"}
    row = only(table, "brier", domain="essays", generator="near", version="v2")
    pairs = [p for p in grid() if p[0]["sample_id"].startswith(("d0", "d1", "d2", "d3"))
             and p[0]["generator"] == "near" and p[0]["version"] == "v2"]  # fmt: skip
    errors = [np.array(r["word_labels"]) - s.words for r, s in pairs]
    assert row["value"] == pytest.approx((np.concatenate(errors) ** 2).mean())
    assert row["n"] == 48


def test_a_score_that_is_no_probability_is_refused_where_it_is_said_to_be_one() -> None:
    with pytest.raises(InputError, match=r"d declares its document scores .* range from 1\.5"):
        records([(sample([1]), Scores(1.5))], probabilities=frozenset({"document"}))


def test_span_methods_are_judged_on_characters_with_words_and_spans_beside() -> None:
    # "w0 is here. w1 is here. w2 is here."; sentences 0 and 1 are AI: one span of 23 characters
    pairs = [
        (sample([1, 1, 0], doc="a"), Scores(NAN, spans=(ScoredSpan(0, 11, 0.9),))),
        (sample([1, 1, 0], doc="b"), Scores(NAN, spans=(ScoredSpan(2, 23, 0.9),))),
        (sample([1, 1, 0], doc="c"), Scores(NAN, reason="error")),
    ]
    table = records(pairs)
    where = {"generator": "near", "domain": "essays"}
    # the blank between the AI sentences is human; document b's span takes it
    hits, alarms, misses, n = 11 + 20, 1, 11 + 2, 70
    found = {m: only(table, m, level="character", **where) for m in ("accuracy", "fnr", "f1_ai")}
    assert found["accuracy"]["value"] == pytest.approx((n - alarms - misses) / n)
    assert found["accuracy"][["n", "n_unscored"]].tolist() == [70, 35]
    assert found["fnr"]["value"] == pytest.approx(misses / (hits + misses))
    assert found["f1_ai"]["value"] == pytest.approx(2 * hits / (2 * hits + alarms + misses))
    spans = {m: only(table, m, level="span", **where) for m in ("precision", "recall", "f1")}
    # IoU 11/23 is no match, 21/23 is one
    assert [row["value"] for row in spans.values()] == [0.5, 0.5, 0.5]
    assert spans["f1"][["n", "n_unscored"]].tolist() == [2, 1]
    assert only(table, "boundary_error", level="span", **where)["value"] == pytest.approx(1.0)
    assert only(table, "accuracy", level="word", **where)["n"] == 18


# --- trajectories ---


def test_metrics_along_a_trajectory() -> None:
    scores = {"v0": 0.0, "v2": -1.0, "v4": 2.0, "v6": 1.0, "v8": 3.0}
    pairs = []
    for i in range(2):
        for version, score in scores.items():
            k = COVERAGE[version] // 25
            row = sample([1] * k + [0] * (4 - k), doc=f"d{i}", version=version)
            pairs.append((row, Scores(score + 0.1 * i)))
    table = records(pairs, {"document": {"published": 1.5}})
    where = {"domain": MEAN, "generator": MEAN, "version": ALL}
    assert only(table, "inversions", **where)["value"] == pytest.approx(2 / 10)
    assert only(table, "coverage_rho", **where)["value"] == pytest.approx(0.8)
    assert only(table, "detected", **where)["value"] == 1
    assert only(table, "first_detected", **where)["value"] == 2  # v4 is the second AI version here
    assert only(table, "accuracy_dip", **where)["value"] == 1  # 0, 1, 0, 1 along v2 to v8
    assert pd.isna(only(table, "accuracy_dip", **where)["coverage"])


def test_a_trajectory_that_is_never_detected_is_not_called_unscored() -> None:
    pairs = [
        (sample([1], doc=f"d{i}", version=version), Scores(score))
        for i, scores in enumerate([(0, 0, 9), (0, 0, 0), (0, NAN, 9)])
        for version, score in zip(("v0", "v4", "v8"), scores, strict=True)
    ]
    table = records(pairs, {"document": {"published": 1.0}})
    where = {"domain": MEAN, "generator": MEAN}
    first, detected = (only(table, name, **where) for name in ("first_detected", "detected"))
    assert first[["value", "n", "n_unscored"]].tolist() == [2, 2, 1]
    assert detected[["n", "n_unscored"]].tolist() == [3, 1]
    assert detected["value"] == pytest.approx(2 / 3)
