"""One cycle's view of the cluster, and everything that actions and plugins may ask of it or do to it."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property, partial
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import numpy.typing as npt

from stromboli.framework.books.cycle_state import CycleState
from stromboli.framework.books.jobs import Jobs, QueueInfo
from stromboli.framework.books.ledger import Ledger
from stromboli.framework.books.plan import Event, Plan
from stromboli.framework.config.config import Config, PluginOption
from stromboli.framework.engine.messages import fit_error
from stromboli.framework.engine.placement import Ties
from stromboli.framework.engine.placer import Placer
from stromboli.framework.extension.capabilities import CAPABILITIES, NOTHING, capability
from stromboli.framework.extension.guarded import PluginFailed
from stromboli.framework.extension.plugin import Plugin
from stromboli.framework.extension.points import POINTS
from stromboli.framework.extension.questions import Ask
from stromboli.framework.extension.session_hooks import SessionHooks
from stromboli.framework.session import closing, opened, opening, topology
from stromboli.framework.session.queue_views import Queues
from stromboli.framework.session.victim_order import VictimOrder
from stromboli.framework.session.views import TOP as TOP
from stromboli.framework.session.views import Views
from stromboli.framework.statement import session_ops
from stromboli.framework.statement.counters import Counters
from stromboli.framework.statement.session_state import PluginSource
from stromboli.framework.statement.statement import Statement
from stromboli.framework.statement.statement_events import StatementEvents
from stromboli.framework.statement.underflow import tell_underflow
from stromboli.model.job import Job
from stromboli.model.podgroup import PodGroupCondition
from stromboli.model.resources.resource import Resource
from stromboli.model.snapshot import HyperNodeInfo, Snapshot
from stromboli.model.subjobs import SubJob
from stromboli.model.table import Node, totals
from stromboli.model.task import PodTemplate, Task
from stromboli.model.values.times import stamp
from stromboli.narration.mute import Mute
from stromboli.narration.observe import SILENT, BulkTeller, Observer, Teller, teller, teller_all
from stromboli.reservations.book import Reservations
from stromboli.reservations.restore import restore
from stromboli.reservations.terminating import Terminating


class Session(Views, Queues):
    """Open it with :meth:`open` in a ``with`` block; its ``plan`` is complete when the block ends.

    ``ask`` has one question an extension point; ``jobs`` gives the session's own copies (``peek_jobs`` looks without
    copying); ``ledger`` is where sums change; ``now`` is in seconds since 1970; ``to_come`` are the actions that follow
    the one that runs, in order.
    """

    def __init__(
        self, snapshot: Snapshot, config: Config, registry: PluginSource, now: float, seed: int, observer: Observer,
        capabilities: Mapping[str, object],
    ) -> None:  # fmt: skip
        self._capabilities = capabilities
        self.snapshot, self.config, self.registry, self.observer = snapshot, config, registry, observer
        self.now, self.seed, self.compat = now, seed, config.ways
        self.uid = str(uuid.uuid5(uuid.UUID(snapshot.cluster_uid), f"{snapshot.number}/{seed}"))
        self.plan = Plan(session=self.uid)
        self.to_come: Sequence[str] = ()
        self.axes, self.table = snapshot.axes, snapshot.table.copy()
        self.jobs = Jobs(snapshot.jobs)
        self.queues: dict[str, QueueInfo] = {
            name: QueueInfo(queue, snapshot.queue_sums[name].copy(self.axes), self.axes)
            for name, queue in snapshot.queues.items()
        }
        self.ledger = Ledger(self.table, {name: queue.sums for name, queue in self.queues.items()})
        self.ledger.follow = config.follows_placements
        self.ledger.returns = not self.compat.asks("spared-pods")
        self.ledger.short = partial(tell_underflow, self)
        self.hooks = SessionHooks(len(config.tiers))
        self.reservations = Reservations(self) if config.keeps_reservations else None
        self.terminating = Terminating(self) if config.keeps_reservations else None
        self.ties = Ties(seed if config.tie_break == "seeded" or self.compat.asks("tie-break") else None)
        self.plugins: dict[str, Plugin] = {}
        self.dirty_jobs: set[str] = set()
        self.conditions: dict[str, tuple[PodGroupCondition, ...]] = {}
        self.unschedulable: set[str] = set()
        self.mute = Mute()
        self._tellers: dict[str, Teller | None] = {}
        self._bulk_tellers: dict[str, BulkTeller | None] = {}
        self._cycle_states: dict[str, CycleState] = {}
        self._sub_jobs: dict[str, dict[str, SubJob]] = {}
        self._fit_errors: dict[str, str] = {}

    @classmethod
    def open(
        cls,
        snapshot: Snapshot,
        config: Config,
        registry: PluginSource,
        now: float = 0.0,
        seed: int = 0,
        observer: Observer = SILENT,
        capabilities: Mapping[str, object] = NOTHING,
    ) -> Self:
        """A session on ``snapshot`` with every plugin of ``config`` opened.

        ``now`` is the time in seconds since 1970; equal arguments give equal plans.  ``capabilities`` are what a live
        cluster offers beyond the snapshot, by the names in :data:`CAPABILITIES`.
        """
        observer.started("open_session", "")
        session = cls(snapshot, config, registry, now, seed, observer, capabilities)
        topology.settle(session)
        opening.open_plugins(session)
        opening.compile_answers(session)
        if snapshot.reserved:
            restore(session, session.reservations)
        opened.tell_opened(session)
        observer.ended("open_session", "")
        return session

    ask: Ask
    placer: Placer

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        closing.close(self)

    # ------------------------------------------------------------------ the cluster

    @cached_property
    def time(self) -> str:
        """``now`` as Kubernetes writes times."""
        return stamp(self.now)

    @cached_property
    def total(self) -> list[int]:
        """What all nodes offer together, by column."""
        return totals(self.table.alloc)

    @property
    def total_resource(self) -> Resource:
        """What all nodes offer together."""
        return self.axes.resource(self.total)

    @property
    def quotas(self) -> Mapping[str, Mapping[str, Any]]:
        """ResourceQuotas by namespace and name."""
        return self.snapshot.quotas

    namespace_info = quotas

    @property
    def namespace_labels(self) -> Mapping[str, Mapping[str, str]]:
        """Labels of namespaces."""
        return self.snapshot.namespace_labels

    def rows_of(self, hyper_node: HyperNodeInfo) -> npt.NDArray[np.bool_]:
        """Which rows of the node table lie below ``hyper_node``, shape (nodes,)."""
        within = np.zeros(len(self.table), dtype=bool)
        within[list(hyper_node.rows)] = True
        return within

    def only(self, row: int) -> npt.NDArray[np.bool_]:
        """A mask of one row, shape (nodes,)."""
        within = np.zeros(len(self.table), dtype=bool)
        within[row] = True
        return within

    @property
    def hyper_nodes_ready_to_schedule(self) -> bool:
        """Whether jobs with a network topology may be placed."""
        return self.snapshot.hyper_nodes_ready

    @property
    def tiers(self) -> tuple[tuple[PluginOption, ...], ...]:
        """The plugin tiers as loaded."""
        return self.config.tiers

    @property
    def configurations(self) -> tuple[Any, ...]:
        """The arguments of actions as loaded."""
        return self.config.configurations

    @property
    def placements(self) -> list[tuple[Task, int, int]]:
        """Tasks that came to a node (+1) or left it (-1) in this session: (task, row, sign), in order."""
        return self.ledger.log

    @cached_property
    def templates(self) -> Sequence[PodTemplate]:
        """Templates of all pods on nodes and of all jobs."""
        if self.snapshot.templates is not None:
            return self.snapshot.templates
        placed = (task.template for task, _ in self.pods_on_nodes())
        return list(dict.fromkeys((*placed, *(t.template for job in self.peek_jobs() for t in job.tasks.values()))))

    def pods_on_nodes(self) -> Iterator[tuple[Task, int]]:
        """Tasks on nodes when the session opened, with their rows."""
        for row, tasks in enumerate(self.snapshot.node_tasks):
            for task in tasks.values():
                yield task, row

    # ------------------------------------------------------------------ jobs and tasks

    def job_of(self, task: Task) -> Job | None:
        """The job of ``task``, read-only; None for a task without one."""
        return self.jobs.peek_at(task.job)

    def own(self, task: Task) -> Job:
        """The session's own copy of the job of ``task``; KeyError when there is none."""
        return self.jobs[task.job]

    def sub_jobs(self, job: Job) -> dict[str, SubJob]:
        """The parts of ``job`` by id; a job without subGroupPolicy has one, with the job's own id."""
        found = self._sub_jobs.get(job.uid)
        if not found or next(iter(found.values())).job is not job:
            found = self._sub_jobs[job.uid] = topology.parts(self, job, found or {})
        return found

    def tasks_in_turn(self, tasks: list[Task]) -> list[Task]:
        """``tasks`` of one job in the order in which they are placed."""
        return self.hooks.tasks_in_turn(tasks)

    def cycle_state(self, task_uid: str) -> CycleState:
        """The scratch pad of a task, made at the first call."""
        state = self._cycle_states.get(task_uid)
        if state is None:
            state = self._cycle_states[task_uid] = CycleState()
        return state

    def in_victim_order(self, actor: Task, tasks: Sequence[Task]) -> list[Task]:
        """``tasks`` in the order in which they are evicted for ``actor``."""
        job = self.job_of(actor)
        return VictimOrder(self, self.queues.get(job.queue) if job else None).sorted(tasks)

    def job_fit_error(self, job: Job) -> str:
        """Everything about a job that waits, in one sentence."""
        return fit_error(job)

    # ------------------------------------------------------------------ doing

    def statement(self) -> Statement:
        """A new transaction; use it in a ``with`` block."""
        return Statement(self)

    def allocate(self, task: Task, node: Node) -> None:
        """See :func:`stromboli.framework.statement.session_ops.allocate`: without a statement, never taken back."""
        session_ops.allocate(self, task, node)

    def pipeline(self, task: Task, node_name: str) -> None:
        """See :func:`stromboli.framework.statement.session_ops.pipeline`."""
        session_ops.pipeline(self, task, node_name)

    def evict(self, task: Task, reason: str) -> None:
        """See :func:`stromboli.framework.statement.session_ops.evict`."""
        session_ops.evict(self, task, reason)

    def predicate_nodes(self, task: Task, nodes: Iterable[Node | None]) -> list[Node]:
        """See :func:`stromboli.framework.statement.session_ops.predicate_nodes`."""
        return session_ops.predicate_nodes(self, task, nodes)

    def take_back(self, job: Job, tasks: Sequence[Task], rows: Sequence[int]) -> None:
        """Placed ``tasks`` become Pending again, handlers told while they still know their node."""
        status = tasks[0].status
        try:
            self.hooks.handlers.deallocated(tasks, rows)
        finally:
            self.ledger.remove(job, tasks, rows)
            self.statement_events.left(tasks, rows, status)

    def mark_job_dirty(self, job_uid: str) -> None:
        """Note that a job's placement data must outlive the session."""
        self.dirty_jobs.add(job_uid)

    def memory(self, plugin: str) -> dict[str, float]:
        """What ``plugin`` keeps from cycle to cycle, to be read and written; it travels with snapshots and plans."""
        kept = self.plan.memory.get(plugin)
        if kept is None:
            kept = self.plan.memory[plugin] = dict(self.snapshot.memory.get(plugin, {}))
        return kept

    def record_pod_group_event(self, job: Job, kind: str, reason: str, message: str) -> None:
        """Have an event recorded on the PodGroup of ``job``."""
        self.plan.events.append(Event("PodGroup", job.uid, kind, reason, message))

    def update_pod_group_condition(self, job: Job, condition: PodGroupCondition) -> None:
        """Replace the first condition of the same type on the PodGroup of ``job``, or add one."""
        closing.set_condition(self, job, condition)

    def hierarchy_enabled(self, plugin: str) -> bool:
        """Whether the first listing of ``plugin`` switches its hierarchy on."""
        options = (option for tier in self.config.tiers for option in tier)
        return next((option.enable_hierarchy for option in options if option.name == plugin), False)

    def is_job_terminated(self, job_uid: str) -> bool:
        """Whether the job has no PodGroup and no tasks any more."""
        return job_uid not in self.jobs

    # ------------------------------------------------------------------ telling

    def tells(self, key: str) -> Teller | None:
        """What to call, with the catalogue's fields, when ``key`` happens; None when nobody wants to know."""
        if key not in self._tellers:
            self._tellers[key] = self.mute.over(teller(self.observer, key))
        return self._tellers[key]

    def tell(self, key: str, /, **fields: object) -> None:
        """Tell whoever wants to know that ``key`` has happened; where fields cost much ask :meth:`tells` first."""
        if say := self.tells(key):
            say(**fields)

    def tells_all(self, key: str) -> BulkTeller | None:
        """What to call, with a number and columns of the fields, when ``key`` happens so many times at once."""
        if key not in self._bulk_tellers:
            self._bulk_tellers[key] = self.mute.over_all(teller_all(self.observer, key))
        return self._bulk_tellers[key]

    @cached_property
    def statement_events(self) -> StatementEvents:
        """Tells what statements do."""
        return StatementEvents(self, self.mute)

    @cached_property
    def counters(self) -> Counters:
        """Sums up what is told when the session closes."""
        return Counters(self)

    # ------------------------------------------------------------------ plugins

    def register(self, point: str, plugin: str, function: Callable[..., Any], form: str = "scalar") -> None:
        """Answer an extension point with ``function`` for ``plugin``; only while that plugin opens.

        ``add_<point>(plugin, function)`` is the same.  Raises PluginError for an unknown point or at another time.
        """
        self.hooks.register(point, plugin, function, form)

    def add_event_handler(
        self, allocate: Callable[..., None] | None = None, deallocate: Callable[..., None] | None = None
    ) -> None:
        """Be told of every task that takes a place, or leaves it."""
        name = self.hooks.opening_name
        for point, function in (("on_allocate", allocate), ("on_deallocate", deallocate)):
            if function is not None:
                self.register(point, name, function)

    if not TYPE_CHECKING:  # a type checker shall refuse other names

        def __getattr__(self, name: str) -> Any:
            if name.startswith("add_") and name[4:] in POINTS:
                return partial(self.register, name[4:])
            if name in CAPABILITIES:
                offered = capability(self._capabilities, name, self.hooks.opening_name)
                self.plan.replayable = False  # it depends on more than the snapshot from now on
                return offered
            raise AttributeError(name)

    def put_aside(self, failure: PluginFailed) -> None:
        """Go on without a plugin that raised; say so."""
        self.hooks.answers.drop(failure.plugin)
        self.plan.inconsistencies.append(f"plugin {failure}")
        if say := self.tells("plugin_failed"):
            say(name=failure.plugin, error=str(failure))

    def recompile(self) -> None:
        """Ask only the plugins that are still in."""
        opening.compile_answers(self)
