"""What rules of admission look up, as the webhook server knows it: queues, and annotations of namespaces."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Iterable, Mapping
from typing import Any, Final

import msgspec

from stromboli.api.kinds import JOBS, KINDS, NAMESPACES, POD_GROUPS, QUEUES
from stromboli.crds.admission.paths import Path
from stromboli.crds.admission.world import KnownQueue, Object, Objects
from stromboli.errors import StromboliError
from stromboli.kube.client import Client
from stromboli.kube.informer import Informer
from stromboli.kube.informers import Informers
from stromboli.kube.resources import Raw, Resource, plain
from stromboli.live.process.events import Telling

LOOKS_AT_QUEUES: Final = frozenset({JOBS, POD_GROUPS, QUEUES})
"""Resources whose rules depend on queues."""

PATIENCE: Final = 5.0
"""Seconds that a fresh look may take: API servers wait for ten."""

REST: Final = 0.1
"""Seconds from the beginning of one fresh look to that of the next, at least: refusals must not become requests."""


class _Metadata(msgspec.Struct):
    name: str = ""
    annotations: dict[str, str] | None = None


class _Namespace(msgspec.Struct):
    metadata: _Metadata = msgspec.field(default_factory=_Metadata)


_decode_namespace: Final = msgspec.json.Decoder(_Namespace).decode


def _queue(raw: Raw) -> KnownQueue:
    return KnownQueue(plain(raw))


def _namespace(raw: Raw) -> Object:
    found = _decode_namespace(raw).metadata
    return {"metadata": {"name": found.name, "annotations": found.annotations or {}}}


_ROW: Final = KINDS["Queue"]
_QUEUES: Final = Resource(_ROW.api_version, _ROW.plural, _ROW.kind, _ROW.namespaced, _queue)
_NAMESPACES: Final = Resource("v1", "namespaces", "Namespace", False, _namespace)


class Sight:
    """Follows queues, and namespaces if a path needs them; a :class:`~stromboli.crds.admission.World`.

    What is followed lags behind the API server by a moment.  So a refusal that depends on queues is made sure of by
    :meth:`fresh`, and a namespace that is not known yet is asked for by :meth:`met`.
    """

    def __init__(self, client: Client, paths: Iterable[Path], informers: Informers, tell: Telling) -> None:
        self._client, self._tell = client, tell
        self._queues = informers.add(Informer[KnownQueue](client, _QUEUES, troubled=self._troubled))
        self._namespaces: Informer[Object] | None = None
        if any(path.is_mutating and path.resource == POD_GROUPS for path in paths):
            self._namespaces = informers.add(Informer[Object](client, _NAMESPACES, troubled=self._troubled))
        self._looking: asyncio.Task[Objects] | None = None
        self._next: asyncio.Task[Objects] | None = None
        self._began = -math.inf

    def _troubled(self, error: Exception) -> None:
        self._tell("following_trouble", kind="queues and namespaces", error=error)

    def get(self, resource: str, name: str, namespace: str = "") -> Object | None:
        """The object of that name, or None."""
        if resource == QUEUES:
            return self._queues.get(name)
        return self._namespaces.get(name) if self._namespaces is not None and resource == NAMESPACES else None

    def list(self, resource: str) -> Iterable[Object]:
        """All objects of a resource."""
        return self._queues.objects() if resource == QUEUES else ()

    async def met(self, namespace: str) -> Mapping[str, Iterable[Object]]:
        """The namespace, asked for if it is not known here; nothing where it cannot be had."""
        if self._namespaces is None or not namespace or self._namespaces.get(namespace) is not None:
            return {}
        try:
            async with asyncio.timeout(PATIENCE):
                return {NAMESPACES: [await self._client.get(_NAMESPACES, namespace)]}
        except (StromboliError, TimeoutError):
            return {}

    async def fresh(self) -> Objects | None:
        """All queues, as they are after now; None where they cannot be had in time.

        Callers that arrive during a read, or soon after one, share the next read: there is one at a time, and at most
        one in :data:`REST`.
        """
        if self._next is None:
            self._next = asyncio.create_task(self._after(self._looking))
        waited = self._next
        try:
            async with asyncio.timeout(PATIENCE):
                return await asyncio.shield(waited)
        except (StromboliError, TimeoutError):
            return None

    async def _after(self, before: asyncio.Task[Objects] | None) -> Objects:
        if before is not None:
            await asyncio.wait({before})
        clock = asyncio.get_running_loop().time
        await asyncio.sleep(self._began + REST - clock())
        self._looking, self._next, self._began = self._next, None, clock()
        found: list[Any] = await self._client.list_all(_QUEUES)
        return Objects({QUEUES: found})


class Together:
    """A world of two: what the first does not have, the second may."""

    def __init__(self, first: Sight, second: Mapping[str, Iterable[Object]]) -> None:
        self._first, self._second = first, Objects(second)

    def get(self, resource: str, name: str, namespace: str = "") -> Object | None:
        """The object of that name, or None."""
        return self._first.get(resource, name, namespace) or self._second.get(resource, name, namespace)

    def list(self, resource: str) -> Iterable[Object]:
        """All objects of a resource, of the first world."""
        return self._first.list(resource)
