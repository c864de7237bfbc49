"""Acceptance rows S3: rescheduling and usage, from measured loads to decisions."""

from __future__ import annotations

from typing import Any

import pytest

from stromboli.model.usage import NodeUsage
from stromboli.plugins.usage import Usage
from stromboli.testing.builders import Manifest, node, pod, pod_group
from tests.acceptance.bench import NOW, Bench, binds, conf

DUE = NOW + 301


def sample(cpu: float, memory: float, age: float = 0.0, now: float = NOW) -> NodeUsage:
    return NodeUsage(now - age, {"10m": cpu}, {"10m": memory})


# ---------------------------------------------------------------------- rescheduling


def shuffling(strategies: str = "", **arguments: Any) -> str:
    given = {**arguments, **({"strategies": strategies} if strategies else {})}
    listed = ", ".join(f"{key}: {value}" for key, value in given.items())
    return conf(f"[{{name: rescheduling, arguments: {{{listed}}}}}]", actions="shuffle")


def low(thresholds: int, target: int) -> str:
    limits = f"thresholds: {{cpu: {thresholds}}}, targetThresholds: {{cpu: {target}}}"
    return f"[{{name: lowNodeUtilization, params: {{{limits}}}}}]"


def loaded_and_idle() -> list[Manifest]:
    """Two nodes of ten cores; eight pods of one core run on a, each older than the next."""
    pods = [pod(f"p{i}", group="g", on="a", cpu=1, created=i + 1) for i in range(8)]
    return [node("a", cpu=10), node("b", cpu=10), pod_group("g"), *pods]


def moved(bench: Bench, loads: dict[str, float], now: float = DUE) -> list[str]:
    """The pods evicted in a cycle that is due, given loads of cpu."""
    bench.cycle(now=NOW)
    bench.state.measured({name: sample(cpu, 0, now=now) for name, cpu in loads.items()})
    plan = bench.cycle(now=now)
    assert {eviction.reason for eviction in plan.evictions} <= {"shuffle"}
    return [eviction.key.partition("/")[2] for eviction in plan.evictions]


def test_S3_43_nothing_happens_before_the_interval_is_over() -> None:
    text = "It is not the time to execute rescheduling strategies."
    bench = Bench(loaded_and_idle(), shuffling(low(20, 50)))
    assert text in bench.logged(3, NOW)
    bench.state.measured({"a": sample(80, 0), "b": sample(10, 0)})
    assert text in bench.logged(3, NOW + 1)
    assert text not in bench.logged(2, NOW + 1)
    assert bench.plan.evictions == []
    bench.state.measured({"a": sample(80, 0, now=DUE), "b": sample(10, 0, now=DUE)})
    assert text not in bench.logged(3, DUE)
    assert len(bench.plan.evictions) == 4
    assert text in bench.logged(3, DUE + 1)


@pytest.mark.parametrize(("written", "due"), [("10s", 11), ("soon", 301), ("5", 301)])
def test_S3_43_the_interval_is_5_minutes_unless_another_is_written(written: str, due: int) -> None:
    for late, evicted in ((due - 1, 0), (due, 4)):
        bench = Bench(loaded_and_idle(), shuffling(low(20, 50), interval=written))
        assert len(moved(bench, {"a": 80, "b": 10}, NOW + late)) == evicted


def test_S3_44_unknown_strategies_name_no_victims() -> None:
    bench = Bench(loaded_and_idle(), shuffling("[{name: x}, {name: offlineOnly, params: {}}]"))
    assert moved(bench, {"a": 80, "b": 10}) == []
    assert bench.plan.inconsistencies == []
    assert not [line for line in bench.logged(5, DUE + 301) if line.startswith("strategy: x")]


def test_S3_44_low_node_utilization_is_known_and_the_default_moves_no_pod() -> None:
    bench = Bench(loaded_and_idle(), shuffling())
    bench.cycle()
    bench.state.measured({"a": sample(80, 0, now=DUE), "b": sample(10, 0, now=DUE)})
    assert "strategy: lowNodeUtilization" in bench.logged(4, DUE)
    assert bench.plan.evictions == []


@pytest.mark.parametrize(
    ("loads", "text"),
    [
        ({"a": 80, "b": 30}, "The resource utilization of all nodes is above the threshold"),
        ({"a": 10, "b": 15}, "The resource utilization of all nodes is below the threshold"),
        ({"a": 45, "b": 10}, "The resource utilization of all nodes is below the target threshold"),
    ],
    ids=["S3-45-no-low-node", "S3-45-all-low", "S3-45-no-high-node"],
)
def test_without_low_or_high_nodes_no_pod_is_moved(loads: dict[str, float], text: str) -> None:
    bench = Bench(loaded_and_idle(), shuffling(low(20, 50)))
    bench.cycle()
    bench.state.measured({name: sample(cpu, 0, now=DUE) for name, cpu in loads.items()})
    assert text in bench.logged(4, DUE)
    assert text not in bench.logged(3, DUE + 301)
    assert bench.plan.evictions == []


