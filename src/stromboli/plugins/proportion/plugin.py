"""The plugin proportion: what its accounts mean for queues, jobs and tasks."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from stromboli.fairness.quota import total_guarantee
from stromboli.fairness.waterfill import Round, pour
from stromboli.framework.handlers import TaskEvent
from stromboli.framework.order import compare
from stromboli.framework.orphans import known_job, queue_of
from stromboli.framework.tried import TriedMoves
from stromboli.model import names
from stromboli.model.axes import PODS, Vector, add_to
from stromboli.model.job import Job
from stromboli.model.task import Task
from stromboli.plugin import (
    Hook,
    Plugin,
    Reason,
    allocatable,
    job_enqueueable,
    job_enqueued,
    on_allocate,
    on_deallocate,
    overused,
    preemptive,
    queue_order,
    reclaimable,
    simulate_add_task,
    simulate_allocatable,
    simulate_remove_task,
)
from stromboli.plugins.proportion.accounts import Account, open_accounts
from stromboli.plugins.proportion.lines import Lines

if TYPE_CHECKING:
    from stromboli.framework.cycle_state import CycleState
    from stromboli.framework.jobs import QueueInfo
    from stromboli.framework.session import Session
    from stromboli.model.table import Node

PERMIT, REJECT = 1, -1

TRIED = TriedMoves("proportionState")


class Proportion(Plugin):
    """Shares the cluster out to the queues by weight, again and again what a queue does not ask for.

    A queue gets no more than its capability and than others' guarantees leave, no more than its jobs ask for, and no
    less than its own guarantee (:mod:`stromboli.fairness.waterfill`).  It may place tasks up to that; what it holds
    beyond may be taken back.  Only queues with jobs take part.
    """

    name = "proportion"

    def on_session_open(self, session: Session) -> None:
        """Open an account for every queue and share the cluster out."""
        self.session, self.axes = session, session.axes
        self._listen(session)
        self.accounts = open_accounts(session)
        self._admitted = {name: tuple(account.inqueue) for name, account in self.accounts.items()}
        self.lines.opened(self.accounts, session.total_resource, total_guarantee(self.accounts.values()))
        claims = [account.claim for account in self.accounts.values() if account.queue.sums.jobs]
        done = Round(0, [])
        for done in pour(session.axes.full(session.total), claims):
            self.lines.shared_out(self.accounts, done)
        self.lines.finished(done)
        for account in self.accounts.values():
            account.settle()
            if account.queue.sums.jobs:
                session.publish_figures(account.name, account.figures(session.axes))

    def _listen(self, session: Session) -> None:
        self.lines = Lines(session, self.name)
        self.say_overused = session.tells("proportion_overused")
        self.say_refused = session.tells("proportion_refused")
        self.say_closed = session.tells("queue_closed_allocate")
        self.say_victims = session.tells("proportion_victims")
        self.say_allocated = session.tells("queue_event_allocated")
        self.say_deallocated = session.tells("queue_event_deallocated")

    def hooks(self) -> Iterator[tuple[Hook, Callable[..., Any]]]:
        """All hooks; events are heard only to be told on, since holdings are read where they stand."""
        heard = {"on_allocate": self.say_allocated, "on_deallocate": self.say_deallocated}
        return ((hook, function) for hook, function in super().hooks() if heard.get(hook.point.name, True))

    def on_session_close(self, session: Session) -> None:
        """Tell the queues' figures."""
        if say := session.tells("metric.queue_figures"):
            say(figures={name: one.metrics(self.axes, self._admitted[name]) for name, one in self.accounts.items()})

    # ------------------------------------------------------------------ queues

    @queue_order
    def due_first(self, left: QueueInfo, right: QueueInfo) -> int:
        """The higher priority first, then the smaller share of what is deserved."""
        return compare(self.turn(left), self.turn(right))

    @queue_order.key
    def turn(self, queue: QueueInfo) -> tuple[int, float]:
        """(negative priority, share)."""
        account = self.accounts[queue.name]
        return -account.priority, account.share()

    @overused
    def has_its_share(self, queue: QueueInfo) -> bool:
        """Whether the queue holds all that it deserves, in every dimension."""
        account = self.accounts[queue.name]
        account.overused = found = account.thresholds.reached(account.held)
        if found and self.say_overused:
            self.say_overused(queue=queue.name, share=account.share(), **self._state(account))
        return found

    @allocatable
    def stays_within_share(self, queue: QueueInfo, task: Task) -> bool:
        """Whether the queue is open and deserves what it would hold with ``task``, in what the task asks for."""
        return self._covers(self.accounts[queue.name], task.template.vector)

    @allocatable.many
    def times_within_share(self, queue: QueueInfo, task: Task, k: int) -> int:
        """How many of ``k`` tasks like this one stay within the share, one after the other."""
        account = self.accounts[queue.name]
        return account.thresholds.times(account.held, task.template.vector, k) if account.is_open else 0

    @preemptive
    def may_take_back(self, queue: QueueInfo, tasks: Sequence[Task]) -> bool:
        """As for one task that asks for all that ``tasks`` ask for."""
        total: list[int] = []
        for task in tasks:
            add_to(total, task.template.vector)
        return self._covers(self.accounts[queue.name], total)

    def _covers(self, account: Account, request: Vector) -> bool:
        if account.is_open and account.thresholds.covers(account.held, request):
            return True
        if not account.is_open and self.say_closed:
            self.say_closed(queue=account.name, state=account.queue.status.state)
        elif account.is_open and self.say_refused:
            self.say_refused(queue=account.name, request=self._amount(request), **self._state(account))
        return False

    @reclaimable
    def beyond_share(self, reclaimer: Task, reclaimees: Sequence[Task]) -> list[Task]:
        """The first candidates of each queue as long as it holds more than it deserves of anything."""
        left: dict[str, list[int]] = {}
        victims = [task for task in reclaimees if self._is_beyond(task, left)]
        if self.say_victims:
            self.say_victims(victims=[task.key for task in victims])
        return victims

    @reclaimable.job
    def queue_may_be_beyond_share(self, reclaimer: Task, job: Job) -> bool:
        """Whether the job's queue holds more than it deserves of anything; evictions only make that less."""
        account = self.accounts.get(job.queue)
        return account is not None and account.thresholds.exceeded(account.held)

    def _is_beyond(self, task: Task, left: dict[str, list[int]]) -> bool:
        job = known_job(self.session, self.name, task, "reclaimee")
        account = self.accounts.get(job.queue) if job else None
        if account is None:
            return False
        held = left.setdefault(account.name, account.held.copy())
        if not account.thresholds.exceeded(held):
            self._tell_spared(task, account, held)
            return False
        add_to(held, task.template.vector, -1)
        return True

    def _tell_spared(self, task: Task, account: Account, held: Sequence[int]) -> None:
        if say := self.session.tells("spared"):
            has, deserved = self._amount(held), self._amount(account.claim.deserved)
            why = f"queue {account.name}: allocated <{has}> within deserved <{deserved}>"
            say(plugin=self.name, task=task.key, why=why)

    # ------------------------------------------------------------------ admission

    @job_enqueueable
    def has_room(self, job: Job) -> int:
        """Permit if minResources fit into what the queue may have beside what it holds and has admitted."""
        account = self.accounts[job.queue]
        if not account.is_open:
            self.session.tell("queue_closed_enqueue", queue=job.queue, state=account.queue.status.state, job=job.uid)
            return REJECT
        if job.facts.min_resources is None:
            self.session.tell("min_resources_unset", name=job.name)
            return PERMIT
        short = self._short_of(account, job)
        self.lines.enqueue(account, job, not short)
        if not short:
            return PERMIT
        message = "queue resource quota insufficient: " + ", ".join(f"insufficient {name}" for name in short)
        self.session.record_pod_group_event(job, names.EVENT_NORMAL, names.EVENT_UNSCHEDULABLE, message)
        return REJECT

    def _short_of(self, account: Account, job: Job) -> list[str]:
        """Names of what the job asks for and the queue lacks, in the order of shortages."""
        rows = zip(job.facts.min_vector, account.held, account.inqueue, account.elastic, account.limits, strict=False)
        over = [bool(least) and least + held + coming - spare > limit for least, held, coming, spare, limit in rows]
        if True not in over:
            return []
        return [self.axes.names[c] for c in self.axes.order if c < len(over) and over[c] and c != PODS]

    @job_enqueued
    def admit(self, job: Job) -> None:
        """Count the job's minResources, less pods that gates keep back, against later ones."""
        if job.facts.min_resources is not None:
            add_to(self.accounts[job.queue].inqueue, job.without_gated(job.facts.min_vector))

    # ------------------------------------------------------------------ moves that are only tried

    @simulate_allocatable
    def would_stay_within_share(self, state: CycleState, queue: QueueInfo, task: Task) -> bool:
        """:meth:`stays_within_share` with the tried moves; whether the queue is open is not looked at."""
        account = self.accounts.get(queue.name)
        if account is None:
            return False
        held = TRIED.holdings(state, queue.name, account.held)
        if account.thresholds.covers(held, task.template.vector):
            return True
        self.session.tell(
            "proportion_refused_simulated", queue=queue.name, name=task.name, request=task.request,
            deserved=self._amount(account.claim.deserved), allocated=self._amount(held),
        )  # fmt: skip
        return False

    @simulate_add_task
    def try_adding(self, state: CycleState, task_to_schedule: Task, task: Task, node: Node) -> Reason | None:
        """Count ``task`` to its queue."""
        return self._try(state, task, 1)

    @simulate_remove_task
    def try_removing(self, state: CycleState, task_to_schedule: Task, task: Task, node: Node) -> Reason | None:
        """Take ``task`` off its queue."""
        return self._try(state, task, -1)

    def _try(self, state: CycleState, task: Task, times: int) -> Reason | None:
        queue = queue_of(self.session, self.name, task, self.accounts)
        if isinstance(queue, Reason):
            return queue
        TRIED.move(state, (queue,), task.template.vector, times)
        return None

    # ------------------------------------------------------------------ events

    @on_allocate
    def tell_allocation(self, event: TaskEvent) -> None:
        """Tell it."""
        self._tell_event(event.task, self.say_allocated, "allocate event for task")

    @on_deallocate
    def tell_deallocation(self, event: TaskEvent) -> None:
        """Tell it."""
        self._tell_event(event.task, self.say_deallocated, "deallocate event for task")

    def _tell_event(self, task: Task, say: Callable[..., None] | None, what: str) -> None:
        if say and (job := known_job(self.session, self.name, task, what)):
            say(plugin=self.name, task=task.key, request=task.request, share=self.accounts[job.queue].share())

    # ------------------------------------------------------------------ parts of the above

    def _state(self, account: Account) -> dict[str, object]:
        return {"deserved": self._amount(account.claim.deserved), "allocated": self._amount(account.held)}

    def _amount(self, vector: Sequence[float]) -> object:
        return self.axes.resource([*vector, *([0.0] * (2 - len(vector)))])
