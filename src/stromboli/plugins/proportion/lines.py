"""What proportion tells while it shares the cluster out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from stromboli.fairness.share import divisors, dominant_share
from stromboli.fairness.waterfill import Claim, Round
from stromboli.model.job import Job

if TYPE_CHECKING:
    from stromboli.framework.session import Session
    from stromboli.plugins.proportion.accounts import Account

ROUND_LINES = (
    "queue_weight", "queue_deserved", "queue_met", "queue_met_capability", "queue_attributes", "remaining",
    "weights_exhausted", "remaining_exhausted",
)  # fmt: skip


class Lines:
    """Tells what somebody wants to hear; asks once what that is."""

    def __init__(self, session: Session, plugin: str) -> None:
        self.axes, self.plugin = session.axes, plugin
        self.session = session
        self.wants_rounds = any(session.tells(key) for key in ROUND_LINES)

    def opened(self, accounts: Mapping[str, Account], total: object, guarantee: object) -> None:
        """The accounts are open."""
        self.session.tell("total_resource", total=total)
        self.session.tell("total_guarantee", guarantee=guarantee)
        if say := self.session.tells("considering_job"):
            for job in self.session.peek_jobs():
                say(job=job.uid)
        if self.session.tells("queue_attributes_added") or self.session.tells("queue_sums"):
            for account in accounts.values():
                self._account(account)

    def _account(self, account: Account) -> None:
        if not account.queue.sums.jobs:
            return
        figures = account.figures(self.axes)
        self.session.tell("queue_attributes_added", queue=account.name)
        fields = {name: figures[name] for name in ("allocated", "request", "inqueue", "elastic")}
        self.session.tell("queue_sums", queue=account.name, **fields)

    def shared_out(self, accounts: Mapping[str, Account], done: Round) -> None:
        """A round is done."""
        if not self.wants_rounds:
            return
        if not done.raised:
            self.session.tell("weights_exhausted")
            return
        for claim in done.raised:
            self._claim(accounts[claim.name], claim, done)
        self.session.tell("remaining", remaining=self.axes.resource(done.remaining))

    def finished(self, last: Round) -> None:
        """No round follows ``last``."""
        if self.wants_rounds and last.raised:
            self.session.tell("remaining_exhausted", remaining=self.axes.resource(last.remaining))

    def enqueue(self, account: Account, job: Job, permitted: bool) -> None:
        """The queue has voted on ``job``."""
        if say := self.session.tells("enqueue_amounts"):
            figures = account.figures(self.axes)
            fields = {name: figures[name] for name in ("allocated", "inqueue", "elastic")}
            least = job.facts.min_resources
            say(name=job.name, min_resources=least, queue=job.queue, capability=account.real_capability, **fields)
        self.session.tell("enqueue_vote", name=job.name, permitted=permitted)

    def _claim(self, account: Account, claim: Claim, done: Round) -> None:
        deserved = self.axes.resource(claim.deserved)
        self.session.tell("queue_weight", queue=claim.name, weight=claim.weight, total_weight=done.weight)
        self.session.tell("queue_deserved", queue=claim.name, deserved=deserved)
        for key, claims in (("queue_met", done.satisfied), ("queue_met_capability", done.capped)):
            if any(claim is other for other in claims):
                self.session.tell(key, queue=claim.name)
        self.session.tell(
            "queue_attributes", queue=claim.name, plugin=self.plugin, deserved=deserved,
            real_capability=account.real_capability, allocated=self.axes.resource(account.held),
            request=self.axes.resource(claim.request), elastic=self.axes.resource(account.elastic),
            share=dominant_share(account.held, divisors(claim.deserved)),
        )  # fmt: skip
