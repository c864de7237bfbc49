"""Volumes of pods: which nodes reach them, what unbound claims get, and what is given back."""

from __future__ import annotations

from typing import Any

import pytest

from stromboli.cluster.rim import VolumesGiven, VolumesSet
from stromboli.narration.observe import SILENT, Counting, Observer
from stromboli.testing.builders import Manifest, node, pod, pod_group
from tests.acceptance.bench import Bench, binds, conf, messages
from tests.support.device_objects import ZONE, object_of, storage_class, volume
from tests.support.device_objects import volume_claim as claim

GIB = {"storage": "1Gi"}


def mounting(name: str, *claims: str, group: str = "", **more: Any) -> Manifest:
    volumes = [{"name": f"v{n}", "persistentVolumeClaim": {"claimName": each}} for n, each in enumerate(claims)]
    return pod(name, group=group or name, volumes=volumes, **more)


def bench(*objects: Manifest, nodes: int = 3, gang: int = 1, **options: Any) -> Bench:
    pods = [each for each in objects if each["kind"] == "Pod"]
    groups = {each["metadata"]["annotations"]["scheduling.k8s.io/group-name"] for each in pods}
    made = [node(f"n{number}", labels={ZONE: f"z{number}"}) for number in range(nodes)]
    return Bench([*made, *objects, *(pod_group(name, min_member=gang) for name in sorted(groups))], **options)


def given(each: Bench) -> dict[str, str]:
    """What claims get with the binds of the last cycle."""
    return {key.partition("/")[2]: what for bind in each.plan.binds for key, what in bind.volumes.items()}


def said(world: Bench, name: str) -> str:
    """Why a pod waits."""
    return messages(world.plan, f"default/{name}")[-1]


CSI = "csi.example.com"
LOCAL = storage_class("local")
MADE = storage_class("made", "csi.example.com", allowedTopologies=[
    {"matchLabelExpressions": [{"key": ZONE, "values": ["z1"]}]}])  # fmt: skip
FULL = {"drivers": [{"name": "csi.example.com", "allocatable": {"count": 0}}]}
AT_ONCE = storage_class("now", "csi.example.com", volumeBindingMode="Immediate")


@pytest.mark.parametrize(
    ("objects", "where", "what"),
    [
        ([LOCAL, volume("v", "n1"), claim("c", bound="v")], "n1", {}),
        ([LOCAL, volume("big", "n0", "9Gi"), volume("w", "n2"), claim("c", size="5Gi")], "n0", {"c": "pv:big"}),
        ([LOCAL, volume("v", "n1", claim="c"), volume("w", "n0"), claim("c")], "n1", {"c": "pv:v"}),
        ([MADE, claim("c", "made")], "n1", {"c": "node:n1"}),
        ([LOCAL, volume("v", zone="z0__z1", claim="c"), claim("c", bound="v")], "n0", {}),
    ],
)  # fmt: skip
def test_a_pod_goes_where_its_claim_has_a_volume(objects: list[Manifest], where: str, what: dict[str, str]) -> None:
    world = bench(*objects, mounting("p", "c"))
    assert binds(world.cycle()) == {"p": where}
    assert given(world) == what


@pytest.mark.parametrize(
    ("objects", "why"),
    [
        ([LOCAL], 'plugin VolumeZone pre-predicates failed persistentvolumeclaim "c" not found'),
        ([LOCAL, claim("c", bound="v")], 'plugin VolumeZone pre-predicates failed persistentvolume "v" not found'),
        ([AT_ONCE, claim("c", "now")], "plugin VolumeZone pre-predicates failed PersistentVolume had no name"),
        ([LOCAL, claim("c")], "node(s) didn't find available persistent volumes to bind"),
        ([LOCAL, volume("v", "gone"), claim("c", bound="v")], "node(s) didn't match PersistentVolume's node affinity"),
        ([LOCAL, volume("v", zone="z7__z8"), claim("c", bound="v")],
         "node(s) had no available volume zone"),
        ([LOCAL, volume("v", "n1", accessModes=["ReadOnlyMany"]), claim("c")],
         "node(s) didn't find available persistent volumes to bind"),
        ([MADE, claim("c", "made"),
          object_of("storage.k8s.io/v1", "CSIDriver", "csi.example.com", spec={"storageCapacity": True})],
         "node(s) didn't find available persistent volumes to bind, 1 node(s) did not have enough free storage"),
    ],
)  # fmt: skip
def test_S3_30_a_pod_waits_and_says_why(objects: list[Manifest], why: str) -> None:
    world = bench(*objects, mounting("p", "c"))
    assert binds(world.cycle()) == {}
    if ", 1" in why:
        assert "1 node(s) did not have enough free storage" in said(world, "p")
    else:
        assert said(world, "p") == f"0/3 nodes are unavailable: 3 {why}."


