"""nodegroup from objects to decisions: which groups a queue may use, which it likes, and how much of each."""

from __future__ import annotations

import json
from typing import Any

import pytest

from stromboli.plugins.nodegroup import Rules, read_rules, rules_of
from stromboli.testing.builders import node, pod, pod_group, queue
from tests.acceptance.bench import Bench, binds, conf, messages, task_of

DURING = "DuringSchedulingIgnoredDuringExecution"
INVALID, UNLABELLED = "node group resource limit annotation invalid", "node group label not found"
UNRULED, ELSEWHERE = "node group affinity not specified", "node does not satisfy the node group affinity"
EXCEEDED = "node group resource limit exceeded"


def text(strict=True, ordered=False, tree=False):
    arguments = f"{{strict: {str(strict).lower()}, enablePreferredOrder: {str(ordered).lower()}}}"
    plugin = f"{{name: nodegroup, enableHierarchy: {str(tree).lower()}, arguments: {arguments}}}"
    return conf("gang", f"[{plugin}]", actions="allocate")


def affinity(required=(), preferred=(), forbidden=(), avoided=()):
    sides = {"nodeGroupAffinity": (required, preferred), "nodeGroupAntiAffinity": (forbidden, avoided)}
    return {
        side: {f"required{DURING}": list(must), f"preferred{DURING}": list(should)}
        for side, (must, should) in sides.items()
    }


def grouped(name, group, **fields):
    return node(name, labels={"volcano.sh/nodegroup-name": group} if group else {}, **fields)


def limited(limits):
    return {"volcano.sh/nodegroup-resource-limits": limits if isinstance(limits, str) else json.dumps(limits)}


NODES = [grouped("na", "a"), grouped("nb", "b"), grouped("none", "")]


@pytest.mark.parametrize(
    ("rules", "strict", "open_nodes"),
    [
        pytest.param({"required": "a"}, True, ["na"], id="required"),
        pytest.param({"preferred": "a"}, True, ["na"], id="preferred-too-is-a-limit"),
        pytest.param({"required": "a", "preferred": "b"}, True, ["na", "nb"], id="both"),
        pytest.param({"forbidden": "a"}, True, [], id="forbidding-alone-allows-nothing"),
        pytest.param({"required": "ab", "forbidden": "a"}, True, ["nb"], id="forbidden"),
        pytest.param({"avoided": "a"}, True, ["na"], id="avoided-may-be-used"),
        pytest.param({"forbidden": "a", "avoided": "a"}, True, ["na"], id="avoided-beats-forbidden"),
        pytest.param({}, True, [], id="no-rules"),
        pytest.param({}, False, ["none"], id="no-rules-not-strict"),
        pytest.param({"required": "a"}, False, ["na"], id="rules-not-strict"),
    ],
)
def test_where_a_queue_may_go(rules, strict, open_nodes):
    q = queue("q", affinity=affinity(**{side: tuple(groups) for side, groups in rules.items()}))
    objects = [*NODES, q, pod_group("g", queue="q"), pod("p", group="g")]
    with Bench(objects, text(strict)).open() as session:
        task = task_of(session, "p")
        found = [name for name, each in session.nodes.items() if session.ask.predicate(task, each) is None]
    assert found == open_nodes


@pytest.mark.parametrize(
    ("rules", "ordered", "scores"),
    [
        pytest.param(Rules(required=("a",)), False, {"a": 100, "b": 0}, id="required"),
        pytest.param(Rules(preferred=("a", "b")), False, {"a": 50, "b": 50}, id="preferred"),
        pytest.param(Rules(preferred=("a", "b")), True, {"a": 50, "b": 25}, id="in-order"),
        pytest.param(Rules(required=("a",), preferred=("a",)), False, {"a": 150}, id="both"),
        pytest.param(Rules(required=("a",), avoided=("a",)), False, {"a": -1}, id="avoided"),
    ],
)
def test_scores(rules, ordered, scores):
    assert {group: rules.score(group, ordered) for group in scores} == scores


def test_the_liked_group_is_taken():
    objects = [
        *NODES,
        queue("q", affinity=affinity(preferred=("b", "a"))),
        pod_group("g", queue="q"),
        pod("p", group="g"),
    ]
    assert binds(Bench(objects, text(ordered=True)).cycle()) == {"p": "nb"}


def test_what_waiting_jobs_are_told():
    limits = {"a": {"cpu": "0"}, "b": {"cpu": 1}}
    queues = [
        queue("rules", affinity=affinity(required=("a",))),
        queue("none"),
        queue("bad", affinity=affinity(required=("a",)), annotations=limited('{"a":{"cpu":')),
        queue("odd", affinity=affinity(required=("a",)), annotations=limited({"a": {"cpu": "many"}})),
        queue("full", affinity=affinity(required=("a",)), annotations=limited(limits)),
    ]
    names = ("rules", "none", "bad", "odd", "full")
    jobs = [each for name in names for each in (pod_group(name, queue=name), pod(f"{name}-0", group=name))]
    bench = Bench([*NODES, *queues, *jobs], text())
    bench.cycle()
    said = {name: messages(bench.plan, f"default/{name}-0")[0] for name in ("none", "bad", "odd", "full")}
    unavailable = "0/3 nodes are unavailable: "
    assert said == {
        "none": f"{unavailable}1 {UNLABELLED}, 2 {UNRULED}.",
        "bad": f"{unavailable}3 {INVALID}.",
        "odd": f"{unavailable}3 {INVALID}.",
        "full": f"{unavailable}1 {ELSEWHERE}, 1 {UNLABELLED}, 1 {EXCEEDED}.",
    }


