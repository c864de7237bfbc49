"""Scheduling gates: which pods are placed or wait, when our own gate comes off, and the room of admitted pods."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest

from stromboli.builtin import builtin_registry
from stromboli.cycle import run_cycle
from stromboli.framework.config.config import load_config
from stromboli.framework.config.gates import ADMISSION
from stromboli.model.names import QUEUE_ALLOCATION_GATE, QUEUE_ALLOCATION_GATE_REMOVED
from stromboli.model.values.times import stamp
from stromboli.narration.observe import Counting
from stromboli.plugins.capacity import Capacity
from stromboli.testing.builders import cluster, node, pod, pod_group, queue
from tests.acceptance.bench import NOW, Bench, conf, task_of
from tests.acceptance.fights import priority_class
from tests.plugins.queue_jobs import job

CONF = """
actions: "allocate"
tiers:
- plugins: [{name: gang}, {name: predicates}]
"""


def plan(gates, annotations=None, features=()):
    one = pod("p", group="g", annotations=annotations, schedulingGates=[{"name": name} for name in gates])
    snapshot = cluster(node("n"), one)
    registry = builtin_registry()
    known, actions = registry.plugin_names, registry.action_names
    config = load_config(CONF, source="test", known_plugins=known, known_actions=actions)
    return run_cycle(snapshot, replace(config, features=frozenset(features)), registry)


@pytest.mark.parametrize(
    ("gates", "opted_in", "features", "bound", "removed"),
    [
        pytest.param([], True, [ADMISSION], 1, 0, id="no-gate"),
        pytest.param(["example.com/wait"], True, [ADMISSION], 0, 0, id="another-gate"),
        pytest.param([QUEUE_ALLOCATION_GATE], True, [ADMISSION], 0, 1, id="ours"),
        pytest.param([QUEUE_ALLOCATION_GATE], False, [ADMISSION], 0, 0, id="ours-without-opt-in"),
        pytest.param([QUEUE_ALLOCATION_GATE], True, [], 0, 0, id="ours-feature-off"),
        pytest.param([QUEUE_ALLOCATION_GATE, "example.com/wait"], True, [ADMISSION], 0, 0, id="both"),
    ],
)
def test_gates(gates, opted_in, features, bound, removed):
    made = plan(gates, {QUEUE_ALLOCATION_GATE: "true"} if opted_in else {}, features)
    assert (len(made.binds), len(made.gates)) == (bound, removed)


# ---------------------------------------------------------------------- what is kept for pods that were let in


@pytest.mark.parametrize(("features", "expected"), [((), {"late": 2}), ((ADMISSION,), {"early": 2})])
def test_tasks_that_were_let_in_keep_their_part(features, expected):
    """Two pods opted in and have lost their gate; two others come first, but the room is kept."""
    early = job("early", "q", 2, created=9)
    for each in early[1:]:
        each["metadata"]["annotations"][QUEUE_ALLOCATION_GATE] = "true"
    objects = [node("n1", cpu=9), queue("q", capability={"cpu": 2}), *early, *job("late", "q", 2, created=1)]
    bench = Bench(objects, conf("priority", "predicates capacity", actions="allocate"))
    bench.config = replace(bench.config, features=frozenset(features))
    found = Counter(bind.job.partition("/")[2] for bind in bench.cycle().binds)
    assert found == expected


def keeps(timeout, *ages, created=600):
    """How many of so many pods keep their part of a queue of two cores: created 600 s ago, let in at those ages."""
    early = job("early", "q", len(ages), created=9)
    for each, age in zip(early[1:], ages, strict=True):
        notes = each["metadata"]["annotations"]
        each["metadata"]["creationTimestamp"] = stamp(NOW - created)
        notes |= {QUEUE_ALLOCATION_GATE: "true"}
        if age is not None:
            notes[QUEUE_ALLOCATION_GATE_REMOVED] = age if isinstance(age, str) else stamp(NOW - age)
    objects = [node("n1", cpu=9), queue("q", capability={"cpu": 2}), *early, *job("late", "q", 2, created=1)]
    capacity = f"{{name: capacity, arguments: {{gate-timeout: {timeout}}}}}"
    bench = Bench(objects, conf("priority", f"[{{name: predicates}}, {capacity}]", actions="allocate"))
    bench.config = replace(bench.config, features=frozenset({ADMISSION}))
    plan = bench.cycle()
    told = [one.message for one in plan.events if one.reason == "GateTimeout"]
    return 2 - sum(bind.job.endswith("late") for bind in plan.binds), told


@pytest.mark.parametrize(
    ("timeout", "ages", "kept"),
    [
        pytest.param("0s", (500, 500), 2, id="off"),
        pytest.param("5m", (200, 299), 2, id="in time"),
        pytest.param("5m", (301, 299), 1, id="one too late"),
        pytest.param("5m", (301, 301), 0, id="both too late"),
        pytest.param("1s", (2, 1), 1, id="a second"),
        pytest.param("5m", (None, 200), 1, id="not noted: since its creation"),
        pytest.param("5m", ("soon", -9000), 0, id="unreadable, or yet to come: since its creation"),
        pytest.param("5m", (10**6, 200), 1, id="before its creation: since that"),
    ],
)  # fmt: skip
def test_a_part_is_kept_for_so_long(timeout, ages, kept):
    found, told = keeps(timeout, *ages)
    assert found == kept
    assert [text.partition(" any more")[0] for text in told] == (
        [f"queue q keeps no part of itself for {2 - kept} pods"] if kept < 2 else []
    )


@pytest.mark.parametrize(
    ("opted", "timeout", "age", "bound"),
    [
        pytest.param(False, "5m", 0, 2, id="never let in"),
        pytest.param(True, "5m", 400, 2, id="too late"),
        pytest.param(True, "5m", 200, 0, id="in time"),
    ],
)
def test_a_gang_that_no_node_fits_keeps_nothing_once_it_is_too_late(opted, timeout, age, bound):
    """It comes first, is tried, and is undone; what it gave back then is for the job behind it."""
    early = job("early", "q", 3, created=1, min_member=3)
    for each in early[1:] if opted else ():
        each["metadata"]["creationTimestamp"] = stamp(NOW - 600)
        each["metadata"]["annotations"] |= {
            QUEUE_ALLOCATION_GATE: "true",
            QUEUE_ALLOCATION_GATE_REMOVED: stamp(NOW - age),
        }
    objects = [
        node("n1", cpu=2),
        queue("q", capability={"cpu": 3}),
        *early,
        *job("late", "q", 2, created=9, min_member=1),
    ]
    capacity = f"{{name: capacity, arguments: {{gate-timeout: {timeout}}}}}"
    bench = Bench(objects, conf("gang priority", f"[{{name: predicates}}, {capacity}]", actions="allocate"))
    bench.config = replace(bench.config, features=frozenset({ADMISSION}))
    assert sum(bind.job.endswith("late") for bind in bench.cycle().binds) == bound


def test_a_negative_timeout_is_refused():
    plugin = Capacity({"gate-timeout": "-5m"})
    assert plugin.gate_timeout == "0s"
    assert "is not negative" in plugin.complaints[0].text


def test_what_is_kept_with_a_task_is_a_running_sum():
    """Reserving twice counts once, releasing what was never reserved counts nothing."""
    early = job("early", "q", 3)
    for each in early[1:]:
        each["metadata"]["annotations"][QUEUE_ALLOCATION_GATE] = "true"
    bench = Bench([node("n1", cpu=9), queue("q"), *early, *job("other", "q")], conf("capacity"))
    bench.config = replace(bench.config, features=frozenset({ADMISSION}))
    with bench.open() as session:
        capacity = session.plugins["capacity"]
        assert isinstance(capacity, Capacity)
        account = capacity.accounts["q"]
        one, two, other = (task_of(session, name) for name in ("early-0", "early-1", "other-0"))
        cpu = session.axes.column("cpu")
        assert [account.reserved_beside(each)[cpu] for each in (one, other)] == [2000, 3000]
        account.reserve(one)
        account.release(other)
        account.release(two)
        account.release(two)
        assert [account.reserved_beside(each)[cpu] for each in (one, two, other)] == [1000, 2000, 2000]


@pytest.mark.parametrize(("compat", "goes"), [(False, 1), (True, 0)])
def test_an_admitted_pod_gives_its_part_of_the_queue_back_when_it_is_evicted(compat, goes):
    """The queue is full of pods that opted in; another job of it may have the part of one that goes."""
    full = job("low", "q", 2, running=2, min_member=0)
    for each in full[1:]:
        each["metadata"]["annotations"][QUEUE_ALLOCATION_GATE] = "true"
    objects = [node("n1", cpu=9), queue("q", capability={"cpu": 2}), priority_class("high", 9), *full,
               *job("high", "q", priorityClassName="high")]  # fmt: skip
    bench = Bench(objects, conf("priority gang", "predicates capacity", actions="preempt"), compat=compat)
    bench.config = replace(bench.config, features=bench.config.features | {ADMISSION})
    assert len(bench.cycle().evictions) == goes


def test_that_our_gate_goes_is_told():
    gated = pod("p", group="g", annotations={QUEUE_ALLOCATION_GATE: "true"},
                schedulingGates=[{"name": QUEUE_ALLOCATION_GATE}])  # fmt: skip
    bench = Bench([node("n"), pod_group("g"), gated], conf("gang", "predicates", actions="allocate"))
    bench.config = replace(bench.config, features=frozenset([ADMISSION]))
    observer = Counting(["queue_gate_removed"])
    bench.cycle(observer)
    assert [str(fields["task"]) for fields in observer.of("queue_gate_removed")] == ["Task(default/p, Pending)"]
