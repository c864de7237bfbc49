"""A job: one PodGroup and its tasks, with the counts and sums that scheduling asks for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain

from stromboli.api.fields import NetworkTopology
from stromboli.api.scheduling import POD_GROUP_PENDING, PodGroupCondition
from stromboli.model.jobs.hyper_nodes import NO_HYPER_NODES
from stromboli.model.jobs.sums import Sums
from stromboli.model.podgroup import PodGroup
from stromboli.model.resources.resource import Resource
from stromboli.model.status import ALLOCATED_STATUS, READY_STATUS, TaskStatus
from stromboli.model.task import Task, twins

PENDING, ALLOCATED, PIPELINED = TaskStatus.Pending, TaskStatus.Allocated, TaskStatus.Pipelined
BINDING, BOUND, RUNNING = TaskStatus.Binding, TaskStatus.Bound, TaskStatus.Running
RELEASING, SUCCEEDED, FAILED = TaskStatus.Releasing, TaskStatus.Succeeded, TaskStatus.Failed

HELD_STATUS = ALLOCATED_STATUS | {PIPELINED}
"""States whose requests count against a queue's and a job's share within a session."""

_NONE: Mapping[str, Task] = {}


class JobFacts:
    """What a PodGroup says of its job, read once: shared by all copies of the job.

    ``is_split`` says whether it is placed in parts, ``is_close`` whether it or a part asks to stay close together.
    """

    __slots__ = (
        "budget",
        "group",
        "is_close",
        "is_split",
        "min_available",
        "min_resources",
        "min_vector",
        "network_topology",
        "preemptable",
        "priority",
        "queue",
        "revocable_zone",
        "task_min",
        "waiting_time",
    )

    def __init__(self, group: PodGroup, queue: str) -> None:
        self.group = group
        self.queue = queue
        self.priority = 0
        self.min_available = group.spec.min_member
        self.task_min: Mapping[str, int] = group.spec.min_task_member
        self.min_resources: Resource | None = None
        self.min_vector: tuple[int, ...] = ()
        self.waiting_time: float | None = None
        self.preemptable = False
        self.revocable_zone = ""
        self.budget: tuple[str, str] = ("", "")
        self.network_topology: NetworkTopology | None = group.spec.network_topology
        self.is_split = bool(group.spec.sub_group_policy)
        self.is_close = any((self.network_topology, *(part.network_topology for part in group.spec.sub_group_policy)))

    def with_group(self, group: PodGroup) -> JobFacts:
        """The same facts for a group whose status has changed."""
        twin = self._twin()
        twin.group = group
        return twin

    def with_priority(self, priority: int) -> JobFacts:
        """The same facts with another priority."""
        twin = self._twin()
        twin.priority = priority
        return twin

    def _twin(self) -> JobFacts:
        twin = JobFacts.__new__(JobFacts)
        for name in JobFacts.__slots__:
            setattr(twin, name, getattr(self, name))
        return twin


class Job:
    """One PodGroup with its tasks.

    ``uid`` is ``namespace/podgroup``.  ``index`` groups the tasks by status; ``sums`` adds their requests up.  A
    session works on a copy of its own; only :class:`~stromboli.framework.statement.statement.Statement` moves tasks
    there.
    ``phase``, ``conditions`` and ``fits`` are what the session has decided so far.  ``hyper_nodes`` are those in which
    the job lies.  ``best_effort`` is how many pending tasks ask for nothing.  ``roles`` counts tasks by status and
    role, from the moment on at which :func:`~stromboli.model.jobs.roles.role_counts` is first asked.  ``settled`` is
    what sessions have found of a job of a snapshot (:func:`~stromboli.framework.books.phases.is_settled`); None: not
    known yet.
    """

    __slots__ = (
        "annotations", "best_effort", "conditions", "facts", "fit_error_text", "fits", "gated", "hyper_nodes", "index",
        "name", "namespace", "phase", "roles", "settled", "stamp", "sums", "tasks", "uid",
    )  # fmt: skip

    def __init__(self, uid: str, facts: JobFacts | None = None) -> None:
        self.uid = uid
        self.namespace, _, self.name = uid.partition("/")
        self.facts = facts or _no_group(uid)
        self.tasks: dict[str, Task] = {}
        self.index: dict[TaskStatus, dict[str, Task]] = {}
        self.sums = Sums()
        self.phase = self.facts.group.status.phase
        self.conditions: tuple[PodGroupCondition, ...] = self.facts.group.status.conditions
        self.annotations: Mapping[str, str] = self.facts.group.annotations
        self.fits: dict[str, object] = {}
        self.fit_error_text = ""
        self.hyper_nodes = NO_HYPER_NODES
        self.stamp = self.gated = self.best_effort = 0
        self.roles: dict[TaskStatus, dict[str, int]] | None = None
        self.settled: bool | None = None

    def __repr__(self) -> str:
        return f"Job({self.uid!r})"

    def copy(self) -> Job:
        """A job with tasks, sums and decisions of its own; what never changes is shared."""
        twin = Job.__new__(Job)
        twin.uid, twin.namespace, twin.name, twin.facts = self.uid, self.namespace, self.name, self.facts
        twin.tasks = tasks = twins(self.tasks)
        twin.index = {status: {uid: tasks[uid] for uid in members} for status, members in self.index.items()}
        twin.sums = self.sums.copy()
        twin.phase, twin.conditions, twin.annotations = self.phase, self.conditions, self.annotations
        twin.fits, twin.fit_error_text = {}, ""
        twin.hyper_nodes, twin.stamp = self.hyper_nodes, self.stamp
        twin.gated, twin.best_effort, twin.roles, twin.settled = self.gated, self.best_effort, None, None
        return twin

    # ------------------------------------------------------------------ what the PodGroup says

    @property
    def group(self) -> PodGroup:
        """The PodGroup as last read."""
        return self.facts.group

    @property
    def queue(self) -> str:
        """Name of the job's queue."""
        return self.facts.queue

    @property
    def priority(self) -> int:
        """Value of the PodGroup's priority class."""
        return self.facts.priority

    @property
    def min_available(self) -> int:
        """How many tasks must run at once."""
        return self.facts.min_available

    @property
    def created(self) -> int:
        """Creation of the PodGroup, in seconds since 1970."""
        return self.facts.group.created

    def is_pending(self) -> bool:
        """Whether the job has not been admitted yet."""
        return self.phase in ("", POD_GROUP_PENDING)

    # ------------------------------------------------------------------ tasks

    def add(self, task: Task) -> None:
        """Take ``task`` in."""
        task.share(self.tasks)
        self.tasks[task.uid] = task
        self.gated += bool(task.gates)
        self.index.setdefault(task.status, {})[task.uid] = task
        self.sums.count(task.status, task.template.vector, 1)
        self._count_beside(task, 1)

    def fill(self, tasks: dict[str, Task], index: dict[TaskStatus, dict[str, Task]]) -> None:
        """Take in all tasks at once, in the orders that they had elsewhere; their sums come from there, too."""
        self.tasks, self.index = tasks, index
        self.gated = sum(bool(task.gates) for task in tasks.values())
        self.best_effort = sum(task.template.best_effort for task in self.of(PENDING))

    def remove(self, uid: str) -> Task:
        """Let the task with ``uid`` go and return it; KeyError when there is none."""
        task = self.tasks.pop(uid)
        self.gated -= bool(task.gates)
        members = self.index[task.status]
        del members[task.uid]
        if not members:
            del self.index[task.status]
        self.sums.count(task.status, task.template.vector, -1)
        self._count_beside(task, -1)
        return task

    def exchange(self, new: Task) -> None:
        """Take ``new`` in for the task of its uid, with which it :func:`~stromboli.model.task.counts_alike`.

        It is the last of the tasks now, as if one had left and the other come.
        """
        new.share(self.tasks)
        old = self.tasks.pop(new.uid)
        self.tasks[new.uid] = new
        members = self.index[old.status]
        del members[old.uid]
        if not members:
            del self.index[old.status]
        self.index.setdefault(new.status, {})[new.uid] = new
        self.sums.moves += 1
        if self.roles is not None:
            self._count_roles((old,), old.status, -1)
            self._count_roles((new,), new.status, 1)

    def _count_beside(self, task: Task, sign: int) -> None:
        """Count a task that comes, or with -1 goes, where more than its request is counted."""
        if task.status is PENDING and task.template.best_effort:
            self.best_effort += sign
        if self.roles is not None:
            self._count_roles((task,), task.status, sign)

    def move(self, tasks: Sequence[Task], status: TaskStatus) -> None:
        """Put ``tasks`` (of this job, with equal templates and one status, each once) into ``status``."""
        old, template = tasks[0].status, tasks[0].template
        self.sums.move(old, status, template.vector, len(tasks))
        if template.best_effort:
            self.best_effort += len(tasks) * ((status is PENDING) - (old is PENDING))
        self.shift(tasks, status)

    def shift(self, tasks: Sequence[Task], status: TaskStatus) -> None:
        """As :meth:`move`, with any templates, where no sum tells the two states apart."""
        old = tasks[0].status
        members = self.index[old]
        for task in tasks:
            del members[task.uid]
        if not members:
            del self.index[old]
        into = self.index.setdefault(status, {})
        for task in tasks:
            task.status = status
            into[task.uid] = task
        self.sums.moves += 1
        if self.roles is not None:
            self._count_roles(tasks, old, -1)
            self._count_roles(tasks, status, 1)

    def _count_roles(self, tasks: Sequence[Task], status: TaskStatus, sign: int) -> None:
        counts = (self.roles or {}).setdefault(status, {})
        for task in tasks:
            counts[task.role] = counts.get(task.role, 0) + sign

    def of(self, *statuses: TaskStatus) -> Iterator[Task]:
        """Tasks in any of ``statuses``, status by status."""
        index = self.index
        if len(statuses) == 1:
            return iter(index.get(statuses[0], _NONE).values())
        return chain.from_iterable([index[status].values() for status in statuses if status in index])

    def number(self, *statuses: TaskStatus) -> int:
        """How many tasks are in any of ``statuses``."""
        index, total = self.index, 0
        for status in statuses:
            if status in index:
                total += len(index[status])
        return total

    # ------------------------------------------------------------------ counters and checks

    def ready_task_num(self) -> int:
        """Tasks that run, will run, or have succeeded."""
        ready = 0
        for status, members in self.index.items():
            if status in READY_STATUS:
                ready += len(members)
        return ready

    def waiting_task_num(self) -> int:
        """Tasks placed on room that is about to become free."""
        return self.number(PIPELINED)

    def pending_best_effort_num(self) -> int:
        """Pending tasks that ask for nothing."""
        return self.best_effort

    def valid_task_num(self) -> int:
        """Tasks that run, have succeeded, or may still run."""
        return self.ready_task_num() + self.number(PIPELINED, PENDING)

    def is_ready(self) -> bool:
        """Whether the gang is complete."""
        return self.ready_task_num() + self.pending_best_effort_num() >= self.min_available

    def is_pipelined(self) -> bool:
        """Whether the gang is complete once pipelined tasks have their room."""
        ready = self.ready_task_num() + self.waiting_task_num()
        return ready + self.pending_best_effort_num() >= self.min_available

    def is_starving(self) -> bool:
        """Whether the gang lacks tasks, best-effort ones not counted."""
        return self.waiting_task_num() + self.ready_task_num() < self.min_available


def _no_group(uid: str) -> JobFacts:
    namespace, _, name = uid.partition("/")
    return JobFacts(PodGroup(uid="", namespace=namespace, name=name), queue="")


def gives_single_tasks(job: Job) -> bool:
    """Whether tasks of ``job`` run or are bound and may be evicted without the others; they may refuse that."""
    return (RUNNING in job.index or BOUND in job.index) and not job.facts.group.evicted_whole
