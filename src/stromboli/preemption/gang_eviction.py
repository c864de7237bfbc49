"""The gang actions: room for a whole gang in one domain from bundles of victims, verified before it is taken.

For each starving job the domains are tried in order.  In a domain victims are bundled; bundle after bundle is added
until the domain would have the room, and then the gang is placed on trial with all of them evicted.  A trial that works
becomes part of the job's statement; otherwise it is reverted, and the next bundle is added.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import chain
from typing import ClassVar, NamedTuple

import numpy as np

from stromboli.allocation.pending_tasks import TaskCursor, Worksheet, by_part
from stromboli.errors import PlacementError
from stromboli.framework.books.candidates import Reach
from stromboli.framework.books.hyper_nodes import TOP
from stromboli.framework.books.jobs import QueueInfo
from stromboli.framework.engine.rows import Bools
from stromboli.framework.engine.shards import own_first
from stromboli.framework.extension.action import Action
from stromboli.framework.extension.guards import settled
from stromboli.framework.session.session import Session
from stromboli.framework.session.topology import is_hard, job_topology, nominate
from stromboli.framework.statement.operation_kind import OperationKind
from stromboli.framework.statement.statement import Statement
from stromboli.model.job import Job
from stromboli.model.names import PREEMPTABLE
from stromboli.model.resources.amounts import totals
from stromboli.model.resources.axes import CPU, MEMORY, Vector, add_to, amount_at
from stromboli.model.snapshot import HyperNodeInfo
from stromboli.model.subjobs import SubJob
from stromboli.model.task import Task
from stromboli.plugin import arg
from stromboli.preemption.bundles import Bundle, Kind, allowed, bundles_of, in_order, tasks_of, total
from stromboli.preemption.eviction_events import GangEvents
from stromboli.preemption.idle_room import IdleRoom
from stromboli.preemption.reprieve import Reprieve
from stromboli.preemption.starving import in_turn, jobs_in_turn, waiting
from stromboli.reservations.claims import YieldBeforeEviction
from stromboli.reservations.terminating import find

EVICT = "Evict"
"""The purpose for which plugins are asked for gradients here."""

DOMAINS = 8
"""How many domains are tried for a job if the configuration has no valid number."""


class EvictionContext(NamedTuple):
    """For which job and where pods are to be evicted: the argument of plugins at ``unified_evictable``."""

    kind: str
    job: Job
    hyper_node: str
    task: Task | None = None


class GangEviction(Action):
    """The flow of both actions; a subclass decides which tasks may be evicted, and in which order."""

    kind: ClassVar[str]
    skips: ClassVar[str]
    bound: ClassVar[bool]

    max_domains = arg("maxDomains", int, DOMAINS)
    allow_whole = arg("allowWholeBundle", bool, True)
    minimal_victims = arg("minimal-victims", bool, True)

    def execute(self, session: Session) -> None:
        """Make room for every starving job, queue by queue; each job has one turn."""
        if self.max_domains <= 0:
            session.tell("max_domains_invalid", value=self.max_domains, action=self.name)
            self.max_domains = DOMAINS
        found, holders = waiting(session, self.skips), YieldBeforeEviction(session)
        queues = in_turn(session, found.queues)
        with IdleRoom(session) as idle:
            while len(queues):
                queue = queues.pop()
                if not self.may_take(session, queue):
                    continue
                jobs = jobs_in_turn(session, found.of(queue.name))
                while len(jobs):
                    if not idle.serves(job := jobs.pop()):
                        self._turn(session, queue, job, idle, holders)

    def _turn(self, session: Session, queue: QueueInfo, job: Job, idle: IdleRoom, holders: YieldBeforeEviction) -> None:
        with session.statement() as released, session.statement() as statement:
            yielded = holders.release(released, job)
            attempt = Attempt(self, session, queue, job)
            places = attempt.run(statement)
            if not session.ask.job_pipelined(job) or (not yielded and idle.replaces(statement)):
                return
            if statement.has_evictions:
                attempt.events.evicts(self.name, job, attempt.domain, statement)
            if session.compat.asks("placed-once"):
                placed = (each for each in statement.operations if each.kind is OperationKind.PIPELINE)
                session.ledger.second_places.rows.update((each.tasks[0].uid, each.rows[0]) for each in placed)
            holders.settle(released, yielded, statement)
            released.commit()
            nominate(session, job, places)

    # ------------------------------------------------------------------ what the two actions differ in

    def may_take(self, session: Session, queue: QueueInfo) -> bool:
        """Whether jobs of ``queue`` may take room from others at all."""
        return True

    def may_ask(self, session: Session, queue: QueueInfo, job: Job, pending: Sequence[Task]) -> bool:
        """Whether ``job`` may take room for ``pending``."""
        return True

    def beyond_shares(self, session: Session, candidates: Sequence[Task]) -> Sequence[Task]:
        """Those of ``candidates`` that no queue's share protects, evaluated in order."""
        return candidates

    @abstractmethod
    def may_lose(self, session: Session, job: Job, other: Job) -> bool:
        """Whether tasks of ``other`` may be evicted for ``job``, before plugins vote."""

    @abstractmethod
    def compare(self, session: Session, job: Job, left: Job, right: Job) -> int:
        """Which of two jobs loses tasks first for ``job``: negative for the left one."""


