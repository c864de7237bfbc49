"""What pods hold of shared devices, by their annotations alone, and all cards of a node whatever is configured."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple

from stromboli.model.resources.device_settings import CHIP, DeviceSettings
from stromboli.model.spec import NodeSpec, PodSpec
from stromboli.model.task import Task
from stromboli.plugins.deviceshare import mind_cluster, npu
from stromboli.plugins.deviceshare.gpushare import GPU_MEMORY, INDEX, asked
from stromboli.plugins.deviceshare.kind import CardUse, Kind, number, words
from stromboli.plugins.deviceshare.plugin import DeviceShare
from stromboli.plugins.deviceshare.vgpu import IDS

MOST_PIECES: Final = 256
"""Pieces of one pod that are read."""
EVERY_KIND: Final = {
    "deviceshare.GPUSharingEnable": True, "deviceshare.VGPUEnable": True, "deviceshare.AscendHAMiVNPUEnable": True,
    "deviceshare.AscendMindClusterVNPUEnable": True,
}  # fmt: skip


class Holding(NamedTuple):
    """A part of a device: memory in MB, cores in percent; 0 for what is not stated, both 0 for the whole device.

    ``template`` is what a slice of a chip is called whose size its name says.
    """

    device: str
    memory: int = 0
    cores: int = 0
    template: str = ""


def holdings(notes: Mapping[str, str], spec: PodSpec) -> Iterator[Holding]:
    """What a pod's annotations say that it holds, device by device."""
    memory = asked(spec, GPU_MEMORY)
    for card in words(notes.get(INDEX, "")):
        yield Holding(f"GPU {card}", memory)
    if (piece := mind_cluster.piece_of(notes)) is not None:
        for chip in piece.chips:
            yield Holding(f"{CHIP}-{chip}", template=piece.template)
    for key, text in sorted(notes.items()):
        is_npu = key.startswith(npu.PREFIX) and key.endswith(npu.HELD)
        is_told = key.startswith(npu.PREFIX) and key.endswith(npu.TOLD)
        taken = is_told and notes.get(key.removesuffix(npu.TOLD) + npu.HELD)
        if key == IDS or is_npu or (is_told and not taken):
            yield from _pieces(text)


def _pieces(text: str) -> Iterator[Holding]:
    """Pieces as device plugins read them: ``DEVICE,TYPE,MEMORY,CORES:`` for each, containers apart by ``;``."""
    for entry in text.replace(";", ":").split(":", MOST_PIECES)[:MOST_PIECES]:
        device, _, memory, cores, *_ = (*entry.split(","), "", "", "")
        if device.strip():
            yield Holding(device.strip(), number(memory) or 0, number(cores) or 0)


def every_kind(said: Mapping[str, DeviceSettings]) -> list[Kind[Any]]:
    """All kinds of device, whatever is configured; ``said`` is what ConfigMaps say, by namespace and name."""
    return list(DeviceShare(EVERY_KIND).kinds(said, lambda _: False))


def cards_in_use(kinds: Iterable[Kind[Any]], node: NodeSpec, tasks: Iterable[Task]) -> list[CardUse]:
    """The cards of a node, of every kind that its objects show, with what ``tasks`` on it hold."""
    pools = [kind.pool_of(node) for kind in kinds]
    found = [pool for pool in pools if pool is not None]
    for task in tasks if found else ():
        for pool in found:
            pool.restore(task)
    return [card for pool in found for card in pool.cards()]
