"""The plugin: domains for jobs with a network topology, and scores that keep pods close together."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from stromboli.api.fields import NetworkTopology
from stromboli.errors import PlacementError
from stromboli.framework.books.domains import NOWHERE, Bools, Domains
from stromboli.framework.extension.handlers import TaskEvent
from stromboli.framework.session.shortages import add_up, needed_at_once
from stromboli.framework.session.topology import grown, is_hard, job_topology
from stromboli.model.job import PENDING, RELEASING, RUNNING, Job
from stromboli.model.names import CPU, MEMORY
from stromboli.model.podgroup import asks_for_group
from stromboli.model.resources.axes import CPU as CPU_COLUMN
from stromboli.model.resources.axes import MEMORY as MEMORY_COLUMN
from stromboli.model.resources.axes import Vector
from stromboli.model.snapshot import HyperNodeInfo
from stromboli.model.subjobs import SubJob
from stromboli.model.table import Ints, Node, NodeRows
from stromboli.model.task import PodTemplate, Task
from stromboli.model.topology import ancestors
from stromboli.plugin import (
    Hook,
    Plugin,
    arg,
    arg_pattern,
    batch_node_order,
    hyper_node_gradient_for_job,
    hyper_node_gradient_for_sub_job,
    hyper_node_order,
    on_allocate,
    on_deallocate,
)
from stromboli.plugins.network_topology_aware import gradients, scores
from stromboli.plugins.network_topology_aware.groups import TopologyGroups, ignore
from stromboli.plugins.network_topology_aware.scores import Floats, TierWeights
from stromboli.plugins.network_topology_aware.whole_domains import WholeDomains
from stromboli.plugins.network_topology_aware.wishes import OFF, PLUGIN, SWITCH

if TYPE_CHECKING:
    from stromboli.framework.books.cluster_view import ClusterView

EVICT = "Evict"
"""The purpose of gangpreempt and gangreclaim."""

MAX_SCORE = 100

KEEPING, GROUPED = 2.0, 4.0
"""Weights of whole domains that stay free, and of a job's group, relative to how full a domain is (up to 1)."""


def not_negative(number: float) -> str:
    """Refuse numbers below 0."""
    return "" if number >= 0 else f"{number} is negative; the default counts instead"


def positive(number: int) -> str:
    """Refuse numbers below 1."""
    return "" if number > 0 else f"{number} is not positive; the default counts instead"


