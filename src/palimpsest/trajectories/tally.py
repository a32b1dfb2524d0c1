"""What became of the sentences, the replies and the trajectories: counts with reasons."""

from collections import Counter
from dataclasses import dataclass, field
from typing import Any


@dataclass(slots=True)
class Tally:
    """Counts over all trajectories of one generator under one design.

    `outcomes` counts sentences by (operation, outcome), `objections` replies by (operation,
    objection); a reply may draw several soft objections.
    """

    outcomes: Counter[tuple[str, str]] = field(default_factory=Counter)
    objections: Counter[tuple[str, str]] = field(default_factory=Counter)
    tokens: int = 0
    finished: int = 0
    dropped: int = 0

    @property
    def dropped_share(self) -> float:
        return self.dropped / max(1, self.finished + self.dropped)

    def describe(self) -> str:
        """The counts as one line."""

        def listed(counts: Counter[tuple[str, str]]) -> str:
            reasons: Counter[str] = Counter()
            for (_, reason), n in counts.items():
                reasons[reason] += n
            return ", ".join(f"{reason} {n:,}" for reason, n in reasons.most_common()) or "none"

        return (
            f"sentences: {listed(self.outcomes)}; objections to replies: "
            f"{listed(self.objections)}; dropped trajectories: {self.dropped:,} of "
            f"{self.finished + self.dropped:,}"
        )

    def rows(self) -> list[dict[str, Any]]:
        """One row for each operation and reason, `kind` saying what is counted."""
        return [
            {"kind": kind, "operation": operation, "reason": reason, "count": n}
            for kind, counts in (("sentence", self.outcomes), ("reply", self.objections))
            for (operation, reason), n in sorted(counts.items())
        ] + [
            {"kind": "trajectory", "operation": "all", "reason": reason, "count": n}
            for reason, n in (("finished", self.finished), ("dropped", self.dropped))
        ]
