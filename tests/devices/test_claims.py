"""Claimed devices: what nodes offer, what claims get, which pods wait and why, and what is given back."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given as given_by
from hypothesis import settings
from hypothesis import strategies as st

from stromboli.cluster.rim import VolumesSet
from stromboli.filters.devices.expressions import Expression, seen
from stromboli.model.claims import Attribute, Capacity, Device, DeviceResult
from stromboli.testing.builders import Manifest, cluster, node, pod, pod_group
from tests.acceptance.bench import Bench, binds, conf, messages
from tests.support.device_objects import DRIVER, device, device_class, drawn_placements, exactly, resource_slice
from tests.support.device_objects import device_claim as claim

PAGE = Path(__file__).parents[2] / "docs/dra.md"
MODEL = 'device.attributes["gpu.example.com"].model == "{}"'


def claiming(name: str, *claims: str, group: str = "", **more: Any) -> Manifest:
    named = [{"name": f"c{place}", "resourceClaimName": each} for place, each in enumerate(claims)]
    return pod(name, group=group or name, resourceClaims=named, **more)


def bench(*objects: Manifest, nodes: int = 2, gang: int = 1, **options: Any) -> Bench:
    pods = [each for each in objects if each["kind"] == "Pod"]
    groups = {each["metadata"]["annotations"]["scheduling.k8s.io/group-name"] for each in pods}
    kinds = {each["kind"] for each in objects}
    made = [node(f"n{number}", labels={"zone": f"z{number}"}) for number in range(nodes)]
    more = [] if "DeviceClass" in kinds else [device_class()]
    gangs = [pod_group(name, min_member=gang) for name in sorted(groups)]
    found = Bench([*made, *more, *objects, *gangs], **options)
    found.cycle()
    return found


def said(each: Bench, name: str) -> str:
    return messages(each.plan, f"default/{name}")[-1]


def given(each: Bench) -> dict[str, list[str]]:
    """The devices of claims of pods that the last cycle has bound."""
    claims = {key: given for bind in each.plan.binds for key, given in bind.claims.items()}
    return {key.partition("/")[2]: [f"{one.pool}/{one.device}" for one in found.devices.results]
            for key, found in claims.items()}  # fmt: skip


TWO = (resource_slice("n0", device("gpu-0"), device("gpu-1")), resource_slice("n1", device("gpu-0", "b")))


@pytest.mark.parametrize(
    ("objects", "gets"),
    [
        pytest.param((claim("c"),), ["n0/gpu-0"], id="one"),
        pytest.param((claim("c", exactly(MODEL.format("b"))),), ["n1/gpu-0"], id="selected"),
        pytest.param((claim("c", exactly(count=2)),), ["n0/gpu-0", "n0/gpu-1"], id="counted"),
        pytest.param((claim("c", exactly(count=2)), claim("o", devices=("gpu-1",), on="n0")), [], id="taken"),
        pytest.param((claim("c", exactly(allocationMode="All", count=0)),), ["n0/gpu-0", "n0/gpu-1"], id="all"),
        pytest.param(
            (claim("c", {"name": "r", "firstAvailable": [
                {"name": "best", **exactly(MODEL.format("b"))}, {"name": "next", **exactly()}]}),),
            ["n1/gpu-0"], id="best-alternative",
        ),
        pytest.param((claim("c", devices=("gpu-0",), on="n1"),), ["n1/gpu-0"], id="allocated"),
        pytest.param(
            (claim("c", exactly(adminAccess=True)), claim("o", devices=("gpu-0",), on="n0"),
             claim("p", devices=("gpu-1",), on="n0"), claim("q", devices=("gpu-0",), on="n1")),
            ["n0/gpu-0"], id="admin",
        ),
    ],
)  # fmt: skip
def test_a_claim_gets_devices_that_its_expressions_take(objects: tuple[Manifest, ...], gets: list[str]) -> None:
    each = bench(*TWO, *objects, claiming("p", "c"))
    assert given(each).get("c", []) == gets
    if not gets:
        assert "2 cannot allocate all claims" in said(each, "p")


def test_devices_match_or_differ_in_an_attribute() -> None:
    four = [device(f"gpu-{number}") for number in range(4)]
    same = {"constraints": [{"matchAttribute": f"{DRIVER}/numa"}]}
    apart = {"constraints": [{"distinctAttribute": f"{DRIVER}/numa", "requests": ["r0"]}]}
    taken = claim("o", devices=("gpu-0",), on="n0")
    for devices_spec, gets in ((same, ["n0/gpu-2", "n0/gpu-3"]), (apart, ["n0/gpu-1", "n0/gpu-2"])):
        one = claim("c", exactly(count=2), devices_spec=devices_spec)
        assert given(bench(resource_slice("n0", *four), taken, one, claiming("p", "c")))["c"] == gets


@pytest.mark.parametrize(
    ("slices", "bound"),
    [
        pytest.param([resource_slice("n0", device("gpu-0"), slices=2)], False, id="a-slice-is-missing"),
        pytest.param([resource_slice("n0", device("gpu-0"), slices=2),
                      resource_slice("n0", device("gpu-1"), slices=2, name="s")], True, id="whole"),
        pytest.param([resource_slice("n0", device("gpu-0")),
                      resource_slice("n0", generation=2, name="s", nodeName="n0")], False, id="older-generation"),
        pytest.param([resource_slice("n0", device("gpu-0"), device("gpu-0"))], False, id="named-twice"),
        pytest.param([resource_slice("f", device("gpu-0"), allNodes=True)], True, id="network-attached"),
        pytest.param([resource_slice("f", device("gpu-0", nodeName="n1"), perDeviceNodeSelection=True)], True,
                     id="node-of-a-device"),
        pytest.param([resource_slice("n0", device("gpu-0", taints=[{"key": "broken", "effect": "NoSchedule"}]))],
                     False, id="tainted"),
        pytest.param([resource_slice("n0", device("gpu-0", consumesCounters=[
            {"counterSet": "s", "counters": {"m": {"value": "1"}}}]))], False, id="counters-that-no-slice-has"),
    ],
)  # fmt: skip
def test_pools_offer_what_is_whole_and_newest(slices: list[Manifest], bound: bool) -> None:
    each = bench(*slices, claim("c"), claiming("p", "c"))
    assert ("p" in binds(each.plan)) == bound


@pytest.mark.parametrize(
    ("objects", "why"),
    [
        ((), 'could not find ResourceClaim "default/c"'),
        ((claim("c", exactly(of="none")),), "request r0: device class none does not exist"),
        ((claim("c", exactly('device.attributes["x"].y == 1')),),
         "claim default/c: selector #0: CEL runtime error: no such key: y"),
        ((claim("c", exactly("device.driver ==")),), "claim default/c: selector #0: CEL compile error"),
        ((claim("c", exactly(count=40)),),
         "claim default/c: number of requested devices 40 exceeds the claim limit of 32"),
        ((claim("c", devices=("gpu-0",), on="n7"),), "resourceclaim not available on the node"),
        ((claim("c", devices=("gpu-0",), on="n0", reservedFor=[
            {"resource": "pods", "name": f"p{n}", "uid": f"u{n}"} for n in range(256)]),), "resourceclaim in use"),
    ],
)  # fmt: skip
def test_a_pod_waits_with_the_reason(objects: tuple[Manifest, ...], why: str) -> None:
    each = bench(*TWO, *objects, claiming("p", "c"))
    assert not binds(each.plan)
    assert why in said(each, "p")


def test_claims_as_the_reference_has_them() -> None:
    pods = [claiming(f"p{number}", "c", group="g") for number in range(2)]
    waits = bench(*TWO, claim("c"), *pods, gang=2, compat=True)
    assert not binds(waits.plan)
    assert "resource claim default/c is in the process of being allocated" in said(waits, "p1")


def test_a_pod_without_its_claim_is_unknown_in_scenarios_of_the_reference() -> None:
    each = bench(*TWO)
    VolumesSet(True, frozenset(), False, True).make(each.state)
    each.tell(claiming("p", "c"))
    assert not each.state.tasks
    each.tell(claim("c"), claiming("p", "c"), pod_group("p"))
    assert binds(each.cycle()) == {"p": "n0"}


def test_a_claim_that_is_not_made_yet_is_waited_for() -> None:
    templated = pod("p", group="p", resourceClaims=[{"name": "g", "resourceClaimTemplateName": "t"}])
    assert "ResourceClaim not created yet" in said(bench(*TWO, templated), "p")
    switch = "[{name: predicates, arguments: {predicate.DynamicResourceAllocationEnable: false}}]"
    assert "p" in binds(bench(*TWO, templated, text=conf(switch)).plan)


def test_a_gang_has_all_its_devices_or_none() -> None:
    claims = [claim(f"c{number}") for number in range(4)]
    pods = [claiming(f"p{number}", f"c{number}", group="g") for number in range(4)]
    assert not binds(bench(*TWO, *claims, *pods, gang=4).plan)
    fits = bench(*TWO, *claims[:3], *pods[:3], gang=3)
    assert len(given(fits)) == 3
    assert len({one for each in given(fits).values() for one in each}) == 3


def test_pods_of_a_cycle_share_a_claim_and_later_cycles_know_what_is_taken() -> None:
    pods = [claiming(f"p{number}", "c", group="g") for number in range(2)]
    each = bench(*TWO, claim("c"), *pods, gang=2)
    assert len(set(binds(each.plan).values())) == 1
    assert len(binds(each.plan)) == 2
    assert len(given(each)["c"]) == 1


def test_a_later_cycle_knows_what_is_taken() -> None:
    each = bench(*TWO, claim("c", exactly(count=2)), claiming("p", "c"))
    each.tell(claim("d"), claiming("q", "d"), pod_group("q"), claim("e"), claiming("r", "e"), pod_group("r"))
    each.cycle()
    assert sorted(given(each).values()) == [["n1/gpu-0"]]


def test_the_page_s_example() -> None:
    objects = list(yaml.load_all(PAGE.read_text().split("```yaml")[1].split("```")[0], yaml.CSafeLoader))
    each = bench(*objects, claiming("p", "large"))
    assert (binds(each.plan), given(each)) == ({"p": "n1"}, {"large": ["n1/gpu-1"]})


GPU = Device("gpu-0", {"model": Attribute(string="a"), "driver": Attribute(version="1.10.0-rc.2"),
                       "nvlink.example.com/domain": Attribute(int_=3)}, {"memory": Capacity("80Gi")})  # fmt: skip


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ('device.capacity["gpu.example.com"].memory.compareTo(quantity("40Gi")) > 0', True),
        ('device.capacity["gpu.example.com"].memory == quantity("81920Mi")', True),
        ('device.attributes["gpu.example.com"].driver.isGreaterThan(semver("1.9.3"))', True),
        ('device.attributes["gpu.example.com"].driver.isLessThan(semver("1.10.0"))', True),
        ('device.attributes["nvlink.example.com"].domain == 3', True),
        ('has(device.attributes["none.example.com"].x)', False),
        ('device.attributes["gpu.example.com"].model.matches("^[ab]$")', True),
        ('isQuantity("x") || isSemver("1.2")', False),
        ('device.attributes["gpu.example.com"].exists(name, name.startsWith("mo"))', True),
        ("device.driver", "yields no bool"),
        ("1 / 0 == 1", "runtime error"),
        ("x == 1", "runtime error"),
        (" " * 20_000 + "true", "has 20004 characters"),
        ("[1].all(x, " * 3 + "true" + ")" * 3, "steps"),
        ("['a']" + ".map(x, x + x)" * 40 + " == []", "steps"),
        ("(" * 200 + "true" + ")" * 200, "brackets"),
    ],
)  # fmt: skip
def test_expressions_say_what_kubernetes_would_within_bounds(text: str, answer: bool | str) -> None:
    found = Expression(text).of(seen(DRIVER, GPU))
    assert found == answer if isinstance(answer, bool) else isinstance(found, str) and answer in found


@settings(max_examples=25, deadline=None)
@given_by(st.data())
def test_no_device_is_given_twice_and_what_leaves_leaves_nothing(data: st.DataObject) -> None:
    """Placements in any order, some taken back: devices are of one claim each, and undone ones never happened."""
    slices = [resource_slice(f"n{row}", *[device(f"gpu-{k}", data.draw(st.sampled_from("ab"))) for k in range(3)])
              for row in range(2)]  # fmt: skip
    asked = st.sampled_from([exactly(), exactly(count=2), exactly(MODEL.format("a")), exactly(allocationMode="All")])
    claims = [claim(f"c{number}", data.draw(asked)) for number in range(4)]
    pods = [claiming(f"p{number}", f"c{number}", group="g") for number in range(4)]
    snapshot = cluster(node("n0"), node("n1"), device_class(), *slices, *claims, *pods, pod_group("g"))
    drawn_placements(data, snapshot, 8, _each_once)


def _each_once(taken: list[DeviceResult]) -> None:
    keys = [(one.pool, one.device) for one in taken]
    assert len(keys) == len(set(keys))


def parted(*left: str) -> Manifest:
    """A card of 80Gi and seven slices, which can be had whole or in parts."""
    parts = {"gpu-0": ("80Gi", "7"), "half-1": ("40Gi", "4"), "half-2": ("40Gi", "3"), "small-3": ("10Gi", "1")}
    uses = {
        name: [{"counterSet": "card", "counters": {"memory": {"value": memory}, "slices": {"value": slices}}}]
        for name, (memory, slices) in parts.items()
    }
    total = {"memory": {"value": left[0] if left else "80Gi"}, "slices": {"value": "7"}}
    found = resource_slice("n0", *(device(name, consumesCounters=use) for name, use in uses.items()), nodeName="n0")
    found["spec"]["sharedCounters"] = [{"name": "card", "counters": total}]
    return found


@pytest.mark.parametrize(
    ("objects", "devices"),
    [
        ([parted(), claim("c")], {"c": ["gpu-0"]}),
        ([parted(), claim("a", on="n0", devices=("half-1",)), claim("c")], {"c": ["half-2"]}),
        ([parted(), claim("a", on="n0", devices=("small-3",)), claim("c")], {"c": ["half-1"]}),
        ([parted(), claim("c", exactly(count=2))], {"c": ["half-1", "half-2"]}),
        ([parted(), claim("c", exactly(count=3))], {}),
        ([parted(), claim("a", on="n0", devices=("gpu-0",)), claim("c")], {}),
        ([parted("50Gi"), claim("c", exactly(count=2))], {"c": ["half-1", "small-3"]}),
        ([parted("much"), claim("c")], {}),
    ],
)
def test_parts_of_a_card_share_its_counters(objects: list[Manifest], devices: dict[str, list[str]]) -> None:
    uses = [{"name": "gpu", "resourceClaimName": "c"}]
    bench = Bench([node("n0"), device_class(), *objects, pod_group("g"), pod("p", group="g", resourceClaims=uses)])
    bench.cycle()
    given = {
        key.partition("/")[2]: [one.device for one in has.devices.results]
        for bind in bench.plan.binds for key, has in bind.claims.items()
    }  # fmt: skip
    assert given == devices


@pytest.mark.parametrize(("shares", "bound"), [(True, 300), (False, 256)])
def test_a_claim_of_kubernetes_own_group_counts_it_once_however_many_pods_share_it(shares: bool, bound: int) -> None:
    asked = [{"name": "c", "resourceClaimName": "c"}]
    policy = {"schedulingPolicy": {"gang": {"minCount": 1}}, "resourceClaims": asked if shares else []}
    metadata = {"name": "g", "namespace": "default", "uid": "uid-g"}
    group = {
        "apiVersion": "scheduling.k8s.io/v1beta1",
        "kind": "UpstreamPodGroup",
        "metadata": metadata,
        "spec": policy,
    }
    pods = [
        pod(f"p{number}", cpu="1m", memory="1Mi", resourceClaims=asked, schedulingGroup={"podGroupName": "g"})
        for number in range(300)
    ]
    large = node("n0", cpu=64, pods=1000)
    text = conf("gang priority", "predicates proportion", actions="enqueue, allocate")
    each = Bench([large, device_class(), TWO[0], claim("c"), group, *pods], text)
    assert len(binds(each.cycle())) == bound
