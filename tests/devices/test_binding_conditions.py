"""Devices that drivers make ready after their allocation: pods wait for it, and go elsewhere where it fails."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from stromboli.errors import ApiError
from stromboli.live.scheduler.scheduler import LiveScheduler
from stromboli.live.writing.claims import is_prepared
from stromboli.live.writing.retries import Retries
from stromboli.model.claims import (
    Allocation,
    DeviceCondition,
    DeviceResult,
    DeviceResults,
    DeviceStatus,
    ResourceClaim,
    ResourceClaimStatus,
)
from stromboli.testing.builders import node, pod, pod_group
from tests.acceptance.bench import Bench
from tests.support.contested import Mortal
from tests.support.device_objects import DRIVER, device, device_claim, device_class, resource_slice
from tests.support.live_world import Json, LiveWorld, group
from tests.support.live_world import pod as live_pod
from tests.support.virtual import run

PAGE: Final = Path(__file__).parents[2] / "docs/dra.md"
SLOW: Final[Any] = {"bindingConditions": ["Attached"], "bindingFailureConditions": ["Broken"]}
CONF: Final = """\
actions: "allocate"
tiers:
- plugins:
  - {name: gang}
  - {name: predicates, arguments: {dynamicresources.bindingTimeoutSeconds: 60}}
"""


# ---------------------------------------------------------------------- what is allocated


def allocated(*slices: Json) -> Allocation:
    asking = pod("p", group="p", resourceClaims=[{"name": "c", "resourceClaimName": "c"}])
    nodes = [node("n0"), node("n1")]
    bench = Bench([*nodes, device_class(), *slices, device_claim("c"), asking, pod_group("p")])
    (bind,) = bench.cycle().binds
    (found,) = bind.claims.values()
    return found


def test_conditions_are_copied_and_such_pools_are_tried_last() -> None:
    slow = resource_slice("a", device("d0", **SLOW), allNodes=True)
    (result,) = allocated(slow).devices.results
    assert (result.binding_conditions, result.binding_failure_conditions) == (("Attached",), ("Broken",))
    (result,) = allocated(slow, resource_slice("b", device("d0"), allNodes=True)).devices.results
    assert (result.pool, result.binding_conditions) == ("b", ())


def test_the_pages_example() -> None:
    text = PAGE.read_text(encoding="utf-8").rpartition("```yaml\n")[2].partition("```")[0]
    found = allocated(yaml.safe_load(text))
    assert found.devices.results[0].binding_failure_conditions == ("AttachFailed",)
    assert found.node_selector is not None


@pytest.mark.parametrize("binds", [True, False])
def test_a_device_may_bind_its_claim_to_the_node(binds: bool) -> None:
    found = allocated(resource_slice("a", device("d0", bindsToNode=binds, **SLOW), allNodes=True))
    selector = found.node_selector
    assert (selector and selector.node_selector_terms[0].match_fields[0].values) == (("n0",) if binds else None)


def claim_of(told: str, status: str, *, share: str = "", other: tuple[str, ...] = ()) -> ResourceClaim:
    """A claim of two devices, of one of which its driver says something."""
    slow = DeviceResult("r", DRIVER, "p", "d0", binding_conditions=("Attached", "Wired"),
                        binding_failure_conditions=("Broken",))  # fmt: skip
    results = DeviceResults((DeviceResult("r", DRIVER, "p", "d1", binding_conditions=other), slow))
    said = [DeviceCondition("Wired", "True"), DeviceCondition(told, status, "Why", "because")]
    states = (DeviceStatus(DRIVER, "p", "d0", share, tuple(said)),)
    return ResourceClaim(status=ResourceClaimStatus(Allocation(results), devices=states))


@pytest.mark.parametrize(
    ("claim", "prepared"),
    [
        (claim_of("Attached", "True"), True),
        (claim_of("Attached", "False"), False),
        (claim_of("Attached", "Unknown"), False),
        (claim_of("Broken", "False"), False),
        (claim_of("Attached", "True", share="s"), False),
        (claim_of("Attached", "True", other=("Attached",)), False),
        (ResourceClaim(), False),
    ],
)
def test_all_conditions_of_all_devices_must_be_true(claim: ResourceClaim, prepared: bool) -> None:
    assert is_prepared(claim) == prepared


def test_one_failure_is_enough() -> None:
    with pytest.raises(ApiError, match=r"device binding failed: .* reason=Why, message='because'"):
        is_prepared(claim_of("Broken", "True", other=("Attached",)))


# ---------------------------------------------------------------------- on a cluster


class Attaching(LiveWorld):
    """An embedded server whose one device, which every node reaches, has to be attached first."""

    def __init__(self, conf: Path) -> None:
        super().__init__(nodes=2, on="embedded")
        conf.write_text(CONF)
        self.conf = str(conf)
        self.server.put("deviceclasses", {"metadata": {"name": "gpu"}, "spec": {}})
        self.offer("d0")
        exactly = {"deviceClassName": "gpu", "count": 1, "allocationMode": "ExactCount"}
        spec = {"devices": {"requests": [{"name": "r", "exactly": exactly}]}}
        self.server.put("resourceclaims", {"metadata": {"name": "c", "namespace": "ns"}, "spec": spec})
        self.server.put("podgroups", group("p", 1))
        self.server.put("pods", live_pod("p", "p", resourceClaims=[{"name": "c", "resourceClaimName": "c"}]))

    def offer(self, *names: str) -> None:
        """Which devices there are."""
        pool = {"name": "fabric", "generation": 1, "resourceSliceCount": 1}
        devices = [{"name": name, "bindsToNode": True, **SLOW} for name in names]
        spec = {"driver": DRIVER, "pool": pool, "allNodes": True, "devices": devices}
        self.server.put("resourceslices", {"metadata": {"name": "s"}, "spec": spec})

    def begin(self, transport: Any = None) -> LiveScheduler:
        scheduler = self.scheduler(self.conf, transport)
        self.start(scheduler)
        return scheduler

    @property
    def claim(self) -> Json:
        found: Json = self.server.get("resourceclaims", "c", "ns")
        return found

    @property
    def device(self) -> str:
        """The device that the claim has."""
        allocation = self.claim.get("status", {}).get("allocation")
        return allocation["devices"]["results"][0]["device"] if allocation else ""

    def say(self, condition: str) -> None:
        """The driver says so of the device that the claim has."""
        claim = self.claim
        one = claim["status"]["allocation"]["devices"]["results"][0]
        told = {"type": condition, "status": "True", "reason": "Fabric", "message": "port 3",
                "lastTransitionTime": "2026-01-01T00:00:00Z"}  # fmt: skip
        devices = [{**{key: one[key] for key in ("driver", "pool", "device")}, "conditions": [told]}]
        self.server.put("resourceclaims", {**claim, "status": {**claim["status"], "devices": devices}})

    def why(self) -> str:
        """What the pod's condition says."""
        conditions = self.server.get("pods", "p", "ns").get("status", {}).get("conditions") or []
        return " ".join(one["message"] for one in conditions if one["status"] == "False")

    def events(self, reason: str) -> list[str]:
        """Messages of events of a reason."""
        return [one["message"] for one in self.server.all("events") if one["reason"] == reason]


