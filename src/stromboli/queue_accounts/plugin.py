"""The base of plugins that keep an account for every queue: order, admission, tried moves and events."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from stromboli.fairness.thresholds import Thresholds
from stromboli.framework.books.tried import TriedMoves
from stromboli.framework.extension.handlers import TaskEvent
from stromboli.framework.extension.order import compare
from stromboli.framework.extension.weighing import Weighed, in_queue, tell_unlimited
from stromboli.framework.session.orphans import known_job, queue_of
from stromboli.model.job import Job
from stromboli.model.jobs.min_resources import without_gated
from stromboli.model.resources.axes import PODS, add_to
from stromboli.model.task import Task
from stromboli.plugin import (
    Hook,
    Plugin,
    Reason,
    job_enqueueable,
    job_enqueued,
    on_allocate,
    on_deallocate,
    queue_order,
    simulate_add_task,
    simulate_remove_task,
)
from stromboli.queue_accounts.account import QueueAccount
from stromboli.queue_accounts.lines import AccountLines

if TYPE_CHECKING:
    from stromboli.framework.books.cluster_view import ClusterView
    from stromboli.framework.books.cycle_state import CycleState
    from stromboli.framework.books.jobs import QueueInfo
    from stromboli.model.table import Node
    from stromboli.narration.observe import QueueFigures

PERMIT, REJECT = 1, -1

Account = TypeVar("Account", bound=QueueAccount)


class QueueAccounts(Plugin, Generic[Account]):
    """Answers that depend on nothing but the queues' accounts; a subclass opens the accounts and sets their limits."""

    session: ClusterView
    lines: AccountLines
    accounts: Mapping[str, Account]
    tried: TriedMoves

    def keep(self, session: ClusterView, lines: AccountLines, accounts: Mapping[str, Account]) -> None:
        """Keep ``accounts`` for the session."""
        self.session, self.axes, self.lines, self.accounts = session, session.axes, lines, accounts
        self.tried = TriedMoves(self.name)
        self._admitted = {name: tuple(account.inqueue) for name, account in accounts.items()}

    def hooks(self) -> Iterator[tuple[Hook, Callable[..., Any]]]:
        """The hooks that can change something in this session."""
        left_out = self.idle_hooks()
        return ((hook, function) for hook, function in super().hooks() if hook.name not in left_out)

    def idle_hooks(self) -> set[str]:
        """Names of hooks without effect: events are only reported, since holdings are read where they stand."""
        heard = {"on_allocate": self.lines.say_allocated, "on_deallocate": self.lines.say_deallocated}
        return {name for name, say in heard.items() if not say}

    def on_session_close(self, session: ClusterView) -> None:
        """Report the queues' figures."""
        if say := session.tells("metric.queue_figures"):
            say(figures={name: self.metrics(one, self._admitted[name]) for name, one in self.accounts.items()})

    def metrics(self, account: Account, admitted: tuple[int, ...]) -> QueueFigures:
        """What metrics show of a queue; ``admitted`` is ``inqueue`` as it was when the session opened."""
        raise NotImplementedError

    def is_usable(self, account: Account) -> bool:
        """Whether the queue can be used at all, open or not."""
        return not account.fault

    def account_of(self, task: Task, what: str = "") -> Account | None:
        """The account of the task's queue; with ``what``, a task whose PodGroup is gone is reported."""
        session = self.session
        job = known_job(session, self.name, task, what) if what else session.job_of(task)
        return None if job is None else self.accounts.get(job.queue)

    # ------------------------------------------------------------------ queues

    @queue_order
    def due_first(self, left: QueueInfo, right: QueueInfo) -> int:
        """The higher priority first, then the smaller share of what is deserved."""
        return compare(self.turn(left), self.turn(right))

    @queue_order.key
    def turn(self, queue: QueueInfo) -> tuple[float, ...]:
        """(negative priority, share, ...)."""
        account = self.accounts[queue.name]
        return (-account.priority, *account.turn())

    # ------------------------------------------------------------------ admission

    @job_enqueueable
    def has_room(self, job: Job) -> int:
        """Permit if minResources fit, in this queue and all above it, in addition to what is held and admitted."""
        account = self.accounts[job.queue]
        if not self.is_usable(account):
            return REJECT
        if not account.is_open:
            self.lines.closed_to(account, job)
            return REJECT
        if self.asks_nothing(account, job):
            self.session.tell("min_resources_unset", name=job.name)
            return PERMIT
        for one in account.walk:
            short = self.shortages(one, job)
            self.lines.enqueue(one, job, not short)
            if short:
                self.lines.insufficient(job, short)
                return REJECT
        tell_unlimited(self.lines.say_unlimited, account.queue, job)
        return PERMIT

    def asks_nothing(self, account: Account, job: Job) -> bool:
        """Whether the job states nothing that its queue could lack."""
        return job.facts.min_resources is None

    def shortages(self, account: Account, job: Job) -> list[str]:
        """Names of what the job asks for and the queue lacks, in the order of shortages."""
        over = account.limits.lacking(job.facts.min_vector, account.held, account.inqueue, account.elastic)
        return self.axes.names_of({*over} - {PODS}, job.facts.min_resources) if over else []

    def weighed(self, job: Job) -> Weighed:
        """What the queue in which minResources do not fit holds and has admitted, against what it may have."""
        account = self.accounts[job.queue]
        refusing = next((one for one in account.walk if QueueAccounts.shortages(self, one, job)), account)
        return in_queue(self.session, job, refusing, refusing.real_capability(self.axes))

    def placing_limits(self, account: Account) -> Thresholds:
        """What placements in the queue are held to."""
        return account.limits

    def no_quota(self, queue: QueueInfo, task: Task) -> str:
        """Names all that the pod asks for and its queue, or one above, limits, where that would exceed a limit."""
        for one in self.accounts[queue.name].walk:
            limits, vector = self.placing_limits(one), task.template.vector
            if not limits.covers(one.held, vector):
                limited = {column for column in range(len(vector)) if vector[column] and limits.is_limited(column)}
                names = self.axes.names_of(limited, task.request)
                return f"queue {one.name} has no quota left for a pod that asks for {', '.join(names)}"
        return ""

    @job_enqueued
    def admit(self, job: Job) -> None:
        """Count the job's minResources, less pods that gates keep back, against later ones, here and above."""
        account = self.accounts.get(job.queue)
        if account is not None and job.facts.min_resources is not None:
            least = without_gated(job, job.facts.min_vector)
            for one in (account, *account.ancestors):
                add_to(one.inqueue, least)

    # ------------------------------------------------------------------ moves that are only tried

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
        self.try_move(state, self.accounts[queue], task, times)
        return None

    def try_move(self, state: CycleState, account: Account, task: Task, times: int) -> None:
        """Count ``times * task`` to the queue and those above in ``state`` only."""
        queues = [one.name for one in (account, *account.ancestors)]
        self.tried.move(state, queues, task.template.vector, times)

    # ------------------------------------------------------------------ events

    @on_allocate
    def placed(self, event: TaskEvent) -> None:
        """Count and report a task that was placed."""
        self._moved(event.task, 1, "allocate event for task", self.lines.say_allocated)

    @on_deallocate
    def removed(self, event: TaskEvent) -> None:
        """Count and report a task that was removed."""
        self._moved(event.task, -1, "deallocate event for task", self.lines.say_deallocated)

    def _moved(self, task: Task, times: int, what: str, say: Callable[..., None] | None) -> None:
        if (account := self.account_of(task, what)) is not None:
            self.count(account, task, times)
            self.lines.event(say, account, task)

    def count(self, account: Account, task: Task, times: int) -> None:
        """Count a task that was placed (1) or removed (-1) where the session's sums do not."""


def added_up(tasks: Sequence[Task]) -> list[int]:
    """What ``tasks`` ask for together, by column."""
    total: list[int] = []
    for task in tasks:
        add_to(total, task.template.vector)
    return total
