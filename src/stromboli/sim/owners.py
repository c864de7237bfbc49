"""Owners of pods in a world: they recreate evicted pods, and clear away what is done."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Final

from stromboli.cluster.body import Body, meta, part
from stromboli.cluster.events import Added, Deleted
from stromboli.errors import ApiError
from stromboli.model.names import GROUP_NAME
from stromboli.sim.world import SimChange, SimWorld, key_of

AT_ONCE: Final = "ReplicaSet"
"""The kind of owner that replaces a pod as soon as it is told to go; others wait until it is gone."""

_SERVERS: Final = ("uid", "resourceVersion", "creationTimestamp")
"""Metadata that each pod gets for itself."""


class Owners:
    """Recreate every pod with a controller that goes before it has ended, ``delay`` seconds later.

    A ReplicaSet's pod comes back under another name as soon as it is told to go, another owner's under its own once it
    is gone.  When all pods of a PodGroup have succeeded it goes, and they with it.
    """

    def __init__(self, world: SimWorld, delay: float = 1.0) -> None:
        self._world, self._delay = world, delay
        self._made: dict[str, Body] = {}
        self._numbers: dict[str, int] = {}
        world.follow(self._hear)
        for change in world.listed():
            self._hear(change)

    def _hear(self, change: SimChange) -> None:
        if change.kind != "Pod":
            return
        pod, uid = change.body, meta(change.body)["uid"]
        if change.how is Added and owner_of(pod):
            self._made[uid] = pod
        if part(pod, "status", "phase") == "Succeeded":
            self._made.pop(uid, None)
            self._world.timeline.after(0, partial(self._clear, group_of(pod)))
        elif change.how is Deleted or ("deletionTimestamp" in meta(pod) and owner_of(pod) == AT_ONCE):
            self._replace(uid)

    def _replace(self, uid: str) -> None:
        if (made := self._made.pop(uid, None)) is not None:
            self._world.timeline.after(self._delay, partial(self._make, made))

    def _make(self, old: Body) -> None:
        """Recreate a pod as it was made first, unless its PodGroup has gone meanwhile."""
        group = group_of(old)
        if group and self._world.get("PodGroup", group) is None:
            return
        metadata = {field: value for field, value in meta(old).items() if field not in _SERVERS}
        if owner_of(old) == AT_ONCE:
            metadata["name"] = self._next(metadata.setdefault("generateName", f"{metadata['name']}-"))
        spec = {field: value for field, value in old["spec"].items() if field != "nodeName"}
        try:
            self._world.create({**old, "metadata": metadata, "spec": spec, "status": {"phase": "Pending"}})
        except ApiError:  # another pod of that name exists
            return

    def _next(self, prefix: str) -> str:
        self._numbers[prefix] = number = self._numbers.get(prefix, 0) + 1
        return f"{prefix}r{number}"

    def _clear(self, group: str) -> None:
        """Clear a PodGroup away whose pods have all succeeded."""
        pods = list(self._of(group))
        if self._world.get("PodGroup", group) is None or any(
            part(pod, "status", "phase") != "Succeeded" for pod in pods
        ):
            return
        self._world.remove("PodGroup", group)
        for pod in pods:
            self._world.remove("Pod", key_of(pod))

    def _of(self, group: str) -> Iterator[Body]:
        return (pod for pod in self._world.all("Pod") if group_of(pod) == group)


def owner_of(pod: Body) -> str:
    """The kind of the pod's controller; empty for a pod on its own."""
    owners = meta(pod).get("ownerReferences") or ()
    return next((str(owner["kind"]) for owner in owners if owner.get("controller")), "")


def group_of(pod: Body) -> str:
    """The key of the pod's PodGroup; empty for a pod without one."""
    name = (meta(pod).get("annotations") or {}).get(GROUP_NAME)
    return f"{meta(pod)['namespace']}/{name}" if name else ""
