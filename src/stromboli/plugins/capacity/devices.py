"""Quotas of device classes: what the claims of a queue's pods take of the devices that its capability names.

A claim that several pods share counts once in a queue, and once in each queue above.  Limits that a queue does not name
are those of the queues above it.  ``deserved`` and ``guarantee`` of device classes are read and limit nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, cast

from stromboli.model.claims import Demand, Devices, read_classes, together
from stromboli.model.job import HELD_STATUS, Job
from stromboli.model.spec import Amount
from stromboli.model.task import Task

if TYPE_CHECKING:
    from stromboli.framework.books.cluster_view import ClusterView
    from stromboli.framework.books.cycle_state import CycleState
    from stromboli.plugins.capacity.accounts import Account

EXCEEDED = "dra-resource-exceeded"
"""What an event names instead of a resource."""

TRIED = "capacity/devices"
"""Key of a cycle state: the tasks that tried moves have added (+1) or removed (-1), in order."""

Move = tuple[Task, int]


class Book:
    """The devices of one queue: the limits that it names, the claims of its pods, and what admitted jobs will need."""

    __slots__ = ("inqueue", "limits", "pods")

    def __init__(self, limits: Demand) -> None:
        self.limits = limits
        self.pods: dict[str, int] = {}
        self.inqueue: Demand = {}

    def count(self, task: Task, times: int) -> None:
        """A pod comes (1) or goes (-1); a pod that was never counted may go."""
        for claim in task.claims:
            pods = self.pods.get(claim, 0) + times
            self.pods[claim] = pods
            if pods <= 0:
                del self.pods[claim]

    def copy(self) -> Book:
        """The same, to try something with."""
        twin = Book(self.limits)
        twin.pods, twin.inqueue = dict(self.pods), self.inqueue
        return twin


class DeviceBooks:
    """The books of all queues that name device classes.

    ``consumable`` says whether amounts of dimensions are looked at, not only numbers of devices.
    """

    def __init__(self, session: ClusterView, accounts: Mapping[str, Account], consumable: bool) -> None:
        self._claims, self._consumable = session.snapshot.claims, consumable
        self._leasts: dict[str, Demand] = {}
        inherit = not session.compat.asks("root-queue")
        self._books = {name: Book(limits) for name, limits in _named(accounts.values(), inherit)}
        for job in session.jobs.peek() if self._books else ():
            if (account := accounts.get(job.queue)) is not None:
                for task in job.of(*HELD_STATUS):
                    self.count(account, task, 1)

    def __bool__(self) -> bool:
        return bool(self._books)

    def count(self, account: Account, task: Task, times: int) -> None:
        """A pod of the queue comes or goes, in the queues above, too."""
        if task.claims:
            for book in self._of((account, *account.ancestors)):
                book.count(task, times)

    def _of(self, accounts: Iterable[Account]) -> Iterator[Book]:
        return (self._books[account.name] for account in accounts if account.name in self._books)

    # ------------------------------------------------------------------ pods

    def admit_pod(self, account: Account, task: Task, state: CycleState | None = None) -> bool:
        """Whether the queue and those above have the devices that the pod adds, after the moves in ``state``."""
        if not task.claims:
            return True
        moves = () if state is None else tried(state)
        return all(self._fits(self._after(book, moves), task) for book in self._of(account.walk))

    def _fits(self, book: Book, task: Task) -> bool:
        asked = self._demand(claim for claim in task.claims if claim not in book.pods)
        return self._covers(book.limits, self._demand(book.pods), asked)

    def _after(self, book: Book, moves: Iterable[Move]) -> Book:
        twin = book.copy() if moves else book
        for task, times in moves:
            twin.count(task, times)
        return twin

    def _demand(self, claims: Iterable[str]) -> Demand:
        return together(self._claims[claim] for claim in claims if claim in self._claims)

    def _covers(self, limits: Demand, held: Demand, asked: Demand) -> bool:
        for name, devices in asked.items():
            if name in limits:
                total = together(({name: held.get(name, Devices())}, {name: devices}))[name]
                if limits[name].count > 0 and total.count > limits[name].count:
                    return False
                if self._consumable and _beyond(total, devices, limits[name]):
                    return False
        return True

    # ------------------------------------------------------------------ jobs

    def least(self, account: Account, job: Job) -> Demand:
        """What the job claims at least, where its queue names device classes; nothing elsewhere."""
        if account.name not in self._books:
            return {}
        if (known := self._leasts.get(job.uid)) is None:
            known = self._leasts[job.uid] = self._least(job)
        return known

    def _least(self, job: Job) -> Demand:
        tasks = sorted(job.tasks.values(), key=lambda task: (task.namespace, task.name, task.uid))
        claiming = [(task, demand) for task in tasks if (demand := self._demand(task.claims))]
        if not job.facts.task_min:
            return together(demand for _, demand in claiming[: job.min_available])
        by_role: dict[str, Demand] = {}
        for task, demand in claiming:
            by_role.setdefault(task.role, demand)
        shares = ((by_role[role], least) for role, least in job.facts.task_min.items() if role in by_role)
        return together({name: devices.times(least) for name, devices in demand.items()} for demand, least in shares)

    def admit_job(self, account: Account, least: Demand) -> bool:
        """Whether the queue has the devices in addition to those held and those of admitted jobs."""
        book = self._books.get(account.name)
        return book is None or self._covers(book.limits, together((self._demand(book.pods), book.inqueue)), least)

    def admitted(self, account: Account, least: Demand) -> None:
        """Count what the job claims at least, here and above."""
        for book in self._of((account, *account.ancestors)):
            book.inqueue = together((book.inqueue, least))


def _named(accounts: Iterable[Account], inherit: bool) -> Iterator[tuple[str, Demand]]:
    """Limits of the queues that name a device class anywhere, or have one above them that they ``inherit`` from."""
    for account in accounts:
        spec = account.queue.spec
        guarantee = spec.guarantee.resource if spec.guarantee else None
        limits = read_classes(_capability(account) if inherit else spec.capability)
        if limits or read_classes(spec.deserved) or read_classes(guarantee):
            yield account.name, limits


def _capability(account: Account) -> Mapping[str, Amount]:
    """The capability of a queue; what it leaves out is that of the nearest queue above it that names it."""
    named: dict[str, Amount] = {}
    for each in (*account.ancestors, account):
        named |= each.queue.spec.capability or {}
    return named


def _beyond(total: Devices, asked: Devices, limit: Devices) -> bool:
    """Whether any dimension that is asked for is not limited by name, or exceeded."""
    return any(name not in limit.capacity or total.capacity[name] > limit.capacity[name] for name in asked.capacity)


def tried(state: CycleState) -> tuple[Move, ...]:
    """The moves tried so far."""
    return cast("tuple[Move, ...]", state.get(TRIED, ()))


def move(state: CycleState, task: Task, times: int) -> None:
    """Try a move."""
    if task.claims:
        state.write(TRIED, (*tried(state), (task, times)))
