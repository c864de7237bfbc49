"""The plugin proportion: what its accounts mean for queues, jobs and tasks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from stromboli.fairness.thresholds import Thresholds
from stromboli.fairness.waterfill import Round, pour
from stromboli.model.job import Job
from stromboli.model.resources.axes import Vector, add_to
from stromboli.model.task import Task
from stromboli.plugin import allocatable, overused, preemptive, reclaimable, simulate_allocatable
from stromboli.plugins.proportion.accounts import Account, open_accounts
from stromboli.plugins.proportion.lines import ProportionLines
from stromboli.queue_accounts.plugin import QueueAccounts, added_up

if TYPE_CHECKING:
    from stromboli.framework.books.cluster_view import ClusterView
    from stromboli.framework.books.cycle_state import CycleState
    from stromboli.framework.books.jobs import QueueInfo
    from stromboli.narration.observe import QueueFigures


class Proportion(QueueAccounts[Account], trusted=True):
    """Shares the cluster out to the queues by weight, again and again what a queue does not ask for.

    A queue gets no more than its capability and than others' guarantees leave, no more than its jobs ask for, and no
    less than its own guarantee (:mod:`stromboli.fairness.waterfill`).  It may place tasks up to that; what it holds
    beyond may be taken back.  Only queues with jobs take part, and none that is guaranteed more than the
    cluster has.
    """

    name = "proportion"
    queue_accounts = 2
    lines: ProportionLines

    def on_session_open(self, session: ClusterView) -> None:
        """Open an account for every queue and share the cluster out."""
        self.keep(session, ProportionLines(session, self.name), open_accounts(session))
        self.say_overused = session.tells("proportion_overused")
        self.say_refused = session.tells("proportion_refused")
        self.lines.opened(self.accounts)
        for name, account in self.accounts.items():
            session.queues.note_trouble(name, account.fault, account.quota.warning)
        self._share_out()
        for account in self.accounts.values():
            account.settle(session.axes)
            if account.takes_part:
                session.queues[account.name].figures.update(account.figures(session.axes))

    def _share_out(self) -> None:
        claims = [account.claim for account in self.accounts.values() if account.takes_part and not account.fault]
        done = Round(0, [])
        for done in pour(self.axes.full(self.session.ledger.total), claims):
            self.lines.shared_out(self.accounts, done)
        self.lines.finished(done)

    def metrics(self, account: Account, admitted: tuple[int, ...]) -> QueueFigures:
        """What metrics show of a queue; ``admitted`` is ``inqueue`` as it was when the session opened."""
        return account.metrics(self.axes, admitted)

    # ------------------------------------------------------------------ placing

    @overused
    def has_its_share(self, queue: QueueInfo) -> bool:
        """Whether the queue holds all that it deserves, in every dimension."""
        account = self.accounts[queue.name]
        if account.fault:
            return False  # its jobs get their turn, and report why they are refused
        account.overused = found = account.deserved.reached(account.held)
        if found and self.say_overused:
            self.say_overused(queue=queue.name, share=account.share(), **self.lines.state(account, account.held))
        return found

    @allocatable
    def stays_within_share(self, queue: QueueInfo, task: Task) -> bool:
        """Whether the queue is open and deserves what it would hold with ``task``, in what the task asks for."""
        return self._covers(self.accounts[queue.name], task.template.vector)

    @allocatable.many(own=True)
    def times_within_share(self, queue: QueueInfo, task: Task, k: int) -> int:
        """How many of ``k`` tasks like this one stay within the share, one after the other."""
        account = self.accounts[queue.name]
        return account.deserved.times(account.held, task.template.vector, k) if account.is_usable else 0

    @preemptive(own=True)
    def may_take_back(self, queue: QueueInfo, tasks: Sequence[Task]) -> bool:
        """As for one task that asks for all that ``tasks`` ask for."""
        return self._covers(self.accounts[queue.name], added_up(tasks))

    def placing_limits(self, account: Account) -> Thresholds:
        """What the queue deserves."""
        return account.deserved

    def _covers(self, account: Account, request: Vector) -> bool:
        if account.is_usable and account.deserved.covers(account.held, request):
            return True
        if account.fault:
            return False
        if not account.is_open:
            self.lines.closed(account)
        elif self.say_refused:
            state = self.lines.state(account, account.held)
            self.say_refused(queue=account.name, request=self.lines.amount(request), **state)
        return False

    @simulate_allocatable
    def would_stay_within_share(self, state: CycleState, queue: QueueInfo, task: Task) -> bool:
        """:meth:`stays_within_share` with the tried moves; whether the queue is open is not looked at."""
        account = self.accounts.get(queue.name)
        if account is None or account.fault:
            return False
        held = self.tried.holdings(state, queue.name, account.held)
        if account.deserved.covers(held, task.template.vector):
            return True
        self.session.tell(
            "proportion_refused_simulated", queue=queue.name, name=task.name, request=task.request,
            **self.lines.state(account, held),
        )  # fmt: skip
        return False

    # ------------------------------------------------------------------ giving back

    @reclaimable
    def beyond_share(self, reclaimer: Task, reclaimees: Sequence[Task]) -> list[Task]:
        """The first candidates of each queue as long as it holds more than it deserves of anything."""
        left: dict[str, list[int]] = {}
        victims = [task for task in reclaimees if self._is_beyond(task, left)]
        if say := self.session.tells("proportion_victims"):
            say(victims=[task.key for task in victims])
        return victims

    @reclaimable.job
    def queue_may_be_beyond_share(self, reclaimer: Task, job: Job) -> bool:
        """Whether the job's queue holds more than it deserves of anything; evictions only make that less."""
        account = self.accounts.get(job.queue)
        return account is not None and not account.fault and account.deserved.exceeded(account.held)

    def _is_beyond(self, task: Task, left: dict[str, list[int]]) -> bool:
        account = self.account_of(task, "reclaimee")
        if account is None or account.fault:
            return False
        held = left.setdefault(account.name, account.held.copy())
        if account.deserved.exceeded(held):
            add_to(held, task.template.vector, -1)
            return True
        if say := self.session.tells("spared"):
            has, deserved = self.lines.amount(held), account.quota.deserved
            why = f"queue {account.name}: allocated <{has}> within deserved <{deserved}>"
            say(plugin=self.name, task=task.key, why=why)
        return False
