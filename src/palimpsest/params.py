"""The schema of params.yaml: types, defaults' places, and errors that name key and fix."""

import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import (
    ConfigKeyError,
    ConfigTypeError,
    InterpolationResolutionError,
    MissingMandatoryValue,
    OmegaConfBaseException,
    ValidationError,
)

from palimpsest.errors import InputError, hint, unknown

OPERATIONS = ("polish", "paraphrase", "style", "compress", "expand")
DESIGNS = ("cumulative", "independent", "coverage", "operation")
BENCHMARKS = ("opai-bench",)
CORPUS_FORMATS = ("texts", "opai-bench")
PROFILES = ("demo", "paper")
EDITORS = ("openai-compatible", "transformers", "vllm")
LIMIT_FIELDS = ("max_tokens", "max_completion_tokens")


@dataclass
class Corpus:
    source: str
    format: str  # what the source holds: human texts, or the released OpAI-Bench
    language: str
    domains: Any  # "all" or a list of names
    id_column: str
    text_column: str
    qualify_ids: bool  # put the domain before each id, where domains share ids
    min_sentences: int
    max_sentences: dict[str, int | None]  # "default" and, where it differs, a domain
    documents_per_domain: int | None
    limit: int | None


@dataclass
class Step:
    operation: str
    coverage: int  # per cent of a document's sentences


@dataclass
class Ablations:
    """The designs `coverage` (operations x coverages) and `operation` (x fixed coverages)."""

    generators: list[str]
    operations: list[str]
    coverages: list[int]
    fixed_coverages: list[int]


@dataclass
class Trajectory:
    seed: int
    generators: list[str]
    prompt_sets: str  # a folder with NAME.yaml for each prompt set
    prompts: str  # the name of one
    schedule: dict[str, Step]
    temperatures: list[float | None]  # null: the provider's own
    on_rejection: str
    max_dropped: float  # the share of dropped trajectories above which the stage fails
    max_rejected: float  # likewise of revisions without a usable reply
    ablations: Ablations


@dataclass
class Price:
    """US dollars for a million tokens, as the provider listed them on the date `as_of`."""

    input: float
    output: float
    as_of: str


@dataclass
class Generator:
    editor: str
    model: str
    revision: str | None = None
    held_out: bool = False  # its texts are for tests only, and no average holds them
    documents: float = 1.0  # the share of the documents that it edits, or above 1 their number
    prompts: str | None = None  # its own prompt set, and below temperatures; null: the trajectory's
    temperatures: list[float | None] | None = None
    price: Price | None = None
    # transformers and vllm
    top_k: int = 50
    batch_size: int = 64
    # openai-compatible
    base_urls: list[str] = field(default_factory=list)  # several servers share the load
    key_variable: str | None = None  # the environment variable with the API key
    extra_body: dict[str, Any] = field(default_factory=dict)
    concurrency: int = 64
    requests_per_minute: int | None = None
    tokens_per_minute: int | None = None
    timeout: float = 120.0  # seconds until a request counts as lost and is sent again
    limit_field: str = "max_tokens"  # OpenAI takes only max_completion_tokens for its newer models
    thinking_tokens: int = 0  # on top of a reply's limit, for a model that always thinks
    seeds: bool = False  # send the draw as `seed`; for servers that know it, such as vLLM


@dataclass
class Selection:
    design: str
    domains: Any
    generators: Any


@dataclass
class Train:
    select: Selection
    seed: int
    fpr: float  # the rate of false positives at which thresholds are calibrated


@dataclass
class Evaluate:
    select: Selection
    seed: int
    resamples: int


@dataclass
class Params:
    benchmark: str
    detector: str
    profile: str
    device: str
    dtype: str
    corpus: Corpus
    trajectory: Trajectory
    generators: dict[str, Generator]
    train: Train
    evaluate: Evaluate
    detectors: dict[str, Any] = field(default_factory=dict)
    profiles: dict[str, Any] = field(default_factory=dict)

    @property
    def designs(self) -> list[str]:
        """Those that `train` and `evaluate` select, each once."""
        return list(dict.fromkeys((self.train.select.design, self.evaluate.select.design)))

    def detector_settings(self, name: str | None = None) -> dict[str, Any]:
        """A detector's values: those under `detectors`, null ones filled from the profile."""
        name = name or self.detector
        if name not in self.detectors:
            raise unknown("detector", name, self.detectors)
        own = self.detectors[name] or {}
        profile = (self.profiles[self.profile] or {}).get(name) or {}
        return {**profile, **{k: v for k, v in own.items() if v is not None or k not in profile}}


