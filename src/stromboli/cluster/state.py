"""The cluster as its objects tell it: events in, snapshots out.

A state belongs to one thread.  What a snapshot has seen is never changed again: a job is replaced by a copy before the
next event changes it, and the node table is copied into each snapshot.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import groupby, islice
from operator import attrgetter
from typing import Any

import msgspec

from stromboli.api.scheduling import PodGroupStatus
from stromboli.cluster import kinds
from stromboli.cluster.decoding import decode
from stromboli.cluster.decoding.devices import DeviceSettingsStore
from stromboli.cluster.decoding.hyper_nodes import HyperNodeStore, asks_for_domains
from stromboli.cluster.decoding.numa import NumaStore
from stromboli.cluster.decoding.priority_classes import PriorityClassStore
from stromboli.cluster.decoding.selectors import SelectorStore
from stromboli.cluster.decoding.stored import StoredVolumes
from stromboli.cluster.decoding.templates import TemplateStore
from stromboli.cluster.decoding.upstream import any_group_of, in_queue, topology_keys
from stromboli.cluster.decoding.upstream_queues import UpstreamQueues
from stromboli.cluster.events import Deleted, Event
from stromboli.cluster.listing import Listing
from stromboli.cluster.nodes import NodeStore
from stromboli.cluster.resource_names import QueueNames, learn_node
from stromboli.cluster.sums import JobSums
from stromboli.errors import ManifestError
from stromboli.framework.books.plan import Lasting
from stromboli.framework.config import gates
from stromboli.model.disruption import DisruptionBudget
from stromboli.model.job import Job, JobFacts
from stromboli.model.jobs.hyper_nodes import JobHyperNodes
from stromboli.model.queue import Queue, ResourceQuota
from stromboli.model.reservation import Held, mentioned, with_reservation
from stromboli.model.resources.axes import Axes
from stromboli.model.resources.request import RequestGates
from stromboli.model.snapshot import Snapshot
from stromboli.model.status import COMPLETED_STATUS
from stromboli.model.task import Task, counts_alike
from stromboli.model.usage import NodeUsage, usage_of

COUNTED_AT_ONCE = 500
"""How many changed jobs, or nodes, are counted again in one go."""


class ClusterState:
    """Nodes, pods, PodGroups, queues and the rest, kept up to date by :meth:`apply`.

    ``default_queue`` is the queue of PodGroups that name none; ``utc_offset`` is by how many seconds the clock on the
    wall is ahead of UTC.
    """

    def __init__(self, default_queue: str = "default") -> None:
        self.default_queue, self.axes = default_queue, Axes()
        self.templates, self.nodes = TemplateStore(self.axes), NodeStore(self.axes)
        self.jobs, self.tasks = dict[str, Job](), dict[str, Task]()
        self._uids: dict[str, str] = {}
        self._reserved: set[str] = set()
        self.reserving = gates.PIPELINED_STATE in gates.switched_on({})
        self.queues: dict[str, Queue] = {}
        self._queue_names = QueueNames(self)
        self.priorities = PriorityClassStore()
        self.quotas: dict[str, dict[str, ResourceQuota]] = {}
        self.namespace_labels: dict[str, dict[str, str]] = {}
        self.services = SelectorStore()
        self.hyper_nodes, self.numa, self.sums = HyperNodeStore(), NumaStore(), JobSums()
        self.device_settings, self._upstream = DeviceSettingsStore(), UpstreamQueues()
        self.budgets: dict[str, DisruptionBudget] = {}
        self.storage = StoredVolumes()
        self.usage: dict[str, NodeUsage] = {}
        self.memory: dict[str, dict[str, float]] = {}
        self._stamp = 1
        self._listing = Listing()
        self.close_jobs: set[str] = set()
        self.ignored: frozenset[str] = frozenset()
        self._number, self.utc_offset = 0, 0
        self._applied: dict[str, Callable[[Any, bool], None]] = {
            "Pod": self._pod, "Node": self._node, "PodGroup": self._pod_group, "UpstreamPodGroup": self._pod_group,
            "Queue": self._queue, "PriorityClass": self._priority_class, "ResourceQuota": self._quota,
            **dict.fromkeys(("Service", "ReplicationController", "ReplicaSet", "StatefulSet"), self.services.apply),
            "Namespace": self._namespace, "Workload": self._workload, "PodDisruptionBudget": self._disruption_budget,
            "HyperNode": self.hyper_nodes.apply, "Numatopology": self.numa.apply, "NodeShard": self.nodes.shards.apply,
            **dict.fromkeys(("ConfigMap", "NpuReport"), self.device_settings.apply),
            **self.storage.handlers(), **self.storage.devices.handlers(),
        }  # fmt: skip

    def emptied(self) -> ClusterState:
        """A state of no objects, with the settings of this one and what it keeps from cycle to cycle."""
        fresh = ClusterState(self.default_queue)
        fresh.ignored, fresh.reserving, fresh.templates.gates = self.ignored, self.reserving, self.templates.gates
        fresh.storage.take_over(self.storage, self.storage.attachable and self.storage.attachable.of(fresh))
        fresh.nodes.shards.set_mode(self.nodes.shards.mode, self.nodes.shards.name)
        fresh.memory, fresh.usage, fresh._number = self.memory, self.usage, self._number
        return fresh

    def set_gates(self, on: frozenset[str]) -> None:
        """Take over which feature gates are on: what was applied before stays as it is."""
        self.ignored = gates.ignored_kinds(on)
        self.reserving = gates.PIPELINED_STATE in on
        self.templates.gates = RequestGates(gates.POD_LEVEL_RESOURCES in on, gates.IN_PLACE_RESIZE in on)

    # ------------------------------------------------------------------ events

    def apply(self, event: Event) -> None:
        """Take an event in.  Raises ManifestError for an object that cannot be used; nothing has changed then.

        Kinds that scheduling does not read here are ignored.
        """
        take = None if event.kind in self.ignored else self._applied.get(event.kind)
        if take is not None:
            take(event.object, not isinstance(event, Deleted))
            if self.storage.attachable is not None:
                self.storage.attachable.heard(event)

    def _node(self, node: kinds.Node, stays: bool) -> None:
        if stays:
            spec, attachable = decode.node_of(node), self.storage.attachable
            spec = spec if attachable is None else attachable.offered(spec)
            learn_node(self, spec)
            self.nodes.set_node(spec, self.axes.vector(decode.offer_of(spec)))
        else:
            self.nodes.drop_node(node.metadata.name)
            self.usage.pop(node.metadata.name, None)

    def _pod(self, pod: kinds.Pod, stays: bool) -> None:
        task = decode.task_of(pod, self.templates, self.reserving)
        task = task if self.storage.attachable is None else self.storage.attachable.counted(task)
        if stays and (other := self._uids.get(task.uid, task.key)) != task.key:
            raise ManifestError(f"is the uid of Pod {other}", object=f"Pod {task.key}", path="metadata.uid")
        self.replace_task(self.tasks.get(task.key), task if stays and not self.storage.devices.lacks(task) else None)

    def _pod_group(self, group: kinds.PodGroup | kinds.UpstreamPodGroup, stays: bool) -> None:
        value = any_group_of(group, self.jobs)
        if isinstance(group, kinds.UpstreamPodGroup):
            self._upstream.keep(group, stays)
            value = in_queue(value, self._upstream.of(value.key))
        if stays:
            self.set_group(decode.job_facts(value, self.default_queue, self.axes))
        elif value.key in self.jobs:
            self._without_group(self._writable(value.key))

    def _queue(self, queue: kinds.Queue, stays: bool) -> None:
        value = decode.queue_of(queue)
        if stays is not (value.name in self.queues):
            self._listing.regroup()
        self.queues.pop(value.name, None)
        if stays:
            self.queues[value.name] = value
            self._queue_names.take(value)

    def _priority_class(self, priority_class: kinds.PriorityClass, stays: bool) -> None:
        self.priorities.take(decode.priority_class_of(priority_class), stays)
        for uid in [job.uid for job in self.jobs.values() if job.priority != self.priorities.of(job.group)]:
            self._writable(uid)

    def _quota(self, quota: kinds.ResourceQuota, stays: bool) -> None:
        value = decode.quota_of(quota)
        self.quotas.setdefault(value.namespace, {}).pop(value.name, None)
        if stays:
            self.quotas[value.namespace][value.name] = value

    def _disruption_budget(self, budget: kinds.PodDisruptionBudget, stays: bool) -> None:
        value = decode.disruption_budget_of(budget)
        key = f"{value.namespace}/{value.name}"
        self.budgets.pop(key, None)
        if stays:
            self.budgets[key] = value

    def _namespace(self, namespace: kinds.Object, stays: bool) -> None:
        self.namespace_labels.pop(namespace.metadata.name, None)
        if stays:
            self.namespace_labels[namespace.metadata.name] = namespace.metadata.labels
        self._move(self._upstream.namespace(namespace, stays))

    def _workload(self, workload: kinds.Workload, stays: bool) -> None:
        self._move(self._upstream.workload(workload, stays))

    def _move(self, groups: list[str]) -> None:
        """Let PodGroups of scheduling.k8s.io be in the queues that are named for them now."""
        for job in filter(None, map(self.jobs.get, groups)):
            group = in_queue(job.group, self._upstream.of(job.uid))
            self.set_group(decode.job_facts(group, self.default_queue, self.axes))

    def measured(self, usage: Mapping[str, NodeUsage]) -> None:
        """Take samples of nodes in; nodes that they leave out keep their last ones."""
        self.usage.update(usage)

    def learn(self, plan: Lasting) -> None:
        """Take over what a plan leaves to later cycles: what plugins keep, where jobs lie, what they are promised."""
        self.remember(plan.memory)
        for place in plan.hyper_nodes:
            if place.key in self.jobs:
                self.set_hyper_nodes(place.key, place.hyper_node, place.parts)
        for uid, nominations in groupby(plan.nominations, attrgetter("job")):
            self.nominate(uid, ((one.sub_job, one.hyper_node) for one in nominations))

    def remember(self, memory: Mapping[str, Mapping[str, float]]) -> None:
        """Keep for the next snapshot what a plan says that plugins keep."""
        self.memory.update({plugin: dict(kept) for plugin, kept in memory.items()})

    # ------------------------------------------------------------------ tasks and jobs

    def add_task(self, task: Task) -> None:
        """Take a task in: to its node, unless it has ended, and to its job.  Raises ManifestError, nothing changed."""
        if task.node_name and task.status not in COMPLETED_STATUS:
            try:
                self.nodes.add(task)
            except OverflowError as error:
                problem = f"amounts on node {task.node_name} exceed 64 bits"
                raise ManifestError(problem, object=f"Pod {task.key}", path="spec.containers") from error
        self.tasks[task.key] = task
        self._uids[task.uid] = task.key
        if self.reserving and mentioned(task.annotations):
            self._reserved.add(task.key)
        if task.job:
            self._writable(task.job).add(task)

    def remove_task(self, task: Task) -> None:
        """Let a task go."""
        if task.node_name and task.status not in COMPLETED_STATUS:
            self.nodes.remove(task)
        del self.tasks[task.key], self._uids[task.uid]
        self._reserved.discard(task.key)
        if task.job:
            job = self._writable(task.job)
            job.remove(task.uid)
            if not job.tasks and not job.group.uid and not self._has_group(job):
                self.sums.forget(job)
                self._forget(job.uid)

    def replace_task(self, old: Task | None, new: Task | None) -> None:
        """Let ``new`` stand in the place of ``old``.  Raises ManifestError, nothing changed."""
        if old is not None and new is not None and counts_alike(old, new):
            return self._exchange(old, new)
        if old is not None:
            self.remove_task(old)
        try:
            if new is not None:
                self.add_task(new)
        except ManifestError:
            if old is not None:
                self.add_task(old)
            raise

    def _exchange(self, old: Task, new: Task) -> None:
        self.nodes.exchange(old, new)
        del self.tasks[old.key]
        self.tasks[new.key] = new
        self._reserved.discard(old.key)
        if self.reserving and mentioned(new.annotations):
            self._reserved.add(new.key)
        if new.job:
            self._writable(new.job, counted=False).exchange(new)

    def set_reservation(self, key: str, uid: str, held: Held | None, proof: str = "") -> bool:
        """Let pod ``key`` state ``held`` (None: no reservation), as news of it would; False if it is gone.

        Raises ManifestError, nothing changed.
        """
        task = self.tasks.get(key)
        if task is None or task.uid != uid:
            return False
        self.replace_task(task, with_reservation(task, held, proof))
        return True

    def set_group(self, facts: JobFacts) -> None:
        """Take a PodGroup in, new or changed."""
        job = self._writable(facts.group.key)
        if (facts.group.created, facts.queue) != (job.created, job.queue):
            self._listing.move(job.uid)
        job.facts = facts
        job.phase, job.conditions = facts.group.status.phase, facts.group.status.conditions
        job.annotations = facts.group.annotations
        self._note_closeness(job)
        facts.priority = self.priorities.of(job.group)

    def set_status(self, uid: str, status: PodGroupStatus) -> None:
        """Note a new status of a job's PodGroup."""
        job = self._writable(uid, counted=self.jobs[uid].phase != status.phase)
        job.facts = job.facts.with_group(msgspec.structs.replace(job.group, status=status))
        job.phase, job.conditions = status.phase, status.conditions

    def nominate(self, uid: str, places: Iterable[tuple[str, str]]) -> None:
        """Note for which hypernodes the victims of sub-jobs have to leave; an empty name: for none any more."""
        if uid not in self.jobs:
            return
        job = self._writable(uid, counted=False)
        job.hyper_nodes = job.hyper_nodes.with_nominated(places)

    def set_hyper_nodes(self, uid: str, hyper_node: str, parts: Mapping[str, str]) -> None:
        """Note which hypernodes hold what is placed of a job and of its parts."""
        job = self._writable(uid, counted=False)
        job.hyper_nodes = JobHyperNodes(hyper_node, parts, job.hyper_nodes.nominated)
        self._note_closeness(job)

    def _note_closeness(self, job: Job) -> None:
        note = self.close_jobs.add if asks_for_domains(job) else self.close_jobs.discard
        note(job.uid)

    def _without_group(self, job: Job) -> None:
        job.facts = Job(job.uid).facts
        self._listing.move(job.uid)
        self._note_closeness(job)
        if not job.tasks:
            self.sums.forget(job)
            self._forget(job.uid)

    def _forget(self, uid: str) -> None:
        del self.jobs[uid]
        self.close_jobs.discard(uid)
        self._listing.move(uid)

    @staticmethod
    def _has_group(job: Job) -> bool:
        return bool(job.facts.queue)

    def _writable(self, uid: str, counted: bool = True) -> Job:
        """The job, safe to change: a copy where a snapshot may still look at it.

        ``counted`` says whether the change may concern its queue's sums.
        """
        job = self.jobs.get(uid)
        if job is None:
            job = self.jobs[uid] = Job(uid)
            job.stamp = self._stamp
            self._listing.move(uid)
        elif job.stamp != self._stamp:
            job = self.jobs[uid] = job.copy()
            job.stamp = self._stamp
            self._listing.replace(job)
        if counted:
            self.sums.touch(job)
        return job

    def keep_jobs(self) -> None:
        """Let the next change of each job that stands here make a copy first."""
        self._stamp += 1

    # ------------------------------------------------------------------ snapshots

    def catching_up(self) -> Iterator[None]:
        """Count what changed in small steps, during which the state may go on: the next snapshot costs less."""
        while len(self.sums.dirty) > COUNTED_AT_ONCE:
            self._count(COUNTED_AT_ONCE)
            yield
        while self.nodes.catch_up(COUNTED_AT_ONCE):
            yield

    def _count(self, most: int | None = None) -> None:
        """Count the jobs that changed again, at most ``most`` of them if given."""
        some = list(islice(self.sums.dirty, most))
        for uid in some:
            job = self.jobs[uid]
            priority = self.priorities.of(job.group)
            if job.facts.priority != priority:
                job.facts = job.facts.with_priority(priority)
        self.sums.renew(self.jobs, some)

    def snapshot(self) -> Snapshot:
        """The cluster as it stands.  Later events do not reach it."""
        self._number += 1
        self._count()
        table = self.nodes.snapshot()
        table.axes = Axes(self.axes.names, self.axes.ignored)  # later events number no columns there
        found = Snapshot(table.axes, table)
        found.node_tasks = self.nodes.tasks()
        found.reserved = [self.tasks[key] for key in sorted(self._reserved)]
        self.templates.tidy(task.template for task in self.tasks.values())
        found.templates = self.templates.all()
        found.queues = self._queue_names.shown(self.queues)
        found.jobs, found.holdings, found.queueless = self._listing.shown(self.jobs, self.queues, self.sums.failed)
        found.open_jobs = None if self.sums.failed else self._listing.open_jobs()
        found.jobs_by_priority = None if self.sums.failed else self._listing.by_priority()
        found.close_jobs = [uid for uid in found.jobs if uid in self.close_jobs] if self.close_jobs else []
        found.queue_sums = {name: self.sums.of(name).copy(found.axes) for name in found.queues}
        found.quotas = {namespace: dict(quotas) for namespace, quotas in self.quotas.items()}
        found.namespace_labels = dict(self.namespace_labels)
        found.services = {namespace: dict(sorted(named.items())) for namespace, named in self.services.items()}
        found.usage = usage_of(table.statics.names, self.usage)
        found.budgets = [self.budgets[key] for key in sorted(self.budgets)]
        found.claims = dict(sorted(self.storage.devices.demands.items()))
        found.memory, found.utc_offset = dict(self.memory), self.utc_offset
        found.numa, found.shard = self.numa.shown(), self.nodes.shards.shown()
        found.device_settings = dict(self.device_settings)
        self.storage.keep(self._uids)
        found.storage, found.devices = self.storage.shown(), self.storage.devices.shown()
        topology = self.hyper_nodes.topology(table.statics, topology_keys(map(self.jobs.__getitem__, self.close_jobs)))
        found.hyper_nodes, found.hyper_node_tiers = dict(topology.infos), dict(topology.tiers)
        found.hyper_nodes_ready, found.number = topology.ready, self._number
        found.inconsistencies = [*topology.problems, *self.sums.problems(), *self._queue_names.problems()]
        found.inconsistencies += self.nodes.shards.problems()
        self.keep_jobs()
        return found
