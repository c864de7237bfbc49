"""What plugins, and everything below the session, see of it: the cluster in this cycle, and the plan being made."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Protocol

from stromboli.framework.books.cycle_state import CycleState
from stromboli.framework.books.jobs import Figures, Jobs, QueueInfo
from stromboli.framework.books.ledger import Ledger
from stromboli.framework.books.plan import Plan
from stromboli.framework.config.compat import Compat
from stromboli.framework.config.config import Config
from stromboli.framework.extension.questions import Ask
from stromboli.model.job import Job
from stromboli.model.podgroup import PodGroupCondition
from stromboli.model.resources.axes import Axes
from stromboli.model.resources.resource import Resource
from stromboli.model.snapshot import HyperNodeInfo, Snapshot
from stromboli.model.spec import LabelSelector
from stromboli.model.subjobs import SubJob
from stromboli.model.table import NodeTable
from stromboli.model.task import PodTemplate, Task
from stromboli.narration.observe import BulkTeller, Observer, Teller


class ClusterView(Protocol):
    """The cluster as a session shows it.

    ``ask`` has one question an extension point; ``jobs`` gives the session's own copies (``peek_jobs`` looks without
    copying); ``ledger`` is where sums change; ``now`` is in seconds since 1970.  See
    :class:`~stromboli.framework.session.session.Session` for what each member does.
    """

    uid: str
    now: float
    compat: Compat
    config: Config
    observer: Observer
    snapshot: Snapshot
    axes: Axes
    table: NodeTable
    jobs: Jobs
    queues: dict[str, QueueInfo]
    ledger: Ledger
    plan: Plan
    ask: Ask

    # the cluster

    @property
    def total(self) -> list[int]:
        """What all nodes offer together, by column."""
        ...

    @property
    def total_resource(self) -> Resource:
        """What all nodes offer together."""
        ...

    @property
    def templates(self) -> Sequence[PodTemplate]:
        """Templates of all pods on nodes and of all jobs."""
        ...

    @property
    def placements(self) -> list[tuple[Task, int, int]]:
        """Tasks that came to a node (+1) or left it (-1) in this session: (task, row, sign), in order."""
        ...

    @property
    def quotas(self) -> Mapping[str, Mapping[str, Any]]:
        """ResourceQuotas by namespace and name."""
        ...

    @property
    def namespace_labels(self) -> Mapping[str, Mapping[str, str]]:
        """Labels of namespaces."""
        ...

    @property
    def hyper_nodes_ready_to_schedule(self) -> bool:
        """Whether jobs with a network topology may be placed."""
        ...

    @property
    def hyper_nodes(self) -> Mapping[str, HyperNodeInfo]:
        """Hypernodes by name, the virtual one above all nodes included: it is the parent of those without another."""
        ...

    @property
    def hyper_node_tier_name_map(self) -> Mapping[str, int]:
        """Tiers by their names."""
        ...

    @property
    def hyper_nodes_set_by_tier(self) -> Mapping[int, list[str]]:
        """Names of the hypernodes of each tier, closer tiers first."""
        ...

    @property
    def real_nodes_set(self) -> Mapping[str, frozenset[str]]:
        """Names of the nodes below each hypernode."""
        ...

    @property
    def top(self) -> HyperNodeInfo:
        """The virtual hypernode above all nodes: one tier above the highest."""
        ...

    def pods_on_nodes(self) -> Iterator[tuple[Task, int]]:
        """Tasks on nodes when the session opened, with their rows."""
        ...

    def default_spread_selector(self, task: Task) -> LabelSelector | None:
        """What the services and the controller of ``task`` select, together; None when it belongs to none."""
        ...

    # jobs and tasks

    def peek_jobs(self) -> Iterator[Job]:
        """All jobs, read-only and without copying any."""
        ...

    def peek_unsettled(self) -> Iterator[Job]:
        """As :meth:`peek_jobs`, without those about which nothing is left to decide or to say."""
        ...

    def job_of(self, task: Task) -> Job | None:
        """The job of ``task``, read-only; None for a task without one."""
        ...

    def cycle_state(self, task_uid: str) -> CycleState:
        """The scratch pad of a task, made at the first call."""
        ...

    def sub_jobs(self, job: Job) -> dict[str, SubJob]:
        """The parts of ``job`` by id; a job without subGroupPolicy has one, with the job's own id."""
        ...

    def tasks_in_turn(self, tasks: list[Task]) -> list[Task]:
        """``tasks`` of one job in the order in which they are placed."""
        ...

    def in_victim_order(self, actor: Task, tasks: Sequence[Task]) -> list[Task]:
        """``tasks`` in the order in which they are evicted for ``actor``."""
        ...

    # queues

    def sum_branches(self, ancestors: Mapping[str, Sequence[str]]) -> None:
        """From now on a queue's ``branch`` counts what the queues below it hold; ``ancestors`` are by queue."""
        ...

    def most_of(self, total: Resource) -> Resource:
        """The most that the cluster has had of what queues are guaranteed, ``total`` now."""
        ...

    def note_trouble(self, queue: str, fault: str, warning: str) -> None:
        """Note why a queue cannot be used, or may not get its guarantee."""
        ...

    def publish_figures(self, queue: str, figures: Figures) -> None:
        """Publish the figures of a queue."""
        ...

    # hooks

    def register(self, point: str, plugin: str, function: Callable[..., Any], form: str = "scalar") -> None:
        """Answer an extension point with ``function`` for ``plugin``; only while that plugin opens."""
        ...

    def add_event_handler(
        self, allocate: Callable[..., None] | None = None, deallocate: Callable[..., None] | None = None
    ) -> None:
        """Call the functions for every task that takes a place, or leaves it."""
        ...

    # what is kept and reported

    def hierarchy_enabled(self, plugin: str) -> bool:
        """Whether the first listing of ``plugin`` switches its hierarchy on."""
        ...

    def memory(self, plugin: str) -> dict[str, float]:
        """What ``plugin`` keeps from cycle to cycle, to be read and written; it travels with snapshots and plans."""
        ...

    def job_fit_error(self, job: Job) -> str:
        """Everything about a job that waits, in one sentence."""
        ...

    def record_pod_group_event(self, job: Job, kind: str, reason: str, message: str) -> None:
        """Have an event recorded on the PodGroup of ``job``."""
        ...

    def update_pod_group_condition(self, job: Job, condition: PodGroupCondition) -> None:
        """Replace the first condition of the same type on the PodGroup of ``job``, or add one."""
        ...

    def tells(self, key: str) -> Teller | None:
        """What to call, with the fields of the catalogue, when ``key`` happens; None where nothing listens."""
        ...

    def tell(self, key: str, /, **fields: object) -> None:
        """Report that ``key`` has happened."""
        ...

    def tells_all(self, key: str) -> BulkTeller | None:
        """What to call, with a number and columns of the fields, when ``key`` happens so many times at once."""
        ...