def test_S3_46_pods_leave_the_loaded_node_until_its_target() -> None:
    """Two nodes of 10 cores, 80 % and 10 %, limits 20 and 50: there is room for 4 cores, and at 40 % it ends."""
    assert moved(Bench(loaded_and_idle(), shuffling(low(20, 50))), {"a": 80, "b": 10}) == ["p0", "p1", "p2", "p3"]


def test_S3_46_the_period_is_10m_or_in_the_references_way_5m_for_which_nothing_is_measured() -> None:
    for compat, period, evicted in ((False, "", 4), (True, "", 0), (True, "10m", 4), (False, "5m", 0)):
        more = {"metricsPeriod": period} if period else {}
        bench = Bench(loaded_and_idle(), shuffling(low(20, 50), **more), compat=compat)
        assert len(moved(bench, {"a": 80, "b": 10})) == evicted


# ---------------------------------------------------------------------- usage

USAGE = conf("gang predicates usage")


def two_nodes(**loads: NodeUsage) -> Bench:
    bench = Bench([node("n1"), node("n2"), pod_group("g"), pod("p", group="g")], USAGE)
    bench.state.measured(loads)
    return bench


def test_S3_54_a_node_above_its_threshold_is_refused_for_good() -> None:
    refusals = {"cpu": "the CPU load of the node exceeds the upper limit.",
                "memory": "the memory load of the node exceeds the upper limit."}  # fmt: skip
    for kind, text in refusals.items():
        for load, fits in ((81, False), (80.001, False), (80, True)):
            figures = {"cpu": 0.0, "memory": 0.0, kind: load}
            bench = Bench([node("n1"), pod_group("g"), pod("p", group="g")], USAGE)
            bench.state.measured({"n1": sample(**figures)})
            assert binds(bench.cycle()) == ({"p": "n1"} if fits else {})
            if not fits:
                assert text in bench.plan.pod_conditions[0].message
        with bench.open() as session:
            plugin = session.plugins["usage"]
            assert isinstance(plugin, Usage)
            assert all(not reason.resolvable for hook, _ in plugin.hooks() for reason in hook.reasons)


def test_S3_54_an_eviction_does_not_help_a_loaded_node() -> None:
    classes = [
        {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": f"c{v}"}, "value": v}
        for v in (1, 9)
    ]
    old = [pod_group("old", priorityClassName="c1"), *(pod(f"o{i}", group="old", on="n1", cpu=2) for i in range(2))]
    objects = [node("n1"), *classes, *old, pod_group("new", priorityClassName="c9"), pod("new-0", group="new", cpu=2)]
    for load, evicted in ((20, 1), (90, 0)):
        bench = Bench(objects, conf("gang priority predicates usage", actions="allocate, preempt"))
        bench.state.measured({"n1": sample(load, 0)})
        assert len(bench.cycle().evictions) == evicted


def test_S3_55_stale_data_and_none_let_the_node_pass_with_score_0() -> None:
    for stale in (sample(99, 99, age=301), None):
        bench = Bench([node("n1"), pod_group("g"), pod("p", group="g")], USAGE)
        bench.state.measured({"n1": stale} if stale else {})
        assert binds(bench.cycle()) == {"p": "n1"}
        # a node of which something is known is better than that, however loaded it is
        more = {"n1": stale} if stale else {}
        assert binds(two_nodes(**more, n2=sample(79, 79)).cycle()) == {"p": "n2"}
    fresh = two_nodes(n1=sample(99, 99, age=300), n2=sample(1, 1))
    assert binds(fresh.cycle()) == {"p": "n2"}


def scored(bench: Bench, name: str) -> float:
    with bench.open() as session:
        plugin = session.plugins["usage"]
        assert isinstance(plugin, Usage)
        (task,) = (task for job in session.jobs.peek() for task in job.tasks.values())
        return plugin.score_of_node(task, session.nodes[name])


def test_S3_56_idle_nodes_win_by_the_formula() -> None:
    """40 % cpu and 20 % memory with weight 5: ((1 - 0.4) + (1 - 0.2)) / 2 x 100 x 5."""
    bench = two_nodes(n1=sample(40, 20), n2=sample(41, 20))
    assert scored(bench, "n1") == pytest.approx(350)
    assert binds(bench.cycle()) == {"p": "n1"}
    text = conf("[{name: usage, arguments: {usage.weight: 2, cpu.weight: 3, memory.weight: 1}}]")
    weighted = Bench([node("n1"), pod_group("g"), pod("p", group="g")], text)
    weighted.state.measured({"n1": sample(40, 20)})
    assert scored(weighted, "n1") == pytest.approx((0.6 * 3 + 0.8) / 4 * 100 * 2)


def test_S3_57_a_sample_without_the_period_scores_0_and_in_the_references_way_as_idle() -> None:
    """The time is fresh, but the average of ten minutes is missing."""
    for compat, score in ((False, 0.0), (True, 500.0)):
        bench = Bench([node("n1"), pod_group("g"), pod("p", group="g")], USAGE, compat=compat)
        bench.state.measured({"n1": NodeUsage(NOW, {"5m": 99.0}, {"5m": 99.0})})
        assert scored(bench, "n1") == score
        assert binds(bench.cycle()) == {"p": "n1"}
