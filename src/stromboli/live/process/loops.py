"""Which event loop our processes run in."""

from __future__ import annotations

import asyncio
from collections.abc import Callable


def fastest_loop() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """What makes event loops: uvloop's, which costs less, where it is installed."""
    try:
        import uvloop
    except ImportError:
        return None
    return uvloop.new_event_loop
