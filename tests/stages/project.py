"""A project's folder whose corpus is a small release, in which each split has a document."""

from pathlib import Path
from typing import Any

import yaml

from palimpsest.cli import stage_function
from palimpsest.params import load_params
from tests.documents import make_document
from tests.releases import trajectory, write_release_file

GENERATORS = {"gpt-5.4": ("train", "dev", "test"), "qwen3-8b": ("test",)}  # the second: held out


def make_project(folder: Path) -> None:
    """Write the release and params.yaml, in which only the corpus is another than the project's."""
    params = yaml.safe_load(Path("params.yaml").read_text())
    params["corpus"] |= {"source": "release", "format": "opai-bench", "documents_per_domain": None}
    (folder / "params.yaml").write_text(yaml.safe_dump(params, sort_keys=False))
    for generator, splits in GENERATORS.items():
        for split in splits:
            rows = trajectory(make_document(split, n=10 + len(split)), generator, split)
            name = f"default/{split}/essays_{generator}.csv"
            write_release_file(folder / "release", name, rows)


def select(
    detector: str = "length", settings: dict[str, Any] | None = None, **choices: object
) -> None:
    """Let both stages select this, for the quickest of detectors or another."""
    path = Path("params.yaml")
    params = yaml.safe_load(path.read_text())
    params["detector"] = detector
    params["detectors"][detector] |= settings or {}
    for stage in ("train", "evaluate"):
        params[stage]["select"] |= choices
    path.write_text(yaml.safe_dump(params, sort_keys=False))


def run(*stages: str) -> None:
    for stage in stages:
        stage_function(stage)(load_params())
