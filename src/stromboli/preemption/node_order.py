"""The nodes that a search tries for a task, in order: by score where predicates are checked, else in node order.

Between tasks that are alike the order is kept: only the rows on which something moved are looked at again.  A search
holds its order, so the order is given the search with each question and does not hold it: both go with the last turn.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import numpy.typing as npt

from stromboli.framework.books.candidates import FEW, Reach
from stromboli.framework.engine.classes import NEVER
from stromboli.framework.engine.rows import Bools, Floats
from stromboli.framework.engine.shards import own_first
from stromboli.model.task import Task

if TYPE_CHECKING:
    from stromboli.framework.session.session import Session
    from stromboli.preemption.eviction_policy import EvictionPolicy
    from stromboli.preemption.reaches import Reaches


class Searching(Protocol):
    """What the order of nodes reads of a search."""

    session: Session
    policy: EvictionPolicy
    reaches: Reaches

    def need(self, task: Task) -> list[int]:
        """Columns that decide whether a task fits."""
        ...


class NodeOrder:
    """The order of nodes for the tasks of one search; ``kept`` is that of the last task, if it can be kept."""

    __slots__ = ("kept",)

    def __init__(self) -> None:
        self.kept: KeptOrder | None = None

    def rows(self, search: Searching, task: Task, reach: Reach) -> Iterator[int]:
        """The nodes to be tried for ``task``, in order."""
        members = sample(search, task)
        if search.session.placer.own is not None:
            return _parts(search, task, members, members & hopeful(search, task, reach))
        kept = self.kept
        if kept is None or kept.members is not members or kept.reach is not reach or not kept.keep_up(search, task):
            kept = self.kept = KeptOrder(search, task, members, reach)
        return kept.rows()


class EveryNode(NodeOrder):
    """The order of nodes with those, too, on which all tasks in reach together would not make enough room."""

    __slots__ = ()

    def rows(self, search: Searching, task: Task, reach: Reach) -> Iterator[int]:
        """The nodes that predicates allow for ``task``, in order."""
        members = sample(search, task)
        return _parts(search, task, members, members)


def _parts(search: Searching, task: Task, members: Bools, tried: Bools) -> Iterator[int]:
    """The rows ``tried``, those of the own shard before others."""
    parts = [part for part in own_first(tried, search.session.placer.own) if any_of(part)]
    if not search.policy.checked:
        yield from chain.from_iterable(map(first_ones, parts))
    elif parts:
        scores = search.session.placer.ranking(task, members)
        yield from chain.from_iterable(best_first(np.where(part, scores, NEVER)) for part in parts)


class KeptOrder:
    """The order of nodes for tasks of one class, with the same ``members`` and the same ``reach``.

    ``first`` is the row that comes first; there is none if it is not ``tried``.
    """

    __slots__ = ("_best", "_ranks", "_scores", "_seen", "_task", "_tried", "first", "members", "reach")

    def __init__(self, search: Searching, task: Task, members: Bools, reach: Reach) -> None:
        self._task, self.members, self.reach = task, members, reach
        self._tried: Bools = members & hopeful(search, task, reach)
        self._seen = len(search.session.table.journal)
        self._scores: Floats | None = None
        self._ranks: npt.NDArray[Any] = self._tried
        if search.policy.checked and any_of(self._tried):
            self._scores = np.asarray(search.session.placer.ranking(task, members))
            self._ranks = np.where(self._tried, self._scores, NEVER)
        self._look()

    def _look(self) -> None:
        """Find the first row: the best of all, in ties the lower one."""
        ranks = self._ranks
        self.first = int(ranks.argmax()) if ranks.size else -1
        self._best = ranks.item(self.first) if ranks.size else False

    def stays_first(self, ranks: Sequence[float]) -> int:
        """For how many of ``ranks``, which the first row is to have one after the other, it goes on coming first."""
        first, all_ranks = self.first, self._ranks
        own, all_ranks[first] = all_ranks[first], NEVER
        other = int(all_ranks.argmax())
        best, all_ranks[first] = all_ranks.item(other), own
        return next((n for n, rank in enumerate(ranks) if rank < best or (rank == best and other < first)), len(ranks))

    def keep_up(self, search: Searching, task: Task) -> bool:
        """Look again at the rows on which something moved; False where more may have changed."""
        session = search.session
        journal = session.table.journal
        touched = set(journal[self._seen :])
        if len(touched) > FEW:
            return False
        if search.policy.checked and (
            self._scores is None or session.placer.ranking(task, self.members) is not self._scores
        ):
            return False
        for row in touched:
            self._renew(search, row)
        self._seen = len(journal)
        return True

    def _renew(self, search: Searching, row: int) -> None:
        self._tried[row] = tried = bool(self.members[row]) and self._is_hopeful(search, row)
        rank: float = tried
        if self._scores is not None:
            self._ranks[row] = rank = self._scores.item(row) if tried else NEVER
        if rank > self._best or (rank == self._best and row < self.first):
            self.first, self._best = row, rank
        elif row == self.first and rank != self._best:
            self._look()

    def _is_hopeful(self, search: Searching, row: int) -> bool:
        """See :func:`hopeful`."""
        if not self.reach.would_fit(search.session.table, search.need(self._task), self._task.template.vector, row):
            return False
        return search.policy.without_victims or not (self.reach.empty[row] and search.reaches.all().empty[row])

    def rows(self) -> Iterator[int]:
        """The rows in order; mostly the first one is taken, so the others are sorted only if it is not."""
        first, tried = self.first, self._tried
        if first < 0 or not tried[first]:
            return
        yield first
        if self._scores is None:
            yield from marked_after(tried, first)
        else:
            yield from after_best(self._ranks, first)


def sample(search: Searching, task: Task) -> Bools:
    """The sample of the nodes that predicates allow for ``task``."""
    placer = search.session.placer
    return np.asarray(placer.sampled(placer.curable(task)), dtype=bool)


def hopeful(search: Searching, task: Task, reach: Reach) -> Bools:
    """Nodes that would have the room if all tasks in reach left, shape (nodes,); other nodes are impossible."""
    session = search.session
    found = reach.hopeful(session.table, search.need(task), session.ledger.arrays(task.template)[0])
    if search.policy.without_victims or not any_of(found & reach.empty):
        return found
    # such a node may have no victims that plugins would name, but it must have tasks that could be evicted
    return found & ~search.reaches.all().empty


def any_of(marks: Bools) -> bool:
    """Whether any row is marked: asked for each task, and numpy's own ``any`` takes four times as long."""
    return bool(marks.size and marks[marks.argmax()])


def first_ones(marks: Bools) -> Iterator[int]:
    """The rows that are marked, in order; mostly the first one is taken, so it is found before the others."""
    first = int(marks.argmax())
    yield first
    yield from marked_after(marks, first)


def marked_after(marks: Bools, first: int) -> list[int]:
    """The rows after ``first`` that are marked, in order."""
    after: list[int] = (np.flatnonzero(marks[first + 1 :]) + first + 1).tolist()
    return after


def best_first(scores: Floats) -> Iterator[int]:
    """Rows by score, higher first, ties to the lower row; rows of minus infinity are left out."""
    first = int(scores.argmax())
    yield first  # mostly this one is taken, so the others are sorted only if it is not
    yield from after_best(scores, first)


def after_best(scores: Floats, first: int) -> Iterator[int]:
    """The rows after ``first``, the best one, in the order of :func:`best_first`; mostly only a few are looked at."""
    left, row = scores.copy(), first
    for _ in range(FEW):
        left[row] = NEVER
        row = int(left.argmax())
        if left[row] == NEVER:
            return
        yield row
    left[row] = NEVER
    for row in np.argsort(-left, kind="stable").tolist():
        if left[row] == NEVER:
            return
        yield row