class NetworkTopologyAware(Plugin, trusted=True):
    """Places jobs with ``spec.networkTopology`` within one HyperNode of an allowed tier, the narrowest that has room.

    Other pods are packed into the fullest domains (``hypernode.binpack.normal-pod.*``), so that whole ones stay free.
    ``weight`` multiplies all scores; the weights of resources say what counts for how full a domain is.  Of equally
    close domains ``hypernode.keep-whole.enable`` takes those that leave the largest whole ones free, and
    ``hypernode.topology-groups.enable`` heeds annotations that keep jobs near each other, or apart.
    """

    name = PLUGIN
    weight = arg("weight", int, 1, not_negative)
    cpu = arg("hypernode.binpack.cpu", int, 1, not_negative)
    memory = arg("hypernode.binpack.memory", int, 1, not_negative)
    resources = arg("hypernode.binpack.resources", str, "")
    resource_weights = arg_pattern("hypernode.binpack.resources.*", int, 1, not_negative)
    packs_others = arg("hypernode.binpack.normal-pod.enable", bool, True)
    fading = arg("hypernode.binpack.normal-pod.fading", float, 0.8, not_negative)
    most_domains = arg("hypernode.gradient.evict.max-hypernodes", int, 8, positive)
    keeps_whole = arg("hypernode.keep-whole.enable", bool, False)
    heeds_groups = arg(SWITCH, bool, False)

    def on_session_open(self, session: ClusterView) -> None:
        """Add up what the nodes of each domain offer and use."""
        self.session = session
        self.domains = Domains(session.hyper_nodes, session.table)
        self._weights = self._columns(session)
        self._reach = gradients.Reach(session.hyper_nodes, self.domains)
        self._tiers = TierWeights(list(self.domains.at_tier), self.fading)
        self._parts: dict[str, tuple[Mapping[str, SubJob], dict[str, SubJob]]] = {}
        self._counts: dict[str, Ints] = {}
        self._distances: dict[str, Floats] = {}
        self._whole: WholeDomains | None = None
        self._groups = TopologyGroups(session, self.domains) if self.heeds_groups else None
        if not self.heeds_groups:
            for job in session.active_jobs():
                if asks_for_group(job.annotations) and PENDING in job.index:
                    ignore(session, job, OFF)

    def hooks(self) -> Iterator[tuple[Hook, Callable[..., Any]]]:
        """The hooks; those of nodes answer by template and by the part of a job that must stay close."""
        for hook, function in super().hooks():
            yield (replace(hook, key=self._kind) if hook.form == "raw" else hook), function

    def _columns(self, session: ClusterView) -> dict[int, int]:
        names = (name.strip() for name in self.resources.split(","))
        listed = {name: self.resource_weights.get(name, 1) for name in names if name}
        weights = {CPU: self.cpu, MEMORY: self.memory, **listed}
        index = session.axes.index
        return {index[name]: weight for name, weight in weights.items() if name in index}

    # ------------------------------------------------------------------ which part of which job

    def _kind(self, task: Task) -> tuple[PodTemplate, str]:
        part = self._close_part(task)
        return task.template, "" if part is None else part.uid

    def _close_part(self, task: Task) -> SubJob | None:
        """The part of a job that ``task`` belongs to, if that has a network topology."""
        job = self.session.job_of(task)
        if job is None or not job.facts.is_close:
            return None
        parts = self.session.sub_jobs(job)
        known = self._parts.get(job.uid)
        if known is None or known[0] is not parts:
            known = self._parts[job.uid] = parts, {uid: part for part in parts.values() for uid in part.task_uids}
        part = known[1].get(task.uid)
        return None if part is None or part.network_topology is None else part

    # ------------------------------------------------------------------ domains to try

    @hyper_node_gradient_for_job
    def for_job(self, job: Job, hyper_node: HyperNodeInfo, purpose: str) -> list[list[HyperNodeInfo]]:
        """The domains below ``hyper_node`` for the whole job: those with room for its minResources."""
        least = job.facts.min_vector
        topology, lies_in = job_topology(self.session, job), job.hyper_nodes.allocated
        found = self._gradients(job.uid, topology, hyper_node, lies_in, least, purpose)
        if self._groups is None:
            return found
        kept, why = self._groups.within(job, found, evicting=purpose == EVICT)
        if why and purpose != EVICT:
            job.fit_error_text = why
        return kept

    @hyper_node_gradient_for_sub_job
    def for_part(self, sub_job: SubJob, hyper_node: HyperNodeInfo, purpose: str) -> list[list[HyperNodeInfo]]:
        """The domains below ``hyper_node`` for one part: those with room for the pending tasks that it needs."""
        if self.session.compat.asks("domain-need"):
            least = add_up(task for task in sub_job.tasks if task.status is PENDING)
        else:
            least = needed_at_once(sub_job, sub_job.tasks)
        topology, lies_in = sub_job.network_topology, sub_job.allocated_hyper_node
        return self._gradients(sub_job.uid, topology, hyper_node, lies_in, least, purpose)

    def _gradients(
        self, uid: str, topology: NetworkTopology | None, within: HyperNodeInfo, lies_in: str, least: Vector,
        purpose: str,
    ) -> list[list[HyperNodeInfo]]:  # fmt: skip
        if topology is None or topology.highest_tier_allowed is None or not is_hard(topology):
            return [[within]]
        infos, highest = self.session.hyper_nodes, topology.highest_tier_allowed
        try:
            root = gradients.search_root(infos, within, highest, lies_in)
        except PlacementError as error:
            self.session.tell("hyper_node_gradient_failed", job=uid, hyper_node=within.name, error=str(error))
            return []
        tiers = self._reach.gradients(root, highest, None if lies_in else self._with_room(least, purpose))
        return gradients.for_eviction(tiers, self.most_domains) if purpose == EVICT else tiers

    def _with_room(self, least: Vector, purpose: str) -> Bools:
        """By domain whether it has room for ``least``, or offers as much if pods may be evicted."""
        domains = self.domains
        need = {CPU_COLUMN: 0, MEMORY_COLUMN: 0, **{column: amount for column, amount in enumerate(least) if amount}}
        if purpose == EVICT:
            return domains.covering(need, domains.alloc)
        return domains.covering(need, domains.idle) | domains.covering(need, domains.future)

    # ------------------------------------------------------------------ the best domain

    @hyper_node_order
    def fullest(self, sub_job: SubJob, nodes_by_hyper_node: Mapping[str, Sequence[Node]]) -> dict[str, float]:
        """How full each domain would be with all tasks of the part; of equal ones, those count that hold some."""
        request = add_up(sub_job.tasks)
        index = self.domains.index
        names = list(filter(index.__contains__, nodes_by_hyper_node))
        numbers = np.fromiter(map(index.__getitem__, names), dtype=np.intp, count=len(names))
        full = (scores.fullness(self.domains, request, self._weights) + self._preferred(sub_job.job))[numbers]
        best = scores.break_tie(full, self._shares(sub_job, names)) * float(MAX_SCORE * self.weight)
        return dict(zip(names, best.tolist(), strict=True))

    def _preferred(self, job: Job) -> Floats | float:
        """What counts for more than how full a domain is: whole domains that stay free, then the job's group."""
        found: Floats | float = 0.0
        if self.keeps_whole:
            self._whole = self._whole or WholeDomains(self.session, self.domains)
            found = KEEPING * (1.0 - self._whole.broken())
        near = self._groups.preference(job) if self._groups is not None else None
        return found if near is None else found + GROUPED * near

    def _shares(self, part: SubJob, names: Sequence[str]) -> Floats:
        """The share of the tasks of ``part`` that is in each of the hypernodes."""
        nodes, tasks = self.session.hyper_nodes.node_names, [task for task in part.tasks if task.node_name]
        if not tasks:
            return np.zeros(len(names))
        found = (sum(task.node_name in nodes[name] for task in tasks) / len(part.task_uids) for name in names)
        return np.fromiter(found, dtype=np.float64, count=len(names))

    # ------------------------------------------------------------------ the best node

    @batch_node_order.raw(reads=("candidates", "job"), normalise="as_it_is", alike="closest_in_one_domain")
    def closest(self, task: Task, nodes: NodeRows) -> Floats | None:
        """For a pod that must stay close: how close each row is to what is placed of its part already."""
        part = self._close_part(task)
        if part is None or not self.weight:
            return None
        if not part.lies_in:
            return np.zeros(len(nodes))
        where = self.domains.narrowest[nodes.rows]
        shares = self._counts_of(part)[where] / len(part.task_uids)
        return scores.break_tie(self._distances_from(part.lies_in)[where], shares) * float(MAX_SCORE * self.weight)

    def closest_in_one_domain(self, task: Task, nodes: NodeRows, count: int) -> Floats | None:
        """:meth:`closest` of rows in one of the narrowest domains, before each of ``count`` tasks is placed there."""
        part, where = self._close_part(task), self.domains.narrowest[nodes.rows]
        domain = int(where[0])
        if part is None or domain == NOWHERE or (where != domain).any() or self.domains.overlap:
            return None
        after, own = grown(self.session, part.lies_in, int(nodes.rows[0])), self.domains.infos[domain].name
        if after not in (own, part.lies_in) or after not in ancestors(self.session.hyper_nodes, own):
            return None  # with each of the tasks the part may come to lie in another domain
        shares = (self._counts_of(part)[domain] + np.arange(count)) / len(part.task_uids)
        found: Floats = (self._distances_from(after)[domain] + shares) * float(MAX_SCORE * self.weight)
        if not part.lies_in:
            found[0] = 0.0
        return found

    def _distances_from(self, lies_in: str) -> Floats:
        if lies_in not in self._distances:
            self._distances[lies_in] = scores.by_distance(self.domains, lies_in)
        return self._distances[lies_in]

    @batch_node_order.raw(reads=("cluster",), normalise="as_it_is")
    def packed(self, task: Task, nodes: NodeRows) -> Floats | None:
        """For other pods: how full the domains of each row would be, the closest tiers counting most."""
        job = self.session.job_of(task)
        if job is None or not (self.weight and self.packs_others and self._tiers.usable and len(self.domains) > 1):
            return None
        if self._close_part(task) is not None:
            return None
        full = scores.fullness(self.domains, task.template.vector, self._weights)
        return scores.by_fullness(self.domains, full, self._tiers, nodes.rows) * float(MAX_SCORE * self.weight)

    def as_it_is(self, _task: Task, raw: Floats, _low: float, _high: float) -> Floats:
        """Scores that are none of their candidates' business."""
        return raw

    # ------------------------------------------------------------------ keeping up

    def _counts_of(self, part: SubJob) -> Ints:
        """How many tasks of ``part`` are in each of the narrowest domains."""
        found = self._counts.get(part.uid)
        if found is None:
            places = self.session.table.statics.row
            rows = [places[task.node_name] for task in part.tasks if task.node_name in places]
            found = self._counts[part.uid] = scores.counts(self.domains, np.array(rows, dtype=np.intp))
        return found

    @on_allocate
    def came(self, event: TaskEvent) -> None:
        """Count a task on its node."""
        self._move(event.task, 1, stays=event.task.status is RUNNING)

    @on_deallocate
    def left(self, event: TaskEvent) -> None:
        """Count a task on its node no longer."""
        self._move(event.task, -1, stays=event.task.status is RELEASING)

    def _move(self, task: Task, times: int, *, stays: bool) -> None:
        """Count ``task`` once more or less; one that ``stays`` is on its node before and after."""
        row = self.session.table.statics.row.get(task.node_name)
        if row is None:
            return
        self._notice(task, [row], times)
        self.domains.take(self.session.ledger.arrays(task.template)[0], [row], times)
        part = self._close_part(task)
        if part is not None and part.uid in self._counts and not stays:
            self._counts[part.uid][self.domains.narrowest[row]] += times
            self._counts[part.uid][-1] = 0

    @on_allocate.many
    def came_together(self, task: Task, rows: Sequence[int]) -> None:
        """:meth:`came` of a run."""
        self._move_together(task, rows, 1)

    @on_deallocate.many
    def left_together(self, task: Task, rows: Sequence[int]) -> None:
        """:meth:`left` of a run."""
        self._move_together(task, rows, -1)

    def _move_together(self, task: Task, rows: Sequence[int], times: int) -> None:
        self.domains.take(self.session.ledger.arrays(task.template)[0], rows, times)
        self._counts.clear()  # counted again on the next read
        self._notice(task, rows, times)

    def _notice(self, task: Task, rows: Sequence[int], times: int) -> None:
        """Pass a placement on to the parts that compare jobs."""
        if self._groups is not None:
            self._groups.moved(task.job)
        if self._whole is not None and task.job:
            self._whole.moved(rows, times)


__all__ = ["NetworkTopologyAware"]
