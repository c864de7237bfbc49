"""Pods with devices and volumes on each kind of server: shares of cards, MIG, claims made from templates, zones."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any, Final

import pytest

from e2e.clusters import MERGE, STROMBOLI, Json
from e2e.devices.drivers import DEVICES, LOCK, PHASE, ZONE, Drivers
from e2e.objects import job
from e2e.proxy import Proxy, Strike
from e2e.real import ended
from e2e.stage import GROUPS, JOBS, Stage, until

V: Final = "volcano.sh/vgpu-"
IDS: Final = f"{V}ids-new"
REGISTER: Final = "volcano.sh/node-vgpu-register"
DRIVER: Final = "gpu.example.com"
FABRIC: Final = "fabric.example.com"
API: Final = "resource.k8s.io/v1"
NODES: Final = {"card": "z0", "mig": "z0", "claim-0": "z1", "claim-1": "z1"}
"""Nodes with devices, and the zone of each."""
CARDS: Final = {
    "card": "GPU-0,10,4000,NVIDIA-T4,true,hami-core:GPU-2,10,4000,NVIDIA-T4,true,hami-core:",
    "mig": "GPU-1,10,40960,NVIDIA-A100-SXM4-40GB,true,mig:",
}
CONF: Final = """\
actions: "enqueue, allocate, backfill"
tiers:
- plugins:
  - name: priority
  - name: gang
- plugins:
  - name: predicates
  - name: deviceshare
    arguments: {deviceshare.VGPUEnable: true, deviceshare.NodeLockEnable: true, deviceshare.SchedulePolicy: binpack}
"""
SETTINGS: Final = """\
nvidia:
  knownMigGeometries:
  - models: ["A100-SXM4-40GB"]
    allowedGeometries:
    - group: seven
      geometries: [{name: 1g.5gb, memory: 5120, count: 7}]
    - group: three
      geometries: [{name: 2g.10gb, memory: 10240, count: 3}]
"""


def node(name: str) -> Json:
    """A node; with cards it has what its device plugin registers."""
    card = CARDS.get(name, "")
    memory = str(sum(int(each.split(",")[2]) for each in card.split(":") if each))
    devices = {f"{V}number": "20", f"{V}memory": memory, f"{V}cores": "200"} if card else {}
    meta = {"name": name, "labels": {ZONE: NODES[name]}, "annotations": {REGISTER: card} if card else {}}
    amounts = {"cpu": "8", "memory": "32Gi", "pods": "110", **devices}
    return {"apiVersion": "v1", "kind": "Node", "metadata": meta, "status": {"allocatable": amounts}}


def published(name: str, *devices: Json) -> Json:
    """What the driver of a node publishes."""
    spec = {"driver": DRIVER, "nodeName": name, "pool": {"name": name, "generation": 1, "resourceSliceCount": 1},
            "devices": list(devices)}  # fmt: skip
    return {"apiVersion": API, "kind": "ResourceSlice", "metadata": {"name": f"{name}-gpus"}, "spec": spec}


def fabric(*names: str) -> Json:
    """Devices that are attached to a node once they are allocated."""
    slow = {"bindsToNode": True, "bindingConditions": ["Attached"], "bindingFailureConditions": ["Broken"]}
    spec = {"driver": FABRIC, "allNodes": True, "devices": [{"name": name, **slow} for name in names],
            "pool": {"name": "fabric", "generation": 1, "resourceSliceCount": 1}}  # fmt: skip
    return {"apiVersion": API, "kind": "ResourceSlice", "metadata": {"name": "fabric-gpus"}, "spec": spec}


def offered() -> Iterator[Json]:
    """Devices of both nodes for claims: one that a claim has alone, and one that claims share; classes of all."""
    part = {"name": "part", "allowMultipleAllocations": True, "attributes": {"shared": {"bool": True}},
            "capacity": {"memory": {"value": "40Gi", "requestPolicy": {
                "default": "10Gi", "validRange": {"min": "2Gi", "step": "2Gi"}}}}}  # fmt: skip
    yield published("claim-0", {"name": "gpu-0", "attributes": {"shared": {"bool": False}}}, part)
    yield published("claim-1", {"name": "gpu-0", "attributes": {"shared": {"bool": False}}})
    yield fabric("d0")
    yield {"apiVersion": API, "kind": "DeviceClass", "metadata": {"name": "attached"},
           "spec": {"selectors": [{"cel": {"expression": f'device.driver == "{FABRIC}"'}}]}}  # fmt: skip
    for name, shared in (("whole", "false"), ("shared", "true")):
        own = f'device.driver == "{DRIVER}" && device.attributes["{DRIVER}"].shared == {shared}'
        yield {"apiVersion": API, "kind": "DeviceClass", "metadata": {"name": name},
               "spec": {"selectors": [{"cel": {"expression": own}}]}}  # fmt: skip
    yield {"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": "zonal"},
           "provisioner": "csi.example.com", "volumeBindingMode": "WaitForFirstConsumer",
           "allowedTopologies": [{"matchLabelExpressions": [{"key": ZONE, "values": ["z1"]}]}]}  # fmt: skip
    yield {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "volcano-vgpu-device-config",
           "namespace": "kube-system"}, "data": {"device-config.yaml": SETTINGS}}  # fmt: skip


@pytest.fixture(scope="module")
def equipped(stage: Stage) -> Iterator[Stage]:
    """A stage with nodes that have devices, which go again."""
    file = stage.folder / "equipped.json"
    file.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": [node(name) for name in NODES]}))
    process = stage.start("equipped", "kubelets", f"--nodes={file}", f"--kubeconfig={stage.server.kubeconfig}")
    until(lambda: {one["metadata"]["name"] for one in stage.items("/api/v1/nodes")} >= set(NODES), "nodes")
    stage.apply(offered())
    yield stage
    ended(process)
    del stage.running["equipped"]
    for name in NODES:
        stage.delete(f"/api/v1/nodes/{name}")
        stage.delete(f"/apis/{API}/resourceslices/{name}-gpus")
    stage.delete(f"/apis/{API}/resourceslices/fabric-gpus")


@pytest.fixture
def staged(equipped: Stage, space: str) -> Iterator[Stage]:
    """The stage with all that acts beside the scheduler in the story's namespace."""
    with Drivers(equipped, space).running():
        yield equipped
        equipped.clear(space)
        until(
            lambda: not [one for one in _claims(equipped, space) if one.get("status", {}).get("allocation")], "all free"
        )


