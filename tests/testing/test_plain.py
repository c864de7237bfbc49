"""The plain evaluation: worked examples of its own, and the law that the engine agrees with it."""

from __future__ import annotations

import ast
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given

import stromboli.testing.plain
from stromboli.builtin import builtin_registry
from stromboli.cycle import run_cycle
from stromboli.framework.books.cluster_view import ClusterView
from stromboli.framework.config.config import DEFAULT_CONFIG, Config, load_config
from stromboli.framework.config.registry import Registry
from stromboli.framework.engine.placement import Choice
from stromboli.framework.session.session import Session
from stromboli.framework.statement.operation_kind import OperationKind
from stromboli.model.status import TaskStatus
from stromboli.plugin import Plugin, Reason, batch_node_order, node_order, predicate
from stromboli.testing.builders import cluster, node, pod, pod_group
from stromboli.testing.moves import make
from stromboli.testing.plain import scores
from stromboli.testing.plain.cycle import PlainSession, run_plain_cycle
from stromboli.testing.plain.placer import PlainPlacer
from stromboli.testing.strategies import clusters, moves

GPU = "nvidia.com/gpu"
ZONE = "topology.kubernetes.io/zone"


def configured(*plugins: str, actions: str = "allocate, backfill", more: str = "") -> Config:
    """Plugins, each as ``name`` or ``name key: value; key: value``, in one tier."""
    lines = [f'actions: "{actions}"', "tiers:", "- plugins:"]
    for plugin in plugins:
        name, _, arguments = plugin.partition(" ")
        lines += [f"  - name: {name}", *(["    arguments:"] if arguments else [])]
        lines += [f"      {argument.strip()}" for argument in arguments.split(";") if argument]
    return loaded("\n".join([*lines, more]))


def loaded(text: str) -> Config:
    registry = builtin_registry()
    return known(registry, text)


def known(registry: Registry, text: str) -> Config:
    plugins, actions = registry.plugin_names, registry.action_names
    return load_config(text, source="test", known_plugins=plugins, known_actions=actions)


def opened(config: Config, *objects) -> tuple[Session, PlainPlacer]:
    session = Session.open(cluster(*objects), config, builtin_registry())
    return session, PlainPlacer(session)


def waiting(session: Session, name: str):
    return next(task for job in session.jobs.values() for task in job.tasks.values() if task.name == name)


# -- Worked examples -------------------------------------------------------------------------------------------------

FOUR = node("n1", cpu=4, memory="8Gi")
USER = pod("user", group="g", cpu=1, memory="2Gi", on="n1")
TASK = pod("task", group="g", cpu=1, memory="1Gi")


@pytest.mark.parametrize(
    ("score", "objects", "expected"),
    [
        pytest.param(scores.least_allocated, [FOUR, USER, TASK], 56, id="least: (50 + 62) / 2"),
        pytest.param(scores.most_allocated, [FOUR, USER, TASK], 43, id="most: (50 + 37) / 2"),
        pytest.param(scores.balanced, [FOUR, USER, TASK], 71, id="balanced: 50 + (50 + 93 - 100) / 2"),
        pytest.param(scores.taints, [FOUR, TASK], 100, id="no taints"),
        pytest.param(scores.images, [FOUR, TASK], 0, id="no image"),
    ],
)
def test_scores(score, objects, expected) -> None:
    session, plain = opened(configured("nodeorder"), *objects)
    assert score(plain.world, waiting(session, "task"), plain.world.sites) == [expected]


def test_binpack() -> None:
    config = configured("binpack binpack.cpu: 5")
    session, plain = opened(config, FOUR, pod("user", group="g", cpu=1, memory="2Gi", on="n1"), TASK)
    (score,) = plain.scores(waiting(session, "task"), plain.world.sites)
    assert score == pytest.approx((5 * 0.5 + 1 * 0.375) / 6 * 100)


SPREAD = {"topologyKey": ZONE, "whenUnsatisfiable": "DoNotSchedule", "labelSelector": {"matchLabels": {"app": "a"}}}
HATE = {
    "podAntiAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": [
            {"topologyKey": ZONE, "labelSelector": {"matchLabels": {"app": "a"}}}
        ]
    }
}
LOVE = {"podAffinity": HATE["podAntiAffinity"]}


def zoned(name: str, zone: str, **fields):
    return node(name, labels={ZONE: zone}, **fields)


