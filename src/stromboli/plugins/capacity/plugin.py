"""The plugin capacity: what its accounts mean for queues, jobs and tasks."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from stromboli.framework.gates import ADMISSION
from stromboli.framework.handlers import TaskEvent
from stromboli.framework.order import compare
from stromboli.framework.orphans import known_job, queue_of
from stromboli.framework.tried import TriedMoves
from stromboli.model import names
from stromboli.model.axes import PODS, add_to
from stromboli.model.claims import Demand
from stromboli.model.job import PIPELINED, RELEASING, Job
from stromboli.model.names import ROOT_QUEUE
from stromboli.model.task import Task
from stromboli.plugin import (
    Hook,
    Plugin,
    Reason,
    allocatable,
    arg,
    job_enqueueable,
    job_enqueued,
    on_allocate,
    on_deallocate,
    preemptive,
    queue_order,
    reclaimable,
    simulate_add_task,
    simulate_allocatable,
    simulate_remove_task,
    unified_evictable,
    victim_queue_order,
)
from stromboli.plugins.capacity.accounts import (
    Account,
    level_of,
    open_flat,
    open_tree,
    opted_in,
    reserve_parts,
    shared_levels,
    within_levels,
)
from stromboli.plugins.capacity.devices import EXCEEDED, DeviceBooks, move
from stromboli.plugins.capacity.lines import Lines
from stromboli.plugins.capacity.reclaiming import Reclaiming

if TYPE_CHECKING:
    from stromboli.framework.cycle_state import CycleState
    from stromboli.framework.jobs import QueueInfo
    from stromboli.framework.session import Session
    from stromboli.model.table import Node

PERMIT, REJECT = 1, -1

TRIED = TriedMoves("capacity")


def not_negative(level: int) -> str:
    """Refuse a negative number of levels."""
    return "" if level >= 0 else f"ancestorReclaimLevel should be non-negative, got {level}. Falling back to 0."


class Eviction(Protocol):
    """What is known of an eviction for a gang."""

    @property
    def kind(self) -> str:
        """GangPreempt or GangReclaim."""


class Capacity(Plugin):
    """Gives queues amounts: what they deserve, what they may have at most, what is kept for them.

    A queue may place tasks up to its capability and what others' guarantees leave of the cluster.  What it holds
    beyond what it deserves may be taken back by queues that hold less than they deserve.  With ``enableHierarchy`` the
    queues form a tree below ``root`` (:mod:`stromboli.fairness.quota`): jobs belong to leaves, a placement must keep
    the limits of all queues above, and a queue that cannot be used takes those below it out, nobody else.
    """

    name = "capacity"
    ancestor_level = arg("ancestorReclaimLevel", int, 0, not_negative)
    device_quota = arg("capacity.DynamicResourceAllocationEnable", bool, True)
    consumable_quota = arg("capacity.DRAConsumableCapacityEnable", bool, True)

    def on_session_open(self, session: Session) -> None:
        """Open an account for every queue."""
        self.session, self.axes = session, session.axes
        self.is_tree = session.hierarchy_enabled(self.name)
        self.lines = Lines(session, self.name)
        self.accounts = open_tree(session) if self.is_tree else open_flat(session)
        self._admitted = {name: tuple(account.inqueue) for name, account in self.accounts.items()}
        self.stopped = self._find_faults()
        self.devices = DeviceBooks(session, self.accounts if self.device_quota else {}, self.consumable_quota)
        self.counts_reserved = ADMISSION in session.config.features
        reserve_parts(session, self.accounts if self.counts_reserved else {})
        self.reclaiming = Reclaiming(self.lines, self.ancestor_level if self.is_tree else 0)
        for account in self.accounts.values():
            if self._takes_part(account):
                session.publish_figures(
                    account.name, account.as_written() if self.stopped else account.figures(self.axes)
                )
        self.lines.opened([one for one in self.accounts.values() if self._takes_part(one)])

    def _takes_part(self, account: Account) -> bool:
        return self.is_tree or account.jobs > 0

    def _find_faults(self) -> bool:
        """Tell of queues that cannot be used; whether nothing at all goes on, as the reference would have it."""
        faults = {name: account.fault for name, account in self.accounts.items() if account.fault}
        if not self.session.compat.asks("bad-queue"):
            for name, fault in faults.items():
                self.session.quarantine_queue(name, fault)
            for account in self.accounts.values():
                if account.queue.sums.jobs and not account.is_leaf and not account.fault:
                    account.queue.fault = "jobs belong to queues without others below them"
            return False
        for name, fault in faults.items():
            self.session.tell("queue_faulty", queue=name, fault=fault)
        inner = any(account.queue.sums.jobs and not account.is_leaf for account in self.accounts.values())
        return self.is_tree and (inner or bool(faults) or ROOT_QUEUE not in self.accounts)

    def hooks(self) -> Iterator[tuple[Hook, Callable[..., Any]]]:
        """The hooks that this session's configuration leaves: an order by key only where the queues form no tree."""
        left_out = {"queue_order.key" if self.is_tree else "victim_queue_order"}
        if self.stopped:
            left_out |= {"queue_order", "queue_order.key", "victim_queue_order"}
        if self.counts_reserved or self.devices:
            left_out.add("allocatable.many")
        elif not self.lines.say_allocated and not self.lines.say_deallocated:
            left_out |= {"on_allocate", "on_deallocate"}
        return ((hook, function) for hook, function in super().hooks() if hook.name not in left_out)

    def on_session_close(self, session: Session) -> None:
        """Tell the queues' figures."""
        if say := session.tells("metric.queue_figures"):
            axes, admitted = self.axes, self._admitted
            say(
                figures={
                    name: one.metrics(axes, admitted[name], self._takes_part(one))
                    for name, one in self.accounts.items()
                }
            )

    # ------------------------------------------------------------------ queues

    @queue_order
    def due_first(self, left: QueueInfo, right: QueueInfo) -> int:
        """The higher priority first; then the smaller share of what is deserved, in ties who deserves something.

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

    @queue_order.key
    def turn(self, queue: QueueInfo) -> tuple[int, float, bool]:
        """(negative priority, share, whether nothing is deserved); for queues side by side."""
        account = self.accounts[queue.name]
        return (-account.priority, *account.turn())

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

    @allocatable.many
    def times_within_capability(self, queue: QueueInfo, task: Task, k: int) -> int:
        """How many of ``k`` tasks like this one keep all limits, one after the other."""
        account = self.accounts[queue.name]
        if not self._may_place(account):
            return 0
        for one in account.walk:
            k = one.cap.times(one.held, task.template.vector, k)
        return k

    def _may_place(self, account: Account) -> bool:
        if not account.is_open:
            self.lines.closed(account)
            return False
        return self._is_usable(account)

    def _is_usable(self, account: Account) -> bool:
        if self.stopped or account.fault:
            self.session.tell("capacity_hierarchy_invalid")
            return False
        return account.is_leaf

    def _covers(self, account: Account, task: Task, held: Sequence[int]) -> bool:
        reserved = account.reserved_beside(task) if self.counts_reserved else ()
        future = [*held]
        add_to(future, reserved)
        if account.cap.covers(future if reserved else held, task.template.vector):
            return True
        self.lines.refused(account, task, held, reserved)
        return False

    @preemptive
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
        total: list[int] = []
        for task in tasks:
            add_to(total, task.template.vector)
        if not account.cap.covers(account.held, total):
            self.lines.above_capability(account, total)
            return False
        if account.worth.leaves_any(account.held, total):
            return True
        self.lines.above_deserved(account, total)
        levels = self.ancestor_level if self.is_tree else 0
        return any(above.worth.leaves_any(above.held, total) for above in within_levels(account, levels))

    # ------------------------------------------------------------------ giving back

    @reclaimable
    def beyond_deserved(self, reclaimer: Task, reclaimees: Sequence[Task]) -> list[Task]:
        """Candidates, in the order of victims, of queues that hold more than they deserve of what these ask for."""
        own = self._account_of(reclaimer)
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
    def beyond_deserved_for_gang(self, context: Eviction, candidates: Sequence[Task]) -> Sequence[Task]:
        """Everybody within a queue; from other queues, what holds more than it deserves, in the order given."""
        if context.kind == "GangPreempt":
            return candidates
        if self.stopped:
            self.session.tell("capacity_hierarchy_invalid")
            return []
        return self.reclaiming.victims_for_gang(self._pairs(candidates))

    def _pairs(self, candidates: Sequence[Task]) -> Iterator[tuple[Task, Account]]:
        """Candidates with the accounts of their queues; queues that cannot be used give nothing."""
        for task in candidates:
            account = self._account_of(task, "reclaimee")
            if account is not None and not account.fault:
                yield task, account

    # ------------------------------------------------------------------ admission

    @job_enqueueable
    def has_room(self, job: Job) -> int:
        """Permit if minResources fit, in this queue and all above it, beside what is held and admitted."""
        account = self.accounts[job.queue]
        if not self._is_usable(account):
            return REJECT
        if not account.is_open:
            self.session.tell("queue_closed_enqueue", queue=job.queue, state=account.queue.status.state, job=job.uid)
            return REJECT
        devices = self.devices.least(account, job)
        if job.facts.min_resources is None and not devices:
            self.session.tell("min_resources_unset", name=job.name)
            return PERMIT
        for one in account.walk:
            short = self._short_of(one, job) or self._short_of_devices(one, devices)
            self.lines.enqueue(one, job, not short)
            if short:
                return self._refuse(job, short)
        return PERMIT

    def _refuse(self, job: Job, short: list[str]) -> int:
        message = "queue resource quota insufficient: " + ", ".join(f"insufficient {name}" for name in short)
        self.session.record_pod_group_event(job, names.EVENT_NORMAL, names.EVENT_UNSCHEDULABLE, message)
        return REJECT

    def refusing(self, job: Job) -> Account:
        """The first queue, from the job's own upwards, in which its minResources do not fit; if none, its own."""
        account = self.accounts[job.queue]
        return next((one for one in account.walk if self._short_of(one, job)), account)

    def _short_of(self, account: Account, job: Job) -> list[str]:
        """Names of what the job asks for and the queue lacks, in the order of shortages."""
        over = account.cap.lacking(job.facts.min_vector, account.held, account.inqueue, account.elastic)
        return [self.axes.names[column] for column in self.axes.order if column in over and column != PODS]

    def _short_of_devices(self, account: Account, devices: Demand) -> list[str]:
        return [] if self.devices.admit_job(account, devices) else [EXCEEDED]

    @job_enqueued
    def admit(self, job: Job) -> None:
        """Count the job's minResources, less pods that gates keep back, against later ones, here and above."""
        account = self.accounts.get(job.queue)
        if account is None:
            return
        self.devices.admitted(account, self.devices.least(account, job))
        if job.facts.min_resources is not None:
            least = job.without_gated(job.facts.min_vector)
            for one in (account, *account.ancestors):
                add_to(one.inqueue, least)

    # ------------------------------------------------------------------ moves that are only tried

    @simulate_allocatable
    def would_stay_within_capability(self, state: CycleState, queue: QueueInfo, task: Task) -> bool:
        """:meth:`stays_within_capability` with the tried moves; whether the queue is open is not looked at."""
        account = self.accounts.get(queue.name)
        if account is None or not self._is_usable(account) or not self.devices.admit_pod(account, task, state):
            return False
        return all(self._covers(one, task, TRIED.holdings(state, one.name, one.held)) for one in account.walk)

    @simulate_add_task
    def try_adding(self, state: CycleState, task_to_schedule: Task, task: Task, node: Node) -> Reason | None:
        """Count ``task`` to its queue and those above."""
        return self._try(state, task, 1)

    @simulate_remove_task
    def try_removing(self, state: CycleState, task_to_schedule: Task, task: Task, node: Node) -> Reason | None:
        """Take ``task`` off its queue and those above."""
        return self._try(state, task, -1)

    def _try(self, state: CycleState, task: Task, times: int) -> Reason | None:
        queue = queue_of(self.session, self.name, task, self.accounts)
        if isinstance(queue, Reason):
            return queue
        account = self.accounts[queue]
        move(state, task, times)
        TRIED.move(state, [one.name for one in (account, *account.ancestors)], task.template.vector, times)
        return None

    # ------------------------------------------------------------------ events

    @on_allocate
    def tell_allocation(self, event: TaskEvent) -> None:
        """Tell it; the task no longer needs a reservation."""
        account = self._account_of(event.task, "allocate event for task")
        self.devices.count(account, event.task, 1)
        if account is not None:
            account.release(event.task)
            self.lines.event(self.lines.say_allocated, account, event.task)

    @on_deallocate
    def tell_deallocation(self, event: TaskEvent) -> None:
        """Tell it; a task that its queue had let in keeps its part of it, unless it is evicted."""
        account = self._account_of(event.task, "deallocate event for task")
        self.devices.count(account, event.task, -1)
        if account is not None:
            leaves = event.task.status is RELEASING and not self.session.compat.asks("gate-victims")
            if self.counts_reserved and opted_in(event.task) and not leaves:
                account.reserve(event.task)
            self.lines.event(self.lines.say_deallocated, account, event.task)

    # ------------------------------------------------------------------ parts of the above

    def _account_of(self, task: Task, what: str = "") -> Account | None:
        session = self.session
        job = known_job(session, self.name, task, what) if what else session.job_of(task)
        return None if job is None else self.accounts.get(job.queue)
