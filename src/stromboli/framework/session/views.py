"""What a session shows besides its own records: Kubernetes-style views, hypernodes by tier, old states."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from typing import Any, NamedTuple

from stromboli.framework.books.candidates import Candidates
from stromboli.framework.books.jobs import Jobs
from stromboli.framework.books.ledger import Ledger
from stromboli.framework.config.compat import Compat
from stromboli.framework.extension.handlers import Handler
from stromboli.framework.extension.points import POINTS
from stromboli.framework.extension.session_hooks import SessionHooks
from stromboli.model.job import Job
from stromboli.model.names import REVOCABLE_ZONE
from stromboli.model.names import TOP_HYPER_NODE as TOP
from stromboli.model.podgroup import PodGroupCondition, PodGroupStatus
from stromboli.model.resources.resource import Resource
from stromboli.model.selectors import belonging, selects
from stromboli.model.snapshot import HyperNodeInfo, Snapshot
from stromboli.model.spec import Image, LabelSelector
from stromboli.model.status import ALLOCATED_STATUS
from stromboli.model.table import Node, NodeTable
from stromboli.model.task import Task
from stromboli.model.topology import names_by_tier


class OldState(NamedTuple):
    """PodGroups as they stood when the session opened, by job: what decides whether they are written at its close."""

    status: Mapping[str, PodGroupStatus]
    annotations: Mapping[str, Mapping[str, str]]


class NodeView:
    """A node as Kubernetes' own filters see it: with the pods that the session has put there, without the evicted."""

    __slots__ = ("_views", "node")

    def __init__(self, views: Views, node: Node) -> None:
        self._views, self.node = views, node

    @property
    def name(self) -> str:
        """The node's name."""
        return self.node.name

    @property
    def pods(self) -> list[Task]:
        """The tasks on the node now, waiting ones included, in the order in which they came."""
        row = self.node.row
        found = {task.uid: task for task in self._views.snapshot.node_tasks[row].values()}
        for task, place, sign in self._views.ledger.log:
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
        table = self._views.table
        return table.axes.resource(table.requested[:, self.node.row].tolist())

    @property
    def allocatable(self) -> Resource:
        """What the node offers."""
        return self.node.allocatable


class NodeMap(Mapping[str, NodeView]):
    """The nodes by name, in snapshot order."""

    __slots__ = ("_views",)

    def __init__(self, views: Views) -> None:
        self._views = views

    def __getitem__(self, name: str) -> NodeView:
        return NodeView(self._views, Node(self._views.table, self._views.table.row(name)))

    def __iter__(self) -> Iterator[str]:
        return iter(self._views.table.statics.names)

    def __len__(self) -> int:
        return len(self._views.table)


class PodLister:
    """The tasks that occupy a node in the session, each with the node that the session has given it."""

    __slots__ = ("_views",)

    def __init__(self, views: Views) -> None:
        self._views = views

    def list(self, selector: LabelSelector | None = None) -> list[Task]:
        """Those whose labels ``selector`` takes (None: all), job by job."""
        tasks = (task for job in self._views.jobs.peek() for task in job.of(*ALLOCATED_STATUS))
        return [task for task in tasks if selector is None or selects(selector, task.labels)]

    def get(self, task: Task) -> Task | None:
        """The session's own record of ``task``; None while it occupies no node."""
        job = self._views.jobs.peek_at(task.job)
        found = None if job is None else job.tasks.get(task.uid)
        return found if found is not None and found.status in ALLOCATED_STATUS else None


