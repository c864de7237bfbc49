"""The questions of a session, one for each extension point: what ``session.ask`` offers, with their types.

The names and parameters are those of the table of points, its two events left out; a test compares the two.
"""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping, Sequence
from typing import Protocol, TypeVar

from stromboli.framework.books.cycle_state import CycleState
from stromboli.framework.books.jobs import QueueInfo
from stromboli.framework.extension.reason import Reason
from stromboli.model.job import Job
from stromboli.model.snapshot import HyperNodeInfo
from stromboli.model.subjobs import SubJob
from stromboli.model.table import Node
from stromboli.model.task import Task

T_contra = TypeVar("T_contra", contravariant=True)


class Comparison(Protocol[T_contra]):
    """A comparison of two things: negative where the left one comes first.

    ``opinion`` asks the plugins alone; 0 where none of them tells the two apart.
    """

    def __call__(self, left: T_contra, right: T_contra, /) -> int:
        """The plugins' answer, with a tie-breaker where they have none."""
        ...

    def opinion(self, left: T_contra, right: T_contra, /) -> int:
        """The plugins' answer alone."""
        ...


class Ask(Protocol):
    """What a session asks its plugins, merged into one answer."""

    @property
    def job_order(self) -> Comparison[Job]:
        """Which of two jobs comes first."""
        ...

    @property
    def queue_order(self) -> Comparison[QueueInfo]:
        """Which of two queues comes first."""
        ...

    @property
    def task_order(self) -> Comparison[Task]:
        """Which of two tasks of a job comes first."""
        ...

    @property
    def sub_job_order(self) -> Comparison[SubJob]:
        """Which of two sub-jobs of a job comes first."""
        ...

    @property
    def cluster_order(self) -> Comparison[object]:
        """Which of two clusters comes first."""
        ...

    def victim_queue_order(self, left: QueueInfo, right: QueueInfo, preemptor_queue: QueueInfo | None, /) -> int:
        """Negative: tasks of ``left`` are evicted first."""
        ...

    def job_valid(self, job: Job, /) -> tuple[str, str] | None:
        """Reason and message where the job cannot be scheduled; None where it can."""
        ...

    def job_ready(self, job: Job, /) -> bool:
        """Whether the job has enough tasks to be bound."""
        ...

    def job_pipelined(self, job: Job, /) -> bool:
        """Whether the job has enough tasks once reserved room is free."""
        ...

    def job_starving(self, job: Job, /) -> bool:
        """Whether the job still wants room of others."""
        ...

    def job_enqueueable(self, job: Job, /) -> bool:
        """Whether the job is admitted."""
        ...

    def job_enqueued(self, job: Job, /) -> None:
        """The job has been admitted."""
        ...

    def sub_job_ready(self, job: Job, sub_job: SubJob, /) -> bool:
        """Whether the sub-job has enough tasks to be bound; of a job without parts, whether the job has."""
        ...

    def sub_job_pipelined(self, job: Job, sub_job: SubJob, /) -> bool:
        """As :meth:`sub_job_ready`, once reserved room is free."""
        ...

    def overused(self, queue: QueueInfo, /) -> bool:
        """Whether the queue holds more than it may."""
        ...

    def allocatable(self, queue: QueueInfo, task: Task, /) -> bool:
        """Whether the queue may hold the task as well."""
        ...

    def preemptive(self, queue: QueueInfo, tasks: Sequence[Task], /) -> bool:
        """Whether the queue may evict tasks of other queues for ``tasks``."""
        ...

    def target_job(self, jobs: Sequence[Job], /) -> Job | None:
        """The job for which room is set aside."""
        ...

    def reserved_nodes(self) -> None:
        """Have nodes set aside."""
        ...

    def pre_predicate(self, task: Task, /) -> Reason | None:
        """Why the task fits no node at all; None where it may fit some."""
        ...

    def predicate(self, task: Task, node: Node, /) -> Reason | None:
        """Why the task does not fit the node, room aside; None where it fits."""
        ...

    def predicate_for_allocate(self, task: Task, node: Node, /) -> Reason | None:
        """As :meth:`predicate`."""
        ...

    def predicate_for_preempt(self, task: Task, node: Node, /) -> Reason | None:
        """Why no eviction could make the task fit the node; None where one could."""
        ...

    def node_order(self, task: Task, node: Node, /) -> float:
        """The score of a node for the task."""
        ...

    def batch_node_order(self, task: Task, nodes: Sequence[Node], /) -> dict[str, float]:
        """The scores of nodes for the task, by their names."""
        ...

    def node_map(self, task: Task, node: Node, /) -> float:
        """The score of a node before scores are reduced."""
        ...

    def node_reduce(self, task: Task, scores: MutableMapping[str, float], /) -> None:
        """Edit the scores of nodes in place."""
        ...

    def best_node(self, task: Task, nodes_by_score: Mapping[float, Sequence[Node]], /) -> Node | None:
        """The node that is chosen; None leaves the choice to the engine."""
        ...

    def hyper_node_order(
        self, sub_job: SubJob, nodes_by_hyper_node: Mapping[str, Sequence[Node]], /
    ) -> dict[str, float]:
        """The scores of hypernodes for the sub-job, by their names."""
        ...

    def hyper_node_gradient_for_job(
        self, job: Job, hyper_node: HyperNodeInfo, purpose: str, /
    ) -> list[list[HyperNodeInfo]]:
        """The hypernodes below ``hyper_node`` in the order in which the job is tried in them."""
        ...

    def hyper_node_gradient_for_sub_job(
        self, sub_job: SubJob, hyper_node: HyperNodeInfo, purpose: str, /
    ) -> list[list[HyperNodeInfo]]:
        """The hypernodes below ``hyper_node`` in the order in which the sub-job is tried in them."""
        ...

    def preemptable(self, preemptor: Task, preemptees: Sequence[Task], /) -> list[Task]:
        """Those of the tasks that ``preemptor`` may evict within its queue."""
        ...

    def reclaimable(self, reclaimer: Task, reclaimees: Sequence[Task], /) -> list[Task]:
        """Those of the tasks of other queues that ``reclaimer`` may evict."""
        ...

    def unified_evictable(self, context: object, candidates: Sequence[Task], /) -> list[Task]:
        """Those of the tasks that a gang may evict."""
        ...

    def victim_tasks(self, tasks: Sequence[Task], /) -> list[Task]:
        """Those of the tasks that are to be evicted whatever waits."""
        ...

    def simulate_add_task(self, state: CycleState, task_to_schedule: Task, task: Task, node: Node, /) -> Reason | None:
        """``task`` comes back to the node in a trial for ``task_to_schedule``."""
        ...

    def simulate_remove_task(
        self, state: CycleState, task_to_schedule: Task, task: Task, node: Node, /
    ) -> Reason | None:
        """``task`` leaves the node in a trial for ``task_to_schedule``."""
        ...

    def simulate_predicate(self, state: CycleState, task: Task, node: Node, /) -> Reason | None:
        """Why the task does not fit the node in the trial; None where it fits."""
        ...

    def simulate_allocatable(self, state: CycleState, queue: QueueInfo, task: Task, /) -> bool:
        """Whether the queue may hold the task in the trial."""
        ...
