"""What MindCluster's device plugin and NodeD report of the NPUs of a node, each in a ConfigMap of the node.

ClusterD, where it runs, collects the same ConfigMaps.
"""

from __future__ import annotations

from typing import Final

import msgspec

from stromboli.cluster import kinds
from stromboli.errors import ManifestError
from stromboli.model.resources.device_settings import CHIP, SEPARATED, ChipReport

DEVICES: Final = "kube-system", "mindx-dl-deviceinfo-", "DeviceInfoCfg"
NODES: Final = "mindx-dl", "mindx-dl-nodeinfo-", "NodeInfo"
"""Namespace of the ConfigMaps, what their names begin with before the node's, and the key of the report."""
PREFIXES: Final = DEVICES[1], NODES[1]
"""What their names begin with."""
KEYS: Final = DEVICES[2], NODES[2]
"""The keys of all reports."""
LISTED: Final = "huawei.com/"
"""What the names of lists begin with: ``huawei.com/Ascend310P`` are the chips that are free."""
UNHEALTHY: Final = "-Unhealthy"
"""What the names of lists of chips end with that are out of order."""
MOST_CHIPS: Final = 1024
"""Chips of a list that are read."""
MOST_DIGITS: Final = 6
"""Digits of a chip's number; longer ones are passed over."""


class _DeviceList(msgspec.Struct, frozen=True):
    device_list: dict[str, str] | None = msgspec.field(default=None, name="DeviceList")


class _Devices(msgspec.Struct, frozen=True):
    info: _DeviceList = msgspec.field(default=_DeviceList(), name="DeviceInfo")


class _Status(msgspec.Struct, frozen=True):
    status: str = msgspec.field(default="", name="NodeStatus")


class _Node(msgspec.Struct, frozen=True):
    info: _Status = msgspec.field(default=_Status(), name="NodeInfo")


def node_of(found: kinds.ConfigMap) -> str:
    """The node that a ConfigMap reports on; empty for other ConfigMaps."""
    meta = found.metadata
    for namespace, prefix, key in (DEVICES, NODES):
        if meta.namespace == namespace and meta.name.startswith(prefix) and key in found.data:
            return meta.name.removeprefix(prefix)
    return ""


def report_of(found: kinds.ConfigMap) -> ChipReport:
    """The report.  Raises ManifestError where it cannot be read."""
    key = (NODES if found.metadata.name.startswith(NODES[1]) else DEVICES)[2]
    try:
        return _read(key, found.data[key])
    except msgspec.DecodeError as error:
        where = kinds.title("ConfigMap", found.metadata)
        raise ManifestError(str(error), object=where, path=f"data.{key}") from error


def bare(key: str, text: str) -> str:
    """What is read of a report, and nothing else; empty where nothing is, or it cannot be read."""
    try:
        report = _read(key, text)
    except msgspec.DecodeError:
        return ""
    if key == NODES[2]:
        return msgspec.json.encode(_Node(_Status(SEPARATED))).decode() if report.status == SEPARATED else ""
    if report.free is None:
        return ""
    chips = {"": report.free, UNHEALTHY: report.unhealthy}
    lists = {f"{LISTED}{CHIP}{end}": ",".join(f"{CHIP}-{one}" for one in chips[end]) for end in chips}
    return msgspec.json.encode(_Devices(_DeviceList(lists))).decode()


def _read(key: str, text: str) -> ChipReport:
    """The report under a key.  Raises DecodeError."""
    text = text or "{}"  # while there is nothing to report
    if key == NODES[2]:
        return ChipReport(status=msgspec.json.decode(text, type=_Node).info.status)
    lists = msgspec.json.decode(text, type=_Devices).info.device_list
    if lists is None:
        return ChipReport()
    free, unhealthy = (_chips(lists.get(f"{LISTED}{CHIP}{end}", "")) for end in ("", UNHEALTHY))
    return ChipReport(free, unhealthy)


def _chips(text: str) -> tuple[int, ...]:
    """The numbers in a list such as ``Ascend310P-0,Ascend310P-1``; slices of chips are passed over."""
    names = (name.strip().removeprefix(f"{CHIP}-") for name in text.split(",", MOST_CHIPS)[:MOST_CHIPS])
    numbers = (int(name) for name in names if name.isascii() and name.isdigit() and len(name) <= MOST_DIGITS)
    return tuple(sorted(set(numbers)))
