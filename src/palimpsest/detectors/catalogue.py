"""What `palimpsest detectors` says: each detector's models in a profile, and whether it runs."""

import os
import re
from collections.abc import Mapping
from importlib.util import find_spec
from typing import Any

from palimpsest.detectors.registry import Entry
from palimpsest.models import is_here, pick_device, weights_dtype

# A profile names models as pip:<name> or as a hub id, perhaps at a temperature.
_MODEL = re.compile(r"(pip:[^\s?]+|[A-Za-z][\w.-]*/[\w.-]+)(\?temperature=\S+)?")

# Billions of weights, where a hub id tells them; GPT-2 XL's does not.
_BILLIONS = re.compile(r"(?<![\d.])(\d+(?:\.\d+)?)b(?![a-z])", re.IGNORECASE)
_UNTOLD = {"gpt2-xl": 1.6}

# A fifth more than the weights, for what a pass holds.
_PASS = 1.2


def models_of(settings: Mapping[str, Any]) -> tuple[str, ...]:
    """The names of models among a detector's settings, each once."""
    values = (
        v for value in settings.values() for v in (value if isinstance(value, list) else [value])
    )
    names = (v for v in values if isinstance(v, str))
    return tuple(dict.fromkeys(name for name in names if _MODEL.fullmatch(name)))


def ability(entry: Entry, models: tuple[str, ...], device: str, dtype: str) -> str:
    """Whether this machine can run the detector with these models, and else what is missing."""
    missing = [f"package {name}" for name in entry.packages if find_spec(name) is None]
    loaded = dict.fromkeys(name.partition("?")[0] for name in models)
    if absent := [name for name in loaded if not is_here(name)]:
        which = "" if len(absent) == len(loaded) else f" of {' and '.join(absent)}"
        missing.append(f"download{which}")
    if weights := sum(map(_weights, loaded)):
        place = pick_device(device)
        need = weights * weights_dtype(dtype).itemsize * _PASS / 2**30
        if (have := _memory(place)) < need:
            missing.append(f"{need:.0f} GiB of memory on {place} (here {have:.0f})")
    return f"needs {', '.join(missing)}" if missing else "runs here"


def _weights(model: str) -> float:
    """How many weights a model has, as far as its name tells."""
    name = model.rpartition("/")[2]
    told = _BILLIONS.search(name)
    billions = float(told[1]) if told else _UNTOLD.get(name, 0.0)
    return billions * 1e9


def _memory(device: str) -> float:
    """GiB of the GPU, or of the machine; 0 where a GPU is asked for and there is none."""
    import torch

    if not device.startswith("cuda"):
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    if not torch.cuda.is_available():
        return 0.0
    return float(torch.cuda.get_device_properties(device).total_memory / 2**30)
