"""Models that fill gaps: a T5, as DetectGPT has it, and a causal model that reads the left only."""

import copy
import re
from collections.abc import Sequence
from typing import Any, Self

import numpy as np
import torch
from transformers import (
    AutoConfig,
    AutoModelForSeq2SeqLM,
    AutoTokenizer,
    LogitsProcessorList,
)

from palimpsest.errors import InputError
from palimpsest.models import find_model, pick_device, weights_dtype
from palimpsest.records import Language, Span, word_spans
from palimpsest.statistics.columns import drawn
from palimpsest.statistics.reference import Reference
from palimpsest.statistics.windows import cut

# Masked texts that a T5 fills together.
_BATCH = 32

# The tokens that a T5 samples from: transformers' default when the authors ran it, which their code
# inherits.
_TOP_K = 50

# Gaps that a causal model fills together: each has a copy of what the model remembers of the text.
_GAPS_AT_ONCE = 16


class T5Filler:
    """Gaps become sentinels, for which the model generates fills, sampled from likely tokens.

    A text with more gaps than `_GAPS` is filled a part at a time: T5 knows 100 sentinels, and the
    authors' 150 generated tokens hold few of them.
    """

    _GAPS = 24
    _LENGTH = 150

    def __init__(self, model: Any, tokenizer: Any) -> None:
        self.model = model
        self.tokenizer = tokenizer

    @classmethod
    def load(cls, name: str, revision: str | None, device: str, dtype: str) -> Self:
        """The model of that name.

        Raises:
            InputError: a model that cannot be found or that is no T5.
        """
        found, weights = find_model(name, revision), weights_dtype(dtype)
        tokenizer = found.load(AutoTokenizer)
        model = found.load(AutoModelForSeq2SeqLM, dtype=weights)
        if "<extra_id_0>" not in tokenizer.get_vocab():
            raise InputError(f"{name} has no <extra_id_0>: a filler must be a T5 or a causal model")
        return cls(model.to(pick_device(device)).eval(), tokenizer)

    def fill(
        self, text: str, language: Language, copies: Sequence[Sequence[Span]], seed: int
    ) -> list[list[str] | None]:
        """As `Filler.fill`; a copy fails where the output lacks one of its sentinels."""
        parts = [part for gaps in copies for part in self._masked(text, gaps)]
        fills: list[list[str] | None] = []
        sampling = _Sampling(seed)
        for start in range(0, len(parts), _BATCH):
            fills += self._generate(parts[start : start + _BATCH], sampling)
        found, used = [], 0
        for gaps in copies:
            count = -(-len(gaps) // self._GAPS)
            found.append(_together(fills[used : used + count]))
            used += count
        return found

    def _masked(self, text: str, gaps: Sequence[Span]) -> list[tuple[str, int]]:
        """The text in parts of at most `_GAPS` gaps, each with its sentinels and their number."""
        parts = []
        for first in range(0, len(gaps), self._GAPS):
            here = gaps[first : first + self._GAPS]
            start = gaps[first - 1].end if first else 0
            following = first + self._GAPS
            end = gaps[following].start if following < len(gaps) else len(text)
            pieces, done = [], start
            for number, gap in enumerate(here):
                pieces += [text[done : gap.start], f"<extra_id_{number}>"]
                done = gap.end
            parts.append(("".join((*pieces, text[done:end])), len(here)))
        return parts

    @torch.inference_mode()
    def _generate(
        self, parts: Sequence[tuple[str, int]], sampling: "_Sampling"
    ) -> list[list[str] | None]:
        stop = self.tokenizer.convert_tokens_to_ids(f"<extra_id_{max(n for _, n in parts)}>")
        inputs = self.tokenizer([text for text, _ in parts], return_tensors="pt", padding=True)
        inputs = {key: inputs[key] for key in ("input_ids", "attention_mask")}
        output = self.model.generate(
            **{key: value.to(self.model.device) for key, value in inputs.items()},
            do_sample=False,
            logits_processor=LogitsProcessorList([sampling]),
            max_length=self._LENGTH,
            eos_token_id=stop,
        )
        return [
            _extracted(text, count)
            for text, (_, count) in zip(self.tokenizer.batch_decode(output), parts, strict=True)
        ]


class _Sampling:
    """Leaves one token of each row, drawn with random numbers that are the same on every device."""

    def __init__(self, seed: int) -> None:
        self._random = np.random.default_rng(seed)

    def __call__(self, input_ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        least = scores.topk(min(_TOP_K, scores.shape[1])).values[:, -1:]
        uniforms = torch.from_numpy(self._random.random((len(scores), 1)))
        tokens = drawn(scores.masked_fill(scores < least, -torch.inf), uniforms)
        return torch.full_like(scores, -torch.inf).scatter(1, tokens, 0.0)


class CausalFiller:
    """A variant for where no T5 is: each gap gets two words that continue the text before it.

    The words are sampled from the model's whole distribution; what follows the gap is not seen.
    """

    # two words of most languages, and the beginning of a third, which shows where the second ends
    _TOKENS = 10

    def __init__(self, reference: Reference, max_tokens: int) -> None:
        self.reference = reference
        self._capacity = max_tokens - len(reference.prefix) - self._TOKENS

    def fill(
        self, text: str, language: Language, copies: Sequence[Sequence[Span]], seed: int
    ) -> list[list[str] | None]:
        """As `Filler.fill`; a copy fails where a gap has no token before it or gets no word."""
        encoded = self.reference.encode(text)
        begins = [gap.start for gaps in copies for gap in gaps]
        starts = np.searchsorted(encoded.char_end, begins, side="right")
        uniforms = np.random.default_rng(seed).random((len(starts), self._TOKENS))
        fills = [""] * len(starts)
        for window in cut(0, len(encoded.ids), self._capacity):
            inside = np.flatnonzero((starts >= window.first) & (starts < window.end))
            inside = inside[starts[inside] - window.start + len(self.reference.prefix) > 0]
            written = self._continued(
                encoded.ids[window.start : window.end],
                starts[inside] - window.start,
                uniforms[inside],
            )
            for place, continuation in zip(inside, written, strict=True):
                words = word_spans(continuation, language)[:2]
                fills[place] = continuation[words[0].start : words[-1].end] if words else ""
        found: list[list[str] | None] = []
        for gaps in copies:
            filled, fills = fills[: len(gaps)], fills[len(gaps) :]
            found.append(filled if all(filled) else None)
        return found

    @torch.inference_mode()
    def _continued(self, ids: np.ndarray, starts: np.ndarray, uniforms: np.ndarray) -> list[str]:
        """A continuation of each ids[:start], all from one reading of the ids."""
        if not len(starts):
            return []
        reference = self.reference
        whole = torch.tensor([[*reference.prefix, *ids]], device=reference.device)
        read = reference.model.base_model(input_ids=whole, use_cache=True)
        ends = torch.from_numpy(starts + len(reference.prefix)).to(reference.device)
        texts: list[str] = []
        for first in range(0, len(starts), _GAPS_AT_ONCE):
            here = slice(first, first + _GAPS_AT_ONCE)
            draws = torch.from_numpy(uniforms[here])
            past = copy.deepcopy(read.past_key_values)
            past.batch_repeat_interleave(len(draws))
            tokens = self._drawn(past, read.last_hidden_state[0], ends[here], draws)
            texts += reference.tokenizer.batch_decode(tokens, skip_special_tokens=True)
        return texts

    def _drawn(
        self, past: Any, states: torch.Tensor, ends: torch.Tensor, uniforms: torch.Tensor
    ) -> torch.Tensor:
        """(B, _TOKENS) ids, each row behind the first `end` of the tokens that `past` holds."""
        # a row must not see the text from its gap on, which `past` holds for all rows
        mask = torch.arange(len(states), device=ends.device) < ends[:, None]
        hidden = states[ends - 1]
        tokens: list[torch.Tensor] = []
        for step in range(self._TOKENS):
            tokens.append(drawn(self.reference.head(hidden), uniforms[:, step, None]))
            if len(tokens) < self._TOKENS:
                mask = torch.cat([mask, torch.ones_like(mask[:, :1])], dim=1)
                hidden = self.reference.model.base_model(
                    input_ids=tokens[-1],
                    attention_mask=mask.long(),
                    position_ids=(ends + step)[:, None],
                    past_key_values=past,
                    use_cache=True,
                ).last_hidden_state[:, -1]
        return torch.cat(tokens, dim=1)


def is_t5(name: str, revision: str | None) -> bool:
    """Whether a filler reads both sides of a gap, as its config says.

    Raises:
        InputError: a model that cannot be found.
    """
    return bool(find_model(name, revision).load(AutoConfig).is_encoder_decoder)


def _together(parts: Sequence[list[str] | None]) -> list[str] | None:
    filled = [part for part in parts if part is not None]
    return [fill for part in filled for fill in part] if len(filled) == len(parts) else None


def _extracted(output: str, count: int) -> list[str] | None:
    """What stands between the sentinels of a T5's output, as the authors take it apart."""
    output = output.replace("<pad>", "").replace("</s>", "")
    fills = [fill.strip() for fill in re.split(r"<extra_id_\d+>", output)[1:-1]]
    return fills[:count] if len(fills) >= count else None
