"""A run's identity: the hash of all that can change its results, and of nothing else."""

import ast
import hashlib
import json
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.util import find_spec, resolve_name
from pathlib import Path
from typing import Any

from palimpsest.archives import sha256_of

PACKAGE = Path(__file__).parent

# What runs are known by, and where numbers go after they are made: a change there changes none.
_NO_INFLUENCE = (
    "palimpsest.run_keys",
    "palimpsest.tracking",
    "palimpsest.reports",
    "palimpsest.stages.identity",
    "palimpsest.stages.runs",
)


def run_key(
    stage: str,
    params: Mapping[str, Any],
    inputs: Mapping[str, str],
    modules: Sequence[str],
) -> str:
    """The key of a stage's run: name, resolved params, digests of what it read, and its code.

    `modules` are those that the stage uses by a name in params, such as the detector's.
    """
    identity = {
        "stage": stage,
        "params": params,
        "inputs": inputs,
        "code": code_digests(stage, modules),
    }
    return hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()[:32]


def code_digests(stage: str, modules: Sequence[str]) -> dict[str, str]:
    """SHA-256 of a stage's module and of each of palimpsest's that it imports, directly or not.

    Those of a detector's own package count, too, and where its module is in no package, those of
    its folder.
    """
    homes = {"palimpsest": PACKAGE}
    for module in modules:
        homes = _homes(module.partition(".")[0]) | homes
    waiting = [f"palimpsest.stages.{stage}", *modules]
    digests: dict[str, str] = {}
    while waiting:
        module = waiting.pop()
        file = _source(module, homes)
        if file is None or module in digests or module.startswith(_NO_INFLUENCE):
            continue
        digests[module] = sha256_of(file)
        parent = module.rpartition(".")[0]
        waiting += _imports(_parsed(file), module if file.name == "__init__.py" else parent)
        waiting.append(parent)
    return digests


def digest(path: Path) -> str:
    """SHA-256 of a file, or of the names and contents of all files of a folder."""
    if path.is_file():
        return sha256_of(path)
    files = sorted(file for file in path.rglob("*") if file.is_file())
    listing = "".join(f"{file.relative_to(path).as_posix()} {sha256_of(file)}\n" for file in files)
    return hashlib.sha256(listing.encode()).hexdigest()


def short_digest(content: Any) -> str:
    """A short hash of anything that JSON can hold."""
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:12]


@cache
def _parsed(file: Path) -> ast.Module:
    return ast.parse(file.read_text())


@cache
def _imports(tree: ast.AST, package: str) -> list[str]:
    """The modules that code in a package imports, and other names that may be modules."""
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            try:
                module = resolve_name("." * node.level + (node.module or ""), package)
            except ImportError:  # in a `try`, for when the file is part of a package
                continue
            # `from palimpsest.evaluation import metrics` names a module, too
            found += [module, *(f"{module}.{alias.name}" for alias in node.names)]
        elif isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
    return found


def _homes(top: str) -> dict[str, Path]:
    """Where a package is, by its name; for a module in no package all that is beside it.

    Packages beside an installed one are left out, as installed ones are from every key.
    """
    spec = find_spec(top)
    if spec is None:
        return {}
    if spec.submodule_search_locations:
        return {top: Path(next(iter(spec.submodule_search_locations)))}
    folder = Path(str(spec.origin)).parent
    homes = {file.stem: file.with_suffix("") for file in folder.glob("*.py")}
    if folder.name not in ("site-packages", "dist-packages"):
        homes |= {beside.name: beside for beside in folder.iterdir() if beside.is_dir()}
    return homes


def _source(module: str, homes: Mapping[str, Path]) -> Path | None:
    top, *rest = module.split(".")
    if top not in homes:
        return None
    path = homes[top].joinpath(*rest)
    for file in (path.with_suffix(".py"), path / "__init__.py"):
        if file.is_file():
            return file
    return None
