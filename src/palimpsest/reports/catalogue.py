"""What a benchmark's report consists of: a module of entries for each benchmark."""

import importlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from palimpsest.reports.figures import Figure
from palimpsest.reports.formats import Table
from palimpsest.reports.runs import Runs


@dataclass(frozen=True, slots=True)
class Entry:
    """A table or figure under its number.

    `make` raises MissingError where the runs cannot fill it; what it returns are files whose names
    start with `slug`.
    """

    number: str
    title: str
    make: Callable[[Runs], Sequence[Table | Figure]]

    @property
    def slug(self) -> str:
        kind, _, number = self.number.lower().partition(" ")
        return f"{kind}-{int(number):02}" if number else kind


def entries(benchmark: str) -> tuple[Entry, ...]:
    """The entries of a benchmark: `ENTRIES` of the module in this folder that has its name."""
    module = importlib.import_module(f"palimpsest.reports.{benchmark.replace('-', '_')}")
    found: tuple[Entry, ...] = module.ENTRIES
    return found