def asking(space: str, name: str, memory: int) -> Json:
    """A job of one pod that asks for a part of a card."""
    body = job(space, name, 1)
    (container,) = body["spec"]["tasks"][0]["template"]["spec"]["containers"]
    amounts = {f"{V}number": "1", f"{V}memory": str(memory)}
    container["resources"]["limits"] = amounts
    container["resources"]["requests"].update(amounts)
    return body


def on(node_name: str, body: Json) -> Json:
    """The job, on that node."""
    body["spec"]["tasks"][0]["template"]["spec"]["nodeSelector"] = {"kubernetes.io/hostname": node_name}
    return body


def gone(stage: Stage, space: str, name: str) -> None:
    """Delete a job and its pods; a bare API server collects no garbage."""
    stage.delete(f"{JOBS.format(space)}/{name}")
    for pod in stage.pods(space, name):
        stage.delete(f"/api/v1/namespaces/{space}/pods/{pod['metadata']['name']}")


def why(stage: Stage, space: str, name: str) -> str:
    """What the scheduler says of a job that waits."""
    groups = [found for found in stage.items(GROUPS.format(space)) if found["metadata"]["name"].startswith(name)]
    conditions = [one for found in groups for one in found.get("status", {}).get("conditions") or ()]
    return " ".join(one["message"] for one in conditions if (one["type"], one["status"]) == ("Unschedulable", "True"))


def until_waits(stage: Stage, space: str, name: str, reason: str) -> None:
    """Wait until the scheduler has said so of a job, of which nothing is bound."""
    until(lambda: reason in why(stage, space, name), f"{name} waits: {reason}")
    assert not stage.bound(space, name)


def notes(stage: Stage, space: str, name: str) -> dict[str, str]:
    """The annotations of a job's pod."""
    (pod,) = stage.pods(space, name)
    return dict(pod["metadata"]["annotations"])


def printed(stage: Stage, *command: str) -> str:
    """What one of our commands prints into a pipe; workers of xdist set a width of 80 columns, which shells don't."""
    wide = {name: value for name, value in os.environ.items() if name != "COLUMNS"}
    access = f"--kubeconfig={stage.server.kubeconfig}"
    return subprocess.run([*STROMBOLI, *command, access], capture_output=True, text=True, check=True, env=wide).stdout


def locks(stage: Stage) -> list[str]:
    """Nodes that are locked."""
    found = {one["metadata"]["name"]: one["metadata"].get("annotations") or {} for one in stage.items("/api/v1/nodes")}
    return [name for name, texts in found.items() if LOCK in texts]


