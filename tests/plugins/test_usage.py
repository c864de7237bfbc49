from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stromboli.framework.config.argument import parse_arguments
from stromboli.framework.session.reference import ReferenceView
from stromboli.model.reservation import Held, stated
from stromboli.model.usage import NodeUsage
from stromboli.plugins.usage import Usage
from stromboli.plugins.usage.load import Estimator, Expected, Pair, Weights, capacities, load, score
from stromboli.plugins.usage.plugin import interval_of
from stromboli.testing.builders import node, pod, pod_group
from tests.acceptance.bench import NOW, Bench, binds, conf, task_of

GB = 1 << 30


def measured(bench, **loads):
    bench.state.measured({name: NodeUsage(NOW, {"10m": cpu}, {"10m": memory}) for name, (cpu, memory) in loads.items()})
    return bench


def usage(**arguments):
    listed = ", ".join(f"{key.replace('_', '.')}: {value}" for key, value in arguments.items())
    return conf("gang predicates", f"[{{name: usage, arguments: {{{listed}}}}}]")


BIG = node("n1", cpu=10, memory="100Gi")
POD = pod("p", group="g", cpu=2, memory="10Gi")


def plugin_of(session):
    return session.plugins["usage"]


# ---------------------------------------------------------------------- score and expected load


def test_a_placed_pod_counts_until_it_is_taken_back_to_the_last_bit():
    """10 cores and 100 GiB at 40 % and 20 %: 350; with a pod of 2 cores and 10 GiB 1.4 and 7 more: 297.5."""
    bench = measured(Bench([BIG, pod_group("g"), POD], usage()), n1=(40, 20))
    with bench.open() as session:
        plugin, task, there = plugin_of(session), task_of(session, "p"), session.nodes["n1"]
        before = plugin.score_of_node(task, there)
        assert before == pytest.approx(350)
        with session.statement() as statement:
            statement.allocate(task, there)
            assert plugin.expected.of(0) == Pair(1400, 7 * GB)
            assert plugin.loads(0) == pytest.approx((0.54, 0.27))
            assert plugin.score_of_node(task, there) == pytest.approx(297.5)
        assert plugin.score_of_node(task, there) == before


def test_an_eviction_that_is_taken_back_leaves_no_trace():
    young, old = (pod(name, group="g", on="n1", cpu="1300m", memory="3Gi") for name in ("young", "old"))
    old["status"]["startTime"] = "1970-01-02T00:00:00Z"
    bench = measured(Bench([BIG, pod_group("g"), young, old], usage()), n1=(70, 20))
    with bench.open() as session:
        plugin = plugin_of(session)
        before = plugin.expected.of(0)
        assert before.cpu == pytest.approx(1300 * 0.7)
        for name, left in (("young", 0.0), ("old", before.cpu)):
            with session.statement() as statement:
                statement.evict(task_of(session, name), "preempt")
                assert plugin.expected.of(0).cpu == left
            assert plugin.expected.of(0) == before


def test_a_reservation_that_is_let_go_and_taken_back_leaves_no_trace():
    """What was reserved before the session is not expected yet; what waits since it began was, on an idler node."""
    bench = measured(Bench([BIG, pod_group("g"), POD], usage()), n1=(40, 20))
    with bench.open() as session:
        plugin, task = plugin_of(session), task_of(session, "p")
        ReferenceView(session).pipeline(task, "n1")
        before = plugin.expected.of(0)
        plugin.cpu[0] = 90.0  # as if others had come meanwhile
        with session.statement() as statement:
            statement.unpipeline(task)
            assert plugin.expected.of(0) == Pair(0, 0)
        assert plugin.expected.of(0) == before
    bench.tell({**POD, "metadata": {**POD["metadata"], "annotations": {**POD["metadata"]["annotations"],
                                                                      **stated(Held("n1"))}}})  # fmt: skip
    with bench.open() as session:
        plugin, task = plugin_of(session), task_of(session, "p")
        before = plugin.expected.of(0)
        with session.statement() as statement:
            statement.unpipeline(task)
        assert plugin.expected.of(0) == before