def test_a_pod_waits_until_its_device_is_attached(tmp_path: Path) -> None:
    async def story() -> None:
        world = Attaching(tmp_path / "conf")
        scheduler = world.begin()
        await asyncio.sleep(30)
        assert world.pods()["p"] == ""
        assert [user["name"] for user in world.claim["status"]["reservedFor"]] == ["p"]
        assert world.claim["status"]["allocation"]["allocationTimestamp"]
        fields = world.claim["status"]["allocation"]["nodeSelector"]["nodeSelectorTerms"][0]["matchFields"]
        assert world.events("BindingConditionsPending") == ["waiting for binding conditions for device on node n0"]
        world.say("Attached")
        await asyncio.sleep(2)
        assert [world.pods()["p"]] == fields[0]["values"]
        storage = scheduler.state.storage
        assert (storage.devices.given, scheduler.mirror.assumed) == ({}, {})
        await world.end()

    run(story())


def test_a_device_that_fails_is_given_back_and_the_pod_told(tmp_path: Path) -> None:
    async def story() -> None:
        world = Attaching(tmp_path / "conf")
        world.begin()
        await asyncio.sleep(5)
        assert world.device == "d0"
        world.offer("d1")  # its driver offers another one instead
        world.say("Broken")
        await asyncio.sleep(5)
        assert world.device == "d1"
        assert "devices" not in world.claim["status"], "what was said of the other device is gone with it"
        (text,) = [text for text in world.events("FailedScheduling") if "binding failed" in text]
        assert "reason=Fabric, message='port 3'" in text
        world.say("Attached")
        await asyncio.sleep(2)
        assert world.pods()["p"]
        await world.end()

    run(story())


def test_a_device_that_is_not_ready_in_time_is_given_back(tmp_path: Path) -> None:
    async def story() -> None:
        world = Attaching(tmp_path / "conf")
        world.begin()
        await asyncio.sleep(5)
        first = world.claim["status"]["allocation"]["allocationTimestamp"]
        world.offer()
        await asyncio.sleep(50)
        assert world.device == "d0", "a slice that goes takes nothing from a claim"
        await asyncio.sleep(10)
        assert world.device == ""
        assert not world.claim["status"].get("reservedFor")
        assert any("device binding timeout: claim=ns/c" in text for text in world.events("FailedScheduling"))
        assert "cannot allocate all claims" in world.why()
        world.offer("d0")
        await asyncio.sleep(3)
        assert world.claim["status"]["allocation"]["allocationTimestamp"] > first
        await world.end()

    run(story())


