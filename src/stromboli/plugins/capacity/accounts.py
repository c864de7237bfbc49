"""The accounts of capacity: one for each queue, in a tree with those above it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import TYPE_CHECKING

from stromboli.fairness.quota import Quota, Reading, by_column, flat, read, tree
from stromboli.fairness.thresholds import thresholds
from stromboli.model.names import CPU, MEMORY
from stromboli.model.names import ROOT_QUEUE as ROOT
from stromboli.model.resources.amounts import MIN
from stromboli.model.resources.axes import Axes, Vector, add_to
from stromboli.model.resources.resource import Resource
from stromboli.narration.observe import OnAxes, QueueFigures
from stromboli.queue_accounts.account import QueueAccount, add_columns

if TYPE_CHECKING:
    from stromboli.framework.books.cluster_view import ClusterView
    from stromboli.framework.books.jobs import Figures, QueueInfo
    from stromboli.model.queue import Queue
    from stromboli.model.task import Task


class Account(QueueAccount):
    """One queue of a session.

    In a tree ``held`` counts the placements of all queues below, too.  ``above`` are the accounts above whose limits a
    placement must keep; None: it keeps not even its own.  ``share_at_open`` is the share of a queue with children,
    which stays as it was when the session opened, less what is only ``pipelined`` below it, so that reservations do not
    change the order.
    """

    __slots__ = (
        "_expired",
        "_kept",
        "_reserved",
        "above",
        "guarantee",
        "is_leaf",
        "pipelined",
        "relevant",
        "share_at_open",
    )

    def __init__(self, queue: QueueInfo, quota: Quota, axes: Axes, strict: bool) -> None:
        """``strict`` says that cpu and memory of 0 in what is deserved make no claim."""
        super().__init__(queue, quota, axes, queue.branch)
        self.is_leaf = not quota.children
        self.above: tuple[Account, ...] | None = ()
        self.share_at_open = 0.0
        self._reserved: dict[str, Vector] = {}
        self._kept: list[int] = []
        self._expired: set[str] = set()
        self.pipelined = axes.full(queue.sums.reserved())
        self.guarantee = thresholds(tuple(by_column(axes, quota.guarantee, 0.0)))
        self.relevant = [axes.column(name) for name in self._claims(strict)]

    @property
    def walk(self) -> tuple[Account, ...]:
        """The accounts whose limits a placement must keep: this one and those above it."""
        return () if self.above is None else (self, *self.above)

    @property
    def is_misused(self) -> bool:
        """Whether jobs belong to the queue although others are below it."""
        return bool(self.queue.sums.jobs) and not self.is_leaf and not self.fault

    def _claims(self, strict: bool) -> list[str]:
        """Names in which the queue may hold more than it deserves: those that it names."""
        deserved = self.quota.deserved
        named = [CPU, MEMORY, *(deserved.scalars or {})]
        if strict:
            return [name for name in named if name not in (CPU, MEMORY) or deserved.get(name) >= MIN]
        return [name for name in named if deserved.get(name) >= MIN or name in self.quota.claims]

    # ------------------------------------------------------------------ shares

    @property
    def best_effort(self) -> bool:
        """Whether the queue deserves nothing."""
        return self.quota.deserved.is_empty()

    def share(self) -> float:
        """The largest part of what it deserves that the queue holds; 1 where it deserves nothing."""
        return 1.0 if self.best_effort else super().share()

    def note_share(self) -> None:
        """Keep the share as it is now, what is only reserved left out."""
        taken = [held - waiting for held, waiting in zip(self.held, self.pipelined, strict=True)]
        self.share_at_open = 1.0 if self.best_effort else self.deserved.share(taken)

    def turn(self) -> tuple[float, bool]:
        """The place of the queue among its siblings: its share, then whether it deserves nothing."""
        return (self.share() if self.is_leaf else self.share_at_open), self.best_effort

    # ------------------------------------------------------------------ what may be taken

    def exceeds(self, held: Sequence[int], asked: Vector) -> bool:
        """Whether the queue, holding ``held``, has more than it deserves of anything that ``asked`` asks for."""
        limits, size = self.deserved.limits, len(asked)
        return any(c < size and asked[c] and held[c] > limits[c] for c in self.relevant)

    # ------------------------------------------------------------------ parts kept for tasks

    def reserve(self, task: Task) -> None:
        """Keep a part of the queue for a task that was let in, until it is placed; for one that is expired, none."""
        self.release(task)
        if task.uid in self._expired:
            return
        self._reserved[task.uid] = task.template.vector
        add_to(self._kept, task.template.vector)

    def expire(self, task: Task) -> None:
        """Keep nothing for the task any more in this session, whatever becomes of it."""
        self._expired.add(task.uid)

    def release(self, task: Task) -> None:
        """The task needs nothing kept for it any more."""
        if (vector := self._reserved.pop(task.uid, None)) is not None:
            add_to(self._kept, [-amount for amount in vector])

    def reserved_beside(self, task: Task) -> list[int]:
        """What is kept for others than ``task``, by column."""
        total = list(self._kept)
        add_to(total, [-amount for amount in self._reserved.get(task.uid, ())])
        return total

    # ------------------------------------------------------------------ what is shown

    def as_written(self) -> Figures:
        """What the queue itself says; all that is published where the tree cannot be used."""
        mine = read(self.queue.queue, Reading(device_scalars=True))
        return {"deserved": mine.deserved, "guarantee": mine.guarantee, "capability": mine.capability}

    def metrics(self, axes: Axes, admitted: tuple[int, ...]) -> QueueFigures:
        """What metrics show of the queue; ``admitted`` is ``inqueue`` as it was when the session opened."""
        quota, share = self.quota, self.turn()[0]
        found = QueueFigures(
            OnAxes(axes, tuple(self.held)), OnAxes(axes, tuple(self.request)), quota.deserved,
            inqueue=OnAxes(axes, admitted), capacity=quota.capability, real_capacity=quota.real_capability,
        )  # fmt: skip
        return found._replace(share=share, overused=share > 1) if self.takes_part else found


def reading_of(session: ClusterView) -> Reading:
    """How the session reads a Queue's amounts."""
    asks = session.compat.asks
    return Reading(asks("device-class-scalars"), not asks("unset-dimensions"), not asks("bad-queue"))


