"""ResourceClaims of pods that are about to be bound: allocation and reservation are written first."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from functools import partial
from typing import Any, Final
from weakref import WeakValueDictionary

import msgspec

from stromboli.cluster.body import part
from stromboli.cluster.objects import from_value
from stromboli.cluster.rim import ClaimsGiven
from stromboli.errors import ApiError, ManifestError
from stromboli.framework.books.plan import Bind
from stromboli.kube.resources import RESOURCES, plain
from stromboli.live.scheduler.context import Context
from stromboli.live.writing.retries import Retries
from stromboli.model import names
from stromboli.model.claims import Allocation, DeviceCondition, DeviceResult, ResourceClaim
from stromboli.model.job import Job
from stromboli.model.podgroup import UPSTREAM
from stromboli.model.status import COMPLETED_STATUS
from stromboli.model.values.times import seconds, stamp

FINALIZER: Final = "resource.kubernetes.io/delete-protection"
"""Keeps a claim from going while devices are allocated to it."""
GROUP: Final = "scheduling.k8s.io"
"""The API group of Kubernetes' own PodGroups, as claims name their users."""
TRUE: Final = "True"
"""The status of a condition that holds."""
FAILED: Final = "Failed"
"""The reason of the error that says that a driver cannot make a device ready."""
MOST_TEXT: Final = 256
"""Characters of a driver's message that are told on."""
GONE: Final = "claim {key} got deleted in the meantime"
"""What a pod is told whose claim is gone."""
_CLAIMS: Final = RESOURCES["ResourceClaim"]
_PLAIN: Final = _CLAIMS.read_as(plain)


