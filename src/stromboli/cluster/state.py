"""The cluster as its objects tell it: events in, snapshots out.

A state belongs to one thread.  What a snapshot has seen is never changed again: a job is replaced by a copy before the
next event changes it, and the node table is copied into each snapshot.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import msgspec

from stromboli.cluster import decode, kinds
from stromboli.cluster.events import Added, Deleted, Event, Modified
from stromboli.cluster.hyper_nodes import HyperNodeStore
from stromboli.cluster.nodes import NodeStore
from stromboli.cluster.sums import JobSums
from stromboli.cluster.templates import TemplateStore
from stromboli.errors import ManifestError
from stromboli.model.axes import Axes
from stromboli.model.job import Job, JobFacts
from stromboli.model.podgroup import PodGroupStatus
from stromboli.model.queue import PriorityClass, Queue, ResourceQuota
from stromboli.model.snapshot import Snapshot
from stromboli.model.status import COMPLETED_STATUS
from stromboli.model.task import Task

DIGITS = re.compile(r"(\d+)")


def natural(name: str) -> tuple[tuple[tuple[int, int, str], ...], str]:
    """Sort key of a name in which numbers count as numbers: ``n2`` before ``n10``; equal ones by plain text."""
    parts = DIGITS.split(name)
    return tuple((1, int(part), "") if i % 2 else (0, 0, part) for i, part in enumerate(parts)), name


class ClusterState:
    """Nodes, pods, PodGroups, queues and the rest, kept up to date by :meth:`apply`.

    ``default_queue`` is the queue of PodGroups that name none.
    """

    def __init__(self, default_queue: str = "default") -> None:
        self.default_queue = default_queue
        self.axes = Axes()
        self.templates = TemplateStore(self.axes)
        self.nodes = NodeStore(self.axes)
        self.jobs: dict[str, Job] = {}
        self.tasks: dict[str, Task] = {}
        self._uids: dict[str, str] = {}
        self.queues: dict[str, Queue] = {}
        self.priorities: dict[str, PriorityClass] = {}
        self.quotas: dict[str, dict[str, ResourceQuota]] = {}
        self.namespace_labels: dict[str, dict[str, str]] = {}
        self.services: dict[str, dict[str, dict[str, str]]] = {}
        self.hyper_nodes = HyperNodeStore()
        self.problems: list[str] = []
        self.sums = JobSums()
        self._stamp = 1
        self._order: list[str] | None = None
        self._number = 0
        self._default_priority = 0
        self._applied: dict[str, Callable[[Any, bool], None]] = {
            "Pod": self._pod, "Node": self._node, "PodGroup": self._pod_group, "Queue": self._queue,
            "PriorityClass": self._priority_class, "ResourceQuota": self._quota, "Namespace": self._namespace,
            "Service": self._service, "HyperNode": self.hyper_nodes.apply,
        }  # fmt: skip

    # ------------------------------------------------------------------ events

    def apply(self, event: Event) -> None:
        """Take an event in.  Raises ManifestError for an object that cannot be used; nothing has changed then.

        Kinds that scheduling does not read here are ignored.
        """
        take = self._applied.get(event.kind)
        if take is not None:
            take(event.object, not isinstance(event, Deleted))

    def _node(self, node: kinds.Node, stays: bool) -> None:
        if stays:
            spec = decode.node_of(node)
            self.nodes.set_node(spec, self.axes.vector(decode.offer_of(spec)))
        else:
            self.nodes.drop_node(node.metadata.name)

    def _pod(self, pod: kinds.Pod, stays: bool) -> None:
        task = decode.task_of(pod, self.templates)
        if stays and (other := self._uids.get(task.uid, task.key)) != task.key:
            raise ManifestError(f"is the uid of Pod {other}", object=f"Pod {task.key}", path="metadata.uid")
        if (old := self.tasks.get(task.key)) is not None:
            self.remove_task(old)
        if stays:
            try:
                self.add_task(task)
            except ManifestError:
                if old is not None:
                    self.add_task(old)
                raise

    def _pod_group(self, group: kinds.PodGroup, stays: bool) -> None:
        value = decode.podgroup_of(group)
        if stays:
            self.set_group(decode.job_facts(value, self.default_queue, self.axes))
        elif value.key in self.jobs:
            self._without_group(self._writable(value.key))

    def _queue(self, queue: kinds.Queue, stays: bool) -> None:
        value = decode.queue_of(queue)
        if stays:
            self.queues[value.name] = value
        else:
            self.queues.pop(value.name, None)

    def _priority_class(self, priority_class: kinds.PriorityClass, stays: bool) -> None:
        value = decode.priority_class_of(priority_class)
        if stays:
            self.priorities[value.name] = value
        else:
            self.priorities.pop(value.name, None)
        if value.global_default:
            self._default_priority = value.value if stays else 0
        for uid in [job.uid for job in self.jobs.values() if job.priority != self._priority(job)]:
            self._writable(uid)

    def _quota(self, quota: kinds.ResourceQuota, stays: bool) -> None:
        value = decode.quota_of(quota)
        quotas = self.quotas.setdefault(value.namespace, {})
        if stays:
            quotas[value.name] = value
        else:
            quotas.pop(value.name, None)

    def _service(self, service: kinds.Service, stays: bool) -> None:
        selectors = self.services.setdefault(service.metadata.namespace, {})
        if stays:
            selectors[service.metadata.name] = service.spec.selector
        else:
            selectors.pop(service.metadata.name, None)

    def _namespace(self, namespace: kinds.Object, stays: bool) -> None:
        if stays:
            self.namespace_labels[namespace.metadata.name] = namespace.metadata.labels
        else:
            self.namespace_labels.pop(namespace.metadata.name, None)

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
        if task.job:
            self._writable(task.job).add(task)

    def remove_task(self, task: Task) -> None:
        """Let a task go."""
        if task.node_name and task.status not in COMPLETED_STATUS:
            self.nodes.remove(task)
        del self.tasks[task.key], self._uids[task.uid]
        if task.job:
            job = self._writable(task.job)
            job.remove(task.uid)
            if not job.tasks and not job.group.uid and not self._has_group(job):
                self.sums.forget(job)
                del self.jobs[task.job]
                self._order = None

    def set_group(self, facts: JobFacts) -> None:
        """Take a PodGroup in, new or changed."""
        job = self._writable(facts.group.key)
        if facts.group.created != job.created:
            self._order = None
        job.facts = facts
        job.phase, job.conditions = facts.group.status.phase, facts.group.status.conditions
        job.annotations = facts.group.annotations
        facts.priority = self._priority(job)

    def set_status(self, uid: str, status: PodGroupStatus) -> None:
        """Note a new status of a job's PodGroup."""
        job = self._writable(uid, counted=self.jobs[uid].phase != status.phase)
        job.facts = job.facts.with_group(msgspec.structs.replace(job.group, status=status))
        job.phase, job.conditions = status.phase, status.conditions

    def _without_group(self, job: Job) -> None:
        job.facts = Job(job.uid).facts
        if not job.tasks:
            self.sums.forget(job)
            del self.jobs[job.uid]
            self._order = None

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
            self._order = None
        elif job.stamp != self._stamp:
            job = self.jobs[uid] = job.copy()
            job.stamp = self._stamp
        if counted:
            self.sums.touch(job)
        return job

    def _priority(self, job: Job) -> int:
        named = self.priorities.get(job.group.spec.priority_class_name)
        return self._default_priority if named is None else named.value

    # ------------------------------------------------------------------ snapshots

    def snapshot(self) -> Snapshot:
        """The cluster as it stands.  Later events do not reach it."""
        self._number += 1
        for uid in self.sums.dirty:
            job = self.jobs[uid]
            priority = self._priority(job)
            if job.facts.priority != priority:
                job.facts = job.facts.with_priority(priority)
        self.sums.renew(self.jobs)
        table = self.nodes.snapshot(natural)
        table.axes = Axes(self.axes.names)  # neither do later events number columns there, nor sessions here
        found = Snapshot(table.axes, table)
        found.node_tasks = self.nodes.tasks()
        found.templates = self.templates.all()
        found.queues = dict(sorted(self.queues.items(), key=lambda item: (item[1].created, item[0])))
        found.jobs = self._scheduled_jobs()
        found.queue_sums = {name: self.sums.of(name).copy(found.axes) for name in found.queues}
        found.quotas = {namespace: dict(quotas) for namespace, quotas in self.quotas.items()}
        found.namespace_labels = dict(self.namespace_labels)
        found.services = {namespace: dict(sorted(named.items())) for namespace, named in self.services.items()}
        topology = self.hyper_nodes.topology(table.statics)
        found.hyper_nodes, found.hyper_node_tiers = dict(topology.infos), dict(topology.tiers)
        found.hyper_nodes_ready = topology.ready
        found.number = self._number
        found.inconsistencies = [*self.problems, *topology.problems]
        self._stamp += 1
        return found

    def _scheduled_jobs(self) -> dict[str, Job]:
        """Jobs with a PodGroup and a queue that exists, older first."""
        if self._order is None:
            self._order = sorted(self.jobs, key=lambda uid: (self.jobs[uid].created, uid))
        jobs, queues = self.jobs, self.queues
        return {uid: job for uid in self._order if (job := jobs[uid]).facts.queue in queues}


__all__ = ["Added", "ClusterState", "Deleted", "Modified", "natural"]
