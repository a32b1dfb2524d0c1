"""Cut long token sequences into overlapping windows, and gather windows into batches."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass


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


def batches(windows: Iterable[Window], tokens: int) -> Iterator[list[Window]]:
    """Windows of like length together, the longest first; a padded batch stays within `tokens`.

    A window that is longer than that is a batch of its own.
    """
    batch: list[Window] = []
    for window in sorted(windows, key=lambda window: (-window.length, window)):
        if batch and (len(batch) + 1) * batch[0].length > tokens:
            yield batch
            batch = []
        batch.append(window)
    if batch:
        yield batch
