"""Memory that nothing uses any more, given back to the system.

What comes and goes leaves holes between what stays.  The C library keeps them for later, and uses them up one page
after the other: a process whose objects take the same all the time seems to grow for hours, by as much as it once took
at its start.
"""

from __future__ import annotations

import asyncio
import ctypes
from collections.abc import Callable
from functools import cache
from typing import Final

GIVE_BACK_EVERY: Final = 60.0
"""Seconds between two times that free memory is given back; each takes a few milliseconds."""


@cache
def _trim() -> Callable[[int], int] | None:
    """The C library's function for it; None where it has none."""
    try:
        found = ctypes.CDLL(None).malloc_trim
    except (OSError, AttributeError, TypeError):
        return None
    found.argtypes, found.restype = [ctypes.c_size_t], ctypes.c_int
    return found


def give_back() -> bool:
    """Give back the memory that is free; whether there was any."""
    trim = _trim()
    return trim is not None and trim(0) == 1


async def giving_back(every: float = GIVE_BACK_EVERY) -> None:
    """Return free memory to the system every ``every`` seconds, in a thread outside the loop, until cancelled."""
    while True:
        await asyncio.sleep(every)
        await asyncio.to_thread(give_back)  # the lock of Python is free meanwhile, so that the loop goes on
