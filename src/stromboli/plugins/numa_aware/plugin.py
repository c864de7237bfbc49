"""The plugin: refuses nodes whose kubelet would refuse the pod, prefers few NUMA nodes, remembers what it planned."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from stromboli.api.batch import NO_POLICY
from stromboli.framework.extension.handlers import TaskEvent
from stromboli.framework.extension.reason import StatusCode
from stromboli.model.names import CPU, NUMA_TOPOLOGY_POLICY
from stromboli.model.numa import NumaSpec
from stromboli.model.resources import quantity
from stromboli.model.resources.qos import Qos, qos_of
from stromboli.model.status import TaskStatus
from stromboli.model.table import Node, NodeRows
from stromboli.model.task import PodTemplate, Task
from stromboli.plugin import Plugin, Reason, arg, batch_node_order, on_allocate, on_deallocate, predicate
from stromboli.plugins.numa_aware.cpus import Layout, Plan, layout_of, plan

if TYPE_CHECKING:
    from stromboli.framework.books.cluster_view import ClusterView

Floats = npt.NDArray[np.float64]

MAX_SCORE = 100
MOST_KINDS = 256
"""Sorts of pods of which the scores of all nodes are kept, those asked for last."""
NONE = ("", NO_POLICY)

NO_INFO = Reason("numa info is empty", code=StatusCode.ERROR)
NOT_STATIC = Reason("cpu manager policy isn't static", code=StatusCode.ERROR)
OTHER_POLICY = Reason("task topology policy[{task}] is different with node[{node}]", code=StatusCode.ERROR)
NO_CPUS = Reason("cpu allocatable map is empty", code=StatusCode.ERROR)
UNASSIGNABLE = Reason("container {container} cannot be assigned by numa", resolvable=False)


def policy_of(task: Task) -> str:
    """The topology policy that a pod asks for."""
    return task.annotations.get(NUMA_TOPOLOGY_POLICY, "")


def kind(task: Task) -> tuple[PodTemplate, str]:
    """What answers depend on."""
    return task.template, policy_of(task)


class Site:
    """One node: what is known of its NUMA nodes, and the CPUs that are free, those kept for the system left out."""

    __slots__ = ("free", "info", "layout", "reserved")

    def __init__(self, info: NumaSpec) -> None:
        self.info, self.free, self.layout = info, info.free, layout_of(info.places)
        self.reserved = self.layout.take(self.layout.all, info.reserved) or 0

    @property
    def usable(self) -> int:
        """What pods may still get."""
        return self.free & ~self.reserved


class NumaAware(Plugin, trusted=True):
    """Foresees which CPUs the kubelet gives to Guaranteed pods, as Numatopology objects describe the nodes.

    A node that would refuse a pod by its topology policy is refused here; of pods with a policy of their own those
    nodes are better on which their CPUs lie on fewer NUMA nodes, ``weight`` times 100 at best.  Until a node's
    Numatopology lists a pod, the CPUs that were planned for it count as taken.
    """

    name = "numa-aware"
    weight = arg("weight", int, 1)

    def on_session_open(self, session: ClusterView) -> None:
        """See what is free, less what earlier sessions have planned and nodes do not show yet."""
        self.session = session
        rows = session.table.statics.row
        self._sites = {rows[name]: Site(info) for name, info in session.snapshot.numa.items() if name in rows}
        self._counts: dict[int, tuple[int, ...]] = {}
        self._plans: dict[tuple[Layout, int, str, tuple[int, ...]], Plan] = {}
        self._taken: dict[str, tuple[int, int]] = {}
        self._spreads: dict[tuple[PodTemplate, str], tuple[Floats, int]] = {}
        self._moved: list[int] = []
        self._remember()

    def _remember(self) -> None:
        """Take what was planned before off the free CPUs; forget what nodes show, and pods that are gone."""
        kept = self.session.memory(self.name)
        # a pod with a reservation is planned for again: CPUs that are still kept for it would keep it out itself
        placed = self.session.snapshot.pods_on_nodes()
        living = {task.uid for task, _ in placed if task.status is not TaskStatus.Pipelined}
        rows = self.session.table.statics.row
        for key in list(kept):
            node, _, rest = key.partition(" ")
            uid, _, cpus = rest.rpartition(" ")  # files may say uids with blanks in them; names of nodes have none
            site = self._sites.get(rows[node]) if node in rows else None
            if site is None or uid not in living or uid in site.info.listed:
                del kept[key]
            else:
                site.free &= ~int(cpus, 16)

    def on_session_close(self, session: ClusterView) -> None:
        """Keep what was planned for pods that have a node now."""
        kept, names = session.memory(self.name), session.table.statics.names
        for uid, (row, cpus) in self._taken.items():
            if cpus:
                kept[f"{names[row]} {uid} {cpus:x}"] = 1.0

    # ------------------------------------------------------------------ plans

    def _whole_cpus(self, task: Task) -> tuple[int, ...]:
        """How many CPUs of its own each container gets; empty for a pod that is not Guaranteed."""
        found = self._counts.get(task.template.number)
        if found is None:
            counts = self._read(task) if qos_of(task.spec) is Qos.GUARANTEED else ()
            found = self._counts[task.template.number] = tuple(counts)
        return found

    @staticmethod
    def _read(task: Task) -> Iterator[int]:
        for container in task.spec.containers:
            milli = quantity.milli(container.resources.requests[CPU])  # Guaranteed: it is there
            yield milli // 1000 if milli % 1000 == 0 else 0

    def _plan(self, task: Task, row: int) -> Plan | None:
        """What ``task`` would get on a row; None where the kubelet looks at no NUMA nodes for it."""
        site, counts = self._sites.get(row), self._whole_cpus(task)
        if site is None or not counts or self._mismatch(task, site) is not None:
            return None
        if policy_of(task) in NONE and (not site.info.is_static or site.info.policy in NONE):
            return None
        key = site.layout, site.usable, site.info.policy, counts
        found = self._plans.get(key)
        if found is None:
            found = self._plans[key] = plan(*key)
        return found

    @staticmethod
    def _mismatch(task: Task, site: Site | None) -> Reason | None:
        """Why a pod with a policy of its own cannot go to a node, whatever is free there."""
        policy = policy_of(task)
        if policy in NONE:
            return None
        if site is None:
            return NO_INFO
        if not site.info.is_static:
            return NOT_STATIC
        if policy != site.info.policy:
            return OTHER_POLICY.of(task=policy[:63], node=site.info.policy[:63])
        return None if site.free else NO_CPUS

    # ------------------------------------------------------------------ answers

    @predicate(key=kind)
    def assignable(self, task: Task, node: Node) -> Reason | None:
        """Whether the node's kubelet would take the pod."""
        counts = self._whole_cpus(task)
        if not counts:
            return None
        if (mismatch := self._mismatch(task, self._sites.get(node.row))) is not None:
            return mismatch
        found = self._plan(task, node.row)
        if found is None or found.refused < 0:
            return None
        return UNASSIGNABLE.of(container=task.spec.containers[found.refused].name)

    @batch_node_order.raw(key=kind, reads=("candidates",), normalise="fewest_best")
    def numa_nodes(self, task: Task, nodes: NodeRows) -> Floats | None:
        """On how many NUMA nodes the pod's CPUs would lie; nothing for pods without a policy of their own."""
        if policy_of(task) in NONE or not self._whole_cpus(task):
            return None
        found: Floats = self._spread_by_row(task)[nodes.rows]
        return found

    def _spread_by_row(self, task: Task) -> Floats:
        """:meth:`_spread` of all rows; of those known already only rows whose CPUs have moved since are looked at."""
        known = self._spreads.pop(kind(task), None)
        if known is None:
            found, rows = np.zeros(len(self.session.table)), list(self._sites)
        else:
            found, rows = known[0], list(dict.fromkeys(self._moved[known[1] :]))
        for row in rows:
            found[row] = self._spread(task, row)
        self._spreads[kind(task)] = found, len(self._moved)
        if len(self._spreads) > MOST_KINDS:
            del self._spreads[next(iter(self._spreads))]
        return found

    def _spread(self, task: Task, row: int) -> int:
        found, site = self._plan(task, row), self._sites.get(row)
        return site.layout.spread(found.cpus) if found is not None and site is not None else 0

    def fewest_best(self, _task: Task, raw: Floats, _low: float, high: float) -> Floats:
        """100 x weight for none, 0 for the most among the candidates."""
        part = np.floor(MAX_SCORE * raw / high) if high else np.zeros(len(raw))
        return (MAX_SCORE - part) * float(self.weight)

    # ------------------------------------------------------------------ keeping up

    @on_allocate
    def placed(self, event: TaskEvent) -> None:
        """Take the CPUs that the task is to get; one whose eviction is undone has its own."""
        task = event.task
        row = self.session.table.statics.row.get(task.node_name)
        if task.status is TaskStatus.Running or task.uid in self._taken or row is None:
            return
        if (found := self._plan(task, row)) is not None:
            self._taken[task.uid] = row, found.cpus
            self._sites[row].free &= ~found.cpus
            self._moved.append(row)

    @on_deallocate
    def taken_back(self, event: TaskEvent) -> None:
        """Give the CPUs back that this session has taken."""
        if (taken := self._taken.pop(event.task.uid, None)) is not None:
            row, cpus = taken
            self._sites[row].free |= cpus
            self._moved.append(row)


__all__ = ["NumaAware"]
