"""A state: what gates leave out, what it keeps when it forgets its objects, and pods that move on."""

from __future__ import annotations

from collections.abc import Iterator
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stromboli.cluster import nodes
from stromboli.cluster import state as states
from stromboli.cluster.audit import inconsistencies
from stromboli.cluster.events import Added, Deleted
from stromboli.cluster.nodes import NodeEntry
from stromboli.cluster.state import ClusterState
from stromboli.framework.config.gates import IN_PLACE_RESIZE, KINDS, PIPELINED_STATE, POD_LEVEL_RESOURCES
from stromboli.journal.checkpoint import Checkpoint
from stromboli.model.job import Job
from stromboli.model.resources.axes import Axes
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


FIRST = {"node": "n1", "phase": "Running", "leaves": False, "cpu": "1", "group": "g", "note": "x"}
"""A pod as it comes, in the PodGroup g: its node, phase, whether it is being deleted, CPUs, and an annotation."""
CHANGES = st.sampled_from([
    {"phase": "Pending"}, {"phase": "Running"}, {"phase": "Succeeded"}, {"note": "x"}, {"note": "y"}, {"leaves": True},
    {"node": ""}, {"node": "n1"}, {"node": "n2"}, {"cpu": "2"}, {"group": ""}, {"group": "g"}, {"leaves": False},
])  # fmt: skip
Steps = list[tuple[str, dict[str, object]]]


def after(steps: Steps) -> ClusterState:
    """The state after these changes of pods, each by its name."""
    state, pods = ClusterState(), dict[str, dict[str, object]]()
    for name in ("n1", "n2"):  # what stands for a node that is not known is forgotten with its last pod
        state.apply(Added("Node", made("Node", {"name": name})))
    state.apply(Added("Queue", made("Queue", {"name": "default"}, spec={"weight": 1})))
    state.apply(Added("PodGroup", made("PodGroup", {"name": "g"}, spec={"minMember": 2, "minResources": {"cpu": "2"}})))
    for name, change in steps:
        at = pods[name] = pods.get(name, FIRST) | change
        annotations = {"note": at["note"], **({"scheduling.k8s.io/group-name": "g"} if at["group"] else {})}
        meta: dict[str, object] = {"uid": f"u-{name}", "annotations": annotations}
        meta |= {"deletionTimestamp": "2026-01-01T00:00:00Z"} if at["leaves"] else {}
        spec, status = {"nodeName": at["node"]}, {"phase": at["phase"]}
        state.apply(Added("Pod", pod(name, requests={"cpu": at["cpu"]}, spec=spec, status=status, **meta)))
    return state


def shown(state: ClusterState) -> tuple[object, ...]:
    """All that later cycles know of a state."""
    sums = state.snapshot().queue_sums
    amounts = {name: [getattr(one, field) for field in type(one).__slots__] for name, one in sums.items()}
    return Checkpoint(state).encode(), amounts


@given(steps=st.lists(st.tuples(st.sampled_from("abc"), CHANGES), max_size=30))
def test_a_pod_that_moves_on_leaves_what_leaving_and_coming_leave(steps: Steps) -> None:
    state = after(steps)
    assert not [one for one in inconsistencies(state) if one is not None]
    with patch.object(states, "counts_alike", lambda old, new: False):
        other = after(steps)
    assert shown(state) == shown(other)


@pytest.mark.parametrize(
    ("changed", "counted"),
    [
        ({}, False),
        ({"phase": "Pending"}, False),
        ({"note": "y"}, False),
        ({"node": "n2"}, True),
        ({"cpu": "2"}, True),
        ({"group": ""}, True),
        ({"leaves": True}, True),
        ({"phase": "Succeeded"}, True),
    ],
)
def test_sums_are_counted_again_only_where_they_change(changed: dict[str, object], counted: bool) -> None:
    with patch.object(Job, "exchange", autospec=True, side_effect=Job.exchange) as exchanged:
        state = after([("a", {}), ("a", changed)])
    assert exchanged.called is not counted
    assert not [one for one in inconsistencies(state) if one is not None]


def test_a_snapshot_renews_the_rows_of_nodes_that_have_changed_alone() -> None:
    state = after([("a", {}), ("b", {"node": "n2"})])
    renewed = list[list[str]]()

    def noted(axes: Axes, entries: list[NodeEntry]) -> Iterator[tuple[str, object]]:
        renewed.append([entry.place[1] for entry in entries])
        return columns_of(axes, entries)

    columns_of = nodes._columns
    with patch.object(nodes, "_columns", noted):
        before = state.snapshot()
        state.snapshot()
        state.apply(Added("Pod", pod("c", uid="u-c", spec={"nodeName": "n2"}, status={"phase": "Running"})))
        later = state.snapshot()
    assert renewed == [["n1", "n2"], ["n2"]]
    assert [len(on_node) for on_node in before.node_tasks] == [1, 1]
    assert [len(on_node) for on_node in later.node_tasks] == [1, 2]
    assert not state.nodes._moved, "what has been looked at is kept no longer"
