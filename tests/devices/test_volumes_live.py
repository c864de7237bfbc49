"""Pods with claims on an embedded cluster: claims are bound first, and pods run where their volumes are."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml

from stromboli.live.scheduler.configuration import Source
from stromboli.live.up.up import Setup, up
from stromboli.server.kubelet.shapes import nodes_of
from stromboli.server.verbs.writing import Options
from stromboli.testing.builders import Manifest, pod, pod_group

SECONDS = 60.0
QUEUES = ("scheduling.volcano.sh", "queues", "")
ZONE = "topology.kubernetes.io/zone"
PAGE = Path(__file__).parents[2] / "docs/volumes.md"


def zoned() -> list[Any]:
    found = nodes_of(["3x4cpu,8Gi"])
    for number, body in enumerate(found):
        body["metadata"].setdefault("labels", {})[ZONE] = f"z{number}"
    return list(found)


def claim(name: str, **spec: Any) -> Manifest:
    whole = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}, **spec}
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": name}, "spec": whole}


def mounting(name: str, claim: str, group: str) -> Manifest:
    return pod(name, group=group, schedulerName="volcano", container={"image": "busybox"},
               volumes=[{"name": "data", "persistentVolumeClaim": {"claimName": claim}}])  # fmt: skip


@asynccontextmanager
async def cluster_of(*objects: Manifest, conf: str = "", record: Path | None = None) -> AsyncIterator[Any]:
    async with up(Setup(zoned(), period=0.05, source=Source(conf), record=record)) as cluster:
        api = cluster.serving.api
        await until(lambda: "default" in {one["metadata"]["name"] for one in api.bodies(*QUEUES) if is_open(one)})
        for body in objects:
            body = {key: value for key, value in body.items() if key != "status"}
            resource = api.catalogue.of_kind(body["apiVersion"], body["kind"])
            assert resource is not None
            api.writer.create(resource, "default" if resource.namespaced else "", body, Options())
        yield api


def is_open(queue: Any) -> bool:
    return bool((queue.get("status") or {}).get("state") == "Open")


async def until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(SECONDS):
        while not holds():
            await asyncio.sleep(0.02)


def placed(api: Any) -> dict[str, str]:
    bodies = api.bodies("", "pods", "default")
    return {body["metadata"]["name"]: body["spec"]["nodeName"] for body in bodies if body["spec"].get("nodeName")}


MADE = {"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": "made"},
        "provisioner": "csi.example.com", "volumeBindingMode": "WaitForFirstConsumer",
        "allowedTopologies": [{"matchLabelExpressions": [{"key": ZONE, "values": ["z1"]}]}]}  # fmt: skip


@pytest.mark.parametrize("recorded", [False, True])
def test_a_set_of_pods_lands_in_the_zone_where_its_volumes_are_made(tmp_path: Path, recorded: bool) -> None:
    async def story() -> tuple[dict[str, str], list[Any], list[Any]]:
        names = [f"db-{number}" for number in range(3)]
        pods = [mounting(name, f"data-{name}", "db") for name in names]
        claims = [claim(f"data-{name}", storageClassName="made") for name in names]
        objects = [MADE, *claims, pod_group("db", min_member=3), *pods]
        async with cluster_of(*objects, record=tmp_path if recorded else None) as api:
            await until(lambda: len(placed(api)) == len(names))
            claims = list(api.bodies("", "persistentvolumeclaims", "default"))
            return placed(api), claims, list(api.bodies("", "persistentvolumes", ""))

    where, claims, volumes = asyncio.run(story())
    assert set(where.values()) == {zoned()[1]["metadata"]["name"]}
    assert [one["status"]["phase"] for one in claims] == ["Bound"] * 3
    assert {one["spec"]["volumeName"] for one in claims} == {one["metadata"]["name"] for one in volumes}
    [[term]] = {tuple(map(str, v["spec"]["nodeAffinity"]["required"]["nodeSelectorTerms"])) for v in volumes}
    assert "z1" in term


@pytest.mark.parametrize("recorded", [False, True])
def test_claims_without_a_class_and_those_of_a_pod_alone_are_bound(tmp_path: Path, recorded: bool) -> None:
    own = pod("alone", group="g", schedulerName="volcano", container={"image": "busybox"}, volumes=[
        {"name": "scratch", "ephemeral": {"volumeClaimTemplate": {"spec": claim("x")["spec"]}}}])  # fmt: skip

    async def story() -> dict[str, str]:
        objects = [claim("c"), pod_group("g"), mounting("p", "c", "g"), own]
        async with cluster_of(*objects, record=tmp_path if recorded else None) as api:
            await until(lambda: len(placed(api)) == 2)
            return placed(api)

    assert asyncio.run(story()).keys() == {"p", "alone"}


AT_ONCE = """\
actions: "enqueue, allocate"
tiers:
- plugins:
  - {name: gang}
  - {name: predicates, arguments: {volumebinding.bindTimeoutSeconds: 0}}
"""


def test_a_claim_that_nothing_binds_is_given_back_in_time(tmp_path: Path) -> None:
    conf = tmp_path / "conf"
    conf.write_text(AT_ONCE)
    named = {**MADE, "provisioner": "kubernetes.io/no-provisioner"}
    volume = yaml.load(PAGE.read_text().split("```yaml")[1].split("```")[0].split("---")[1], yaml.CSafeLoader)
    node = zoned()[0]["metadata"]["name"]
    volume["spec"]["nodeAffinity"]["required"]["nodeSelectorTerms"][0]["matchExpressions"][0]["values"] = [node]
    volume["spec"]["storageClassName"] = "made"

    async def story() -> tuple[list[str], dict[str, str]]:
        objects = named, volume, claim("c", storageClassName="made"), pod_group("g")
        async with cluster_of(*objects, conf=str(conf)) as api:
            api.store.listeners[:] = [each for each in api.store.listeners if "Workloads" not in repr(each)]
            resource = api.catalogue.of_kind("v1", "Pod")
            body = {key: value for key, value in mounting("p", "c", "g").items() if key != "status"}
            api.writer.create(resource, "default", body, Options())
            seen: list[str] = []

            def taken_back() -> bool:
                [found] = api.bodies("", "persistentvolumes", "")
                seen.append("claimed" if found["spec"].get("claimRef") else "free")
                return "claimed" in seen and seen[-1] == "free"

            await until(taken_back)
            return seen, placed(api)

    seen, where = asyncio.run(story())
    assert {"claimed", "free"} <= set(seen)
    assert where == {}


def test_the_example_of_the_page_runs_as_it_says() -> None:
    objects = list(yaml.load_all(PAGE.read_text().split("```yaml")[1].split("```")[0], yaml.CSafeLoader))
    volume = next(each for each in objects if each["kind"] == "PersistentVolume")
    [node] = {zoned()[1]["metadata"]["name"]}
    volume["spec"]["nodeAffinity"]["required"]["nodeSelectorTerms"][0]["matchExpressions"][0]["values"] = [node]

    async def story() -> dict[str, str]:
        async with cluster_of(*objects) as api:
            await until(lambda: "reader" in placed(api))
            return placed(api)

    assert asyncio.run(story()) == {"reader": node}
