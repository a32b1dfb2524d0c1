"""What any detector must beat: the commonest label, a coin, and the number of words."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Self

import numpy as np

from palimpsest.detectors.interface import Log, Runtime
from palimpsest.errors import InputError
from palimpsest.records import Labelled, Level, Scores, Text


@dataclass
class Settings:
    """A baseline has none."""


class Majority:
    """Gives every document, sentence and word the label that is commonest in training.

    The score is the share of AI in training, the same for all: it ranks nothing (AUROC 0.5). On a
    tie the label is human.
    """

    native: Level = "word"
    published: ClassVar[Mapping[Level, float]] = {}
    probabilities: ClassVar[frozenset[Level]] = frozenset({"document", "sentence", "word"})

    def __init__(self, settings: Settings, runtime: Runtime) -> None:
        self.shares: dict[str, float] = {}

    def fit(self, train: Sequence[Labelled], dev: Sequence[Labelled], log: Log) -> None:
        """Count labels at each level.

        Raises:
            InputError: training texts without words.
        """
        labels = {
            "document": [text.label for text in train],
            "sentence": [label for text in train for label in text.sentence_labels],
            "word": [label for text in train for label in text.word_labels],
        }
        if not all(labels.values()):
            raise InputError("majority has no training texts to count: widen train.select")
        self.shares = {level: float(np.mean(found)) for level, found in labels.items()}

    def score(self, texts: Sequence[Text]) -> list[Scores]:
        document, sentence, word = (self.shares[k] for k in ("document", "sentence", "word"))
        return [
            _decided(
                document, np.full(len(text.sentences), sentence), np.full(len(text.words), word)
            )
            if text.words
            else _NOTHING
            for text in texts
        ]

    def save(self, folder: Path) -> None:
        _write(folder, self.shares)

    @classmethod
    def load(cls, folder: Path, runtime: Runtime | None = None) -> Self:
        detector = cls(Settings(), runtime or Runtime())
        detector.shares = _read(folder)
        return detector


class Random:
    """A score between 0 and 1 for every unit, drawn from the seed and the text's id alone."""

    native: Level = "word"
    published: ClassVar[Mapping[Level, float]] = {}

    def __init__(self, settings: Settings, runtime: Runtime) -> None:
        self.seed = runtime.seed

    def fit(self, train: Sequence[Labelled], dev: Sequence[Labelled], log: Log) -> None:
        """Nothing: a coin learns nothing."""

    def score(self, texts: Sequence[Text]) -> list[Scores]:
        return [self._toss(text) if text.words else _NOTHING for text in texts]

    def _toss(self, text: Text) -> Scores:
        digest = hashlib.sha256(f"{self.seed} {text.id}".encode()).digest()
        draw = np.random.default_rng(int.from_bytes(digest[:8], "big"))
        return _decided(
            draw.random(), draw.random(len(text.sentences)), draw.random(len(text.words))
        )

    def save(self, folder: Path) -> None:
        _write(folder, {"seed": self.seed})

    @classmethod
    def load(cls, folder: Path, runtime: Runtime | None = None) -> Self:
        """The coin that was saved; the runtime's seed does not change it."""
        detector = cls(Settings(), runtime or Runtime())
        detector.seed = int(_read(folder)["seed"])
        return detector


class Length:
    """Scores a document, and each sentence, by its number of words.

    Longer counts as more likely AI. That direction is fixed by convention, not fitted: an AUROC
    below 0.5 says that the AI texts are the shorter ones.
    """

    native: Level = "sentence"
    published: ClassVar[Mapping[Level, float]] = {}

    def __init__(self, settings: Settings, runtime: Runtime) -> None:
        pass

    def fit(self, train: Sequence[Labelled], dev: Sequence[Labelled], log: Log) -> None:
        """Nothing: lengths are counted, not learned."""

    def score(self, texts: Sequence[Text]) -> list[Scores]:
        return [self._count(text) if text.words else _NOTHING for text in texts]

    def _count(self, text: Text) -> Scores:
        starts, ends = np.array(text.words).T
        first, last = np.array(text.sentences).reshape(-1, 2).T
        inside = np.searchsorted(starts, last) - np.searchsorted(ends, first, side="right")
        return Scores(len(text.words), sentences=inside.astype(np.float32))

    def save(self, folder: Path) -> None:
        _write(folder, {})

    @classmethod
    def load(cls, folder: Path, runtime: Runtime | None = None) -> Self:
        return cls(Settings(), runtime or Runtime())


_NOTHING = Scores(float("nan"), reason="too_short")


def _decided(document: float, sentences: np.ndarray, words: np.ndarray) -> Scores:
    """Scores whose labels the method decides itself: AI above one half."""
    return Scores(
        document,
        document_label=int(document > 0.5),
        sentences=sentences.astype(np.float32),
        words=words.astype(np.float32),
        sentence_labels=(sentences > 0.5).astype(np.int8),
        word_labels=(words > 0.5).astype(np.int8),
    )


def _write(folder: Path, state: Mapping[str, float]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "baseline.json").write_text(json.dumps(state, indent=2) + "\n")


def _read(folder: Path) -> dict[str, float]:
    state: dict[str, float] = json.loads((folder / "baseline.json").read_text())
    return state