def test_an_affinity_is_inherited_from_the_nearest_queue_above():
    queues = [queue("root"), queue("A", affinity=affinity(required=("a",))), queue("A1", parent="A"),
              queue("A11", parent="A1"), queue("A2", parent="A", affinity={})]  # fmt: skip
    jobs = [each for name in ("A11", "A2") for each in (pod_group(name, queue=name), pod(f"p-{name}", group=name))]
    assert binds(Bench([*NODES, *queues, *jobs], text(tree=True)).cycle()) == {"p-A11": "na"}
    assert binds(Bench([*NODES, *queues, *jobs], text()).cycle()) == {}


def test_limits_bound_what_a_queue_holds_of_a_group():
    """3 cores and no end of memory of group a, of b as much as there is; what runs there counts, and what is placed."""
    q = queue("q", affinity=affinity(required=("a", "b")), annotations=limited({"a": {"cpu": "3"}}))
    running = [pod_group("old", queue="q", phase="Running"), pod("old-0", group="old", on="na", cpu=1)]
    new = [pod_group("g", queue="q"), *(pod(f"p{i}", group="g", cpu=1) for i in range(9))]
    nodes = [
        grouped("na", "a", cpu=9, memory="64Gi"),
        grouped("na2", "a", cpu=9, memory="64Gi"),
        grouped("nb", "b", cpu=2),
    ]
    found = binds(Bench([*nodes, q, *running, *new], text()).cycle())
    where = [{"na": "a", "na2": "a", "nb": "b"}[name] for name in found.values()]
    assert (where.count("a"), where.count("b")) == (2, 2)


def test_limits_bound_what_they_name_alone():
    """Two GPUs of group a, and of cpu no end; a pod without GPUs may come whatever its limit is."""
    gpu = "nvidia.com/gpu"
    limits = {"a": {gpu: 2, "example.com/none": 1, "cpu": "900"}}
    q = queue("q", affinity=affinity(required=("a",)), annotations=limited(limits))
    pods = [*(pod(f"p{i}", group="g", cpu=1, requests={gpu: 1}) for i in range(3)), pod("plain", group="g", cpu=1)]
    objects = [grouped("na", "a", cpu=9, resources={gpu: 4}), q, pod_group("g", queue="q", min_member=0), *pods]
    with Bench(objects, text()).open() as session:
        plugin: Any = session.plugins["nodegroup"]
        named = {session.axes.names[column]: most for column, most in plugin._limits["q"]["a"].items()}
    assert named == {gpu: 2000, "example.com/none": 1000, "cpu": 900_000}
    assert set(binds(Bench(objects, text()).cycle())) == {"p0", "p1", "plain"}


def test_hooks_of_nodes_answer_by_queue():
    objects = [*NODES, queue("q"), pod_group("g", queue="q"), pod("p", group="g")]
    with Bench(objects, text()).open() as session:
        plugin: Any = session.plugins["nodegroup"]
        keys = [hook.key for hook, _ in plugin.hooks() if hook.point.per_node]
        assert {key(task_of(session, "p")) for key in keys} == {"q"}
        assert rules_of(session.queues, "gone", inherits=True) == Rules()


def test_what_leaves_a_group_counts_no_longer():
    q = queue("q", affinity=affinity(required=("a",)), annotations=limited({"a": {"cpu": "1"}}))
    running = [pod_group("old", queue="q", phase="Running"), pod("old-0", group="old", on="na")]
    objects = [*NODES, q, *running, pod_group("g", queue="q"), pod("p", group="g")]
    with Bench(objects, text()).open() as session:
        task, where = task_of(session, "p"), session.nodes["na"]
        with session.statement() as statement:
            assert session.ask.predicate(task, where) is not None
            statement.evict(task_of(session, "old-0"), "test")
            assert session.ask.predicate(task, where) is None
            statement.discard()
        assert session.ask.predicate(task, where) is not None


def test_what_is_no_list_of_names_counts_as_empty():
    assert read_rules({"nodeGroupAffinity": ["a"], "nodeGroupAntiAffinity": {f"required{DURING}": "a"}}) == Rules()


def test_tasks_that_come_and_leave_together_count_as_each_by_itself():
    q = queue("q", affinity=affinity(required="a"), annotations=limited({"a": {"cpu": "4"}}))
    objects = [grouped("na", "a", cpu=9), q, pod_group("g", queue="q", min_member=1)]
    with Bench([*objects, *(pod(f"g-{i}", group="g") for i in range(3))], text()).open() as session:
        plugin: Any = session.plugins["nodegroup"]
        task, row = task_of(session, "g-0"), [0]
        for step, held in ((plugin.come_together, 3000), (plugin.leave_together, 0)):
            step(task, row * 3)
            assert plugin._held["q", "a"][0] == held
