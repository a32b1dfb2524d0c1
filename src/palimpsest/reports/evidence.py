"""Numbers that no record holds, made anew from runs' saved predictions: paired replicates."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from palimpsest.evaluation.comparison import Numbers, Saved, numbers_of
from palimpsest.evaluation.report import Context
from palimpsest.tracking import Evaluation

RESAMPLES = 1000
METRICS = ("accuracy", "f1_ai", "auroc")


@dataclass(frozen=True, slots=True)
class Curves:
    """Numbers of one run."""

    numbers: Numbers
    documents: int

    def along(self, metric: str, variant: str, versions: Sequence[str]) -> np.ndarray | None:
        """(V, 1 + R): the value, then its replicates, at each version; None where one has none."""
        keys = [(metric, variant, version) for version in versions]
        if not set(keys) <= set(self.numbers):
            return None
        return np.array([np.append(*self.numbers[key]) for key in keys])

    def variants(self) -> list[str]:
        return sorted({variant for _, variant, _ in self.numbers})


@dataclass(slots=True)
class Evidence:
    """What runs' saved predictions say when documents are resampled.

    All runs have the same draws of the same documents. Each is read once for a whole report.
    """

    _saved: dict[str, Saved] = field(default_factory=dict)
    _documents: dict[str, frozenset[str]] = field(default_factory=dict)
    _curves: dict[tuple[str, str, frozenset[str]], Curves] = field(default_factory=dict)

    def documents(self, run: Evaluation) -> frozenset[str]:
        if run.run_id not in self._documents:
            self._saved[run.run_id] = _saved(run)
            self._documents[run.run_id] = frozenset(self._saved[run.run_id].documents())
        return self._documents[run.run_id]

    def curves(self, run: Evaluation, level: str, only: frozenset[str] | None = None) -> Curves:
        """The mean over generators and domains; `only` restricts it to these documents."""
        own = self.documents(run)
        documents = own if only is None else only
        key = (run.run_id, level, documents)
        if key not in self._curves:
            numbers = numbers_of(self._saved[run.run_id], documents, level, METRICS)
            self._curves[key] = Curves(numbers, len(documents))
        return self._curves[key]


def _saved(run: Evaluation) -> Saved:
    thresholds = json.loads((run.artifact("tables") / "thresholds.json").read_text())
    held_out = run.records.loc[run.records["held_out"].astype(bool), "generator"].unique()
    return Saved(
        texts=run.artifact("samples.parquet"),
        predictions=run.artifact("predictions.parquet"),
        thresholds=thresholds["levels"],
        context=Context(
            detector=run.params["detector"],
            regime=run.params["regime"],
            design=run.params["design"],
            held_out=frozenset(map(str, held_out)),
            resamples=RESAMPLES,
            seed=0,
        ),
    )
