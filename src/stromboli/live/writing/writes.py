"""Statuses on their way to the cluster: for each object the newest word counts, and it is said until it is heard."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Hashable
from functools import partial
from typing import Generic, NamedTuple, TypeVar

from stromboli.errors import ApiError, StromboliError, in_words
from stromboli.live.scheduler.context import HOPELESS, Attempts, Context
from stromboli.live.writing.pool import Pool

Content = TypeVar("Content", bound=Hashable)


class Wanted(NamedTuple, Generic[Content]):
    """What is to stand in the cluster: ``content`` compares, ``send`` writes it."""

    content: Content
    send: Callable[[], Awaitable[None]]


class Writes:
    """Writes to many objects, one at a time for each, under a key that names it (``PodGroup ns/name``).

    A word that waits is replaced by a newer one; one that is just being said is not said again.  Gone objects and what
    the server refuses for good (the codes ``hopeless``) are given up; ``given_up`` is called with the key then.
    A word that is wanted ``within`` some seconds is put off for so long, in case a newer one makes it needless.
    """

    def __init__(
        self,
        context: Context,
        size: int,
        given_up: Callable[[str], Awaitable[None]],
        hopeless: frozenset[int] = HOPELESS,
    ) -> None:
        self._context, self._given_up, self._hopeless = context, given_up, hopeless
        self.pool = Pool(size, context.tell)
        self._next: dict[str, Wanted[Hashable]] = {}
        self._saying: dict[str, Wanted[Hashable]] = {}
        self._later: dict[str, asyncio.TimerHandle] = {}

    def want(self, key: str, content: Hashable, send: Callable[[], Awaitable[None]], within: float = 0.0) -> None:
        """Let ``content`` stand in the object ``key``: at once, or in so many seconds if nothing newer comes before."""
        saying = self._saying.get(key)
        waits = self._later.pop(key, None)
        if saying is not None and saying.content == content:
            self._next.pop(key, None)
            if waits is not None:
                waits.cancel()
            return
        has_turn = key in self._next and waits is None
        self._next[key] = Wanted(content, send)
        if within and not has_turn:
            self._later[key] = waits or asyncio.get_running_loop().call_later(within, self._due, key)
            return
        if waits is not None:
            waits.cancel()
        if not has_turn and saying is None:
            self._put(key)

    def hasten(self) -> None:
        """Write now what may wait: no newer word will come."""
        for key, timer in list(self._later.items()):
            timer.cancel()
            self._due(key)

    def _due(self, key: str) -> None:
        """Nothing newer has come that would have been written at once."""
        del self._later[key]
        self._put(key)

    def _put(self, key: str) -> None:
        self.pool.put(key, partial(self._say, key), partial(self._broken, key))

    def _broken(self, key: str, error: Exception) -> None:
        """A write failed unexpectedly; a newer one is tried."""
        self._context.tell("write_failed", what=key, error=in_words(error))
        if key in self._next:
            self._put(key)

    async def _say(self, key: str) -> None:
        """Say what is wanted until nothing newer is; only one at a time says something of an object."""
        while key not in self._later and key not in self._saying and (wanted := self._next.pop(key, None)) is not None:
            self._saying[key] = wanted
            try:
                await self._say_until_heard(key, wanted)
            finally:
                del self._saying[key]

    async def _say_until_heard(self, key: str, wanted: Wanted[Hashable]) -> None:
        attempts = Attempts(self._hopeless)
        while self._context.may_write() and (key not in self._next or key in self._later):
            try:
                await wanted.send()
                return
            except StromboliError as error:
                if is_absent(error):
                    return
                if attempts.are_over(error):
                    self._context.tell("write_failed", what=key, error=error)
                    await self._given_up(key)
                    return
                self._context.tell("write_retried", what=key, error=error)
                await self._context.pause(attempts.made, error)


def is_absent(error: StromboliError) -> bool:
    """Whether the object that was to be written is gone."""
    return isinstance(error, ApiError) and error.not_found
