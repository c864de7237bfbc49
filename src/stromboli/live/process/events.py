"""Telling observers what happens between cycles."""

from __future__ import annotations

import asyncio
from typing import Final

from stromboli.metrics.logs import LogObserver
from stromboli.narration.observe import Observer, Teller, teller

FLUSH_EVERY: Final = 5.0
"""Seconds between two flushes of the log by default."""


class Telling:
    """Tells one observer; which keys it wants is asked again after :meth:`renew`, as a session does."""

    def __init__(self, observer: Observer) -> None:
        self.observer = observer
        self._tellers: dict[str, Teller | None] = {}

    def renew(self) -> None:
        """Ask again which keys are wanted."""
        self._tellers.clear()

    def __call__(self, key: str, **fields: object) -> None:
        """Tell ``key`` of the catalogue, if the observer wants it."""
        if key not in self._tellers:
            self._tellers[key] = teller(self.observer, key)
        if say := self._tellers[key]:
            say(**fields)


async def flush(log: LogObserver, every: float) -> None:
    """Flush the log every so many seconds, for ever."""
    while True:
        await asyncio.sleep(every or FLUSH_EVERY)
        log.flush()
