"""ConfigMaps that describe devices: which are kept, and what is wrong with those that are not."""

from __future__ import annotations

import json
from typing import Any

import pytest

from stromboli.cluster.decoding.chip_reports import bare
from stromboli.cluster.decoding.devices import DeviceSettingsStore, describes_devices, settings_of
from stromboli.cluster.objects import from_value
from stromboli.errors import ManifestError


def config_map(data: dict[str, str], name: str = "x", namespace: str = "ns") -> Any:
    return from_value("ConfigMap", {"metadata": {"name": name, "namespace": namespace}, "data": data})


def described(text: str) -> Any:
    return config_map({"device-config.yaml": text})


def geometries(*counts: int) -> str:
    """Settings with one group of so many instances of each of its sizes."""
    sizes = [{"name": f"g{at}", "memory": 1, "count": count} for at, count in enumerate(counts)]
    group = {"group": "small", "geometries": sizes}
    return json.dumps({"nvidia": {"knownMigGeometries": [{"models": ["A100"], "allowedGeometries": [group]}]}})


CHIPS = {"DeviceInfoCfg": json.dumps({"DeviceInfo": {"DeviceList": {"huawei.com/Ascend310P": "Ascend310P-1"}}})}


@pytest.mark.parametrize(
    ("found", "about_devices"),
    [
        (described("{}"), True),
        (config_map({"other.yaml": "{}"}), False),
        (config_map(CHIPS, "mindx-dl-deviceinfo-n1", "kube-system"), True),
        (config_map(CHIPS, "mindx-dl-deviceinfo-n1", "default"), False),
        (config_map(CHIPS, "deviceinfo-n1", "kube-system"), False),
        (config_map({"Other": "{}"}, "mindx-dl-deviceinfo-n1", "kube-system"), False),
        (config_map({"NodeInfo": "{}"}, "mindx-dl-nodeinfo-n1", "mindx-dl"), True),
    ],
)
def test_which_config_maps_are_about_devices(found: Any, about_devices: bool) -> None:
    store = DeviceSettingsStore()
    store.apply(found, True)
    assert (describes_devices(found), len(store)) == (about_devices, about_devices)


def test_settings_are_kept_until_they_say_nothing_of_devices_or_go() -> None:
    store, key = DeviceSettingsStore(), "ns/x"
    store.apply(described(geometries(3)), True)
    with pytest.raises(ManifestError):
        store.apply(described("[]"), True)
    assert store[key] == settings_of(described(geometries(3)))
    store.apply(described(geometries(2)), True)
    assert store[key] == settings_of(described(geometries(2)))
    store.apply(config_map({"other": ""}), True)
    assert store == {}
    store.apply(described(geometries(2)), True)
    store.apply(described(geometries(2)), False)
    assert store == {}


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (geometries(), ""),
        (geometries(0, 3), ""),
        (geometries(4, -1), "MIG group small has a negative count"),
        (geometries(60, 4), ""),
        (geometries(60, 5), "MIG group small has more than 64 instances"),
        ("{}", ""),
        ("nvidia: null", ""),
        ("[]", "is no mapping"),
        ("nvidia: 3", "Expected `object`, got `int` - at `$.nvidia`"),
        ("vnpus: 3", "Expected `object`, got `int` - at `$.vnpus`"),
        ("vnpus: [{}]", "Object missing required field `commonWord` - at `$.vnpus.configs[0]`"),
    ],
)
def test_settings_that_cannot_be_used_say_why_and_where(text: str, problem: str) -> None:
    if not problem:
        settings_of(described(text))
        return
    with pytest.raises(ManifestError) as caught:
        settings_of(described(text))
    error = caught.value
    assert (error.problem, error.object, error.path) == (problem, "ConfigMap ns/x", "data.device-config.yaml")


NPU = {
    "chipName": "910B3", "commonWord": "Ascend910B3", "resourceName": "huawei.com/Ascend910B3",
    "resourceMemoryName": "huawei.com/Ascend910B3-memory", "memoryAllocatable": 65536, "memoryCapacity": 65536,
}  # fmt: skip


def test_older_plugins_state_their_npus_as_a_list() -> None:
    rows = [NPU]
    older, newer = (json.dumps({"vnpus": each, "other": 1}) for each in (rows, {"configs": rows}))
    assert settings_of(described(older)) == settings_of(described(newer))
    assert len(settings_of(described(older)).vnpus.configs) == 1


APART = {"NodeInfo": {"NodeStatus": "PreSeparate"}}
FREE = {"DeviceInfo": {"DeviceList": {"huawei.com/Ascend310P": "Ascend310P-10, Ascend310P-3", "other": "x"}, "at": 1}}


@pytest.mark.parametrize(
    ("key", "text", "kept"),
    [
        ("NodeInfo", {**APART, "more": 1}, APART),
        ("NodeInfo", {"NodeInfo": {"NodeStatus": "Healthy"}}, None),
        ("NodeInfo", 3, None),
        ("DeviceInfoCfg", FREE, {"DeviceInfo": {"DeviceList": {
            "huawei.com/Ascend310P": "Ascend310P-3,Ascend310P-10", "huawei.com/Ascend310P-Unhealthy": ""}}}),
        ("DeviceInfoCfg", {"DeviceInfo": {}}, None),
        ("DeviceInfoCfg", 3, None),
    ],
)  # fmt: skip
def test_what_is_kept_of_a_report_that_is_handed_on(key: str, text: object, kept: object) -> None:
    found = bare(key, json.dumps(text))
    assert (json.loads(found) if found else None) == kept
