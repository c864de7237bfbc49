"""The objects that job plugins want, on an API server: made, read again, repaired, deleted."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

import msgspec

from stromboli.controllers.changes import Drop, Keep
from stromboli.controllers.jobs.kept import Kept, KeptObjects, is_of, repair
from stromboli.errors import ApiError
from stromboli.job_plugins.wanted import SORTS, SSH_KEYS
from stromboli.kube.client import Client
from stromboli.kube.resources import Resource
from stromboli.live.controllers.ssh_keys import completed_keys

Object = dict[str, Any]

RESOURCES: Final[Mapping[str, Resource[Object]]] = {
    name: Resource(sort.api_version, name, sort.kind, True, msgspec.json.Decoder(Object).decode)
    for name, sort in SORTS.items()
}
MAKERS: Final[Mapping[str, Callable[[Mapping[str, str]], dict[str, str]]]] = {SSH_KEYS: completed_keys}
"""What adds to an object that does not follow from its job, given what it holds already."""
MAKERS_AT_ONCE: Final = 1
"""Threads in which makers run: a key takes tens of milliseconds of CPU, which the event loop needs for others."""


class Keeper:
    """Does what :class:`~stromboli.controllers.changes.Keep` and ``Drop`` ask for; ``kept`` learns what was seen."""

    def __init__(self, client: Client, kept: KeptObjects, clock: Callable[[], float]) -> None:
        self._client, self._kept, self._clock = client, kept, clock
        self._threads = ThreadPoolExecutor(MAKERS_AT_ONCE, thread_name_prefix="keys")

    async def keep(self, change: Keep) -> None:
        """Make an object, or what it says, as wanted.  Raises ApiError, Unreachable and ObjectInTheWay."""
        name = change.wanted.name
        reads_first = change.known or bool(change.wanted.maker)
        found = await self._get(change.resource, change.namespace, name) if reads_first else None
        if found is None:
            found = await self._create(change)
        else:
            found = await self._repaired(change, found)
        uid = found["metadata"]["uid"] if is_of(found, change.owner_uid) else ""
        kept = Kept(change.wanted, uid, found["metadata"]["resourceVersion"], self._clock())
        self._kept.note(change.owner_uid, kept)

    async def _create(self, change: Keep) -> Object:
        body = change.wanted.manifest(change.namespace, change.owner, await self._made(change, {}))
        try:
            return await self._client.create(RESOURCES[change.resource], body, change.namespace)
        except ApiError as error:
            if error.reason != "AlreadyExists":
                raise
            found = await self._get(change.resource, change.namespace, change.wanted.name)
            if found is None:
                raise
            return await self._repaired(change, found)

    async def _repaired(self, change: Keep, found: Object) -> Object:
        """An object that is there, as it is wanted."""
        metadata = found["metadata"]
        kept = self._kept.of(change.owner_uid).get((change.resource, change.wanted.name))
        if kept is not None and (kept.wanted, kept.version) == (change.wanted, metadata["resourceVersion"]):
            return found
        patch = repair(change, found, await self._made(change, found.get(change.wanted.sort.part) or {}), kept)
        if not patch:
            return found
        unchanged = {"resourceVersion": metadata["resourceVersion"], "uid": metadata["uid"]}
        owned: Any = patch.get("metadata", {})
        body = {**patch, "metadata": {**owned, **unchanged}}
        return await self._client.patch(
            RESOURCES[change.resource], change.wanted.name, change.namespace, body, again=True
        )

    async def _made(self, change: Keep, there: Any) -> Mapping[str, str]:
        """What the object's maker adds to what is ``there``."""
        if not change.wanted.maker:
            return {}
        return await asyncio.get_running_loop().run_in_executor(self._threads, MAKERS[change.wanted.maker], there)

    async def drop(self, change: Drop) -> None:
        """Delete an object that is the job's; raises ApiError and Unreachable."""
        name = (change.resource, change.name)
        kept = self._kept.of(change.owner_uid).get(name)
        uid = await self._uid(change) if kept is None else kept.uid
        if uid:
            try:
                await self._client.delete(RESOURCES[change.resource], change.name, change.namespace, uid=uid)
            except ApiError as error:
                if not error.not_found:
                    self._kept.drop(change.owner_uid, name)  # it may be another one of that name by now
                    raise
        self._kept.drop(change.owner_uid, name)

    async def _uid(self, change: Drop) -> str:
        found = await self._get(change.resource, change.namespace, change.name)
        return found["metadata"]["uid"] if found is not None and is_of(found, change.owner_uid) else ""

    async def _get(self, resource: str, namespace: str, name: str) -> Object | None:
        try:
            return await self._client.get(RESOURCES[resource], name, namespace)
        except ApiError as error:
            if error.not_found:
                return None
            raise