def test_each_volume_goes_to_one_claim_and_comes_back_with_a_gang_that_does_not_start() -> None:
    gang = [mounting(f"g{n}", f"c{n}", group="g") for n in range(3)]
    claims = [claim(f"c{n}") for n in range(4)]
    world = bench(LOCAL, volume("a", "n0"), volume("b", "n1"), *claims, *gang, mounting("late", "c3"))
    groups = [pod_group("g", min_member=3), pod_group("late")]
    world.tell(*groups)
    assert binds(world.cycle()).keys() == {"late"}
    assert given(world) == {"c3": "pv:a"}


def test_pods_that_share_a_claim_go_to_its_volume_together() -> None:
    world = bench(LOCAL, volume("v", "n2"), claim("c"), *(mounting(f"p{n}", "c", group="g") for n in range(3)), gang=3)
    assert binds(world.cycle()) == {f"p{n}": "n2" for n in range(3)}
    assert given(world) == {"c": "pv:v"}


@pytest.mark.parametrize(("modes", "bound"), [("ReadWriteOncePod", 1), ("ReadWriteOnce", 2)])
def test_a_claim_for_one_pod_has_one_pod(modes: str, bound: int) -> None:
    held = volume("v", claim="c")
    world = bench(LOCAL, held, claim("c", bound="v", modes=modes), mounting("p", "c"), mounting("q", "c"))
    assert len(binds(world.cycle())) == bound
    if bound == 1:
        assert "ReadWriteOncePod access mode" in said(world, "q")


def test_S3_30_drivers_attach_so_many_volumes_and_a_shared_one_once() -> None:
    limit = {"drivers": [{"name": "csi.example.com", "allocatable": {"count": 2}}]}
    source = {"driver": "csi.example.com", "volumeHandle": "h"}
    held = [volume(f"v{n}", claim=f"c{n}", csi={**source, "volumeHandle": f"h{n}"}) for n in range(3)]
    claims = [claim(f"c{n}", bound=f"v{n}") for n in range(3)]
    pods = [mounting("a", "c0"), mounting("b", "c0"), mounting("c", "c1"), mounting("d", "c2")]
    world = bench(LOCAL, object_of("storage.k8s.io/v1", "CSINode", "n0", spec=limit), *held, *claims, *pods, nodes=1)
    assert binds(world.cycle()).keys() == {"a", "b", "c"}
    assert said(world, "d") == "0/1 nodes are unavailable: 1 node(s) exceed max volume count."


@pytest.mark.parametrize(("compat", "ignored", "bound"), [(False, (), 1), (False, (CSI,), 2), (True, (CSI,), 1)])
def test_limits_of_ignored_provisioners(compat: bool, ignored: tuple[str, ...], bound: int) -> None:
    """They hold for none of their volumes here; in the reference these are only no resource that pods ask for."""
    limit = {"drivers": [{"name": CSI, "allocatable": {"count": 1}}]}
    held = [volume(f"v{n}", claim=f"c{n}", csi={"driver": CSI, "volumeHandle": f"h{n}"}) for n in range(2)]
    claims = [claim(f"c{n}", bound=f"v{n}") for n in range(2)]
    objects = [object_of("storage.k8s.io/v1", "CSINode", "n0", spec=limit), *held, *claims]
    pods = [mounting("a", "c0"), mounting("b", "c1")]
    world = bench(LOCAL, *objects, *pods, nodes=1, compat=compat)
    VolumesSet(True, frozenset(ignored), False).make(world.state)
    assert len(binds(world.cycle())) == bound


@pytest.mark.parametrize(("count", "bound"), [(1, {}), (2, {"b": "n0"})])
def test_volumes_that_change_are_counted_again_where_they_are_a_resource(count: int, bound: dict[str, str]) -> None:
    """The volume of a running pod is seen after the pod: there may be no room left for another pod's volume."""
    limit = {"drivers": [{"name": CSI, "allocatable": {"count": count}}]}
    held = [volume(f"v{n}", claim=f"c{n}", csi={"driver": CSI, "volumeHandle": f"h{n}"}) for n in range(2)]
    claims = [claim(f"c{n}", bound=f"v{n}") for n in range(2)]
    csi_node = object_of("storage.k8s.io/v1", "CSINode", "n0", spec=limit)
    pods = [mounting("a", "c0", on="n0"), mounting("b", "c1")]
    text = conf("gang", "[{name: predicates, arguments: {predicate.NodeVolumeLimitsEnable: false}}]")
    world = bench(nodes=1, compat=True, text=text)
    VolumesSet(True, frozenset(), True).make(world.state)
    world.tell(csi_node, *map(pod_group, "ab"), *pods, *claims, *held)
    assert binds(world.cycle()) == bound, said(world, "b")


def test_an_ephemeral_claim_must_be_the_pods_own() -> None:
    world = bench(LOCAL, volume("v", "n0"), pod("p", group="p", volumes=[{"name": "scratch", "ephemeral": {}}]))
    assert binds(world.cycle()) == {}
    told = 'waiting for ephemeral volume controller to create the persistentvolumeclaim "p-scratch"'
    assert told in said(world, "p")
    other = claim("p-scratch")
    other["metadata"]["ownerReferences"] = [
        {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "x", "controller": True}
    ]
    world.tell(other)
    assert "pod is not owner" in (binds(world.cycle()) or said(world, "p"))


