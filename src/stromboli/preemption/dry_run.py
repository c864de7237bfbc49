"""The topology-aware search for victims: nodes are simulated without changing the session, and the best is chosen.

On each node victims are removed until the task fits; then as many as possible are put back, the most important first.
Quota and predicates are evaluated through the ``simulate_*`` points with a cycle state for each node, and room is
added up apart from the node table.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from stromboli.framework.books.candidates import Reach
from stromboli.framework.books.cycle_state import CycleState
from stromboli.framework.statement.statement import Statement
from stromboli.model.resources.axes import add_to
from stromboli.model.table import Node
from stromboli.model.task import Task
from stromboli.preemption.search_events import DryRunEvents
from stromboli.preemption.victim_search import Search

PRIORITY_SHIFT = 2**31
"""Added to each victim's priority before priorities are summed up, so that more victims are never the smaller sum."""


@dataclass(frozen=True, slots=True)
class Numbers:
    """How many nodes must have victims before the search ends: a percentage of all nodes, within bounds."""

    percentage: int
    least: int
    most: int

    def of(self, nodes: int) -> int:
        """The number for so many nodes."""
        return min(max(nodes * self.percentage // 100, self.least), self.most, nodes)


@dataclass(frozen=True, slots=True)
class Candidate:
    """A node and the victims of the task there, the most important first."""

    row: int
    victims: tuple[Task, ...]


class Trial:
    """One node as it would be without some of its tasks, for the placement of ``task``."""

    __slots__ = ("_room", "_search", "_state", "node", "task")

    def __init__(self, search: Search, task: Task, row: int) -> None:
        session = search.session
        self._search, self.task, self.node = search, task, Node(session.table, row)
        self._state: CycleState = session.cycle_state(task.uid).clone()
        self._room = search.room(row)

    def remove(self, victim: Task) -> bool:
        """Remove ``victim``; False if a plugin objects."""
        add_to(self._room, victim.template.vector)
        ask = self._search.session.ask
        return ask.simulate_remove_task(self._state, self.task, victim, self.node) is None

    def put_back(self, victim: Task) -> bool:
        """Put ``victim`` back; False if a plugin objects."""
        add_to(self._room, victim.template.vector, -1)
        ask = self._search.session.ask
        return ask.simulate_add_task(self._state, self.task, victim, self.node) is None

    def fits(self) -> bool:
        """Whether the task could be placed now: quota, room, predicates."""
        session, queue = self._search.session, self._search.queue
        if not session.ask.simulate_allocatable(self._state, queue, self.task):
            return False
        return self._search.covered(self.task, self._room) and self.refusal() is None

    def refusal(self) -> object:
        """The reason of predicates against the task now; None if there is none."""
        return self._search.session.ask.simulate_predicate(self._state, self.task, self.node)


class DryRun:
    """The search for one task among the nodes that predicates allow."""

    def __init__(self, search: Search, numbers: Numbers) -> None:
        self.search, self.numbers, self.session = search, numbers, search.session
        self.events = DryRunEvents(search.session)

    def place(self, statement: Statement, task: Task) -> str:
        """Evict the victims on the best node and reserve it; returns why not, nothing changed, if there is none."""
        rows, reach = self.search.hoped(task), self.search.reach(task)
        if not rows:
            self.events.no_nodes(task)
            return "no nodes are eligible"
        found, said = self.candidates(task, rows, reach)
        if not found:
            return f"no candidates that fit the pod, the status of the nodes are {said}"
        best = choose(found, self.session.now)
        with self.session.statement() as trial:
            for victim in best.victims:
                self.search.evict(trial, task, victim)
            if self.search.reserve(trial, task, self.session.table.statics.names[best.row], evicted=True):
                statement.merge(trial)
                return ""
        return "a handler objects"

    def candidates(self, task: Task, rows: Sequence[int], reach: Reach) -> tuple[list[Candidate], dict[str, str]]:
        """As many nodes with victims as are wanted, in order, and by node what the others lack."""
        wanted = self.numbers.of(len(rows))
        names = self.session.table.statics.names
        found: list[Candidate] = []
        said: dict[str, str] = {}
        for row in rotated(rows, self.session.ties.offset(len(rows))):
            if len(found) >= wanted:
                break
            victims, why = self.on_node(task, row, reach)
            if victims:
                found.append(Candidate(row, victims))
            else:
                said[names[row]] = why
                self.events.impossible(task, names[row], why)
        return found, said

    def on_node(self, task: Task, row: int, reach: Reach) -> tuple[tuple[Task, ...], str]:
        """The victims of ``task`` on ``row``, the most important first; none, and the reason, if it is impossible."""
        name = self.session.table.statics.names[row]
        preemptees = self.search.order.sorted(reach.tasks(row))
        self.events.candidates(preemptees, task, name)
        allowed = self.search.victims_among(task, preemptees)
        self.events.victims(allowed)
        if lack := self.search.lacks(task, row, allowed):
            return (), lack
        trial = Trial(self.search, task, row)
        taken, failed = self._take(trial, allowed)
        if failed:
            return (), failed
        if not taken:
            return (), "no preemption victims found for incoming pod"
        if (refusal := trial.refusal()) is not None:
            return (), str(refusal)
        final = [victim for victim in reversed(taken) if not self._reprieve(trial, victim)]
        return tuple(final), "" if final else f'expected at least one victim pod on node "{name}"'

    def _take(self, trial: Trial, allowed: Sequence[Task]) -> tuple[list[Task], str]:
        """Remove victims until the task fits, at least one; returns them, and what failed."""
        taken: list[Task] = []
        for victim in self.search.in_turn(allowed):
            if not trial.remove(victim):
                return [], f"removing {victim.key} failed"
            taken.append(victim)
            if trial.fits():
                self.events.enough(trial.task, trial.node.name, victim)
                break
        return taken, ""

    def _reprieve(self, trial: Trial, victim: Task) -> bool:
        """Put ``victim`` back if the task still fits then; whether that is so."""
        if trial.put_back(victim) and trial.fits():
            return True
        trial.remove(victim)
        return False


def rotated(rows: Sequence[int], offset: int) -> list[int]:
    """``rows`` from position ``offset`` on, then those before it."""
    return [*rows[offset:], *rows[:offset]]


def choose(candidates: Sequence[Candidate], now: float) -> Candidate:
    """The candidate with the smallest loss; the first of equals.

    The criteria, in order: the lowest priority of the first victim, the smallest sum of priorities, the fewest victims,
    the latest start of the earliest among the most important victims.
    """

    def loss(candidate: Candidate) -> tuple[float, ...]:
        victims = candidate.victims
        total = sum(victim.priority + PRIORITY_SHIFT for victim in victims)
        return victims[0].priority, total, len(victims), -_earliest_start(victims, now)

    return min(candidates, key=loss)


def _earliest_start(victims: Sequence[Task], now: float) -> float:
    """When the first of the most important victims started; one that has not started counts as starting ``now``."""
    top = max(victim.priority for victim in victims)
    return min(float(victim.start_time or now) for victim in victims if victim.priority == top)
