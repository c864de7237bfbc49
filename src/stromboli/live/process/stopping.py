"""Ending in order: the wish to, and what is not waited for any longer once it is uttered."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any


class Stop:
    """A request to stop; it cannot be withdrawn."""

    def __init__(self) -> None:
        self._asked = asyncio.Event()

    def __bool__(self) -> bool:
        return self._asked.is_set()

    def ask(self) -> None:
        """Utter it."""
        self._asked.set()

    async def unless(self, work: Coroutine[Any, Any, None]) -> None:
        """Do ``work``, which may wait for a server that is not there, but only until the wish is uttered."""
        doing, stopped = asyncio.ensure_future(work), asyncio.ensure_future(self._asked.wait())
        try:
            await asyncio.wait((doing, stopped), return_when=asyncio.FIRST_COMPLETED)
            if doing.done():
                doing.result()
        finally:
            doing.cancel()
            stopped.cancel()


async def until_signal(work: Coroutine[Any, Any, None]) -> None:
    """Do ``work``; SIGINT and SIGTERM cancel it, so that it leaves in order."""
    task = asyncio.ensure_future(work)
    loop = asyncio.get_running_loop()
    signals = (signal.SIGINT, signal.SIGTERM)
    for number in signals:
        loop.add_signal_handler(number, task.cancel)
    try:
        with suppress(asyncio.CancelledError):
            await task
    finally:
        for number in signals:
            loop.remove_signal_handler(number)
