"""Attached volumes as a resource of nodes, ``attachable-volumes-csi-DRIVER``, as the reference counts them.

Each claim of a pod whose volume a CSI driver attaches adds one thousandth to the pod's request, a shared claim for each
pod; nodes offer as many thousandths as their CSINode says.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

import msgspec

from stromboli.cluster.decoding.decode import offer_of
from stromboli.cluster.events import Event
from stromboli.model.names import ATTACHABLE_VOLUMES_PREFIX
from stromboli.model.objects.base import Object
from stromboli.model.objects.storage import IGNORED_PROVISIONERS, CSINode, attached_as
from stromboli.model.spec import NodeSpec
from stromboli.model.task import Task, twin

if TYPE_CHECKING:
    from stromboli.cluster.state import ClusterState

PREFIX: Final = f"{ATTACHABLE_VOLUMES_PREFIX}csi-"
WITHOUT_LIMIT: Final = 2**31 - 1
"""What a node offers whose driver states no count."""


def _name(driver: str) -> str:
    return PREFIX + driver.replace("/", "-")


class Attachable:
    """Counts the volumes of a state's pods; those of the provisioners in ``ignored`` do not count."""

    def __init__(self, state: ClusterState, ignored: frozenset[str]) -> None:
        self._state, self._ignored = state, ignored | IGNORED_PROVISIONERS
        self._pods: dict[str, set[str]] = {}

    def of(self, state: ClusterState) -> Attachable:
        """The same for another state."""
        return Attachable(state, self._ignored)

    def counted(self, task: Task) -> Task:
        """The task, its volumes among what it asks for."""
        if not task.volumes:
            return task
        storage, drivers = self._state.storage.shown(), Counter[str]()
        self.follow(task)
        for mount in task.volumes:
            claim = storage.claims.get(mount.claim)
            driver, _ = attached_as(claim, storage) if claim is not None else ("", "")
            if driver and driver not in self._ignored:
                drivers[driver] += 1
        more = tuple(sorted((_name(name), count) for name, count in drivers.items()))
        found = twin(task)
        found.template = self._state.templates.template(task.spec, more=more)
        return found

    def follow(self, task: Task) -> None:
        """Count the task again when one of its claims changes."""
        for mount in task.volumes:
            self._pods.setdefault(mount.claim, set()).add(task.key)

    def offered(self, spec: NodeSpec) -> NodeSpec:
        """The node with what its CSINode says."""
        allocatable = {name: amount for name, amount in spec.allocatable.items() if not name.startswith(PREFIX)}
        csi = self._state.storage.shown().csi_nodes.get(spec.name)
        for driver in csi.spec.drivers if csi is not None else ():
            count = driver.allocatable.count if driver.allocatable else None
            allocatable[_name(driver.name)] = f"{WITHOUT_LIMIT if count is None else count}m"
        return msgspec.structs.replace(spec, allocatable=allocatable)

    def heard(self, event: Event) -> None:
        """Count again where a volume object has changed."""
        found = event.object
        if isinstance(found, CSINode):
            entry = self._state.nodes.entries().get(found.metadata.name)
            if entry is not None and entry.spec is not None:
                spec = self.offered(entry.spec)
                self._state.nodes.set_node(spec, self._state.axes.vector(offer_of(spec)))
        elif event.kind in ("PersistentVolumeClaim", "PersistentVolume", "StorageClass"):
            for key in sorted(self._touched(event.kind, found)):
                task = self._state.tasks.get(key)
                if task is not None:
                    self._state.remove_task(task)
                    self._state.add_task(self.counted(task))

    def _touched(self, kind: str, found: Object) -> set[str]:
        if kind == "PersistentVolumeClaim":
            return self._pods.get(f"{found.metadata.namespace}/{found.metadata.name}", set())
        return set().union(*self._pods.values())
