"""What proportion reports while it shares the cluster out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from stromboli.fairness.share import divisors, dominant_share
from stromboli.fairness.waterfill import Claim, Round
from stromboli.plugins.proportion.accounts import Account
from stromboli.queue_accounts.lines import AccountLines

if TYPE_CHECKING:
    from stromboli.framework.books.cluster_view import ClusterView

ROUND_LINES = (
    "queue_weight", "queue_deserved", "queue_met", "queue_met_capability", "queue_attributes", "remaining",
    "weights_exhausted", "remaining_exhausted",
)  # fmt: skip


class ProportionLines(AccountLines):
    """Reports the rounds of the water filling, too."""

    def __init__(self, session: ClusterView, plugin: str) -> None:
        super().__init__(session, plugin)
        self.wants_rounds = any(session.tells(key) for key in ROUND_LINES)

    def opened(self, accounts: Mapping[str, Account]) -> None:
        """The accounts are open."""
        self.totals(accounts.values())
        if self.session.tells("queue_attributes_added") or self.session.tells("queue_sums"):
            for name, account in accounts.items():
                if account.takes_part:
                    self.session.tell("queue_attributes_added", queue=name)
                    self.session.tell("queue_sums", queue=name, **self.sums(account, "request", "inqueue"))

    def state(self, account: Account, held: Sequence[int]) -> dict[str, object]:
        """What the queue deserves, and what it holds when that is ``held``."""
        return {"deserved": account.quota.deserved, "allocated": self.amount(held)}

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

    def _claim(self, account: Account, claim: Claim, done: Round) -> None:
        deserved = self.axes.resource(claim.deserved)
        self.session.tell("queue_weight", queue=claim.name, weight=claim.weight, total_weight=done.weight)
        self.session.tell("queue_deserved", queue=claim.name, deserved=deserved)
        for key, claims in (("queue_met", done.satisfied), ("queue_met_capability", done.capped)):
            if any(claim is other for other in claims):
                self.session.tell(key, queue=claim.name)
        self.session.tell(
            "queue_attributes", queue=claim.name, plugin=self.plugin, deserved=deserved,
            real_capability=account.quota.real_capability, **self.sums(account, "request"),
            share=dominant_share(account.held, divisors(claim.deserved)),
        )  # fmt: skip
