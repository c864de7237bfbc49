"""Devices that several requests share: what a share takes, which pods wait, and that nothing is overdrawn."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given as given_by
from hypothesis import settings
from hypothesis import strategies as st

from stromboli.filters.devices.capacity import takes, written
from stromboli.model.claims import Capacity, DeviceResult
from stromboli.model.resources.quantity import milli
from stromboli.model.values.reading import convert
from stromboli.testing.builders import Manifest, cluster, node, pod, pod_group
from tests.acceptance.bench import Bench, messages
from tests.support.device_objects import (
    DRIVER,
    device,
    device_claim,
    device_class,
    drawn_placements,
    exactly,
    resource_slice,
)

PAGE = Path(__file__).parents[2] / "docs/dra.md"
GI = 1000 << 30
RANGE = {"default": "8Gi", "validRange": {"min": "4Gi", "step": "2Gi", "max": "20Gi"}}
VALUES = {"default": "10Gi", "validValues": ["10Gi", "20Gi"]}


@pytest.mark.parametrize(
    ("policy", "asked", "taken"),
    [
        (None, None, 40),
        (None, "3Gi", 3),
        (None, "40Gi", 40),
        (None, "41Gi", None),
        (None, "much", None),
        (RANGE, None, 8),
        (RANGE, "1Gi", 4),
        (RANGE, "4Gi", 4),
        (RANGE, "5Gi", 6),
        (RANGE, "20Gi", 20),
        (RANGE, "21Gi", None),
        ({"validRange": {"min": "4Gi"}}, "5Gi", 5),
        ({"validRange": {"min": "4Gi"}}, "50Gi", None),
        (VALUES, None, 10),
        (VALUES, "1Gi", 10),
        (VALUES, "11Gi", 20),
        (VALUES, "21Gi", None),
        ({"default": "4Gi"}, "7Gi", 7),
    ],
)
def test_what_a_request_takes_of_a_capacity(policy: Any, asked: str | None, taken: int | None) -> None:
    capacity = convert({"value": "40Gi", **({"requestPolicy": policy} if policy else {})}, Capacity)
    found = takes({"memory": capacity}, {} if asked is None else {"memory": asked})
    assert found == (None if taken is None else {"memory": taken * GI})


def test_a_capacity_that_a_device_lacks_is_never_given() -> None:
    assert takes({"memory": Capacity("1Gi")}, {"bandwidth": "1"}) is None


@pytest.mark.parametrize(("amount", "text"), [(4 * GI, "4Gi"), (1500, "1500m"), (10_000, "10"), (10**9, "1M")])
def test_amounts_are_written_as_quantities(amount: int, text: str) -> None:
    assert written(amount) == text
    assert milli(written(amount)) == amount


def shared(name: str, memory: str = "40Gi", policy: Any = None, **more: Any) -> Manifest:
    found = device(name, memory=memory, allowMultipleAllocations=True, **more)
    if policy:
        found["capacity"]["memory"]["requestPolicy"] = policy
    return found


def some(memory: str, **more: Any) -> Manifest:
    return exactly(capacity={"requests": {"memory": memory}}, **more)


def bench(*objects: Manifest, pods: int) -> Bench:
    """Pods p0, p1 ... with the claims c0, c1 ..., after a cycle."""
    found = [node("n0"), node("n1"), device_class(), *objects]
    for number in range(pods):
        uses = [{"name": "gpu", "resourceClaimName": f"c{number}"}]
        found += [pod_group(f"p{number}"), pod(f"p{number}", group=f"p{number}", resourceClaims=uses)]
    return cycled(Bench(found))


def cycled(each: Bench) -> Bench:
    each.cycle()
    return each


def results(each: Bench) -> dict[str, list[Any]]:
    claims = {key: given for bind in each.plan.binds for key, given in bind.claims.items()}
    return {key.partition("/")[2]: list(found.devices.results) for key, found in claims.items()}


def test_claims_share_a_device_until_its_capacity_is_taken() -> None:
    claims = [device_claim(f"c{number}", some("15Gi")) for number in range(3)]
    found = bench(resource_slice("n0", shared("gpu-0")), *claims, pods=3)
    given = results(found)
    assert sorted(given) == ["c0", "c1"]
    assert [one[0].consumed_capacity for one in given.values()] == [{"memory": "15Gi"}] * 2
    ids = {one[0].share_id for one in given.values()}
    assert len(ids) == 2
    assert "2 cannot allocate all claims" in messages(found.plan, "default/p2")[-1]


def test_shares_that_claims_have_are_counted_in_later_cycles() -> None:
    had = device_claim("had", on="n0", devices=("gpu-0",))
    had["status"]["allocation"]["devices"]["results"][0] |= {"shareID": "x", "consumedCapacity": {"memory": "30Gi"}}
    slices = resource_slice("n0", shared("gpu-0"))
    assert "c0" in results(bench(slices, had, device_claim("c0", some("10Gi")), pods=1))
    assert not results(bench(slices, had, device_claim("c0", some("11Gi")), pods=1))
    assert not results(bench(slices, had, device_claim("c0"), pods=1))  # without a policy all of it is asked for
    whole = device_claim("had", on="n0", devices=("gpu-0",))  # from a time when it was not shared
    assert not results(bench(slices, whole, device_claim("c0", some("1Gi")), pods=1))


def test_a_device_that_is_no_longer_shared_is_free_once_its_shares_are() -> None:
    had = device_claim("had", on="n0", devices=("gpu-0",))
    had["status"]["allocation"]["devices"]["results"][0] |= {"shareID": "x", "consumedCapacity": {"memory": "1Gi"}}
    slices = resource_slice("n0", device("gpu-0"))
    assert not results(bench(slices, had, device_claim("c0"), pods=1))
    assert results(bench(slices, device_claim("c0"), pods=1))


@pytest.mark.parametrize(
    ("requests", "more", "given"),
    [
        ([some("10Gi"), some("10Gi")], {}, ["gpu-0", "gpu-0"]),
        ([some("30Gi"), some("30Gi")], {}, ["gpu-0", "gpu-1"]),
        ([some("10Gi", count=2)], {}, ["gpu-0", "gpu-1"]),  # one request has a device once
        ([some("10Gi"), some("10Gi")], {"distinctAttribute": f"{DRIVER}/serial"}, ["gpu-0", "gpu-1"]),
        ([some("10Gi", allocationMode="All", count=0)], {}, ["gpu-0", "gpu-1"]),
        ([some("10Gi"), exactly(adminAccess=True)], {}, ["gpu-0", "gpu-0"]),
        ([some("40Gi"), some("40Gi"), some("1Gi")], {}, []),
    ],
)
def test_requests_of_a_claim_share_devices(requests: list[Manifest], more: Any, given: list[str]) -> None:
    devices = [shared(f"gpu-{k}") for k in range(2)]
    for number, one in enumerate(devices):
        one["attributes"]["serial"] = {"int": number}
    spec = {"constraints": [more]} if more else {}
    found = results(bench(resource_slice("n0", *devices), device_claim("c0", *requests, devices_spec=spec), pods=1))
    assert [one.device for one in found.get("c0", [])] == given


def test_an_amount_selects_among_devices_that_are_had_whole() -> None:
    slices = resource_slice("n0", device("gpu-0", memory="20Gi"), device("gpu-1", memory="80Gi"))
    found = results(bench(slices, device_claim("c0", some("60Gi")), pods=1))["c0"][0]
    assert (found.device, found.share_id, found.consumed_capacity) == ("gpu-1", "", {})


def test_what_the_policy_rounds_up_is_taken() -> None:
    claims = [device_claim(f"c{number}", some("5Gi")) for number in range(4)]
    slices = resource_slice("n0", shared("gpu-0", memory="20Gi", policy=RANGE))
    given = results(bench(slices, *claims, pods=4))
    assert [one[0].consumed_capacity["memory"] for one in given.values()] == ["6Gi"] * 3


def test_expressions_see_whether_a_device_is_shared() -> None:
    slices = resource_slice("n0", device("gpu-0"), shared("gpu-1"))
    asked = exactly("device.allowMultipleAllocations")
    assert results(bench(slices, device_claim("c0", asked), pods=1))["c0"][0].device == "gpu-1"


USE = [{"counterSet": "card", "counters": {"memory": {"value": "30Gi"}}}]


@pytest.mark.parametrize(("total", "other"), [("50Gi", {}), ("65Gi", {"c3": "gpu-1"})])
def test_a_shared_device_draws_on_its_counters_once(total: str, other: dict[str, str]) -> None:
    slices = resource_slice("n0", shared("gpu-0", consumesCounters=USE), device("gpu-1", consumesCounters=USE))
    slices["spec"]["sharedCounters"] = [{"name": "card", "counters": {"memory": {"value": total}}}]
    claims = [device_claim(f"c{number}", some("10Gi")) for number in range(3)]
    whole = device_claim("c3", exactly("!device.allowMultipleAllocations"))
    given = results(bench(slices, *claims, whole, pods=4))
    found = {name: one[0].device for name, one in given.items()}
    assert found == {**dict.fromkeys(("c0", "c1", "c2"), "gpu-0"), **other}


@settings(max_examples=40, deadline=None)
@given_by(st.data())
def test_no_device_is_over_its_capacity_or_counters_and_what_leaves_leaves_nothing(data: st.DataObject) -> None:
    """Placements in any order, some taken back, of whole devices, shares and parts of one card."""
    policies = st.sampled_from([None, RANGE, VALUES])
    devices = [
        shared("gpu-0", policy=data.draw(policies), consumesCounters=USE),
        device("gpu-1", consumesCounters=USE),
        shared("gpu-2", policy=data.draw(policies)),
        device("gpu-3"),
    ]
    slices = [resource_slice(f"n{row}", *devices) for row in range(2)]
    for each in slices:
        each["spec"]["sharedCounters"] = [{"name": "card", "counters": {"memory": {"value": "50Gi"}}}]
    amounts = st.sampled_from(["1Gi", "5Gi", "15Gi", "33Gi"])
    asks = st.one_of(st.builds(some, amounts), st.builds(some, amounts, count=st.just(2)), st.builds(exactly))
    claims = [device_claim(f"c{k}", *data.draw(st.lists(asks, min_size=1, max_size=2))) for k in range(5)]
    pods = [pod(f"p{k}", group="g", resourceClaims=[{"name": "c", "resourceClaimName": f"c{k}"}]) for k in range(5)]
    snapshot = cluster(node("n0"), node("n1"), device_class(), *slices, *claims, *pods, pod_group("g"))
    drawn_placements(data, snapshot, 10, _within)


def _within(taken: list[DeviceResult]) -> None:
    """No device is over its 40Gi or of two owners, no share id is used twice, and no card gives more than its 50Gi."""
    amounts = Counter[tuple[str, str]]()
    for one in taken:
        amounts[one.pool, one.device] += milli(one.consumed_capacity.get("memory", "40Gi"))
    assert all(amount <= 40 * GI for amount in amounts.values())
    ids = [one.share_id for one in taken if one.share_id]
    assert len(ids) == len(set(ids))
    drawn = Counter(pool for pool, name in amounts if name in ("gpu-0", "gpu-1"))
    assert all(30 * number <= 50 for number in drawn.values())


def test_the_example_of_the_page_is_true() -> None:
    """Two claims like the one of the page share its device, and a third waits."""
    text = PAGE.read_text(encoding="utf-8").split("```yaml")[2].split("```")[0]
    offered, claim = yaml.load_all(text, yaml.CSafeLoader)
    claims = [{**claim, "metadata": {**claim["metadata"], "name": f"c{k}", "uid": f"u{k}"}} for k in range(3)]
    found = bench(offered, *claims, pods=3)
    assert [one[0].consumed_capacity for one in results(found).values()] == [{"memory": "16Gi"}] * 2
    assert "cannot allocate all claims" in messages(found.plan, "default/p2")[-1]
