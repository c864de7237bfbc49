"""The account of one queue: what it holds, what it deserves and what it may have."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from stromboli.api.scheduling import QUEUE_OPEN
from stromboli.fairness.quota import Quota, by_column
from stromboli.fairness.thresholds import thresholds
from stromboli.model.resources.axes import Axes
from stromboli.model.resources.resource import Resource

if TYPE_CHECKING:
    from typing import Self

    from stromboli.framework.books.jobs import Figures, QueueInfo


class QueueAccount:
    """One queue of a session.

    ``held`` follows the session's placements; ``inqueue`` is what admitted jobs still need, by column, and grows as
    jobs are admitted.  ``limits`` are what the queue may have, ``deserved`` what it deserves.  ``fault`` says why the
    queue cannot be used.  ``ancestors`` are the accounts of the queues above, from the root on.
    """

    __slots__ = (
        "ancestors", "deserved", "elastic", "fault", "held", "inqueue", "is_open", "limits", "name", "priority",
        "queue", "quota", "request", "takes_part",
    )  # fmt: skip

    def __init__(self, queue: QueueInfo, quota: Quota, axes: Axes, held: list[int]) -> None:
        self.queue, self.name, self.quota, self.fault = queue, queue.name, quota, quota.fault
        self.priority, self.is_open = queue.spec.priority, queue.status.state == QUEUE_OPEN
        self.takes_part = bool(queue.sums.jobs)
        self.ancestors: tuple[Self, ...] = ()
        held.extend([0] * (len(axes) - len(held)))  # so that comparisons need not look at lengths
        self.held, sums = held, queue.sums
        self.inqueue, self.elastic, self.request = map(axes.full, (sums.inqueue, sums.elastic, sums.request))
        self.limits = thresholds(tuple(self.real_capability(axes)))
        self.deserved = thresholds(tuple(by_column(axes, quota.deserved, 0.0)))

    @property
    def walk(self) -> tuple[Self, ...]:
        """The accounts whose limits a placement must keep: this one and those above it."""
        return (self,)

    def share(self) -> float:
        """The largest part of what it deserves that the queue holds."""
        return self.deserved.share(self.held)

    def turn(self) -> tuple[float, ...]:
        """The place of the queue among queues of its priority; the least comes first."""
        return (self.share(),)

    def real_capability(self, axes: Axes) -> list[float]:
        """The most that the queue may hold, by column."""
        return by_column(axes, self.quota.real_capability, 0.0)

    def figures(self, axes: Axes) -> Figures:
        """What is published of the queue."""
        quota = self.quota
        return {
            "deserved": quota.deserved,
            "allocated": axes.resource(self.held),
            "request": axes.resource(self.request),
            "elastic": axes.resource(self.elastic),
            "inqueue": axes.resource(self.inqueue),
            "capability": quota.capability,
            "realCapability": quota.real_capability,
            "guarantee": quota.guarantee,
            "share": self.share(),
        }


def add_columns(axes: Axes, amounts: Iterable[Resource | None]) -> None:
    """Give every name in ``amounts`` its column, which must be done before accounts are made."""
    for each in amounts:
        axes.vector(each or Resource())