def project_root() -> Path:
    """The folder of the user's checkout, also inside DVC's temporary experiment folders."""
    return Path(os.environ.get("DVC_ROOT") or Path.cwd()).resolve()


def load_params(
    path: Path = Path("params.yaml"), overrides: Mapping[str, Any] | None = None
) -> Params:
    """Read and check params.yaml, with other values for some dotted keys.

    Raises:
        InputError: a file that is missing, a key that is unknown, missing or of the wrong type, a
            value outside its range; the message names the file, the key and the nearest known key.
    """
    if not path.is_file():
        raise InputError(f"{path} does not exist: run this command in the project's folder")
    try:
        given = OmegaConf.load(path)
    except Exception as error:
        raise InputError(f"{path} is not YAML: {str(error).splitlines()[0]}") from error
    if not isinstance(given, DictConfig):
        raise InputError(f"{path} holds no mapping of keys to values")
    try:
        for key, value in (overrides or {}).items():
            OmegaConf.update(given, key, value, merge=True)  # as DVC's --set-param does
        merged = OmegaConf.merge(OmegaConf.structured(Params), given)
        params = OmegaConf.to_object(merged)
    except OmegaConfBaseException as error:
        raise InputError(f"{path}: {_explain(error)}") from error
    assert isinstance(params, Params)
    _check(params, path)
    return params


def flat(section: Any, prefix: str = "") -> dict[str, Any]:
    """A nested section as one level of dotted keys."""
    if not isinstance(section, dict):
        section = asdict(section)
    result: dict[str, Any] = {}
    for key, value in section.items():
        if isinstance(value, dict) and value:
            result.update(flat(value, f"{prefix}{key}."))
        else:
            result[f"{prefix}{key}"] = value
    return result


def in_force(params: Params, key: str | None = None) -> dict[str, Any]:
    """The values at or below a dotted key, or all; a detector's null ones are the profile's.

    Raises:
        InputError: no such key; the message names the nearest one.
    """
    detectors = {name: params.detector_settings(name) for name in params.detectors}
    sections = {**asdict(params), "detectors": detectors}
    values = flat(sections)
    if key is None:
        return values
    found = {k: v for k, v in values.items() if k == key or k.startswith(f"{key}.")}
    if not found:
        ends = [known for known in values if known.endswith(f".{key}")]
        near = f"did you mean {ends[0]!r}? " if ends else hint(key, [*values, *sections])
        raise InputError(f"unknown key {key!r}: {near}`palimpsest params` lists all")
    return found


def _explain(error: OmegaConfBaseException) -> str:
    key = error.full_key or error.key
    first = str(error).splitlines()[0]
    match error:
        case MissingMandatoryValue() | InterpolationResolutionError():
            return f"{key} has no value: {first}"
        case ValidationError():
            return f"{key}: {first}"
        case ConfigKeyError() | ConfigTypeError() if error.object_type is not None:
            known = getattr(error.object_type, "__dataclass_fields__", {})
            return f"{key}: {unknown('key', str(error.key), known)}" if known else first
        case _:
            return first