@pytest.mark.parametrize("ready", [True, False])
def test_the_next_scheduler_waits_on_from_when_the_device_was_allocated(ready: bool, tmp_path: Path) -> None:
    async def story() -> None:
        world = Attaching(tmp_path / "conf")
        wire = Mortal(world.server, arrives=True)
        wire.process = world.start(world.scheduler(world.conf, wire))
        await asyncio.sleep(20)
        before = world.claim["status"]
        wire.kill()
        await asyncio.sleep(20)
        world.begin()
        await asyncio.sleep(15)
        assert world.claim["status"] == before
        if ready:
            world.say("Attached")
            await asyncio.sleep(2)
            assert world.pods()["p"]
        else:
            world.offer()
            await asyncio.sleep(10)
            assert world.device == "", "60 seconds after the allocation"
        await world.end()

    run(story())


def test_a_pod_that_is_deleted_meanwhile_gives_its_device_back(tmp_path: Path) -> None:
    async def story() -> None:
        world = Attaching(tmp_path / "conf")
        scheduler = world.begin()
        await asyncio.sleep(5)
        assert world.device == "d0"
        world.server.drop("pods", "p", "ns")
        await asyncio.sleep(3)
        assert world.device == ""
        assert (scheduler.state.storage.devices.given, scheduler.mirror.assumed) == ({}, {})
        await world.end()

    run(story())


def test_a_claim_that_loses_its_devices_gets_them_again_but_no_more_time(tmp_path: Path) -> None:
    async def story() -> None:
        world = Attaching(tmp_path / "conf")
        world.begin()
        await asyncio.sleep(5)
        world.server.put("resourceclaims", {**world.claim, "status": {}})
        await asyncio.sleep(5)
        assert world.device == "d0"
        assert [user["name"] for user in world.claim["status"]["reservedFor"]] == ["p"]
        await asyncio.sleep(30)
        world.server.put("resourceclaims", {**world.claim, "status": {}})
        world.offer()
        await asyncio.sleep(22)
        assert world.device == "", "60 seconds after the first allocation"
        assert any("device binding timeout" in text for text in world.events("FailedScheduling"))
        await world.end()

    run(story())


def test_another_claim_of_the_name_gets_nothing_that_was_meant_for_the_first(tmp_path: Path) -> None:
    async def story() -> None:
        world = Attaching(tmp_path / "conf")
        world.begin()
        await asyncio.sleep(5)
        claim, meta = world.claim, {"name": "c", "namespace": "ns"}
        world.server.put("resourceclaims", {**claim, "metadata": {**claim["metadata"], "finalizers": []}})
        world.server.drop("resourceclaims", "c", "ns")
        requests = [{"name": "other", "exactly": claim["spec"]["devices"]["requests"][0]["exactly"]}]
        world.server.put("resourceclaims", {"metadata": meta, "spec": {"devices": {"requests": requests}}})
        await asyncio.sleep(5)
        assert any("claim ns/c got deleted" in text for text in world.events("FailedScheduling"))
        assert world.claim["status"]["allocation"]["devices"]["results"][0]["request"] == "other"
        await world.end()

    run(story())


def test_devices_that_keep_failing_are_tried_ever_more_seldom_and_told_once(tmp_path: Path) -> None:
    async def story() -> None:
        world = Attaching(tmp_path / "conf")
        world.begin()
        tries = 0
        for _ in range(120):
            await asyncio.sleep(0.5)
            if world.device and not world.claim["status"].get("devices"):
                tries += 1
                world.say("Broken")
        assert 4 <= tries <= 7, "after 1, 2, 4, 8, 16 and 30 seconds"
        assert len(world.events("BindingConditionsPending")) <= 2, "one for each node"
        while not world.device:
            await asyncio.sleep(0.5)
        world.say("Attached")
        await asyncio.sleep(2)
        assert world.pods()["p"]
        await world.end()

    run(story())


def test_pauses_grow_up_to_the_longest_and_end_with_a_success() -> None:
    retries, now, pauses = Retries(), 1000.0, []
    for _ in range(7):
        retries.failed("p", now)
        pause = next(seconds for seconds in range(1, 99) if retries.is_over("p", now + seconds))
        pauses.append(pause)
        now += pause
    assert pauses == [1, 2, 4, 8, 16, 30, 30]
    retries.failed("q", now)
    retries.succeeded("p")
    assert retries.is_over("p", now)
    retries.failed("r", now + 601)
    assert retries.is_over("q", now), "what failed long ago is forgotten"
