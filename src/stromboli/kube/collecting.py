"""The garbage collector, kept out of the way: decoding makes many objects and next to no garbage.

A collection stops every thread for as long as it takes to look at all objects of a generation, and those of a large
cluster are many.  So what has been looked at and stays is frozen once it is much: it will go by its own count of
references, as there are no cycles among the objects of a state, nor among those of a session.

There are some among those of requests, and what is under way when all is frozen is frozen, too: it would stay for ever.
So little is left to be looked at again, and once what is frozen has grown by half all of it is looked at.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

GENERATIONS = (5_000, 3, 1_000_000)
"""Thresholds of a process that holds a cluster: the oldest generation is looked at by :func:`tidy` alone.

The first two bound how many young objects a collection may find, about 20,000, and so for how long everything stops:
15 ms at the 0.75 µs that an object has been seen to take.
"""
SETTLED = 10_000
"""Objects that have been looked at and are still there from which on they are frozen; fewer are looked at again."""
FLOOD = 30_000
"""Old objects that have not been looked at from which on they are frozen unseen.

With 20,000 young ones :func:`tidy` looks at up to 50,000: 38 ms at 0.75 µs each.
"""
GROWN = 50_000
"""Objects by which what is frozen must have grown, besides by half, before all of it is looked at."""


class _Paused:
    depth = 0
    holders = 0
    looked_at: int | None = None
    """How much was frozen when all of it had been looked at last; None before the first count, which takes a while."""


@contextmanager
def not_collecting() -> Iterator[None]:
    """No garbage collection until the last of those that asked for it is done; after that what was read has settled."""
    _Paused.depth += 1
    gc.disable()
    try:
        yield
    finally:
        _Paused.depth -= 1
        if not _Paused.depth:
            if _Paused.holders:
                gc.freeze()
            gc.enable()


@contextmanager
def holding_a_cluster() -> Iterator[None]:
    """While a process holds a cluster: what has been read, or looked at once, is frozen."""
    before = gc.get_threshold()
    _Paused.holders += 1
    gc.set_threshold(*GENERATIONS)
    gc.freeze()
    _Paused.looked_at = None
    try:
        yield
    finally:
        _Paused.holders -= 1
        if not _Paused.holders:
            gc.set_threshold(*before)
            gc.unfreeze()


def tidy() -> None:
    """Called often while no cycle is under way: look at what has come since the last time, if it is worth it.

    After a flood, what is old already is frozen unseen: looking at all of it would stop everything for too long.
    """
    if not gc.get_count()[2] or not gc.isenabled():
        return
    is_flood = len(gc.get_objects(generation=2)) > FLOOD
    gc.collect(1 if is_flood else 2)
    if is_flood or len(gc.get_objects(generation=2)) > SETTLED:
        if _Paused.looked_at is None:
            _Paused.looked_at = gc.get_freeze_count()  # asked seldom: it counts them one by one
        gc.freeze()
        if gc.get_freeze_count() > _Paused.looked_at * 3 // 2 + GROWN:
            _look_at_all()


def _look_at_all() -> None:
    """Let go of what became garbage after it was frozen; done seldom, it costs little for each object that came."""
    gc.unfreeze()
    gc.collect()
    gc.freeze()
    _Paused.looked_at = gc.get_freeze_count()
