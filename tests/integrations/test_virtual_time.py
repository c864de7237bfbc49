"""Virtual time moves on for whatever waits."""

from __future__ import annotations

import asyncio

from tests.support.virtual import run


def test_tasks_that_wait_until_a_time_get_there_however_they_are_out_of_step() -> None:
    """Each computes what is left, which is less than the loop tells apart, and they do so in turns of their own."""

    async def until(due: float, turns: int) -> None:
        loop = asyncio.get_running_loop()
        for _ in range(turns):
            await asyncio.sleep(0)
        asked = 0
        while (left := due - loop.time()) > 0:
            await asyncio.sleep(left)
            asked += 1
            assert asked < 100, "time stands still"

    async def story() -> None:
        due = asyncio.get_running_loop().time() + 5e-12
        await asyncio.gather(*(until(due, turns) for turns in range(3)))

    run(story())


def test_time_moves_on_by_what_is_waited_for() -> None:
    async def story() -> float:
        before = asyncio.get_running_loop().time()
        await asyncio.sleep(3600)
        return asyncio.get_running_loop().time() - before

    assert run(story()) == 3600
