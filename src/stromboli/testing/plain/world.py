"""The nodes as a session's placements leave them: every amount is added up again from the pods."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property

from stromboli.framework.session.session import Session
from stromboli.model.resources.axes import add_to
from stromboli.model.spec import NodeSpec
from stromboli.model.status import TaskStatus
from stromboli.model.task import Task

Amounts = list[int]
"""Amounts by column, in the units of :data:`~stromboli.model.resources.axes.Vector`."""


class Site:
    """One node and the pods on it.

    ``tasks`` are the scheduler's books: everything that stands on the node or waits for room there, ending pods too.
    ``before`` are the pods that stood there when the session opened.  ``pods`` are those that Kubernetes' filters and
    scores look at: the same as ``tasks`` without the session's own victims, or ``before`` where that view of the nodes
    does not follow placements.  ``offers`` is what the node has to give, by column.
    """

    def __init__(self, row: int, spec: NodeSpec, offers: Amounts, before: list[Task]) -> None:
        self.row, self.spec, self.offers, self.before = row, spec, offers, before
        self.tasks: list[Task] = []
        self.pods: list[Task] = []

    def __repr__(self) -> str:
        return f"Site({self.spec.name!r})"

    @cached_property
    def used(self) -> Amounts:
        """What is in use, by all tasks but the pipelined ones."""
        return self._sum(task for task in self.tasks if task.status is not TaskStatus.Pipelined)

    @cached_property
    def idle(self) -> Amounts:
        """What is not used; negative where the node is overfull."""
        return [offer - used for offer, used in zip(self.offers, self.used, strict=True)]

    @cached_property
    def future(self) -> Amounts:
        """What will be idle once ending pods have gone and waiting ones have come."""
        leaving = self._sum(task for task in self.tasks if task.status is TaskStatus.Releasing)
        coming = self._sum(task for task in self.tasks if task.status is TaskStatus.Pipelined)
        return [now + more - less for now, more, less in zip(self.idle, leaving, coming, strict=True)]

    @cached_property
    def requested(self) -> Amounts:
        """What Kubernetes' scores count: the requests of all pods, waiting ones too."""
        return self._sum(self.pods)

    @cached_property
    def nonzero(self) -> tuple[int, int]:
        """The same for cpu and memory, with Kubernetes' stand-ins for containers that ask for nothing."""
        both = [task.template.nonzero for task in self.pods]
        return sum(cpu for cpu, _ in both), sum(memory for _, memory in both)

    def _sum(self, tasks: Iterable[Task]) -> Amounts:
        total = [0] * len(self.offers)
        for task in tasks:
            add_to(total, task.template.vector)
        return total


class PlainWorld:
    """All nodes of a session, in snapshot order, at the moment of asking."""

    def __init__(self, session: Session) -> None:
        self.namespace_labels: Mapping[str, Mapping[str, str]] = session.snapshot.namespace_labels
        self.compat = session.compat
        specs, alloc = session.table.statics.specs, session.table.alloc
        known = session.axes.names[: len(alloc)]  # a session may number names that no node knows
        self.columns: Mapping[str, int] = {name: column for column, name in enumerate(known)}
        offers: list[Amounts] = alloc.T.tolist()
        found = zip(specs, offers, session.snapshot.node_tasks, strict=True)
        self.sites = [Site(row, spec, offer, list(on.values())) for row, (spec, offer, on) in enumerate(found)]
        tasks = [{task.key: task for task in site.before} for site in self.sites]
        pods = [dict(there) for there in tasks]
        for task, row, sign in session.ledger.log:
            tasks[row][task.key] = task
            if sign > 0:
                pods[row][task.key] = task
            else:
                del pods[row][task.key]
        for site in self.sites:
            site.tasks = [task for task in tasks[site.row].values() if task.node_name == site.spec.name]
            site.pods = list(pods[site.row].values()) if session.ledger.follows_placements else site.before
