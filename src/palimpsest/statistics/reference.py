"""A causal language model as the statistics see it: token ids in, chunks of logits out."""

import math
from collections.abc import Iterator, Sequence
from copy import copy
from dataclasses import dataclass
from itertools import takewhile
from typing import Any, Self

import numpy as np
import torch

from palimpsest.errors import InputError
from palimpsest.models import find_model, pick_device, weights_dtype

# Numbers in one chunk of logits: 32 MiB in float32, and rows enough for a fast matrix product.
CHUNK = 2**23

# Between a model's name and the temperature of its logits: how a second model is made of the first
# where there is no pair of models to be had.
_TEMPERATURE = "?temperature="

# With fewer positions at once, or rows of the head, matrix products take other kernels on a CPU,
# which round otherwise: a text's numbers would then depend on what it is read with.
_POSITIONS, _ROWS = 256, 16


@dataclass(frozen=True, slots=True)
class Encoded:
    """A text's own tokens, without any that the tokenizer adds; offsets are characters."""

    ids: np.ndarray  # (m,) int64
    char_start: np.ndarray  # (m,) int32
    char_end: np.ndarray  # (m,) int32


class Reference:
    """`prefix` are the ids that the tokenizer puts in front of a text: the BOS, or nothing.

    `context` is the number of positions that the model has, None where it has no limit.
    """

    def __init__(self, model: Any, tokenizer: Any, name: str) -> None:
        if not tokenizer.is_fast:
            raise InputError(f"{name} has no fast tokenizer, so its tokens have no offsets")
        config = model.config.get_text_config()
        self.name = name
        self.context: int | None = getattr(config, "max_position_embeddings", None)
        self.tokenizer = tokenizer
        self.model = model
        self._head = model.get_output_embeddings()
        self._scale = getattr(config, "logit_scale", None) or 1.0  # Cohere
        self._scale /= getattr(config, "logits_scaling", None) or 1.0  # Granite
        self._cap: float | None = getattr(config, "final_logit_softcapping", None)  # Gemma
        self._temperature = 1.0
        probe = tokenizer("a", return_special_tokens_mask=True)
        special = zip(probe["input_ids"], probe["special_tokens_mask"], strict=True)
        self.prefix = [token for token, _ in takewhile(lambda pair: pair[1], special)]
        self._check_head()

    @classmethod
    def load(cls, name: str, revision: str | None, device: str, dtype: str) -> Self:
        """The model of that name, as `models.find_model` understands it; see also `at_temperature`.

        Raises:
            InputError: a model that cannot be found, or one whose logits or offsets are out of
                reach.
        """
        from transformers import AutoModelForCausalLM, AutoTokenizer

        found, weights = find_model(name, revision), weights_dtype(dtype)
        tokenizer = found.load(AutoTokenizer)
        model = found.load(AutoModelForCausalLM, dtype=weights)
        return cls(model.to(pick_device(device)).eval(), tokenizer, name)

    def at_temperature(self, temperature: float) -> Self:
        """The same model with its logits divided, at no further cost in memory or passes."""
        other = copy(self)
        other.name = f"{self.name}{_TEMPERATURE}{temperature:g}"
        other._temperature = self._temperature * temperature
        return other

    @property
    def vocabulary(self) -> int:
        """V, the number of logits at a position."""
        return int(self._head.weight.shape[0])

    @property
    def device(self) -> torch.device:
        device: torch.device = self.model.device
        return device

    def encode(self, text: str) -> Encoded:
        """Tokens of the whole text; a special token's name in the text is text."""
        encoding = self.tokenizer(
            text,
            add_special_tokens=False,
            split_special_tokens=True,
            return_offsets_mapping=True,
            verbose=False,
        )
        offsets = np.array(encoding["offset_mapping"], np.int32).reshape(-1, 2)
        return Encoded(np.array(encoding["input_ids"], np.int64), offsets[:, 0], offsets[:, 1])

    def hidden(self, ids: torch.Tensor, rows: torch.Tensor) -> torch.Tensor:
        """The (R, H) last hidden states of the `rows` that are set.

        Args:
            ids: (B, T) token ids, padded on the right.
            rows: (B, T) bool, the R positions that are wanted.

        Raises:
            InputError: states that are no numbers, as of a model that overflows in float16.
        """
        if (missing := -(-_POSITIONS // ids.shape[1]) - len(ids)) > 0:
            pad = torch.nn.functional.pad
            ids, rows = pad(ids, (0, 0, 0, missing)), pad(rows, (0, 0, 0, missing))
        # No attention mask: a causal model's tokens never see the padding on their right, and with
        # a mask attention loses its causal fast path (a sixth of the time at 1,000 tokens).
        states: torch.Tensor = self.model.base_model(input_ids=ids, use_cache=False)[0]
        wanted = states[rows]
        # a comparison with nan is false: every token would have rank 1
        if not wanted.isfinite().all():
            raise InputError(
                f"{self.name} overflows with weights in {str(states.dtype).removeprefix('torch.')}:"
                " give another dtype, bfloat16 or float32"
            )
        return wanted

    def head(self, hidden: torch.Tensor) -> torch.Tensor:
        """The (R, V) logits of hidden states."""
        count = len(hidden)
        if count < _ROWS:
            hidden = torch.nn.functional.pad(hidden, (0, 0, 0, _ROWS - count))
        logits: torch.Tensor = self._head(hidden)[:count]
        if self._scale != 1.0:
            logits = logits * self._scale
        if self._cap is not None:
            logits = torch.tanh(logits / self._cap) * self._cap
        if self._temperature != 1.0:
            logits = logits / self._temperature
        return logits

    @torch.inference_mode()
    def _check_head(self) -> None:
        """Refuse a model that does more to its logits than `head` knows of."""
        ids = torch.arange(8, device=self.device)[None]
        whole = self.model(input_ids=ids).logits[0].float()
        ours = self.head(self.hidden(ids, torch.ones_like(ids, dtype=torch.bool))).float()
        if whole.shape != ours.shape or not torch.allclose(ours, whole, rtol=0.02, atol=0.02):
            raise InputError(f"{self.name} changes its logits in a way that is not supported")


def split_temperature(name: str) -> tuple[str, float]:
    """A model's own name, and the temperature that `name?temperature=1.25` asks for.

    Raises:
        InputError: a temperature that is no number above zero.
    """
    own, separator, given = name.partition(_TEMPERATURE)
    try:
        temperature = float(given) if separator else 1.0
    except ValueError:
        temperature = 0.0
    if not 0 < temperature < math.inf:
        raise InputError(f"{name}: the temperature is {given!r}; give a number above 0")
    return own, temperature


@torch.inference_mode()
def logits(
    references: Sequence[Reference], ids: torch.Tensor, rows: torch.Tensor
) -> Iterator[list[torch.Tensor]]:
    """Each model's (R, V) logits, in common chunks of rows; `ids` and `rows` as for `hidden`."""
    # a model that stands for two is read once
    states = {id(one.model): one for one in references}
    hidden = {key: one.hidden(ids, rows) for key, one in states.items()}
    widest = max(one.vocabulary for one in references)
    # equal chunks, so that no last one is small
    count = -(-int(rows.sum()) * widest // CHUNK)
    chunks = [hidden[id(one.model)].tensor_split(count) for one in references]
    for parts in zip(*chunks, strict=True):
        yield [one.head(part) for one, part in zip(references, parts, strict=True)]
