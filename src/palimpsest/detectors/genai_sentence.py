"""GenAI-Sentence: a trained tagger that decides for every word whether AI wrote it.

OpAI-Bench, Appendix D: encoder with LoRA, BiGRU and CRF over the words' first sub-words.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Self

import numpy as np

from palimpsest.detectors.interface import Log, Runtime
from palimpsest.detectors.word_windows import Window, cut, deepest, runs, sub_words
from palimpsest.errors import InputError, unknown
from palimpsest.models import Model, exact_revision, find_model
from palimpsest.records import Labelled, Level, Reason, Scores, Text

if TYPE_CHECKING:
    from palimpsest.detectors.tagger import Example, Tagger


@dataclass
class Settings:
    """What the published method leaves open; its fixed numbers stand beside the network."""

    model: str
    learning_rate: float
    batch_size: int
    epochs: int
    warmup: float  # share of all steps
    lora_targets: list[str]
    hidden: int  # of the GRU, per direction
    max_tokens: int  # of a window, special tokens included
    revision: str | None = None
    long_text: str = "windows"

    def __post_init__(self) -> None:
        def require(holds: bool, key: str, fix: str) -> None:
            if not holds:
                raise InputError(f"genai-sentence.{key} is {getattr(self, key)!r}; {fix}")

        for key in ("learning_rate", "batch_size", "epochs", "hidden"):
            require(getattr(self, key) > 0, key, "give a number above 0")
        require(0 <= self.warmup < 1, "warmup", "give a share of all steps, such as 0.1")
        require(self.max_tokens >= 8, "max_tokens", "a window needs 8 tokens or more")
        require(bool(self.lora_targets), "lora_targets", "name at least one kind of layer")
        if self.long_text not in ("windows", "truncate"):
            raise unknown("genai-sentence.long_text", self.long_text, ("windows", "truncate"))


@dataclass(frozen=True, slots=True)
class Reading:
    """A text as the tagger reads it; `seen` is the share of its sub-words inside the windows."""

    windows: list[Window]
    seen: float


class GenAISentence:
    """Scores are CRF marginals P(AI), labels the Viterbi path, both one per word.

    Sentence and document results are derived from the words, not here.

    Raises:
        InputError: more tokens in a window than the encoder can read.
    """

    native: Level = "word"
    published: ClassVar[Mapping[Level, float]] = {}  # it decides by the Viterbi path
    probabilities: ClassVar[frozenset[Level]] = frozenset({"word"})

    def __init__(self, settings: Settings, runtime: Runtime) -> None:
        from transformers import AutoConfig, AutoTokenizer

        self.settings = settings
        self.runtime = runtime
        # the tokenizer, the encoder and the checkpoint are of one commit
        revision = exact_revision(settings.model, settings.revision)
        self.revisions = {"revision": revision}
        self.model: Model = find_model(settings.model, revision)
        # byte-level tokenizers take lists of words only if these begin with a space
        self.tokenizer = self.model.load(AutoTokenizer, add_prefix_space=True)
        config = self.model.load(AutoConfig)
        limit = min(config.max_position_embeddings, self.tokenizer.model_max_length)
        if settings.max_tokens > limit:
            raise InputError(
                f"genai-sentence.max_tokens is {settings.max_tokens}; "
                f"{settings.model} reads {limit} at most"
            )
        self.tagger: Tagger | None = None

    def fit(self, train: Sequence[Labelled], dev: Sequence[Labelled], log: Log) -> None:
        """Learn from `train`, keep the epoch with the best word F1-AI on `dev`.

        Raises:
            InputError: no dev words, or training words of fewer than two classes.
        """
        from palimpsest.detectors import tagger

        examples, dev_examples = self._examples(train), self._examples(dev)
        classes = {label for _, labels in examples for label in labels}
        if len(classes) < 2:
            held = {0: "only human words", 1: "only AI words"}[classes.pop()] if classes else "none"
            raise InputError(
                f"genai-sentence needs human and AI words to train on, and finds {held}: "
                "widen train.select, or corpus.documents_per_domain"
            )
        if not dev_examples:
            raise InputError(
                "genai-sentence needs dev texts to choose its best epoch, and there are none: "
                "widen train.select, or corpus.documents_per_domain"
            )
        self.tagger = tagger.build(self.settings, self.model, self.runtime)
        tagger.train(
            self.tagger, examples, dev_examples, self._pad, self.settings, self.runtime, log
        )

    def score(self, texts: Sequence[Text]) -> list[Scores]:
        """Word scores (W,) and labels (W,) of each text.

        A text longer than `max_tokens` is read in windows that overlap by half, each word from the
        window where it stands deepest; with `long_text: truncate` only its beginning is read.

        Raises:
            InputError: the detector is not trained.
        """
        from palimpsest.detectors.tagger import tag

        if self.tagger is None:
            raise InputError("genai-sentence is not trained: fit it or load a checkpoint first")
        readings = [self._read(text, self._capacity // 2) for text in texts]
        windows = [window for reading in readings for window in reading.windows]
        tagged = iter(tag(self.tagger, windows, self._pad, self.settings.batch_size))
        return [
            _scores(text, reading, [next(tagged) for _ in reading.windows])
            for text, reading in zip(texts, readings, strict=True)
        ]

    def save(self, folder: Path) -> None:
        """Write what was trained, and the settings with the base model's exact revision."""
        from safetensors.torch import save_file

        if self.tagger is None:
            raise InputError("genai-sentence is not trained: there is nothing to save")
        folder.mkdir(parents=True, exist_ok=True)
        weights = {k: v.detach().cpu().contiguous() for k, v in self.tagger.trained().items()}
        save_file(weights, folder / "weights.safetensors")
        settings = {**asdict(self.settings), **self.revisions}
        (folder / "settings.json").write_text(json.dumps(settings, indent=2) + "\n")

    @classmethod
    def load(cls, folder: Path, runtime: Runtime | None = None) -> Self:
        """The detector that was saved, on the same base weights.

        Raises:
            InputError: no checkpoint, or one whose base weights or layers are not those at hand.
        """
        from safetensors.torch import load_file

        from palimpsest.detectors import tagger

        if not (folder / "settings.json").is_file():
            raise InputError(f"{folder} holds no genai-sentence checkpoint: run `dvc repro train`")
        settings = Settings(**json.loads((folder / "settings.json").read_text()))
        detector = cls(settings, runtime or Runtime())
        if detector.model.revision != settings.revision:
            raise InputError(
                f"{folder} was trained on {settings.model} {settings.revision}, which is now "
                f"{detector.model.revision}: bring that model back or train again"
            )
        detector.tagger = tagger.build(settings, detector.model, detector.runtime)
        tagger.restore(detector.tagger, load_file(folder / "weights.safetensors"))
        detector.tagger.eval()
        return detector

    @property
    def _capacity(self) -> int:
        return self.settings.max_tokens - 2  # beside the two special tokens

    @property
    def _pad(self) -> int:
        pad: int = self.tokenizer.pad_token_id
        return pad

    def _read(self, text: Text, stride: int) -> Reading:
        if not text.words:
            return Reading([], 1.0)
        pieces = sub_words(text, self.tokenizer)
        lengths = [len(ids) for ids in pieces]
        found = runs(lengths, self._capacity, stride)
        if self.settings.long_text == "truncate":
            found = found[:1]
        read = np.minimum(lengths, self._capacity)[: found[-1].stop].sum()
        special = self.tokenizer.cls_token_id, self.tokenizer.sep_token_id
        return Reading(
            [cut(pieces, run, self._capacity, *special) for run in found], read / sum(lengths)
        )

    def _examples(self, texts: Sequence[Labelled]) -> "list[Example]":
        """Windows that share no word, so that each is learned from once in an epoch."""
        return [
            (window, text.word_labels[window.words.start : window.words.stop])
            for text in texts
            for window in self._read(text, self._capacity).windows
        ]


def _scores(
    text: Text, reading: Reading, tagged: Sequence[tuple[np.ndarray, np.ndarray]]
) -> Scores:
    words = len(text.words)
    labels = np.full(words, -1, np.int8)
    scores = np.full(words, np.nan, np.float32)
    chosen = deepest([window.words for window in reading.windows], words)
    for index, (window, (tags, marginals)) in enumerate(zip(reading.windows, tagged, strict=True)):
        here = chosen[window.words.start : window.words.stop] == index
        labels[window.words.start : window.words.stop][here] = tags[here]
        scores[window.words.start : window.words.stop][here] = marginals[here]
    reason: Reason | None = "too_short" if not words else "truncated" if reading.seen < 1 else None
    return Scores(np.nan, words=scores, word_labels=labels, reason=reason, seen=float(reading.seen))
