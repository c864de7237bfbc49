"""The queue of a PodGroup of scheduling.k8s.io: named by itself, its Workload or its namespace."""

from __future__ import annotations

from typing import Any

import pytest

from stromboli.cluster.decoding.upstream_queues import UpstreamQueues
from stromboli.cluster.objects import from_value
from stromboli.model.podgroup import upstream_name

QUEUE = "scheduling.volcano.sh/queue-name"


def of_kind(kind: str, name: str, queue: str, namespace: str = "ns", **more: object) -> Any:
    metadata = {"name": name, "annotations": {QUEUE: queue} if queue else {}}
    return from_value(kind, {"metadata": metadata | ({"namespace": namespace} if namespace else {}), **more})


def group(name: str, queue: str = "", workload: str = "w", namespace: str = "ns") -> Any:
    spec = {"workloadRef": {"workloadName": workload}}
    return of_kind("UpstreamPodGroup", name, queue, namespace, spec=spec)


def key(name: str, namespace: str = "ns") -> str:
    return f"{namespace}/{upstream_name(name)}"


@pytest.mark.parametrize(
    ("own", "of_workload", "of_namespace", "queue"),
    [
        ("a", "b", "c", "a"),
        ("", "b", "c", "b"),
        ("", "", "c", "c"),
        ("", "", "", ""),
        ("a", "", "", "a"),
    ],
)
def test_the_closest_one_names_the_queue(own: str, of_workload: str, of_namespace: str, queue: str) -> None:
    found = UpstreamQueues()
    found.keep(group("g", own), True)
    found.workload(of_kind("Workload", "w", of_workload), True)
    found.namespace(of_kind("Namespace", "ns", of_namespace, ""), True)
    assert found.of(key("g")) == queue
    assert found.of(key("other", "elsewhere")) == ""
    found.keep(group("g"), False)
    assert found.of(key("g")) == of_namespace, "what is gone belongs to no Workload"


def test_groups_whose_queue_changes_with_their_workload() -> None:
    found = UpstreamQueues()
    for each in (group("a"), group("own", "mine"), group("other", workload="v"), group("a", namespace="elsewhere")):
        found.keep(each, True)
    assert found.workload(of_kind("Workload", "w", "q"), True) == [key("a")]
    assert found.workload(of_kind("Workload", "w", "q"), True) == []
    found.keep(group("late"), True)
    assert found.of(key("late")) == "q"
    assert found.workload(of_kind("Workload", "w", "r"), True) == [key("a"), key("late")]
    assert found.workload(of_kind("Workload", "w", "r"), False) == [key("a"), key("late")]
    assert found.of(key("a")) == ""
    assert found.workload(of_kind("Workload", "w", ""), False) == []


def test_groups_whose_queue_changes_with_their_namespace() -> None:
    found = UpstreamQueues()
    for each in (group("a"), group("b", workload="v"), group("own", "mine"), group("a", namespace="elsewhere")):
        found.keep(each, True)
    found.workload(of_kind("Workload", "v", "of-v"), True)
    assert found.namespace(of_kind("Namespace", "ns", "q", ""), True) == [key("a")]
    assert found.namespace(of_kind("Namespace", "ns", "q", ""), True) == []
    assert (found.of(key("a")), found.of(key("b")), found.of(key("a", "elsewhere"))) == ("q", "of-v", "")
    assert found.namespace(of_kind("Namespace", "ns", "q", ""), False) == [key("a")]
    assert found.of(key("a")) == ""
