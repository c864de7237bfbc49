"""What people see of devices: in ``job view``, in ``top``, and of hopeless claims in ``lint``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from stromboli.cli.main import main
from stromboli.cli.vcctl import connection
from stromboli.cli.vcctl.columns import Column, table
from stromboli.kube.client import Client
from stromboli.testing.builders import Manifest, node, pod, pod_group
from tests.support.device_objects import (
    DRIVER,
    device,
    device_claim,
    device_class,
    exactly,
    resource_slice,
)
from tests.support.memory_server import MemoryServer, status

V = "volcano.sh/vgpu-"
JOB = "volcano.sh/job-name"


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> MemoryServer:
    """Nodes with vGPUs, whole GPUs, NPUs and claimed devices, and a job whose pods have some of each."""
    server = MemoryServer()
    monkeypatch.setattr(connection, "open_client", lambda kubeconfig, master: Client(server))
    monkeypatch.setenv("COLUMNS", "140")
    job: Manifest = {
        "apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job",
        "metadata": {"name": "train", "uid": "u", "namespace": "default"},
        "spec": {"minAvailable": 1, "tasks": []}, "status": {"state": {"phase": "Running"}},
    }  # fmt: skip
    server.put("jobs", job)
    for plural, bodies in OBJECTS.items():
        for body in bodies:
            server.put(plural, json.loads(json.dumps(body)))
    return server


def vgpu(name: str) -> Manifest:
    offer: dict[str, Any] = {f"{V}number": 20, f"{V}memory": 16000, f"{V}cores": 200}
    cards = "".join(f"GPU-{name}-{i},10,8000,NVIDIA-T4,true,hami-core:" for i in range(2))
    return node(name, resources=offer, annotations={f"{V[:-5]}node-vgpu-register": cards})


def member(name: str, on: str = "", **more: Any) -> Manifest:
    return pod(name, on=on, labels={JOB: "train"}, **more)


REGISTER = json.dumps([{"id": "npu-0", "count": 4, "devmem": 21527, "devcore": 8, "type": "Ascend310P"}])
OBJECTS: dict[str, list[Manifest]] = {
    "nodes": [
        vgpu("n1"),
        node("n2", resources={"volcano.sh/gpu-memory": 16000, "volcano.sh/gpu-number": 2}),
        node("n3", resources={"huawei.com/Ascend310P": 4},
             annotations={"hami.io/node-register-Ascend310P": REGISTER}),
        node("n4"),
    ],
    "deviceclasses": [device_class()],
    "resourceslices": [
        resource_slice("n4", device("d0"), device("d1")), resource_slice("net", device("e0"), allNodes=True),
    ],
    "resourceclaims": [
        device_claim("has", on="n4", devices=("d1",)), device_claim("lacks"), device_claim("sees", on="n4"),
    ],
    "pods": [
        member("train-0", "n1", annotations={f"{V}ids-new": "GPU-n1-0,NVIDIA,3000,20:GPU-n1-1,NVIDIA,1000,0:;"},
               requests={f"{V}number": 2}),
        member("train-1", "n2", annotations={"volcano.sh/gpu-index": "1"}, requests={"volcano.sh/gpu-memory": 5000}),
        member("train-2", "n3", annotations={"hami.io/Ascend310P-devices-allocated": "npu-0,Ascend310P,6144,0:;"},
               requests={"huawei.com/Ascend310P": 1}),
        member("train-3", "n4", resourceClaims=[{"name": "gpu", "resourceClaimName": "has"}]),
        member("train-4", resourceClaims=[{"name": "gpu", "resourceClaimName": "lacks"},
                                          {"name": "made", "resourceClaimTemplateName": "t"}]),
    ],
}  # fmt: skip


def said(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main(arguments) == 0
    return "\n".join(line.rstrip() for line in capsys.readouterr().out.splitlines())


VIEW = f"""\
Devices:
  Pod       Node     Device             Holds
  train-0   n1       GPU-n1-0           3000 MB, 20 % of its cores
  train-0   n1       GPU-n1-1           1000 MB
  train-1   n2       GPU 1              5000 MB
  train-2   n3       npu-0              6144 MB
  train-3   n4       {DRIVER}/n4/d1   claim has, request r0
  train-4   <none>   <none>             claim lacks: not allocated yet
  train-4   <none>   <none>             claim made: not made yet
