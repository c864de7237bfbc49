"""What queues hold and ask for of resources that no node offers, by name: sums have them in one column."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from stromboli.api.scheduling import POD_GROUP_INQUEUE
from stromboli.framework.session.session import Session
from stromboli.model.job import HELD_STATUS, PENDING, Job
from stromboli.model.resources.axes import UNOFFERED, Axes
from stromboli.model.resources.resource import Resource
from stromboli.model.status import ALLOCATED_STATUS
from stromboli.model.task import Task, is_held_back

Named = Counter[str]


class ByQueue:
    """Amounts by name for each figure of each queue, counted when the first one is asked for.

    The figures are those of :class:`~stromboli.model.snapshot.QueueSums`; what a queue holds is its own jobs' alone.
    """

    def __init__(self, session: Session) -> None:
        self._session = session
        self._found: dict[tuple[str, str], Named] | None = None

    def spelled(self, queue: str, figure: str, amounts: Resource) -> Resource:
        """``amounts``, a figure of ``queue``, with names in place of the column that they share."""
        if not (amounts.scalars or {}).get(UNOFFERED):
            return amounts
        named = amounts.clone()
        scalars = {name: amount for name, amount in (named.scalars or {}).items() if name != UNOFFERED}
        named.scalars = scalars | self._all().get((queue, figure), Named())
        return named

    def _all(self) -> Mapping[tuple[str, str], Named]:
        if self._found is None:
            self._found = {}
            for job in self._session.jobs.peek():
                for figure, amounts in _of(job, self._session.axes).items():
                    self._found.setdefault((job.queue, figure), Named()).update(amounts)
        return self._found


def _of(job: Job, axes: Axes) -> dict[str, Named]:
    held = _asked((task for status in HELD_STATUS for task in job.of(status)), axes)
    waiting = _asked(job.of(PENDING), axes)
    least = Named(axes.unoffered(job.facts.min_resources or Resource()))
    found = {"allocated": held, "request": held + waiting, "elastic": held - least}
    started = job.phase == "Running" and job.number(*ALLOCATED_STATUS) >= job.min_available
    if job.phase == POD_GROUP_INQUEUE or started:
        kept_back = (task for task in job.tasks.values() if is_held_back(task))
        found["inqueue"] = least - held - _asked(kept_back, axes)
    return found


def _asked(tasks: Iterable[Task], axes: Axes) -> Named:
    found = Named()
    for task in tasks:
        found.update(axes.unoffered(task.request))
    return found
