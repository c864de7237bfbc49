"""What capacity reports while it is asked."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from stromboli.model.resources.resource import Resource
from stromboli.model.task import Task
from stromboli.plugins.capacity.accounts import Account
from stromboli.queue_accounts.lines import AccountLines

if TYPE_CHECKING:
    from stromboli.framework.books.cluster_view import ClusterView


class CapacityLines(AccountLines):
    """Reports refusals and victims, too."""

    def __init__(self, session: ClusterView, plugin: str) -> None:
        super().__init__(session, plugin)
        self.say_refused = session.tells("capacity_refused")

    def opened(self, accounts: Sequence[Account]) -> None:
        """The accounts are open."""
        self.totals(accounts)
        for key in ("queue_attributes_added", "queue_sums", "queue_attributes"):
            if self.session.tells(key):
                self._accounts(key, accounts)

    def _accounts(self, key: str, accounts: Iterable[Account]) -> None:
        for account in accounts:
            figures, sums = account.figures(self.axes), self.sums(account, "request")
            more: dict[str, dict[str, object]] = {
                "queue_sums": {**sums, "inqueue": figures["inqueue"]},
                "queue_attributes": {
                    **sums, "plugin": self.plugin, "deserved": figures["deserved"],
                    "real_capability": figures["realCapability"], "share": figures["share"],
                },
            }  # fmt: skip
            self.session.tell(key, queue=account.name, **more.get(key, {}))

    # ------------------------------------------------------------------ refusals

    def refused(self, account: Account, task: Task, held: Sequence[int], reserved: Sequence[int]) -> None:
        """The queue may not have the task."""
        if say := self.say_refused:
            say(
                queue=account.name, real_capability=account.quota.real_capability, allocated=self.amount(held),
                reserved=self.amount(reserved), name=task.name, request=task.request,
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
            say(queue=account.name, future_used=used, deserved=deserved, request=self.amount(more))

    def _future(self, account: Account, more: Sequence[int]) -> Resource:
        return self.amount(account.held).add(self.amount(more))

    def victims(self, victims: Iterable[Task], reclaimer: Task) -> None:
        """The tasks that may be evicted."""
        if say := self.session.tells("capacity_victims"):
            say(victims=[task.key for task in victims], task=reclaimer.key)

    def spared(self, key: str, account: Account, held: Sequence[int], task: Task) -> None:
        """Why a candidate is not taken: ``account`` speaks for it, holding ``held`` by then."""
        if say := self.session.tells(key):
            quota = account.quota
            say(
                queue=account.name, task=task.key, guarantee=quota.guarantee, deserved=quota.deserved,
                allocated=self.amount(held), request=task.request,
            )  # fmt: skip
