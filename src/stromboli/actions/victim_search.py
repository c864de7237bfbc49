"""The search for victims that all evicting actions share: scenario, simulate, validate, choose.

One :class:`Search` serves one job's turn.  The scenario is who may be evicted at all (a :class:`Reach` of the session's
candidates) and which nodes could do; a node is tried through a statement of its own, which is merged when the task fits
and taken back when it does not::

    search = Search(session, job, PREEMPT, of=lambda other: other.queue == job.queue and other.uid != job.uid)
    with session.statement() as statement:
        if search.place(statement, task):        # evictions and the reservation are in the statement now
            ...
        statement.commit()

Parts of it serve alone: :meth:`Search.victims` names the victims of one node after the plugins' vote,
:meth:`Search.lacks` says why they would not do, :meth:`Search.make_room` evicts them one by one until the task fits.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

import numpy as np

from stromboli.actions.bundles import total
from stromboli.actions.frugal import Offer, Unclaimed, offers
from stromboli.actions.shares import beyond_shares
from stromboli.actions.sparing import Sparing
from stromboli.errors import PlacementError
from stromboli.framework.candidates import Reach
from stromboli.framework.classes import NEVER
from stromboli.framework.ending import takes
from stromboli.framework.guards import settled
from stromboli.framework.reason import Reason
from stromboli.framework.rows import Bools, Floats
from stromboli.framework.session import Session
from stromboli.framework.statement import Statement
from stromboli.framework.victim_order import VictimOrder, one_job
from stromboli.model.axes import add_to, fits
from stromboli.model.job import Job
from stromboli.model.resource import Resource
from stromboli.model.task import Task


@dataclass(frozen=True, slots=True)
class Way:
    """How an action takes room.

    ``point`` is the extension point that names victims, ``reason`` what evicted pods are told.  ``bound`` says whether
    tasks that do not run yet may be evicted, ``nobody`` whether a node with room, but nobody to take it from, will do.
    ``checked``: quota and predicates are looked at after each eviction, and nodes are tried by score; otherwise room
    decides, and nodes are tried in their order.  ``trying``, ``done`` are keys of the catalogue.
    """

    point: str
    reason: str
    bound: bool
    nobody: bool
    checked: bool
    trying: str
    done: str


PREEMPT = Way(
    "preemptable", "preempt", bound=True, nobody=True, checked=True, trying="preempt_victim", done="preempted"
)
RECLAIM = Way(
    "reclaimable", "reclaim", bound=False, nobody=False, checked=False, trying="reclaim_victim", done="reclaimed"
)


MANY_IN_VAIN: Final = 16
"""After so many nodes tried in vain it costs less to ask anew whom a task might evict than to try more of them."""

EVERYBODY: Final = "everybody"
"""The key of those who could be evicted whatever the plugins say."""


class Search:
    """Where ``job`` may take room from the jobs for which ``of`` is true, in the given way.

    It holds for one turn: a job's queue and the shares of others may only change through this job's own statement.
    """

    def __init__(self, session: Session, job: Job, way: Way, of: Callable[[Job], bool], *, minimal: bool) -> None:
        self.session, self.job, self.way, self._of = session, job, way, of
        self.minimal = minimal
        self.frugal = minimal and session.reservations is not None
        self.unclaimed = Unclaimed(session) if session.ending is not None else None
        self.queue = session.queues[job.queue]
        self.order = VictimOrder(session, self.queue)
        self._ask: Callable[[Task, Sequence[Task]], list[Task]] = getattr(session.ask, way.point)
        self._reaches: dict[Hashable, Reach] = {}
        self._needs: dict[int, list[int]] = {}
        self._failed: tuple[int, Task] | None = None
        self._vain = 0
        tells = session.tells
        self.say_considering, self.say_no_victims = tells("considering_node"), tells("no_victims")
        self.say_nobody = tells("no_reclaimees") if not way.nobody else None
        self.loud = bool(self.say_considering or self.say_no_victims or self.say_nobody)
        self.say_trying = tells(way.trying)
        self.say_freed, self.say_attempt = tells(way.done), tells("metric.preemption_attempt")
        self.say_pipeline_failed = tells("pipeline_failed")
        self.say_victims = tells("metric.preemption_victims")
        self.say_failed, self.say_beforehand = tells("preempt_failed"), tells("pre_predicate_failed")

    # ------------------------------------------------------------------ scenario

    def reach(self, task: Task) -> Reach:
        """Whom ``task`` might evict, up to date."""
        key = (task.template.best_effort, task.template.number, task.priority)
        may = None if self.loud else self.session.may.get(self.way.point)  # who listens hears every refusal
        of = self._of if may is None else lambda job: self._of(job) and may(task, job)
        return self._reach(key, of, only_best_effort=self.way.checked and task.template.best_effort)

    def _reach(self, key: Hashable, of: Callable[[Job], bool], *, only_best_effort: bool = False) -> Reach:
        found = self._reaches.get(key)
        if found is None:
            found = self.session.candidates.reach(of, bound=self.way.bound, only_best_effort=only_best_effort)
            self._reaches[key] = found
        found.refresh()
        return found

    def hopeful(self, task: Task, reach: Reach) -> Bools:
        """Nodes that would have the room if everybody in reach left them, shape (nodes,).  No other node will do."""
        request = self.session.ledger.arrays(task.template)[0]
        found = reach.hopeful(self.session.table, self.need(task), request)
        if self.way.nobody or bool((reach.count[found] > 0).all()):
            return found
        # room enough, and nobody there whom the plugins might name: all that is asked is that somebody stands there
        return found & (self._reach(EVERYBODY, self._of).count > 0)

    def need(self, task: Task) -> list[int]:
        """Columns that decide whether a task fits: cpu, memory, and whatever else it asks for."""
        found = self._needs.get(task.template.number)
        if found is None:
            found = self._needs[task.template.number] = self.session.axes.deciding(task.request)
        return found

    def hoped(self, task: Task) -> list[int]:
        """The nodes that predicates leave to ``task``, whoever may be evicted there, in their order."""
        return np.flatnonzero(self._members(task)).tolist()

    def _members(self, task: Task) -> Bools:
        """The nodes that are looked at, of those that predicates leave to ``task``."""
        placer = self.session.placer
        return np.asarray(placer.sampled(placer.curable(task)), dtype=bool)

    def rows(self, task: Task, reach: Reach) -> Iterator[int]:
        """The nodes to be tried, in order."""
        members = self._members(task)
        tried = members if self.loud else members & self.hopeful(task, reach)
        if not tried.any():
            return
        if not self.way.checked:
            yield from first_ones(tried)
            return
        scores = np.where(tried, self.session.placer.ranking(task, members), NEVER)
        yield from best_first(scores)

    # ------------------------------------------------------------------ one node

    def victims(self, task: Task, row: int, reach: Reach) -> list[Task]:
        """Those on ``row`` whom the plugins let ``task`` evict, in the order of eviction."""
        if self.session.compat.asks("tie-break"):  # which of them a disruption budget lets go depends on the order
            return self.order.sorted(self.victims_among(task, reach.tasks(row)))
        return self.victims_among(task, self.order.sorted(reach.tasks(row)))

    def victims_among(self, task: Task, within: Sequence[Task]) -> list[Task]:
        """Those of ``within``, all on one node and in the order of eviction, whom the plugins let ``task`` evict."""
        named = self._ask(task, within)
        if self.way.checked or len(beyond_shares(self.session, named)) == len(named):
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
        """What is idle on ``row``, or will be once ending tasks have left and waiting ones have come; by column."""
        return self.session.table.future_of(row)

    def covered(self, task: Task, room: Sequence[int]) -> bool:
        """Whether ``room``, by column, is enough for ``task``."""
        return fits(task.template.vector, room, self.need(task))

    def fits(self, task: Task, row: int) -> bool:
        """Whether ``task`` may take its place on ``row`` as things stand now."""
        return self._is_allowed(task) and self.covered(task, self.room(row)) and self._suits(task, row)

    def _is_allowed(self, task: Task) -> bool:
        """Whether the queue may have ``task``, where that is to be checked."""
        return not self.way.checked or bool(self.session.ask.allocatable(self.queue, task))

    def _suits(self, task: Task, row: int) -> bool:
        """Whether ``row`` takes ``task``, its room aside: by all predicates if those are checked, else by ports."""
        if self.way.checked:
            return takes(self.session, task, row)
        return not (self.unclaimed and self._meets_port(task, row))

    def _meets_port(self, task: Task, row: int) -> bool:
        """Whether ``task`` would hold ``row`` in vain: somebody who stays, or waits there, listens on its port."""
        return bool(task.template.host_ports) and not takes(self.session, task, row)

    def make_room(
        self, statement: Statement, task: Task, row: int, victims: Sequence[Task], chosen: Sequence[Task] = ()
    ) -> bool:
        """Evict ``victims`` one by one until ``task`` fits on ``row``; whether it does.

        ``chosen`` are those of them whom it is known to take: they go first, and alone if nothing but room is missing.
        """
        if (self.loud or not chosen) and self.fits(task, row):
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
        """The first victim where its leaving alone is enough: then nobody needs to know who is the next."""
        return victims[:1] if victims and not one_job(victims) and not self.lacks(task, row, victims[:1]) else ()

    def in_turn(self, victims: Sequence[Task]) -> Iterator[Task]:
        """The victims in the order of eviction, those that wait compared anew as evictions change shares."""
        if one_job(victims):
            yield from victims
            return
        turns = self.order.turns(victims)
        while len(turns):
            yield turns.pop()

    def evict(self, statement: Statement, task: Task, victim: Task) -> None:
        """Evict ``victim`` for ``task``."""
        if self.say_trying:
            self.say_trying(victim=victim, task=task)
        statement.evict(victim, self.way.reason)

    # ------------------------------------------------------------------ choice

    def refused_beforehand(self, task: Task) -> str:
        """Why ``task`` can be placed nowhere at all; empty if nobody knows a reason."""
        refusal: Reason | None = self.session.ask.pre_predicate(task)
        if refusal is None:
            return ""
        if self.say_beforehand:
            self.say_beforehand(task=task, error=refusal.text)
        return refusal.text

    def refusals(self, task: Task) -> str:
        """What the nodes say against ``task``, counted."""
        return self.session.placer.refusals(task, room=False).text

    def place(self, statement: Statement, task: Task) -> bool:
        """Find a node for ``task``, evict there whom it needs to, and reserve it; False, nothing changed, if none."""
        if self._fails_again(statement, task):
            return False
        if self._waits(statement, task):
            return True
        reach, vain = self.reach(task), 0
        found = False
        for offer in offers(self, task, reach) if self.frugal else map(Offer, self.rows(task, reach)):
            if found := self._try(statement, task, offer, reach):
                break
            vain += 1
        self._note_vain(vain)
        self._failed = None if found else (len(statement.entries), task)
        return found

    def _waits(self, statement: Statement, task: Task) -> bool:
        """Reserve room for ``task`` that nobody has to make, if it may wait for it beyond the session."""
        row = self.unclaimed.find(task) if self.unclaimed else None
        if row is None or (self.way.checked and not self.session.ask.allocatable(self.queue, task)):
            return False
        return self.reserve(statement, task, self.session.table.statics.names[row])

    def _note_vain(self, times: int) -> None:
        """After many nodes tried in vain ask anew whose jobs may give: in a turn they only become fewer."""
        self._vain += times
        if self._vain >= MANY_IN_VAIN:
            self._vain = 0
            self._reaches.clear()

    def _fails_again(self, statement: Statement, task: Task) -> bool:
        """Whether a task like this one has just failed and nothing has changed since; who listens hears it again."""
        if self._failed is None or self.loud or self._failed[0] != len(statement.entries):
            return False
        other = self._failed[1]
        same = task.template is other.template and task.priority == other.priority and task.role == other.role
        return same and task.labels == other.labels and task.annotations == other.annotations

    def _try(self, statement: Statement, task: Task, offer: Offer, reach: Reach) -> bool:
        row = offer.row
        node = self.session.table.statics.names[row]
        if self.say_considering:
            self.say_considering(task=task, node=node)
        if self.loud and not self.way.nobody and not reach.count[row]:  # else such nodes are not among the rows
            if self.say_nobody:
                self.say_nobody(node=node)
            return False
        victims = self.victims(task, row, reach) if offer.victims is None else offer.victims
        if self.say_victims:
            self.say_victims(count=len(victims))
        if offer.chosen is None and (lack := self.lacks(task, row, victims)):
            if self.say_no_victims:
                self.say_no_victims(node=node, error=lack)
            return False
        with self.session.statement() as trial:
            enough = self.make_room(trial, task, row, victims, offer.chosen or ())
            self._tell_freed(trial, task, row)
            if enough and self.reserve(trial, task, node, evicted=self._frees(trial)):
                statement.merge(trial)
                return True
        return False

    def spare(self, statement: Statement) -> None:
        """Where minimal victims are asked for, let those go on running whom ``statement`` does not need."""
        if self.minimal and statement.has_evictions:
            before = self.session.ask.job_pipelined(self.job)
            Sparing(self.session, self.job, statement, quota=self.way.checked).run(
                [(victim,) for victim in statement.evicted],
                lambda: bool(self.session.ask.job_pipelined(self.job) == before),
            )

    def reserve(self, trial: Statement, task: Task, node: str, *, evicted: bool = False) -> bool:
        """Let ``task`` wait for ``node``, for which somebody is ``evicted``; False when a handler objects."""
        try:
            trial.pipeline(task, node, eviction_occurred=evicted)
        except PlacementError:
            if self.say_pipeline_failed:
                self.say_pipeline_failed(task=task, node=node)
            return False
        return True

    def _tell_freed(self, trial: Statement, task: Task, row: int) -> None:
        if self.say_attempt:
            self.say_attempt()
        if self.say_freed:
            amount = self.amount([entry.tasks[0] for entry in trial.entries])
            fields: dict[str, object] = {self.way.done: amount, "task": task, "request": task.request}
            if not self.way.checked:
                available = self.session.axes.resource(self.room(row))
                fields |= {"node": self.session.table.statics.names[row], "available": available}
            self.say_freed(**fields)

    def _frees(self, trial: Statement) -> bool:
        """Whether evictions make room, so that the node is nominated."""
        if self.session.compat.asks("nominated-for-pods"):
            return any(not task.best_effort for task in trial.evicted)
        return trial.has_evictions

    def amount(self, tasks: Sequence[Task]) -> Resource:
        """What ``tasks`` ask for together."""
        return self.session.axes.resource(self.session.axes.full(total(tasks)))


def first_ones(marks: Bools) -> Iterator[int]:
    """The rows that are marked, in order; the first is mostly the one that is taken."""
    first = int(marks.argmax())
    yield first
    yield from (np.flatnonzero(marks[first + 1 :]) + first + 1).tolist()


def best_first(scores: Floats) -> Iterator[int]:
    """Rows by score, higher first, ties to the lower row; rows of minus infinity are left out."""
    first = int(scores.argmax())
    yield first  # mostly the one that is taken, so the others are sorted only when it is not
    for row in np.argsort(-scores, kind="stable").tolist():
        if scores[row] == NEVER:
            return
        if row != first:
            yield row
