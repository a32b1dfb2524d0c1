"""From a release on disk to artifacts and back, through the stages and the command line."""

import json
from pathlib import Path

import pandas as pd
import pytest

from palimpsest.cli import main
from palimpsest.errors import InputError
from palimpsest.models import find_model
from palimpsest.records import read_rows
from palimpsest.statistics.cache import Cache
from palimpsest.tracking import client, create_store
from tests.documents import make_document
from tests.releases import record, write_release_file
from tests.stages.project import make_project, run, select
from tests.tiny_causal_lm import tiny_causal_lm


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    make_project(tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("DVC_ROOT", raising=False)
    return tmp_path


def test_a_release_becomes_artifacts_with_its_own_splits(project: Path) -> None:
    run("corpus", "generate", "split")
    splits = pd.read_parquet("artifacts/splits.parquet").set_index("doc_id")["split"]
    assert splits.to_dict() == {"train": "train", "dev": "dev", "test": "test"}
    texts = list(read_rows(Path("artifacts/texts/cumulative")))
    assert [row["generator"] for row in texts] == ["gpt-5.4"] * 27
    held_out = list(read_rows(Path("artifacts/texts-held-out/cumulative")))
    assert [row["generator"] for row in held_out] == ["qwen3-8b"] * 9
    for folder in ("texts", "texts-held-out"):
        report = Path(f"artifacts/{folder}/cumulative/release.csv").read_text()
        assert report.count("\n") == 1
    revisions = pd.read_csv("artifacts/revisions.csv")
    assert revisions.loc[revisions["reason"] == "adopted", "count"].tolist() == [27, 9]
    statistics = pd.read_csv("artifacts/statistics.csv")
    assert statistics.groupby("generator")["samples"].sum().to_dict() == {
        "all": 27,
        "gpt-5.4": 27,
        "qwen3-8b": 9,
    }


def test_what_was_adopted_is_exported_as_it_was(project: Path) -> None:
    run("corpus", "generate", "split")
    assert main(["export", "--format", "opai-bench", "--output", "out"]) == 0
    for file in Path("release").rglob("*.csv"):
        ours = pd.read_csv(Path("out") / file.relative_to("release"), dtype=str)
        released = pd.read_csv(file, dtype=str)
        own = ours.drop(columns="record_id")  # the release names its rows in its own way
        pd.testing.assert_frame_equal(own, released.drop(columns="record_id"))
    assert main(["export", "--format", "opai-bench", "--output", "out"]) == 2


def test_a_release_without_one_usable_row_stops_the_stage(project: Path) -> None:
    run("corpus")
    for file in Path("release/default").rglob("*.csv"):
        frame = pd.read_csv(file, dtype=str)
        frame.assign(ai_spans_char="?").to_csv(file, index=False)
    assert main(["generate"]) == 2


def test_thresholds_come_from_the_human_texts_of_any_design(project: Path) -> None:
    for split in ("train", "dev", "test"):
        document = make_document(split, n=10 + len(split))
        rows = [
            record(document, "gpt-5.4", f"cov{c:02}", "expand" if c else "none", c, split=split)
            for c in (0, 25, 50, 75, 100)
        ]
        name = f"ablations/{split}/ablation1_essays_expand_gpt-5.4.csv"
        write_release_file(project / "release", name, rows)
    select(design="coverage")
    run("corpus", "generate", "split", "train")
    levels = json.loads(Path("artifacts/model/thresholds.json").read_text())["levels"]
    assert levels["sentence"]["calibrated"]["n"] == 10 + len("dev")


def test_a_trainings_run_says_which_weights_its_models_had(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = Cache(project / "statistics.sqlite", 2**30)
    monkeypatch.setattr(Cache, "of_user", lambda: cache)
    model = str(tiny_causal_lm(project / "model"))
    select("log-likelihood", {"model": model, "max_tokens": 256}, design="cumulative")
    run("corpus", "generate", "split", "train")
    made = json.loads(Path("artifacts/model/thresholds.json").read_text())
    assert made["revisions"] == {"revision": find_model(model).revision}
    (logged,) = client().search_runs([create_store("opai-bench")])
    assert logged.data.tags["palimpsest.revision"] == find_model(model).revision


def test_weights_that_were_replaced_after_training_are_not_evaluated(project: Path) -> None:
    model = tiny_causal_lm(project / "model")
    select("log-likelihood", {"model": str(model), "max_tokens": 256})
    run("corpus", "generate", "split", "train")
    with (model / "model.safetensors").open("ab") as weights:
        weights.write(b" ")
    with pytest.raises(InputError, match="was made for weights"):
        run("evaluate")


def test_a_misspelt_domain_is_not_left_out_in_silence(project: Path) -> None:
    select(domains=["essays", "esays"])
    run("corpus", "generate", "split")
    with pytest.raises(InputError, match="unknown domain 'esays': did you mean 'essays'"):
        run("train")
