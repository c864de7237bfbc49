"""What docs/devices.md says with its examples is so."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from stromboli.cli.main import main
from stromboli.live.installation.manifests import Parts, manifests
from stromboli.testing.builders import Manifest, node, pod, pod_group
from tests.acceptance.bench import Bench

PAGE = (Path(__file__).parents[2] / "docs/devices.md").read_text(encoding="utf-8")
CONF, OBJECTS, FRAGMENTATION, SETTINGS, NPUS, ROLE = (part.split("```")[0] for part in PAGE.split("```yaml\n")[1:])
IDS = "volcano.sh/vgpu-ids-new"
EXTENDED = CONF.replace("deviceshare.VGPUEnable: true", "deviceshare.VGPUEnable: true\n      {more}: true")


def planned(tmp_path: Path, capsys: pytest.CaptureFixture[str], *command: str) -> str:
    """What ``plan`` prints of the example with three pods like its one."""
    machine, first = yaml.load_all(OBJECTS, yaml.CSafeLoader)
    pods = [{**first, "metadata": {"name": name}} for name in ("first", "second", "third")]
    (tmp_path / "objects.yaml").write_text("\n---\n".join(map(json.dumps, [machine, *pods])), encoding="utf-8")
    (tmp_path / "scheduler.conf").write_text(CONF, encoding="utf-8")
    main(["plan", str(tmp_path / "objects.yaml"), "--config", str(tmp_path / "scheduler.conf"), *command])
    return capsys.readouterr().out


def test_two_pods_get_a_card_each_and_the_third_waits(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "240")
    answer = json.loads(planned(tmp_path, capsys, "-o", "json"))
    assert set(answer["outcome"]["binds"]) == {"default/first", "default/second"}
    told = [reason["message"] for key, reason in answer["reasons"].items() if "third" in key]
    assert ["hami-vgpuDeviceSharing error" in text for text in told] == [True], answer["reasons"]
    assert "free: GPU-0 3000 of 8000 MB" in planned(tmp_path, capsys, "--explain", "default/third")


def test_the_plugin_fragmentation_is_configured_as_the_page_has_it() -> None:
    conf = CONF.rsplit("  - name: deviceshare", 1)[0] + FRAGMENTATION
    bench = Bench([node("n")], conf)
    with bench.open() as session:
        assert {"deviceshare", "fragmentation"} <= set(session.plugins)
        assert not session.plugins["fragmentation"].complaints


def settings() -> Manifest:
    found: Manifest = yaml.load(SETTINGS, yaml.CSafeLoader)
    return found


def given(bench: Bench, key: str) -> dict[str, str]:
    return {bind.key.partition("/")[2]: bind.annotations[key] for bind in bench.plan.binds}


def asking(name: str, **amounts: int) -> list[Manifest]:
    asked = {key.replace("_", "/", 1): amount for key, amount in amounts.items()}
    return [pod_group(name), pod(name, group=name, requests=asked)]


def test_cards_are_cut_as_the_configmap_of_the_page_says() -> None:
    """Large instances make the card one of the geometry ``mixed``, with the small one as its last instance."""
    offer = {f"volcano.sh/vgpu-{name}": amount for name, amount in (("number", 10), ("memory", 40960), ("cores", 100))}
    notes = {"volcano.sh/node-vgpu-register": "GPU-0,10,40960,NVIDIA-A100-SXM4-40GB,true,mig:"}
    objects = [node("n", resources=offer, annotations=notes), settings()]
    for name, memory in (("p0", 9000), ("p1", 9000), ("p2", 9000), ("p3", 5000)):
        objects += asking(name, **{"volcano.sh_vgpu-number": 1, "volcano.sh_vgpu-memory": memory})
    bench = Bench(objects, CONF)
    bench.cycle()
    names = [text.partition(",")[0] for _, text in sorted(given(bench, IDS).items())]
    assert names == ["GPU-0[mixed-0]", "GPU-0[mixed-1]", "GPU-0[mixed-2]", "GPU-0[mixed-3]"]


def test_npus_are_sliced_as_the_configmap_of_the_page_says() -> None:
    """20000 MB are rounded up to the template of 32768."""
    card = {"id": "npu-0", "count": 4, "devmem": 65536, "devcore": 20, "type": "Ascend910B3"}
    notes = {"hami.io/node-register-Ascend910B3": json.dumps([card])}
    objects = [node("n", resources={"huawei.com/Ascend910B3": 4}, annotations=notes), settings()]
    objects += asking("p", **{"huawei.com_Ascend910B3": 1, "huawei.com_Ascend910B3-memory": 20000})
    bench = Bench(objects, EXTENDED.format(more="deviceshare.AscendHAMiVNPUEnable"))
    bench.cycle()
    assert given(bench, "hami.io/Ascend910B3-devices-allocated") == {"p": "npu-0,Ascend910B3,32768,0:;"}


def test_a_slice_is_made_of_the_healthy_chip() -> None:
    objects = [*yaml.load_all(NPUS, yaml.CSafeLoader), *asking("p", **{"huawei.com_npu-core": 4})]
    bench = Bench(objects, EXTENDED.format(more="deviceshare.AscendMindClusterVNPUEnable"))
    bench.cycle()
    assert given(bench, "huawei.com/npu-core") == {"p": "1-vir04_3c"}


def test_the_role_is_for_the_schedulers_account() -> None:
    role, binding = yaml.load_all(ROLE, yaml.CSafeLoader)
    accounts = [one["metadata"] for one in manifests(Parts("image")) if one["kind"] == "ServiceAccount"]
    names = [(one["namespace"], one["name"]) for one in accounts if "scheduler" in one["name"]]
    assert [(one["namespace"], one["name"]) for one in binding["subjects"]] == names
    assert role["metadata"]["name"] == binding["roleRef"]["name"]
