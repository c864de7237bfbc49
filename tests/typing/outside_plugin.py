"""A plugin and an action as written outside the project: what they see has a type, and wrong uses are refused.

The type checker reads this module as strictly as the package: an expression under ``assert_type`` has exactly that
type, which Any is not, and each ``type: ignore`` must be needed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import assert_type

import numpy as np
import numpy.typing as npt

from stromboli.builtin import builtin_registry
from stromboli.cycle import run_cycle
from stromboli.framework.books.jobs import QueueInfo
from stromboli.framework.books.plan import Bind, Plan
from stromboli.framework.config.config import Config, PluginOption
from stromboli.framework.config.registry import Registry
from stromboli.framework.extension.action import Action
from stromboli.framework.extension.handlers import TaskEvent
from stromboli.framework.session.session import Session
from stromboli.framework.statement.statement import Statement
from stromboli.model.job import PENDING, Job
from stromboli.model.resources.resource import Resource
from stromboli.model.snapshot import Snapshot
from stromboli.model.table import Node, NodeRows
from stromboli.model.task import Task
from stromboli.plugin import (
    ClusterView,
    Plugin,
    Reason,
    ReferenceView,
    arg,
    job_order,
    node_order,
    on_allocate,
    predicate,
)
from stromboli.testing.builders import cluster, hyper_node, node, pod, pod_group, queue
from stromboli.testing.check_plugin import check_plugin

OTHER_ZONE = Reason("node(s) were in another zone", resolvable=False)
BUSY = Reason("node(s) were too busy")


def zone_of(task: Task) -> str | None:
    """The zone that a task asks for."""
    return assert_type(task.labels.get("zone"), str | None)


def length_of(text: str) -> int:
    """Not what a task is told apart by."""
    return len(text)


class Zone(Plugin):
    """Keeps tasks in the zone that they ask for, and prefers cheap nodes."""

    name = "zone"
    weight = arg("zone.weight", float, 10.0)

    def on_session_open(self, session: ClusterView) -> None:
        """Every part of the session that plugins read has a type."""
        self.placed: dict[str, int] = {}
        assert_type(session.now, float)
        assert_type(ReferenceView(session).total_resource, Resource)
        assert_type(session.queues["default"], QueueInfo)
        for job in session.jobs.peek():
            assert_type(job, Job)
            for task in job.tasks.values():
                assert_type(task.labels, Mapping[str, str])
                assert_type(session.job_of(task), Job | None)

    def on_session_close(self, session: ClusterView) -> None:
        """Every question that other plugins answer has a type, too."""
        assert_type([session.ask.job_ready(job) for job in session.jobs.peek()], list[bool])

    @predicate(key=zone_of)
    def same_zone(self, task: Task, node: Node) -> Reason | None:
        """Whether the task asks for the node's zone, or for none."""
        wanted = zone_of(task)
        return OTHER_ZONE if wanted and node.labels.get("zone") != wanted else None

    @node_order(key=lambda task: None)
    def cheap(self, task: Task, node: Node) -> float:
        """A score for nodes that cost little."""
        return assert_type(self.weight, float) if node.labels.get("price") == "low" else 0.0

    @job_order
    def larger_first(self, left: Job, right: Job) -> int:
        """Jobs with more tasks come first."""
        return len(right.tasks) - len(left.tasks)

    @on_allocate
    def count(self, event: TaskEvent) -> None:
        """Counts the tasks of each job that have found a place."""
        self.placed[event.task.job] = self.placed.get(event.task.job, 0) + 1


class Quiet(Plugin):
    """Keeps tasks away from busy nodes, asked about all nodes at once."""

    name = "quiet"

    @predicate.vector(key=lambda task: None, reasons=(BUSY,))
    def not_busy(self, task: Task, nodes: NodeRows) -> npt.NDArray[np.bool_]:
        """Whether nodes are used by less than nine tenths."""
        return nodes.used_of("cpu") * 10 <= nodes.allocatable("cpu") * 9


class FirstNode(Action):
    """Puts each task that waits on the first node that takes it."""

    name = "first-node"
    most = arg("most", int, 10)

    def execute(self, session: Session) -> None:
        """Place at most so many tasks of each job, or none of them."""
        for job in session.jobs.values():
            with session.statement() as statement:
                assert_type(statement, Statement)
                waiting = [assert_type(task, Task) for task in job.of(PENDING)]
                self.place(session, statement, waiting[: assert_type(self.most, int)])
                if session.ask.job_ready(job):
                    statement.commit()

    def place(self, session: Session, statement: Statement, tasks: Sequence[Task]) -> None:
        """Allocate each task where predicates let it."""
        for task in tasks:
            reference = ReferenceView(session)
            found = reference.predicate_nodes(task, reference.node_list)
            if found:
                statement.allocate(task, assert_type(found[0], Node))


def small_cluster() -> Snapshot:
    """A cluster with one job, made with the builders that users have."""
    return cluster(
        queue("default"),
        node("n1", labels={"zone": "east", "price": "low"}),
        node("n2", labels={"zone": "west"}),
        hyper_node("rack", 1, "n1", "n2"),
        pod_group("train", min_member=2),
        pod("p1", group="train", labels={"zone": "west"}),
        pod("p2", group="train"),
    )


def planned() -> Plan:
    """One cycle with the plugin."""
    registry = assert_type(builtin_registry(), Registry)
    registry.add(Zone)
    registry.add(Quiet)
    options = (PluginOption.filled("gang"), PluginOption.filled("zone"), PluginOption.filled("quiet"))
    plan = run_cycle(small_cluster(), Config(actions=("allocate",), tiers=(options,)), registry)
    assert_type(plan.binds, list[Bind])
    return plan


def checked() -> None:
    """The conformance kit tries the plugin."""
    check_plugin(Zone, {"zone.weight": 3}, examples=5)
    check_plugin(Quiet, examples=5)


def refused(session: Session, statement: Statement) -> None:
    """What the type checker refuses, each for its own reason; never called."""
    predicate(keys=zone_of)  # type: ignore[call-overload]
    predicate(key=length_of)  # type: ignore[arg-type]
    predicate(key=zone_of, reads=("nodes",))  # type: ignore[arg-type]
    session.clusters  # type: ignore[attr-defined]  # noqa: B018
    session.ask.job_redy  # type: ignore[attr-defined]  # noqa: B018
    session.ask.job_ready(ReferenceView(session).node_list[0])  # type: ignore[arg-type]
    statement.allocate("default/p", ReferenceView(session).node_list[0])  # type: ignore[arg-type]
    Reason("no", resolvable="never")  # type: ignore[arg-type]
    node("n3", cpu=[4])  # type: ignore[arg-type]
    pod_group("train", min_member="2")  # type: ignore[arg-type]
    hyper_node("rack", "1")  # type: ignore[arg-type]
    cluster("n1")  # type: ignore[arg-type]
    check_plugin(FirstNode)  # type: ignore[arg-type]
    run_cycle(small_cluster(), "actions: allocate", builtin_registry())  # type: ignore[arg-type]
