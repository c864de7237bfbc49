"""The queues of a session: what is known of them, summed up over a tree, or found wrong with them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from stromboli.framework.books.jobs import Figures, QueueInfo
from stromboli.framework.books.ledger import Ledger
from stromboli.framework.books.plan import Event, Plan
from stromboli.model.resources.axes import Axes, add_to
from stromboli.model.resources.resource import Resource, maximum
from stromboli.model.snapshot import Snapshot
from stromboli.narration.observe import Teller

_MEMORY = "stromboli/queues"
"""The key of what is remembered here from cycle to cycle, among the names of plugins, which have no such prefix."""


class Queues:
    """The part of a session that has to do with its queues."""

    queues: dict[str, QueueInfo]
    ledger: Ledger
    plan: Plan
    axes: Axes
    tells: Callable[[str], Teller | None]
    memory: Callable[[str], dict[str, float]]
    snapshot: Snapshot

    @property
    def total_guarantee(self) -> Resource:
        """Guarantees of all queues that can be used added up; with a hierarchy, of the children of root."""
        return self._over_queues(lambda queue: Resource() if queue.fault else queue.guarantee)

    @property
    def total_deserved(self) -> Resource:
        """Shares of all queues added up; with a hierarchy, of the children of root."""
        return self._over_queues(lambda queue: queue.deserved)

    def _over_queues(self, amount: Callable[[QueueInfo], Resource]) -> Resource:
        tree = "root" in self.queues and any(q.spec.parent not in ("", "root") for q in self.queues.values())
        total = Resource()
        for name, queue in self.queues.items():
            if name != "root" and (not tree or queue.spec.parent in ("", "root")):
                total.add(amount(queue))
        return total

    def sum_branches(self, ancestors: Mapping[str, Sequence[str]]) -> None:
        """From now on a queue's ``branch`` counts what the queues below it hold; ``ancestors`` are by queue.

        There is one tree in a session: the first call counts.
        """
        if self.ledger.above:
            return
        for name in ancestors:
            self.queues[name].branch = self.axes.full(self.queues[name].sums.held)
        for name, above in ancestors.items():
            for ancestor in above:
                add_to(self.queues[ancestor].branch, self.queues[name].sums.held)
        chains = {name: (name, *above) for name, above in ancestors.items()}
        self.ledger.above = {name: [self.queues[each].branch for each in chain] for name, chain in chains.items()}

    def most_of(self, total: Resource) -> Resource:
        """The most that the cluster has had of what queues are guaranteed, ``total`` now; nodes may come back.

        It is remembered from cycle to cycle as long as a queue is guaranteed some of it.
        """
        names = sorted({name for queue in self.queues.values() for name in queue.guarantee.names()})
        if not names and _MEMORY not in self.snapshot.memory:
            return total
        kept = self.memory(_MEMORY)
        most = {name: max(kept.get(name, 0.0), total.get(name)) for name in names}
        kept.clear()
        kept.update(most)
        scalars = {name: amount for name, amount in most.items() if name not in {"cpu", "memory"}}
        return maximum(total, Resource(most.get("cpu", 0.0), most.get("memory", 0.0), scalars))

    def note_trouble(self, queue: str, fault: str, warning: str) -> None:
        """Note, in the plan and for everybody who asks, why a queue cannot be used, or may not get its guarantee.

        The first is its ``fault``, the second its ``warning``; empty where there is none.  What another plugin has
        noted before stands.
        """
        info = self.queues[queue]
        info.fault, info.warning = info.fault or fault, info.warning or warning
        if text := fault or warning:
            self.plan.inconsistencies.append(f"queue {queue}: {text}")
            reason = "InvalidQueue" if fault else "GuaranteeNotKept"
            self.plan.events.append(Event("Queue", queue, "Warning", reason, text))
            if say := self.tells("queue_faulty"):
                say(queue=queue, fault=text)

    def publish_figures(self, queue: str, figures: Figures) -> None:
        """Let everybody read a queue's figures."""
        self.queues[queue].figures.update(figures)

    def queue_figures(self, queue: str) -> Figures:
        """A queue's figures as its queue plugin published them, with what it holds now and its guarantee."""
        info = self.queues[queue]
        return {"deserved": info.deserved, "guarantee": info.guarantee, **info.figures, "allocated": info.allocated}
