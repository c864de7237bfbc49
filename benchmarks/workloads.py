"""The measured clusters, each object a formula of its index, so that any program can build the same.

Nodes have index i, pods index r, jobs index j = r // size of a job.  Kinds: ``default``, ``binpack`` and ``hetero``
(everything waits, everything fits), ``preempt`` and ``reclaim`` (a full cluster, and gangs that need room) are
those on which the reference was measured.  ``topology`` is ``default`` on a network of four tiers, each gang in one
domain of the two closest.  ``numa`` is ``default`` with Guaranteed pods that want one of the four NUMA nodes of their
node; ``roles`` with jobs of a server and workers beside it, ``strategy`` with cpu packed and memory spread.  In
``names`` each pod asks for a resource of its own that no node offers.
Those of :mod:`benchmarks.device_workloads` are ``default`` with cards, claimed devices or volumes.
Three more look at a cycle in which there is little to decide: ``running`` (the pods of ``default``, each on a node
already; the first cycle writes a status on each PodGroup, the second takes that in, and before the third, which counts,
``changed`` pods end, or none), ``written`` (the second cycle of the same) and ``full`` (the second cycle of the full
cluster, with small gangs that wait in queues of their own).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import chain
from typing import Any, BinaryIO, Final, TypeAlias

import msgspec

from benchmarks.device_workloads import KINDS as DEVICE_KINDS
from benchmarks.device_workloads import Extras
from benchmarks.plugin_workloads import MORE, ONE_NUMA_NODE, TOGETHER, numa_nodes
from stromboli.model.names import (
    GROUP_NAME,
    HOSTNAME,
    NUMA_TOPOLOGY_POLICY,
    PREEMPTABLE,
    SCHEDULER_NAME,
    TASK_SPEC,
    TOPOLOGY_ZONE,
)

Json: TypeAlias = dict[str, Any]

ZONES, POOLS, QUEUES = 10, 4, 4
"""Into how many zones and pools nodes are divided; how many queues the jobs of ``default`` use."""

_RUNNING: Final = ("running", "written")
EVICTING: Final = ("preempt", "reclaim")
"""Kinds in which gangs arrive at a full cluster and others have to go."""

_EPOCH: Final = datetime(2025, 1, 1, tzinfo=UTC)
_LATE: Final = 100_000
_TIER: Final = ("predicates", "proportion", "nodeorder")
_RUNNING_JOB: Final = 100
_GIB_PER_CORE: Final = 4


@dataclass(frozen=True)
class Workload:
    """One cluster of a kind, with its sizes.

    ``nodes`` and ``pods`` are N and P; ``gang`` is G, pods a job.  Kinds with a full cluster have ``pods`` running pods
    and ``waiting`` more that wait, in jobs of ``gang``; elsewhere ``waiting`` is 0.  ``rack`` is how many nodes a
    hypernode of the first tier has.  ``changed`` pods of kind ``running`` succeed before the last cycle.
    """

    kind: str
    nodes: int
    pods: int
    gang: int = 100
    waiting: int = 0
    rack: int = 16
    changed: int = 0

    @property
    def cycles(self) -> int:
        """How many cycles are run; the last one is the one that counts."""
        return {"running": 3, "written": 2, "full": 2}.get(self.kind, 1)

    @property
    def ended(self) -> list[str]:
        """The pods that succeed before the last cycle, by ``namespace/name``: of jobs all over the cluster."""
        batch = self.batches()[0]
        return [f"default/{batch.pod_name(k * batch.pods // self.changed)}" for k in range(self.changed)]

    @property
    def jobs(self) -> int:
        """How many jobs there are in all."""
        return sum(-(-batch.pods // batch.size) for batch in self.batches())

    @property
    def node_cores(self) -> int:
        """Cores of each node; it has four GiB a core."""
        return 40 if self.kind in _FULL else 64

    def batches(self) -> tuple[Batch, ...]:
        """The sorts of pods in this cluster."""
        if self.kind not in _FULL:
            return (_everyday(self),)
        return _running(self), _FULL[self.kind](self)

    def lists(self) -> Iterator[tuple[str, Iterator[Json]]]:
        """The objects by the key of their list in a scenario, made one at a time."""
        yield "nodes", (_node(self, i) for i in range(self.nodes))
        if self.kind == "topology":
            yield "hyperNodes", _hyper_nodes(self)
        if self.kind == "numa":
            yield "numatopologies", (numa_nodes(node_name(i), self.node_cores) for i in range(self.nodes))
        yield "priorityClasses", iter(_CLASSES if self.kind in EVICTING else ())
        yield "queues", (_queue(f"q{k}") for k in range(_queues(self.kind)))
        yield "podGroups", chain.from_iterable(batch.groups() for batch in self.batches())
        yield "pods", chain.from_iterable(batch.members() for batch in self.batches())
        yield from Extras(self.kind).lists([node_name(i) for i in range(self.nodes)], self.pods)

    def write(self, file: BinaryIO) -> None:
        """Write the scenario as one line of JSON; needs no more memory than one object."""
        encode = msgspec.json.encode
        head = {"name": self.kind, "conf": configuration(self.kind), "cycles": self.cycles}
        if self.changed:
            head["events"] = [{"beforeCycle": self.cycles, "succeedPods": self.ended}]
        file.write(encode(head)[:-1])
        for key, objects in self.lists():
            file.write(b"," + encode(key) + b":[")
            file.writelines((b"," if number else b"") + encode(found) for number, found in enumerate(objects))
            file.write(b"]")
        file.write(b"}\n")


@dataclass(frozen=True)
class Batch:
    """Pods of one sort, ``size`` of them a job.

    ``name``, ``cores`` (of each pod), ``queue`` and ``second`` (of creation, after the first of January 2025) are
    functions of a job's index; ``node`` is the index of the node on which pod r runs, None when the pods wait;
    ``place_rules`` are parts of the metadata and the spec of pod r that say where it may run, ``beside`` is what it
    asks for beside cpu and memory; ``topology`` how close together a job is to be.  ``notes`` and ``group_notes`` are
    annotations of pods and PodGroups; ``guaranteed`` pods have limits like their requests; with ``roles`` the first pod
    of a job is its server, the others are workers.
    """

    pods: int
    size: int
    name: Callable[[int], str]
    cores: Callable[[int], int]
    queue: Callable[[int], str]
    second: Callable[[int], int]
    node: Callable[[int], int] | None = None
    min_member: int | None = None
    priority_class: str = ""
    preemptable: bool = False
    place_rules: Callable[[int], tuple[Json, Json]] | None = None
    beside: Callable[[int], Json] | None = None
    topology: Json | None = None
    notes: Mapping[str, str] = field(default_factory=dict)
    group_notes: Mapping[str, str] = field(default_factory=dict)
    guaranteed: bool = False
    roles: bool = False

    def groups(self) -> Iterator[Json]:
        """The PodGroups."""
        least = self.size if self.min_member is None else self.min_member
        for j in range(-(-self.pods // self.size)):
            spec: Json = {
                "minMember": least,
                "queue": self.queue(j),
                "minResources": _amounts(least * self.cores(j)),
                **self._class(),
                **({"networkTopology": self.topology} if self.topology else {}),
            }
            metadata: Json = {
                "name": self.name(j),
                "uid": f"pg-{self.name(j)}",
                **self._metadata(j, {**self.group_notes}),
            }
            yield {"metadata": metadata, "spec": spec, "status": {"phase": self._phase}}

    def members(self) -> Iterator[Json]:
        """The pods."""
        for r in range(self.pods):
            labels, rules = ({}, {}) if self.place_rules is None else self.place_rules(r)
            yield self._pod(r, labels, rules)

    def pod_name(self, r: int) -> str:
        """The name of pod r."""
        j, k = divmod(r, self.size)
        return f"{self.name(j)}-{k:05d}"

    def _pod(self, r: int, labels: Json, rules: Json) -> Json:
        j, k = divmod(r, self.size)
        name = self.pod_name(r)
        more = self.beside(r) if self.beside else {}
        limits = {**_amounts(self.cores(j)), **more} if self.guaranteed else more
        resources = {"requests": {**_amounts(self.cores(j)), **more}, **({"limits": limits} if limits else {})}
        role = {TASK_SPEC: "worker" if k else "server"} if self.roles else {}
        notes = {GROUP_NAME: self.name(j), **self.notes, **role}
        container = {"name": "main", "resources": resources}
        metadata = {"name": name, "uid": f"default-{name}", **self._metadata(j, notes), **labels}
        spec: Json = {"schedulerName": SCHEDULER_NAME, "containers": [container], **self._class(), **rules}
        if self.node is not None:
            spec["nodeName"] = node_name(self.node(r))
        return {"metadata": metadata, "spec": spec, "status": {"phase": self._phase}}

    @property
    def _phase(self) -> str:
        return "Pending" if self.node is None else "Running"

    def _class(self) -> Json:
        return {"priorityClassName": self.priority_class} if self.priority_class else {}

    def _metadata(self, j: int, annotations: dict[str, str]) -> Json:
        found = annotations | ({PREEMPTABLE: "true"} if self.preemptable else {})
        created = (_EPOCH + timedelta(seconds=self.second(j))).strftime("%Y-%m-%dT%H:%M:%SZ")
        return {"namespace": "default", "creationTimestamp": created} | ({"annotations": found} if found else {})


def configuration(kind: str) -> str:
    """The text of volcano-scheduler.conf for a kind."""
    last = kind if kind in EVICTING else "backfill"
    tier = tuple(
        name for name in _TIER if kind != "names" or name != "proportion"
    )  # there nodes are to refuse, not queues
    more = MORE.get(kind, ())
    second = ("overcommit", "drf", *tier, *more)
    lines = [f'actions: "enqueue, allocate, {last}"', "tiers:"]
    for tier in (("priority", "gang", "conformance"), second):
        lines += ["- plugins:", *(f"  - name: {name}" for name in tier)]
    lines += Extras(kind).plugins
    return "\n".join(lines) + "\n"


def node_name(i: int) -> str:
    """The name of node i."""
    return f"node-{i:05d}"


def resource_name(r: int) -> str:
    """What pod r of kind ``names`` asks for."""
    return f"example.com/device-{r:06d}"


def pool(i: int) -> int:
    """The pool of node i; the last one is tainted in kind ``hetero``."""
    return i // ZONES % POOLS


def _everyday(workload: Workload) -> Batch:
    gang = workload.gang
    return Batch(
        pods=workload.pods,
        size=gang,
        name=lambda j: f"job-{j:06d}",
        cores=lambda j: 1 + j % 4,
        queue=lambda j: f"q{j // 4 % QUEUES}",
        second=lambda j: j,
        node=(lambda r: r % workload.nodes) if workload.kind in _RUNNING else None,
        place_rules=_hetero if workload.kind == "hetero" else (lambda r: ({}, Extras(workload.kind).spec(r))),
        beside=(lambda r: {resource_name(r): "1"}) if workload.kind == "names" else Extras(workload.kind).beside,
        topology={"mode": "hard", "highestTierAllowed": 2} if workload.kind == "topology" else None,
        notes={NUMA_TOPOLOGY_POLICY: ONE_NUMA_NODE} if workload.kind == "numa" else {},
        group_notes=TOGETHER if workload.kind == "roles" else {},
        guaranteed=workload.kind == "numa",
        roles=workload.kind == "roles",
    )


def _running(workload: Workload) -> Batch:
    fights = workload.kind != "full"
    return Batch(
        pods=workload.pods,
        size=_RUNNING_JOB,
        name=lambda j: f"run-{j:05d}",
        cores=lambda j: 4,
        queue=lambda j: "q0",
        second=lambda j: j,
        node=lambda r: r % workload.nodes,
        min_member=1,
        priority_class="low" if fights else "",
        preemptable=fights,
    )


def _arriving(workload: Workload, queue: str, priority_class: str) -> Batch:
    return Batch(
        pods=workload.waiting,
        size=workload.gang,
        name=lambda j: f"new-{j:05d}",
        cores=lambda j: 4,
        queue=lambda j: queue,
        second=lambda j: _LATE + j,
        priority_class=priority_class,
    )


def _waiting(workload: Workload) -> Batch:
    return Batch(
        pods=workload.waiting,
        size=workload.gang,
        name=lambda j: f"wait-{j:05d}",
        cores=lambda j: 1 + j % 4,
        queue=lambda j: f"q{1 + j // 4 % (QUEUES - 1)}",
        second=lambda j: _LATE + j,
    )


_FULL: Final[dict[str, Callable[[Workload], Batch]]] = {
    "preempt": lambda workload: _arriving(workload, "q0", "high"),
    "reclaim": lambda workload: _arriving(workload, "q1", "low"),
    "full": _waiting,
}
_CLASSES: Final = tuple(
    {"metadata": {"name": name, "uid": f"pc-{name}"}, "value": value} for name, value in (("low", 10), ("high", 1000))
)

KINDS: Final = (
    "default", "topology", "numa", "roles", "strategy", "binpack", "hetero", "preempt", "reclaim", "running",
    "written", "full", "names", *DEVICE_KINDS,
)  # fmt: skip
"""All kinds."""


def _queues(kind: str) -> int:
    return {"preempt": 1, "reclaim": 2}.get(kind, QUEUES)


def _amounts(cores: int) -> dict[str, str]:
    return {"cpu": str(cores), "memory": f"{_GIB_PER_CORE * cores}Gi"}


def _node(workload: Workload, i: int) -> Json:
    name = node_name(i)
    labels = {HOSTNAME: name, TOPOLOGY_ZONE: f"zone-{i % ZONES}", "pool": f"pool-{pool(i)}"}
    extras = Extras(workload.kind)
    room = {**_amounts(workload.node_cores), "pods": "110", **extras.room}
    notes = {"annotations": found} if (found := extras.annotations(i)) else {}
    found = {
        "metadata": {"name": name, "uid": f"uid-{name}", "labels": labels, **notes},
        "status": {"allocatable": room, "capacity": room, "conditions": [{"type": "Ready", "status": "True"}]},
    }
    if workload.kind == "hetero" and pool(i) == POOLS - 1:
        found["spec"] = {"taints": [{"key": "dedicated", "value": "batch", "effect": "NoSchedule"}]}
    return found


def _hyper_nodes(workload: Workload) -> Iterator[Json]:
    """Racks, pods of 8 racks, zones of 4 pods, and a region of all."""
    kind, names = "Node", [node_name(i) for i in range(workload.nodes)]
    for tier, size in enumerate((workload.rack, 8, 4, len(names)), 1):
        groups = [names[first : first + size] for first in range(0, len(names), size)]
        names = [f"tier{tier}-{number:04d}" for number in range(len(groups))]
        for name, group in zip(names, groups, strict=True):
            members = [{"type": kind, "selector": {"exactMatch": {"name": member}}} for member in group]
            yield {"metadata": {"name": name, "uid": f"uid-{name}"}, "spec": {"tier": tier, "members": members}}
        kind = "HyperNode"


def _queue(name: str) -> Json:
    return {
        "metadata": {"name": name, "uid": f"uid-{name}"},
        "spec": {"weight": 1, "reclaimable": True},
        "status": {"state": "Open"},
    }


def _hetero(r: int) -> tuple[Json, Json]:
    """Every hundred pods are one application; its number says in which of five ways it chooses nodes."""
    app = r // 100
    labels = {"app": f"app-{app:05d}"}
    return {"labels": labels}, _CHOICES[app % 5](app, {"matchLabels": labels})


_TOLERATIONS: Final = [{"key": "dedicated", "operator": "Equal", "value": "batch", "effect": "NoSchedule"}]


def _one_pool(app: int, selector: Json) -> Json:
    return {"nodeSelector": {"pool": f"pool-{app // 5 % POOLS}"}, "tolerations": _TOLERATIONS}


def _tainted_too(app: int, selector: Json) -> Json:
    return {"tolerations": _TOLERATIONS}


def _apart(app: int, selector: Json) -> Json:
    term = {"labelSelector": selector, "topologyKey": HOSTNAME}
    return {"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}}


def _spread(app: int, selector: Json) -> Json:
    rule = {"maxSkew": 1, "topologyKey": TOPOLOGY_ZONE, "whenUnsatisfiable": "DoNotSchedule", "labelSelector": selector}
    return {"topologySpreadConstraints": [rule]}


def _near_a_zone(app: int, selector: Json) -> Json:
    wish = {"key": TOPOLOGY_ZONE, "operator": "In", "values": [f"zone-{app // 5 % ZONES}"]}
    term = {"weight": 10, "preference": {"matchExpressions": [wish]}}
    return {"affinity": {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [term]}}}


_CHOICES: Final = (_one_pool, _tainted_too, _apart, _spread, _near_a_zone)
