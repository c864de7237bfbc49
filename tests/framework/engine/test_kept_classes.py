"""What the engine keeps of nodes for one kind of pod equals a fresh result, whatever has moved since."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np
import pytest

from stromboli.framework.engine.class_store import Classes
from stromboli.framework.engine.classes import FEW, TaskClass
from stromboli.framework.engine.rows import Bools
from stromboli.framework.session.session import Session
from stromboli.framework.statement.statement import Statement
from stromboli.model.resources.axes import CPU, MEMORY
from stromboli.model.table import Node, NodeRows
from stromboli.model.task import Task
from stromboli.plugin import Plugin, Reason, node_order, predicate
from stromboli.testing.builders import node, pod, pod_group
from tests.acceptance.bench import Bench, conf, task_of

COUNT = 2 * FEW + 4


class OneByOne(Plugin):
    """Asked node by node: refuses those of which little is idle, and prefers those of which much is."""

    name = "onebyone"

    @predicate
    def enough(self, task: Task, node: Node) -> Reason | None:
        return None if node.idle.milli_cpu > 1500 else Reason("too full")

    @node_order
    def idle(self, task: Task, node: Node) -> float:
        return node.idle.milli_cpu / 100


NEAR = {"podAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [
    {"weight": 10, "podAffinityTerm": {"labelSelector": {"matchLabels": {"app": "x"}},
                                       "topologyKey": "kubernetes.io/hostname"}}]}}  # fmt: skip
APART = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [
    {"labelSelector": {"matchLabels": {"app": "x"}}, "topologyKey": "kubernetes.io/hostname"}]}}  # fmt: skip
KINDS = [
    pytest.param("predicates nodeorder", {}, id="by amounts"),
    pytest.param("predicates nodeorder binpack", {"nodeSelector": {"disk": "fast"}}, id="some nodes alone"),
    pytest.param("predicates", {}, id="without scores"),
    pytest.param("predicates nodeorder onebyone", {}, id="node by node"),
    pytest.param("predicates nodeorder", {"affinity": NEAR}, id="close to others"),
    pytest.param("predicates nodeorder", {"affinity": APART}, id="apart from others"),
]


def world(draw: Random, plugins: str, more: dict[str, Any]) -> Bench:
    """Nodes of three sizes, pods that run there, and others that wait."""
    machines = [
        node(f"n{number}", cpu=draw.choice((2, 4, 8)), labels={"disk": draw.choice(("fast", "slow"))})
        for number in range(COUNT)
    ]
    runs = [pod(f"r{number}", group="r", on=f"n{number}", cpu=1, labels={"app": "x"}) for number in range(0, COUNT, 2)]
    waits = [pod(f"x{number}", group="x", cpu=1, labels={"app": "x"}, **more) for number in range(COUNT)]
    groups = [pod_group("r", min_member=0, phase="Running"), pod_group("x", min_member=0)]
    return Bench([*machines, *groups, *runs, *waits], conf("gang", plugins), OneByOne)


def move(draw: Random, session: Session, plan: Statement, waiting: list[Task]) -> None:
    """A pod gets a node, now or later, or one is evicted, or some of it is undone."""
    kind = draw.random()
    if kind < 0.15 and plan.operations:
        before = {task.uid for operation in plan.operations for task in operation.tasks}
        plan.rollback(draw.randrange(len(plan.operations)))
        after = {task.uid for operation in plan.operations for task in operation.tasks}
        job = session.jobs["default/x"]
        waiting += [job.tasks[uid] for uid in sorted(before - after) if uid in job.tasks]
    elif kind < 0.35:
        runs = [task for task in session.jobs["default/r"].tasks.values() if task.status.name == "Running"]
        if runs:
            plan.evict(draw.choice(sorted(runs, key=lambda task: task.uid)), "test")
    elif waiting:
        row = draw.randrange(COUNT)
        task = waiting.pop()
        if session.table.idle[0, row] >= 1000 and draw.random() < 0.7:
            plan.allocate(task, Node(session.table, row))
        else:
            plan.pipeline(task, session.table.statics.names[row], False)


def assert_same(kept: TaskClass, fresh: TaskClass) -> None:
    """Scores of rows that are not open are not kept up."""
    for name in ("open", "now", "best_now"):
        assert np.allclose(getattr(kept, name), getattr(fresh, name)), name
    for name in ("score", "batch"):
        assert np.allclose(getattr(kept, name)[kept.open], getattr(fresh, name)[kept.open]), name


@pytest.mark.parametrize(("plugins", "more"), KINDS)
@pytest.mark.parametrize("seed", range(4))
def test_what_is_kept_is_what_would_be_found_anew(seed: int, plugins: str, more: dict[str, Any]) -> None:
    draw = Random(seed)
    with world(draw, plugins, more).open() as session, session.statement() as plan:
        classes: Classes = session.placer.classes  # type: ignore[attr-defined]
        asking = task_of(session, "x0")
        waiting = [task_of(session, f"x{number}") for number in range(1, COUNT)]
        kept = classes.of(asking)
        for steps in (1, 2, 3, 1, FEW + 3, 1, 2, COUNT, 1, 1):
            for _ in range(steps):
                move(draw, session, plan, waiting)
            fresh = TaskClass(kept.hooks, kept.ledger, asking)
            if kept.simple and draw.random() < 0.5:
                assert np.allclose(classes.best_of(asking).best_now, fresh.best_now)
            assert classes.of(asking) is kept
            assert_same(kept, fresh)


GIB = 2**30
GONE = Reason("never again", resolvable=False)


class Shy(Plugin):
    """Refuses nodes while much of them is idle, which an eviction may cure."""

    name = "shy"

    @predicate.vector(key=lambda task: None, reasons=(Reason("too empty"),))
    def empty(self, task: Task, nodes: NodeRows) -> Bools:
        return np.asarray(nodes.idle[CPU] <= 3000)


class Never(Plugin):
    """Refuses all nodes for good."""

    name = "never"

    @predicate.vector(key=lambda task: None, static=True, reasons=(GONE,))
    def anywhere(self, task: Task, nodes: NodeRows) -> Bools:
        return np.zeros(len(nodes), dtype=bool)


class Shrinks(Shy):
    """Refuses nodes for good once something is on them."""

    name = "shrinks"

    @predicate.vector(key=lambda task: None, reasons=(GONE,))
    def taken(self, task: Task, nodes: NodeRows) -> Bools:
        return np.asarray(nodes.idle[CPU] == 4000)


@pytest.mark.parametrize("plugins", ["shrinks", "shy never"])
def test_which_nodes_evictions_may_open_is_found_anew_after_each_placement(plugins: str) -> None:
    """Also where only a plugin before the one that refuses for good says something else then."""
    objects = [node("n0", cpu=4), node("n1", cpu=4), pod_group("x", min_member=0), pod("x0", group="x", cpu=1)]
    with Bench(objects, conf("gang", plugins), Shy, Never, Shrinks).open() as session, session.statement() as plan:
        task = task_of(session, "x0")
        assert list(session.placer.curable(task)) == [True, True]
        plan.allocate(task, session.nodes["n1"])
        assert list(session.placer.curable(task)) == [True, False]
        plan.rollback(0)
        assert list(session.placer.curable(task)) == [True, True]


class Twice(Plugin):
    """Has nothing to say at first; refuses n0 for good, which has 2 GiB, and n0 and n1, which has 3, for now."""

    name = "twice"

    @predicate.vector(key=lambda task: None, static=True, reasons=(Reason("other"),))
    def silent(self, task: Task, nodes: NodeRows) -> Bools | None:
        return None

    @predicate.vector(key=lambda task: None, static=True, reasons=(GONE,))
    def first(self, task: Task, nodes: NodeRows) -> Bools:
        return np.asarray(nodes.alloc[MEMORY] > 2 * GIB)

    @predicate.vector(key=lambda task: None, static=True, reasons=(Reason("not now"),))
    def second(self, task: Task, nodes: NodeRows) -> Bools:
        return np.asarray(nodes.alloc[MEMORY] > 3 * GIB)


@pytest.mark.parametrize(
    ("within", "counts"),
    [
        (None, {"never again": 1, "not now": 1, "too empty": 1}),
        ([False, True, True], {"not now": 1, "too empty": 1}),
        ([True, False, False], {"never again": 1}),
    ],
)
def test_of_each_node_the_first_plugin_that_refuses_it_says_why_and_no_more_once_it_is_for_good(
    within: list[bool] | None, counts: dict[str, int]
) -> None:
    """All of them have just the room that is asked for; said again, it is the same."""
    machines = [node(f"n{number}", cpu=4, memory=f"{number + 2}Gi") for number in range(3)]
    objects = [*machines, pod_group("x", min_member=0), pod("x0", group="x", cpu=4, memory=0)]
    with Bench(objects, conf("gang", "twice shy"), Shy, Twice).open() as session:
        task, rows = task_of(session, "x0"), None if within is None else np.array(within)
        for _ in range(2):
            found = session.placer.refusals(task, rows)
            assert {reason.text: count for reason, count in found.counts.items()} == counts
            assert found.nodes == (3 if within is None else sum(within))
        with session.statement() as plan:
            plan.allocate(task, session.nodes["n2"])
            short = session.placer.refusals(task, rows).counts.get(Reason("Insufficient cpu"), 0)
            assert short == (within is None or within[2])


WAITS = pod("x0", group="x", cpu=2)


@pytest.mark.parametrize(
    ("room", "scores", "plugins", "at_first", "afterwards"),
    [
        pytest.param(True, True, "shy", True, True, id="a node is open"),
        pytest.param(True, False, "shy", False, True, id="nobody chooses"),
        pytest.param(True, True, "never", False, False, id="no node is open"),
        pytest.param(True, False, "never", False, False, id="nobody chooses, and no node is open"),
        pytest.param(False, True, "never", True, True, id="an eviction may open one, as far as is known"),
        pytest.param(False, False, "never", False, True, id="nobody chooses where to evict"),
    ],
)
def test_nodes_are_scored_where_one_may_be_chosen(
    room: bool, scores: bool, plugins: str, at_first: bool, afterwards: bool
) -> None:
    """Afterwards a node is to be chosen, whatever it was at first."""
    scene = [node("n0", cpu=7), pod_group("x"), WAITS, pod("r", group="r", on="n0", cpu=5)]
    with Bench([*scene, pod_group("r")], conf("gang nodeorder", plugins), Shy, Never).open() as session:
        classes, task = Classes(session.placer.classes.hooks, session.ledger), task_of(session, "x0")  # type: ignore[attr-defined]
        assert classes.of(task, room=room, scores=scores).scored is at_first
        assert classes.of(task, room=room).scored is afterwards


def test_a_class_is_scored_once_a_node_opens() -> None:
    """The pod of r leaves n1, so that x0 fits there; the other scores are as they stand by then."""
    scene = [node("n0", cpu=8), node("n1", cpu=4), pod_group("x"), WAITS, pod_group("r")]
    scene += [pod("r0", group="r", on="n0", cpu=7), pod("r1", group="r", on="n1", cpu=3)]
    with Bench(scene, conf("gang", "predicates nodeorder")).open() as session, session.statement() as plan:
        classes, task = Classes(session.placer.classes.hooks, session.ledger), task_of(session, "x0")  # type: ignore[attr-defined]
        kept = classes.of(task)
        assert (kept.scored, kept.runs, kept.simple, kept.open.tolist()) == (False, False, False, [False, False])
        plan.evict(task_of(session, "r1"), "test")
        assert not classes.best_of(task).scored
        assert classes.of(task) is kept
        assert (kept.scored, kept.runs, kept.simple, kept.open.tolist()) == (True, True, True, [False, True])
        assert_same(kept, TaskClass(kept.hooks, kept.ledger, task))
