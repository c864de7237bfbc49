"""The pool of writes: so many at once, whatever fails."""

from __future__ import annotations

import asyncio
import random

from stromboli.live.process.events import Telling
from stromboli.live.writing.pool import Pool
from stromboli.narration.observe import SILENT, Counting
from tests.support.virtual import run


def not_expected(error: Exception) -> None:
    raise error


def test_a_pool_runs_so_much_at_once() -> None:
    async def story() -> None:
        pool = Pool(3, Telling(SILENT))
        most = [0, 0]

        async def work() -> None:
            most[0] += 1
            most[1] = max(most)
            await asyncio.sleep(random.Random(1).random())
            most[0] -= 1

        for _ in range(10):
            pool.put("something", work, not_expected)
        task = asyncio.create_task(pool.run())
        await pool.quiet()
        assert most == [0, 3]
        task.cancel()

    run(story())


def test_a_pool_lets_go_of_what_has_not_begun() -> None:
    async def story() -> None:
        pool, done = Pool(1, Telling(SILENT)), list[str]()

        async def work() -> None:
            done.append("work")

        pool.put("something", work, not_expected)
        pool.clear()
        await pool.quiet()
        task = asyncio.create_task(pool.run())
        await asyncio.sleep(1)
        assert (pool.waiting, done) == (0, [])
        task.cancel()

    run(story())


def test_what_fails_again_as_its_failure_is_dealt_with_is_told_and_all_other_work_is_done() -> None:
    async def story() -> None:
        told, done = Counting(keep=10), []
        pool = Pool(1, Telling(told))

        async def breaks() -> None:
            raise ZeroDivisionError("an unforeseen error")

        def breaks_too(error: Exception) -> None:
            raise KeyError("nor that") from error

        async def works() -> None:
            done.append("other")

        pool.put("Pod ns/bad", breaks, breaks_too)
        pool.put("Pod ns/good", works, breaks_too)
        running = asyncio.create_task(pool.run())
        await pool.quiet()
        assert (done, running.done()) == (["other"], False)
        error = "ZeroDivisionError: an unforeseen error; then KeyError: 'nor that'"
        assert told.of("write_failed") == [{"what": "Pod ns/bad", "error": error}]
        running.cancel()

    run(story())
