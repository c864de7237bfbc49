"""Which event loop our processes run in."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


def fastest_loop() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """What makes event loops: uvloop's, which costs less, where it is installed."""
    try:
        import uvloop
    except ImportError:
        return None
    return uvloop.new_event_loop


def run_in_fastest_loop(main: Coroutine[Any, Any, T]) -> T:
    """Run ``main`` to its end in a loop of its own, and return its result."""
    with asyncio.Runner(loop_factory=fastest_loop()) as runner:
        return runner.run(main)