"""


def test_job_view_shows_what_pods_hold_and_what_they_wait_for(
    server: MemoryServer, capsys: pytest.CaptureFixture[str]
) -> None:
    shown = [line.split() for line in said(capsys, "job", "view", "train").splitlines()]
    start = shown.index(["Devices:"])
    assert shown[start : start + VIEW.count("\n")] == [line.split() for line in VIEW.splitlines()]
    server.drop("resourceclaims", "has", "default")
    assert "claim has: not found" in said(capsys, "job", "view", "train")


@pytest.mark.parametrize(("plural", "what"), [("pods", "Pods"), ("resourceclaims", "ResourceClaims")])
def test_what_may_not_be_read_is_told_and_the_rest_is_shown(
    plural: str, what: str, server: MemoryServer, capsys: pytest.CaptureFixture[str]
) -> None:
    refused = lambda request, when: status(403, "Forbidden") if request.path.endswith(f"/{plural}") else None  # noqa: E731
    server.faults.append(refused)
    shown = said(capsys, "job", "view", "train")
    assert f"{what} cannot be read: " in shown
    assert "Name:       train" in shown


def test_a_job_without_devices_is_viewed_as_before(server: MemoryServer, capsys: pytest.CaptureFixture[str]) -> None:
    for number in range(5):
        server.drop("pods", f"train-{number}", "default")
    server.put("pods", member("train-9", "n1"))
    assert "Devices" not in said(capsys, "job", "view", "train")


TOP = f"""\
NODE             DEVICES          USED  FREE                    MEMORY (MB)     CORES (%)
n2               GPU                 1     1  ███▏······   31%  5,000 / 16,000  -
n3               Ascend310P          1     0  ██▊·······   29%  6,144 / 21,527  0 / 8
n1               NVIDIA-T4           2     0  ██▌·······   25%  4,000 / 16,000  20 / 200
n4               {DRIVER}     1     1  █████·····   50%  -               -
"""


def test_top_follows_what_mind_cluster_reports(server: MemoryServer, capsys: pytest.CaptureFixture[str]) -> None:
    core = "huawei.com/npu-core"
    labels = {"accelerator": "huawei-Ascend310P", "servertype": "Ascend310P-8"}
    server.put("nodes", node("n5", resources={core: 32}, labels=labels))
    server.put("pods", member("train-5", "n5", annotations={core: "0"}, requests={core: 8}))
    lists = {"DeviceInfo": {"DeviceList": {"huawei.com/Ascend310P": "Ascend310P-1,Ascend310P-2,Ascend310P-3"}}}
    metadata = {"name": "mindx-dl-deviceinfo-n5", "namespace": "kube-system", "labels": {"mx-consumer-cim": "true"}}
    server.put("configmaps", {"metadata": metadata, "data": {"DeviceInfoCfg": json.dumps(lists)}})
    rows = [line.split() for line in said(capsys, "top", "--once").splitlines()]
    assert [row[:4] for row in rows if row[:1] == ["n5"]][-1] == ["n5", "Ascend310P", "1", "3"]
    refused = lambda request, when: status(403, "Forbidden") if request.path.endswith("/configmaps") else None  # noqa: E731
    server.faults.append(refused)
    rows = [line.split() for line in said(capsys, "top", "--once").splitlines()]
    assert not [row for row in rows if row[:2] == ["n5", "Ascend310P"]], "without a report nothing is known"


def test_top_shows_what_of_each_nodes_devices_is_used(server: MemoryServer, capsys: pytest.CaptureFixture[str]) -> None:
    shown = said(capsys, "top", "--once")
    rows = {tuple(line.split()) for line in shown.splitlines()}
    for line in TOP.splitlines():
        assert tuple(line.split()) in rows, (line, shown)
    assert "5 of 8 devices in use" in shown


def share(device: str, memory: str, number: int) -> Manifest:
    """A claim that has some of the memory of a device on n5."""
    claim = device_claim(f"share-{number}", on="n5", devices=(device,))
    more = {"shareID": f"s{number}", "consumedCapacity": {"memory": memory}}
    claim["status"]["allocation"]["devices"]["results"][0].update(more)
    return claim


@pytest.mark.parametrize(
    ("shares", "line"),
    [
        (["2Gi"], f"n5 {DRIVER} 0 1 ▌········· 5% - - memory 2Gi / 40Gi"),
        (["2Gi", "8Gi"], f"n5 {DRIVER} 0 1 ██▌······· 25% - - memory 10Gi / 40Gi"),
        (["20Gi", "20Gi"], f"n5 {DRIVER} 1 0 ██████████ 100% - - memory 40Gi / 40Gi"),
    ],
)
def test_a_device_that_claims_share_is_used_once_its_capacity_is(
    shares: list[str], line: str, server: MemoryServer, capsys: pytest.CaptureFixture[str]
) -> None:
    server.put("nodes", node("n5"))
    server.put("resourceslices", resource_slice("n5", device("s0", allowMultipleAllocations=True)))
    for number, memory in enumerate(shares):
        server.put("resourceclaims", share("s0", memory, number))
    rows = [row.split() for row in said(capsys, "top", "--once").splitlines()]
    assert line.split() in rows, rows
    uses = [{"name": "gpu", "resourceClaimName": "share-0"}]
    server.put("pods", member("train-5", "n5", resourceClaims=uses))
    assert f"claim share-0, request r0: {shares[0]} of memory" in said(capsys, "job", "view", "train")


def test_what_tenants_write_reaches_no_terminal_raw(server: MemoryServer, capsys: pytest.CaptureFixture[str]) -> None:
    notes = {f"{V}ids-new": "GPU\x1b[2J-1,NVIDIA,3000,20:;"}
    server.put("pods", member("train-6", "n1", annotations=notes))
    event = {"metadata": {"name": "e", "namespace": "default"}, "type": "Normal", "reason": "Told",
             "involvedObject": {"kind": "Job", "name": "train", "uid": "u"},
             "message": "all\x1b[31m well\n\u202eEvents: none"}  # fmt: skip
    server.put("events", event)
    shown = said(capsys, "job", "view", "train")
    assert all(line.isprintable() for line in shown.splitlines())
    assert "GPU\\x1b[2J-1" in shown
    assert "all\\x1b[31m well\\n\\u202eEvents: none" in shown


def test_a_table_shows_what_is_not_printable_as_escapes_and_keeps_its_columns() -> None:
    lines = table([Column("A"), Column("B")], [("x\x1b[0m\n", "é"), ("y", "z")]).splitlines()
    assert lines == ["A            B", "x\\x1b[0m\\n   é", "y            z"]


CONF = """
actions: "allocate"
tiers:
- plugins: [{name: gang}, {name: predicates}]
"""


@pytest.mark.parametrize(
    ("claims", "finding"),
    [
        (("two",), ""),  # all devices are taken, but will be free again
        (("three",), "no node has the devices that the pod's claims ask for, even if all were free"),
        (("two", "one"), "no node has the devices that the pod's claims ask for"),
        (("typo",), "no such key"),
        (("unknown",), "device class none does not exist"),
        (("many",), ""),  # half of the devices and a certain one: there are more ways than the search tries
    ],
)  # fmt: skip
def test_the_linter_finds_claims_that_no_node_can_ever_meet(
    claims: tuple[str, ...], finding: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    uses = [{"name": each, "resourceClaimName": each} for each in claims]
    several = resource_slice("n6", *(device(f"m{place}", model=f"{place}") for place in range(30)), driver="many",
                             nodeName="n5")  # fmt: skip
    certain = exactly('device.attributes["many"].model == "0"', of="many")
    objects = [
        node("n4"), device_class(), resource_slice("n4", device("d0"), device("d1")), node("n5"),
        device_claim("has", on="n4", devices=("d0", "d1")), device_claim("one"),
        device_claim("two", exactly(count=2)), device_claim("three", exactly(count=3)),
        device_claim("typo", exactly(f'device.attributes["{DRIVER}"].modle == "a"')),
        device_claim("unknown", exactly(of="none")), device_class("many", 'device.driver == "many"'),
        several, device_claim("many", exactly(count=15, of="many"), certain),
        pod_group("p"), pod("p", group="p", resourceClaims=uses),
    ]  # fmt: skip
    (tmp_path / "objects.yaml").write_text("\n---\n".join(map(json.dumps, objects)), encoding="utf-8")
    (tmp_path / "scheduler.conf").write_text(CONF, encoding="utf-8")
    main(["lint", str(tmp_path / "objects.yaml"), "--config", str(tmp_path / "scheduler.conf"), "-o", "json"])
    found = json.loads(capsys.readouterr().out)
    texts = [one["text"] for one in found["findings"] if one["rule"] == "fits-no-node"]
    assert bool(texts) is bool(finding), texts
    assert all(finding in text for text in texts)
