"""Fewer victims: room that nobody has to make, and else the node on which the fewest and least important have to go.

What is freed for a pod that holds room beyond its session is not lost to somebody else, so it pays to look twice before
anybody goes.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from itertools import islice
from operator import itemgetter
from typing import TYPE_CHECKING, Final

import msgspec

from stromboli.framework.ending import find
from stromboli.model.axes import amount_at, fits
from stromboli.model.job import PENDING
from stromboli.model.task import GRACE, Task

if TYPE_CHECKING:
    from stromboli.actions.victim_search import Search
    from stromboli.framework.candidates import Reach
    from stromboli.framework.session import Session

LOOKED_AT: Final = 8
"""How many nodes, the first in order, are compared before anybody is evicted."""

Cost = tuple[bool, int, float, int]
"""Whether it is in vain, the priority of the most important victim, how many there are for each task of the job that
then has its room, and how many seconds beyond the usual grace period the slowest of them has."""


class Offer(msgspec.Struct, frozen=True):
    """A node by its row, whom the plugins let a task evict there (None: they have not been asked), and whom it takes.

    ``chosen`` is None where they have not been asked, and where all whom they let go would not be enough.
    """

    row: int
    victims: list[Task] | None = None
    chosen: list[Task] | None = None


def offers(search: Search, task: Task, reach: Reach) -> Iterator[Offer]:
    """The nodes that ``search`` tries for ``task``, the first of them by whom it costs, ties in their order.

    Where it costs as little as one victim can no further node is compared.
    """
    rows = search.rows(task, reach)
    wanted = _wanted(search, task)
    cheapest = False, search.session.candidates.lowest, 1 / wanted, 0
    found: list[tuple[Cost, Offer]] = []
    for row in islice(rows, LOOKED_AT):
        victims = search.victims(task, row, reach)
        chosen = fewest(search, task, row, victims, wanted)
        cost = _cost(search, task, row, chosen, wanted)
        if cost <= cheapest:
            yield Offer(row, victims, chosen)
            break
        found.append((cost, Offer(row, victims, chosen)))
    found.sort(key=itemgetter(0))
    yield from map(itemgetter(1), found)
    yield from map(Offer, rows)


def _wanted(search: Search, task: Task) -> int:
    """How many tasks like ``task`` its job still needs, if the room of one victim could be enough for so many."""
    job, most = search.job, search.session.candidates.serves(task.template, search.need(task))
    if most > 1:
        most = min(most, job.min_available - job.ready_task_num() - job.waiting_task_num())
    if most <= 1:
        return 1
    alike = (other for other in job.of(PENDING) if other.template is task.template)
    return max(1, sum(1 for _ in islice(alike, most)))


def _cost(search: Search, task: Task, row: int, chosen: Sequence[Task] | None, wanted: int) -> Cost:
    if not chosen:
        return chosen is None, 0, 0.0, 0
    highest, slowest = chosen[0].priority, GRACE
    for victim in chosen:
        highest, slowest = max(highest, victim.priority), max(slowest, victim.grace)
    served = _served(search, task, row, chosen, wanted) if wanted > 1 else 1
    return False, highest, len(chosen) / served, slowest - GRACE


def _served(search: Search, task: Task, row: int, chosen: Sequence[Task], wanted: int) -> int:
    """How many of ``wanted`` tasks like ``task`` find room on ``row`` once ``chosen`` have gone, at least 1."""
    room, vector = _room(search, task, row), task.template.vector
    for victim in chosen:
        _leave(room, victim)
    return max(1, min([wanted, *(amount // vector[column] for column, amount in room.items() if vector[column])]))


def _room(search: Search, task: Task, row: int) -> dict[int, int]:
    """What ``row`` will have idle, by column, where that decides whether ``task`` fits."""
    table = search.session.table
    return {column: table.future_at(column, row) for column in search.need(task)}


def _leave(room: dict[int, int], victim: Task) -> None:
    """Add to ``room`` what ``victim`` leaves."""
    vector = victim.template.vector
    for column in room:
        room[column] += amount_at(vector, column)


def fewest(search: Search, task: Task, row: int, victims: Sequence[Task], wanted: int = 1) -> list[Task] | None:
    """Whom of ``victims`` it takes to give ``task`` room on ``row``; None if all are too few.

    The first of them in order; if that is more than one, or ``wanted`` such tasks want room, those no more important
    who give most of it, where they are fewer.
    """
    room, chosen = _room(search, task, row), list[Task]()
    vector, left = task.template.vector, iter(victims)
    while not fits(vector, room, room):
        if (victim := next(left, None)) is None:
            return None
        _leave(room, victim)
        chosen.append(victim)
    if len(chosen) + wanted <= 2 or not chosen:
        return chosen
    highest = max([victim.priority for victim in chosen])
    larger = _largest(search, task, row, [victim for victim in victims if victim.priority <= highest], wanted)
    return larger if len(larger) < len(chosen) or wanted > 1 else chosen


def _largest(search: Search, task: Task, row: int, victims: Sequence[Task], wanted: int) -> list[Task]:
    """Those of ``victims`` who give most of what ``wanted`` tasks lack, one by one until ``task`` has room."""
    room, vector, left, chosen = _room(search, task, row), task.template.vector, list(victims), list[Task]()
    while not fits(vector, room, room):
        lack = {c: wanted * vector[c] - amount for c, amount in room.items() if wanted * vector[c] > amount}
        parts = [sum(min(1, amount_at(v.template.vector, c) / amount) for c, amount in lack.items()) for v in left]
        best = left.pop(parts.index(max(parts)))  # in ties the first
        chosen.append(best)
        _leave(room, best)
    return chosen


class Unclaimed:
    """Room that nobody has to make: idle, or about to become free as somebody is ending anyway."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._full: Hashable = None
        self._columns: list[int] = []
        self._seen = 0

    def find(self, task: Task) -> int | None:
        """The row of the best node that has such room for ``task``; None where none has."""
        kind = self._session.placer.kind(task)
        if kind == self._full and self._stays_full(task):
            return None
        table, columns = self._session.table, self._session.axes.deciding(task.request)
        will_fit = bool(table.covering(task.template.vector, columns).any())
        if will_fit and (choice := find(self._session, task)):
            return choice.rows[0]
        self._full, self._columns, self._seen = kind, columns, len(table.journal)
        return None

    def _stays_full(self, task: Task) -> bool:
        """Whether the nodes touched since none had room for a task of this kind have none either."""
        table = self._session.table
        for row in set(table.journal[self._seen :]):
            if table.will_cover(task.template.vector, self._columns, row):
                return False
        self._seen = len(table.journal)
        return True