def test_a_pod_that_is_placed_again_is_expected_as_the_node_is_loaded_by_then():
    bench = measured(Bench([BIG, pod_group("g"), POD], usage()), n1=(40, 20))
    with bench.open() as session:
        plugin, task, there = plugin_of(session), task_of(session, "p"), session.nodes["n1"]
        for load_, factor in ((40.0, 1), (90.0, 1.2)):
            plugin.cpu[0] = plugin.memory[0] = load_
            with session.statement() as statement:
                statement.allocate(task, there)
                assert plugin.expected.of(0) == pytest.approx((1400 * factor, 7 * GB * factor))


def test_a_node_that_was_never_measured_has_the_load_of_its_young_pods_alone():
    with Bench(
        [BIG, node("n2"), pod_group("g"), pod("q", group="g", cpu=2, memory="10Gi", on="n1")], usage()
    ).open() as s:
        assert [plugin_of(s).loads(row) for row in (0, 1)] == [pytest.approx((0.14, 0.07)), (0, 0)]


@pytest.mark.parametrize(
    ("phase", "started", "counts"),
    [("Running", 29, True), ("Running", 30, False), ("Running", None, True), ("Pending", 999, True)],
    ids=["young", "old", "no-start", "bound"],
)
def test_pods_too_young_to_be_measured_count(phase, started, counts):
    one = pod("p", group="g", on="n1", phase=phase)
    if started is not None:
        from datetime import UTC, datetime

        one["status"]["startTime"] = datetime.fromtimestamp(NOW - started, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    with measured(Bench([BIG, pod_group("g"), one], usage()), n1=(40, 20)).open() as session:
        assert (plugin_of(session).expected.of(0).cpu > 0) is counts


def test_the_interval_of_the_metrics_is_how_long_a_pod_counts_as_young():
    one = pod("p", group="g", on="n1")
    one["status"]["startTime"] = "1970-01-12T13:46:00Z"  # 40 s before NOW
    for interval, counts in (("", False), ("metrics: {interval: 1m}", True), ("metrics: {interval: 0s}", False)):
        with Bench([BIG, pod_group("g"), one], f"{usage()}\n{interval}").open() as session:
            assert (plugin_of(session).expected.of(0).cpu > 0) is counts


def test_what_a_node_keeps_from_pods_and_what_it_lends_twice_count_as_its_capacity():
    small, lent = node("n1", cpu=10), node("n2", cpu=10, annotations={"volcano.sh/oversubscription-cpu": "10000"})
    small["status"]["capacity"] = {**small["status"]["capacity"], "cpu": 20}
    pods = [pod(f"p{i}", group="g", cpu=10, memory=0, on=f"n{i}") for i in (1, 2)]
    with measured(Bench([small, lent, pod_group("g"), *pods], usage()), n1=(0, 0), n2=(0, 0)).open() as session:
        assert [plugin_of(session).loads(row)[0] for row in (0, 1)] == pytest.approx([7 / 20] * 2)


ESTIMATOR = Estimator(0.7, 0.0, 0.6, 1.2, Pair(250.0, 200.0))


@pytest.mark.parametrize(
    ("asked", "bound", "burst", "factor", "found"),
    [(1000, 0, 0.0, 1.0, 700), (1000, 3000, 0.5, 1.0, 1700), (1000, 500, 0.5, 1.0, 700), (1000, 1000, 0.0, 1.6, 1000)],
    ids=["request", "burst", "limit-below-request", "never-above-the-limit"],
)
def test_what_a_pod_is_expected_to_use(asked, bound, burst, factor, found):
    assert ESTIMATOR._replace(burst=burst)._part(asked, bound, factor) == pytest.approx(found)


def test_loaded_nodes_make_guesses_larger_and_pods_that_state_nothing_have_one_of_their_own():
    assert [ESTIMATOR.factor(load_) for load_ in (0.59, 0.6, 1.0)] == [1.0, 1.2, 1.2]
    nothing = pod("p", group="g", cpu=0, memory=0, on="n1")
    for percent, cpu in ((50, 250), (70, 300)):
        with measured(Bench([BIG, pod_group("g"), nothing], usage()), n1=(percent, percent)).open() as session:
            assert plugin_of(session).expected.of(0).cpu == pytest.approx(cpu)


def test_pods_of_a_cycle_spread_over_nodes_as_their_load_is_expected():
    pods = [pod(f"p{i}", group="g", cpu=2, memory="10Gi") for i in range(4)]
    bench = Bench([BIG, node("n2", cpu=10, memory="100Gi"), pod_group("g"), *pods], usage())
    found = list(binds(measured(bench, n1=(10, 10), n2=(20, 20)).cycle()).values())
    assert sorted(found) == ["n1", "n1", "n2", "n2"]


def test_weights_of_zero_score_0():
    bench = measured(Bench([BIG, pod_group("g"), POD], usage(cpu_weight=0, memory_weight=0)), n1=(40, 20))
    with bench.open() as session:
        assert plugin_of(session).score_of_node(task_of(session, "p"), session.nodes["n1"]) == 0.0
        assert plugin_of(session).idle_first(task_of(session, "p"), session.table.view()).tolist() == [0.0]


@settings(max_examples=30)
@given(
    st.lists(
        st.tuples(
            st.one_of(st.none(), st.floats(0, 300)), st.floats(0, 300), st.integers(0, 500), st.integers(0, 12),
            st.integers(0, 4),
        ),
        min_size=1,
        max_size=8,
    ),
    st.integers(0, 5), st.integers(0, 5), st.integers(0, 9),
)  # fmt: skip
def test_vectors_say_what_nodes_say_one_by_one(nodes, cpu_weight, memory_weight, weight):
    objects = [node(f"n{i}", cpu=cpu, memory="8Gi") for i, (*_, cpu, _) in enumerate(nodes)]
    on = [
        pod(f"q{i}-{k}", group="g", on=f"n{i}", cpu="700m")
        for i, (*_, number) in enumerate(nodes)
        for k in range(number)
    ]
    text = usage(cpu_weight=cpu_weight, memory_weight=memory_weight, usage_weight=weight)
    bench = Bench([*objects, pod_group("g"), POD, *on], text)
    samples = {f"n{i}": NodeUsage(NOW - age, {} if cpu is None else {"10m": cpu}, {"10m": memory})
               for i, (cpu, memory, age, *_) in enumerate(nodes)}  # fmt: skip
    bench.state.measured(samples)
    with bench.open() as session:
        plugin, task = plugin_of(session), task_of(session, "p")
        reasons = next(hook.reasons for hook, _ in plugin.hooks() if hook.reasons)
        for rows in (None, np.arange(len(nodes))[::2]):
            view = session.table.view(rows)
            scores, masks = plugin.idle_first(task, view), plugin.not_loaded(task, view)
            for place, each in enumerate(view):
                assert scores[place] == plugin.score_of_node(task, each)
                alone = plugin.refusal(task, each)
                assert int(masks[place]) == (0 if alone is None else 1 << reasons.index(alone))


@pytest.mark.parametrize(
    ("cpu", "memory", "age", "refused"),
    [({}, {"10m": 95}, 0, 2), ({"10m": 95}, {}, 0, 1), ({"10m": 95}, {}, 301, 0), ({}, {"10m": 79}, 0, 0)],
)
def test_a_load_that_was_measured_counts_for_the_filter_though_the_other_is_missing(cpu, memory, age, refused):
    bench = Bench([BIG, pod_group("g"), POD], usage())
    bench.state.measured({"n1": NodeUsage(NOW - age, cpu, memory)})
    with bench.open() as session:
        plugin, task, nodes = plugin_of(session), task_of(session, "p"), session.table.view()
        assert (plugin.not_loaded(task, nodes).tolist(), plugin.idle_first(task, nodes).tolist()) == ([refused], [0.0])


@pytest.mark.parametrize(
    ("cpu", "memory", "reason"),
    [(80, 80, ""), (80.1, 80, "CPU"), (80, 80.1, "memory"), (99, 99, "CPU")],
)
def test_a_load_above_its_threshold_refuses_a_node_whatever_is_evicted(cpu, memory, reason):
    with measured(Bench([BIG, pod_group("g"), POD], usage()), n1=(cpu, memory)).open() as session:
        found = plugin_of(session).refusal(task_of(session, "p"), session.nodes["n1"])
        text = f"the {reason} load of the node exceeds the upper limit."
        assert (found and (str(found), found.resolvable)) == ((text, False) if reason else None)


@pytest.mark.parametrize(("factor", "percent"), [(1, 50), (1.2, 70)])
def test_a_pod_that_states_nothing_uses_so_much_memory(factor, percent):
    nothing = pod("p", group="g", cpu=0, memory=0, on="n1")
    with measured(Bench([BIG, pod_group("g"), nothing], usage()), n1=(percent, percent)).open() as session:
        assert plugin_of(session).expected.of(0) == Pair(250 * factor, 200 * 2**20 * factor)


@pytest.mark.parametrize(
    ("capacity", "found"),
    [
        ({"cpu": 4, "memory": 400}, (4000.0, 400.0)),
        ({"cpu": 6, "memory": 700}, (6000.0, 700.0)),
        ({"cpu": 6}, (6000.0, 0.0)),
        ({"memory": 700}, (0.0, 700.0)),
    ],
)
def test_what_a_node_has_is_its_capacity(capacity, found):
    """Where it states none it has nothing to be loaded."""
    one = node("n1", cpu=4, memory=400)
    one["status"]["capacity"] = capacity
    with Bench([one]).open() as session:
        assert tuple(each.tolist() for each in capacities(session.table)) == ([found[0]], [found[1]])


def test_what_a_node_lends_twice_counts_where_it_offers_nothing_itself():
    one = node("n1", annotations={"volcano.sh/oversubscription-cpu": "10", "volcano.sh/oversubscription-memory": "20"})
    one["status"] = {"allocatable": {"pods": 9}, "capacity": {"pods": 9}}
    with Bench([one]).open() as session:
        assert tuple(each.tolist() for each in capacities(session.table)) == ([10.0], [20.0])


@pytest.mark.parametrize(
    ("written", "seconds"), [("", 30), ("soon", 30), ("0s", 30), ("-1s", 30), ("500ms", 0.5), ("1m", 60)]
)
def test_the_interval_between_measurements(written, seconds):
    assert interval_of(written) == seconds


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 2), st.floats(0, 1e9), st.floats(0, 1e15)), max_size=30))
def test_sums_do_not_depend_on_pods_that_came_and_went(moves):
    found, counted = Expected(3), {}
    for pod_, row, cpu, memory in moves:
        found.put(str(pod_), row, Pair(cpu, memory))
        counted[str(pod_)] = (row, Pair(cpu, memory))
    for row in range(3):
        pairs = [pair for at, pair in counted.values() if at == row]
        assert found.of(row) == (math.fsum(p.cpu for p in pairs), math.fsum(p.memory for p in pairs))
    for uid in counted:
        found.take(uid)
    assert (found.cpu.tolist(), found.memory.tolist()) == ([0.0] * 3, [0.0] * 3)


