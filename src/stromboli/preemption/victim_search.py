"""The search for victims of preempt and reclaim: scenario, simulation, validation, choice.

One :class:`Search` serves one job's turn.  The scenario is which tasks may be evicted (a :class:`Reach` of the
session's candidates) and which nodes are possible; a node is tried in a statement of its own, which is merged if the
task fits, and reverted otherwise::

    search = Search(session, job, PREEMPT, of=lambda other: other.queue == job.queue, minimal=True)
    with session.statement() as statement:
        if search.place(statement, task):        # evictions and the reservation are in the statement now
            ...
        statement.commit()

Parts of it serve alone: :meth:`Search.victims` names the victims of one node after the plugins' vote,
:meth:`Search.lacks` says why they are not enough, :meth:`Search.make_room` evicts them one by one until the task fits.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Final

import numpy as np

from stromboli.errors import PlacementError
from stromboli.framework.books.candidates import Reach
from stromboli.framework.extension.guards import settled
from stromboli.framework.extension.reason import Reason
from stromboli.framework.session.session import Session
from stromboli.framework.session.victim_order import VictimOrder, one_job
from stromboli.framework.statement.operation import Pipeline
from stromboli.framework.statement.statement import Statement
from stromboli.model.job import Job
from stromboli.model.resources.axes import add_to, fits
from stromboli.model.task import Task
from stromboli.preemption.eviction_policy import EvictionPolicy
from stromboli.preemption.kept_victims import OnNode
from stromboli.preemption.node_choice import FreeRoom, NodeOption, SameNode, options
from stromboli.preemption.node_order import sample
from stromboli.preemption.reaches import Reaches
from stromboli.preemption.reprieve import Reprieve
from stromboli.preemption.runs import Runs
from stromboli.preemption.search_events import SearchEvents
from stromboli.preemption.search_steps import steps_of
from stromboli.preemption.shares import beyond_shares, stays_beyond
from stromboli.reservations.terminating import takes

MAX_FAILED_NODES: Final = 16
"""After so many nodes that failed, renewing the set of possible victims costs less than trying further nodes."""


class Search:
    """The search for victims of ``job`` by ``policy``: among the other jobs for which ``of`` is true, or in it alone.

    It is valid for one turn, in which queues and shares only change through this job's own statement.  ``of`` is asked
    for one job of each queue: it says the same of the others.
    """

    def __init__(
        self,
        session: Session,
        job: Job,
        policy: EvictionPolicy,
        of: Callable[[Job], bool] | None,
        *,
        minimal: bool,
    ) -> None:
        self.session, self.job, self.policy = session, job, policy
        self.minimal = minimal
        self.compares = minimal and session.reservations is not None and not session.compat.asks("fewest-victims")
        self.free_room = FreeRoom(session) if session.reservations is not None else None
        self.queue = session.queues[job.queue]
        self.order = VictimOrder(session, self.queue)
        self._ask: Callable[[Task, Sequence[Task]], list[Task]] = getattr(session.ask, policy.point)
        self._needs: dict[int, list[int]] = {}
        self.failed: tuple[int, Task] | None = None
        """The last task, if it has failed, and how many operations its statement had then."""
        self._failures = 0
        self.events = SearchEvents(session, policy)
        self.steps = steps_of(self)
        self.kept, self.nodes = self.steps.kept, self.steps.nodes
        self.reaches = Reaches(session, job, policy, of, self.steps.prefilter)
        self._same, self._runs = SameNode(), Runs(session, job, policy)

    # ------------------------------------------------------------------ scenario

    def reach(self, task: Task) -> Reach:
        """The tasks that ``task`` might evict, up to date."""
        return self.reaches.of(task)

    def need(self, task: Task) -> list[int]:
        """Columns that decide whether a task fits: cpu, memory, and what else it requests."""
        found = self._needs.get(task.template.number)
        if found is None:
            found = self._needs[task.template.number] = self.session.axes.deciding(task.request)
        return found

    def hoped(self, task: Task) -> list[int]:
        """The nodes that predicates allow for ``task``, regardless of victims, in node order."""
        return np.flatnonzero(sample(self, task)).tolist()

    # ------------------------------------------------------------------ one node

    def victims(self, task: Task, row: int, reach: Reach) -> list[Task]:
        """The tasks on ``row`` that plugins allow ``task`` to evict, in the order of eviction."""
        if self.session.compat.asks("tie-break"):  # which of them a disruption budget allows depends on the order
            return self.order.sorted(self.victims_among(task, reach.tasks(row)))
        if (kept := self.kept) is None:
            return self.victims_among(task, self.order.sorted(reach.tasks(row)))
        if (known := kept.of(task, row, reach)) and self.beyond(known, row, reach):
            return known.victims
        candidates = self.order.sorted(reach.tasks(row))
        if (known := kept.ask(task, row, candidates)) and self.beyond(known, row, reach):
            return known.victims
        return self.victims_among(task, candidates)

    def beyond(self, known: OnNode, row: int, reach: Reach) -> bool:
        """Whether queues hold more than they deserve even without all candidates on ``row``, where that counts."""
        if self.policy.checked:
            return True

        def leaving(column: int) -> int:
            return reach.freed.item(column, row)

        return all(stays_beyond(self.session, name, leaving) for name in known.queues)

    def victims_among(self, task: Task, within: Sequence[Task]) -> list[Task]:
        """Those of ``within``, on one node and in the order of eviction, that plugins allow ``task`` to evict."""
        named = self._ask(task, within)
        if self.policy.checked or len(beyond_shares(self.session, named)) == len(named):
            return named
        return settled((partial(beyond_shares, self.session),), partial(self._ask, task), within)

    def lacks(self, task: Task, row: int, victims: Sequence[Task]) -> str:
        """Why evicting all ``victims`` would still not give ``task`` its room on ``row``; empty if it would."""
        room = self.room(row)
        left = iter(victims)
        while not self.covered(task, room):
            victim = next(left, None)
            if victim is None:
                break
            add_to(room, victim.template.vector)
        else:
            return ""
        idle = self.session.axes.resource(self.room(row))
        return f"not enough resources: requested <{task.request}>, but future idle <{idle}>"

    def room(self, row: int) -> list[int]:
        """The future idle room of ``row``, by column."""
        return self.session.table.future_of(row)

    def covered(self, task: Task, room: Sequence[int]) -> bool:
        """Whether ``room``, by column, is enough for ``task``."""
        return fits(task.template.vector, room, self.need(task))

    def fits(self, task: Task, row: int) -> bool:
        """Whether ``task`` may be placed on ``row`` as things stand now."""
        return self._is_allowed(task) and self.covered(task, self.room(row)) and self._suits(task, row)

    def _is_allowed(self, task: Task) -> bool:
        """Whether the queue may have ``task``, where that is to be checked."""
        return not self.policy.checked or bool(self.session.ask.allocatable(self.queue, task))

    def _suits(self, task: Task, row: int) -> bool:
        """Whether ``row`` accepts ``task``, not counting room: by all predicates if they are checked, else by ports."""
        if self.policy.checked:
            return takes(self.session, task, row)
        return not (self.free_room and self._meets_port(task, row))

    def _meets_port(self, task: Task, row: int) -> bool:
        """Whether a pod that stays, or waits, on ``row`` uses a host port of ``task``, which could not start there."""
        return bool(task.template.host_ports) and not takes(self.session, task, row)

    def make_room(
        self, statement: Statement, task: Task, row: int, victims: Sequence[Task], chosen: Sequence[Task] = ()
    ) -> bool:
        """Evict ``victims`` one by one until ``task`` fits on ``row``; whether it does.

        ``chosen`` victims are known to make enough room: they are evicted first, and alone if only room is missing.
        """
        if self.steps.fits_already(self, task, row, chosen):
            return True
        if fewer := chosen or self._alone(task, row, victims):
            mark = statement.checkpoint()
            for victim in fewer:
                self.evict(statement, task, victim)
            if self._is_allowed(task) and self._suits(task, row):  # that there is room is known
                return True
            statement.rollback(mark)
        for victim in self.in_turn(victims):
            self.evict(statement, task, victim)
            if self.fits(task, row):
                return True
        return False

    def _alone(self, task: Task, row: int, victims: Sequence[Task]) -> Sequence[Task]:
        """The first victim if it is enough, so that the order of the others does not have to be computed."""
        return victims[:1] if victims and not one_job(victims) and not self.lacks(task, row, victims[:1]) else ()

    def in_turn(self, victims: Sequence[Task]) -> Iterator[Task]:
        """The victims in the order of eviction, compared again after each eviction, because evictions change shares."""
        if one_job(victims):
            yield from victims
            return
        waiting = self.order.priority_queue(victims)
        while len(waiting):
            yield waiting.pop()

    def evict(self, statement: Statement, task: Task, victim: Task) -> None:
        """Evict ``victim`` for ``task``."""
        self.events.trying(victim, task)
        statement.evict(victim, self.policy.reason)

    # ------------------------------------------------------------------ choice

    def refused_beforehand(self, task: Task) -> str:
        """Why ``task`` cannot be placed on any node; empty if no plugin has a reason."""
        refusal: Reason | None = self.session.ask.pre_predicate(task)
        if refusal is None:
            return ""
        self.events.refused_beforehand(task, refusal.text)
        return refusal.text

    def place(self, statement: Statement, task: Task, others: deque[Task] | None = None) -> bool:
        """Find a node for ``task``, evict its victims, and reserve it; False, nothing changed, if there is none.

        The first of ``others``, the tasks after it, may be placed with it in a run; then they are taken out.
        """
        if self.steps.is_in_vain(self, statement, task):
            return False
        same = self._same.option(self, task) if self.compares else None
        if same is None and self._waits(statement, task):
            return True
        if others and self._place_run(statement, task, others, same):
            return True
        found = same is not None and self._try(statement, task, same)
        if not found:
            found = self._search(statement, task, same)
        self.failed = None if found else (len(statement.operations), task)
        return found

    def _place_run(self, statement: Statement, task: Task, others: deque[Task], same: NodeOption | None) -> bool:
        """Place ``task`` and some of ``others`` where the task before was; False, nothing changed, if only one by one.

        Each takes the room of one victim there.
        """
        if same is None or (order := self.nodes.kept) is None or self.kept is None or not self._runs.may_be:
            return False
        victims, need = self._same.alone(self, task), self.need(task)
        if (run := self._runs.of(task, others, victims, same.row, need, order.stays_first)) is None:
            return False
        statement.evict_run(run.victims, same.row, self.policy.reason)
        Pipeline(self.job, run.tasks, [same.row] * len(run.tasks), True).apply(statement)
        self.events.attempts += len(run.tasks)
        self.events.victims = len(same.victims or ()) - len(run.tasks) + 1  # as many as the last task found
        self.kept.evicted(same.row, run.victims)
        self._same.note(self, run.tasks[-1], same.row)
        self.failed = None
        return True

    def _search(self, statement: Statement, task: Task, failed: NodeOption | None) -> bool:
        """Try the nodes in order, without the one that has ``failed`` already; whether one was found."""
        reach, failures, found = self.reach(task), int(failed is not None), False
        rows = None if self.compares else self.nodes.rows(self, task, reach)
        for option in options(self, task, reach) if rows is None else map(NodeOption, rows):
            if failed is not None and option.row == failed.row:
                continue
            if found := self._try(statement, task, option):
                break
            failures += 1
        self._count_failures(failures)
        return found

    def _waits(self, statement: Statement, task: Task) -> bool:
        """Reserve room that needs no eviction, if ``task`` may wait for it beyond the session."""
        row = self.free_room.find(task) if self.free_room else None
        if row is None or (self.policy.checked and not self.session.ask.allocatable(self.queue, task)):
            return False
        return self.reserve(statement, task, self.session.table.statics.names[row])

    def _count_failures(self, times: int) -> None:
        """After many failed nodes renew the sets of possible victims, which only shrink during a turn."""
        self._failures += times
        if self._failures >= MAX_FAILED_NODES:
            self._failures = 0
            self.reaches.clear()
            self._same = SameNode()

    def _try(self, statement: Statement, task: Task, option: NodeOption) -> bool:
        row = option.row
        self.events.considering(task, row)
        if self.steps.is_empty(self, task, row):
            return False
        victims = self.victims(task, row, self.reach(task)) if option.victims is None else option.victims
        self.events.victims = len(victims)
        if option.chosen is None and (lack := self.lacks(task, row, victims)):
            self.events.too_few(row, lack)
            return False
        node = self.session.table.statics.names[row]
        with self.session.statement() as trial:
            enough = self.make_room(trial, task, row, victims, option.chosen or ())
            self.events.freed(trial, task, row)
            if enough and self.reserve(trial, task, node, evicted=self._frees(trial)):
                if self.kept is not None:
                    self.kept.evicted(row, trial.evicted)
                self._same.note(self, task, row)
                statement.merge(trial)
                return True
        return False

    def reprieve(self, statement: Statement) -> None:
        """If minimal victims are configured, reprieve those that ``statement`` does not need."""
        if self.minimal and statement.has_evictions:
            before = self.session.ask.job_pipelined(self.job)
            Reprieve(self.session, self.job, statement, quota=self.policy.checked).run(
                [(victim,) for victim in statement.evicted],
                lambda: bool(self.session.ask.job_pipelined(self.job) == before),
            )

    def reserve(self, trial: Statement, task: Task, node: str, *, evicted: bool = False) -> bool:
        """Reserve ``node`` for ``task``, for which pods are ``evicted`` or not; False if a handler objects."""
        try:
            trial.pipeline(task, node, eviction_occurred=evicted)
        except PlacementError:
            self.events.objected(task, node)
            return False
        return True

    def _frees(self, trial: Statement) -> bool:
        """Whether evictions make room, so that the node is nominated."""
        if self.session.compat.asks("nominated-for-pods"):
            return any(not task.best_effort for task in trial.evicted)
        return trial.has_evictions
