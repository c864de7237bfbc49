"""Runs of tasks that limit each other: pods apart from each other, pods spread evenly over zones.

Where they may go changes with each of them, but only by domains, and scores only where a task went: so the best node of
each domain is known, and each step takes the best of those domains that may take a task.
"""

from __future__ import annotations

from heapq import heapify, heappop, heappush, heapreplace
from typing import Final

import numpy as np
import numpy.typing as npt

from stromboli.framework.engine.classes import NEVER, TaskClass
from stromboli.framework.engine.placement import LEVELS_MORE, Choice, Seen, best_rows, ladder
from stromboli.framework.engine.rows import Bools, Floats
from stromboli.framework.extension.hook import Limit
from stromboli.framework.statement.operation_kind import OperationKind
from stromboli.model.table import Rows

MOST_DOMAINS: Final = 64
"""In more domains of several nodes each, a run is placed one by one: the best nodes of each would have to be found."""

Front = tuple[float, int]
"""A negative score, and the place of its row: the least comes first, ties to the lower row."""


def limited_run(cls: TaskClass, count: int, within: Bools | None = None, seen: Seen | None = None) -> Choice | None:
    """Nodes with idle room for the next ``count`` tasks, or for as many as fit, as one by one would choose.

    None when they must be placed one by one: the limit is of another kind, or ``seen`` wants the scores of each step.
    """
    limit = None if seen else cls.limit()
    if limit is None:
        return None
    members = cls.open & cls.now & limit.rows
    if within is not None:
        members &= within
    totals = np.where(members, cls.total(slice(None), cls.constant), NEVER)
    rows = _hopeful(totals, members, limit, count)
    if rows is None:
        return None
    levels = min(count, cls.levels)
    while (places := _by_turns(_levels(cls, rows, totals, levels), limit.domains[rows], limit, count)) is None:
        levels = cls.levels = levels * LEVELS_MORE
        limit = cls.limit()
        if limit is None:
            return None
    return Choice(rows[places].tolist(), OperationKind.ALLOCATE, stepwise=True)


def _hopeful(totals: Floats, members: Bools, limit: Limit, count: int) -> Rows | None:
    """The rows that ``count`` tasks can reach: the best of each domain; None where there are too many domains.

    Of domains of one node each, all that are barred at first count, and the best of the others.
    """
    domains = limit.domains
    present = np.unique(domains[members])
    if len(present) == np.count_nonzero(members):
        shut = [int(each) for each in present if not limit.admits(int(each))]
        barred = members & np.isin(domains, shut)
        free = best_rows(np.where(barred, NEVER, totals), count)
        return np.sort(np.concatenate((free, np.flatnonzero(barred))))
    if len(present) > MOST_DOMAINS:
        return None
    return np.sort(np.concatenate([best_rows(np.where(domains == each, totals, NEVER), count) for each in present]))


def _levels(cls: TaskClass, rows: Rows, totals: Floats, levels: int) -> list[list[float]]:
    """The score of the next task on each of ``rows`` once 0, 1, … went there, by level."""
    found: list[list[float]] = ladder(cls, rows, totals[rows], cls.constant, levels).tolist()
    return found


def _by_turns(levels: list[list[float]], domains: npt.NDArray[np.intp], limit: Limit, count: int) -> list[int] | None:
    """The places of the rows that the tasks take; None where one takes more than ``levels`` tells of."""
    on_row, places = [0] * len(domains), list[int]()
    ranked = _ranked(levels[0], domains.tolist())
    fronts = [(heap[0], domain) for domain, heap in ranked.items()]
    heapify(fronts)
    barred: list[int] = []
    while fronts and len(places) < count:
        (_, place), domain = heappop(fronts)
        if not limit.admits(domain):
            barred.append(domain)
            continue
        places.append(place)
        on_row[place] += 1
        if on_row[place] == len(levels):
            if len(places) < count:
                return None
            break
        again = [domain, *barred] if limit.place(domain) else [domain]
        barred = [] if len(again) > 1 else barred
        _move_on(ranked[domain], levels[on_row[place]][place], place)
        for each in again:
            if ranked[each]:
                heappush(fronts, (ranked[each][0], each))
    return places


def _ranked(scores: list[float], domains: list[int]) -> dict[int, list[Front]]:
    """The rows of each domain as a heap, the best first."""
    found: dict[int, list[Front]] = {}
    for place, (score, domain) in enumerate(zip(scores, domains, strict=True)):
        found.setdefault(domain, []).append((-score, place))
    for heap in found.values():
        heapify(heap)
    return found


def _move_on(heap: list[Front], score: float, place: int) -> None:
    """The best row of a domain, at ``place``, has taken a task and has ``score`` for the next, or no room for it."""
    if score > NEVER:
        heapreplace(heap, (-score, place))
    else:
        heappop(heap)