def test_loads_stay_between_0_and_1():
    for percent, expected, capacity, found in (
        (0.0, 0.5, 1.0, 0.5),
        (50.0, 0.25, 1.0, 0.75),
        (150.0, 0.0, 10.0, 1.0),
        (0.0, 20.0, 10.0, 1.0),
        (50.0, 1.0, 0.0, 0.0),
        (0.0, 0.25, 0.5, 0.5),
    ):
        assert load(percent, expected, capacity) == found
        assert load(np.array([percent]), np.array([expected]), np.array([capacity])).tolist() == [found]
    assert score((0.25, 0.75), Weights(1, 0), 2) == 150.0


# ---------------------------------------------------------------------- arguments, lines


@pytest.mark.parametrize(
    ("written", "taken"),
    [(0, True), (64, True), ("0", True), ("250m", True), (-1, False), ("-1", False), (True, False), ("much", False)],
)
def test_amounts_are_quantities_or_whole_numbers_of_0_or_more(written, taken):
    values, complaints = parse_arguments(Usage.arguments, {"estimator": {"be_mem": written}}, "usage")
    assert (values["estimator"]["be_mem"] == written, not complaints) == (taken, taken)


def test_arguments_out_of_range_keep_their_defaults_one_by_one():
    given_ = {
        "usage.weight": -1, "cpu.weight": "x", "thresholds": {"cpu": 101, "mem": 70, "disk": 3},
        "estimator": {"request_ratio": 2, "risk_factor": 0.5, "be_cpu": "-1", "be_mem": 64, "burst_ratio": 1},
    }  # fmt: skip
    values, complaints = parse_arguments(Usage.arguments, given_, "usage")
    assert (values["weight"], values["cpu_weight"]) == (5, 1)
    assert values["thresholds"] == {"cpu": 80, "mem": 70}
    assert values["estimator"] == {
        "request_ratio": 0.7, "burst_ratio": 1.0, "risk_threshold": 0.6, "risk_factor": 1.2, "be_cpu": "250m",
        "be_mem": 64,
    }  # fmt: skip
    assert sorted(each.key for each in complaints) == [
        "cpu.weight", "estimator.be_cpu", "estimator.request_ratio", "estimator.risk_factor", "thresholds.cpu",
        "thresholds.disk", "usage.weight",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("section", "key", "least", "most", "beyond"),
    [
        ("thresholds", "cpu", 0, 100, (-1, 101)),
        ("thresholds", "mem", 0, 100, (-1, 101)),
        ("estimator", "request_ratio", 0.0, 1.0, (-0.1, 1.1)),
        ("estimator", "risk_threshold", 0.0, 1.0, (-0.1, 1.1)),
        ("estimator", "risk_factor", 1.0, 9.0, (0.9,)),
    ],
)
def test_what_is_just_in_range_is_taken(section, key, least, most, beyond):
    for value in (least, most, *beyond):
        values, complaints = parse_arguments(Usage.arguments, {section: {key: value}}, "usage")
        assert ((values[section][key] == value), not complaints) == ((value not in beyond),) * 2


