"""Volumes of pods that are about to be bound: claims are written first, and waited for."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, Final

from stromboli.cluster.kinds import PersistentVolumeClaim
from stromboli.cluster.rim import VolumesGiven
from stromboli.errors import ApiError, StromboliError
from stromboli.framework.books.plan import Bind
from stromboli.kube.resources import RESOURCES
from stromboli.live.scheduler.context import Context
from stromboli.model.objects.storage import BOUND_BY_CONTROLLER, NODE, SELECTED_NODE, VOLUME, is_bound

LONGEST_WAIT: Final = 600.0
"""Seconds in which a claim must be bound; Kubernetes' default."""

PAUSE: Final = 0.2
"""Seconds between two looks."""


class VolumeWriter:
    """Names the volume, or the node, that each claim gets; a controller of the cluster then binds the claim."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._written: dict[str, dict[str, dict[str, Any]]] = {}
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
        until = self._until.setdefault(bind.uid, now + LONGEST_WAIT)
        waiting = [claim for claim, what in bind.volumes.items() if not await self._is_ready(bind, claim, what)]
        if waiting and now >= until:
            raise ApiError(422, "Timeout", f"claim {waiting[0]} was not bound within {LONGEST_WAIT:.0f} seconds")
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
        if key not in written:
            written[key] = await self._write(claim, key, what)
        elif what.startswith(NODE) and SELECTED_NODE not in claim.metadata.annotations:
            raise ApiError(422, "ProvisioningFailed", f"no volume could be made for claim {key}")
        return False

    async def _write(self, claim: PersistentVolumeClaim, key: str, what: str) -> dict[str, Any]:
        """Write what a claim gets; returns the patch that takes it back."""
        if what.startswith(NODE):
            await self._patch("PersistentVolumeClaim", key, _noted(SELECTED_NODE, what.removeprefix(NODE)))
            return _noted(SELECTED_NODE, None)
        name = what.removeprefix(VOLUME)
        volume = self._context.mirror.state.storage.volume(name)
        if volume is None:
            raise ApiError(422, "NotFound", f"persistentvolume {name} is gone")
        if volume.spec.claim_ref is not None and volume.spec.claim_ref.uid == claim.metadata.uid:
            return {}
        meta = claim.metadata
        reference = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "name": meta.name, "uid": meta.uid}
        body = _noted(BOUND_BY_CONTROLLER, "yes") | {"spec": {"claimRef": {**reference, "namespace": meta.namespace}}}
        body["metadata"]["resourceVersion"] = volume.metadata.resource_version
        await self._patch("PersistentVolume", name, body)
        return _noted(BOUND_BY_CONTROLLER, None) | {"spec": {"claimRef": None}}

    async def _patch(self, kind: str, key: str, body: dict[str, Any]) -> None:
        namespace, _, name = key.rpartition("/")
        self._context.feed.answer(await self._context.client.patch(RESOURCES[kind], name, namespace, body))

    async def take_back(self, bind: Bind) -> None:
        """Give back what unbound claims were given, as the pod goes elsewhere; what fails stays for the next bind."""
        for key, body in self._written.pop(bind.uid, {}).items():
            claim = self._context.mirror.state.storage.claim(key)
            if not body or claim is None or is_bound(claim):
                continue
            what = bind.volumes[key]
            kind = "PersistentVolume" if what.startswith(VOLUME) else "PersistentVolumeClaim"
            try:
                await self._patch(kind, what.removeprefix(VOLUME) if what.startswith(VOLUME) else key, body)
            except StromboliError as error:
                self._context.tell("bind_retried", task=bind.key, node=bind.node, error=error)


def _noted(key: str, value: str | None) -> dict[str, Any]:
    return {"metadata": {"annotations": {key: value}}}
