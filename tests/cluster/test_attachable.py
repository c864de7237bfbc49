"""Attached volumes as a resource: what nodes offer, and which volumes of a pod count."""

from __future__ import annotations

import pytest

from stromboli.cluster.rim import VolumesSet
from stromboli.cluster.state import ClusterState
from stromboli.testing.builders import Manifest, events, node, pod
from tests.support.device_objects import object_of, storage_class, volume_claim

DRIVER = "csi.example.com"
NAME = "attachable-volumes-csi-"
CLASSES = [
    storage_class("plain", DRIVER),
    storage_class("more", "other.example.com/fast"),
    storage_class("set", "left.example.com"),
    storage_class("local", "rancher.io/local-path"),
]


def counting(*objects: Manifest) -> ClusterState:
    """A state that counts volumes, but none of the driver left.example.com."""
    state = ClusterState()
    VolumesSet(False, frozenset({"left.example.com"}), True).make(state)
    for event in events(objects):
        state.apply(event)
    return state


def csi_node(limits: dict[str, int | None]) -> Manifest:
    """What the CSINode of n1 says of drivers; None is no count."""
    counts = {name: {} if count is None else {"count": count} for name, count in limits.items()}
    drivers = [{"name": name, "nodeID": "n1", "allocatable": count} for name, count in counts.items()]
    return object_of("storage.k8s.io/v1", "CSINode", "n1", spec={"drivers": drivers})


def offered(state: ClusterState) -> dict[str, object]:
    """What n1 offers of volumes."""
    spec = state.nodes.entries()["n1"].spec
    assert spec is not None
    return {key: amount for key, amount in spec.allocatable.items() if key.startswith(NAME)}


def asked(state: ClusterState) -> dict[str, object]:
    """What the pod p asks for, in thousandths, of volumes."""
    vector = state.tasks["default/p"].template.vector
    named = dict(zip(state.axes.names, vector, strict=False))
    return {key: amount for key, amount in named.items() if key.startswith(NAME) and amount}


def mounting(*claims: str) -> Manifest:
    volumes = [{"name": f"v{at}", "persistentVolumeClaim": {"claimName": each}} for at, each in enumerate(claims)]
    return pod("p", volumes=volumes)


@pytest.mark.parametrize("first", ["node", "csi"])
def test_a_node_offers_what_its_csi_node_says_whichever_comes_first(first: str) -> None:
    both = [node("n1"), csi_node({"a": 3, "b/c": None, "d": 0})]
    state = counting(*(both if first == "node" else reversed(both)))
    assert offered(state) == {f"{NAME}a": "3m", f"{NAME}b-c": "2147483647m", f"{NAME}d": "0m"}
    for event in events([csi_node({"a": 1})]):
        state.apply(event)
    assert offered(state) == {f"{NAME}a": "1m"}


def test_a_csi_node_without_its_node_offers_nothing() -> None:
    assert counting(csi_node({"a": 3})).nodes.entries().get("n1") is None


@pytest.mark.parametrize(
    ("classes", "counts"),
    [
        (["plain"], {f"{NAME}{DRIVER}": 1}),
        (["plain", "plain", "more"], {f"{NAME}{DRIVER}": 2, f"{NAME}other.example.com-fast": 1}),
        (["set", "local", "plain"], {f"{NAME}{DRIVER}": 1}),
        (["set", "local", "unknown"], {}),
        ([], {}),
    ],
)
@pytest.mark.parametrize("order", ["claims first", "pod first", "emptied"])
def test_each_claim_of_a_driver_that_is_counted_counts(order: str, classes: list[str], counts: object) -> None:
    claims = [volume_claim(f"c{at}", name) for at, name in enumerate(classes)]
    pods = [mounting(*(f"c{at}" for at in range(len(classes))))]
    offers = [node("n1"), csi_node({DRIVER: 9, "other.example.com/fast": 9, "left.example.com": 9})]
    state = counting(*offers, *CLASSES, *(claims + pods if order == "claims first" else pods + claims))
    if order == "emptied":
        state = state.emptied()
        for event in events([*offers, *CLASSES, *claims, *pods]):
            state.apply(event)
    assert asked(state) == counts
