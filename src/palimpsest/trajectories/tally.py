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

    @property
    def rejected_share(self) -> float:
        rejected = sum(n for (_, outcome), n in self.outcomes.items() if outcome == "rejected")
        return rejected / max(1, self.outcomes.total())

    def describe(self) -> str:
        """The dropped trajectories, then a line for each operation."""

        def listed(counts: Counter[tuple[str, str]], operation: str) -> str:
            own = Counter(
                {reason: n for (given, reason), n in counts.items() if given == operation}
            )
            return ", ".join(f"{reason} {n:,}" for reason, n in own.most_common()) or "none"

        lines = [f"dropped trajectories: {self.dropped:,} of {self.finished + self.dropped:,}"]
        lines += [
            f"  {operation}: sentences {listed(self.outcomes, operation)}; "
            f"objections to replies: {listed(self.objections, operation)}"
            for operation in dict.fromkeys(operation for operation, _ in self.outcomes)
        ]
        return "\n".join(lines)

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
