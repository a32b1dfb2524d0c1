"""NPR (DetectLLM, arXiv 2306.05540) and DetectGPT (arXiv 2301.11305): a text beside perturbed ones.

Both need a model that fills gaps beside the one that scores. The papers' is a T5; with a causal
model as filler, which sees only what stands before a gap, they are variants, and scores say so.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

from palimpsest.detectors.zero_shot import OneModel, ZeroShot
from palimpsest.models import exact_revision
from palimpsest.records import Reason, Span, Text
from palimpsest.statistics import criteria
from palimpsest.statistics.engine import Engine
from palimpsest.statistics.perturb import Filler, Perturbed, Perturber, gap_count
from palimpsest.statistics.tokens import TokenStatistics


@dataclass(kw_only=True)
class Settings(OneModel):
    """`filler` names a T5 or a causal model, `perturbations` is the number of copies."""

    LEAST: ClassVar = {"perturbations": 1}

    filler: str
    filler_revision: str | None = None
    perturbations: int
    seed: int = 0


@dataclass(kw_only=True)
class DetectGPTSettings(Settings):
    """It divides by the copies' spread, which takes two."""

    LEAST: ClassVar = {"perturbations": 2}


@dataclass(frozen=True, slots=True)
class PerturbedStatistics:
    """A text's statistics beside those of its copies, of which `wanted` were to be made.

    None were wanted of a text too short for a gap.
    """

    own: TokenStatistics
    copies: tuple[tuple[Perturbed, TokenStatistics], ...]
    wanted: int

    @property
    def seen(self) -> float:
        return self.own.seen

    def __len__(self) -> int:
        return len(self.own)

    def within(self, span: Span) -> "PerturbedStatistics":
        """The span in the text and in each copy; none is wanted where no copy has an edit."""
        own = self.own.within(span)
        if not any(copy.touches(span) for copy, _ in self.copies):
            return PerturbedStatistics(own, (), 0)
        copies = [(copy, tokens.within(copy.moved(span))) for copy, tokens in self.copies]
        return PerturbedStatistics(own, tuple(copies), self.wanted)


class _Perturbation(ZeroShot[PerturbedStatistics]):
    settings_type = Settings

    def statistics(self, texts: Sequence[Text]) -> Iterator[PerturbedStatistics]:
        for text in texts:
            copies = self._perturber.perturb(text.text, text.words, text.language)
            read = self._engine.read([text.text, *(copy.text for copy in copies)])
            own, *others = map(TokenStatistics.of, read)
            pairs = tuple(zip(copies, others, strict=True))
            wanted = self.settings.perturbations if gap_count(text.words) else 0
            yield PerturbedStatistics(own, pairs, wanted)

    def note(self, tokens: PerturbedStatistics) -> str:
        """How many copies could be filled, and whether that is the papers' way."""
        count = f"{len(tokens.copies)} of {tokens.wanted} copies"
        return (
            f"variant: gaps filled by {self.settings.filler}; {count}" if self._variant else count
        )

    def undefined(self, tokens: PerturbedStatistics) -> tuple[Reason, str]:
        if len(tokens.copies) < tokens.wanted / 2:
            return "error", self.note(tokens)
        if len(tokens) and not tokens.wanted:
            return "too_short", f"no gap among its {len(tokens)} scored tokens"
        return super().undefined(tokens)

    @cached_property
    def _engine(self) -> Engine:
        return self.engine(kind="single", models=((self.settings.model, self.settings.revision),))

    @cached_property
    def _perturber(self) -> Perturber:
        settings = self.settings
        revision = exact_revision(settings.filler, settings.filler_revision)
        return Perturber(
            self._load_filler,
            # a causal filler reads windows of max_tokens
            (settings.filler, revision, self.runtime.dtype, str(settings.max_tokens)),
            settings.perturbations,
            settings.seed,
            self._engine.cache,
        )

    @cached_property
    def _variant(self) -> bool:
        from palimpsest.statistics.fillers import is_t5

        return not is_t5(self.settings.filler, self.settings.filler_revision)

    def _load_filler(self) -> Filler:
        from palimpsest.statistics.fillers import CausalFiller, T5Filler
        from palimpsest.statistics.reference import Reference

        settings, runtime = self.settings, self.runtime
        name, revision = settings.filler, settings.filler_revision
        if not self._variant:
            return T5Filler.load(name, revision, runtime.device, runtime.dtype)
        if (name, revision) == (settings.model, settings.revision):
            return CausalFiller(self._engine.reference, settings.max_tokens)
        reference = Reference.load(name, revision, runtime.device, runtime.dtype)
        return CausalFiller(reference, settings.max_tokens)


class NPR(_Perturbation):
    def criterion(self, tokens: PerturbedStatistics) -> float:
        return _of_enough(criteria.npr, tokens)


class DetectGPT(_Perturbation):
    settings_type = DetectGPTSettings

    def criterion(self, tokens: PerturbedStatistics) -> float:
        return _of_enough(criteria.detectgpt, tokens)


def _of_enough(
    criterion: Callable[[TokenStatistics, Sequence[TokenStatistics]], float],
    tokens: PerturbedStatistics,
) -> float:
    """The criterion, or nan without copies or where more than half of them could not be filled."""
    if not tokens.copies or len(tokens.copies) < tokens.wanted / 2:
        return math.nan
    return criterion(tokens.own, [copy for _, copy in tokens.copies])
