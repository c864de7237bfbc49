"""Volumes of pods that are about to be bound: claims are written first, and waited for."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from stromboli.cluster.kinds import Object, PersistentVolume, PersistentVolumeClaim
from stromboli.cluster.rim import VolumesGiven
from stromboli.errors import ApiError
from stromboli.framework.books.plan import Bind
from stromboli.kube.resources import RESOURCES
from stromboli.live.scheduler.context import Context
from stromboli.model.objects.storage import BOUND_BY_CONTROLLER, NODE, SELECTED_NODE, VOLUME, is_bound

PAUSE: Final = 0.2
"""Seconds between two looks, at least."""

PAUSE_FOR_EACH: Final = 0.001
"""Seconds that they are apart for each bind that waits."""

CLAIM: Final = "PersistentVolumeClaim"
BOUND: Final = "Bound"
T = TypeVar("T")


@dataclass(slots=True)
class Written:
    """What a claim of ``uid`` was given: whether an answer came, and what is to be there again if it is taken back."""

    uid: str
    is_known: bool = False
    is_ours: bool = False
    """Whether the volume was not kept for the claim before."""
    before: dict[str, None] | None = None


class VolumeWriter:
    """Names the volume, or the node, that each claim gets; a controller of the cluster then binds the claim."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._written: dict[str, dict[str, Written]] = {}
        self._until: dict[str, float] = {}

    def assume(self, bind: Bind) -> None:
        """Let later cycles see what the claims get."""
        self._give(bind, bind.volumes)

    def forget(self, bind: Bind) -> None:
        """The bind has ended: what objects say counts."""
        self._give(bind, {})
        self._until.pop(bind.uid, None)
        self._written.pop(bind.uid, None)

    def _give(self, bind: Bind, volumes: Mapping[str, str]) -> None:
        if bind.volumes:
            self._context.mirror.rim.do(VolumesGiven(bind.uid, volumes))

    async def ready(self, bind: Bind) -> bool:
        """Whether all claims are bound; what is not written yet is written.

        Raises ApiError where a claim cannot get what it was to get, or does not in time; Unreachable.
        """
        if not bind.volumes:
            return True
        now = asyncio.get_running_loop().time()
        until = self._until.setdefault(bind.uid, now + bind.volume_seconds)
        waiting = [claim for claim, what in bind.volumes.items() if not await self._is_ready(bind, claim, what)]
        if waiting and now >= until:
            raise ApiError(422, "Timeout", f"claim {waiting[0]} was not bound within {bind.volume_seconds} seconds")
        return not waiting

    async def _is_ready(self, bind: Bind, key: str, what: str) -> bool:
        claim = self._context.mirror.state.storage.claim(key)
        if claim is None:
            raise ApiError(422, "NotFound", f"persistentvolumeclaim {key} is gone")
        if is_bound(claim):
            if what.startswith(VOLUME) and claim.spec.volume_name != what.removeprefix(VOLUME):
                raise ApiError(422, "Conflict", f"claim {key} is bound to {claim.spec.volume_name} instead")
            return True
        written = self._written.setdefault(bind.uid, {})
        if key not in written or not written[key].is_known:
            # noted before it is sent: without an answer it is unknown whether the write has happened
            sent = written.setdefault(key, Written(claim.metadata.uid))
            await (self._select(key, what, sent) if what.startswith(NODE) else self._reserve(claim, key, what, sent))
            sent.is_known = True
        elif what.startswith(NODE):
            _check_selected(claim, key, what.removeprefix(NODE))
        return False

    async def _select(self, key: str, what: str, sent: Written) -> None:
        """Name the node for which a volume of the claim is to be made."""
        await self._patch(CLAIM, key, {"uid": sent.uid}, _noted(SELECTED_NODE, what.removeprefix(NODE)))

    async def _reserve(self, claim: PersistentVolumeClaim, key: str, what: str, sent: Written) -> None:
        """Let a volume name the claim; one that names another claim by now stays as it is."""
        name = what.removeprefix(VOLUME)
        volume = await self._read(PersistentVolume, "PersistentVolume", name)
        if volume is None or volume.metadata.deletion_timestamp:
            raise ApiError(422, "NotFound", f"persistentvolume {name} is gone")
        reference, meta = volume.spec.claim_ref, claim.metadata
        if reference is not None and (reference.namespace, reference.name) != (meta.namespace, meta.name):
            other = f"{reference.namespace}/{reference.name}"
            raise ApiError(422, "Conflict", f"persistentvolume {name} is claimed by {other} in the meantime")
        if reference is not None and reference.uid:
            if reference.uid != meta.uid:
                raise ApiError(422, "Conflict", f"persistentvolume {name} is claimed by an earlier claim {key}")
            return
        named = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "name": meta.name, "namespace": meta.namespace}
        change: dict[str, Any] = {"spec": {"claimRef": {**named, "uid": meta.uid}}}
        sent.before = {"uid": None}
        if reference is None:  # else the volume is already kept for the claim, and stays so
            change, sent.before = {**_noted(BOUND_BY_CONTROLLER, "yes"), **change}, None
        sent.is_ours = True
        await self._patch("PersistentVolume", name, {"resourceVersion": volume.metadata.resource_version}, change)

    async def _read(self, kind: type[T], name: str, key: str) -> T | None:
        """An object as the server has it now; None where there is none."""
        try:
            found = await self._context.ask(name, key)
        except ApiError as error:
            if error.not_found:
                return None
            raise
        return found if isinstance(found, kind) else None

    async def _patch(self, kind: str, key: str, held: dict[str, str], change: dict[str, Any]) -> None:
        """Change an object while what is ``held`` of its metadata is so."""
        namespace, _, name = key.rpartition("/")
        body = {**change, "metadata": {**change.get("metadata", {}), **held}}
        self._context.feed.answer(await self._context.client.patch(RESOURCES[kind], name, namespace, body))

    async def take_back(self, bind: Bind) -> None:
        """Give back what unbound claims were given, as the pod goes elsewhere."""
        for key, sent in self._written.pop(bind.uid, {}).items():
            what = bind.volumes[key]
            undo = self._deselect(key, what, sent) if what.startswith(NODE) else self._free(what, sent)
            await self._context.until_known(undo, bind)

    def _deselect(self, key: str, what: str, sent: Written) -> Callable[[], Awaitable[None]]:
        async def undo() -> None:
            claim = await self._read(PersistentVolumeClaim, CLAIM, key)
            if claim is None or claim.metadata.uid != sent.uid or claim.spec.volume_name:
                return
            if claim.metadata.annotations.get(SELECTED_NODE) == what.removeprefix(NODE):
                await self._patch(CLAIM, key, _version(claim), _noted(SELECTED_NODE, None))

        return undo

    def _free(self, what: str, sent: Written) -> Callable[[], Awaitable[None]]:
        async def undo() -> None:
            name = what.removeprefix(VOLUME)
            volume = await self._read(PersistentVolume, "PersistentVolume", name) if sent.is_ours else None
            reference = volume.spec.claim_ref if volume is not None else None
            if volume is None or volume.status.phase == BOUND or reference is None or reference.uid != sent.uid:
                return
            notes = _noted(BOUND_BY_CONTROLLER, None) if sent.before is None else {}
            await self._patch("PersistentVolume", name, _version(volume), {**notes, "spec": {"claimRef": sent.before}})

        return undo


def _check_selected(claim: PersistentVolumeClaim, key: str, node: str) -> None:
    """Raise ApiError where a volume of the claim is no longer to be made for ``node``."""
    selected = claim.metadata.annotations.get(SELECTED_NODE)
    if selected is None:
        raise ApiError(422, "ProvisioningFailed", f"no volume could be made for claim {key}")
    if selected != node:
        raise ApiError(422, "Conflict", f"claim {key} gets its volume for node {selected} instead")


def _version(found: Object) -> dict[str, str]:
    return {"resourceVersion": found.metadata.resource_version}


def _noted(key: str, value: str | None) -> dict[str, Any]:
    return {"metadata": {"annotations": {key: value}}}
