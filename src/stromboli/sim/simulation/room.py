"""Whether any pod that waits could have room, which a cycle need not be run to know.

A pod without room on any node is placed by no plugin: filters and queues only refuse more.  So as long as pods leave,
and none of those that wait would fit on the nodes that they left, nothing is decided.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import Final

import numpy as np

from stromboli.cluster.state import ClusterState
from stromboli.model.job import PENDING, Job
from stromboli.model.resources.axes import Axes
from stromboli.model.table import EVERY, Ints, Rows

PLACES: Final = frozenset({"enqueue", "allocate", "backfill"})
"""Actions that place pods where there is room; others may make room by evictions."""


class Room:
    """Knows of the pods that wait whether nodes have room for any, from when it is first asked until it forgets."""

    def __init__(self, actions: Collection[str]) -> None:
        self._may_say = PLACES.issuperset(actions)
        self._wants: list[tuple[list[int], Ints]] | None = None

    def forget(self) -> None:
        """Other pods may wait from now on, and other rooms be taken."""
        self._wants = None

    def is_full(self, state: ClusterState, left: Collection[str]) -> bool:
        """Whether it is known that nothing that waits fits on any node.

        ``left`` are the nodes that pods have left since the last answer, which was yes; all are looked at otherwise.
        """
        if not self._may_say:
            return False
        first = self._wants is None
        if self._wants is None:
            # a settled job is admitted, and no pod of it waits
            undecided = [job for job in state.jobs.values() if not job.settled]
            if any(map(_needs_no_node, undecided)):
                return False
            self._wants = [*_wants(state.axes, undecided)]
        table = state.nodes.snapshot()
        rows: Rows | slice = EVERY
        if not first:
            rows = np.array([table.statics.row[name] for name in left if name in table.statics.row], dtype=np.intp)
        room = table.unreserved(rows)
        if any((want <= room[columns]).all(axis=0).any() for columns, want in self._wants):
            self._wants = None
            return False
        return True


def _needs_no_node(job: Job) -> bool:
    """Whether something may be decided about a job that takes no node: it waits to be admitted, or its gates to go."""
    return job.is_pending() or job.gated > 0


def _wants(axes: Axes, jobs: Iterable[Job]) -> Iterator[tuple[list[int], Ints]]:
    """What pods that wait ask for, alike ones once: the columns that decide, and how much of each, as one column."""
    waiting = (task for job in jobs for task in job.of(PENDING))
    for template in {id(task.template): task.template for task in waiting}.values():
        columns = axes.deciding(template.request)
        vector = axes.full(template.vector)
        yield columns, np.array([vector[column] for column in columns], dtype=np.int64)[:, None]
