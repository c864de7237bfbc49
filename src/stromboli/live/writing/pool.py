"""Work that goes on alongside the cycle, a bounded amount at once."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable

from stromboli.errors import in_words
from stromboli.live.process.events import Telling

Work = Callable[[], Awaitable[None]]
Failed = Callable[[Exception], None]


class Pool:
    """Runs what is put in, in order, ``size`` at once.

    ``waiting`` and ``running`` count; ``tell`` hears of what fails a second time as its failure is dealt with.
    """

    def __init__(self, size: int, tell: Telling) -> None:
        self.size, self._tell = size, tell
        self._queue: deque[tuple[str, Work, Failed]] = deque()
        self._ready = asyncio.Event()
        self._quiet = asyncio.Event()
        self._quiet.set()
        self.running = 0

    @property
    def waiting(self) -> int:
        """How much has not begun."""
        return len(self._queue)

    @property
    def is_busy(self) -> bool:
        """Whether something waits or runs."""
        return bool(self._queue or self.running)

    def put(self, what: str, work: Work, failed: Failed) -> None:
        """Run ``work`` when its turn comes; ``failed`` gets an unexpected error, and other work goes on.

        ``what`` names it.
        """
        self._queue.append((what, work, failed))
        self._quiet.clear()
        self._ready.set()

    def clear(self) -> None:
        """Let go of what has not begun."""
        self._queue.clear()
        self._settle()

    async def quiet(self) -> None:
        """Return when nothing waits or runs."""
        await self._quiet.wait()

    async def run(self) -> None:
        """Work until cancelled."""
        async with asyncio.TaskGroup() as group:
            for _ in range(self.size):
                group.create_task(self._worker())

    async def _worker(self) -> None:
        while True:
            while not self._queue:
                self._ready.clear()
                await self._ready.wait()
            what, work, failed = self._queue.popleft()
            self.running += 1
            try:
                await work()
            except Exception as error:  # noqa: BLE001  # one object's trouble must not be all others'
                self._failed(what, failed, error)
            finally:
                self.running -= 1
                self._settle()

    def _failed(self, what: str, failed: Failed, error: Exception) -> None:
        try:
            failed(error)
        except Exception as another:  # noqa: BLE001  # as above
            self._tell("write_failed", what=what, error=f"{in_words(error)}; then {in_words(another)}")

    def _settle(self) -> None:
        if not self.is_busy:
            self._quiet.set()
