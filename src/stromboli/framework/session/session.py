"""One cycle's view of the cluster, and everything that actions and plugins may ask of it or do to it."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property, partial
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from stromboli.framework.books.candidates import Candidates
from stromboli.framework.books.cycle_state import CycleState
from stromboli.framework.books.hyper_nodes import HyperNodes
from stromboli.framework.books.jobs import Jobs
from stromboli.framework.books.ledger import Ledger
from stromboli.framework.books.plan import Plan
from stromboli.framework.books.pod_groups import PodGroups
from stromboli.framework.books.queues import Queues
from stromboli.framework.config.config import Config
from stromboli.framework.engine.placement import Ties
from stromboli.framework.engine.placer import Placer
from stromboli.framework.extension.capabilities import CAPABILITIES, NOTHING, RECORDED, capability
from stromboli.framework.extension.guarded import PluginFailed
from stromboli.framework.extension.plugin import Plugin
from stromboli.framework.extension.points import POINTS
from stromboli.framework.extension.questions import Ask
from stromboli.framework.extension.session_hooks import SessionHooks
from stromboli.framework.session import closing, opened, opening, topology
from stromboli.framework.session.reference import ReferenceView
from stromboli.framework.session.victim_order import VictimOrder
from stromboli.framework.statement.session_state import PluginSource
from stromboli.framework.statement.statement import Statement
from stromboli.framework.statement.statement_events import StatementEvents
from stromboli.framework.statement.underflow import tell_underflow
from stromboli.model.job import Job
from stromboli.model.snapshot import Snapshot
from stromboli.model.subjobs import SubJob
from stromboli.model.table import Node
from stromboli.model.task import Task
from stromboli.narration.narrator import Narrator
from stromboli.narration.observe import SILENT, Observer, Teller
from stromboli.reservations.book import Reservations
from stromboli.reservations.restore import restore


class Session:
    """Open it with :meth:`open` in a ``with`` block; its ``plan`` is complete when the block ends.

    ``jobs`` gives the session's own copies, ``queues`` and ``hyper_nodes`` are by name, ``table`` has the nodes as
    columns, and ``ledger`` is where all sums change.  ``hooks`` are the answers of the ``plugins``, and ``ask`` has one
    question an extension point.  ``pod_groups`` notes conditions and events of jobs.  ``now`` is in seconds since
    1970; ``to_come`` are the actions that follow the one that runs, in order.

    Plugins written to the reference's documentation find its names here, too: see
    :class:`~stromboli.framework.session.reference.ReferenceView`.
    """

    def __init__(
        self, snapshot: Snapshot, config: Config, registry: PluginSource, now: float, seed: int, observer: Observer,
        capabilities: Mapping[str, object],
    ) -> None:  # fmt: skip
        self._capabilities = capabilities
        self.snapshot, self.config, self.registry = snapshot, config, registry
        self.now, self.seed, self.compat = now, seed, config.ways
        self.uid = str(uuid.uuid5(uuid.UUID(snapshot.cluster_uid), f"{snapshot.number}/{seed}"))
        self.plan = Plan(session=self.uid)
        self.to_come: Sequence[str] = ()
        self.narrator = Narrator(observer)
        self.axes, self.table = snapshot.axes, snapshot.table.copy()
        self.jobs = Jobs(snapshot.jobs, snapshot.open_jobs, snapshot.holdings)
        self.ledger = Ledger(self.table, {name: snapshot.queue_sums[name].copy(self.axes) for name in snapshot.queues})
        self.ledger.follows_placements = config.follows_placements
        self.ledger.restores_evicted = not self.compat.asks("spared-pods")
        self.ledger.on_underflow = partial(tell_underflow, self)
        self.queues = Queues(snapshot, self.ledger, self.plan, self.memory, self.tells)
        self.pod_groups = PodGroups(self.plan, now)
        self.hooks = SessionHooks(len(config.tiers))
        self.plugins: dict[str, Plugin] = {}
        self.reservations = Reservations(self) if config.keeps_reservations else None
        self.ties = Ties(seed if config.tie_break == "seeded" or self.compat.asks("tie-break") else None)
        self._cycle_states: dict[str, CycleState] = {}
        self._sub_jobs: dict[str, dict[str, SubJob]] = {}

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

    # ------------------------------------------------------------------ nodes

    @property
    def nodes(self) -> Mapping[str, Node]:
        """Nodes by name, in snapshot order."""
        return {name: Node(self.table, row) for row, name in enumerate(self.table.statics.names)}

    @cached_property
    def hyper_nodes(self) -> HyperNodes:
        """Hypernodes by name."""
        return HyperNodes(self.snapshot)

    @cached_property
    def candidates(self) -> Candidates:
        """The running tasks that may be evicted at all, node by node."""
        return Candidates(self.snapshot, self.jobs, self.ledger)

    # ------------------------------------------------------------------ jobs and tasks

    def active_jobs(self) -> Iterator[Job]:
        """All jobs, read-only, without those about which nothing is left to decide or to report.

        Those are the settled ones (:func:`~stromboli.framework.books.phases.is_settled`) that the session has left
        alone; the first job of each queue is never left out.
        """
        if self.compat.asks("events-while-bound"):  # then there is always something to report
            return self.jobs.peek()
        return self.jobs.peek_unsettled({*self.pod_groups.conditions, *self.pod_groups.unschedulable})

    def job_of(self, task: Task) -> Job | None:
        """The job of ``task``, read-only; None for a task without one."""
        return self.jobs.peek_at(task.job)

    def sub_jobs(self, job: Job) -> dict[str, SubJob]:
        """The parts of ``job`` by id; a job without subGroupPolicy has one, with the job's own id."""
        found = self._sub_jobs.get(job.uid)
        if not found or next(iter(found.values())).job is not job:
            found = self._sub_jobs[job.uid] = topology.parts(self, job, found or {})
        return found

    def tasks_in_turn(self, tasks: list[Task]) -> list[Task]:
        """``tasks`` of one job in the order in which they are placed."""
        return self.hooks.tasks_in_turn(tasks)

    def in_victim_order(self, actor: Task, tasks: Sequence[Task]) -> list[Task]:
        """``tasks`` in the order in which they are evicted for ``actor``."""
        job = self.job_of(actor)
        return VictimOrder(self, self.queues.get(job.queue) if job else None).sorted(tasks)

    def cycle_state(self, task_uid: str) -> CycleState:
        """The scratch pad of a task, made at the first call."""
        return self._cycle_states.setdefault(task_uid, CycleState())

    def memory(self, plugin: str) -> dict[str, float]:
        """What ``plugin`` keeps from cycle to cycle, to be read and written; it travels with snapshots and plans."""
        kept = self.plan.memory.get(plugin)
        if kept is None:
            kept = self.plan.memory[plugin] = dict(self.snapshot.memory.get(plugin, {}))
        return kept

    def statement(self) -> Statement:
        """A new transaction; use it in a ``with`` block."""
        return Statement(self)

    # ------------------------------------------------------------------ reports

    def tells(self, key: str) -> Teller | None:
        """What to call, with the fields of the catalogue, when ``key`` happens; None where nothing listens."""
        return self.narrator.tells(key)

    def tell(self, key: str, /, **fields: object) -> None:
        """Report that ``key`` has happened; where fields cost much ask :meth:`tells` first."""
        if say := self.tells(key):
            say(**fields)

    @cached_property
    def statement_events(self) -> StatementEvents:
        """Reports what statements do."""
        return StatementEvents(self)

    # ------------------------------------------------------------------ plugins

    def register(self, point: str, plugin: str, function: Callable[..., Any], form: str = "scalar") -> None:
        """Answer an extension point with ``function`` for ``plugin``; only while that plugin opens.

        ``add_<point>(plugin, function)`` is the same.  Raises PluginError for an unknown point or at another time.
        """
        self.hooks.register(point, plugin, function, form)

    if not TYPE_CHECKING:  # a type checker shall refuse other names

        def __getattr__(self, name: str) -> Any:
            if name.startswith("add_") and name[4:] in POINTS:
                return partial(self.register, name[4:])
            if name in CAPABILITIES:
                offered = capability(self._capabilities, name, self.hooks.opening_name)
                self.plan.replayable &= name in RECORDED  # it depends on more than the snapshot from now on
                return offered
            if name.startswith("_") or not hasattr(ReferenceView, name):
                raise AttributeError(name)
            return getattr(ReferenceView(self), name)

    def put_aside(self, failure: PluginFailed) -> None:
        """Go on without a plugin that raised an error, and report it."""
        self.hooks.answers.drop(failure.plugin)
        self.plan.inconsistencies.append(f"plugin {failure}")
        self.tell("plugin_failed", name=failure.plugin, error=str(failure))

    def recompile(self) -> None:
        """Merge the answers of the plugins that are left into ``ask`` and the engine."""
        opening.compile_answers(self)
