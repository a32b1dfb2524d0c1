"""What the runs of `train` and `evaluate` are known by: keys, params, tags, configuration."""

import json
from dataclasses import asdict
from functools import cache
from pathlib import Path
from typing import Any

from palimpsest.detectors.registry import find, resolved
from palimpsest.detectors.registry import title as title_of
from palimpsest.errors import InputError
from palimpsest.models import local_revision
from palimpsest.params import Params, Selection, flat
from palimpsest.records import read_rows
from palimpsest.run_keys import code_digests, digest, run_key, short_digest
from palimpsest.stages import STAGES
from palimpsest.stages.files import MODEL_FOLDER, SPLITS_FILE, THRESHOLDS_FILE
from palimpsest.stages.selection import sources
from palimpsest.trajectories.designs import generators


def train_key(params: Params) -> str:
    inputs = {
        "texts": _texts_digest(params.train.select, learning=True),
        "splits": digest(SPLITS_FILE),
        **_weights(params),
    }
    return run_key("train", train_params(params), inputs, _modules(params))


def evaluate_key(params: Params) -> str:
    inputs = {
        "texts": _texts_digest(params.evaluate.select),
        "splits": digest(SPLITS_FILE),
        "model": digest(MODEL_FOLDER),
    }
    return run_key("evaluate", evaluate_params(params), inputs, _modules(params))


def train_params(params: Params) -> dict[str, Any]:
    regime = find(params.detector, params.detector_settings()).regime
    return {
        "detector": title(params),
        "regime": regime,
        "profile": params.profile,
        "dtype": params.dtype,
        **flat(params.train),
        **{f"settings.{name}": value for name, value in flat(_settings(params)).items()},
    }


def evaluate_params(params: Params) -> dict[str, Any]:
    """All that one compares runs by, the training's own too: the UI's filters see no parent."""
    select = params.evaluate.select
    return {
        **{f"train.{k}": v for k, v in flat(params.train).items()},
        **{k: v for k, v in train_params(params).items() if k not in flat(params.train)},
        **flat(params.evaluate),
        "design": select.design,
        "generators": " ".join(sorted(set().union(*(names for _, names in sources(select))))),
        "texts": _texts_digest(select),
        "splits": digest(SPLITS_FILE)[:12],
    }


def tags(select: Selection, learning: bool = False) -> dict[str, str]:
    """Which texts a run read, in which splits, and by which prompts they were written."""
    prompts = {
        row["prompt_set"]
        for folder, names in sources(select, learning)
        for row in read_rows(folder, columns=["prompt_set", "generator"])
        if row["generator"] in names
    }
    return {
        "texts": _texts_digest(select, learning),
        "splits": digest(SPLITS_FILE),
        "prompt_set": " ".join(sorted(prompts)),
    }


def made_for(params: Params) -> dict[str, Any]:
    """What a model's thresholds hold for."""
    return {
        "detector": title(params),
        "settings": _settings(params),
        "weights": _weights(params),
        "language": params.corpus.language,
        "code": short_digest(
            {
                module: sha256
                for module, sha256 in code_digests("train", _modules(params)).items()
                if module.startswith(("palimpsest.detectors", "palimpsest.statistics"))
                or module.partition(".")[0] != "palimpsest"
            }
        ),
    }


def thresholds_for(params: Params) -> dict[str, Any]:
    """The present model's thresholds.

    Raises:
        InputError: there are none, or they were made for something else.
    """
    if not THRESHOLDS_FILE.is_file():
        raise InputError(f"{THRESHOLDS_FILE} does not exist: run `dvc repro train`")
    thresholds: dict[str, Any] = json.loads(THRESHOLDS_FILE.read_text())
    wanted = made_for(params)
    for name, value in thresholds["made_for"].items():
        if value != wanted[name]:
            raise InputError(
                f"{THRESHOLDS_FILE} was made for {name} {value!r}, not {wanted[name]!r}: "
                "run `dvc repro --force --single-item train`"
            )
    return thresholds


def configuration(params: Params) -> str:
    """A key of everything that a run of all stages depends on, known before any has run.

    Unlike the stages' own keys it cannot see that another configuration gives the same texts.
    """
    used = {
        name: params.generators[name]
        for design in params.designs
        for name in generators(design, params.trajectory)
    }
    identity = {
        "corpus": asdict(params.corpus),
        "source": _source_digest(Path(params.corpus.source)),
        "trajectory": asdict(params.trajectory),
        "prompts": digest(Path(params.trajectory.prompt_sets)),
        "generators": {name: asdict(generator) for name, generator in used.items()},
        "models": {
            **_weights(params),
            **{generator.model: local_revision(generator.model) for generator in used.values()},
        },
        "benchmark": params.benchmark,
        "dtype": params.dtype,
        "detector": title(params),
        "settings": _settings(params),
        "train": asdict(params.train),
        "evaluate": asdict(params.evaluate),
        "code": {stage: code_digests(stage, _modules(params)) for stage in STAGES},
    }
    return short_digest(identity)


def title(params: Params) -> str:
    """What the detector goes by in runs and tables."""
    return title_of(params.detector, params.detector_settings())


@cache
def _source_digest(source: Path) -> str | None:
    """Once in a process: an experiment's members share a corpus that may have gigabytes."""
    return digest(source) if source.exists() else None


def _texts_digest(select: Selection, learning: bool = False) -> str:
    return short_digest([digest(folder) for folder, _ in sources(select, learning)])


def _settings(params: Params) -> dict[str, Any]:
    return resolved(params.detector, params.detector_settings())


def _weights(params: Params) -> dict[str, str]:
    """Which weights the detector's packaged models and those in folders have, by name."""
    values = flat(_settings(params)).values()
    names = sorted({value.partition("?")[0] for value in values if isinstance(value, str)})
    return {name: revision for name in names if (revision := local_revision(name))}


def _modules(params: Params) -> list[str]:
    return [find(params.detector, params.detector_settings()).module]
