from __future__ import annotations

import pytest

from stromboli.framework.config.argument import parse_arguments, tolerated
from stromboli.model.usage import NodeUsage
from stromboli.plugins.rescheduling import Rescheduling
from stromboli.plugins.rescheduling import low_node_utilization as lnu
from stromboli.testing.builders import node, pod, pod_group
from tests.acceptance.bench import NOW, Bench, conf

DUE = NOW + 301


def strategy(params):
    return f"[{{name: rescheduling, arguments: {{strategies: [{{name: lowNodeUtilization, params: {params}}}]}}}}]"


LIMITS = "{thresholds: {cpu: 20, memory: 20}, targetThresholds: {cpu: 50, memory: 50}}"


def moved(objects, loads, params=LIMITS, more="", compat=False):
    """The pods evicted in the first cycle that is due, given (cpu, memory) loads, or (cpu, memory, age)."""
    bench = Bench([*objects, pod_group("g")], conf(strategy(params), *more.split(), actions="shuffle"), compat=compat)
    bench.cycle()
    bench.state.measured(
        {name: NodeUsage(DUE - (age[0] if age else 0), {"10m": cpu, "5m": cpu}, {"10m": memory, "5m": memory})
         for name, (cpu, memory, *age) in loads.items()}
    )  # fmt: skip
    return [eviction.key.partition("/")[2] for eviction in bench.cycle(now=DUE).evictions]


def nodes(*names, **more):
    return [node(name, cpu=10, memory="10Gi", **more) for name in names]


def pods(number, on="a", prefix="p", **more):
    asks = {"cpu": 1, "memory": 0, **more}
    return [pod(f"{prefix}{i}", group="g", on=on, created=i + 1, **asks) for i in range(number)]


HIGH, LOW = (80, 0), (10, 0)


def test_less_important_pods_go_first():
    quality = {"limits": {"cpu": 1, "memory": "1Gi"}, "requests": {"cpu": 1, "memory": "1Gi"}}
    mixed = [
        pod("none-guaranteed", group="g", on="a", container={"resources": quality}),
        pod("none-burstable", group="g", on="a", cpu=1, memory=0),
        pod("high", group="g", on="a", cpu=1, memory=0, priority=9),
        pod("low-old", group="g", on="a", cpu=1, memory=0, priority=1, created=1),
        pod("low-new", group="g", on="a", cpu=1, memory=0, priority=1, created=2),
        pod("none-idle", group="g", on="a", cpu=0, memory=0),
    ]
    limits = "{thresholds: {cpu: 20}, targetThresholds: {cpu: 45}}"
    found = moved([*nodes("a", "b"), *mixed], {"a": HIGH, "b": LOW}, limits)
    assert found == ["none-idle", "none-burstable", "none-guaranteed", "low-old", "low-new"][: len(found)]
    assert len(found) == 5  # 80 % less four cores is 40 %, and the idle one takes nothing away


def test_what_idle_nodes_can_bear_is_the_bound():
    """b can bear 50 - 30 % of 10 cores."""
    limits = "{thresholds: {cpu: 40}, targetThresholds: {cpu: 50}}"
    assert len(moved([*nodes("a", "b"), *pods(8)], {"a": HIGH, "b": (30, 0)}, limits)) == 2
    assert len(moved([*nodes("a", "b"), *pods(3, cpu="1500m")], {"a": HIGH, "b": (30, 0)}, limits)) == 2


def test_the_room_of_idle_nodes_is_not_kept_for_pods_that_are_protected():
    limits = "{thresholds: {cpu: 40}, targetThresholds: {cpu: 50}}"
    staying = pods(3, prefix="s", priorityClassName="system-node-critical")
    objects = [*nodes("a", "b"), *staying, *pods(3, prefix="t", priority=5)]
    assert moved(objects, {"a": HIGH, "b": (30, 0)}, limits, more="conformance") == ["t0", "t1"]


@pytest.mark.parametrize(("compat", "number"), [(False, 2), (True, 3)])
def test_in_the_references_way_an_overdrawn_budget_goes_on(compat, number):
    limits = "{thresholds: {cpu: 40}, targetThresholds: {cpu: 50}}"
    objects = [*nodes("a", "b"), *pods(3, cpu="1500m")]
    assert len(moved(objects, {"a": HIGH, "b": (30, 0)}, limits, compat=compat)) == number


def test_in_the_references_way_a_budget_that_is_used_up_exactly_ends():
    limits = "{thresholds: {cpu: 40}, targetThresholds: {cpu: 50}}"
    assert len(moved([*nodes("a", "b"), *pods(8)], {"a": HIGH, "b": (30, 0)}, limits, compat=True)) == 2


@pytest.mark.parametrize(
    ("loads", "found"),
    [({"a": HIGH, "b": (20, 0)}, []), ({"a": (50, 0), "b": LOW}, []), ({"a": (51, 0), "b": (19, 0)}, ["p0"])],
    ids=["not-low-at-the-threshold", "not-high-at-the-target", "beyond-both"],
)
def test_loads_at_a_limit_are_neither_low_nor_high(loads, found):
    assert moved([*nodes("a", "b"), *pods(4)], loads) == found


def test_priority_0_is_lower_than_1():
    mixed = [pod(f"p{n}", group="g", on="a", cpu=1, memory=0, priority=n, created=9 - n) for n in (1, 0)]
    assert moved([*nodes("a", "b"), *mixed], {"a": HIGH, "b": LOW}) == ["p0", "p1"]


def test_what_a_node_does_not_offer_is_nothing():
    assert (lnu.amount_of({}, "cpu"), lnu.amount_of({}, "memory")) == (0, 0)


