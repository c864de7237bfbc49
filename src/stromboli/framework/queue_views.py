"""The queues of a session: what is known of them, summed up over a tree, or found wrong with them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from stromboli.framework.jobs import Figures, QueueInfo
from stromboli.framework.ledger import Ledger
from stromboli.framework.observe import Teller
from stromboli.framework.plan import Event, Plan
from stromboli.model.axes import Axes, add_to
from stromboli.model.resource import Resource


class Queues:
    """The part of a session that has to do with its queues."""

    queues: dict[str, QueueInfo]
    ledger: Ledger
    plan: Plan
    axes: Axes
    tells: Callable[[str], Teller | None]

    @property
    def total_guarantee(self) -> Resource:
        """Guarantees of all queues added up; with a hierarchy, of the children of root."""
        return self._over_queues(lambda queue: queue.guarantee)

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

    def quarantine_queue(self, queue: str, fault: str) -> None:
        """Note, in the plan and for everybody who asks, that a queue cannot be used."""
        self.queues[queue].fault = fault
        self.plan.inconsistencies.append(f"queue {queue}: {fault}")
        self.plan.events.append(Event("Queue", queue, "Warning", "InvalidQueue", fault))
        if say := self.tells("queue_faulty"):
            say(queue=queue, fault=fault)

    def publish_figures(self, queue: str, figures: Figures) -> None:
        """Let everybody read a queue's figures."""
        self.queues[queue].figures.update(figures)

    def queue_figures(self, queue: str) -> Figures:
        """A queue's figures as its queue plugin published them, with what it holds now and its guarantee."""
        info = self.queues[queue]
        return {"deserved": info.deserved, "guarantee": info.guarantee, **info.figures, "allocated": info.allocated}
