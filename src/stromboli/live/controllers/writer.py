"""Carrying out what reconcilers ask for, against an API server."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from types import MappingProxyType
from typing import Any, Final

from stromboli.api.fields import Resource as Object
from stromboli.api.kinds import (
    COMMANDS,
    CRON_JOBS,
    HYPER_NODES,
    JOB_FLOWS,
    JOB_TEMPLATES,
    JOBS,
    NODE_SHARDS,
    POD_GROUPS,
    PODS,
    QUEUES,
)  # fmt: skip
from stromboli.controllers.changes import (
    Change,
    Create,
    Delete,
    Drop,
    Keep,
    KillPod,
    Patch,
    Query,
    Read,
    Target,
)  # fmt: skip
from stromboli.controllers.manager import Manager
from stromboli.controllers.pods import PodView
from stromboli.controllers.work import About
from stromboli.controllers.world import Key, key_of
from stromboli.errors import ApiError, StromboliError
from stromboli.kube.client import Client
from stromboli.kube.informer import Informer
from stromboli.kube.resources import Resource, nothing
from stromboli.live.controllers.keeper import Keeper
from stromboli.live.controllers.owner_reading import read_owner
from stromboli.model.names import CONTROLLER_OUT_OF_SYNC

WRITES_AT_ONCE: Final = 32
"""Requests that are under way at once, but for those that make and end pods."""
PODS_AT_ONCE: Final = 48
"""Of those: pods come and go in numbers, and nothing else has to wait for that."""
MADE_AT_ONCE: Final = 4
"""Objects of which a part has to be made, such as keys, that are under way at once."""


class Writer:
    """Carries out changes, and lets the ``manager`` know at once what has become of each.

    ``resources`` are those that may be written, by the names that changes use; ``ask`` says whether an address answers
    well.  ``informers`` follow the resources, by what these are called; they are asked about each answer.
    """

    def __init__(
        self, client: Client, manager: Manager, resources: Mapping[str, Resource[Any]], clock: Callable[[], float],
        ask: Callable[[Target], Awaitable[bool]], informers: Mapping[str, Informer[Any]] = MappingProxyType({}),
    ) -> None:  # fmt: skip
        self._client, self._manager, self._resources, self._clock, self._ask = client, manager, resources, clock, ask
        self._informers = informers
        self._writes, self._pods = asyncio.Semaphore(WRITES_AT_ONCE), asyncio.Semaphore(PODS_AT_ONCE)
        self._made = asyncio.Semaphore(MADE_AT_ONCE)
        self._unsure: set[str] = set()
        keeper = Keeper(client, manager.world.kept, clock)
        self._doing: dict[type[Change], Callable[[Any], Awaitable[None]]] = {
            Create: self._create,
            Patch: self._patch,
            Delete: self._delete,
            Keep: keeper.keep,
            Drop: keeper.drop,
            KillPod: self._kill,
            Read: self._read,
        }

    async def carry_out(self, change: Change) -> None:
        """Do one change; raises what keeps it from being done."""
        if isinstance(change, Query):  # pods that don't answer must not keep writes waiting
            await self._query(change)
            return
        async with self._turn(change):
            await self._doing[type(change)](change)

    def _turn(self, change: Change) -> asyncio.Semaphore:
        """What a change waits for: others must wait neither for what takes long to make, as keys do, nor for pods."""
        if isinstance(change, Keep) and change.wanted.maker and not change.known:
            return self._made
        is_pod = isinstance(change, KillPod) or (isinstance(change, Create) and change.resource == PODS)
        return self._pods if is_pod else self._writes

    async def _create(self, change: Create) -> None:
        try:
            found = await self._client.create(self._resources[change.resource], change.body, change.namespace)
        except ApiError as error:
            if error.reason != "AlreadyExists":
                raise
            return
        self._take(change.resource, found)

    async def _read(self, change: Read) -> None:
        body, why = await read_owner(self._client, change)
        self._manager.world.readings.note(change, body, why, self._clock())

    async def _query(self, change: Query) -> None:
        answers = await asyncio.gather(*map(self._ask, change.targets))
        for target, well in zip(change.targets, answers, strict=True):
            self._manager.job_flows.answers.note(target, well, self._clock())

    async def _patch(self, change: Patch) -> None:
        below = "status" if change.status else ""
        resource = self._resources[change.resource]
        found = await self._client.patch(
            resource, change.name, change.namespace, change.body, subresource=below, again=True
        )
        self._take(change.resource, found)

    async def _delete(self, change: Delete) -> None:
        if change.resource == COMMANDS:
            await self._delete_command(change)
            return
        propagation = "Foreground" if change.foreground else ""
        resource = self._resources[change.resource]
        try:
            await self._client.delete(resource, change.name, change.namespace, uid=change.uid, propagation=propagation)
        except ApiError as error:
            if not error.not_found:
                raise
        if not change.foreground:
            self._manager.deleted(change.resource, (change.namespace, change.name), change.uid)

    async def _delete_command(self, change: Delete) -> None:
        """Delete a command in order to run it.

        A command that is already gone was run by another replica, unless an earlier attempt of ours may have deleted
        it.
        """
        try:
            commands = self._resources[COMMANDS]  # one attempt: after a second one "gone" would say nothing
            await self._client.delete(commands, change.name, change.namespace, uid=change.uid, patient=False)
        except StromboliError as error:
            if not isinstance(error, ApiError) or not error.not_found:
                self._unsure.add(change.uid)
                raise
            if change.uid not in self._unsure:
                self._manager.commands.lost((change.namespace, change.name))
        self._unsure.discard(change.uid)

    async def _kill(self, change: KillPod) -> None:
        """Mark a pod as ours to end, so that no policy takes it for an accident, then end it."""
        pods = self._resources[PODS]
        mark = {"metadata": {"uid": change.uid, "annotations": {CONTROLLER_OUT_OF_SYNC: "true"}}}
        try:
            await self._client.patch(pods.read_as(nothing), change.name, change.namespace, mark, again=True)
            await self._client.delete(pods, change.name, change.namespace, uid=change.uid)
        except ApiError as error:
            if not error.not_found:
                raise
        self._manager.world.pods.ending((change.namespace, change.name))

    def _take(self, resource: str, found: Any) -> None:
        """Let the controllers see the answer to a write, as if it had been watched, unless it is gone already."""
        manager, informer = self._manager, self._informers.get(str(self._resources[resource]))
        if informer is not None and not informer.answered(*_version_of(found)):
            return
        seen: dict[str, Callable[[Any], None]] = {
            JOBS: manager.seen_job,
            POD_GROUPS: manager.seen_pod_group,
            QUEUES: manager.seen_queue,
            HYPER_NODES: manager.topology.seen,
            NODE_SHARDS: manager.sharding.seen_shard,
            CRON_JOBS: partial(manager.seen, About.cron_job, manager.world.cron_jobs),
            JOB_FLOWS: partial(manager.seen, About.job_flow, manager.world.job_flows),
            JOB_TEMPLATES: manager.seen_job_template,
            PODS: manager.seen_pod,
        }
        if resource in seen:
            seen[resource](found)


def _version_of(found: PodView | Object) -> tuple[Key, str, str]:
    """The key of an object, its uid, and in which version it is."""
    if isinstance(found, PodView):
        return found.key, found.uid, found.resource_version
    return key_of(found), found.metadata.uid, found.metadata.resource_version
