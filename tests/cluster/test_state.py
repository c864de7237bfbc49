"""Settings of a state: what gates leave out, and what a state keeps that forgets its objects."""

from __future__ import annotations

import pytest

from stromboli.cluster.events import Added, Deleted
from stromboli.cluster.state import ClusterState
from stromboli.framework.config.gates import IN_PLACE_RESIZE, KINDS, PIPELINED_STATE, POD_LEVEL_RESOURCES
from stromboli.model.resources.request import RequestGates
from stromboli.model.usage import NodeUsage
from tests.cluster.objects import made, pod


def test_kinds_of_gates_that_are_off_are_ignored() -> None:
    state = ClusterState()
    state.set_gates(frozenset())
    assert state.ignored == {kind for kinds in KINDS.values() for kind in kinds}
    state.set_gates(frozenset(KINDS))
    assert state.ignored == frozenset()


@pytest.mark.parametrize("resize", [True, False])
@pytest.mark.parametrize("level", [True, False])
@pytest.mark.parametrize("reserving", [True, False])
def test_what_counts_of_requests_and_whether_reservations_do_is_up_to_gates(
    level: bool, resize: bool, reserving: bool
) -> None:
    gates = {POD_LEVEL_RESOURCES: level, IN_PLACE_RESIZE: resize, PIPELINED_STATE: reserving}
    state = ClusterState()
    state.set_gates(frozenset(gate for gate, on in gates.items() if on))
    assert state.templates.gates == RequestGates(level, resize)
    assert state.reserving is reserving


def test_a_state_that_forgets_its_objects_keeps_its_settings_and_what_it_remembers() -> None:
    state = ClusterState("usual")
    state.set_gates(frozenset({IN_PLACE_RESIZE}))
    state.nodes.shards.set_mode("hard", "mine")
    state.storage.give("u", {"ns/c": "pv:v"})
    state.memory["plugin"] = {"kept": 1.0}
    state.apply(Added("Pod", pod("p")))
    fresh = state.emptied()
    assert (dict(fresh.tasks), fresh.default_queue) == ({}, "usual")
    assert (fresh.ignored, fresh.reserving) == (state.ignored, state.reserving)
    assert fresh.templates.gates == RequestGates(False, True)
    assert (fresh.nodes.shards.mode, fresh.nodes.shards.name) == ("hard", "mine")
    assert (fresh.storage.given, fresh.memory) == ({"u": {"ns/c": "pv:v"}}, {"plugin": {"kept": 1.0}})


def test_jobs_without_a_class_have_the_priority_of_the_default_class_or_none() -> None:
    state = ClusterState()
    usual = made("PriorityClass", {"name": "usual"}, value=7, globalDefault=True)

    def priority() -> int:
        return state.snapshot().jobs["default/g"].priority

    state.apply(Added("Queue", made("Queue", {"name": "default"}, spec={"weight": 1})))
    state.apply(Added("PodGroup", made("PodGroup", {"name": "g"}, spec={"minMember": 1})))
    assert priority() == 0
    state.apply(Added("PriorityClass", usual))
    assert priority() == 7
    state.apply(Deleted("PriorityClass", usual))
    assert priority() == 0


def test_nothing_is_kept_of_nodes_queues_and_namespaces_that_are_gone() -> None:
    state = ClusterState()
    node, queue = made("Node", {"name": "n"}), made("Queue", {"name": "q"}, spec={"weight": 1})
    namespace = made("Namespace", {"name": "ns", "labels": {"a": "b"}})
    for kind, found in (("Node", node), ("Queue", queue), ("Namespace", namespace)):
        state.apply(Added(kind, found))
    state.usage["n"] = NodeUsage(1.8e9)
    assert ([*state.nodes.entries()], [*state.queues], [*state.namespace_labels]) == (["n"], ["q"], ["ns"])
    for kind, found in (("Node", node), ("Queue", queue), ("Namespace", namespace)):
        state.apply(Deleted(kind, found))
    assert (state.nodes.entries(), state.usage, state.queues, state.namespace_labels) == ({}, {}, {}, {})
