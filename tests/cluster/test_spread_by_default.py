"""Which pods are spread without saying so: those of services and of what manages them, followed through a state."""

from __future__ import annotations

from typing import Any

import pytest

from stromboli.cluster.events import Deleted
from stromboli.cluster.objects import from_value
from stromboli.model.spec import LabelSelector, Requirement
from stromboli.testing.builders import Manifest, node, pod, pod_group, state
from tests.acceptance.bench import Bench, binds, conf, task_of

VERSIONS = {"ReplicaSet": "apps/v1", "StatefulSet": "apps/v1"}
RC = "ReplicationController"
LABELS = {"app": "web", "tier": "front"}
FRONT = (Requirement("tier", "In", ("front",)),)


def owner(kind: str, selector: dict[str, Any], name: str = "web") -> Manifest:
    meta = {"name": name, "namespace": "default"}
    return {"apiVersion": VERSIONS.get(kind, "v1"), "kind": kind, "metadata": meta, "spec": {"selector": selector}}


def owned(name: str, kind: str = "", *, controller: bool = True, **more: Any) -> Manifest:
    found = pod(name, group="g", labels=LABELS, **more)
    if kind:
        found["metadata"]["ownerReferences"] = [
            {"kind": "Other", "name": "web"}, {"kind": kind, "name": "web", "controller": controller},
        ]  # fmt: skip
    return found


SERVICE = owner("Service", {"app": "web"})


@pytest.mark.parametrize(
    ("objects", "kind", "found"),
    [
        ([], "", None),
        ([SERVICE], "", LabelSelector({"app": "web"})),
        ([owner("Service", {"app": "other"}), owner("Service", {}, "no-selector")], "", None),
        ([owner(RC, {"tier": "front"})], RC, LabelSelector({"tier": "front"})),
        ([SERVICE, owner(RC, {"app": "rc"})], RC, LabelSelector({"app": "rc"})),
        ([owner("ReplicaSet", {"matchLabels": {"tier": "front"}})], "ReplicaSet", LabelSelector({}, FRONT)),
        ([SERVICE, owner("StatefulSet", {"matchLabels": {"tier": "front"}})], "StatefulSet",
         LabelSelector({"app": "web"}, FRONT)),
        ([owner("ReplicaSet", {"matchLabels": {"tier": "front"}})], "StatefulSet", None),
        ([owner("ReplicaSet", {"matchLabels": {"tier": "front"}})], "", None),
    ],
)  # fmt: skip
def test_services_and_controllers_select(objects: list[Manifest], kind: str, found: LabelSelector | None) -> None:
    with Bench([node("n1"), pod_group("g"), owned("p", kind), *objects]).open() as session:
        assert session.snapshot.spread_selector(task_of(session, "p")) == found


def test_an_owner_that_manages_nothing_does_not_count() -> None:
    workload = owner("ReplicaSet", {"matchLabels": {"tier": "front"}})
    with Bench([node("n1"), pod_group("g"), owned("p", "ReplicaSet", controller=False), workload]).open() as session:
        assert session.snapshot.spread_selector(task_of(session, "p")) is None


def test_selectors_go_with_their_objects() -> None:
    workload = owner("StatefulSet", {"matchLabels": {"tier": "front"}})
    found = state(node("n1"), SERVICE, workload)
    assert list(found.snapshot().services["default"]) == ["Service/web", "StatefulSet/web"]
    found.apply(Deleted("StatefulSet", from_value("StatefulSet", workload)))
    assert list(found.snapshot().services["default"]) == ["Service/web"]


@pytest.mark.parametrize(("kind", "place"), [("ReplicaSet", "n2"), ("", "n1")])
def test_pods_of_a_replica_set_are_spread(kind: str, place: str) -> None:
    zones = [node(f"n{i}", labels={"topology.kubernetes.io/zone": f"z{i}"}) for i in (1, 2)]
    workload = owner("ReplicaSet", {"matchLabels": {"tier": "front"}})
    weights = {f"{each}.weight": 0 for each in ("leastrequested", "balancedresource")}
    tier = f"[{{name: gang}}, {{name: nodeorder, arguments: {weights}}}]"
    objects = [*zones, workload, pod_group("g"), owned("old", kind, on="n1"), owned("new", kind)]
    assert binds(Bench(objects, conf(tier)).cycle()) == {"new": place}
