"""Pods that want GPUs are let in and bound: by the controllers and scheduler of a cluster, and in plans of files."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from stromboli.builtin import full_registry
from stromboli.live.scheduler.configuration import Source
from stromboli.live.up.up import Setup, up
from stromboli.server.kubelet.shapes import nodes_of
from stromboli.server.verbs.writing import Options
from stromboli.sim.planning import Planning, Settings, config_of
from tests.cli import manifests
from tests.support.gpu_workloads import CONFIGURATIONS, GPU, QUEUE, QUOTA, RDMA, job, pod, replica_set

NODES = [f"2x8cpu,32Gi,{GPU}=4,{RDMA}=8"]
SECONDS = 30.0
FITTING = {"train-worker-0", "train-worker-1", "alone", "web-0", "web-1"}
"""Seven GPUs, which is what queue and quota allow."""


def source_of(folder: Path, name: str) -> str:
    """The file of a configuration, empty for the built-in one."""
    if not CONFIGURATIONS[name]:
        return ""
    (file := folder / "scheduler.conf").write_text(CONFIGURATIONS[name])
    return str(file)


def created(cluster: Any, body: dict[str, Any]) -> dict[str, Any]:
    """The object as the API server stores it."""
    api = cluster.serving.api
    resource = api.catalogue.of_kind(body["apiVersion"], body["kind"])
    stored: dict[str, Any] = api.writer.create(resource, "default", body, Options()).body
    return stored


@pytest.mark.parametrize("name", CONFIGURATIONS)
def test_gpu_workloads_run_in_a_cluster(tmp_path: Path, name: str) -> None:
    examples = [QUEUE, QUOTA, job("train", 2, 2)]
    setup = Setup(nodes_of(NODES), source=Source(source_of(tmp_path, name)), examples=examples, period=0.05)

    async def story() -> tuple[dict[str, str], list[dict[str, Any]]]:
        async with up(setup) as cluster:
            api = cluster.serving.api
            owner = created(cluster, replica_set("web"))["metadata"]
            for body in (pod("alone", 1), pod("web-0", 1, owner), pod("web-1", 1, owner)):
                created(cluster, body)
            async with asyncio.timeout(SECONDS):
                while len(bound := placed(api.bodies("", "pods", "default"))) < len(FITTING):
                    await asyncio.sleep(0.05)
            return bound, list(api.bodies("scheduling.volcano.sh", "podgroups", "default"))

    bound, groups = asyncio.run(story())
    assert bound.keys() == FITTING
    asked = [group["spec"]["minResources"] for group in groups]
    assert sorted((least[GPU], least[f"requests.{GPU}"]) for least in asked) == [("1", "1"), ("1", "1"), ("4", "4")]
    limits = {"limits.cpu", "limits.memory"}
    assert all({key for key in least if key.startswith("limits.")} == limits for least in asked)


def placed(pods: Any) -> dict[str, str]:
    """Node by name of the pods that have one."""
    return {body["metadata"]["name"]: body["spec"]["nodeName"] for body in pods if body["spec"].get("nodeName")}


OFFER = {"cpu": "8", "memory": "32Gi", GPU: "4", RDMA: "8"}
"""What each node of the plans offers."""


@pytest.mark.parametrize("name", CONFIGURATIONS)
def test_gpu_workloads_are_planned(tmp_path: Path, name: str) -> None:
    """The seven GPUs that queue and quota allow are given, and no job that wants more is let in."""
    config = source_of(tmp_path, name)
    owner = {"name": "web", "uid": "web"}
    quota = {**QUOTA, "status": {"hard": QUOTA["spec"]["hard"], "used": {}}}
    pods = [pod("alone", 1), pod("web-0", 1, owner), pod("web-1", 1, owner)]
    objects = [manifests.node(f"n{number}", **OFFER) for number in (1, 2)]
    registry = full_registry()
    planning = Planning(config_of(Settings(config=config), registry), registry, now=1_800_000_000.0)
    objects += [QUEUE, quota, job("train", 2, 2), job("more", 1, 8), *pods]
    planning.load([manifests.write(tmp_path, objects)])
    planning.run()
    (plan,) = planning.plans
    assert {bind.key.removeprefix("default/") for bind in plan.binds} == FITTING
    assert planning.state.jobs["default/more"].phase == "Pending"
