"""The books of proportion: one account a queue, with what it may have, asks for and deserves."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from stromboli.fairness.quota import Quota, Reading, by_column, flat
from stromboli.fairness.thresholds import Thresholds
from stromboli.fairness.waterfill import Claim
from stromboli.framework.observe import OnAxes, QueueFigures
from stromboli.model.axes import Axes
from stromboli.model.names import QUEUE_OPEN
from stromboli.model.resource import Resource

if TYPE_CHECKING:
    from stromboli.framework.jobs import Figures, QueueInfo
    from stromboli.framework.session import Session


class Account:
    """One queue of a session.

    ``held`` follows the session's placements; ``inqueue`` is what admitted jobs still need, by column, and grows as
    jobs are admitted.  ``capability`` is None where the queue states none.  ``limits`` is ``real_capability`` by
    column, 0 for what it does not name.
    """

    __slots__ = (
        "capability", "claim", "elastic", "guarantee", "held", "inqueue", "is_open", "limits", "name", "overused",
        "priority", "queue", "real_capability", "thresholds",
    )  # fmt: skip

    def __init__(self, queue: QueueInfo, quota: Quota) -> None:
        self.queue, self.name = queue, queue.name
        self.priority, self.is_open = queue.spec.priority, queue.status.state == QUEUE_OPEN
        self.guarantee, self.capability, self.real_capability = quota.guarantee, quota.capability, quota.real_capability
        self.overused: bool | None = None

    def open(self, axes: Axes) -> None:
        """Prepare the comparisons with what the queue may have, and its claim."""
        sums = self.queue.sums
        sums.held.extend([0] * (len(axes) - len(sums.held)))  # so that comparisons need not look at lengths
        self.held, self.inqueue, self.elastic = sums.held, axes.full(sums.inqueue), axes.full(sums.elastic)
        self.limits = by_column(axes, self.real_capability, 0.0)
        self.claim = Claim(
            name=self.name,
            weight=self.queue.spec.weight,
            request=[float(amount) for amount in axes.full(sums.request)],
            # What others are guaranteed the whole of is no dimension of real_capability, and so does not limit here.
            limit=by_column(axes, self.real_capability, math.inf),
            guarantee=by_column(axes, self.guarantee, 0.0),
        )
        self.settle()

    def settle(self) -> None:
        """Take over what the water filling has given the claim."""
        self.thresholds = Thresholds(self.claim.deserved)

    def share(self) -> float:
        """The largest part of what it deserves that the queue holds."""
        return self.thresholds.share(self.held)

    def figures(self, axes: Axes) -> Figures:
        """What is published of the queue."""
        return {
            "deserved": axes.resource(self.claim.deserved),
            "allocated": axes.resource(self.held),
            "request": axes.resource(self.claim.request),
            "elastic": axes.resource(self.elastic),
            "inqueue": axes.resource(self.inqueue),
            "capability": self.capability,
            "realCapability": self.real_capability,
            "guarantee": self.guarantee,
            "share": self.share(),
        }

    def metrics(self, axes: Axes, admitted: tuple[int, ...]) -> QueueFigures:
        """What metrics show of the queue; ``admitted`` is ``inqueue`` as it was when the session opened."""
        allocated, request = OnAxes(axes, tuple(self.held)), OnAxes(axes, tuple(map(int, self.claim.request)))
        inqueue = OnAxes(axes, admitted)
        if not self.queue.sums.jobs:
            return QueueFigures(allocated, request, inqueue=inqueue)
        return QueueFigures(
            allocated, request, axes.resource(self.claim.deserved), inqueue=inqueue, share=self.share(),
            weight=self.queue.spec.weight, overused=self.overused,
        )  # fmt: skip


def open_accounts(session: Session) -> dict[str, Account]:
    """The accounts of all queues by name, nothing shared out yet."""
    reading = Reading(device_scalars=True)  # proportion knows no device classes: their names are resources to it
    quotas = flat([info.queue for info in session.queues.values()], session.total_resource, reading)
    accounts = {name: Account(session.queues[name], quota) for name, quota in quotas.items()}
    for account in accounts.values():
        for amounts in (account.guarantee, account.capability):
            session.axes.vector(amounts or Resource())  # every name gets its column before vectors are made
    for account in accounts.values():
        account.open(session.axes)
    return accounts
