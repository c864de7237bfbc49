"""How good a node is by the volumes that a pod would get there: the smaller the rest, or the larger, as one wants it.

The formulas are those of Kubernetes' plugin VolumeBinding where its feature gate StorageCapacityScoring is on
(https://github.com/kubernetes/enhancements/tree/master/keps/sig-storage/4049-storage-capacity-scoring).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any, Final, NamedTuple

import numpy as np

from stromboli.filters.volumes.book import Gets, VolumeBook
from stromboli.model.table import Ints, Rows
from stromboli.model.task import Task

ALL: Final = 100
"""Percent of a capacity; the highest score."""
MOST: Final = 10
"""The highest score of a point."""
MOST_POINTS: Final = 64
MOST_KEPT: Final = 256
"""Scores of all nodes that are kept, each for other claims; beyond, the oldest are worked out again."""


class Point(NamedTuple):
    """A score from 0 to 10 for so many percent of a capacity in use."""

    utilization: int
    score: int


Curve = Sequence[Point]
"""Points by utilization; between two of them the score is on the line that joins them."""


def shape_problem(written: Sequence[Any]) -> str:
    """What is wrong with points as a configuration has them; empty if nothing is."""
    if len(written) > MOST_POINTS:
        return f"{len(written)} points are more than {MOST_POINTS}"
    for each in written:
        if not isinstance(each, Mapping) or any(type(each.get(key)) is not int for key in Point._fields):
            return "a point is not of the form {utilization: 0 to 100, score: 0 to 10}"
        if not (0 <= each["utilization"] <= ALL and 0 <= each["score"] <= MOST):
            return f"the point {dict(each)!r:.80} has a utilization beyond 0 to {ALL}, or a score beyond 0 to {MOST}"
    places = [each["utilization"] for each in written]
    return "" if all(low < high for low, high in pairwise(places)) else "utilizations do not rise from point to point"


def curve_of(written: Iterable[Any]) -> Curve:
    """The points of a configuration that has no problem, scores from 0 to 100."""
    return [Point(each["utilization"], each["score"] * ALL // MOST) for each in written]


def height(curve: Curve, utilization: int) -> int:
    """The score at a utilization in percent; before the first point and after the last it is theirs."""
    if utilization <= curve[0].utilization:
        return curve[0].score
    for low, high in pairwise(curve):
        if utilization <= high.utilization:
            rise = (high.score - low.score) * (utilization - low.utilization)
            return low.score + int(rise / (high.utilization - low.utilization))
    return curve[-1].score


def score_of(gets: Iterable[Gets], curve: Curve) -> int:
    """The score of a node, from 0 to 100: the mean over storage classes of how much is asked of what there is.

    Volumes that exist count, and only without any those that are to be made where the driver says how much room it has.
    """
    found = list(gets)
    sums: dict[str, tuple[int, int]] = {}
    for each in [one for one in found if not one.made] or [one for one in found if one.capacity is not None]:
        asked, there = sums.get(each.storage_class, (0, 0))
        capacity = each.capacity or 0
        sums[each.storage_class] = asked + each.asked, capacity if each.made else there + capacity
    parts = [height(curve, _utilization(*each)) for each in sums.values()]
    return int(sum(parts) / len(parts) + 0.5) if parts else 0


def _utilization(asked: int, there: int) -> int:
    """Percent; all of what is smaller than what is asked for."""
    return ALL * asked // there if there and asked <= there else ALL


class StorageScores:
    """The scores of all nodes for pods of a session, renewed where a volume was given or taken back."""

    def __init__(self, book: VolumeBook, curve: Curve, rows: int) -> None:
        self._book, self._curve, self._rows = book, curve, rows
        self._known: dict[object, tuple[int, Ints]] = {}

    def of(self, task: Task) -> Ints | None:
        """The score of each row; None for a pod that lacks no volume."""
        wanted = self._book.wanted(task)
        if not wanted.wishes:
            return None
        known, found = self._known.pop(wanted.wishes, (-1, np.zeros(self._rows, dtype=np.int64)))
        rows: Rows = np.arange(self._rows, dtype=np.intp) if known < 0 else self._book.changed_since(wanted, known)
        if rows.size:
            found = found.copy()
            found[rows] = [self._score(task, row) for row in rows.tolist()]
        if len(self._known) >= MOST_KEPT:
            del self._known[next(iter(self._known))]
        self._known[wanted.wishes] = self._book.changes, found
        return found

    def _score(self, task: Task, row: int) -> int:
        found = self._book.would_get(task, row)
        return 0 if found is None else score_of(found, self._curve)
