"""The queues of a session: what is known of them, summed up over a tree, or found wrong with them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from stromboli.framework.books.jobs import QueueInfo
from stromboli.framework.books.ledger import Ledger
from stromboli.framework.books.plan import Event, Plan
from stromboli.model.queue import kept_before
from stromboli.model.resources.axes import add_to
from stromboli.model.resources.resource import Resource, maximum
from stromboli.model.snapshot import Snapshot
from stromboli.narration.observe import Teller

_MEMORY: Final = "stromboli/queues"
"""The key of what is remembered here from cycle to cycle, among the names of plugins, which have no such prefix."""


class Queues(dict[str, QueueInfo]):
    """Queues by name."""

    def __init__(
        self, snapshot: Snapshot, ledger: Ledger, plan: Plan, memory: Callable[[str], dict[str, float]],
        tells: Callable[[str], Teller | None],
    ) -> None:  # fmt: skip
        axes = snapshot.axes
        super().__init__({name: QueueInfo(queue, ledger.queues[name], axes) for name, queue in snapshot.queues.items()})
        self._axes, self._snapshot, self._ledger, self._plan = axes, snapshot, ledger, plan
        self._memory, self._tells = memory, tells

    def added_up(self, amount: Callable[[QueueInfo], Resource]) -> Resource:
        """An amount of all queues added up; with a hierarchy, of the children of root."""
        tree = "root" in self and any(queue.spec.parent not in ("", "root") for queue in self.values())
        total = Resource()
        for name, queue in self.items():
            if name != "root" and (not tree or queue.spec.parent in ("", "root")):
                total.add(amount(queue))
        return total

    def sum_branches(self, ancestors: Mapping[str, Sequence[str]]) -> None:
        """From now on a queue's ``branch`` counts what the queues below it hold; ``ancestors`` are by queue.

        There is one tree in a session: the first call counts.
        """
        if self._ledger.above:
            return
        for name in ancestors:
            self[name].branch = self._axes.full(self[name].sums.held)
        for name, above in ancestors.items():
            for ancestor in above:
                add_to(self[ancestor].branch, self[name].sums.held)
        chains = {name: (name, *above) for name, above in ancestors.items()}
        self._ledger.above = {name: [self[each].branch for each in chain] for name, chain in chains.items()}

    def most_of(self, total: Resource) -> Resource:
        """The most that the cluster has had of what queues are guaranteed, ``total`` now; nodes may come back.

        It is remembered from cycle to cycle as long as a queue is guaranteed some of it; after a restart the queues'
        statuses tell.
        """
        names = sorted({name for queue in self.values() for name in queue.guarantee.names()})
        if not names and _MEMORY not in self._snapshot.memory:
            return total
        kept = self._memory(_MEMORY)
        told = [kept_before(queue.queue) for queue in self.values() if queue.status.fault]
        most = {name: max(kept.get(name, 0.0), *(one.get(name) for one in (total, *told))) for name in names}
        kept.clear()
        kept.update(most)
        scalars = {name: amount for name, amount in most.items() if name not in {"cpu", "memory"}}
        return maximum(total, Resource(most.get("cpu", 0.0), most.get("memory", 0.0), scalars))

    def note_trouble(self, queue: str, fault: str, warning: str) -> None:
        """Note in the queue and in the plan why a queue cannot be used (``fault``), or may not get its guarantee.

        An empty text says that there is no such trouble.  What another plugin has noted before stands.
        """
        info = self[queue]
        info.fault, info.warning = info.fault or fault, info.warning or warning
        if text := fault or warning:
            self._plan.inconsistencies.append(f"queue {queue}: {text}")
            reason = "InvalidQueue" if fault else "GuaranteeNotKept"
            self._plan.events.append(Event("Queue", queue, "Warning", reason, text))
            if say := self._tells("queue_faulty"):
                say(queue=queue, fault=text)


__all__ = ["Queues"]
