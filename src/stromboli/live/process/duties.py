"""Periodic duties outside the cycles: one that fails is reported, and tried again at its next turn."""

from __future__ import annotations

import asyncio
import traceback
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Final

from stromboli.errors import in_words
from stromboli.live.process.events import Telling

TRACED: Final = 64
"""Kinds of failures whose traceback is told: a duty, a type of error and the line that raised it."""


class Duties:
    """Does things from time to time, once ``ready`` is set.  ``failures`` counts by duty what has failed."""

    def __init__(self, ready: asyncio.Event, tell: Telling) -> None:
        self.failures: Counter[str] = Counter()
        self._ready, self._tell = ready, tell
        self._traced: set[tuple[str, str, str, int]] = set()

    async def every(self, seconds: float, duty: str, work: Callable[[], Awaitable[object] | None]) -> None:
        """Do ``work`` so many seconds after its last end, until cancelled; with 0 never."""
        await self._ready.wait()
        while seconds:
            await asyncio.sleep(seconds)
            await self.once(duty, work)

    async def once(self, duty: str, work: Callable[[], Awaitable[object] | None]) -> None:
        """Do ``work`` now; an error of it is told and counted."""
        try:
            if (waiting := work()) is not None:
                await waiting
        except Exception as error:  # noqa: BLE001  # scheduling does not depend on it
            self._failed(duty, error)

    def _failed(self, duty: str, error: Exception) -> None:
        self.failures[duty] += 1
        trace = "\n" + "".join(traceback.format_exception(error)).rstrip() if self._is_new(duty, error) else ""
        self._tell("duty_failed", duty=duty, times=self.failures[duty], error=in_words(error), trace=trace)

    def _is_new(self, duty: str, error: Exception) -> bool:
        """Whether the traceback of this kind of failure is still to be told."""
        place = traceback.extract_tb(error.__traceback__)[-1]
        kind = (duty, type(error).__name__, place.filename, place.lineno or 0)
        if kind in self._traced or len(self._traced) >= TRACED:
            return False
        self._traced.add(kind)
        return True