class ClaimWriter:
    """Writes what claims get into their status, with the pod that may use them."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._written: dict[str, dict[str, str]] = {}
        """Claims that may have been written for pods, by the pod's uid and the claim's key; the uids of the claims."""
        self._since: dict[str, float] = {}
        """Since when pods, by uid, wait for drivers to make their devices ready, in seconds since 1970."""
        self._retries = Retries()
        self._turns: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    def assume(self, bind: Bind) -> None:
        """Let later cycles see what the claims have."""
        self._give(bind, bind.claims)

    def forget(self, bind: Bind) -> None:
        """The bind has ended: what objects say counts."""
        self._give(bind, {})
        self._written.pop(bind.uid, None)
        self._since.pop(bind.uid, None)

    def _give(self, bind: Bind, claims: Mapping[str, Allocation]) -> None:
        if bind.claims:
            self._context.mirror.rim.do(ClaimsGiven(bind.uid, bind.key, claims))

    async def ready(self, bind: Bind) -> bool:
        """Whether all claims have their devices, and drivers have said of them what they must; writes what is missing.

        A pod whose devices have failed waits before it gets others, the longer the more often they did.  Raises
        ApiError where a claim is gone, has got other devices or takes no more pods, where a device will not be ready,
        or is not in time; Unreachable.
        """
        if not self._retries.is_over(bind.uid, self._context.clock()):
            return False
        try:
            is_ready = await self._ready(bind)
        except ApiError as error:
            if error.reason == FAILED:
                self._retries.failed(bind.uid, self._context.clock())
            raise
        if is_ready:
            self._retries.succeeded(bind.uid)
        return is_ready

    async def _ready(self, bind: Bind) -> bool:
        if bind.uid in self._since and self._is_allocated(bind) and not self._is_prepared(bind):
            return False
        await self._write_all(bind)
        return not any(given.has_conditions for given in bind.claims.values()) or self._is_prepared(bind)

    def _is_allocated(self, bind: Bind) -> bool:
        """Whether all claims still have what the pod is to get, as far as news tell."""
        devices = self._context.mirror.state.storage.devices
        claims = ((devices.claim(key), given) for key, given in bind.claims.items())
        return all(claim is not None and _has(claim.status.allocation, given) for claim, given in claims)

    def _is_prepared(self, bind: Bind) -> bool:
        context, devices = self._context, self._context.mirror.state.storage.devices
        claims = {key: devices.claim(key) or ResourceClaim() for key in bind.claims}
        waiting = {key: claim for key, claim in claims.items() if not is_prepared(claim)}
        since = self._since.get(bind.uid, context.clock())
        if waiting and bind.uid not in self._since:
            self._since[bind.uid] = since
            text = names.BINDING_CONDITIONS.format(node=bind.node)
            context.pod_event(bind.key, bind.uid, names.EVENT_NORMAL, names.EVENT_BINDING_CONDITIONS, text)
        for key, claim in waiting.items():
            # a restarted scheduler goes on waiting, and an allocation that is written again gets no further time
            if context.clock() - min(allocated_at(claim) or since, since) >= bind.claim_seconds:
                text = f"device binding timeout: claim={key}, not ready within {bind.claim_seconds} seconds"
                raise ApiError(422, "Timeout", text)
        return not waiting

    async def _write_all(self, bind: Bind) -> None:
        """Write all claims that do not say it yet.  Raises ApiError, Unreachable."""
        for key, given in bind.claims.items():
            # noted before it is sent: without an answer it is unknown whether the write has happened, and a pod
            # without a node uses nothing, so that what an earlier scheduler wrote for it may be taken back, too
            self._written.setdefault(bind.uid, {}).setdefault(key, "")
            await self._try(bind, key, given)

    async def take_back(self, bind: Bind) -> None:
        """Give back what was written, as the pod goes elsewhere; a pod that is gone leaves it to the cluster, too."""
        for key in self._written.pop(bind.uid, {}):
            await self._context.until_known(partial(self._try, bind, key, None), bind)

    async def _try(self, bind: Bind, key: str, given: Allocation | None) -> None:
        """Write one claim, which pods that share it do one after the other: their writes would conflict."""
        turn = self._turns.setdefault(key, asyncio.Lock())
        async with turn:
            await self._write(bind, key, given)

    async def _write(self, bind: Bind, key: str, given: Allocation | None) -> None:
        """Read a claim and write what is to change; ``given`` None takes back what the pod has of it."""
        namespace, _, name = key.rpartition("/")
        try:
            body = await self._context.client.get(_PLAIN, name, namespace)
        except ApiError as error:
            if not error.not_found:
                raise
            if given is None:
                return
            raise ApiError(422, "NotFound", GONE.format(key=key)) from error
        now = stamp(self._context.clock())
        user = self._user(bind, key)
        if given is None:
            status = None if self._stays(bind, key) else released(body, user["uid"])
        else:
            self._check_same(bind, key, body["metadata"]["uid"])
            status = reserved(body, user, key, given, now)
        if status is None:
            return
        if given is not None:
            body = await self._protected(body, namespace, name)
        meta = {"uid": body["metadata"]["uid"], "resourceVersion": body["metadata"]["resourceVersion"]}
        answer = await self._context.client.patch(
            _PLAIN, name, namespace, {"metadata": meta, "status": status}, subresource="status"
        )
        self._context.feed.answer(from_value("ResourceClaim", answer))

    def _check_same(self, bind: Bind, key: str, uid: str) -> None:
        """Raise ApiError where another claim has the name by now, which may ask for something else."""
        written = self._written.setdefault(bind.uid, {})
        if written.setdefault(key, uid) not in ("", uid):
            raise ApiError(422, "NotFound", GONE.format(key=key))
        written[key] = uid

    def _shares(self, bind: Bind, key: str) -> Job | None:
        """The job whose PodGroup has a claim reserved for all of its pods, if the pod's is such a one."""
        job = self._context.mirror.state.jobs.get(bind.job)
        return job if job is not None and key in job.group.claims else None

    def _user(self, bind: Bind, key: str) -> dict[str, str]:
        """The consumer that a claim is reserved for: the pod, or the upstream PodGroup whose pods share it."""
        if (job := self._shares(bind, key)) is None:
            return {"resource": "pods", "name": bind.key.rpartition("/")[2], "uid": bind.uid}
        name = job.group.name.removesuffix(UPSTREAM)
        return {"apiGroup": GROUP, "resource": "podgroups", "name": name, "uid": job.group.uid}

    def _stays(self, bind: Bind, key: str) -> bool:
        """Whether a PodGroup's claim does, for another of its pods has a node or is about to have one; the pod is told.

        Pods that have ended keep their node, and need no devices any more.
        """
        job = self._shares(bind, key)
        others = (task for task in (job.tasks.values() if job is not None else ()) if task.uid != bind.uid)
        running = (task for task in others if task.status not in COMPLETED_STATUS)
        user = next((task.name for task in running if task.node_name or task.uid in self._written), None)
        if user is not None and self._context.mirror.state.tasks.get(bind.key) is not None:
            text = names.CLAIM_STAYS.format(claim=key, pod=user)
            self._context.pod_event(bind.key, bind.uid, names.EVENT_NORMAL, names.EVENT_CLAIM_STAYS, text)
        return user is not None

    async def _protected(self, body: dict[str, Any], namespace: str, name: str) -> dict[str, Any]:
        meta = body["metadata"]
        names = meta.get("finalizers") or []
        if FINALIZER in names:
            return body
        change = {"uid": meta["uid"], "resourceVersion": meta["resourceVersion"], "finalizers": [*names, FINALIZER]}
        return await self._context.client.patch(_PLAIN, name, namespace, {"metadata": change})


