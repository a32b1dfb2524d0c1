"""What replies cost, and a limit on it."""

from collections.abc import Iterable
from dataclasses import dataclass

from palimpsest.params import Price
from palimpsest.trajectories.requests import Reply


@dataclass(slots=True)
class Budget:
    """Counts the cost of new replies in US dollars; `limit` is where no more requests are sent."""

    limit: float | None = None
    spent: float = 0.0

    def pay(self, price: Price | None, replies: Iterable[Reply]) -> None:
        if price is not None:
            self.spent += sum(cost(price, r.prompt_tokens, r.tokens) for r in replies)

    @property
    def exhausted(self) -> bool:
        return self.limit is not None and self.spent >= self.limit


def cost(price: Price, prompt_tokens: float, reply_tokens: float) -> float:
    """US dollars for so many tokens read and written."""
    return (prompt_tokens * price.input + reply_tokens * price.output) / 1e6