def test_two_pods_share_a_card_and_a_third_waits(equipped: Stage, space: str, staged: Stage) -> None:
    """800 MB are left on the first card and 3000 on the second: no card has 3500, though the node has."""
    with staged.scheduler(conf=CONF):
        for name, memory, held in (("a", 2000, "GPU-0"), ("b", 1200, "GPU-0"), ("other", 1000, "GPU-2")):
            staged.create(on("card", asking(space, name, memory)))
            staged.until_phase(space, name, "Running")
            assert notes(staged, space, name)[IDS] == f"{held},NVIDIA,{memory},0:"
        started = ("a", "b", "other")
        until(lambda: {notes(staged, space, name)[PHASE] for name in started} == {"success"}, "all are served")
        until(lambda: not locks(staged), "no node is locked any more")
        staged.create(on("card", asking(space, "c", 3500)))
        until_waits(staged, space, "c", "hami-vgpuDeviceSharing error")
        assert "GPU-0" in printed(staged, "job", "view", "a", "-n", space)
        assert "4,200 / 8,000" in printed(staged, "top", "--once")
        gone(staged, space, "other")
        staged.until_phase(space, "c", "Running")
        assert notes(staged, space, "c")[IDS] == "GPU-2,NVIDIA,3500,0:"


def test_a_mig_geometry_is_made_and_freed(equipped: Stage, space: str, staged: Stage) -> None:
    with staged.scheduler(conf=CONF):
        staged.create(on("mig", asking(space, "small", 5000)))
        staged.until_phase(space, "small", "Running")
        assert notes(staged, space, "small")[IDS].startswith("GPU-1[seven-0],NVIDIA,")
        staged.create(on("mig", asking(space, "large", 9000)))
        until_waits(staged, space, "large", "hami-vgpuDeviceSharing error")
        gone(staged, space, "small")
        staged.until_phase(space, "large", "Running")
        assert notes(staged, space, "large")[IDS].startswith("GPU-1[three-0],NVIDIA,")


def claiming(space: str, name: str, count: int, template: str) -> Json:
    """A gang each of whose pods has a claim made from a template."""
    body = job(space, name, count)
    spec = body["spec"]["tasks"][0]["template"]["spec"]
    spec["resourceClaims"] = [{"name": "gpu", "resourceClaimTemplateName": template}]
    spec["containers"][0]["resources"]["claims"] = [{"name": "gpu"}]
    return body


def template(space: str, name: str, device_class: str, **more: Any) -> Json:
    asked = {"requests": [{"name": "gpu", "exactly": {"deviceClassName": device_class, **more}}]}
    return {"apiVersion": API, "kind": "ResourceClaimTemplate", "metadata": {"name": name, "namespace": space},
            "spec": {"spec": {"devices": asked}}}  # fmt: skip


def claims(stage: Stage, space: str, name: str) -> list[Json]:
    """The claims of a job's pods."""
    return [one for one in _claims(stage, space) if one["metadata"]["name"].startswith(f"{name}-")]


def _is_allocated(claim: Json) -> bool:
    return bool((claim.get("status") or {}).get("allocation"))


def _claims(stage: Stage, space: str) -> list[Json]:
    return stage.items(f"/{DEVICES}/namespaces/{space}/resourceclaims")


def results(stage: Stage, space: str, name: str) -> list[Json]:
    """The devices that the claims of a job's pods have."""
    given = [(one.get("status") or {}).get("allocation") for one in claims(stage, space, name)]
    return [result for each in given if each for result in each["devices"]["results"]]


def test_a_gang_with_claim_templates_starts_whole_or_not_at_all(equipped: Stage, space: str, staged: Stage) -> None:
    staged.apply([template(space, "one", "whole")])
    with staged.scheduler(conf=CONF):
        staged.create(claiming(space, "first", 2, "one"))
        staged.until_phase(space, "first", "Running")
        assert sorted(one["pool"] for one in results(staged, space, "first")) == ["claim-0", "claim-1"]
        staged.create(claiming(space, "second", 2, "one"))
        until_waits(staged, space, "second", "cannot allocate all claims")
        assert len(claims(staged, space, "second")) == 2
        assert results(staged, space, "second") == []
        gone(staged, space, "first")
        staged.until_phase(space, "second", "Running")
        assert sorted(one["pool"] for one in results(staged, space, "second")) == ["claim-0", "claim-1"]


def test_claims_share_a_device_by_its_capacity(equipped: Stage, space: str, staged: Stage) -> None:
    staged.apply([template(space, "part", "shared", capacity={"requests": {"memory": "19Gi"}})])
    with staged.scheduler(conf=CONF):
        staged.create(claiming(space, "pair", 2, "part"))
        staged.until_phase(space, "pair", "Running")
        given = results(staged, space, "pair")
        assert [one["consumedCapacity"] for one in given] == [{"memory": "20Gi"}] * 2
        assert len({one["shareID"] for one in given}) == 2
        staged.create(claiming(space, "more", 1, "part"))
        until_waits(staged, space, "more", "cannot allocate all claims")
        gone(staged, space, "pair")
        staged.until_phase(space, "more", "Running")


