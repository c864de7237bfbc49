"""What plugins, and everything below the session, see of it: the cluster in this cycle, and the plan being made."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Protocol

from stromboli.framework.books.cycle_state import CycleState
from stromboli.framework.books.hyper_nodes import HyperNodes
from stromboli.framework.books.jobs import Jobs
from stromboli.framework.books.ledger import Ledger
from stromboli.framework.books.plan import Plan
from stromboli.framework.books.pod_groups import PodGroups
from stromboli.framework.books.queues import Queues
from stromboli.framework.config.compat import Compat
from stromboli.framework.config.config import Config
from stromboli.framework.extension.questions import Ask
from stromboli.model.job import Job
from stromboli.model.resources.axes import Axes
from stromboli.model.snapshot import Snapshot
from stromboli.model.subjobs import SubJob
from stromboli.model.table import Node, NodeTable
from stromboli.model.task import Task
from stromboli.narration.narrator import Narrator
from stromboli.narration.observe import Teller


class ClusterView(Protocol):
    """The cluster as a session shows it.

    ``ask`` has one question an extension point; ``jobs`` gives the session's own copies (``jobs.peek()`` looks without
    copying); ``ledger`` is where sums change; ``now`` is in seconds since 1970.  See
    :class:`~stromboli.framework.session.session.Session` for what each member does.
    """

    uid: str
    now: float
    seed: int
    compat: Compat
    config: Config
    snapshot: Snapshot
    axes: Axes
    table: NodeTable
    jobs: Jobs
    queues: Queues
    pod_groups: PodGroups
    ledger: Ledger
    plan: Plan
    narrator: Narrator
    ask: Ask

    @property
    def plugins(self) -> Mapping[str, object]:
        """The plugins that have opened so far, by name."""
        ...

    @property
    def nodes(self) -> Mapping[str, Node]:
        """Nodes by name, in snapshot order."""
        ...

    @property
    def hyper_nodes(self) -> HyperNodes:
        """Hypernodes by name."""
        ...

    # jobs and tasks

    def active_jobs(self) -> Iterator[Job]:
        """All jobs, read-only, without those about which nothing is left to decide or to report."""
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

    # hooks

    def register(self, point: str, plugin: str, function: Callable[..., Any], form: str = "scalar") -> None:
        """Answer an extension point with ``function`` for ``plugin``; only while that plugin opens."""
        ...

    # what is kept and reported

    def memory(self, plugin: str) -> dict[str, float]:
        """What ``plugin`` keeps from cycle to cycle, to be read and written; it travels with snapshots and plans."""
        ...

    def tells(self, key: str) -> Teller | None:
        """What to call, with the fields of the catalogue, when ``key`` happens; None where nothing listens."""
        ...

    def tell(self, key: str, /, **fields: object) -> None:
        """Report that ``key`` has happened."""
        ...
