"""A run's identity: the hash of all that can change its results, and of nothing else."""

import ast
import hashlib
import json
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from palimpsest.archives import sha256_of

PACKAGE = Path(__file__).parent

# Where numbers go after they are made; a change there changes none.
_NO_INFLUENCE = ("palimpsest.tracking", "palimpsest.run_keys", "palimpsest.reports")


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
    """SHA-256 of each palimpsest module that a stage's function imports, directly or not."""
    stages = PACKAGE / "stages.py"
    function = next(
        node
        for node in _parsed(stages).body
        if isinstance(node, ast.FunctionDef) and node.name == stage
    )
    waiting = [*_imports(function), *modules]
    digests = {"palimpsest.stages": sha256_of(stages)}
    for module in modules:
        # a detector of the user's own, from outside the package
        if _source(module) is None and (spec := find_spec(module)) and spec.origin:
            digests[module] = sha256_of(Path(spec.origin))
    while waiting:
        module = waiting.pop()
        file = _source(module)
        if file is None or module in digests or module.startswith(_NO_INFLUENCE):
            continue
        digests[module] = sha256_of(file)
        waiting += _imports(_parsed(file))
        waiting.append(module.rpartition(".")[0])
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
def _imports(tree: ast.AST) -> list[str]:
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module and not node.level:
            # `from palimpsest.evaluation import metrics` names a module, too
            found += [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
        elif isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
    return found


def _source(module: str) -> Path | None:
    if module.split(".")[0] != "palimpsest":
        return None
    path = PACKAGE.joinpath(*module.split(".")[1:])
    for file in (path.with_suffix(".py"), path / "__init__.py"):
        if file.is_file():
            return file
    return None
