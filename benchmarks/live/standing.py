"""A large cluster on the embedded API server: many nodes, pods that run on them, pods that come and go.

Objects are put straight into the server's store, as copies of one that went through the API; what is measured talks to
the server as to any other.  Pods that are bound run at once.
"""

from __future__ import annotations

import asyncio
import itertools
import uuid
from collections import deque
from collections.abc import Iterator
from typing import Final

from benchmarks.live.load import NAMESPACE, Load
from stromboli.cluster.body import Body, Key, changed, key_of, meta, part, stamp, with_meta
from stromboli.server.api import Api
from stromboli.server.controllers.controllers import preinstalled
from stromboli.server.kubelet.shapes import nodes_of
from stromboli.server.storage.store import Change, CollectionName

PODS: Final = ("", "pods")
NODES: Final = ("", "nodes")
GROUPS: Final = ("scheduling.volcano.sh", "podgroups")
QUEUES: Final = ("scheduling.volcano.sh", "queues")
EVENTS: Final = ("", "events")

EVENTS_KEPT: Final = 10_000
"""Events that the server keeps; a real one forgets them after an hour."""


def _cluster() -> Iterator[Body]:
    """A namespace and queues."""
    yield {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}
    for name in ("root", "default"):
        yield {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue", "metadata": {"name": name}, "spec": {}}


def _models() -> Iterator[Body]:
    """One gang of one pod, of which all others are copies."""
    gang = list(Load("model", "gangs", 1, 1, backlog=True).items())
    for _, body in gang:
        yield with_meta(body, namespace=NAMESPACE, name=f"model-{body['kind'].lower()}")


class Standing:
    """The cluster behind ``api``.  ``bound`` counts the pods that were bound so far, ``waiting`` those that are not."""

    def __init__(self, api: Api) -> None:
        self._store, self._clock = api.store, api.clock
        preinstalled(_cluster(), api.catalogue, api.writer)
        for entry in self._store.of(QUEUES).sorted():
            self._store.put(QUEUES, changed(entry.body, status={"state": "Open"}))
        preinstalled(_models(), api.catalogue, api.writer)
        self._pod, self._group = self._taken(PODS, "model-pod"), self._taken(GROUPS, "model-podgroup")
        self._numbers = itertools.count()
        self._gangs: deque[tuple[Key, list[Key]]] = deque()
        self._events: deque[Key] = deque()
        self.bound = self.waiting = 0
        api.store.listeners.append(self._note)

    def _taken(self, collection: CollectionName, name: str) -> Body:
        """The model of that name, which goes."""
        entry = self._store.drop(collection, (NAMESPACE, name))
        if entry is None:
            raise LookupError(name)
        return with_meta(entry.body, resourceVersion=None)

    def _note(self, collection: CollectionName, change: Change) -> None:
        if collection == PODS and change.type == "MODIFIED" and part(change.entry.body, "status", "phase") == "Pending":
            if part(change.entry.body, "spec", "nodeName"):
                self.bound += 1
                self.waiting -= 1
                asyncio.get_running_loop().call_soon(self._start, change.entry.key)
        elif collection == EVENTS and change.type == "ADDED":
            self._events.append(change.entry.key)
            while len(self._events) > EVENTS_KEPT:
                asyncio.get_running_loop().call_soon(self._store.drop, EVENTS, self._events.popleft())

    def _start(self, key: Key) -> None:
        """A bound pod runs."""
        entry = self._store.get(PODS, key)
        if entry is not None:
            self._store.put(PODS, self._running(entry.body))

    def _running(self, pod: Body) -> Body:
        now = stamp(self._clock())
        conditions = [
            {"type": kind, "status": "True", "lastProbeTime": None, "lastTransitionTime": now}
            for kind in ("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled")
        ]
        return changed(pod, status={**pod["status"], "phase": "Running", "conditions": conditions, "startTime": now})

    # ------------------------------------------------------------------ what there is

    def nodes(self, shape: str) -> None:
        """Register nodes such as ``100x32cpu,256Gi``."""
        for body in nodes_of([shape]):
            self._store.put(NODES, with_meta(body, uid=str(uuid.uuid4()), creationTimestamp=stamp(self._clock())))

    def node_names(self) -> list[str]:
        """All nodes by name."""
        return [name for _, name in self._store.of(NODES).entries]

    def running(self, gangs: int, size: int) -> None:
        """Gangs that run already, spread over the nodes."""
        places = itertools.cycle(self.node_names())
        for _ in range(gangs):
            group, pods = self._gang(size)
            status = {"phase": "Running", "running": size}
            self._store.put(GROUPS, changed(group, status=status))
            for pod in pods:
                placed = changed(pod, spec={**pod["spec"], "nodeName": next(places)})
                self._store.put(PODS, self._running(placed))

    def arrive(self, gangs: int, size: int) -> None:
        """Gangs that wait for a place."""
        for _ in range(gangs):
            group, pods = self._gang(size)
            self._store.put(GROUPS, group)
            for pod in pods:
                self._store.put(PODS, pod)
            self.waiting += size

    def leave(self, pods: int) -> int:
        """The oldest gangs, with so many ``pods`` at least, end and are deleted; how many that were."""
        gone, wanted = 0, pods
        while gone < wanted and self._gangs:
            group, members = self._gangs.popleft()
            for key in members:
                self._end(key)
            self._store.drop(GROUPS, group)
            gone += len(members)
        return gone

    def _end(self, key: Key) -> None:
        entry = self._store.get(PODS, key)
        if entry is not None:
            status = {**entry.body["status"], "phase": "Succeeded"}
            self._store.put(PODS, changed(entry.body, status=status))
            self._store.drop(PODS, key)

    def _gang(self, size: int) -> tuple[Body, list[Body]]:
        """A PodGroup and its pods, as they are created."""
        name = f"gang-{next(self._numbers)}"
        group = self._named(self._group, name)
        least = {"cpu": str(size), "memory": f"{size}Gi"}
        group["spec"] = {**group["spec"], "minMember": size, "minResources": least}
        belongs = {"scheduling.k8s.io/group-name": name}
        pods = [with_meta(self._named(self._pod, f"{name}-{index}"), annotations=belongs) for index in range(size)]
        self._gangs.append((key_of(group), [key_of(pod) for pod in pods]))
        return group, pods

    def _named(self, model: Body, name: str) -> Body:
        return with_meta(model, name=name, uid=str(uuid.uuid4()), creationTimestamp=stamp(self._clock()))

    # ------------------------------------------------------------------ mischief

    def forget(self) -> None:
        """Watches of pods cannot go on (410): clients that watch list anew."""
        pods = self._store.of(PODS)
        pods.floor = self._store.version = self._store.version + 1
        pods.changes.clear()
        pods.wake()

    def relabel(self, count: int, value: str) -> None:
        """Some nodes get another label."""
        for name in self.node_names()[:count]:
            entry = self._store.get(NODES, ("", name))
            if entry is not None:
                labels = {**(meta(entry.body).get("labels") or {}), "turn": value}
                self._store.put(NODES, with_meta(entry.body, labels=labels))
