"""Comparing the state with a fresh list: what the watch has missed is named, counted and put right."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Iterable
from typing import Final, TypeVar

from stromboli.cluster.audit import Difference, differences, inconsistencies
from stromboli.cluster.events import Deleted
from stromboli.cluster.mirror import Version
from stromboli.cluster.objects import absent
from stromboli.errors import ApiError, Unreachable, in_words
from stromboli.kube.client import Client
from stromboli.kube.informer import Informer, identity
from stromboli.kube.informers import Informers
from stromboli.kube.resources import RESOURCES
from stromboli.kube.turns import Slices
from stromboli.live.scheduler.feed import Feed

T = TypeVar("T")

CATCHING_UP: Final = 100.0
"""Seconds that a watch is given to come as far as the list that it is compared with."""


class Audit:
    """Compares kind by kind.

    ``found`` counts differences since the start, ``runs`` the comparisons, ``failed`` what of them could not be done.
    """

    def __init__(self, client: Client, feed: Feed, informers: Informers) -> None:
        self._client, self._feed, self._informers = client, feed, informers
        self.found = self.runs = self.failed = 0
        self.last: list[Difference] = []

    async def run(self) -> list[Difference]:
        """Compare everything, tell and repair what differs; what fails of one kind or object is told, too."""
        kinds = self._informers.by_kind
        compared = await asyncio.gather(*(self._told(kind, self._compared(kind), []) for kind in kinds))
        self.last = [found for differing in compared for found in differing]
        objects = self._feed.mirror.objects
        self.last += await looked_through(inconsistencies(self._feed.mirror.state))
        for found in self.last:
            self._feed.tell("drift_found", kind=found.kind, name=found.key, problem=found.problem)
        self.runs += 1
        self.found += len(self.last)
        self._feed.tell("audit_done", objects=objects, differences=len(self.last))
        for found in self.last:
            await self._told(f"{found.kind} {found.key}", self._repair(found), None)
        return self.last

    async def _told(self, what: str, work: Awaitable[T], otherwise: T) -> T:
        """What ``work`` returns; an error in it is told and counted, and ``otherwise`` returned."""
        try:
            return await work
        except Exception as error:  # noqa: BLE001  # one kind's trouble must not be all others'
            self.failed += 1
            self._feed.tell("audit_failed", what=what, error=in_words(error))
            return otherwise

    async def _repair(self, found: Difference) -> None:
        """Take in what the server says of that object now."""
        served = self._informers.by_kind[found.kind].resource
        resource = RESOURCES[found.kind]._replace(api_version=served.api_version)
        try:
            self._feed.answer(await self._client.get(resource, found.name, found.namespace), force=True)
        except ApiError as error:
            if not error.not_found:
                raise
            uid = self._feed.mirror.uid_of((found.kind, found.namespace, found.name))
            self._feed.take(Deleted(found.kind, absent(found.kind, (found.namespace, found.name), uid)))

    async def _compared(self, kind: str) -> list[Difference]:
        try:
            fresh, upto = await self._listed(kind)
        except ApiError as error:
            if error.code in (403, 404):  # a kind that is not served, or not to us: there is nothing to compare
                return []
            raise
        await caught_up(self._informers.by_kind[kind], upto)
        return await looked_through(differences(kind, fresh, upto, self._feed.mirror))

    async def _listed(self, kind: str) -> tuple[dict[tuple[str, str], Version], int]:
        fresh: dict[tuple[str, str], Version] = {}
        upto = 0
        informer = self._informers.by_kind[kind]
        async for page in self._client.pages(informer.resource, informer.namespace, informer.select):
            upto = int(page.resource_version or 0)
            for meta in map(identity, page.items):
                fresh[meta.namespace, meta.name] = Version(meta.uid, int(meta.resource_version or 0))
        return fresh, upto


async def looked_through(looks: Iterable[Difference | None]) -> list[Difference]:
    """What is found by looking at objects one by one; others have their turn in between."""
    busy, found = Slices(), []
    for difference in looks:
        if difference is not None:
            found.append(difference)
        await busy.give_way()
    return found


async def caught_up(informer: Informer[object], upto: int) -> None:
    """Wait until the watch has come to version ``upto``, bookmarks included.  Raises Unreachable."""
    try:
        async with asyncio.timeout(CATCHING_UP):
            while int(informer.resource_version or 0) < upto:
                await asyncio.sleep(0.2)
    except TimeoutError:
        problem = f"it has not come as far as a list within {CATCHING_UP:g} s"
        raise Unreachable(problem, request=f"watch of {informer.resource}") from None
