"""DVC runs a stage again when code changes that its results depend on, and for no other code."""

import ast
from pathlib import Path

import pytest
import yaml

from palimpsest.detectors.registry import REGISTRY
from palimpsest.run_keys import code_digests
from palimpsest.stages import STAGES

SOURCE = Path("src")
# These change no number, but the outputs of `train` and `evaluate` hold the keys that they make.
KEYS = ("palimpsest.run_keys", "palimpsest.stages.identity")


def file_of(module: str) -> Path:
    path = SOURCE.joinpath(*module.split("."))
    return path / "__init__.py" if path.is_dir() else path.with_suffix(".py")


def holds_code(file: Path) -> bool:
    """Whether there is more than a docstring and names, as in most packages' __init__.py."""
    body = ast.parse(file.read_text()).body
    return not all(isinstance(node, ast.Expr | ast.Assign) for node in body)


def code_of(stage: str) -> set[Path]:
    """The files that a stage's results depend on, whatever the detector."""
    known = stage in ("train", "evaluate")
    detectors = [entry.module for entry in REGISTRY.values()] if known else []
    modules = [*code_digests(stage, detectors), *(KEYS if known else ())]
    files = {file_of(module) for module in modules}
    return {file for file in files if holds_code(file)}


def code_deps(stage: str) -> set[Path]:
    entry = yaml.safe_load(Path("dvc.yaml").read_text())["stages"][stage]
    return {Path(dep) for dep in entry["deps"] if dep.startswith("src/")}


@pytest.mark.parametrize("stage", STAGES)
def test_a_stage_depends_on_every_module_that_it_uses(stage: str) -> None:
    deps = code_deps(stage)
    assert {file for file in code_of(stage) if not deps & {file, *file.parents}} == set()


@pytest.mark.parametrize("stage", STAGES)
def test_a_stage_depends_on_nothing_that_it_does_not_use(stage: str) -> None:
    code = code_of(stage)
    used = code | {folder for file in code for folder in file.parents}
    assert code_deps(stage) - used == set()
