import shutil
from pathlib import Path

import pytest

from palimpsest import run_keys

DETECTOR = "palimpsest.detectors.fast_detectgpt"


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the package whose files a test may change."""
    copy = tmp_path / "palimpsest"
    shutil.copytree(run_keys.PACKAGE, copy, ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.setattr(run_keys, "PACKAGE", copy)
    return copy


def key(stage: str, detector: str = DETECTOR, **params: object) -> str:
    return run_keys.run_key(stage, params, {"texts": "1"}, [detector])


def test_params_and_inputs_change_the_key() -> None:
    assert key("train", a=1) == key("train", a=1)
    assert key("train", a=1) != key("train", a=2)
    assert run_keys.run_key("train", {}, {"texts": "2"}, [DETECTOR]) != key("train")


def changed_by(package: Path, file: str, detector: str = DETECTOR) -> set[str]:
    """The stages whose key a comment in a file changes."""
    stages = ("train", "evaluate")
    before = {stage: key(stage, detector) for stage in stages}
    with (package / file).open("a") as module:
        module.write("\n# a comment\n")
    return {stage for stage in stages if key(stage, detector) != before[stage]}


@pytest.mark.parametrize(
    ("file", "stages"),
    [
        ("evaluation/metrics.py", {"evaluate"}),
        ("evaluation/levels.py", {"train", "evaluate"}),
        ("evaluation/thresholds.py", {"train"}),
        ("detectors/fast_detectgpt.py", {"train", "evaluate"}),
        ("statistics/criteria.py", {"train", "evaluate"}),
        ("detectors/genai_sentence.py", set()),
        ("reports/tables.py", set()),
        ("tracking.py", set()),
        ("corpora/demo.py", set()),
        ("params.py", {"train", "evaluate"}),
        ("stages/selection.py", {"train", "evaluate"}),
        ("stages/train.py", {"train"}),
        ("stages/evaluate.py", {"evaluate"}),
        ("stages/generate.py", set()),
        ("stages/identity.py", set()),
        ("stages/runs.py", set()),
    ],
)
def test_a_comment_changes_the_keys_of_those_that_use_the_file(
    package: Path, file: str, stages: set[str]
) -> None:
    assert changed_by(package, file) == stages


@pytest.mark.parametrize(
    ("files", "target", "part"),
    [
        (
            {"__init__.py": "", "model.py": "from . import net\nfrom .data import cut",
             "net.py": "", "data.py": "import ownpackage.deep.words", "deep/words.py": "",
             "other.py": ""},
            "ownpackage.model",
            {"ownpackage", "ownpackage.model", "ownpackage.net", "ownpackage.data",
             "ownpackage.deep.words"},
        ),
        (
            {"lone.py": "import json, helper, words.deep\nfrom palimpsest.statistics import lastde",
             "helper.py": "try:\n from .a import b\nexcept ImportError:\n from features import b",
             "features/__init__.py": "from .b import b", "features/b.py": "",
             "words/deep.py": "", "other.py": ""},
            "lone",
            {"lone", "helper", "features", "features.b", "words.deep"},
        ),
    ],
)  # fmt: skip
def test_a_detector_of_the_users_own_and_what_it_imports_beside_it_are_part_of_the_key(
    files: dict[str, str],
    target: str,
    part: set[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name, code in files.items():
        file = tmp_path / ("ownpackage" if "." in target else "") / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(code)
    monkeypatch.syspath_prepend(tmp_path)
    digests = run_keys.code_digests("train", [target])
    assert {name for name in digests if not name.startswith("palimpsest")} == part
    assert ("palimpsest.statistics.lastde" in digests) == (target == "lone")


def test_a_folders_digest_depends_on_names_and_contents(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "x").write_text("1")
    first = run_keys.digest(tmp_path)
    (tmp_path / "a" / "x").rename(tmp_path / "a" / "y")
    assert run_keys.digest(tmp_path) != first