@pytest.mark.parametrize(
    ("strategies", "found"),
    [
        ([], {}),
        (["lowNodeUtilization", {"name": "other", "params": {"a": 1}}], None),
        ([{"name": lnu.NAME, "params": {"a": 1}}, {"name": "other", "params": {"b": 2}}], {"a": 1}),
        ([{"name": lnu.NAME, "params": {"a": 1}}, {"name": lnu.NAME}], {}),
    ],
)
def test_parameters_are_those_of_the_last_entry_of_the_name(strategies, found):
    assert Rescheduling({"strategies": strategies}).params_of(lnu.NAME) == found


def test_the_most_loaded_node_is_relieved_first():
    objects = [*nodes("a", "b", "c"), *pods(4, "a", "a"), *pods(4, "b", "b")]
    found = moved(objects, {"a": (70, 0), "b": (70, 10), "c": (10, 0)})
    assert found == ["b0", "b1", "b2", "a0"]


def test_memory_counts_as_well():
    found = moved([*nodes("a", "b"), *pods(4, cpu=0, memory="2Gi")], {"a": (0, 80), "b": (0, 10)})
    assert found == ["p0", "p1"]


@pytest.mark.parametrize(("compat", "found"), [(False, []), (True, [])])
def test_pods_without_a_job_stay(compat, found):
    alone = [pod(f"p{i}", on="a", cpu=1, memory=0) for i in range(4)]
    assert moved([*nodes("a", "b"), *alone], {"a": HIGH, "b": LOW}, compat=compat) == found


def test_a_cordoned_node_takes_nothing_and_gives():
    assert moved([*nodes("a"), *nodes("b", unschedulable=True), *pods(4)], {"a": HIGH, "b": LOW}) == []
    assert moved([*nodes("a", unschedulable=True), *nodes("b"), *pods(4)], {"a": HIGH, "b": LOW}) != []


@pytest.mark.parametrize("loads", [{"a": HIGH}, {"a": HIGH, "b": (10, 0, 301)}, {"a": (80, 0, 301), "b": LOW}])
def test_a_node_without_a_recent_measurement_is_left_out(loads):
    assert moved([*nodes("a", "b"), *pods(4)], loads) == []


def test_conformance_keeps_what_the_cluster_needs():
    critical = pods(2, prefix="c", priorityClassName="system-node-critical")
    found = moved([*nodes("a", "b"), *critical, *pods(2)], {"a": HIGH, "b": LOW}, more="conformance")
    assert sorted(found) == ["p0", "p1"]


# ---------------------------------------------------------------------- arguments


@pytest.mark.parametrize(
    ("params", "low", "target"),
    [
        ({}, (100, 100), (100, 100)),
        ({"thresholds": {"cpu": 20}}, (20, 100), (100, 100)),
        ({"thresholds": {"cpu": 20, "memory": "x", "pods": 3}, "targetThresholds": {"memory": 5}}, (20, 100), (100, 5)),
        ({"thresholds": 7, "targetThresholds": {"cpu": 5}}, (100, 100), (100, 100)),
        ({"targetThresholds": {"cpu": True}}, (100, 100), (100, 100)),
    ],
)
def test_limits(params, low, target):
    found = lnu.limits_of(params)
    assert (tuple(found.low.values()), tuple(found.target.values())) == (low, target)


def test_doubts_name_what_will_be_ignored():
    odd = {"thresholds": {"cpu": "x", "disk": 3, "pods": 1}, "nodeFit": True, "zz": 1}
    strategies = [
        {"name": "lowNodeUtilisation"},
        {"name": "lowNodeUtilization", "params": odd},
        {"name": "lowNodeUtilization", "params": 3},
        "x",
    ]
    given = {"interval": "soon", "strategies": strategies, "queueSelector": ["q"]}
    values, complaints = parse_arguments(Rescheduling.arguments, given, "rescheduling")
    assert (values["interval"], values["strategies"]) == ("5m", strategies)
    why = tolerated("rescheduling", "queueSelector")
    assert [(each.key, each.text) for each in complaints if each.kind == "tolerated"] == [
        ("strategies", "parameter nodeFit of lowNodeUtilization has no effect, as in the reference"),
        ("queueSelector", f"argument queueSelector of rescheduling is accepted, but has no effect here: {why}"),
    ]
    texts = [each.text for each in complaints if each.key == "strategies" and each.kind == "unknown"]
    assert texts == [
        "strategy lowNodeUtilisation is not known; did you mean 'lowNodeUtilization'?",
        "thresholds.cpu of lowNodeUtilization is 'x', not a whole number of percent",
        "thresholds.disk of lowNodeUtilization is neither cpu nor memory",
        "parameter zz of lowNodeUtilization is not known",
        "params of lowNodeUtilization must be a mapping",
        "strategy 'x' is no mapping with a name",
    ]
    assert [each.key for each in complaints if each.kind == "range"] == ["interval"]


def test_unusable_parameters_are_told():
    bench = Bench([*nodes("a", "b"), pod_group("g"), *pods(2)], conf(strategy("[3]"), actions="shuffle"))
    bench.cycle()
    assert "parameters parse error for lowNodeUtilization" in bench.logged(0, DUE)
    assert bench.plan.evictions == []


def test_the_interval_is_used_up_though_no_action_asks():
    bench = Bench([*nodes("a")], conf(strategy("{}"), actions="allocate"))
    kept = [bench.cycle(now=now).memory["rescheduling"]["last"] for now in (NOW, NOW + 300, NOW + 301, NOW + 302)]
    assert kept == [NOW, NOW, NOW + 301, NOW + 301]