def app(name: str, on: str = "", **fields):
    return pod(name, group="g", labels={"app": "a"}, on=on, **fields)


def crowd(size: int, on: str):
    return [app(f"{on}-{number}", on) for number in range(size)]


def spreading(name: str):
    return app(name, topologySpreadConstraints=[SPREAD])


@pytest.mark.parametrize(
    ("objects", "text"),
    [
        pytest.param(
            [zoned("n1", "a"), zoned("n2", "b", cpu=1), *crowd(3, "n1"), *crowd(1, "n2"), spreading("task")],
            "0/2 nodes are unavailable: 1 Insufficient cpu, 1 node(s) didn't match pod topology spread constraints.",
            id="3 + 1 - 1 > 1, and the other zone is full",
        ),
        pytest.param(
            [node("n1"), spreading("task")],
            "0/1 nodes are unavailable: 1 node(s) didn't match pod topology spread constraints"
            " (missing required label).",
            id="no zone",
        ),
        pytest.param(
            [zoned("n1", "a"), app("r1", "n1"), app("task", affinity=HATE)],
            "0/1 nodes are unavailable: 1 node(s) didn't match pod anti-affinity rules.",
            id="own anti-affinity",
        ),
        pytest.param(
            [zoned("n1", "a"), app("r1", "n1", affinity=HATE), app("task")],
            "0/1 nodes are unavailable: 1 node(s) didn't satisfy existing pods anti-affinity rules.",
            id="others' anti-affinity",
        ),
        pytest.param(
            [zoned("n1", "a"), node("n2"), app("r1", "n2"), pod("task", group="g", affinity=LOVE)],
            "0/2 nodes are unavailable: 2 node(s) didn't match pod affinity rules.",
            id="company without a zone does not count",
        ),
        pytest.param(
            [node("n1", cpu=1, pods=1, unschedulable=True), app("r1", "n1", deleting=True), app("task")],
            "0/1 nodes are unavailable: 1 node(s) pod number exceeded, 1 node(s) were unschedulable.",
            id="plain refusals add up",
        ),
    ],
)
def test_refusals(objects, text) -> None:
    session, plain = opened(configured("predicates"), *objects, pod_group("g"))
    task = waiting(session, "task")
    assert plain.place(task) is None
    assert plain.refusals(task).text == text


def test_the_first_of_a_group_starts_it() -> None:
    session, plain = opened(configured("predicates"), node("n1"), zoned("n2", "a"), app("task", affinity=LOVE))
    choice = plain.place(waiting(session, "task"))
    assert choice is not None
    assert (choice.rows, choice.kind) == ([1], OperationKind.ALLOCATE)


def test_room_about_to_become_free_comes_second() -> None:
    objects = [node("n1", cpu=1), node("n2", cpu=1), TASK, pod("more", group="g")]
    session, plain = opened(configured("predicates"), *objects, pod("old", group="g", on="n1", deleting=True))
    first = plain.place(waiting(session, "task"))
    assert first == Choice([1], OperationKind.ALLOCATE)
    session.statement().place(session.jobs["default/g"], [waiting(session, "task")], first.rows, first.kind)
    assert plain.place(waiting(session, "more")) == Choice([0], OperationKind.PIPELINE)


# -- The engine agrees -----------------------------------------------------------------------------------------------

CONFIGS = {
    "default": loaded(DEFAULT_CONFIG),
    "everything": configured(
        "priority",
        "gang",
        f"predicates predicate.ProportionalEnable: true; predicate.resources: {GPU}; predicate.resources.{GPU}.cpu: 2",
        "nodeorder mostrequested.weight: 2; imagelocality.weight: 3; podaffinity.weight: 5",
        f"binpack binpack.weight: 3; binpack.resources: {GPU}; binpack.resources.{GPU}: 5",
        actions="enqueue, allocate, backfill",
    ),
    "cached": configured("gang", "predicates predicate.CacheEnable: true", "nodeorder nodeaffinity.weight: -1"),
    "drawn": configured("gang", "predicates", more="tie-break: seeded"),
    "compat": configured("gang", "predicates", "nodeorder", more="compat: volcano"),
    "alone": configured("binpack", "nodeorder"),
}


@pytest.mark.law("the engine plans as the plain evaluation does")
@pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS)
@given(objects=clusters())
def test_same_plan(config: Config, objects) -> None:
    registry = builtin_registry()
    fast, plain = (run(cluster(*objects), config, registry, seed=7) for run in (run_cycle, run_plain_cycle))
    assert fast.inconsistencies == []
    assert fast == plain


