import asyncio

from palimpsest.editors.pace import Pace


def run(per_minute: int | None, costs: list[int], give_back: int = 0) -> list[float]:
    """When each of those that ask together gets its turn, in seconds."""

    async def measure() -> list[float]:
        clock = asyncio.get_running_loop().time
        begin = clock()
        pace = Pace(per_minute)
        turns: list[float] = []

        async def take(units: int) -> None:
            await pace.take(units)
            turns.append(clock() - begin)

        await asyncio.gather(*map(take, costs))
        if give_back:
            pace.give_back(give_back)
            await take(1)
        return turns

    return asyncio.run(measure())


def test_no_limit_lets_everything_pass() -> None:
    assert max(run(None, [1000] * 50)) < 0.1


def test_turns_come_evenly_and_in_order() -> None:
    turns = run(600, [1, 1, 1, 1])
    assert turns == sorted(turns)
    assert all(abs(turn - i * 0.1) < 0.08 for i, turn in enumerate(turns))


def test_a_large_request_makes_the_next_wait_for_its_units() -> None:
    turns = run(6000, [30, 1])
    assert turns[0] < 0.1
    assert 0.29 < turns[1] < 0.5


def test_an_estimate_that_was_too_high_is_given_back() -> None:
    assert run(6000, [100], give_back=100)[1] < 0.2
