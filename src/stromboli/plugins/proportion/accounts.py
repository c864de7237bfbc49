"""The accounts of proportion: one for each queue, with what it may have, asks for and deserves."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import chain
from typing import TYPE_CHECKING, Final

from stromboli.fairness.quota import Quota, Reading, by_column, flat
from stromboli.fairness.thresholds import thresholds
from stromboli.fairness.waterfill import Claim
from stromboli.model.queue import Queue
from stromboli.model.resources.axes import Axes
from stromboli.model.resources.resource import Resource
from stromboli.narration.observe import OnAxes, QueueFigures
from stromboli.queue_accounts.account import QueueAccount, add_columns

if TYPE_CHECKING:
    from stromboli.framework.books.cluster_view import ClusterView
    from stromboli.framework.books.jobs import QueueInfo


class Account(QueueAccount):
    """One queue of a session; ``is_usable`` is whether tasks may be placed in it."""

    __slots__ = ("claim", "is_usable", "overused")

    def __init__(self, queue: QueueInfo, quota: Quota, axes: Axes) -> None:
        super().__init__(queue, quota, axes, queue.sums.held)
        self.is_usable = self.is_open and not self.fault
        self.overused: bool | None = None
        self.claim = Claim(
            name=self.name,
            weight=self.queue.spec.weight,
            request=[float(amount) for amount in self.request],
            # What others are guaranteed the whole of is no dimension of real_capability, and so does not limit here.
            limit=by_column(axes, quota.real_capability, math.inf),
            guarantee=by_column(axes, quota.guarantee, 0.0),
        )

    def settle(self, axes: Axes) -> None:
        """Take over what the water filling has given the claim."""
        self.quota.deserved, self.deserved = axes.resource(self.claim.deserved), thresholds(tuple(self.claim.deserved))

    def metrics(self, axes: Axes, admitted: tuple[int, ...]) -> QueueFigures:
        """What metrics show of the queue; ``admitted`` is ``inqueue`` as it was when the session opened."""
        allocated, request = OnAxes(axes, tuple(self.held)), OnAxes(axes, tuple(self.request))
        found = QueueFigures(allocated, request, inqueue=OnAxes(axes, admitted))
        if not self.takes_part:
            return found
        weight, deserved = self.queue.spec.weight, self.quota.deserved
        return found._replace(deserved=deserved, share=self.share(), weight=weight, overused=self.overused)


class Quotas:
    """The quotas of the last session, which hold as long as no Queue and no node says anything else."""

    def __init__(self) -> None:
        self._known: tuple[object, dict[str, Quota]] = None, {}

    def of(self, queues: Sequence[Queue], total: Resource, reading: Reading, most: Resource) -> dict[str, Quota]:
        """:func:`~stromboli.fairness.quota.flat`; each session has amounts of its own, which plugins may change."""
        asked = [(queue.name, queue.spec) for queue in queues], total, reading, most
        known, quotas = self._known
        if known != asked:
            quotas = flat(queues, total, reading, most)
            self._known = asked, quotas
        return {name: quota.twin() for name, quota in quotas.items()}


_QUOTAS: Final = Quotas()


def open_accounts(session: ClusterView) -> dict[str, Account]:
    """The accounts of all queues by name, nothing shared out yet."""
    # proportion knows no device classes: their names are resources to it
    reading = Reading(device_scalars=True, checks_sums=not session.compat.asks("bad-queue"))
    total = session.axes.resource(session.ledger.total)
    quotas = _QUOTAS.of([info.queue for info in session.queues.values()], total, reading, session.queues.most_of(total))
    add_columns(session.axes, chain.from_iterable((quota.guarantee, quota.capability) for quota in quotas.values()))
    for quota in quotas.values():
        quota.deserved = Resource()
    return {name: Account(session.queues[name], quota, session.axes) for name, quota in quotas.items()}