def offered(session: ClusterView) -> Resource:
    """What all nodes offer together; resources that they list without having any count 0."""
    total = session.axes.resource(session.ledger.total)
    for name in sorted(session.table.statics.offered & session.axes.index.keys() - {CPU, MEMORY}):
        total.add_scalar(name, 0.0)
    return total


def open_flat(session: ClusterView) -> dict[str, Account]:
    """The accounts of queues side by side, by name."""
    total = offered(session)
    return _opened(session, flat(_queues(session), total, reading_of(session), session.queues.most_of(total)))


def open_tree(session: ClusterView) -> dict[str, Account]:
    """The accounts of queues below one another, by name."""
    total = offered(session)
    quotas = tree(_queues(session), total, reading_of(session), session.queues.most_of(total))
    session.queues.sum_branches({name: quota.ancestors for name, quota in quotas.items()})
    accounts = _opened(session, quotas)
    for account in accounts.values():
        account.ancestors = tuple(accounts[name] for name in account.quota.ancestors)
        limited = account.ancestors if session.compat.asks("root-queue") else account.ancestors[1:]
        account.above = tuple(reversed(limited))
        account.takes_part = True
    _sum_up(accounts.values())
    if not session.compat.asks("root-queue") and ROOT in accounts:
        accounts[ROOT].above = None
    for account in accounts.values():
        account.note_share()
    return accounts


def _queues(session: ClusterView) -> list[Queue]:
    return [info.queue for info in session.queues.values()]


def _opened(session: ClusterView, quotas: Mapping[str, Quota]) -> dict[str, Account]:
    axes, strict = session.axes, session.compat.asks("unset-dimensions")
    amounts = ((quota.guarantee, quota.deserved, quota.capability) for quota in quotas.values())
    add_columns(axes, chain.from_iterable(amounts))
    return {name: Account(session.queues[name], quota, axes, strict) for name, quota in quotas.items()}


def _sum_up(accounts: Iterable[Account]) -> None:
    """Let queues above others count what is below them."""
    for account in list(accounts):
        sums = account.queue.sums
        for above in account.ancestors:
            for mine, theirs in (
                (above.request, sums.request),
                (above.inqueue, sums.inqueue),
                (above.elastic, sums.elastic),
                (above.pipelined, sums.reserved()),
            ):
                add_to(mine, theirs)


def shared_levels(left: Account, right: Account) -> int:
    """How far down the queues above both are the same: the last common place, counted from the root's 0."""
    level = 0
    for place, (one, other) in enumerate(zip(left.ancestors, right.ancestors, strict=False)):
        if one is not other:
            break
        level = place
    return level


def ancestor_at(account: Account, level: int) -> Account | None:
    """The queue so many levels up, 1 for the parent; None above the root, and for the root itself."""
    if level > len(account.ancestors):
        return None
    found = account.ancestors[-level]
    return None if found.name == ROOT else found


def within_levels(account: Account, levels: int) -> Iterator[Account]:
    """The nearest queues above, root left out."""
    for level in range(1, levels + 1):
        if (found := ancestor_at(account, level)) is not None:
            yield found


def level_of(account: Account, level: int) -> Account:
    """The queue at ``level`` on the way from the root (0) down to ``account``, at most that one."""
    return account.ancestors[level] if level < len(account.ancestors) else account