def offers_itself(job: Job) -> bool:
    """Whether the PodGroup allows its tasks to be evicted together, which is the default."""
    says = PREEMPTABLE in job.group.annotations or PREEMPTABLE in job.group.labels
    return job.facts.preemptable or not says


class Attempt:
    """One job's turn."""

    def __init__(self, action: GangEviction, session: Session, queue: QueueInfo, job: Job) -> None:
        self.action, self.session, self.queue, self.job = action, session, queue, job
        self.events = GangEvents(session)
        self.sheet: Worksheet = by_part(session, job, gated=False)
        self.domain = ""
        self.was_ready = bool(session.ask.job_ready(job))
        parts = session.sub_jobs(job).values()
        self.close = is_hard(job_topology(session, job)) or any(is_hard(part.network_topology) for part in parts)

    def run(self, statement: Statement) -> Mapping[str, str]:
        """Make room and reserve it in ``statement``; returns the hypernode of each placed part, none if that failed."""
        pending = self._pending()
        if not pending or not self.action.may_ask(self.session, self.queue, self.job, pending):
            return {}
        need = total(pending)
        reach = self._reach()
        for domain in self._domains():
            if (places := self._in_domain(statement, domain, reach, need)) is not None:
                return places
        return {}

    def _pending(self) -> list[Task]:
        """The tasks that need room: those of the next part of a ready job, else all of them."""
        turns = self.sheet.clone().queue
        parts = [turns.pop() for _ in range(len(turns))]
        return [task for part in parts[: 1 if self.was_ready else None] for task in self.sheet.sheets[part.uid].waiting]

    def _reach(self) -> Reach:
        """All tasks that the action may evict for this job."""
        action, session, job = self.action, self.session, self.job
        return session.candidates.reach(
            lambda other: offers_itself(other) and action.may_lose(session, job, other), bound=action.bound
        )

    def _domains(self) -> Iterator[HyperNodeInfo]:
        """The hypernodes to be tried, in order; all nodes together if there are none and the job sets no bound."""
        gradients = self.session.ask.hyper_node_gradient_for_job(self.job, self.session.hyper_nodes.top, EVICT)
        found = {domain.name: domain for gradient in gradients for domain in gradient}
        if not found and not self.close:
            found = {TOP: self.session.hyper_nodes.top}
        yield from list(found.values())[: self.action.max_domains]

    # ------------------------------------------------------------------ one domain

    def _in_domain(
        self, statement: Statement, domain: HyperNodeInfo, reach: Reach, need: Vector
    ) -> Mapping[str, str] | None:
        room, units = self._idle(domain), list[Sequence[Task]]()
        for bundle in self._bundles(domain, reach, need):
            units += [bundle.tasks] if bundle.kind is Kind.GANG else [(task,) for task in bundle.tasks]
            add_to(room, bundle.gain)
            if not covers(room, need):
                continue
            with self.session.statement() as trial:
                for victim in chain.from_iterable(units):
                    trial.evict(victim, self.action.name)
                if (places := self._place_parts(trial, domain)) is not None:
                    self._reprieve(trial, units)
                    statement.merge(trial)
                    return places
        return None

    def _reprieve(self, trial: Statement, units: Sequence[Sequence[Task]]) -> None:
        """Reprieve the victims whose room the gang does not need."""
        session, job = self.session, self.job
        if self.action.minimal_victims and not session.compat.asks("minimal-victims"):
            Reprieve(session, job, trial, quota=True).run(units, lambda: bool(session.ask.job_pipelined(job)))

    def _idle(self, domain: HyperNodeInfo) -> list[int]:
        """The room of ``domain`` that is idle, or will be once terminating tasks have left, by column."""
        table = self.session.table
        rows = slice(None) if domain.name == TOP else np.array(domain.rows, dtype=np.intp)
        return totals(table.unreserved(rows))

    def _bundles(self, domain: HyperNodeInfo, reach: Reach, need: Vector) -> list[Bundle]:
        """The bundles that plugins allow, in the order of eviction."""
        session = self.session
        reach.refresh()
        by_job: dict[str, list[Task]] = {}
        for row in domain.rows:
            if reach.count[row]:
                for task in reach.tasks(row):
                    by_job.setdefault(task.job, []).append(task)
        found: list[Bundle] = []
        for uid, tasks in by_job.items():
            other = session.jobs[uid]
            found += bundles_of(other, tasks, session.sub_jobs(other))
        found = [bundle for bundle in found if self.action.allow_whole or bundle.kind is Kind.SURPLUS]
        found = in_order(found, need, self._compare)
        let_go = in_order(self._let_go(domain, found), need, self._compare)
        self.domain = domain.name
        context = EvictionContext(self.action.kind, self.job, domain.name)
        self.events.tried(context, found, let_go, need, partial(self._idle, domain))
        return let_go

    def _let_go(self, domain: HyperNodeInfo, bundles: list[Bundle]) -> list[Bundle]:
        """What may be evicted of ``bundles``: gang bundles only entirely, and the others use up nothing of a budget."""
        context = EvictionContext(self.action.kind, self.job, domain.name)
        while True:
            uids = self._may_go(context, tasks_of(bundles))
            broken = [bundle for bundle in bundles if bundle.is_broken_by(uids)]
            if not broken or self.session.compat.asks("protections-absolute"):
                return allowed(bundles, uids)
            never = [bundle for bundle in broken if bundle.allowed(self._may_go(context, bundle.tasks)) is None]
            out = set(map(id, never or broken[:1]))
            bundles = [bundle for bundle in bundles if id(bundle) not in out]

    def _may_go(self, context: EvictionContext, tasks: Sequence[Task]) -> set[str]:
        """Uids of the tasks that plugins allow to evict and no queue's share protects."""
        session, action = self.session, self.action
        vote = partial(session.ask.unified_evictable, context)
        return {task.uid for task in settled((partial(action.beyond_shares, session),), vote, tasks)}

    def _compare(self, left: Job, right: Job) -> int:
        return self.action.compare(self.session, self.job, left, right)

    # ------------------------------------------------------------------ the gang

    def _place_parts(self, trial: Statement, domain: HyperNodeInfo) -> Mapping[str, str] | None:
        """Reserve nodes for part after part until the job could start; None if a part, or the job, does not fit."""
        places: dict[str, str] = {}
        sheet, pipelined = self.sheet.clone(), False
        while len(sheet):
            part = sheet.queue.pop()
            where = self._place_part(trial, part, sheet.sheets[part.uid], domain)
            if where is None:
                return None
            places[part.uid] = where.name
            pipelined = bool(self.session.ask.job_pipelined(self.job))
            if self.was_ready or pipelined:
                break
        return places if pipelined else None

    def _place_part(
        self, trial: Statement, part: SubJob, tasks: TaskCursor, domain: HyperNodeInfo
    ) -> HyperNodeInfo | None:
        if not self.close:
            return domain if self._place_tasks(trial, part, tasks, domain) else None
        gradients = self.session.ask.hyper_node_gradient_for_sub_job(part, domain, EVICT)
        within = (hyper_node for gradient in gradients for hyper_node in gradient)
        return next((found for found in within if self._place_tasks(trial, part, tasks, found)), None)

    def _place_tasks(self, trial: Statement, part: SubJob, tasks: TaskCursor, hyper_node: HyperNodeInfo) -> bool:
        """Reserve nodes below ``hyper_node`` for all ``tasks``; False, nothing changed, if one finds none."""
        session = self.session
        within = None if hyper_node.name == TOP else session.table.mask(hyper_node.rows)
        with session.statement() as attempt:
            for task in tasks.waiting:
                row = self._row(task, within)
                if row < 0 or not _reserve(attempt, task, session.table.statics.names[row], trial.has_evictions):
                    return False
            if not (session.ask.sub_job_ready(self.job, part) or session.ask.sub_job_pipelined(self.job, part)):
                return False
            trial.merge(attempt)
        return True

    def _row(self, task: Task, within: Bools | None) -> int:
        """The row of the best node with idle room, else with future idle room; -1 if the task finds none."""
        session = self.session
        if not session.ask.allocatable(self.queue, task) or session.ask.pre_predicate(task) is not None:
            return -1
        if not session.compat.asks("gang-predicates"):
            choice = find(session, task, within)
            return -1 if choice is None else choice.rows[0]
        open_to = session.placer.curable(task) if within is None else session.placer.curable(task) & within
        now, later = rooms(session, task)
        # idle room alone does not suffice, because reservations of the node are not part of what it uses
        takers = session.placer.sampled(open_to) & later
        own = session.placer.own
        for members in (*own_first(takers & now, own), *own_first(takers & ~now, own)):
            if members.any():
                return session.placer.choose(task, members)
        return -1


def _reserve(statement: Statement, task: Task, node: str, evicted: bool) -> bool:
    try:
        statement.pipeline(task, node, eviction_occurred=evicted)
    except PlacementError:
        return False
    return True


def covers(room: Vector, need: Vector) -> bool:
    """Whether ``room`` covers ``need`` in cpu, memory, and the other dimensions that are requested."""
    return all(
        amount <= amount_at(room, column) for column, amount in enumerate(need) if amount or column in (CPU, MEMORY)
    )


def rooms(session: Session, task: Task) -> tuple[Bools, Bools]:
    """Which nodes have idle room for ``task``, and which have future idle room; both of shape (nodes,)."""
    table = session.table
    columns = table.axes.deciding(task.request)
    request = session.ledger.arrays(task.template)[0][columns][:, None]
    return table.view().fitting(request, columns)
