"""Scheduling gates: who is placed, who waits, and when our own gate comes off."""

from __future__ import annotations

from dataclasses import replace

import pytest

from stromboli.builtin import builtin_registry
from stromboli.cycle import run_cycle
from stromboli.framework.config.config import load_config
from stromboli.model.names import QUEUE_ALLOCATION_GATE
from stromboli.testing.builders import cluster, node, pod

CONF = """
actions: "allocate"
tiers:
- plugins: [{name: gang}, {name: predicates}]
"""
FEATURE = "SchedulingGatesQueueAdmission"


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
        pytest.param([], True, [FEATURE], 1, 0, id="no-gate"),
        pytest.param(["example.com/wait"], True, [FEATURE], 0, 0, id="somebody-elses"),
        pytest.param([QUEUE_ALLOCATION_GATE], True, [FEATURE], 0, 1, id="ours"),
        pytest.param([QUEUE_ALLOCATION_GATE], False, [FEATURE], 0, 0, id="ours-without-opt-in"),
        pytest.param([QUEUE_ALLOCATION_GATE], True, [], 0, 0, id="ours-feature-off"),
        pytest.param([QUEUE_ALLOCATION_GATE, "example.com/wait"], True, [FEATURE], 0, 0, id="both"),
    ],
)
def test_gates(gates, opted_in, features, bound, removed):
    made = plan(gates, {QUEUE_ALLOCATION_GATE: "true"} if opted_in else {}, features)
    assert (len(made.binds), len(made.gates)) == (bound, removed)
