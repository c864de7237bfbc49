"""When the garbage collector works: next to nothing of what simulations and records make is garbage for it."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

SELDOM: Final = (50_000, 20, 10)
"""Thresholds of the three generations: new objects, and collections of the generation before."""


@contextmanager
def no_collecting() -> Iterator[None]:
    """No garbage collection meanwhile; for what ends soon."""
    collects = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collects:
            gc.enable()


@contextmanager
def seldom_collecting() -> Iterator[None]:
    """A collection only after many new objects meanwhile; for what may take hours.

    With the usual thresholds it takes an eighteenth of a simulation and a fifth of the reading of a record.
    """
    before = gc.get_threshold()
    gc.set_threshold(*SELDOM)
    try:
        yield
    finally:
        gc.set_threshold(*before)