def say(stage: Stage, space: str, claim: Json, condition: str) -> None:
    """What the driver says of the device that a claim has."""
    (one,) = claim["status"]["allocation"]["devices"]["results"]
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    told = {"type": condition, "status": "True", "reason": "Fabric", "message": "port 3", "lastTransitionTime": now}
    devices = [{**{key: one[key] for key in ("driver", "pool", "device")}, "conditions": [told]}]
    path = f"/{DEVICES}/namespaces/{space}/resourceclaims/{claim['metadata']['name']}/status"
    stage.api.call("PATCH", path, {"status": {"devices": devices}}, MERGE)


def test_a_pod_waits_until_its_device_is_attached(equipped: Stage, space: str, staged: Stage) -> None:
    """Where that fails the device is given back, the pod gets a condition, and then the device offered instead."""
    staged.apply([template(space, "slow", "attached")])
    with staged.scheduler(conf=CONF):
        staged.create(claiming(space, "job", 1, "slow"))
        until(lambda: [one["device"] for one in results(staged, space, "job")] == ["d0"], "a device is allocated")
        events = f"/api/v1/namespaces/{space}/events"
        until(lambda: any(one["reason"] == "BindingConditionsPending" for one in staged.items(events)), "it is told")
        assert not staged.bound(space, "job")
        path, old = f"/{DEVICES}/resourceslices/fabric-gpus", fabric("d1")["spec"]
        staged.api.call("PATCH", path, {"spec": {"devices": old["devices"]}}, MERGE)
        (claim,) = claims(staged, space, "job")
        say(staged, space, claim, "Broken")
        until(lambda: [one["device"] for one in results(staged, space, "job")] == ["d1"], "another one is allocated")
        (claim,) = claims(staged, space, "job")
        assert not claim["status"].get("devices")
        assert any("device binding failed" in one["message"] for one in staged.items(events))
        say(staged, space, claim, "Attached")
        staged.until_phase(space, "job", "Running")
        fields = claim["status"]["allocation"]["nodeSelector"]["nodeSelectorTerms"][0]["matchFields"]
        assert fields[0]["values"] == list(staged.bound(space, "job").values())


def test_a_set_of_pods_lands_in_the_zone_of_its_volumes(equipped: Stage, space: str, staged: Stage) -> None:
    with staged.scheduler(conf=CONF):
        wanted = {"accessModes": ["ReadWriteOnce"], "storageClassName": "zonal",
                  "resources": {"requests": {"storage": "1Gi"}}}  # fmt: skip
        body = job(space, "db", 3)
        (task,) = body["spec"]["tasks"]
        body["spec"]["tasks"], body["spec"]["minAvailable"] = [], 3
        for number in range(3):
            staged.apply([{"apiVersion": "v1", "kind": "PersistentVolumeClaim", "spec": wanted,
                           "metadata": {"name": f"data-{number}", "namespace": space}}])  # fmt: skip
            mounts = [{"name": "data", "persistentVolumeClaim": {"claimName": f"data-{number}"}}]
            spec = {**task["template"]["spec"], "volumes": mounts}
            body["spec"]["tasks"].append({"name": f"m{number}", "replicas": 1, "template": {"spec": spec}})
        staged.create(body)
        staged.until_phase(space, "db", "Running")
        assert {NODES[where] for where in staged.bound(space, "db").values()} == {"z1"}
        found = staged.items(f"/api/v1/namespaces/{space}/persistentvolumeclaims")
        assert [one["status"]["phase"] for one in found] == ["Bound"] * 3


def test_a_scheduler_is_killed_between_claim_and_bind(equipped: Stage, space: str, staged: Stage) -> None:
    """The next one binds the pods to the nodes of the devices that were written, and nothing is allocated twice."""

    def no_binding(method: str, path: str, _body: bytes) -> Strike | None:
        return Strike(503) if method == "POST" and path.endswith("/binding") else None

    staged.apply([template(space, "one", "whole")])
    with Proxy(staged.login).running() as proxy:
        proxy.rule = no_binding
        with staged.scheduler(conf=CONF, name="killed", through=proxy.url) as first:
            staged.create(claiming(space, "gang", 2, "one"))
            until(lambda: len(results(staged, space, "gang")) == 2, "both claims are written")
            first.kill()
            first.wait()
    assert not staged.bound(space, "gang")
    with staged.scheduler(conf=CONF):
        staged.until_phase(space, "gang", "Running")
    at = {pod["metadata"]["name"]: pod["spec"]["nodeName"] for pod in staged.pods(space, "gang")}
    for claim in claims(staged, space, "gang"):
        (user,) = claim["status"]["reservedFor"]
        (result,) = claim["status"]["allocation"]["devices"]["results"]
        assert at[user["name"]] == result["pool"]
    assert sorted(at.values()) == ["claim-0", "claim-1"]