@pytest.mark.parametrize(
    ("switch", "objects"),
    [
        ("VolumeZone", [LOCAL, volume("v", zone="z7", claim="c"), claim("c", bound="v")]),
        ("VolumeBinding", [LOCAL, claim("c")]),
        ("NodeVolumeLimits", [LOCAL, object_of("storage.k8s.io/v1", "CSINode", "n0", spec=FULL),
                              volume("v", "n0", claim="c", csi={"driver": "csi.example.com"}), claim("c", bound="v")]),
    ],
)  # fmt: skip
def test_S3_22_each_filter_of_volumes_has_its_switch(switch: str, objects: list[Manifest]) -> None:
    arguments = f"[{{name: predicates, arguments: {{predicate.{switch}Enable: false}}}}]"
    for text, bound in (("", 0), (conf("gang", arguments), 1)):
        world = bench(*objects, mounting("p", "c"), text=text)
        assert len(binds(world.cycle())) == bound
        assert given(world) == {}


def test_what_is_assumed_of_claims_lasts_until_it_is_forgotten() -> None:
    world = bench(LOCAL, volume("v", "n0"), claim("c"), claim("d"), mounting("p", "c", on="n0"), mounting("q", "d"))
    holder = world.state.tasks["default/p"].uid
    VolumesGiven(holder, {"default/c": "pv:v"}).make(world.state)
    assert binds(world.cycle()) == {}
    VolumesGiven(holder).make(world.state)
    assert binds(world.cycle()) == {"q": "n0"}


def test_what_a_claim_that_has_gone_or_is_bound_was_about_to_get_is_free() -> None:
    for objects, free in (((), True), ((claim("c", bound="w"), volume("w", claim="c")), True), ((claim("c"),), False)):
        world = bench(LOCAL, volume("v", "n0"), *objects, claim("d"), mounting("p", "c", on="n0"), mounting("q", "d"))
        VolumesGiven(world.state.tasks["default/p"].uid, {"default/c": "pv:v", "default/e": "node:n0"}).make(
            world.state
        )
        assert binds(world.cycle()) == ({"q": "n0"} if free else {}), objects


def test_what_a_claim_is_about_to_get_is_free_again_once_its_pod_is_gone() -> None:
    world = bench(LOCAL, volume("v", "n0"), claim("c"), claim("d"), mounting("p", "c", on="n0"), mounting("q", "d"))
    holder = world.state.tasks["default/p"]
    world.state.storage.give(holder.uid, {"default/c": "pv:v"})
    assert binds(world.cycle()) == {}
    world.state.remove_task(holder)
    assert binds(world.cycle()) == {"q": "n0"}


def test_claims_of_one_driver_each_are_counted_alike_in_any_order() -> None:
    drivers = "a.example.com", "b.example.com"
    held = [volume(f"v{n}", claim=f"c{n}", csi={"driver": each, "volumeHandle": "h"}) for n, each in enumerate(drivers)]
    claims = [claim(f"c{n}", bound=f"v{n}") for n in range(2)]
    world = bench(*held, *claims, compat=True)
    VolumesSet(True, frozenset(), True).make(world.state)
    pods = [mounting("p", "c0", "c1"), mounting("q", "c1", "c0"), *(mounting(f"r{n}", "c0") for n in range(9))]
    world.tell(*pods)
    one, other = (world.state.tasks[f"default/{name}"].template for name in "pq")
    assert one is other
    world.tell(claims[0])
    assert list(world.state.tasks) == sorted(world.state.tasks), "in one order, whatever a set has"


@pytest.mark.parametrize("observer", [SILENT, Counting()], ids=["unheard", "heard"])
def test_a_pod_evicts_for_its_own_claim_whatever_the_claim_of_the_pod_before_it_lacks(observer: Observer) -> None:
    """Equal pods with claims of their own: no volume is large enough for the first one's, the second one's has one."""
    gang = [mounting(f"g{number}", f"c{number}", group="g", priority=9, cpu=4) for number in range(2)]
    low = pod("low", group="low", on="n0", cpu=4, priority=1)
    groups = [pod_group("g", priorityClassName="high"), pod_group("low", min_member=0, phase="Running")]
    rank = {"kind": "PriorityClass", "metadata": {"name": "high"}, "value": 9}
    storage = [LOCAL, volume("v", "n0"), claim("c0", size="9Gi"), claim("c1")]
    text = conf("gang priority", "predicates", actions="allocate, preempt")
    world = Bench([node("n0"), rank, *storage, low, *groups, *gang], text)
    plan = world.cycle(observer)
    assert [each.key for each in plan.evictions] == ["default/low"]
    assert [each.key for each in plan.reservations] == ["default/g1"]
