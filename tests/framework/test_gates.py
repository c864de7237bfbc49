"""Feature gates: how they are spelt, and what each of those that decide something changes."""

from __future__ import annotations

import json
from typing import Any

import pytest

from stromboli.errors import ConfigError
from stromboli.framework.config.gates import ADMISSION, DEFAULTS, parse_gates, switched_on
from stromboli.model.names import QUEUE_ALLOCATION_GATE
from stromboli.sim.runner import run_scenario
from stromboli.testing.builders import node, pod, pod_group, queue

CONF = "actions: allocate\ntiers:\n- plugins: [{name: priority}, {name: gang}, {name: predicates}, {name: nodeorder}]\n"


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("", {}),
        (f"{ADMISSION}=true", {ADMISSION: True}),
        (f" {ADMISSION} = T ,PriorityClass=0,", {ADMISSION: True, "PriorityClass": False}),
        ("PriorityClass=false,PriorityClass=true", {"PriorityClass": True}),
    ],
)
def test_gates_are_spelt_as_for_the_reference(text: str, found: dict[str, bool]) -> None:
    assert parse_gates(text) == found
    assert switched_on(found) == {name for name, on in {**DEFAULTS, **found}.items() if on}


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("PriorityClass", "missing bool value for PriorityClass"),
        ("PriorityClass=maybe", "invalid value of PriorityClass=maybe: neither true nor false"),
        ("PriorityClas=true", "unrecognized feature gate: PriorityClas; did you mean 'PriorityClass'?"),
    ],
)
def test_a_gate_that_cannot_be_used_is_named(text: str, problem: str) -> None:
    with pytest.raises(ConfigError) as raised:
        parse_gates(text)
    assert str(raised.value) == f"--feature-gates: {problem}"


def outcome(gates: str, *objects: dict[str, Any], cycles: int = 1) -> Any:
    keys = {"Node": "nodes", "Pod": "pods", "PodGroup": "podGroups", "Queue": "queues", "ReplicaSet": "replicaSets",
            "PriorityClass": "priorityClasses"}  # fmt: skip
    lists: dict[str, list[dict[str, Any]]] = {}
    for each in [*objects, queue("default")]:
        lists.setdefault(keys[each["kind"]], []).append(each)
    return run_scenario(json.dumps({"name": "s", "conf": CONF, "cycles": cycles, **lists}), gates=gates)["outcome"]


def where(found: Any) -> dict[str, str]:
    return {key.partition("/")[2]: place for key, place in found["binds"].items()}


GATED = pod(
    "p", group="g", annotations={QUEUE_ALLOCATION_GATE: "true"}, schedulingGates=[{"name": QUEUE_ALLOCATION_GATE}]
)


@pytest.mark.parametrize(("gates", "bound"), [("", {}), (f"{ADMISSION}=true", {"p": "n1"})])
def test_admission_takes_our_gate_off_and_the_pod_is_placed_later(gates: str, bound: dict[str, str]) -> None:
    assert where(outcome(gates, node("n1"), pod_group("g"), GATED, cycles=2)) == bound


@pytest.mark.parametrize(("gates", "first"), [("", "b"), ("PriorityClass=false", "a")])
def test_priority_classes_count_only_with_their_gate(gates: str, first: str) -> None:
    high = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "high"}, "value": 10}
    groups = [pod_group("a"), pod_group("b", priorityClassName="high")]
    found = outcome(gates, node("n1", cpu=1), high, *groups, pod("a", group="a"), pod("b", group="b"))
    assert where(found) == {first: "n1"}


@pytest.mark.parametrize(("gates", "bound"), [("", 0), ("PodLevelResources=false", 1)])
def test_resources_of_the_whole_pod_count_only_with_their_gate(gates: str, bound: int) -> None:
    large = pod("p", group="g", resources={"requests": {"cpu": "8"}})
    assert len(where(outcome(gates, node("n1", cpu=4), pod_group("g"), large))) == bound


@pytest.mark.parametrize(("gates", "place"), [("", "n2"), ("WorkLoadSupport=false", "n1")])
def test_controllers_of_pods_are_known_only_with_their_gate(gates: str, place: str) -> None:
    zones = [node(f"n{i}", cpu=1000, memory="1Ti", labels={"topology.kubernetes.io/zone": f"z{i}"}) for i in (1, 2)]
    workload = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": {"name": "web", "namespace": "default"},
                "spec": {"selector": {"matchLabels": {"app": "web"}}}}  # fmt: skip
    pods = [pod("old", group="g", on="n1", cpu=0, memory=0, labels={"app": "web"}),
            pod("new", group="g", labels={"app": "web"}), pod("fill", group="g", on="n2", cpu=100)]  # fmt: skip
    for each in pods[:2]:
        each["metadata"]["ownerReferences"] = [{"kind": "ReplicaSet", "name": "web", "controller": True}]
    assert where(outcome(gates, *zones, workload, pod_group("g"), *pods)) == {"new": place}


def test_what_is_on_by_default() -> None:
    """As in the reference, but for reservations that last; PodLevelResources and the resize are Kubernetes' own."""
    assert sorted(name for name, on in DEFAULTS.items() if not on) == [
        "CSIStorage", "QueueScopedOvercommit", "SchedulingGatesQueueAdmission",
    ]  # fmt: skip
