"""Locks of nodes: annotations that keep a second pod from a node until the device plugin has served the first one.

The protocol is that of HAMi's device plugins: the scheduler writes the time under the lock's name before it binds a
pod, the device plugin removes it once the pod has its devices, and a lock older than five minutes counts no more.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from stromboli.cluster.kinds import Node
from stromboli.errors import ApiError
from stromboli.framework.books.plan import Bind
from stromboli.kube.resources import NODES
from stromboli.live.scheduler.context import Context
from stromboli.model.values.times import stamp
from stromboli.plugins.deviceshare.locks import LOCKED, is_fresh


@dataclass(slots=True)
class _Written:
    """The node, the times by lock, and whether the server's answer is known."""

    node: str
    times: dict[str, str]
    is_known: bool = False


class NodeLocks:
    """Takes the locks that a bind asks for, and gives them back where the pod is not bound."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._held: dict[str, _Written] = {}
        """What was written for each pod, by uid."""

    async def take(self, bind: Bind) -> None:
        """Lock the node, unless it is so for this pod, and unlock another one that was locked for it.

        Raises ApiError where another pod's lock is younger than five minutes, or the node is gone; Unreachable.
        """
        held = self._held.get(bind.uid)
        if held is not None and held.node != bind.node:
            await self._remove(held)
            del self._held[bind.uid]
            held = None
        if not bind.locks or (held is not None and held.is_known):
            return
        found = await self._read(bind.node)
        if found is None:
            raise ApiError(422, "NotFound", f"node {bind.node} is gone")
        now, notes = self._context.clock(), found.metadata.annotations
        times = held.times if held is not None else {}
        if any(is_fresh(notes.get(lock, ""), now) and notes[lock] != times.get(lock) for lock in bind.locks):
            raise ApiError(422, "Locked", LOCKED.format(node=bind.node))
        # noted before it is sent: without an answer it is unknown whether the write has happened
        held = self._held[bind.uid] = _Written(bind.node, dict.fromkeys(bind.locks, stamp(now)))
        await self._note(found, held.times)
        held.is_known = True

    def keep(self, bind: Bind) -> None:
        """The pod is bound: its locks are the device plugin's to remove."""
        self._held.pop(bind.uid, None)

    async def give_back(self, bind: Bind) -> None:
        """Remove the locks that were written for a pod which is not bound, unless they have been renewed."""
        if (held := self._held.pop(bind.uid, None)) is not None:
            await self._context.until_known(partial(self._remove, held), bind)

    async def _remove(self, held: _Written) -> None:
        found = await self._read(held.node)
        notes = found.metadata.annotations if found is not None else {}
        mine = [lock for lock, time in held.times.items() if notes.get(lock) == time]
        if found is not None and mine:
            await self._note(found, dict.fromkeys(mine))

    async def _read(self, name: str) -> Node | None:
        """The node as the server has it now."""
        try:
            found = await self._context.client.get(NODES, name)
        except ApiError as error:
            if error.not_found:
                return None
            raise
        return found if isinstance(found, Node) else None

    async def _note(self, found: Node, notes: Mapping[str, str | None]) -> None:
        """Change annotations of a node that has not changed since it was read."""
        meta = found.metadata
        held: dict[str, Any] = {"uid": meta.uid, "resourceVersion": meta.resource_version, "annotations": dict(notes)}
        answer = await self._context.client.patch(NODES, meta.name, "", {"metadata": held})
        self._context.feed.answer(answer)