class Views:
    """The part of a session that only shows; everything is worked out when asked for."""

    snapshot: Snapshot
    table: NodeTable
    ledger: Ledger
    jobs: Jobs
    hooks: SessionHooks
    compat: Compat
    conditions: Mapping[str, tuple[PodGroupCondition, ...]]
    unschedulable: set[str]

    # ------------------------------------------------------------------ jobs

    def peek_jobs(self) -> Iterator[Job]:
        """All jobs, read-only and without copying any."""
        return self.jobs.peek()

    def peek_unsettled(self) -> Iterator[Job]:
        """As :meth:`peek_jobs`, without those about which nothing is left to decide or to say.

        Those are the settled ones (:func:`~stromboli.framework.books.phases.is_settled`) that the session has left
        alone; the first job of each queue is never left out.
        """
        if self.compat.asks("events-while-bound"):  # then there is always something to say
            return self.jobs.peek()
        return self.jobs.peek_unsettled({*self.conditions, *self.unschedulable})

    # ------------------------------------------------------------------ nodes

    @property
    def nodes(self) -> Mapping[str, Node]:
        """Nodes by name, in snapshot order."""
        return {name: Node(self.table, row) for row, name in enumerate(self.table.statics.names)}

    @property
    def node_list(self) -> list[Node]:
        """Nodes in snapshot order."""
        return [Node(self.table, row) for row in range(len(self.table))]

    @cached_property
    def candidates(self) -> Candidates:
        """The running tasks that may be evicted at all, node by node."""
        return Candidates(self.snapshot, self.jobs, self.ledger)

    # ------------------------------------------------------------------ Kubernetes' views

    @property
    def node_map(self) -> NodeMap:
        """The nodes with the pods on them, as placements leave them."""
        return NodeMap(self)

    @property
    def pod_lister(self) -> PodLister:
        """The pods that occupy nodes, as placements leave them."""
        return PodLister(self)

    def default_spread_selector(self, task: Task) -> LabelSelector | None:
        """What the services and the controller of ``task`` select, together; None when it belongs to none."""
        named = self.snapshot.services.get(task.namespace)
        return belonging(task.labels, task.controller, named) if named else None

    @property
    def csi_nodes_status(self) -> Mapping[str, Mapping[str, bool]]:
        """By node and driver, whether the number of volumes is limited; a snapshot knows of no drivers yet."""
        return {}

    @property
    def revocable_nodes(self) -> Mapping[str, Node]:
        """Nodes that are given only for some hours of the day, by name."""
        nodes = (Node(self.table, row) for row in range(len(self.table)))
        return {node.name: node for node in nodes if REVOCABLE_ZONE in node.labels}

    @property
    def nodes_in_shard(self) -> frozenset[str]:
        """Names of the nodes of this scheduler's shard; always empty, as a snapshot knows of no NodeShards yet."""
        return frozenset()

    # ------------------------------------------------------------------ hypernodes

    @cached_property
    def hyper_nodes(self) -> Mapping[str, HyperNodeInfo]:
        """Hypernodes by name, the virtual one above all nodes included: it is the parent of those without another."""
        found = {name: info.below(info.parent or TOP) for name, info in self.snapshot.hyper_nodes.items()}
        return {**found, TOP: self.top}

    @cached_property
    def top(self) -> HyperNodeInfo:
        """The virtual hypernode above all nodes: one tier above the highest."""
        known = self.snapshot.hyper_nodes.values()
        top = HyperNodeInfo(TOP, max(1, max((info.tier for info in known), default=0) + 1), range(len(self.table)))
        top.children = [info.name for info in known if not info.parent]
        return top

    @property
    def hyper_node_tier_name_map(self) -> Mapping[str, int]:
        """Tiers by their names."""
        return self.snapshot.hyper_node_tiers

    @cached_property
    def hyper_nodes_set_by_tier(self) -> Mapping[int, list[str]]:
        """Names of the hypernodes of each tier, closer tiers first."""
        return names_by_tier(self.hyper_nodes.values())

    @property
    def hyper_nodes_tiers(self) -> list[int]:
        """All tiers, closer ones first; the virtual hypernode's is the last."""
        return list(self.hyper_nodes_set_by_tier)

    @property
    def real_nodes_list(self) -> Mapping[str, list[Node]]:
        """The nodes below each hypernode, in snapshot order."""
        return {name: [Node(self.table, row) for row in info.rows] for name, info in self.hyper_nodes.items()}

    @cached_property
    def real_nodes_set(self) -> Mapping[str, frozenset[str]]:
        """Names of the nodes below each hypernode."""
        names = self.table.statics.names
        return {name: frozenset(names[row] for row in info.rows) for name, info in self.hyper_nodes.items()}

    # ------------------------------------------------------------------ how the session began, and who answers

    @cached_property
    def pod_group_old_state(self) -> OldState:
        """Statuses and annotations of the PodGroups when the session opened."""
        groups = {uid: job.facts.group for uid, job in self.snapshot.jobs.items()}
        return OldState(
            {uid: group.status for uid, group in groups.items()},
            {uid: group.annotations for uid, group in groups.items()},
        )

    @property
    def points(self) -> Mapping[str, Mapping[str, Callable[..., Any]]]:
        """By extension point and plugin, the functions that are asked; where a plugin has several, the last."""
        return {name: {a.plugin.name: a.function for a in self.hooks.answers.of(name)} for name in POINTS}

    @property
    def event_handlers(self) -> list[Handler]:
        """Who is told of placements, then who is told of their ends."""
        return [*self.hooks.handlers.allocate, *self.hooks.handlers.deallocate]


__all__ = ["TOP", "NodeMap", "NodeView", "OldState", "PodLister", "Views"]
