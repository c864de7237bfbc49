"""The choice of a node: free room first, then the node with the fewest and least important victims.

Room that is made for a pod with a reservation is not lost to other pods, so it pays to compare nodes before evictions.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from itertools import chain, islice, takewhile
from operator import itemgetter
from typing import TYPE_CHECKING, Final

import msgspec

from stromboli.model.job import PENDING
from stromboli.model.resources.axes import amount_at, fits
from stromboli.model.task import GRACE, Task
from stromboli.preemption.kept_victims import OnNode, placed_alike
from stromboli.reservations.terminating import find

if TYPE_CHECKING:
    from stromboli.framework.books.candidates import Reach
    from stromboli.framework.session.session import Session
    from stromboli.preemption.victim_search import Search

COMPARED: Final = 8
"""How many feasible nodes, the first in order, are compared before evictions.

Others do not count: an observer is told of more of them, and must not change the choice.
"""

Cost = tuple[bool, bool, int, float, int]
"""Whether the node is infeasible, whether it is of another shard, the priority of the most important victim, the number
of victims for each task of the job that gets room, and by how many seconds the longest grace period exceeds the usual
one."""


class NodeOption(msgspec.Struct, frozen=True):
    """A node by its row, with the possible ``victims`` that plugins named, and those ``chosen`` among them.

    ``victims`` is None before plugins are asked; ``chosen`` is None then, too, and if all victims are not enough.
    """

    row: int
    victims: list[Task] | None = None
    chosen: list[Task] | None = None


def options(search: Search, task: Task, reach: Reach) -> Iterator[NodeOption]:
    """The nodes that ``search`` tries for ``task``, the first of them by the cost of their victims, ties in node order.

    The comparison ends at a node whose cost is that of the cheapest possible victim.
    """
    rows = search.nodes.rows(search, task, reach)
    if (first := next(rows, None)) is None:  # mostly, and what follows looks at all candidates
        return
    rows = chain((first,), rows)
    wanted = _wanted(search, task)
    cheapest = False, False, search.session.candidates.columns.lowest, 1 / wanted, 0
    found: list[tuple[Cost, NodeOption]] = []
    left = COMPARED
    reach.refresh()
    for row in rows:
        if search.policy.checked and reach.empty[row]:  # in a large cluster these may be most of those with room
            found.append((_cost(search, task, row, None, wanted), NodeOption(row)))
            continue
        victims = search.victims(task, row, reach)
        chosen = fewest(search, task, row, victims, wanted)
        evicted = _evicted(search, victims, chosen)
        cost = _cost(search, task, row, evicted, wanted)
        if cost <= cheapest:
            yield NodeOption(row, victims, chosen)
            break
        found.append((cost, NodeOption(row, victims, chosen)))
        left -= evicted is not None
        if not left:
            break
    found.sort(key=itemgetter(0))
    yield from map(itemgetter(1), found)
    yield from map(NodeOption, rows)


def _wanted(search: Search, task: Task) -> int:
    """How many tasks like ``task`` its job still needs, as far as the room of one victim could be enough for them."""
    job, most = search.job, search.session.candidates.serves(task.template, search.need(task))
    if most > 1:
        most = min(most, job.min_available - job.ready_task_num() - job.waiting_task_num())
    if most <= 1:
        return 1
    alike = (other for other in job.of(PENDING) if other.template is task.template)
    return max(1, sum(1 for _ in islice(alike, most)))


def _evicted(search: Search, victims: Sequence[Task], chosen: Sequence[Task] | None) -> Sequence[Task] | None:
    """What of ``victims`` goes from a node: those ``chosen``, and the first where none need go for the sake of room.

    Where predicates are checked, a node with room has been found wanting before, as the queue may have no more, or a
    predicate refuses it: a victim goes all the same, or nothing does (None).  That the queue may need more than one to
    go is not counted.
    """
    if chosen is None or chosen or not search.policy.checked:
        return chosen
    return victims[:1] or None


def _cost(search: Search, task: Task, row: int, chosen: Sequence[Task] | None, wanted: int) -> Cost:
    own = search.session.placer.own
    foreign = own is not None and not own[row]
    if not chosen:
        return chosen is None, foreign, 0, 0.0, 0
    highest, slowest = chosen[0].priority, GRACE
    for victim in chosen:
        highest, slowest = max(highest, victim.priority), max(slowest, victim.grace)
    served = _served(search, task, row, chosen, wanted) if wanted > 1 else 1
    return False, foreign, highest, len(chosen) / served, slowest - GRACE


def _served(search: Search, task: Task, row: int, chosen: Sequence[Task], wanted: int) -> int:
    """How many of ``wanted`` tasks like ``task`` find room on ``row`` once ``chosen`` have left, at least 1."""
    room, vector = _room(search, task, row), task.template.vector
    for victim in chosen:
        _free(room, victim)
    return max(1, min([wanted, *(amount // vector[column] for column, amount in room.items() if vector[column])]))


def _room(search: Search, task: Task, row: int) -> dict[int, int]:
    """The future idle room of ``row`` in the columns that decide whether ``task`` fits."""
    table = search.session.table
    return {column: table.future_at(column, row) for column in search.need(task)}


def _free(room: dict[int, int], victim: Task) -> None:
    """Add to ``room`` what ``victim`` frees."""
    vector = victim.template.vector
    for column in room:
        room[column] += amount_at(vector, column)


def fewest(search: Search, task: Task, row: int, victims: Sequence[Task], wanted: int) -> list[Task] | None:
    """The smallest set of ``victims`` that makes room for ``task`` on ``row``; None if all of them do not.

    It takes the first in order.  If these are more than one, or ``wanted`` such tasks need room, it prefers the largest
    victims that are no more important, if they are fewer.
    """
    room, chosen = _room(search, task, row), list[Task]()
    vector, left = task.template.vector, iter(victims)
    while not fits(vector, room, room):
        if (victim := next(left, None)) is None:
            return None
        _free(room, victim)
        chosen.append(victim)
    if len(chosen) + wanted <= 2 or not chosen:
        return chosen
    highest = max([victim.priority for victim in chosen])
    larger = _largest(search, task, row, [victim for victim in victims if victim.priority <= highest], wanted)
    return larger if len(larger) < len(chosen) or wanted > 1 else chosen


def _largest(search: Search, task: Task, row: int, victims: Sequence[Task], wanted: int) -> list[Task]:
    """The ``victims`` that free most of what ``wanted`` tasks lack, one by one until ``task`` has room."""
    room, vector, left, chosen = _room(search, task, row), task.template.vector, list(victims), list[Task]()
    while not fits(vector, room, room):
        lack = {c: wanted * vector[c] - amount for c, amount in room.items() if wanted * vector[c] > amount}
        parts = [sum(min(1, amount_at(v.template.vector, c) / amount) for c, amount in lack.items()) for v in left]
        best = left.pop(parts.index(max(parts)))  # in ties the first
        chosen.append(best)
        _free(room, best)
    return chosen


class FreeRoom:
    """Room that needs no eviction: idle, or about to become free because pods are terminating anyway.

    ``is_full`` says that the last search has found none.
    """

    def __init__(self, session: Session) -> None:
        self._session = session
        self._full: Hashable = None
        self.is_full = False
        self._columns: list[int] = []
        self._seen = 0

    def find(self, task: Task) -> int | None:
        """The row of the best node that has such room for ``task``; None if there is none."""
        kind, self.is_full = self._session.placer.kind(task), True
        if kind == self._full and self._stays_full(task):
            return None
        table, columns = self._session.table, self._session.axes.deciding(task.request)
        want = self._session.ledger.arrays(task.template)[0][columns][:, None]
        if table.view().fitting(want, columns)[1].any() and (choice := find(self._session, task)):
            self.is_full = False
            return choice.rows[0]
        self._full, self._columns, self._seen = kind, columns, len(table.journal)
        return None

    def _stays_full(self, task: Task) -> bool:
        """Whether nodes that have changed since the last search still have no room for a task of this kind."""
        table = self._session.table
        for row in set(table.journal[self._seen :]):
            if table.will_fit(task.template.vector, self._columns, row):
                return False
        self._seen = len(table.journal)
        return True


class SameNode:
    """The node of the task before, for the next one that is alike: it is chosen again while one victim there is enough.

    What a search would find is known then without searching: nothing else has moved, so no other node has come before
    it, and what is left of its victims would be named again, and room that needs no eviction was sought in vain before.
    ``row`` is where it has placed a task last.  The search holds this, and is given with each question, so that no ring
    of references outlives it.
    """

    __slots__ = ("_journal", "_task", "row")

    def __init__(self) -> None:
        self._task: Task | None = None
        self._journal = self.row = -1

    def note(self, search: Search, task: Task, row: int) -> None:
        """``search`` has just placed ``task`` on ``row``."""
        full = search.free_room is not None and search.free_room.is_full
        self._task, self.row, self._journal = task if full else None, row, len(search.session.table.journal)

    def option(self, search: Search, task: Task) -> NodeOption | None:
        """The node, with the one victim that is to go, if ``search`` would choose it for ``task`` before all others."""
        last = self._task
        if last is None or search.kept is None or self._journal != len(search.session.table.journal):
            return None
        if not placed_alike(search.session, task, last):
            return None
        if search.session.candidates.serves(task.template, search.need(task)) > 1:
            return None
        known = search.kept.left(task, self.row)
        if known is None or not self._suffices(search, task, known.victims[0]):
            return None
        if not self._comes_first(search, task, known):
            return None
        return NodeOption(self.row, known.victims, known.victims[:1])

    def alone(self, search: Search, task: Task) -> list[Task]:
        """The next victims there, each the only one of its job, for ``task`` and others that are alike.

        Where predicates and the quota are asked for each task, each gives exactly what ``task`` takes: then the queue
        holds whenever it is asked what it held when the task before was allowed.
        """
        if search.kept is None:
            return []
        victims, queue = search.kept.one_each(self.row)
        if not search.policy.checked:
            return [] if task.template.host_ports else victims
        wanted = task.template.vector
        alike = takewhile(lambda victim: victim.template.vector == wanted, victims)
        return list(alike) if queue == search.queue.name else []

    def _suffices(self, search: Search, task: Task, victim: Task) -> bool:
        """Whether no victim costs less than this one, and it makes the room that ``task`` lacks."""
        row = self.row
        if victim.priority != search.session.candidates.columns.lowest or victim.grace > GRACE:
            return False
        table, wanted, freed, lacks = search.session.table, task.template.vector, victim.template.vector, False
        for column in search.need(task):
            room = table.future_at(column, row)
            if wanted[column] > room:
                lacks = True
                if wanted[column] > room + amount_at(freed, column):
                    return False
        return lacks

    def _comes_first(self, search: Search, task: Task, known: OnNode) -> bool:
        """Whether the node still comes first in order, and its queues hold more than they deserve without its pods."""
        order = search.nodes.kept
        if order is None or order.first != self.row or search.session.placer.curable(task) is not order.members:
            return False
        if not search.policy.checked:
            return search.beyond(known, self.row, order.reach)
        return order.keep_up(search, task) and order.first == self.row
