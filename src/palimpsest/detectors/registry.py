"""The one list of detectors: what each is, which class runs it, and the check of its settings."""

import importlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal

from omegaconf import OmegaConf
from omegaconf.errors import OmegaConfBaseException

from palimpsest.detectors.interface import Detector, Runtime
from palimpsest.errors import InputError, unknown
from palimpsest.records import Level

Regime = Literal["baseline", "zero-shot", "llm-as-detector", "trained"]


@dataclass(frozen=True, slots=True)
class Entry:
    """`target` is "module:Class"; the module also holds the dataclass `settings`."""

    target: str
    regime: Regime
    native: Level
    paper: str
    settings: str = "Settings"
    family: str = ""  # what a zero-shot method reads: one model, two models, draws, perturbations
    packages: tuple[str, ...] = ()  # modules beside the project's dependencies

    @property
    def module(self) -> str:
        return self.target.partition(":")[0]


_HERE = "palimpsest.detectors"


def _zero_shot(target: str, family: str, paper: str, settings: str = "Settings") -> Entry:
    return Entry(f"{_HERE}.{target}", "zero-shot", "document", paper, settings, family)


REGISTRY: dict[str, Entry] = {
    "majority": Entry(f"{_HERE}.baselines:Majority", "baseline", "word", "the commonest label"),
    "random": Entry(f"{_HERE}.baselines:Random", "baseline", "word", "a seeded coin"),
    "length": Entry(f"{_HERE}.baselines:Length", "baseline", "sentence", "the number of words"),
    "log-likelihood": _zero_shot("likelihood:LogLikelihood", "one model", "arXiv 1908.09203"),
    "entropy": _zero_shot("likelihood:Entropy", "one model", "arXiv 1906.04043"),
    "rank": _zero_shot("likelihood:Rank", "one model", "arXiv 1906.04043"),
    "log-rank": _zero_shot("likelihood:LogRank", "one model", "arXiv 2301.11305"),
    "lrr": _zero_shot("likelihood:LRR", "one model", "arXiv 2306.05540"),
    "fast-detectgpt": _zero_shot("fast_detectgpt:FastDetectGPT", "one model", "arXiv 2310.05130"),
    "lastde": _zero_shot("lastde:Lastde", "one model", "arXiv 2410.06072"),
    "fast-detectgpt-pair": _zero_shot(
        "fast_detectgpt:FastDetectGPTPair", "two models", "arXiv 2310.05130", "PairSettings"
    ),
    "binoculars": _zero_shot(
        "binoculars:Binoculars", "two models", "arXiv 2401.12070", "BinocularsSettings"
    ),
    "dna-detectllm": _zero_shot("binoculars:DNADetectLLM", "two models", "arXiv 2509.15550"),
    "lapd": _zero_shot("lapd:LAPD", "two models", "arXiv 2604.16923"),
    "lastde-pp": _zero_shot("lastde:LastdePlusPlus", "draws", "arXiv 2410.06072", "PlusSettings"),
    "npr": _zero_shot("perturbation:NPR", "perturbations", "arXiv 2306.05540"),
    "detectgpt": _zero_shot(
        "perturbation:DetectGPT", "perturbations", "arXiv 2301.11305", "DetectGPTSettings"
    ),
    "genai-sentence": Entry(
        f"{_HERE}.genai_sentence:GenAISentence", "trained", "word", "OpAI-Bench, Appendix D"
    ),
}


def find(name: str, given: Mapping[str, Any]) -> Entry:
    """The entry of a detector; `custom` is described by its own settings' `target`.

    Raises:
        InputError: an unknown name, or `custom` without a target of the form "module:Class".
    """
    if name == "custom":
        target = given.get("target")
        if not isinstance(target, str) or ":" not in target:
            raise InputError(
                f"params.yaml: detectors.custom.target is {target!r}; give 'package.module:Class'"
            )
        detector = _attribute(target)
        return Entry(target, getattr(detector, "regime", "zero-shot"), detector.native, "yours")
    if name not in REGISTRY:
        raise unknown("detector", name, REGISTRY)
    return REGISTRY[name]


def title(name: str, given: Mapping[str, Any]) -> str:
    """What a detector is called in runs and tables: by its name, a custom one by its target."""
    return find(name, given).target if name == "custom" else name


def check_settings(name: str, given: Mapping[str, Any]) -> Any:
    """The detector's settings as its own dataclass.

    Raises:
        InputError: an unknown or missing key or a value of the wrong type, named.
    """
    entry = find(name, given)
    values = dict(given.get("settings") or {}) if name == "custom" else dict(given)
    settings = _attribute(f"{entry.module}:{entry.settings}")
    where = f"params.yaml: detectors.{name}" + (".settings" if name == "custom" else "")
    fields = settings.__dataclass_fields__
    for key in values:
        if key not in fields:
            raise InputError(f"{where}.{key}: {unknown('key', str(key), fields)}")
    try:
        return OmegaConf.to_object(OmegaConf.merge(OmegaConf.structured(settings), values))
    except OmegaConfBaseException as error:
        first = str(error).splitlines()[0]
        raise InputError(f"{where}.{error.full_key or error.key}: {first}") from error


def make(name: str, given: Mapping[str, Any], runtime: Runtime) -> Detector:
    """A new, untrained detector."""
    settings = check_settings(name, given)
    detector: Detector = _attribute(find(name, given).target)(settings, runtime)
    return detector


def detector_class(name: str, given: Mapping[str, Any]) -> type[Detector]:
    found: type[Detector] = _attribute(find(name, given).target)
    return found


def resolved(name: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """The detector's settings as plain values, defaults included."""
    return asdict(check_settings(name, given))


def _attribute(target: str) -> Any:
    module, _, attribute = target.partition(":")
    try:
        return getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError) as error:
        raise InputError(f"cannot import {target!r}: {error}") from error
