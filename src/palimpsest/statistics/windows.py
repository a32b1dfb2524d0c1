"""Cut long token sequences into overlapping windows, and gather windows into batches."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby, islice

# A window's numbers depend on the width of its batch in the last bits, which is enough to move a
# statistic that counts (Lastde's histogram). So the width follows from the window alone, and on a
# CPU the numbers are the same bits in any batch.
STEP = 32


@dataclass(frozen=True, slots=True, order=True)
class Window:
    """The tokens [start, end) of a text are read together; [first, end) are scored here."""

    text: int
    start: int
    first: int
    end: int

    @property
    def length(self) -> int:
        return self.end - self.start


def cut(text: int, tokens: int, capacity: int) -> list[Window]:
    """Windows of at most `capacity` tokens that score each token once.

    Each further window scores half a window of new tokens, or what is left, behind as many read
    tokens as fit.
    """
    windows: list[Window] = []
    done = 0
    while done < tokens:
        end = min(done + (capacity // 2 if windows else capacity), tokens)
        windows.append(Window(text, max(0, end - capacity), done, end))
        done = end
    return windows


def padded(length: int) -> int:
    """The width of the batch that a window of so many tokens is read in."""
    return -(-length // STEP) * STEP


def batches(windows: Iterable[Window], tokens: int) -> Iterator[list[Window]]:
    """Windows of one padded width together, the longest first; a batch stays within `tokens`.

    A window that is longer than that is a batch of its own.
    """
    ordered = sorted(windows, key=lambda window: (-window.length, window))
    for width, group in groupby(ordered, key=lambda window: padded(window.length)):
        while batch := list(islice(group, max(1, tokens // width))):
            yield batch
