"""Everything that one cycle may look at."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from typing import Final, NamedTuple

from stromboli.model.claims import Demand, DeviceObjects
from stromboli.model.disruption import DisruptionBudget
from stromboli.model.job import BOUND, RUNNING, Job
from stromboli.model.numa import Topologies
from stromboli.model.objects.shard import Shard
from stromboli.model.objects.storage import Storage
from stromboli.model.queue import Queue, ResourceQuota
from stromboli.model.resources.axes import Axes, minus
from stromboli.model.resources.device_settings import DeviceSettings
from stromboli.model.selectors import belonging
from stromboli.model.spec import LabelSelector
from stromboli.model.table import NodeTable
from stromboli.model.task import PodTemplate, Task
from stromboli.model.usage import NodeUsage


class QueueSums:
    """Amounts of one queue's jobs added up, by column (see :data:`~stromboli.model.resources.axes.Vector`).

    allocated  tasks that occupy a node         held     those and the pipelined ones
    request    those and the pending ones       elastic  what jobs hold beyond their minResources
    inqueue    what admitted jobs still need of their minResources
    admitted   the same with the whole minResources of jobs not started yet
    jobs       number of jobs
    """

    __slots__ = ("admitted", "allocated", "elastic", "held", "inqueue", "jobs", "request")

    def __init__(self) -> None:
        self.allocated: list[int] = []
        self.held: list[int] = []
        self.request: list[int] = []
        self.elastic: list[int] = []
        self.inqueue: list[int] = []
        self.admitted: list[int] = []
        self.jobs = 0

    def reserved(self) -> list[int]:
        """What is held and not allocated: only reserved, by column."""
        return minus(self.held, self.allocated)

    def copy(self, axes: Axes) -> QueueSums:
        """The same sums, each as long as ``axes``, in lists of their own."""
        twin, full = QueueSums(), axes.full
        twin.allocated, twin.held, twin.request = full(self.allocated), full(self.held), full(self.request)
        twin.elastic, twin.inqueue, twin.admitted = full(self.elastic), full(self.inqueue), full(self.admitted)
        twin.jobs = self.jobs
        return twin


class Evictable(NamedTuple):
    """Tasks on one node that may be evicted at all, and what searches read of each of them, in the same order.

    ``owners`` are the uids of their jobs; ``running`` has a byte for each, 1 for a task that runs and 0 for one that is
    only bound.  ``lowest`` is the lowest priority among them, None where there are none.
    """

    tasks: Sequence[Task]
    owners: Sequence[str]
    templates: Sequence[PodTemplate]
    running: bytes
    lowest: int | None

    @classmethod
    def of(cls, tasks: Sequence[Task]) -> Evictable:
        """What is to be read of ``tasks``."""
        owners, templates = [task.job for task in tasks], [task.template for task in tasks]
        running = bytes(task.status is RUNNING for task in tasks)
        return cls(tasks, owners, templates, running, min((task.priority for task in tasks), default=None))


NOTHING_EVICTABLE: Final = Evictable.of(())


class NodeTasks(dict[str, Task]):
    """The tasks on one node by ``namespace/name``; those of a snapshot never change."""

    __slots__ = ("_evictable",)
    _evictable: Evictable

    @property
    def evictable(self) -> Evictable:
        """Bound and running tasks of jobs that do not refuse eviction; found once, as most nodes stay as they are."""
        try:
            return self._evictable
        except AttributeError:
            tasks = [task for task in self.values() if _is_evictable(task)]
            self._evictable = Evictable.of(tasks) if tasks else NOTHING_EVICTABLE
            return self._evictable


def _is_evictable(task: Task) -> bool:
    return (task.status is RUNNING or task.status is BOUND) and task.preemptable and bool(task.job)


JobsByPriority = dict[tuple[str, int], dict[str, None]]
"""Jobs of which single tasks may be evicted, by queue and priority: their uids, in no order that means anything."""

Holdings = dict[str, list[int]]
"""What jobs hold, by uid and column; none of the lists changes any more."""


class HyperNodeInfo:
    """One hypernode: its tier, its parent, and every node below it (``rows`` of the node table, ascending).

    ``known`` is False for a name that others list as a member and that no object bears: it has tier 0 and no nodes.
    """

    __slots__ = ("children", "known", "name", "parent", "rows", "tier")

    def __init__(self, name: str, tier: int, rows: Sequence[int] = (), parent: str = "", *, known: bool = True) -> None:
        self.name, self.tier, self.parent, self.known = name, tier, parent, known
        self.rows: list[int] = list(rows)
        self.children: list[str] = []

    def below(self, parent: str) -> HyperNodeInfo:
        """The same hypernode with another parent; what lies below it is shared."""
        twin = copy(self)
        twin.parent = parent
        return twin

    def __repr__(self) -> str:
        return f"HyperNodeInfo({self.name!r}, tier {self.tier})"


class Snapshot:
    """A cluster at one moment.

    The jobs are shared with the state that made them: a session copies a job before it changes it, and the state
    replaces a job that a snapshot has seen instead of changing it.  ``table`` belongs to the snapshot alone.
    ``node_tasks[row]`` are the tasks on a node by ``namespace/name``.  ``templates`` holds those of all pods, perhaps
    of some that are gone too; None: not known.  ``services`` are the selectors of Services and of what
    manages pods, by namespace and object (``Service/web``, ``ReplicaSet/web-1``).
    ``reserved`` are the tasks whose pods state a reservation, usable or not.
    ``queueless`` are the jobs that are left out because their queue does not exist, each with the queue's name.
    ``close_jobs`` are those that ask for closeness or a topology group, or lie in a hypernode; None: not known.
    ``open_jobs`` are those that are not known to be settled, and the first of each queue, older first; None: not known.
    ``holdings`` is what each of the jobs holds, in their order, ``jobs_by_priority`` those of which single tasks may be
    evicted (:func:`~stromboli.model.job.gives_single_tasks`); None: not known.
    ``usage`` is what was measured of nodes by name, ``budgets`` are the disruption budgets, ``claims`` the
    devices that ResourceClaims ask for by ``namespace/name``, ``storage`` and ``devices`` the objects of volumes and
    devices.  ``memory`` is what plugins keep from cycle to cycle, by plugin; ``numa`` what is known of the NUMA nodes
    of nodes,
    ``device_settings`` what ConfigMaps say of devices, by ``namespace/name``.
    ``shard`` are the nodes that are this scheduler's own; None: all are.
    ``utc_offset`` is how many seconds local time is ahead of UTC.
    """

    __slots__ = (
        "axes",
        "budgets",
        "claims",
        "close_jobs",
        "cluster_uid",
        "device_settings",
        "devices",
        "holdings",
        "hyper_node_tiers",
        "hyper_nodes",
        "hyper_nodes_ready",
        "inconsistencies",
        "jobs",
        "jobs_by_priority",
        "memory",
        "namespace_labels",
        "node_tasks",
        "numa",
        "number",
        "open_jobs",
        "queue_sums",
        "queueless",
        "queues",
        "quotas",
        "reserved",
        "services",
        "shard",
        "storage",
        "table",
        "templates",
        "usage",
        "utc_offset",
    )  # fmt: skip

    def __init__(self, axes: Axes, table: NodeTable) -> None:
        self.axes, self.table = axes, table
        self.templates: Sequence[PodTemplate] | None = None
        self.jobs: dict[str, Job] = {}
        self.close_jobs: Sequence[str] | None = None
        self.open_jobs: Sequence[str] | None = None
        self.holdings: Holdings | None = None
        self.jobs_by_priority: JobsByPriority | None = None
        self.queueless: Mapping[str, str] = {}
        self.queues: dict[str, Queue] = {}
        self.queue_sums: dict[str, QueueSums] = {}
        self.quotas: Mapping[str, Mapping[str, ResourceQuota]] = {}
        self.namespace_labels: Mapping[str, Mapping[str, str]] = {}
        self.services: Mapping[str, Mapping[str, LabelSelector]] = {}
        self.usage: Mapping[str, NodeUsage] = {}
        self.budgets: Sequence[DisruptionBudget] = ()
        self.claims: Mapping[str, Demand] = {}
        self.storage, self.devices = Storage(), DeviceObjects()
        self.memory: Mapping[str, Mapping[str, float]] = {}
        self.utc_offset = 0
        self.shard: Shard | None = None
        self.numa: Topologies = {}
        self.device_settings: Mapping[str, DeviceSettings] = {}
        self.node_tasks: Sequence[NodeTasks] = ()
        self.reserved: Sequence[Task] = ()
        self.hyper_nodes: dict[str, HyperNodeInfo] = {}
        self.hyper_node_tiers: dict[str, int] = {}
        self.hyper_nodes_ready = True
        self.cluster_uid = "00000000-0000-0000-0000-000000000000"
        self.number = 0
        self.inconsistencies: list[str] = []

    def pods_on_nodes(self) -> Iterator[tuple[Task, int]]:
        """Tasks on nodes, with their rows."""
        return ((task, row) for row, tasks in enumerate(self.node_tasks) for task in tasks.values())

    def all_templates(self) -> Sequence[PodTemplate]:
        """Templates of all pods on nodes and of all jobs."""
        if self.templates is not None:
            return self.templates
        placed = (task.template for task, _ in self.pods_on_nodes())
        return list(dict.fromkeys((*placed, *(t.template for job in self.jobs.values() for t in job.tasks.values()))))

    def spread_selector(self, task: Task) -> LabelSelector | None:
        """What the services and the controller of ``task`` select, together; None when it belongs to none."""
        named = self.services.get(task.namespace)
        return belonging(task.labels, task.controller, named) if named else None


__all__ = ["HyperNodeInfo", "NodeTasks", "QueueSums", "Snapshot"]
