"""What an extender is sent and answers: the reference's types, their field names as Go writes them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from stromboli.framework.books.jobs import QueueInfo
from stromboli.model.job import Job
from stromboli.model.names import REVOCABLE_ZONE
from stromboli.model.resources.resource import Resource
from stromboli.model.table import Node
from stromboli.model.task import Task

if TYPE_CHECKING:
    from stromboli.framework.books.cluster_view import ClusterView

Body = dict[str, Any]


class Fit(msgspec.Struct, frozen=True):
    """Whether a task fits a node: an empty status says that it does."""

    status: str = ""
    code: int = 0


class Scores(msgspec.Struct, frozen=True, rename="camel"):
    """Scores of nodes by name."""

    node_score: dict[str, float] | None = None
    error_message: str = ""


class Named(msgspec.Struct, frozen=True, rename={"uid": "UID"}):
    """A task, known by its uid."""

    uid: str = ""


class Victims(msgspec.Struct, frozen=True):
    """A vote (0 abstains) and the tasks that may be evicted."""

    status: int = 0
    victims: list[Named] | None = None


class Vote(msgspec.Struct, frozen=True):
    """-1, 0 or 1."""

    status: int = 0


class Ready(msgspec.Struct, frozen=True):
    """Whether a job is ready."""

    status: bool = False


class Overused(msgspec.Struct, frozen=True):
    """Whether a queue has more than its share."""

    overused: bool = False


class Objection(msgspec.Struct, frozen=True, rename="camel"):
    """What is against a placement; empty: nothing."""

    error_message: str = ""


class Ignored(msgspec.Struct, frozen=True):
    """An answer of which nothing is read."""


def task_body(task: Task) -> Body:
    """TaskInfo."""
    request = amounts(task.request)
    meta = {"name": task.name, "namespace": task.namespace, "uid": task.uid}
    notes = {"labels": dict(task.labels), "annotations": dict(task.annotations)}
    return {
        "UID": task.uid,
        "Job": task.job,
        "Name": task.name,
        "Namespace": task.namespace,
        "TaskRole": task.role,
        "Resreq": request,
        "InitResreq": request,
        "NodeName": task.node_name,
        "Status": int(task.status),
        "Priority": task.priority,
        "Preemptable": task.preemptable,
        "RevocableZone": task.revocable_zone,
        "Pod": {"metadata": meta | notes, "spec": msgspec.to_builtins(task.spec)},
    }


def tasks_body(tasks: Iterable[Task]) -> list[Body]:
    """TaskInfos."""
    return [task_body(task) for task in tasks]


def node_body(node: Node) -> Body:
    """NodeInfo."""
    names = ("idle", "used", "releasing", "pipelined", "allocatable")
    meta = {"name": node.name, "labels": dict(node.labels), "annotations": dict(node.annotations)}
    spec = {"taints": msgspec.to_builtins(node.taints), "unschedulable": node.unschedulable}
    return {
        "Name": node.name,
        "Node": {"metadata": meta, "spec": spec},
        **{name.capitalize(): amounts(getattr(node, name)) for name in names},
    }


def job_body(job: Job) -> Body:
    """JobInfo."""
    phase = {"metadata": {"name": job.name, "namespace": job.namespace, "annotations": dict(job.annotations)}}
    return {
        "UID": job.uid,
        "Name": job.name,
        "Namespace": job.namespace,
        "Queue": job.queue,
        "Priority": job.priority,
        "MinAvailable": job.min_available,
        "Tasks": {task.uid: task_body(task) for task in job.tasks.values()},
        "PodGroup": phase | {"status": {"phase": job.phase}},
    }


def queue_body(queue: QueueInfo) -> Body:
    """QueueInfo."""
    return {"UID": queue.uid, "Name": queue.name, "Weight": queue.spec.weight}


def session_body(session: ClusterView) -> Body:
    """The whole cluster, as the session opens with it."""
    nodes = {name: node_body(node) for name, node in session.nodes.items()}
    return {
        "Jobs": {job.uid: job_body(job) for job in session.jobs.peek()},
        "Nodes": nodes,
        "Queues": {name: queue_body(queue) for name, queue in session.queues.items()},
        "NamespaceInfo": {name: {"Name": name} for name in session.snapshot.quotas},
        "RevocableNodes": {name: nodes[name] for name, node in session.nodes.items() if REVOCABLE_ZONE in node.labels},
        "NodeList": list(nodes.values()),
    }


def amounts(resource: Resource) -> Body:
    """Resource."""
    return {
        "MilliCPU": resource.milli_cpu,
        "Memory": resource.memory,
        "ScalarResources": resource.scalars,
        "MaxTaskNum": resource.max_task_num,
    }


def is_managed(task: Task, names: Mapping[str, object]) -> bool:
    """Whether a container or init container of ``task`` requests or limits one of ``names``; any task, for none."""
    containers = (*task.spec.containers, *task.spec.init_containers)
    lists = (named for each in containers for named in (each.resources.requests, each.resources.limits))
    return not names or any(not names.keys().isdisjoint(named) for named in lists)
