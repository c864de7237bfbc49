"""Claims of a pod that is about to be bound: written once, waited for, and given back."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from msgspec import to_builtins
from msgspec.structs import replace

from stromboli.errors import ApiError, Unreachable
from stromboli.framework.books.plan import Bind
from stromboli.kube.transport import Request, Response
from stromboli.live.scheduler.scheduler import LiveScheduler
from stromboli.live.writing.claims import FINALIZER, ClaimWriter
from stromboli.model.claims import Allocation, DeviceResult, DeviceResults
from tests.support.live_world import Directed, group, pod, uid
from tests.support.virtual import run

Json = dict[str, Any]
PLAIN = DeviceResult("r", "driver", "pool", "plain")
SLOW = DeviceResult("r", "driver", "pool", "slow", binding_conditions=("Up",), binding_failure_conditions=("Broken",))


class Claims:
    """A pod with a claim for each of ``devices``, and what writes them."""

    def __init__(self, world: Directed, scheduler: LiveScheduler, devices: tuple[DeviceResult, ...]) -> None:
        self.world, self.scheduler = world, scheduler
        self.writer = ClaimWriter(scheduler.executor._context)
        given = {f"ns/{one.device}": Allocation(DeviceResults((one,))) for one in devices}
        self.bind = Bind(uid(world, "job-0"), "ns/job-0", "ns/job", "n1", claims=given, claim_seconds=60)

    @classmethod
    async def of(cls, tmp_path: Path, *devices: DeviceResult) -> Claims:
        world = Directed()
        world.server.put("podgroups", group("job", 1))
        world.server.put("pods", pod("job-0", "job"))
        for one in devices:
            world.server.put("resourceclaims", {"metadata": {"name": one.device, "namespace": "ns"}, "spec": {}})
        return cls(world, await world.directed(tmp_path), devices)

    async def ready(self) -> bool:
        """A look, the news of which have come."""
        try:
            return await self.writer.ready(self.bind)
        finally:
            await asyncio.sleep(0.1)

    def found(self, one: DeviceResult) -> Json:
        body: Json = self.world.server.get("resourceclaims", one.device, "ns")
        return body

    async def say(self, one: DeviceResult, *conditions: str, of: DeviceResult | None = None) -> None:
        """The driver says so of the claim's device, and nothing else."""
        told = [{"type": name, "status": "True", "reason": "R", "message": "m" * 257} for name in conditions]
        about = of or one
        device = {"driver": about.driver, "pool": about.pool, "device": about.device, "conditions": told}
        body = self.found(one)
        self.world.server.put("resourceclaims", {**body, "status": {**body["status"], "devices": [device]}})
        await asyncio.sleep(0.1)

    def pending(self) -> int:
        """How often the pod got the condition that it waits for its devices."""
        events = self.world.server.all("events")
        return sum(one.get("count", 1) for one in events if one["reason"] == "BindingConditionsPending")


def test_a_device_that_is_not_ready_is_written_once_and_waited_for(tmp_path: Path) -> None:
    """One claim of two has such a device; the pod's condition says once that it waits."""

    async def story() -> None:
        claims = await Claims.of(tmp_path, PLAIN, SLOW)
        assert not await claims.ready()
        assert [bool(claims.found(one)["status"]["allocation"]) for one in (PLAIN, SLOW)] == [True, True]
        claims.world.server.requests.clear()
        assert [await claims.ready() for _ in range(3)] == [False] * 3
        assert [one.path for one in claims.world.server.requests if "resourceclaims" in one.path] == []
        await claims.say(SLOW, "Up")
        assert await claims.ready()
        await claims.scheduler.recorder.drain()
        assert claims.pending() == 1
        await claims.world.end()

    run(story())


def test_devices_that_need_nothing_or_are_ready_are_not_waited_for(tmp_path: Path) -> None:
    async def story() -> None:
        claims = await Claims.of(tmp_path, PLAIN)
        assert await claims.ready()
        given = {"ns/plain": Allocation(DeviceResults((SLOW,)))}
        status = {"allocation": to_builtins(given["ns/plain"])}
        claims.world.server.put("resourceclaims", {**claims.found(PLAIN), "status": status})
        await claims.say(PLAIN, "Up", of=SLOW)
        claims.bind = replace(claims.bind, claims=given)
        assert await claims.ready()
        await claims.scheduler.recorder.drain()
        assert (claims.pending(), claims.writer._since) == (0, {})
        await claims.world.end()

    run(story())


