"""What a cluster's state does with objects that it cannot take, and with a plan that comes true."""

from __future__ import annotations

import pytest

from stromboli.builtin import builtin_registry
from stromboli.cluster.events import Added, Deleted
from stromboli.cycle import run_cycle
from stromboli.errors import ManifestError
from stromboli.framework.books.plan import GateRemoval, Plan
from stromboli.framework.config.config import load_config
from stromboli.model.names import QUEUE_ALLOCATION_GATE
from stromboli.sim.between import apply_plan
from stromboli.testing.builders import cluster, events, node, pod, pod_group, queue, state
from tests.cluster.objects import made

MOST = 2**56
"""Bytes that one pod may ask for."""


def heavy(number, last):
    """A node with ``number`` pods, the last of which asks for so many bytes, the others for the most."""
    pods = [pod(f"p-{i}", on="n1", memory=MOST) for i in range(number - 1)]
    return [node("n1"), *pods, pod("last", on="n1", memory=last)]


def test_stand_ins_for_requests_are_counted_against_64_bits():
    found = state(*heavy(128, MOST - 1))
    (silent,) = events([pod("silent", on="n1", memory=0)])
    with pytest.raises(ManifestError, match="exceed 64 bits"):
        found.apply(silent)
    assert len(found.snapshot().table) == 1


def test_a_change_that_is_refused_leaves_the_pod_as_it_was():
    found = state(*heavy(128, 1))
    before = found.tasks["default/last"]
    (change,) = events([pod("last", on="n1", memory=MOST)])
    with pytest.raises(ManifestError, match="exceed 64 bits"):
        found.apply(change)
    assert found.tasks["default/last"] is before
    assert "default/last" in found.snapshot().node_tasks[0]


def test_nodes_that_come_change_or_go_leave_every_row_its_own():
    found = state(node("n10", cpu=1), node("n2", cpu=2), pod("p", on="n10"), pod("q", on="n3"))

    def rows():
        seen = found.snapshot()
        placed = zip(seen.table.statics.specs, seen.table.alloc[0].tolist(), seen.node_tasks, strict=True)
        return [(spec.name, spec.labels.get("zone"), cpu, [*tasks]) for spec, cpu, tasks in placed]

    assert rows() == [("n2", None, 2000, []), ("n10", None, 1000, ["default/p"])]
    for event in events([node("n3", cpu=3), node("n2", cpu=4, labels={"zone": "a"})]):
        found.apply(event)
    assert rows() == [("n2", "a", 4000, []), ("n3", None, 3000, ["default/q"]), ("n10", None, 1000, ["default/p"])]
    (gone,) = events([node("n3")])
    found.apply(Deleted("Node", gone.object))
    assert rows() == [("n2", "a", 4000, []), ("n10", None, 1000, ["default/p"])]
    (widened,) = events([node("n4", cpu=4, resources={"nvidia.com/gpu": 8})])
    found.apply(widened)  # the table had no column for its resource
    assert [cpu for _, _, cpu, _ in rows()] == [4000, 4000, 1000]


def test_gates_that_a_cycle_opens_are_gone_afterwards():
    gates = [{"name": QUEUE_ALLOCATION_GATE}]
    found = state(node("n1"), pod_group("g"), pod("p", group="g", schedulingGates=gates))
    apply_plan(found, Plan(session="s", gates=[GateRemoval("default/p", "default/p")]))
    assert found.tasks["default/p"].gates == ()
    assert found.snapshot().jobs["default/g"].gated == 0


def test_what_a_queue_holds_stands_in_its_status_afterwards():
    found = state(node("n1"), queue("q"), pod_group("g", queue="q"), pod("p", group="g", on="n1", cpu=2))
    config = load_config(
        "actions: 'allocate'\ntiers: []\n", source="test", known_plugins=(), known_actions=("allocate",)
    )
    plans = []
    for _ in range(2):
        plans.append(run_cycle(found.snapshot(), config, builtin_registry()))
        apply_plan(found, plans[-1])
    assert (found.queues["q"].status.allocated or {})["cpu"] == "2"
    assert [len(plan.queues) for plan in plans] == [2, 0], "the second cycle has nothing to write"


def test_queues_in_a_circle_count_once():
    text = 'actions: "allocate"\ntiers: []\n'
    config = load_config(text, source="test", known_plugins=(), known_actions=("allocate",))
    queues = [queue("root"), queue("a", parent="b"), queue("b", parent="a")]
    running = [pod_group("g", queue="a"), pod("p", group="g", on="n1", cpu=2)]
    plan = run_cycle(cluster(node("n1"), *queues, *running), config, builtin_registry())
    assert {each.name: each.allocated["cpu"] for each in plan.queues if each.name in "ab"} == {"a": "2", "b": "2"}


def priority_class(name, value, default=False):
    """A PriorityClass."""
    return Added("PriorityClass", made("PriorityClass", {"name": name}, value=value, globalDefault=default))


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        pytest.param([priority_class("a", 5, True)], 5, id="a default"),
        pytest.param([priority_class("a", 5, True), priority_class("a", 5)], 0, id="no default any more"),
        pytest.param([priority_class("a", 5, True), priority_class("a", 7, True)], 7, id="another value"),
        pytest.param(
            [priority_class("a", 5, True), priority_class("b", 3, True), priority_class("a", 5)], 3, id="the other's"
        ),
        pytest.param(
            [priority_class("a", 5, True), priority_class("b", 3, True)], 3, id="of two the smaller, in either order"
        ),
        pytest.param([priority_class("b", 3, True), priority_class("a", 5, True)], 3, id="the other order"),
    ],
)
def test_jobs_without_a_class_have_the_default_of_the_moment(changes, expected):
    found = state(pod_group("g"), pod("p", group="g"))
    for change in changes:
        found.apply(change)
    assert found.snapshot().jobs["default/g"].priority == expected
    found.apply(Deleted("PriorityClass", made("PriorityClass", {"name": "b"})))
    found.apply(Deleted("PriorityClass", made("PriorityClass", {"name": "a"})))
    assert found.snapshot().jobs["default/g"].priority == 0
