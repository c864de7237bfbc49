"""What a cycle has decided: data, in the order of the decisions, for an executor to carry out."""

from __future__ import annotations

import msgspec

from stromboli.model.podgroup import PodGroupCondition


class Bind(msgspec.Struct, frozen=True):
    """Bind pod ``key`` (``namespace/name``) to ``node``."""

    uid: str
    key: str
    job: str
    node: str


class Eviction(msgspec.Struct, frozen=True):
    """Evict pod ``key`` from ``node`` because of ``reason`` (the action's name)."""

    uid: str
    key: str
    job: str
    node: str
    reason: str


class Reservation(msgspec.Struct, frozen=True):
    """Task ``key`` waits for room on ``node``; ``evicted`` when somebody was evicted for it."""

    uid: str
    key: str
    job: str
    node: str
    evicted: bool = False


class PodGroupUpdate(msgspec.Struct, frozen=True):
    """The whole new status of PodGroup ``key``, and its annotations when those changed too."""

    key: str
    phase: str
    conditions: tuple[PodGroupCondition, ...] = ()
    running: int = 0
    succeeded: int = 0
    failed: int = 0
    annotations: dict[str, str] | None = None


class PodConditionUpdate(msgspec.Struct, frozen=True):
    """PodScheduled=False on pod ``key``; ``nominated_node`` is empty where it stays as it is."""

    uid: str
    key: str
    reason: str
    message: str
    nominated_node: str = ""


class QueueUpdate(msgspec.Struct, frozen=True):
    """``status.allocated`` of a queue, as a resource list of canonical quantities."""

    name: str
    allocated: dict[str, str]


class Event(msgspec.Struct, frozen=True):
    """A Kubernetes event on ``kind`` ``key``."""

    kind: str
    key: str
    type: str
    reason: str
    message: str


class GateRemoval(msgspec.Struct, frozen=True):
    """Take the queue-allocation gate off pod ``key``."""

    uid: str
    key: str


class Plan(msgspec.Struct):
    """Everything that one cycle decided.  ``replayable`` is False once a plugin has used the outside world."""

    session: str = ""
    binds: list[Bind] = []
    evictions: list[Eviction] = []
    reservations: list[Reservation] = []
    allocated_not_bound: list[Reservation] = []
    pod_groups: list[PodGroupUpdate] = []
    pod_conditions: list[PodConditionUpdate] = []
    queues: list[QueueUpdate] = []
    events: list[Event] = []
    gates: list[GateRemoval] = []
    inconsistencies: list[str] = []
    replayable: bool = True
