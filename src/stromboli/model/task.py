"""A task: one pod as scheduling sees it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final, NamedTuple

import msgspec

from stromboli.model.names import QUEUE_ALLOCATION_GATE
from stromboli.model.objects.storage import Mount
from stromboli.model.resources.request import RequestGates, nonzero_request
from stromboli.model.resources.resource import Resource
from stromboli.model.spec import PodSpec
from stromboli.model.status import ALLOCATED_STATUS, TaskStatus

CONTAINERS_ALONE = RequestGates(pod_level_resources=False)
"""Requests as the containers state them, whatever the pod states as a whole."""

_INDEX: Final = re.compile(r"\+?[0-9]{1,18}", re.ASCII)


class PodTemplate:
    """What all pods with equal specs share (node name and identity aside): made once a cluster, never changed.

    ``vector`` is the request by column (:data:`stromboli.model.resources.axes.Vector`), pods included; ``nonzero`` is
    (cpu in thousandths, memory in bytes) with Kubernetes' stand-ins for containers that ask for nothing: what the pod
    counts on its node.  ``scored`` is what it counts itself while free room is scored: what it states as a
    whole is left out.
    """

    __slots__ = ("best_effort", "host_ports", "images", "nonzero", "number", "request", "scored", "spec", "vector")

    def __init__(
        self, number: int, spec: PodSpec, request: Resource, vector: tuple[int, ...], nonzero: tuple[int, int]
    ) -> None:
        self.number = number
        self.spec = spec
        self.request = request
        self.vector = vector
        self.nonzero = nonzero
        self.scored = nonzero_request(spec, gates=CONTAINERS_ALONE) if spec.resources.requests else nonzero
        self.best_effort = request.is_empty()
        containers = spec.containers + tuple(c for c in spec.init_containers if c.restart_policy == "Always")
        self.host_ports = tuple(
            (p.host_ip or "0.0.0.0", p.protocol or "TCP", p.host_port)
            for c in containers
            for p in c.ports
            if p.host_port > 0
        )
        self.images = tuple(c.image for c in (*spec.init_containers, *spec.containers))


class Placement(NamedTuple):
    """Where a task stood just before a discarded operation was undone; what conditions tell users."""

    status: TaskStatus
    node_name: str
    eviction_occurred: bool


class Condition(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """The pod's PodScheduled condition as last known; its status is that ``since``, in seconds since 1970."""

    status: str
    reason: str
    message: str
    since: int = 0

    def says(self, status: str, reason: str, message: str) -> bool:
        """Whether it says this, since whenever."""
        return (self.status, self.reason, self.message) == (status, reason, message)


_ALIKE: Final = ("namespace", "job", "role", "scheduler", "owner", "controller", "phase", "revocable_zone")
"""Fields that pods of one job often have in common."""
GRACE: Final = 30
"""Seconds in which a pod ends that says nothing of it."""


class Task(msgspec.Struct, eq=False, gc=False):
    """One pod.  ``status``, ``node_name``, ``eviction_occurred`` and ``last`` change during a session, through
    :class:`~stromboli.framework.statement.statement.Statement` alone; everything else stands.

    ``key`` is ``namespace/name``; ``job`` is ``namespace/podgroup`` or empty; ``created`` and ``start_time`` are in
    seconds since 1970; ``index`` is the number at the end of a name of three or more dash-separated parts, else -1;
    ``gates`` names the scheduling gates; ``condition`` is the pod's PodScheduled condition as last written;
    ``preempted`` says that the pod's DisruptionTarget condition names the scheduler's preemption; ``claims`` are the
    ResourceClaims that the pod uses, by ``namespace/name``, those that are yet to be made for it left out
    (``lacks_claims``); ``volumes`` are the PersistentVolumeClaims that it mounts; ``ends`` is
    the latest moment at which a pod that is being deleted is gone (its deletionTimestamp), 0 for others;
    ``grace`` is how many seconds it has to end once it is told to.
    """

    uid: str
    namespace: str
    name: str
    template: PodTemplate
    status: TaskStatus
    key: str = ""
    job: str = ""
    role: str = ""
    priority: int = 1
    labels: Mapping[str, str] = {}
    annotations: Mapping[str, str] = {}
    created: int = 0
    index: int = -1
    gates: tuple[str, ...] = ()
    preemptable: bool = True
    revocable_zone: str = ""
    scheduler: str = ""
    owner: str = ""
    controller: str = ""
    phase: str = ""
    start_time: int = 0
    nominated_node: str = ""
    condition: Condition | None = None
    node_name: str = ""
    eviction_occurred: bool = False
    last: Placement | None = None
    preempted: bool = False
    claims: tuple[str, ...] = ()
    ends: int = 0
    grace: int = GRACE
    volumes: tuple[Mount, ...] = ()
    lacks_claims: bool = False

    def share(self, others: Mapping[str, Task]) -> None:
        """Let values equal to those of the first of ``others`` be the same objects: pods of a job differ in little."""
        other = next(iter(others.values()), None)
        if other is None:
            return
        self.labels = _shared(self.labels, other.labels)
        self.annotations = _shared(self.annotations, other.annotations)
        for name in _ALIKE:
            value = getattr(other, name)
            if getattr(self, name) == value:
                setattr(self, name, value)

    def __repr__(self) -> str:
        return f"Task({self.key}, {self.status.name})"

    @property
    def own_node(self) -> str:
        """The node that the pod itself is on; empty for one that only holds a reservation on ``node_name``."""
        return "" if self.status is TaskStatus.Pipelined else self.node_name

    @property
    def request(self) -> Resource:
        """What the pod asks for; shared by all pods of its template, so copy before changing it."""
        return self.template.request

    @property
    def best_effort(self) -> bool:
        """Whether the pod asks for nothing but its place."""
        return self.template.best_effort

    @property
    def spec(self) -> PodSpec:
        """The pod's spec, the node's name left out."""
        return self.template.spec


def is_held_back(task: Task) -> bool:
    """Whether ``task`` has a scheduling gate that the scheduler itself does not take off."""
    return bool(task.gates) and task.gates != (QUEUE_ALLOCATION_GATE,)


def counts_alike(old: Task, new: Task) -> bool:
    """Whether no sum of a node, a job or a queue tells ``new`` from ``old``: one pod, on a node before and after."""
    both_there = old.status in ALLOCATED_STATUS and new.status in ALLOCATED_STATUS and old.node_name != ""
    return both_there and old.template is new.template and _counted(old) == _counted(new)


def _counted(task: Task) -> tuple[object, ...]:
    return task.uid, task.job, task.node_name, task.gates


def _shared(mine: Mapping[str, str], others: Mapping[str, str]) -> Mapping[str, str]:
    """The mapping ``mine``, as ``others`` if they are equal, else with those of its values that are equal."""
    if mine == others:
        return others
    return {key: others[key] if others.get(key) == value else value for key, value in mine.items()}


def twin(task: Task) -> Task:
    """Another task with the same values; the template and the mappings are shared."""
    made: Task = task.__copy__()  # type: ignore[attr-defined]  # msgspec's own, far faster than copying field by field
    return made


def twins(tasks: Mapping[str, Task]) -> dict[str, Task]:
    """A :func:`twin` of each of ``tasks``, by the same keys."""
    return {uid: task.__copy__() for uid, task in tasks.items()}  # type: ignore[attr-defined]


def pod_index(name: str) -> int:
    """The integer at the end of ``job-role-7``; -1 for names of fewer than three parts or without such an end."""
    head, _, tail = name.rpartition("-")
    return int(tail) if "-" in head and _INDEX.fullmatch(tail) else -1