@pytest.mark.law("the engine answers as the plain evaluation does, whatever has been placed, evicted and undone")
@pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS)
@given(objects=clusters(max_nodes=6), doings=moves)
@example(objects=[], doings=[])
def test_same_answers(config: Config, objects, doings) -> None:
    session, plain = opened(config, *objects)
    with session.statement() as statement:
        for upto in (0, len(doings)):
            make(session, statement, doings[:upto])
            for task in [task for job in session.jobs.values() for task in job.of(TaskStatus.Pending)]:
                for room, within in product((True, False), (None, every_second(session))):
                    choice = plain.place(task, within, room=room)
                    assert session.placer.place(task, within, room=room) == choice
                    if choice is None:
                        fast, slow = (each.refusals(task, within, room=room) for each in (session.placer, plain))
                        assert (fast.counts, fast.nodes) == (slow.counts, slow.nodes)


def every_second(session: Session):
    return np.arange(len(session.table)) % 2 == 0


@pytest.mark.law("the node table's columns are the sums over the pods on each node")
@given(objects=clusters(), doings=moves)
def test_sums(objects, doings) -> None:
    session, plain = opened(CONFIGS["default"], *objects)
    with session.statement() as statement:
        make(session, statement, doings)
        table = session.table
        for site in plain.world.sites:
            row = site.row
            assert site.used == table.used[:, row].tolist()
            assert site.future == table.future[:, row].tolist()
            assert site.requested == table.requested[:, row].tolist()
            assert list(site.nonzero) == table.nonzero[:, row].tolist()


# -- Other people's plugins ------------------------------------------------------------------------------------------


class Odd(Plugin):
    """Hooks of every form, with fractions that show the order of additions."""

    name = "odd"

    def on_session_open(self, session: ClusterView) -> None:
        self.placements = session.ledger.log
        session.register(
            "predicate",
            self.name,
            lambda task, node: Reason("first", resolvable=True) if len(node.labels) > 3 else None,
        )

    @predicate(key=lambda task: task.labels.get("app"))
    def scalar(self, task, node):
        said = (Reason("odd {n}").of(n=node.row % 3), Reason("never", resolvable=False))
        return said if task.labels.get("app") == "b" and node.row % 2 else None

    @predicate.vector(key=lambda task: None, reasons=(Reason("small"), Reason("smaller")))
    def masks(self, _task, nodes):
        cpu = nodes.alloc[0]
        return (cpu < 4000).astype("uint64") * 0 + (cpu - nodes.used[0] < -2000).astype("uint64") * 3

    @node_order(key=lambda task: task.labels.get("app"))
    def tenths(self, task, node):
        return 0.1 * len(task.labels) + node.used.milli_cpu / 7000

    @predicate
    def keyless(self, _task, node):
        return () if (node.row + len(self.placements)) % 5 else (Reason("not now"),)

    @node_order(key=lambda task: None, reads=("cluster",))
    def elsewhere(self, _task, node):
        return float((node.row + 1) * (len(self.placements) + 1) % 4)

    @batch_node_order.vector(key=lambda task: None)
    def thirds(self, _task, nodes):
        return nodes.used[0] / 3000.0

    @batch_node_order.raw(key=lambda task: None, normalise="stretch")
    def raw(self, _task, nodes):
        return nodes.used[1]

    def stretch(self, _task, raw, low, high):
        return (raw - low) * (10.0 / (high - low)) if high > low else raw * 0.0


class Fractions(Plugin):
    """Hooks that keep to their rows, so that tasks can be placed in runs."""

    name = "fractions"

    @predicate.vector(key=lambda task: task.labels.get("app"), reasons=(Reason("half full"),))
    def not_half_full(self, task, nodes):
        return nodes.used[0] * 2 <= nodes.alloc[0] if task.labels.get("app") == "a" else None

    @node_order.vector(key=lambda task: None)
    def thirds(self, _task, nodes):
        return (nodes.used[0] % 1500) / 3000.0

    @batch_node_order.vector(key=lambda task: None, row="seventh")
    def sevenths(self, _task, nodes):
        return nodes.used[1] / 7.0 / 2**30

    def seventh(self, _task, node):
        return node.used.memory / 7.0 / 2**30

    @batch_node_order.raw(key=lambda task: None, static=True, normalise="tenths")
    def size(self, _task, nodes):
        return nodes.alloc[0]

    def tenths(self, _task, raw, low, high):
        return (raw - low) / (high - low + 10.0)


