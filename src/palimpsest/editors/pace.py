"""Keep to a provider's rate: so many requests or tokens a minute."""

import asyncio


class Pace:
    """Hands out at most `per_minute` units a minute, evenly, in the order in which they are asked.

    Even spacing never exceeds a limit that is counted over seconds, where a full minute's budget
    spent at once would. None is no limit.
    """

    def __init__(self, per_minute: int | None) -> None:
        self._seconds = 60 / per_minute if per_minute else 0.0
        self._next = 0.0

    async def take(self, units: int = 1) -> None:
        """Wait for the units' turn; the next turn comes when they are used up."""
        now = asyncio.get_running_loop().time()
        turn = max(now, self._next)
        self._next = turn + units * self._seconds
        if turn > now:
            await asyncio.sleep(turn - now)

    def give_back(self, units: int) -> None:
        """Correct an estimate: fewer units were used than taken, or more, where negative."""
        self._next -= units * self._seconds
