"""Pods with ResourceClaims on an embedded cluster: claims are made, allocated, written and freed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from stromboli.errors import ApiError
from stromboli.live.up.up import Setup, up
from stromboli.live.writing.claims import FINALIZER, released, reserved
from stromboli.model.claims import Allocation, DeviceResult, DeviceResults
from stromboli.server.controllers.workloads.claims import GROUPS, Members, related
from stromboli.server.kubelet.shapes import nodes_of
from stromboli.server.storage.store import Change, Entry, Store
from stromboli.server.verbs.writing import Deletion, Options
from stromboli.testing.builders import Manifest, pod, pod_group

SECONDS = 60.0
QUEUES = ("scheduling.volcano.sh", "queues", "")
CLAIMS = ("resource.k8s.io", "resourceclaims", "default")
API = "resource.k8s.io/v1"
DRIVER = "gpu.example.com"


def devices_of(node: str, count: int) -> Manifest:
    spec = {"driver": DRIVER, "nodeName": node, "pool": {"name": node, "generation": 1, "resourceSliceCount": 1},
            "devices": [{"name": f"gpu-{number}"} for number in range(count)]}  # fmt: skip
    return {"apiVersion": API, "kind": "ResourceSlice", "metadata": {"name": f"{node}-gpus"}, "spec": spec}


CLASS = {"apiVersion": API, "kind": "DeviceClass", "metadata": {"name": "gpu"},
         "spec": {"selectors": [{"cel": {"expression": f'device.driver == "{DRIVER}"'}}]}}  # fmt: skip
ASKED = {"devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": "gpu"}}]}}
TEMPLATE = {"apiVersion": API, "kind": "ResourceClaimTemplate", "metadata": {"name": "one"}, "spec": {"spec": ASKED}}


def member(name: str, group: str) -> Manifest:
    return pod(name, group=group, schedulerName="volcano", container={"image": "busybox"},
               resourceClaims=[{"name": "gpu", "resourceClaimTemplateName": "one"}])  # fmt: skip


@asynccontextmanager
async def cluster_of(*objects: Manifest) -> AsyncIterator[Any]:
    nodes = nodes_of(["2x4cpu,8Gi"])
    async with up(Setup(list(nodes), period=0.05)) as cluster:
        api = cluster.serving.api
        await until(lambda: "default" in {one["metadata"]["name"] for one in api.bodies(*QUEUES) if "status" in one})
        make(api, *(devices_of(body["metadata"]["name"], 1) for body in nodes), *objects)
        yield api


def make(api: Any, *objects: Manifest) -> None:
    for body in objects:
        body = {key: value for key, value in body.items() if key != "status"}
        resource = api.catalogue.of_kind(body["apiVersion"], body["kind"])
        api.writer.create(resource, "default" if resource.namespaced else "", body, Options())


async def until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(SECONDS):
        while not holds():
            await asyncio.sleep(0.02)


def placed(api: Any) -> dict[str, str]:
    bodies = api.bodies("", "pods", "default")
    return {body["metadata"]["name"]: body["spec"]["nodeName"] for body in bodies if body["spec"].get("nodeName")}


def test_a_gang_with_templates_starts_whole_and_the_next_one_when_its_devices_are_free() -> None:
    async def story() -> tuple[list[Any], list[str]]:
        gang = [pod_group("a", min_member=2), member("a-0", "a"), member("a-1", "a")]
        async with cluster_of(CLASS, TEMPLATE, *gang) as api:
            await until(lambda: len(placed(api)) == 2)
            claims = list(api.bodies(*CLAIMS))
            make(api, pod_group("b", min_member=2), member("b-0", "b"), member("b-1", "b"))
            await until(lambda: any("cannot allocate" in one["message"] for one in api.bodies("", "events", "default")))
            waiting = sorted(placed(api))
            resource = api.catalogue.of_kind("v1", "Pod")
            for name in ("a-0", "a-1"):
                api.writer.delete(resource, ("default", name), Deletion(grace=0), Options())
            await until(lambda: sorted(placed(api)) == ["b-0", "b-1"])
            return claims, waiting

    claims, waiting = asyncio.run(story())
    assert waiting == ["a-0", "a-1"]
    assert len({one["status"]["allocation"]["devices"]["results"][0]["pool"] for one in claims}) == 2
    assert {user["name"] for one in claims for user in one["status"]["reservedFor"]} == {"a-0", "a-1"}
    assert all(FINALIZER in one["metadata"]["finalizers"] for one in claims)


SHARED = [{"name": "gpu", "resourceClaimTemplateName": "one"}]


def upstream(name: str, least: int, **spec: Any) -> Manifest:
    policy = {"schedulingPolicy": {"gang": {"minCount": least}}}
    metadata = {"name": name, "namespace": "default"}
    return {"apiVersion": "scheduling.k8s.io/v1beta1", "kind": "PodGroup", "metadata": metadata, "spec": policy | spec}


def sharing(name: str, group: str) -> Manifest:
    return pod(name, schedulerName="volcano", container={"image": "busybox"}, schedulingGroup={"podGroupName": group},
               resourceClaims=SHARED)  # fmt: skip


def users(api: Any) -> list[list[tuple[str, str]]]:
    """The pods or groups for which each claim is reserved, by its oldest first."""
    claims = sorted(api.bodies(*CLAIMS), key=lambda one: int(one["metadata"]["resourceVersion"]))
    found = [one.get("status", {}).get("reservedFor", ()) for one in claims]
    return [[(user["resource"], user["name"]) for user in one] for one in found]


def test_pods_of_a_group_share_its_claim_which_stays_for_as_long_as_the_group_does() -> None:
    async def story() -> None:
        gang = [sharing("a-0", "a"), sharing("a-1", "a")]
        async with cluster_of(CLASS, TEMPLATE, upstream("a", 2, resourceClaims=SHARED), *gang) as api:
            await until(lambda: len(placed(api)) == 2)
            assert len(set(placed(api).values())) == 1, "where the shared device is"
            assert users(api) == [[("podgroups", "a")]]
            [claim] = api.bodies(*CLAIMS)
            assert FINALIZER in claim["metadata"]["finalizers"]
            named = [{"name": "gpu", "resourceClaimName": claim["metadata"]["name"]}]
            for body in (*api.bodies("", "pods", "default"), *api.bodies("scheduling.k8s.io", "podgroups", "default")):
                assert body["status"]["resourceClaimStatuses"] == named
            pods, groups = (api.catalogue.of_kind(*one) for one in (("v1", "Pod"), (UPSTREAM, "PodGroup")))
            for name in ("a-0", "a-1"):
                api.writer.delete(pods, ("default", name), Deletion(grace=0), Options())
            await until(lambda: not placed(api))
            await asyncio.sleep(0.5)
            assert users(api) == [[("podgroups", "a")]], "its devices stay the group's"
            make(api, sharing("a-2", "a"), sharing("a-3", "a"), upstream("b", 1), sharing("b-0", "b"))
            await until(lambda: sorted(placed(api)) == ["a-2", "a-3", "b-0"])
            assert sorted(users(api)) == [[("podgroups", "a")], [("pods", "b-0")]], "b shares nothing"
            for name in ("a-2", "a-3"):
                api.writer.delete(pods, ("default", name), Deletion(grace=0), Options())
            api.writer.delete(groups, ("default", "a"), Deletion(propagation="Background"), Options())
            await until(lambda: users(api) == [[("pods", "b-0")]])

    asyncio.run(story())


@pytest.mark.parametrize("shared", [True, False])
def test_pods_that_come_before_their_group_wait_for_it_with_their_claims(shared: bool) -> None:
    async def story() -> None:
        async with cluster_of(CLASS, TEMPLATE, sharing("a-0", "a"), sharing("a-1", "a")) as api:
            await asyncio.sleep(0.5)
            assert not list(api.bodies(*CLAIMS)), "the owner of the claims is not known yet"
            make(api, upstream("a", 2, **({"resourceClaims": SHARED} if shared else {})))
            await until(lambda: len(placed(api)) == 2)
            owners = [("podgroups", "a")] if shared else [("pods", "a-0"), ("pods", "a-1")]
            assert sorted(one for found in users(api) for one in found) == owners
            assert len(list(api.bodies(*CLAIMS))) == len(owners)

    asyncio.run(story())


def test_pods_are_looked_at_where_their_group_is_new_or_names_a_claim() -> None:
    members, store = Members(), Store()
    for name, group in (("a-0", "a"), ("a-1", "a"), ("b-0", "b")):
        members.note(sharing(name, group), is_gone=False)
    members.note(sharing("a-1", "a"), is_gone=True)

    def looked_at(before: Manifest | None, now: Manifest) -> list[str]:
        known = None if before is None else Entry(before, b"", 1)
        found = related(store, members, GROUPS, Change(1, "MODIFIED", Entry(now, b"", 1), known))
        return [name for _, (_, name) in found]

    new = upstream("a", 2, resourceClaims=SHARED)
    told = {**new, "status": {"conditions": [{"type": "PodGroupInitiallyScheduled", "status": "True"}]}}
    naming = {**new, "status": {"resourceClaimStatuses": [{"name": "gpu", "resourceClaimName": "c"}]}}
    assert looked_at(None, new) == ["a-0"]
    assert looked_at(new, told) == []
    assert looked_at(told, naming) == ["c", "a-0"]


UPSTREAM = "scheduling.k8s.io/v1beta1"
GIVEN = Allocation(DeviceResults((DeviceResult("r", DRIVER, "n0", "gpu-0"),)))
NOW = "2026-01-01T00:00:00Z"
USER = {"resource": "pods", "name": "p", "uid": "uid-p"}


def test_what_is_written_is_taken_back() -> None:
    status = reserved({"metadata": {}, "status": {}}, USER, "ns/c", GIVEN, NOW)
    assert status is not None
    assert status["reservedFor"] == [USER]
    assert status["allocation"]["allocationTimestamp"] == NOW
    later = reserved(
        {"metadata": {}, "status": {**status, "reservedFor": []}}, USER, "ns/c", GIVEN, "2027-01-01T00:00:00Z"
    )
    assert later == status, "what is allocated stays as it is"
    assert reserved({"metadata": {}, "status": status}, USER, "ns/c", GIVEN, NOW) is None
    assert released({"status": status}, "uid-p") == {"reservedFor": None, "allocation": None}
    other = {**USER, "name": "q", "uid": "uid-q"}
    assert released({"status": {**status, "reservedFor": [USER, other]}}, "uid-p") == {"reservedFor": [other]}
    assert released({"status": status}, "uid-q") is None


@pytest.mark.parametrize(
    "body",
    [
        {"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}},
        {"metadata": {}, "status": {"allocation": {"devices": {"results": [{"request": "r", "driver": DRIVER}]}}}},
    ],
)
def test_a_claim_that_is_going_or_has_other_devices_is_left_alone(body: Any) -> None:
    with pytest.raises(ApiError, match="in the meantime"):
        reserved(body, USER, "ns/c", GIVEN, NOW)