class Shifting(Plugin):
    """Scores that all nodes have alike and that grow with each placement, and hardly different ones next to them."""

    name = "shifting"

    def on_session_open(self, session: ClusterView) -> None:
        self.session = session

    @node_order.vector(key=lambda task: None)
    def hardly(self, _task, nodes):
        return nodes.rows * 2.0**-48

    @batch_node_order.raw(key=lambda task: None, reads=("job",), normalise="thousands", alike="before_each")
    def placed(self, task, nodes):
        return np.full(len(nodes), self._placed(task))

    def before_each(self, task, _nodes, count):
        return self._placed(task) + np.arange(count)

    def thousands(self, _task, raw, _low, _high):
        return raw * 1000.0

    def _placed(self, task):
        job = self.session.job_of(task)
        return float(sum(bool(each.node_name) for each in job.tasks.values())) if job else 0.0


class Broken(Plugin):
    """Raises now and then."""

    name = "broken"

    @predicate
    def moody(self, task, node):
        if task.labels.get("app") == "b":
            raise ValueError("no b today")


@pytest.mark.law("the engine plans as the plain evaluation does with external plugins")
@pytest.mark.parametrize("plugin", [Odd, Fractions, Shifting])
@given(objects=clusters())
def test_same_plan_with_others(plugin: type[Plugin], objects) -> None:
    registry = builtin_registry()
    registry.add(plugin)
    text = 'actions: "allocate, backfill"\ntiers:\n- plugins:\n  - {name: gang}\n- plugins:\n'
    text += f"  - {{name: {plugin.name}}}\n"
    text += "  - {name: predicates}\n  - {name: binpack}\n  - {name: nodeorder}\n"
    config = known(registry, text)
    fast, plain = (run(cluster(*objects), config, registry) for run in (run_cycle, run_plain_cycle))
    assert fast == plain


@pytest.mark.parametrize("run", [run_cycle, run_plain_cycle])
def test_a_score_that_is_the_same_for_all_nodes_counts_in_the_sums_of_a_run(run) -> None:
    """The first pod finds hardly different scores; beside a thousand they are the same, and the first node is taken."""
    registry = builtin_registry()
    registry.add(Shifting)
    config = known(registry, 'actions: "allocate"\ntiers:\n- plugins: [{name: gang}, {name: shifting}]\n')
    pods = [pod(f"p{number}", group="g") for number in range(7)]
    plan = run(
        cluster(*(node(f"n{i}", cpu=4) for i in range(3)), pod_group("g", min_member=7), *pods), config, registry
    )
    assert [bind.node for bind in plan.binds] == ["n2", "n0", "n0", "n0", "n0", "n1", "n1"]


def test_a_plugin_put_aside_is_asked_no_more() -> None:
    registry = builtin_registry()
    registry.add(Broken)
    config = known(registry, 'actions: "allocate"\ntiers:\n- plugins:\n  - name: broken\n')
    snapshot = cluster(node("n1"), pod("p", group="g", labels={"app": "b"}))
    plan = run_plain_cycle(snapshot, config, registry)
    assert plan.inconsistencies == ["plugin broken: ValueError: no b today"]
    assert [bind.node for bind in plan.binds] == ["n1"]
    with PlainSession.open(snapshot, config, registry) as session:
        session.recompile()
        assert isinstance(session.placer, PlainPlacer)


# -- Independence ----------------------------------------------------------------------------------------------------

SHARED = ("numpy", "stromboli.framework.engine.classes", "stromboli.framework.engine.rows",
          "stromboli.framework.engine.refusals", "stromboli.filters", "stromboli.plugins")  # fmt: skip


def test_nothing_is_shared_with_the_engine() -> None:
    folder = Path(stromboli.testing.plain.__file__).parent
    found = {}
    for file in sorted(folder.glob("*.py")):
        for statement in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(statement, ast.Import):
                found.update({alias.name: file.name for alias in statement.names})
            elif isinstance(statement, ast.ImportFrom):
                found.update({f"{statement.module}.{alias.name}": file.name for alias in statement.names})
    assert "stromboli.model.task.Task" in found
    assert [name for name in found if name.startswith(SHARED)] == []
    assert [name for name in found if name.startswith("stromboli.framework.engine.placement")] == [
        "stromboli.framework.engine.placement.Choice"
    ]
