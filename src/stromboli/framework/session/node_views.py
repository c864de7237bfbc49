"""The nodes and pods of a session as Kubernetes' own filters see them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from stromboli.framework.books.cluster_view import ClusterView
from stromboli.model.resources.resource import Resource
from stromboli.model.selectors import selects
from stromboli.model.spec import Image, LabelSelector
from stromboli.model.status import ALLOCATED_STATUS
from stromboli.model.table import Node
from stromboli.model.task import Task


class NodeView:
    """A node as Kubernetes' own filters see it: with the pods that the session has put there, without the evicted."""

    __slots__ = ("_session", "node")

    def __init__(self, session: ClusterView, node: Node) -> None:
        self._session, self.node = session, node

    @property
    def name(self) -> str:
        """The node's name."""
        return self.node.name

    @property
    def pods(self) -> list[Task]:
        """The tasks on the node now, waiting ones included, in the order in which they came."""
        row = self.node.row
        found = {task.uid: task for task in self._session.snapshot.node_tasks[row].values()}
        for task, place, sign in self._session.ledger.log:
            if place == row and sign > 0:
                found[task.uid] = task
            elif place == row:
                found.pop(task.uid, None)
        return list(found.values())

    @property
    def images(self) -> tuple[Image, ...]:
        """Images that the node holds."""
        return self.node.images

    @property
    def requested(self) -> Resource:
        """What :attr:`pods` ask for together."""
        table = self._session.table
        return table.axes.resource(table.requested[:, self.node.row].tolist())

    @property
    def allocatable(self) -> Resource:
        """What the node offers."""
        return self.node.allocatable


class NodeMap(Mapping[str, NodeView]):
    """The nodes by name, in snapshot order."""

    __slots__ = ("_session",)

    def __init__(self, session: ClusterView) -> None:
        self._session = session

    def __getitem__(self, name: str) -> NodeView:
        return NodeView(self._session, Node(self._session.table, self._session.table.row(name)))

    def __iter__(self) -> Iterator[str]:
        return iter(self._session.table.statics.names)

    def __len__(self) -> int:
        return len(self._session.table)


class PodLister:
    """The tasks that occupy a node in the session, each with the node that the session has given it."""

    __slots__ = ("_session",)

    def __init__(self, session: ClusterView) -> None:
        self._session = session

    def list(self, selector: LabelSelector | None = None) -> list[Task]:
        """Those whose labels ``selector`` takes (None: all), job by job."""
        tasks = (task for job in self._session.jobs.peek() for task in job.of(*ALLOCATED_STATUS))
        return [task for task in tasks if selector is None or selects(selector, task.labels)]

    def get(self, task: Task) -> Task | None:
        """The session's own record of ``task``; None while it occupies no node."""
        job = self._session.jobs.peek_at(task.job)
        found = None if job is None else job.tasks.get(task.uid)
        return found if found is not None and found.status in ALLOCATED_STATUS else None


__all__ = ["NodeMap", "NodeView", "PodLister"]
