"""What capacity tells while it is asked."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from stromboli.fairness.quota import total_guarantee
from stromboli.model.axes import Axes
from stromboli.model.job import Job
from stromboli.model.resource import Resource
from stromboli.model.task import Task
from stromboli.plugins.capacity.accounts import Account

if TYPE_CHECKING:
    from stromboli.framework.session import Session


class Lines:
    """Tells what somebody wants to hear; asks once what that is."""

    def __init__(self, session: Session, plugin: str) -> None:
        self.session, self.plugin, self.axes = session, plugin, session.axes
        self.say_allocated = session.tells("queue_event_allocated")
        self.say_deallocated = session.tells("queue_event_deallocated")
        self.say_refused = session.tells("capacity_refused")

    def opened(self, accounts: Sequence[Account]) -> None:
        """The accounts are open."""
        session = self.session
        self.session.tell("total_resource", total=session.total_resource)
        if say := session.tells("total_guarantee"):
            say(guarantee=total_guarantee(account.quota for account in accounts))
        if say := session.tells("considering_job"):
            for job in session.peek_jobs():
                say(job=job.uid)
        for key in ("queue_attributes_added", "queue_sums", "queue_attributes"):
            if session.tells(key):
                self._accounts(key, accounts)

    def _accounts(self, key: str, accounts: Iterable[Account]) -> None:
        for account in accounts:
            figures = account.figures(self.axes)
            sums = {name: figures[name] for name in ("allocated", "request", "elastic")}
            more: dict[str, dict[str, object]] = {
                "queue_sums": {**sums, "inqueue": figures["inqueue"]},
                "queue_attributes": {
                    **sums, "plugin": self.plugin, "deserved": figures["deserved"],
                    "real_capability": figures["realCapability"], "share": figures["share"],
                },
            }  # fmt: skip
            self.session.tell(key, queue=account.name, **more.get(key, {}))

    # ------------------------------------------------------------------ refusals

    def closed(self, account: Account) -> None:
        """The queue is not open."""
        self.session.tell("queue_closed_allocate", queue=account.name, state=account.queue.status.state)

    def refused(self, account: Account, task: Task, held: Sequence[int], reserved: Sequence[int]) -> None:
        """The queue may not have the task."""
        if say := self.say_refused:
            say(
                queue=account.name, real_capability=account.quota.real_capability, allocated=amount(self.axes, held),
                reserved=amount(self.axes, reserved), name=task.name, request=task.request,
            )  # fmt: skip

    def above_capability(self, account: Account, more: Sequence[int]) -> None:
        """The queue may not take back so much as to exceed its limit."""
        if say := self.session.tells("capacity_above_capability"):
            used, limit = self._future(account, more), account.quota.real_capability
            say(queue=account.name, future_used=used, real_capability=limit)

    def above_deserved(self, account: Account, more: Sequence[int]) -> None:
        """The queue itself deserves nothing of it."""
        if say := self.session.tells("capacity_above_deserved"):
            used, deserved = self._future(account, more), account.quota.deserved
            say(queue=account.name, future_used=used, deserved=deserved, request=amount(self.axes, more))

    def _future(self, account: Account, more: Sequence[int]) -> Resource:
        return amount(self.axes, account.held).add(amount(self.axes, more))

    # ------------------------------------------------------------------ the rest

    def enqueue(self, account: Account, job: Job, permitted: bool) -> None:
        """The queue has voted on ``job``."""
        if say := self.session.tells("enqueue_amounts"):
            figures = account.figures(self.axes)
            fields = {name: figures[name] for name in ("allocated", "inqueue", "elastic")}
            least, limit = job.facts.min_resources, account.quota.real_capability
            say(name=job.name, min_resources=least, queue=account.name, capability=limit, **fields)
        self.session.tell("enqueue_vote", name=job.name, permitted=permitted)

    def victims(self, victims: Iterable[Task], reclaimer: Task) -> None:
        """Who may be evicted."""
        if say := self.session.tells("capacity_victims"):
            say(victims=[task.key for task in victims], task=reclaimer.key)

    def spared(self, key: str, account: Account, held: Sequence[int], task: Task) -> None:
        """Why a candidate is not taken: ``account`` speaks for it, holding ``held`` by then."""
        if say := self.session.tells(key):
            quota = account.quota
            say(
                queue=account.name, task=task.key, guarantee=quota.guarantee, deserved=quota.deserved,
                allocated=amount(self.axes, held), request=task.request,
            )  # fmt: skip

    def event(self, say: Callable[..., None] | None, account: Account, task: Task) -> None:
        """A task has come or gone."""
        if say:
            say(plugin=self.plugin, task=task.key, request=task.request, share=account.share())


def amount(axes: Axes, vector: Sequence[float]) -> Resource:
    """``vector``, which may be empty, as a Resource."""
    return axes.resource([*vector, *([0.0] * (2 - len(vector)))])
