"""Data flows one way: a module imports only from those above it in this list."""

import ast
from pathlib import Path

import pytest

LAYERS = (
    "errors",
    "records",
    "params",
    "locks",
    "archives",
    "models",
    "corpora",
    "trajectories",
    "editors",
    "splits",
    "statistics",
    "detectors",
    "evaluation",
    "run_keys",
    "tracking",
    "reports",
    "stages",
    "dvc_queue",
    "experiments",
    "cli",
    "__main__",
)
PACKAGE = Path("src/palimpsest")
MODULES = sorted(path for path in PACKAGE.rglob("*.py") if path.parent != PACKAGE or
                 path.name != "__init__.py")  # fmt: skip


def layer_of(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def imported_layers(path: Path) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module:
            if node.module == "palimpsest":
                found |= {alias.name for alias in node.names}
            elif node.module.startswith("palimpsest."):
                found.add(node.module.split(".")[1])
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
            found |= {name.split(".")[1] for name in names if name.startswith("palimpsest.")}
    return found


def test_every_module_has_a_layer() -> None:
    assert {layer_of(path) for path in MODULES} == set(LAYERS)


@pytest.mark.parametrize("path", MODULES, ids=str)
def test_a_module_imports_only_from_above(path: Path) -> None:
    own = LAYERS.index(layer_of(path))
    below = {layer for layer in imported_layers(path) if LAYERS.index(layer) > own}
    assert not below


def test_only_tracking_imports_mlflow_and_no_detector_knows_dvc_or_files() -> None:
    for path in MODULES:
        tree = ast.parse(path.read_text())
        names = {
            name.split(".")[0]
            for node in ast.walk(tree)
            for name in (
                [node.module or ""] if isinstance(node, ast.ImportFrom)
                else [alias.name for alias in node.names] if isinstance(node, ast.Import)
                else []
            )
        }  # fmt: skip
        if layer_of(path) != "tracking":
            assert "mlflow" not in names, path
        assert "dvc" not in names or layer_of(path) in ("corpora", "dvc_queue"), path
