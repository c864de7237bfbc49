"""A session under the names of the reference: for plugins that are written to its documentation.

A session answers to these names itself, so that such a plugin runs as it is; a type checker sees them on this class.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from stromboli.api.scheduling import PodGroupCondition, PodGroupStatus
from stromboli.framework.books.jobs import Figures
from stromboli.framework.config.config import PluginOption
from stromboli.framework.engine.messages import fit_error
from stromboli.framework.extension.handlers import Handler
from stromboli.framework.extension.points import POINTS
from stromboli.framework.session.node_views import NodeMap, PodLister
from stromboli.framework.statement import session_ops
from stromboli.model.job import Job
from stromboli.model.names import REVOCABLE_ZONE
from stromboli.model.resources.resource import Resource
from stromboli.model.table import Node
from stromboli.model.task import Task

if TYPE_CHECKING:
    from stromboli.framework.books.cluster_view import ClusterView
    from stromboli.framework.statement.session_state import SessionState


class OldState(NamedTuple):
    """PodGroups as they stood when the session opened, by job: what decides whether they are written at its close."""

    status: Mapping[str, PodGroupStatus]
    annotations: Mapping[str, Mapping[str, str]]


class ReferenceView:
    """What the reference's session shows and does, each name in Python's spelling."""

    __slots__ = ("_session",)

    def __init__(self, session: ClusterView) -> None:
        self._session = cast("SessionState", session)  # plugins see a part of it only

    # ------------------------------------------------------------------ the cluster

    @property
    def total_resource(self) -> Resource:
        """What all nodes offer together."""
        return self._session.axes.resource(self._session.ledger.total)

    @property
    def total_guarantee(self) -> Resource:
        """Guarantees of all queues that can be used added up; with a hierarchy, of the children of root."""
        return self._session.queues.added_up(lambda queue: Resource() if queue.fault else queue.guarantee)

    @property
    def total_deserved(self) -> Resource:
        """Shares of all queues added up; with a hierarchy, of the children of root."""
        return self._session.queues.added_up(lambda queue: queue.deserved)

    @property
    def namespace_info(self) -> Mapping[str, Mapping[str, Any]]:
        """ResourceQuotas by namespace and name."""
        return self._session.snapshot.quotas

    @property
    def tiers(self) -> tuple[tuple[PluginOption, ...], ...]:
        """The plugin tiers as loaded."""
        return self._session.config.tiers

    @property
    def configurations(self) -> tuple[Any, ...]:
        """The arguments of actions as loaded."""
        return self._session.config.configurations

    def hierarchy_enabled(self, plugin: str) -> bool:
        """Whether the first listing of ``plugin`` switches its hierarchy on."""
        return self._session.config.hierarchy_enabled(plugin)

    # ------------------------------------------------------------------ nodes

    @property
    def node_list(self) -> list[Node]:
        """Nodes in snapshot order."""
        return list(self._session.nodes.values())

    @property
    def node_map(self) -> NodeMap:
        """The nodes with the pods on them, as placements leave them."""
        return NodeMap(self._session)

    @property
    def pod_lister(self) -> PodLister:
        """The pods that occupy nodes, as placements leave them."""
        return PodLister(self._session)

    @property
    def revocable_nodes(self) -> Mapping[str, Node]:
        """Nodes that are given only for some hours of the day, by name."""
        return {name: node for name, node in self._session.nodes.items() if REVOCABLE_ZONE in node.labels}

    @property
    def csi_nodes_status(self) -> Mapping[str, Mapping[str, bool]]:
        """By node and driver, whether the number of volumes is limited."""
        found = self._session.snapshot.storage.csi_nodes
        return {
            name: {
                driver.name: driver.allocatable is not None and driver.allocatable.count is not None
                for driver in node.spec.drivers
            }
            for name, node in found.items()
        }

    @property
    def nodes_in_shard(self) -> frozenset[str]:
        """Names of the nodes of this scheduler's shard; empty without sharding."""
        shard = self._session.snapshot.shard
        return frozenset() if shard is None else shard.nodes

    # ------------------------------------------------------------------ hypernodes

    @property
    def hyper_node_tier_name_map(self) -> Mapping[str, int]:
        """Tiers by their names."""
        return self._session.hyper_nodes.tiers

    @property
    def hyper_nodes_set_by_tier(self) -> Mapping[int, list[str]]:
        """Names of the hypernodes of each tier, closer tiers first."""
        return self._session.hyper_nodes.by_tier

    @property
    def hyper_nodes_tiers(self) -> list[int]:
        """All tiers, closer ones first; the virtual hypernode's is the last."""
        return list(self._session.hyper_nodes.by_tier)

    @property
    def real_nodes_list(self) -> Mapping[str, list[Node]]:
        """The nodes below each hypernode, in snapshot order."""
        nodes = self.node_list
        return {name: [nodes[row] for row in info.rows] for name, info in self._session.hyper_nodes.items()}

    @property
    def real_nodes_set(self) -> Mapping[str, frozenset[str]]:
        """Names of the nodes below each hypernode."""
        return self._session.hyper_nodes.node_names

    @property
    def hyper_nodes_ready_to_schedule(self) -> bool:
        """Whether jobs with a network topology may be placed."""
        return self._session.snapshot.hyper_nodes_ready

    # ------------------------------------------------------------------ jobs and queues

    @property
    def pod_group_old_state(self) -> OldState:
        """Statuses and annotations of the PodGroups when the session opened."""
        groups = {uid: job.facts.group for uid, job in self._session.snapshot.jobs.items()}
        return OldState(
            {uid: group.status for uid, group in groups.items()},
            {uid: group.annotations for uid, group in groups.items()},
        )

    @property
    def dirty_jobs(self) -> set[str]:
        """Jobs whose placement data must outlive the session."""
        return self._session.pod_groups.moved

    def mark_job_dirty(self, job_uid: str) -> None:
        """Note that a job's placement data must outlive the session."""
        self._session.pod_groups.moved.add(job_uid)

    def is_job_terminated(self, job_uid: str) -> bool:
        """Whether the job has no PodGroup and no tasks any more."""
        return job_uid not in self._session.jobs

    def job_fit_error(self, job: Job) -> str:
        """Everything about a job that waits, in one sentence."""
        return fit_error(job)

    def queue_figures(self, queue: str) -> Figures:
        """A queue's figures as its queue plugin published them, with what it holds now and its guarantee."""
        return self._session.queues[queue].all_figures()

    def record_pod_group_event(self, job: Job, kind: str, reason: str, message: str) -> None:
        """Have an event recorded on the PodGroup of ``job``."""
        self._session.pod_groups.record_event(job, kind, reason, message)

    def update_pod_group_condition(self, job: Job, condition: PodGroupCondition) -> None:
        """Replace the first condition of the same type on the PodGroup of ``job``, or add one."""
        self._session.pod_groups.set_condition(job, condition)

    # ------------------------------------------------------------------ plugins

    @property
    def points(self) -> Mapping[str, Mapping[str, Callable[..., Any]]]:
        """By extension point and plugin, the functions that are asked; where a plugin has several, the last."""
        answers = self._session.hooks.answers
        return {name: {a.plugin.name: a.function for a in answers.of(name)} for name in POINTS}

    @property
    def event_handlers(self) -> list[Handler]:
        """What is called for placements, then what is called for their ends."""
        handlers = self._session.hooks.handlers
        return [*handlers.allocate, *handlers.deallocate]

    def add_event_handler(
        self, allocate: Callable[..., None] | None = None, deallocate: Callable[..., None] | None = None
    ) -> None:
        """Have functions called for every task that takes a place, or leaves it; only while a plugin opens."""
        hooks = self._session.hooks
        for point, function in (("on_allocate", allocate), ("on_deallocate", deallocate)):
            if function is not None:
                hooks.register(point, hooks.opening_name, function)

    # ------------------------------------------------------------------ operations without a statement

    def allocate(self, task: Task, node: Node) -> None:
        """See :func:`stromboli.framework.statement.session_ops.allocate`: without a statement, never taken back."""
        session_ops.allocate(self._session, task, node)

    def pipeline(self, task: Task, node_name: str) -> None:
        """See :func:`stromboli.framework.statement.session_ops.pipeline`."""
        session_ops.pipeline(self._session, task, node_name)

    def evict(self, task: Task, reason: str) -> None:
        """See :func:`stromboli.framework.statement.session_ops.evict`."""
        session_ops.evict(self._session, task, reason)

    def predicate_nodes(self, task: Task, nodes: Iterable[Node | None]) -> list[Node]:
        """See :func:`stromboli.framework.statement.session_ops.predicate_nodes`."""
        return session_ops.predicate_nodes(self._session, task, nodes)


__all__ = ["OldState", "ReferenceView"]