def is_prepared(claim: ResourceClaim) -> bool:
    """Whether drivers have said of all devices of a claim what they must; what says so may not have come yet.

    Raises ApiError where one says that its device will not be ready.
    """
    allocation = claim.status.allocation
    if allocation is None:
        return False
    told = {one.key: one.conditions for one in claim.status.devices}
    slow = [one for one in allocation.devices.results if one.binding_conditions]
    # each is asked, as any may have failed
    ready = [_is_ready(claim.metadata.name, one, told.get(one.key, ())) for one in slow]
    return all(ready)


def _is_ready(claim: str, one: DeviceResult, conditions: tuple[DeviceCondition, ...]) -> bool:
    true = {each.type: each for each in conditions if each.status == TRUE}
    if (why := next((true[name] for name in one.binding_failure_conditions if name in true), None)) is not None:
        text = f"claim={claim}, reason={why.reason}, message={why.message[:MOST_TEXT]!r}"
        raise ApiError(422, FAILED, f"device binding failed: {text}")
    return true.keys() >= set(one.binding_conditions)


def _has(allocation: Allocation | None, given: Allocation) -> bool:
    """Whether a claim has the devices that are given to it."""
    return allocation is not None and [one.key for one in allocation.devices.results] == [
        one.key for one in given.devices.results
    ]


def allocated_at(claim: ResourceClaim) -> float:
    """When the devices of a claim were allocated, in seconds since 1970; 0 where that is not known."""
    allocation = claim.status.allocation
    try:
        return seconds(allocation.allocation_timestamp, "") if allocation is not None else 0
    except ManifestError:
        return 0


def reserved(
    body: dict[str, Any], user: Mapping[str, str], key: str, given: Allocation, now: str
) -> dict[str, Any] | None:
    """The status of a claim that ``given`` is allocated to for its user ``now``; None where it says so already.

    Raises ApiError where the claim is going, or has got other devices meanwhile.
    """
    if part(body, "metadata", "deletionTimestamp"):
        raise ApiError(422, "Gone", GONE.format(key=key))
    allocation, users = part(body, "status", "allocation"), part(body, "status", "reservedFor") or []
    written = msgspec.to_builtins(given)
    if allocation and _devices(allocation) != _devices(written):
        raise ApiError(422, "Conflict", f"claim {key} got allocated elsewhere in the meantime")
    if allocation and any(one.get("uid") == user["uid"] for one in users):
        return None
    others = [one for one in users if one.get("uid") != user["uid"]]
    return {"allocation": allocation or {**written, "allocationTimestamp": now}, "reservedFor": [*others, user]}


def released(body: dict[str, Any], uid: str) -> dict[str, Any] | None:
    """The status without a user, and without devices if it was the last user; None if there is nothing to release."""
    users = part(body, "status", "reservedFor") or []
    others = [one for one in users if one.get("uid") != uid]
    if not part(body, "status", "allocation") or len(others) == len(users):
        return None
    return {"reservedFor": others} if others else {"reservedFor": None, "allocation": None}


def _devices(allocation: dict[str, Any]) -> list[tuple[Any, ...]]:
    results = part(allocation, "devices", "results") or []
    return [tuple(one.get(name) for name in ("request", "driver", "pool", "device", "shareID")) for one in results]
