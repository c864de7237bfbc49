"""The plugin capacity: what its accounts mean for queues, jobs and tasks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Protocol

from stromboli.framework.config.gates import ADMISSION
from stromboli.framework.extension.order import compare
from stromboli.model.job import PIPELINED, RELEASING, Job
from stromboli.model.names import ROOT_QUEUE
from stromboli.model.resources.axes import add_to
from stromboli.model.task import Task
from stromboli.model.values import duration
from stromboli.plugin import (
    allocatable,
    arg,
    preemptive,
    reclaimable,
    simulate_allocatable,
    unified_evictable,
    victim_queue_order,
)
from stromboli.plugins.capacity.accounts import (
    Account,
    level_of,
    open_flat,
    open_tree,
    shared_levels,
    within_levels,
)
from stromboli.plugins.capacity.devices import EXCEEDED, DeviceBooks, move
from stromboli.plugins.capacity.let_in import not_below_zero, opted_in, reserve_parts
from stromboli.plugins.capacity.lines import CapacityLines
from stromboli.plugins.capacity.reclaiming import Reclaiming
from stromboli.queue_accounts.plugin import QueueAccounts, added_up

if TYPE_CHECKING:
    from stromboli.framework.books.cluster_view import ClusterView
    from stromboli.framework.books.cycle_state import CycleState
    from stromboli.framework.books.jobs import QueueInfo
    from stromboli.narration.observe import QueueFigures

PERMIT, REJECT = 1, -1


def not_negative(level: int) -> str:
    """Refuse a negative number of levels."""
    return "" if level >= 0 else f"ancestorReclaimLevel should be non-negative, got {level}. Falling back to 0."


class GangEviction(Protocol):
    """What is known of an eviction for a gang."""

    @property
    def kind(self) -> str:
        """GangPreempt or GangReclaim."""


class Capacity(QueueAccounts[Account], trusted=True):
    """Gives queues amounts: what they deserve, what they may have at most, what is kept for them.

    A queue may place tasks up to its capability and what others' guarantees leave of the cluster.  What it holds
    beyond what it deserves may be taken back by queues that hold less than they deserve.  With ``enableHierarchy`` the
    queues form a tree below ``root`` (:mod:`stromboli.fairness.quota`): jobs belong to leaves, a placement must keep
    the limits of all queues above, and a queue that cannot be used takes those below it out, and no others.
    """

    name = "capacity"
    queue_accounts = 3
    lines: CapacityLines
    ancestor_level = arg("ancestorReclaimLevel", int, 0, not_negative)
    device_quota = arg("capacity.DynamicResourceAllocationEnable", bool, True)
    gate_timeout = arg("gate-timeout", str, "0s", not_below_zero)
    consumable_quota = arg("capacity.DRAConsumableCapacityEnable", bool, True)

    @property
    def depends_on_time(self) -> bool:
        """Where parts of queues are kept for a while only."""
        return duration.seconds(self.gate_timeout) > 0

    def on_session_open(self, session: ClusterView) -> None:
        """Open an account for every queue."""
        self.is_tree = session.config.hierarchy_enabled(self.name)
        self.keep(
            session, CapacityLines(session, self.name), open_tree(session) if self.is_tree else open_flat(session)
        )
        self.stopped = self._find_faults()
        self.devices = DeviceBooks(session, self.accounts if self.device_quota else {}, self.consumable_quota)
        self.counts_reserved = ADMISSION in session.config.features
        reserve_parts(session, self.accounts if self.counts_reserved else {}, self.gate_timeout)
        self.reclaiming = Reclaiming(self.lines, self.ancestor_level if self.is_tree else 0)
        taking_part = [one for one in self.accounts.values() if one.takes_part]
        for account in taking_part:
            session.queues[account.name].figures.update(
                account.as_written() if self.stopped else account.figures(self.axes)
            )
        self.lines.opened(taking_part)

    def _find_faults(self) -> bool:
        """Report queues that cannot be used; whether no queue can be, as the reference would have it."""
        inner = [one for one in self.accounts.values() if one.is_misused]
        if self.session.compat.asks("bad-queue"):
            faulty = [one for one in self.accounts.values() if one.fault]
            for account in faulty:
                self.session.tell("queue_faulty", queue=account.name, fault=account.fault)
            return self.is_tree and bool(inner or faulty or ROOT_QUEUE not in self.accounts)
        for account in self.accounts.values():
            self.session.queues.note_trouble(account.name, account.fault, account.quota.warning)
        for account in inner:
            account.queue.fault = "jobs belong to queues without others below them"
        return False

    def idle_hooks(self) -> set[str]:
        """Without an order by key where the queues form a tree; nothing by runs where more than amounts is counted."""
        left_out = {"queue_order.key" if self.is_tree else "victim_queue_order"}
        if self.stopped:
            left_out |= {"queue_order", "queue_order.key", "victim_queue_order"}
        return left_out | ({"allocatable.many"} if self.counts_reserved or self.devices else super().idle_hooks())

    def metrics(self, account: Account, admitted: tuple[int, ...]) -> QueueFigures:
        """What metrics show of a queue; ``admitted`` is ``inqueue`` as it was when the session opened."""
        return account.metrics(self.axes, admitted)

    # ------------------------------------------------------------------ queues

    def due_first(self, left: QueueInfo, right: QueueInfo) -> int:
        """The higher priority first; then the smaller share of what is deserved, in ties queues that deserve something.

        In a tree the shares are those of the queues below the last one that both have above them.
        """
        one, other = self.accounts[left.name], self.accounts[right.name]
        if one.priority != other.priority:
            return compare(other.priority, one.priority)
        if one.is_leaf != other.is_leaf:
            return -1 if one.is_leaf else 1
        if self.is_tree and one.is_leaf:
            level = shared_levels(one, other) + 1
            one, other = level_of(one, level), level_of(other, level)
        return compare(one.turn(), other.turn())

    @victim_queue_order
    def nearest_first(self, left: QueueInfo, right: QueueInfo, preemptor_queue: QueueInfo) -> int:
        """The queue that has more queues above it in common with the preemptor's gives first."""
        own = self.accounts[preemptor_queue.name]
        levels = [shared_levels(self.accounts[queue.name], own) for queue in (left, right)]
        return compare(levels[1], levels[0])

    # ------------------------------------------------------------------ placing

    @allocatable
    def stays_within_capability(self, queue: QueueInfo, task: Task) -> bool:
        """Whether the queue is usable and it, and every queue above it, may have what it would hold with ``task``."""
        account = self.accounts[queue.name]
        if not self._may_place(account):
            return False
        if not self.devices.admit_pod(account, task):
            return False
        if not all(self._covers(one, task, one.held) for one in account.walk):
            return False
        if self.counts_reserved and opted_in(task) and task.status is not PIPELINED:
            account.reserve(task)
        return True

    @allocatable.many(own=True)
    def times_within_capability(self, queue: QueueInfo, task: Task, k: int) -> int:
        """How many of ``k`` tasks like this one keep all limits, one after the other."""
        account = self.accounts[queue.name]
        if not self._may_place(account):
            return 0
        for one in account.walk:
            k = one.limits.times(one.held, task.template.vector, k)
        return k

    def _may_place(self, account: Account) -> bool:
        if not account.is_open:
            self.lines.closed(account)
            return False
        return self.is_usable(account)

    def is_usable(self, account: Account) -> bool:
        """Whether jobs may use the queue: nothing is wrong with it or the tree, and no queues are below it."""
        if self.stopped or account.fault:
            self.session.tell("capacity_hierarchy_invalid")
            return False
        return account.is_leaf

    def _covers(self, account: Account, task: Task, held: Sequence[int]) -> bool:
        reserved = account.reserved_beside(task) if self.counts_reserved else ()
        future = [*held]
        add_to(future, reserved)
        if account.limits.covers(future if reserved else held, task.template.vector):
            return True
        self.lines.refused(account, task, held, reserved)
        return False

    @preemptive(own=True)
    def may_take_back(self, queue: QueueInfo, tasks: Sequence[Task]) -> bool:
        """Whether with ``tasks`` the queue stays within its limit, and within what it deserves of anything they need.

        In a tree one of the nearest queues above, ``ancestorReclaimLevel`` of them, may deserve it in its place.
        """
        account = self.accounts[queue.name]
        if self.stopped or account.fault:
            self.session.tell("capacity_hierarchy_invalid")
            return False
        if not account.is_open:
            self.lines.closed(account)
            return False
        total = added_up(tasks)
        if not account.limits.covers(account.held, total):
            self.lines.above_capability(account, total)
            return False
        if account.deserved.leaves_any(account.held, total):
            return True
        self.lines.above_deserved(account, total)
        above = within_levels(account, self.ancestor_level)
        return any(one.deserved.leaves_any(one.held, total) for one in above)

    # ------------------------------------------------------------------ giving back

    @reclaimable
    def beyond_deserved(self, reclaimer: Task, reclaimees: Sequence[Task]) -> list[Task]:
        """Candidates, in the order of victims, of queues that hold more than they deserve of what these ask for."""
        own = self.account_of(reclaimer)
        if self.stopped or own is None or own.fault:
            self.session.tell("capacity_hierarchy_invalid")
            return []
        ordered = self.session.in_victim_order(reclaimer, reclaimees)
        victims = self.reclaiming.victims(own, reclaimer, self._pairs(ordered))
        self.lines.victims(victims, reclaimer)
        return victims

    @reclaimable.job
    def queue_may_be_beyond(self, reclaimer: Task, job: Job) -> bool:
        """Whether the job's queue holds more than it deserves of anything, or deserves nothing of what a task asks."""
        account = self.accounts.get(job.queue)
        return account is not None and not account.fault and self.reclaiming.may_give(job, account)

    @unified_evictable
    def beyond_deserved_for_gang(self, context: GangEviction, candidates: Sequence[Task]) -> Sequence[Task]:
        """All candidates within a queue; from other queues, what holds more than it deserves, in the order given."""
        if context.kind == "GangPreempt":
            return candidates
        if self.stopped:
            self.session.tell("capacity_hierarchy_invalid")
            return []
        return self.reclaiming.victims_for_gang(self._pairs(candidates))

    def _pairs(self, candidates: Sequence[Task]) -> Iterator[tuple[Task, Account]]:
        """Candidates with the accounts of their queues; queues that cannot be used give nothing."""
        for task in candidates:
            account = self.account_of(task, "reclaimee")
            if account is not None and not account.fault:
                yield task, account

    # ------------------------------------------------------------------ admission

    def asks_nothing(self, account: Account, job: Job) -> bool:
        """Whether the job states neither minResources nor claims of devices that its queue limits."""
        return super().asks_nothing(account, job) and not self.devices.least(account, job)

    def shortages(self, account: Account, job: Job) -> list[str]:
        """Names of what the job asks for and the queue lacks, in the order of shortages."""
        if short := super().shortages(account, job):
            return short
        devices = self.devices.least(self.accounts[job.queue], job)
        return [] if self.devices.admit_job(account, devices) else [EXCEEDED]

    def admit(self, job: Job) -> None:
        """Count the job's minResources and devices against later ones, here and above."""
        if (account := self.accounts.get(job.queue)) is not None:
            self.devices.admitted(account, self.devices.least(account, job))
        super().admit(job)

    # ------------------------------------------------------------------ moves that are only tried

    @simulate_allocatable
    def would_stay_within_capability(self, state: CycleState, queue: QueueInfo, task: Task) -> bool:
        """:meth:`stays_within_capability` with the tried moves; whether the queue is open is not looked at."""
        account = self.accounts.get(queue.name)
        if account is None or not self.is_usable(account) or not self.devices.admit_pod(account, task, state):
            return False
        return all(self._covers(one, task, self.tried.holdings(state, one.name, one.held)) for one in account.walk)

    def try_move(self, state: CycleState, account: Account, task: Task, times: int) -> None:
        """Count ``times * task`` and its devices to the queue and those above in ``state`` only."""
        move(state, task, times)
        super().try_move(state, account, task, times)

    # ------------------------------------------------------------------ events

    def count(self, account: Account, task: Task, times: int) -> None:
        """Count the task's devices; a task that its queue had let in keeps its part of it, unless it is evicted."""
        self.devices.count(account, task, times)
        leaves = task.status is RELEASING and not self.session.compat.asks("gate-victims")
        if times > 0:
            account.release(task)
        elif self.counts_reserved and opted_in(task) and not leaves:
            account.reserve(task)
