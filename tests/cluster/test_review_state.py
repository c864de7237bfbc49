"""What a cluster's state does with objects that it cannot take, and with a plan that comes true."""

from __future__ import annotations

import pytest

from stromboli.builtin import builtin_registry
from stromboli.cycle import run_cycle
from stromboli.errors import ManifestError
from stromboli.framework.config import load_config
from stromboli.framework.plan import GateRemoval, Plan
from stromboli.model.names import QUEUE_ALLOCATION_GATE
from stromboli.sim.between import apply_plan
from stromboli.testing.builders import cluster, events, node, pod, pod_group, queue, state

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


def test_gates_that_a_cycle_opens_are_gone_afterwards():
    gates = [{"name": QUEUE_ALLOCATION_GATE}]
    found = state(node("n1"), pod_group("g"), pod("p", group="g", schedulingGates=gates))
    apply_plan(found, Plan(session="s", gates=[GateRemoval("default/p", "default/p")]))
    assert found.tasks["default/p"].gates == ()
    assert found.snapshot().jobs["default/g"].gated == 0


def test_queues_in_a_circle_count_once():
    text = 'actions: "allocate"\ntiers: []\n'
    config = load_config(text, source="test", known_plugins=(), known_actions=("allocate",))
    queues = [queue("root"), queue("a", parent="b"), queue("b", parent="a")]
    running = [pod_group("g", queue="a"), pod("p", group="g", on="n1", cpu=2)]
    plan = run_cycle(cluster(node("n1"), *queues, *running), config, builtin_registry())
    assert {each.name: each.allocated["cpu"] for each in plan.queues if each.name in "ab"} == {"a": "2", "b": "2"}
