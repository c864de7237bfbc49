"""Turns of the event loop: long work is done in small slices, so that all others have their turn."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from typing import Final

SLICE: Final = 0.005
"""Seconds of work after which the event loop has its turn: several may have such work at once."""

AT_ONCE: Final = 8
"""Requests that are sent, and answers that are dealt with, in one turn.

Each takes a third of a millisecond, and gives the interpreter up several times on the way, to encrypt and to decrypt.
Wherever another thread computes meanwhile, it takes as long as that may keep the interpreter to have it back.
"""


class Slices:
    """Lets the event loop have its turn whenever work has gone on for :data:`SLICE`."""

    def __init__(self) -> None:
        self._since = time.perf_counter()

    async def give_way(self) -> None:
        """Yield if it is time to."""
        if time.perf_counter() - self._since > SLICE:
            await asyncio.sleep(0)
            self._since = time.perf_counter()


class Turnstile:
    """Lets ``most`` pass in each turn of the event loop, in the order of coming."""

    def __init__(self, most: int = AT_ONCE) -> None:
        self._most = self._left = most
        self._waiting: deque[asyncio.Future[None]] = deque()

    async def passed(self) -> None:
        """Return in a turn that has room."""
        loop = asyncio.get_running_loop()
        if self._left == self._most:
            loop.call_soon(self._turn)
        if self._left:
            self._left -= 1
            return
        waiting = loop.create_future()
        self._waiting.append(waiting)
        await waiting

    def _turn(self) -> None:
        """A turn begins; as long as callers pass, there is a next one."""
        self._left = self._most
        while self._left and self._waiting:
            waiting = self._waiting.popleft()
            if not waiting.done():  # else there is no waiter any more
                waiting.set_result(None)
                self._left -= 1
        if self._left < self._most:
            asyncio.get_running_loop().call_soon(self._turn)
