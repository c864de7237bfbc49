"""What plugins with accounts of queues report while they are asked."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from stromboli.fairness.quota import total_guarantee
from stromboli.model import names
from stromboli.model.job import Job
from stromboli.model.resources.resource import Resource
from stromboli.model.task import Task
from stromboli.queue_accounts.account import QueueAccount

if TYPE_CHECKING:
    from stromboli.framework.books.cluster_view import ClusterView


class AccountLines:
    """Reports the lines that an observer wants; asks once which those are."""

    def __init__(self, session: ClusterView, plugin: str) -> None:
        self.session, self.plugin, self.axes = session, plugin, session.axes
        self.say_allocated = session.tells("queue_event_allocated")
        self.say_deallocated = session.tells("queue_event_deallocated")
        self.say_amounts, self.say_vote = session.tells("enqueue_amounts"), session.tells("enqueue_vote")
        self.say_unlimited = session.tells("capability_unset")

    def totals(self, accounts: Iterable[QueueAccount]) -> None:
        """What the cluster has, what its queues are guaranteed, and which jobs there are."""
        self.session.tell("total_resource", total=self.session.axes.resource(self.session.ledger.total))
        if say := self.session.tells("total_guarantee"):
            say(guarantee=total_guarantee(account.quota for account in accounts))
        if say := self.session.tells("considering_job"):
            for job in self.session.jobs.peek():
                say(job=job.uid)

    def sums(self, account: QueueAccount, *keys: str) -> dict[str, object]:
        """Some of the figures of a queue."""
        figures = account.figures(self.axes)
        return {name: figures[name] for name in ("allocated", *keys, "elastic")}

    def closed(self, account: QueueAccount) -> None:
        """The queue is not open."""
        self.session.tell("queue_closed_allocate", queue=account.name, state=account.queue.status.state)

    def closed_to(self, account: QueueAccount, job: Job) -> None:
        """The queue is not open and admits no job."""
        self.session.tell("queue_closed_enqueue", queue=job.queue, state=account.queue.status.state, job=job.uid)

    def enqueue(self, account: QueueAccount, job: Job, permitted: bool) -> None:
        """The queue has voted on ``job``."""
        if say := self.say_amounts:
            least, limit = job.facts.min_resources, account.quota.real_capability
            sums = self.sums(account, "inqueue")
            say(name=job.name, min_resources=least, queue=account.name, capability=limit, **sums)
        if say := self.say_vote:
            say(name=job.name, permitted=permitted)

    def insufficient(self, job: Job, short: list[str]) -> None:
        """The queue lacks the resources ``short`` for ``job``."""
        message = "queue resource quota insufficient: " + ", ".join(f"insufficient {name}" for name in short)
        self.session.pod_groups.record_event(job, names.EVENT_NORMAL, names.EVENT_UNSCHEDULABLE, message)

    def event(self, say: Callable[..., None] | None, account: QueueAccount, task: Task) -> None:
        """A task has been placed or removed."""
        if say:
            say(plugin=self.plugin, task=task.key, request=task.request, share=account.share())

    def amount(self, vector: Sequence[float]) -> Resource:
        """``vector``, which may be empty, as a Resource."""
        return self.axes.resource([*vector, *([0.0] * (2 - len(vector)))])