def test_whole_numbers_for_pods_that_state_nothing_are_thousandths_and_mebibytes():
    text = conf("[{name: usage, arguments: {estimator: {be_cpu: 100, be_mem: 64}}}]")
    with Bench([BIG], text).open() as session:
        assert plugin_of(session)._read_estimator().idle_pod == Pair(100, 64 * 2**20)


def test_the_filter_can_be_switched_off():
    text = conf("gang predicates", "[{name: usage, enablePredicate: false}]")
    assert binds(measured(Bench([BIG, pod_group("g"), POD], text), n1=(99, 99)).cycle()) == {"p": "n1"}


def test_what_it_tells():
    nodes = [node(name, cpu=10, memory="100Gi") for name in ("cpu", "mem", "ok", "none", "old")]
    text = usage(thresholds="{cpu: 80, mem: 85}")
    bench = measured(Bench([*nodes, pod_group("g"), POD], text), cpu=(81, 1), mem=(1, 85.5), ok=(1, 2))
    bench.state.usage["old"] = NodeUsage(NOW - 301, {"10m": 1}, {"10m": 1})
    lines = bench.logged(5)
    assert "Node cpu cpu usage 81.000000 exceeds the threshold 80.000000" in lines
    assert "Node mem mem usage 85.500000 exceeds the threshold 85.000000" in lines
    assert "Usage plugin filter for task default/p on node ok pass." in lines
    stale = "The period(10m) is empty or the usage metrics data is not updated for more than 5 minutes, Usage plugin"
    for node_, when in (("none", "never"), ("old", "1970-01-12T13:41:39+00:00")):
        assert f"{stale} filter for task default/p on node {node_} pass, metrics time is {when}. " in lines
        assert f"{stale} score for task default/p on node {node_} is 0, metrics time is {when}. " in lines
    assert not [line for line in lines if line.startswith(stale) and " ok " in line]
    assert {"Enter usage plugin ...", "Leaving usage plugin ..."} <= set(lines)
    assert [line for line in lines if line.startswith("node:ok, cpu usage:map[10m:1")]
    assert [line for line in lines if line.startswith("node:none, cpu usage:map[], mem usage:map[]")]
