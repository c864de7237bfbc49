"""What users read about cards that refuse a pod: explanations with numbers per node, and the linter."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from stromboli.cli.main import main
from stromboli.testing.builders import Manifest, node, pod, pod_group

CONF = """
actions: "allocate"
tiers:
- plugins:
  - name: gang
  - name: predicates
  - name: deviceshare
    arguments: {deviceshare.VGPUEnable: true}
"""
V = "volcano.sh/vgpu-"


def gpu(name: str) -> Manifest:
    offer = {f"{V}number": 20, f"{V}memory": 16000, f"{V}cores": 200}
    cards = (f"GPU-{name}-{i},10,8000,NVIDIA-T4,true,hami-core:" for i in range(2))
    notes = {"volcano.sh/node-vgpu-register": "".join(cards)}
    return node(name, cpu=64, memory="64Gi", resources=offer, annotations=notes)


def asking(name: str, memory: int, **annotations: str) -> list[Manifest]:
    asked = {f"{V}number": "1", f"{V}memory": str(memory)}
    return [pod_group(name), pod(name, group=name, requests=asked, annotations=annotations)]


def told(tmp_path: Path, capsys: pytest.CaptureFixture[str], objects: list[Any], *command: str) -> str:
    (tmp_path / "objects.yaml").write_text("\n---\n".join(map(json.dumps, objects)), encoding="utf-8")
    (tmp_path / "scheduler.conf").write_text(CONF, encoding="utf-8")
    files = [str(tmp_path / "objects.yaml"), "--config", str(tmp_path / "scheduler.conf")]
    main([command[0], *files, *command[1:]])
    return capsys.readouterr().out


def test_pods_share_gpus_and_one_that_waits_is_told_what_the_card_has_left(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "240")
    objects = [gpu("n1"), *asking("a", 3000), *asking("b", 4000), *asking("c", 5000), *asking("d", 4000)]
    answer = json.loads(told(tmp_path, capsys, objects, "plan", "-o", "json"))
    assert set(answer["outcome"]["binds"]) == {"default/a", "default/b", "default/c"}
    assert "hami-vgpuDeviceSharing error" in answer["reasons"]["default/d"]["message"]
    text = told(tmp_path, capsys, objects, "plan", "--explain", "default/d")
    left = "GPU-n1-0 3000 of 8000 MB, 100 % of its cores, 9 of 10 shares; GPU-n1-1 1000 of 8000 MB"
    assert f"cards of n1: free: {left}, 100 % of its cores, 8 of 10 shares" in text


@pytest.mark.parametrize(
    ("memory", "annotations", "finding"),
    [
        (9000, {}, "no node has the cards that the pod asks for, even idle; the first, free: GPU-n1-0 8000 of 8000 MB"),
        (100, {"nvidia.com/use-gputype": "H100"}, "(not allowed to this pod)"),
        (8000, {}, ""),
    ],
)
def test_the_linter_finds_what_no_card_can_ever_give(
    memory: int, annotations: dict[str, str], finding: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    objects = [gpu("n1"), *asking("p", memory, **annotations)]
    found = told(tmp_path, capsys, objects, "lint", "-o", "json")
    assert ("fits-no-node" in found) is bool(finding)
    assert finding in found