def test_a_pod_whose_devices_fail_is_left_alone_for_longer_each_time_until_they_are_ready(tmp_path: Path) -> None:
    async def story() -> list[float]:
        claims = await Claims.of(tmp_path, SLOW)
        pauses = []
        for last in ("Broken", "Broken", "Up", "Broken"):
            assert not await claims.ready(), "it is allocated, and waits"
            await claims.say(SLOW, last)
            if last == "Up":
                assert await claims.ready()
            else:
                with pytest.raises(ApiError, match=r"device binding failed: .*, reason=R, message='m{256}'$"):
                    await claims.ready()
            claims.writer.forget(claims.bind)
            claims.world.server.put("resourceclaims", {**claims.found(SLOW), "status": {}})
            pauses.append(0.0)
            while not claims.found(SLOW)["status"].get("allocation"):
                await asyncio.sleep(0.4)
                await claims.ready()
                pauses[-1] += 0.5
        await claims.world.end()
        return pauses

    assert run(story()) == [1.0, 2.0, 0.5, 1.0]


def test_what_an_earlier_scheduler_wrote_for_a_pod_is_given_back_though_it_was_never_read(tmp_path: Path) -> None:
    async def story() -> None:
        claims = await Claims.of(tmp_path, PLAIN)
        assert await claims.ready()
        later = ClaimWriter(claims.scheduler.executor._context)
        out = [True]

        def fault(request: Request, when: str) -> Response | None:
            if out and "resourceclaims" in request.path:
                raise Unreachable("no route", request=str(request))
            return None

        claims.world.server.faults.append(fault)
        with pytest.raises(Unreachable):
            await later.ready(claims.bind)
        out.clear()
        await later.take_back(claims.bind)
        assert not claims.found(PLAIN)["status"].get("allocation")
        await claims.world.end()

    run(story())


def test_what_is_written_is_known_at_once_and_protected_until_it_is_given_back(tmp_path: Path) -> None:
    async def story() -> None:
        claims = await Claims.of(tmp_path, PLAIN)
        claims.world.server.watches = []
        assert await claims.writer.ready(claims.bind)
        devices = claims.scheduler.state.storage.devices
        known = devices.claim("ns/plain")
        assert known is not None
        assert known.status.allocation is not None
        body = claims.found(PLAIN)
        assert body["metadata"]["finalizers"] == [FINALIZER]
        claims.world.server.put("resourceclaims", {**body, "metadata": {**body["metadata"], "finalizers": []}})
        await claims.writer.take_back(claims.bind)
        assert claims.found(PLAIN)["metadata"]["finalizers"] == []
        known = devices.claim("ns/plain")
        assert known is not None
        assert known.status.allocation is None
        await claims.world.end()

    run(story())


@pytest.mark.parametrize(
    ("before", "after", "is_over"),
    [(0.0, 59.9, False), (0.0, 60.0, True), (50.0, 9.9, False), (50.0, 10.0, True)],
    ids=["soon", "after its time", "soon after a restart", "after its time with a restart in it"],
)
def test_a_device_has_its_time_to_become_ready_and_no_more(
    before: float, after: float, is_over: bool, tmp_path: Path
) -> None:
    """``before`` an earlier scheduler has waited, ``after`` the present one."""

    async def story() -> None:
        claims = await Claims.of(tmp_path, SLOW)
        now = 1_800_000_000.0
        claims.scheduler.executor._context.clock = lambda: now
        if before:
            assert not await claims.ready()
            claims.writer, now = ClaimWriter(claims.scheduler.executor._context), now + before
        assert not await claims.ready()
        now += after
        if is_over:
            with pytest.raises(ApiError, match="device binding timeout: claim=ns/slow, not ready within 60 seconds"):
                await claims.ready()
        else:
            assert not await claims.ready()
        await claims.world.end()

    run(story())


def test_of_claims_that_are_waited_for_those_that_have_lost_their_devices_get_them_again(tmp_path: Path) -> None:
    async def story() -> None:
        claims = await Claims.of(tmp_path, PLAIN, SLOW)
        assert not await claims.ready()
        claims.world.server.put("resourceclaims", {**claims.found(PLAIN), "status": {}})
        await asyncio.sleep(0.1)
        assert not await claims.ready()
        assert claims.found(PLAIN)["status"]["allocation"]
        await claims.world.end()

    run(story())


def test_others_that_use_a_claim_stay_its_users(tmp_path: Path) -> None:
    async def story() -> None:
        claims = await Claims.of(tmp_path, PLAIN)
        other = {"resource": "pods", "name": "other", "uid": "uid-of-other"}
        status = {"allocation": to_builtins(claims.bind.claims["ns/plain"]), "reservedFor": [other]}
        claims.world.server.put("resourceclaims", {**claims.found(PLAIN), "status": status})
        await asyncio.sleep(0.1)
        assert await claims.ready()
        users = claims.found(PLAIN)["status"]["reservedFor"]
        assert [one["uid"] for one in users] == ["uid-of-other", claims.bind.uid]
        await claims.world.end()

    run(story())
