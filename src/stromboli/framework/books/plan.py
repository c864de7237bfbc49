"""What a cycle has decided: data, in the order of the decisions, for an executor to carry out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, Protocol

import msgspec

from stromboli.api.scheduling import PodGroupCondition
from stromboli.model.claims import CLAIM_SECONDS, Allocation
from stromboli.model.objects.storage import VOLUME_SECONDS
from stromboli.model.reservation import Held


class Bind(msgspec.Struct, frozen=True, gc=False):
    """Bind pod ``key`` (``namespace/name``) to ``node``; ``annotations`` are put on the pod with the binding.

    ``volumes`` says what each of its claims gets before: ``pv:NAME``, a volume, or ``node:NAME``, one made for a node.
    ``claims`` are the devices that each of its ResourceClaims has, those included that it had before.
    ``volume_seconds`` is how long the claims may take to be bound, ``claim_seconds`` how long the devices may take to
    be ready.  ``locks`` are annotations that lock the node meanwhile.
    """

    uid: str
    key: str
    job: str
    node: str
    annotations: dict[str, str] = {}
    volumes: dict[str, str] = {}
    claims: dict[str, Allocation] = {}
    volume_seconds: int = VOLUME_SECONDS
    locks: tuple[str, ...] = ()
    claim_seconds: int = CLAIM_SECONDS


class Eviction(msgspec.Struct, frozen=True, gc=False):
    """Evict pod ``key`` from ``node`` because of ``reason`` (the action's name)."""

    uid: str
    key: str
    job: str
    node: str
    reason: str


class Reservation(msgspec.Struct, frozen=True, gc=False):
    """Task ``key`` waits for room on ``node``; ``evicted`` when tasks were evicted for it."""

    uid: str
    key: str
    job: str
    node: str
    evicted: bool = False


class PodAnnotations(msgspec.Struct, frozen=True, gc=False):
    """What pod ``key`` shall state of its reservation, as it says something else: ``held``, or None for none."""

    uid: str
    key: str
    held: Held | None = None


class Nomination(msgspec.Struct, frozen=True, gc=False):
    """Room for sub-job ``sub_job`` of ``job`` becomes free in ``hyper_node``; an empty one: none any more."""

    job: str
    sub_job: str
    hyper_node: str


class PodGroupUpdate(msgspec.Struct, frozen=True, gc=False):
    """The whole new status of PodGroup ``key``, and its annotations when those changed too."""

    key: str
    phase: str
    conditions: tuple[PodGroupCondition, ...] = ()
    running: int = 0
    succeeded: int = 0
    failed: int = 0
    annotations: dict[str, str] | None = None


class PodConditionUpdate(msgspec.Struct, frozen=True, gc=False):
    """PodScheduled=False on pod ``key``; ``nominated_node`` is empty where it stays as it is."""

    uid: str
    key: str
    reason: str
    message: str
    nominated_node: str = ""


class QueueUpdate(msgspec.Struct, frozen=True, gc=False):
    """``status.allocated`` of a queue, as a resource list of canonical quantities, and its ``status.fault``."""

    name: str
    allocated: dict[str, str]
    fault: str = ""


class HyperNodeUpdate(msgspec.Struct, frozen=True, gc=False):
    """The hypernode that holds what is placed of job ``key``, and those of its parts by their ids; empty: none."""

    key: str
    hyper_node: str
    parts: dict[str, str] = {}


class Event(msgspec.Struct, frozen=True, gc=False):
    """A Kubernetes event on ``kind`` ``key``."""

    kind: str
    key: str
    type: str
    reason: str
    message: str


class GateRemoval(msgspec.Struct, frozen=True, gc=False):
    """Take the queue-allocation gate off pod ``key``."""

    uid: str
    key: str


class Answer(msgspec.Struct, frozen=True, gc=False):
    """What an extender answered to a request (its SHA-256) at ``url`` after ``seconds``, or the ``problem`` with it."""

    url: str
    request: str
    body: str = ""
    problem: str = ""
    seconds: float = 0.0


class Plan(msgspec.Struct):
    """Everything that one cycle decided.  ``replayable`` is False once a plugin has used the outside world.

    ``memory`` is what plugins keep for later cycles, by plugin; the next snapshot must hold it.
    ``answers`` are those of extenders: with them the cycle can be repeated.
    """

    session: str = ""
    binds: list[Bind] = []
    evictions: list[Eviction] = []
    reservations: list[Reservation] = []
    allocated_not_bound: list[Reservation] = []
    nominations: list[Nomination] = []
    pod_groups: list[PodGroupUpdate] = []
    pod_conditions: list[PodConditionUpdate] = []
    queues: list[QueueUpdate] = []
    hyper_nodes: list[HyperNodeUpdate] = []
    events: list[Event] = []
    gates: list[GateRemoval] = []
    annotations: list[PodAnnotations] = []
    inconsistencies: list[str] = []
    memory: dict[str, dict[str, float]] = {}
    answers: list[Answer] = []
    replayable: bool = True

    @property
    def is_empty(self) -> bool:
        """Whether the cycle decided nothing and changes no status of a job or a queue.

        What pods that wait are told does not count: one that fits nowhere is told so in each cycle.
        """
        return not any(getattr(self, name) for name in _DECISIONS)


_DECISIONS: Final = (
    "binds", "evictions", "reservations", "allocated_not_bound", "nominations", "pod_groups", "queues", "hyper_nodes",
    "gates", "annotations",
)  # fmt: skip


class Lasting(Protocol):
    """The part of a plan that later cycles look at."""

    @property
    def memory(self) -> Mapping[str, Mapping[str, float]]:
        """What plugins keep."""

    @property
    def hyper_nodes(self) -> Iterable[HyperNodeUpdate]:
        """Where jobs lie."""

    @property
    def nominations(self) -> Iterable[Nomination]:
        """What jobs are promised."""
