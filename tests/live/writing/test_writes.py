"""Words on their way to objects: what is written, when, and what a newer word does to one that waits."""

from __future__ import annotations

import asyncio

import pytest

from stromboli.errors import ApiError
from stromboli.kube.client import Client
from stromboli.kube.recorder import Recorder
from stromboli.live.scheduler.context import Context
from stromboli.live.writing.writes import Writes
from tests.support.live_world import LiveWorld
from tests.support.virtual import run

SAY = 1.0
"""Seconds that a write takes here."""


class Board:
    """Writes of one object, and what they have written when."""

    def __init__(self) -> None:
        world = LiveWorld()
        feed = world.scheduler().feed
        client = Client(world.server)
        self.writes = Writes(Context(client, feed, Recorder(client, "test", world.clock)), 4, self._given_up)
        self.said: list[tuple[str, float]] = []
        self.refused = False

    def begin(self) -> None:
        self._running = asyncio.create_task(self.writes.pool.run())

    async def end(self) -> None:
        self._running.cancel()
        await asyncio.gather(self._running, return_exceptions=True)

    async def _given_up(self, key: str) -> None:
        raise AssertionError(key)

    def want(self, word: str, within: float = 0.0) -> None:
        async def send() -> None:
            if word == "refused once" and not self.refused:
                self.refused = True
                raise ApiError(500, "InternalError", "try again")
            self.said.append((word, asyncio.get_running_loop().time()))
            await asyncio.sleep(SAY)

        self.writes.want("PodGroup ns/a", word, send, within)


@pytest.mark.parametrize(
    ("wanted", "said"),
    [
        ([(0, "a", 0)], [("a", 0)]),
        ([(0, "a", 5)], [("a", 5)]),
        ([(0, "a", 5), (2, "b", 5)], [("b", 5)]),
        ([(0, "a", 5), (2, "b", 0)], [("b", 2)]),
        ([(0, "a", 5), (2, "b", 0), (8, "c", 0)], [("b", 2), ("c", 8)]),
        ([(0, "a", 0), (0.5, "b", 0)], [("a", 0), ("b", 1)]),
        ([(0, "a", 0), (0.5, "b", 5)], [("a", 0), ("b", 5.5)]),
        ([(0, "a", 0), (0.2, "b", 5), (0.5, "c", 0)], [("a", 0), ("c", 1)]),
        ([(0, "a", 0), (0.2, "b", 0.5)], [("a", 0), ("b", 1)]),
        ([(0, "a", 0), (0.2, "b", 5), (0.5, "a", 0)], [("a", 0)]),
        ([(0, "a", 0), (0.2, "b", 0), (0.5, "a", 0)], [("a", 0)]),
        ([(0, "a", 5), (6.5, "a", 5)], [("a", 5), ("a", 11.5)]),
    ],
    ids=[
        "at once", "within", "the newest, when the first was due", "what is at once does not wait",
        "nothing is left of what waited", "after the one that is being said", "later than the one that is being said",
        "at once, after the one that is being said", "due while another is being said",
        "what is being said makes a later word needless", "and one that has its turn", "one after the other",
    ],
)  # fmt: skip
def test_what_is_written_and_when(wanted: list[tuple[float, str, float]], said: list[tuple[str, float]]) -> None:
    async def story() -> None:
        board = Board()
        board.begin()
        began = asyncio.get_running_loop().time()
        for when, word, within in wanted:
            await asyncio.sleep(began + when - asyncio.get_running_loop().time())
            board.want(word, within)
        await asyncio.sleep(20)
        assert [(word, round(at - began, 3)) for word, at in board.said] == said
        await board.end()

    run(story())


def test_a_word_that_may_wait_does_not_keep_an_urgent_one_from_being_tried_again() -> None:
    async def story() -> None:
        board = Board()
        board.begin()
        began = asyncio.get_running_loop().time()
        board.want("refused once")
        await asyncio.sleep(0.001)
        board.want("later", 5.0)
        await asyncio.sleep(20)
        (first, second), times = zip(*board.said, strict=True)
        assert (first, second, board.refused) == ("refused once", "later", True)
        assert times[0] - began < 1.0
        await board.end()

    run(story())


def test_what_may_wait_is_written_before_a_stop() -> None:
    async def story() -> None:
        board = Board()
        board.begin()
        board.want("later", 5.0)
        board.writes.hasten()
        async with asyncio.timeout(2 * SAY):
            await board.writes.pool.quiet()
        assert [word for word, _ in board.said] == ["later"]
        await asyncio.sleep(20)
        assert len(board.said) == 1
        await board.end()

    run(story())