def _check(params: Params, path: Path) -> None:
    def require(holds: bool, key: str, value: Any, fix: str) -> None:
        if not holds:
            raise InputError(f"{path}: {key} is {value!r}; {fix}")

    def one_of(key: str, value: str, known: tuple[str, ...]) -> None:
        if value not in known:
            raise InputError(f"{path}: {key}: {unknown('value', value, known)}")

    one_of("benchmark", params.benchmark, BENCHMARKS)
    one_of("profile", params.profile, PROFILES)
    one_of("corpus.language", params.corpus.language, ("en", "zh"))
    one_of("trajectory.on_rejection", params.trajectory.on_rejection, ("drop", "later"))
    for stage, select in (("train", params.train.select), ("evaluate", params.evaluate.select)):
        key = f"{stage}.select"
        one_of(f"{key}.design", select.design, DESIGNS)
        fits = select.domains == "all" or _are_names(select.domains)
        fix = "give `all` or a list such as [essays]"
        require(fits, f"{key}.domains", select.domains, fix)
        fits = isinstance(select.generators, str) or _are_names(select.generators)
        fix = "give in-distribution, held-out, all, a name or a list of names"
        require(fits, f"{key}.generators", select.generators, fix)
    if params.detector not in params.detectors:
        raise InputError(f"{path}: {unknown('detector', params.detector, params.detectors)}")

    corpus = params.corpus
    one_of("corpus.format", corpus.format, CORPUS_FORMATS)
    if "default" not in corpus.max_sentences:
        raise InputError(f"{path}: corpus.max_sentences needs the key `default` (null: no limit)")
    for domain, most in corpus.max_sentences.items():
        fix = f"it must not be below corpus.min_sentences ({corpus.min_sentences})"
        fits = most is None or most >= corpus.min_sentences
        require(fits, f"corpus.max_sentences.{domain}", most, fix)
    for key in ("documents_per_domain", "limit"):
        value = getattr(corpus, key)
        require(value is None or value > 0, f"corpus.{key}", value, "give a number above 0 or null")

    trajectory = params.trajectory
    temperatures = trajectory.temperatures
    require(bool(temperatures), "trajectory.temperatures", [], "name at least one")
    fits = all(t is None or t >= 0 for t in temperatures)
    require(fits, "trajectory.temperatures", temperatures, "no temperature is below 0")
    ablations = trajectory.ablations
    for key, names in (
        ("trajectory.generators", trajectory.generators),
        ("trajectory.ablations.generators", ablations.generators),
        ("trajectory.ablations.operations", ablations.operations),
    ):
        require(bool(names), key, names, "name at least one")
        require(len(set(names)) == len(names), key, names, "name each once")
        for name in names:
            if key.endswith("operations"):
                one_of(key, name, OPERATIONS)
            elif name not in params.generators:
                raise InputError(f"{path}: {key}: {unknown('generator', name, params.generators)}")
    for key in ("coverages", "fixed_coverages"):
        levels = getattr(ablations, key)
        rises = all(0 < a < b for a, b in pairwise([*levels, 101]))
        fix = "give whole per cents from 1 to 100 that rise"
        require(bool(levels) and rises, f"trajectory.ablations.{key}", levels, fix)
    for key in ("max_dropped", "max_rejected"):
        share = getattr(trajectory, key)
        require(0 <= share <= 1, f"trajectory.{key}", share, "give a share from 0 to 1")
    for name, generator in params.generators.items():
        _check_generator(generator, f"{path}: generators.{name}")
    last = 0
    for i, (version, step) in enumerate(trajectory.schedule.items(), start=1):
        key = f"trajectory.schedule.{version}"
        require(version == f"v{i}", "trajectory.schedule", version, f"the next version is v{i}")
        one_of(f"{key}.operation", step.operation, OPERATIONS)
        fix = f"coverage never falls: give a number from {last} to 100"
        require(last <= step.coverage <= 100, f"{key}.coverage", step.coverage, fix)
        last = step.coverage
    require(0 < params.train.fpr < 1, "train.fpr", params.train.fpr, "give a rate between 0 and 1")
    resamples = params.evaluate.resamples
    require(resamples >= 100, "evaluate.resamples", resamples, "an interval needs at least 100")


def _are_names(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(v, str) for v in value)


# Body fields that the editor itself fills in, from the request or the params.
_OWN_FIELDS = {"model", "messages", "temperature", *LIMIT_FIELDS, "seed", "stream", "n"}


def _check_generator(generator: Generator, place: str) -> None:
    def require(holds: bool, key: str, fix: str) -> None:
        if not holds:
            raise InputError(f"{place}.{key} is {getattr(generator, key)!r}; {fix}")

    for key, known in (("editor", EDITORS), ("limit_field", LIMIT_FIELDS)):
        if getattr(generator, key) not in known:
            raise InputError(f"{place}.{key}: {unknown('value', getattr(generator, key), known)}")
    require(bool(generator.model), "model", "name a model")
    fix = "give a share up to 1, or above that a number of documents"
    require(0 < generator.documents < float("inf"), "documents", fix)
    for key in ("top_k", "batch_size", "concurrency"):
        require(getattr(generator, key) >= 1, key, "give a number from 1")
    for key in ("requests_per_minute", "tokens_per_minute"):
        value = getattr(generator, key)
        require(value is None or value >= 1, key, "give a number from 1, or null")
    require(generator.thinking_tokens >= 0, "thinking_tokens", "give a number from 0")
    require(generator.timeout > 0, "timeout", "give seconds above 0")
    if generator.temperatures is not None:
        require(bool(generator.temperatures), "temperatures", "name at least one, or null")
        fits = all(t is None or t >= 0 for t in generator.temperatures)
        require(fits, "temperatures", "no temperature is below 0")
    if price := generator.price:
        fix = "no price is below 0"
        require(price.input >= 0 and price.output >= 0, "price", fix)
    if generator.editor == "openai-compatible":
        require(bool(generator.base_urls), "base_urls", "give the URL of at least one server")
        fix = "each begins with http:// or https://"
        fits = all(url.startswith(("http://", "https://")) for url in generator.base_urls)
        require(fits, "base_urls", fix)
    own = sorted(_OWN_FIELDS & set(generator.extra_body))
    require(not own, "extra_body", f"the editor fills in {', '.join(own)} itself")
