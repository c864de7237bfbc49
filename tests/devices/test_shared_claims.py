"""Claims that the pods of Kubernetes' own PodGroup share, where binds of some of them fail."""

from __future__ import annotations

import asyncio

import pytest

from stromboli.kube.transport import Request, Response
from tests.support.live_world import LiveWorld, pod
from tests.support.memory_server import status
from tests.support.virtual import run

GROUPS = "podgroups.scheduling.k8s.io"
ASKED = [{"name": "gpu", "resourceClaimName": "c"}]
USER = {"apiGroup": "scheduling.k8s.io", "resource": "podgroups", "name": "g", "uid": "uid-g"}


def world_of(*refused: str) -> LiveWorld:
    """A node with a device, a claim of it that two pods share, and the names of pods whose bindings are refused."""
    world = LiveWorld(nodes=1)
    put = world.server.put
    put("deviceclasses", {"metadata": {"name": "gpu"}, "spec": {}})
    spec = {"driver": "gpu.example.com", "nodeName": "n0", "devices": [{"name": "d"}],
            "pool": {"name": "n0", "generation": 1, "resourceSliceCount": 1}}  # fmt: skip
    put("resourceslices", {"metadata": {"name": "n0"}, "spec": spec})
    exactly = {"deviceClassName": "gpu", "count": 1, "allocationMode": "ExactCount"}
    metadata = {"name": "c", "namespace": "ns"}
    put(
        "resourceclaims", {"metadata": metadata, "spec": {"devices": {"requests": [{"name": "r", "exactly": exactly}]}}}
    )
    policy = {"schedulingPolicy": {"gang": {"minCount": 1}}, "resourceClaims": ASKED}
    put(GROUPS, {"metadata": {"name": "g", "namespace": "ns", "uid": "uid-g"}, "spec": policy})
    for name in ("a", "b"):
        put("pods", pod(name, resourceClaims=ASKED, schedulingGroup={"podGroupName": "g"}))

    def refuse(request: Request, when: str) -> Response | None:
        bound = request.path.removesuffix("/binding").rpartition("/")[2] if request.path.endswith("/binding") else ""
        return status(403, "Forbidden", "not today") if when == "before" and bound in refused else None

    world.server.faults.append(refuse)
    return world


@pytest.mark.parametrize(
    ("refused", "bound", "users"),
    [((), ["a", "b"], [USER]), (("b",), ["a"], [USER]), (("a",), ["b"], [USER]), (("a", "b"), [], [])],
)
def test_a_claim_stays_the_groups_as_long_as_one_of_its_pods_has_a_node(
    refused: tuple[str, ...], bound: list[str], users: list[dict[str, str]]
) -> None:
    async def main() -> None:
        world = world_of(*refused)
        process = world.start(world.scheduler())
        await asyncio.sleep(30)
        process.cancel()
        await asyncio.sleep(5)
        assert sorted(name for name, node in world.pods().items() if node) == bound
        found = world.server.get("resourceclaims", "c", "ns")["status"]
        assert (found.get("reservedFor") or [], "allocation" in found) == (users, bool(users))
        await world.end()

    run(main())


@pytest.mark.parametrize(("phase", "stays"), [("Running", True), ("Succeeded", False), ("Failed", False)])
def test_pods_that_have_ended_keep_no_claim_of_the_group(phase: str, stays: bool) -> None:
    async def main() -> None:
        world = world_of("a")
        other = pod("b", nodeName="n0", resourceClaims=ASKED, schedulingGroup={"podGroupName": "g"})
        world.server.put("pods", {**other, "status": {"phase": phase}})
        process = world.start(world.scheduler())
        await asyncio.sleep(30)
        process.cancel()
        await asyncio.sleep(5)
        found = world.server.get("resourceclaims", "c", "ns").get("status", {})
        assert bool(found.get("reservedFor")) == stays
        told = [one["message"] for one in world.server.all("events") if one["reason"] == "ClaimStaysAllocated"]
        text = "claim ns/c of the PodGroup keeps its devices, as pod b has a node or is about to have one"
        assert told == [text] * stays
        await world.end()

    run(main())
