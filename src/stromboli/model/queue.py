"""A Queue: whose jobs compete, and for how much of the cluster."""

from __future__ import annotations

import msgspec

from stromboli.api.scheduling import Guarantee
from stromboli.model.resources.resource import Resource
from stromboli.model.spec import Amount, Wire

KEPT = " (kept for this queue as far as there is room: "
"""Introduces, in ``status.fault``, the amounts that a restarted scheduler goes on to keep."""


class QueueSpec(Wire, frozen=True):
    """``spec`` of a Queue (scheduling.volcano.sh/v1beta1); absent resource lists are None."""

    weight: int = 0
    capability: dict[str, Amount] | None = None
    deserved: dict[str, Amount] | None = None
    guarantee: Guarantee | None = None
    reclaimable: bool | None = None
    parent: str = ""
    priority: int = 0
    type: str = ""
    dequeue_strategy: str = ""
    affinity: dict[str, object] | None = None


class QueueStatus(Wire, frozen=True):
    """``status`` of a Queue; ``allocated`` is a resource list, ``fault`` what is wrong with the queue."""

    state: str = ""
    allocated: dict[str, Amount] | None = None
    fault: str = ""


class Queue(msgspec.Struct, frozen=True):
    """A Queue object; its uid among queues is its name; ``created`` in seconds since 1970."""

    name: str
    uid: str = ""
    created: int = 0
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    spec: QueueSpec = QueueSpec()
    status: QueueStatus = QueueStatus()

    @property
    def reclaimable(self) -> bool:
        """Whether others may take back what this queue holds above its share; yes unless the spec says no."""
        return self.spec.reclaimable is not False


class PriorityClass(msgspec.Struct, frozen=True):
    """A PriorityClass; ``global_default`` makes it the one of jobs that name none."""

    name: str
    value: int = 0
    global_default: bool = False


class ResourceQuota(msgspec.Struct, frozen=True):
    """A ResourceQuota's status: ``hard`` and ``used`` are resource lists as written."""

    namespace: str
    name: str
    hard: dict[str, Amount] = {}
    used: dict[str, Amount] = {}


def kept_before(queue: Queue) -> Resource:
    """Of what the queue is guaranteed, that which its status says was kept before nodes went."""
    told = queue.status.fault.partition(KEPT)[2].removesuffix(")").split(", ")
    stated = queue.spec.guarantee.resource if queue.spec.guarantee else None
    guarantee = Resource.from_list(stated or {}).to_list()
    return Resource.from_list({name: own for name, own in guarantee.items() if f"{name} {own}" in told})
