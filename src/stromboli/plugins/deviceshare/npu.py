"""Ascend NPUs with HAMi: slices by template, or by software (``hami-core``), and whole devices close to each other.

The node's device plugin registers them in ``hami.io/node-register-CHIP`` (https://github.com/Project-HAMi/HAMi).
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Final, NamedTuple

import msgspec

from stromboli.framework.extension.reason import Reason, StatusCode
from stromboli.model.resources.device_settings import ChipSettings
from stromboli.model.spec import Container, NodeSpec
from stromboli.model.task import Task
from stromboli.plugins.deviceshare.kind import MOST_CARDS, CardUse, Need, amount, card_score, number, stated

MODE: Final = "huawei.com/vnpu-mode"
SOFT: Final = "hami-core"
PREFIX: Final = "hami.io/"
HELD, TOLD = "-devices-allocated", "-devices-to-allocate"
"""Ends of the annotations, after :data:`PREFIX` and the chip's word, of what a pod has and of what it is to get."""
NODE_SOFT: Final = "hami-vnpu-core"
TOPOLOGY: Final = "Ascend910"
CLOSE: Final = 10
"""The score of devices that all lie in one network."""
WHOLE: Final = 100
NO_DEVICE: Final = Reason("no ascend device available")
NO_PART: Final = Reason("no ascend device available", code=StatusCode.ERROR)
MAX_REGISTER: Final = 1 << 18
"""Characters of a register that are read."""


class Request(NamedTuple):
    """What one container asks for: devices, and of each some memory (MB; None: all of it) and cores (%)."""

    number: int
    memory: int | None
    cores: int


class Demand(NamedTuple):
    """What a pod asks for; ``soft`` slices are made by software."""

    requests: tuple[Request, ...]
    soft: bool


class _Registered(msgspec.Struct, frozen=True):
    """A device as the node's device plugin registers it."""

    id: str = ""
    index: int = 0
    count: int = 0
    devmem: int = 0
    devcore: int = 0
    custominfo: dict[str, object] | None = None

    @property
    def network(self) -> int | None:
        """The network that the device lies in."""
        found = (self.custominfo or {}).get("NetworkID")
        return int(found) if isinstance(found, int | float) and abs(found) < 1 << 31 else None


@lru_cache(maxsize=4096)
def _registered(text: str) -> tuple[_Registered, ...]:
    """The devices of a register; none where it cannot be read."""
    if len(text) > MAX_REGISTER:
        return ()
    try:
        found = msgspec.json.decode(text, type=tuple[_Registered, ...])
    except msgspec.DecodeError:
        return ()
    return found if len(found) <= MOST_CARDS else ()


class Piece(NamedTuple):
    """What a container holds of one device."""

    id: str
    memory: int
    cores: int


class Device:
    """A device, and how much of it is used."""

    __slots__ = ("cores", "info", "memory", "sharers")

    def __init__(self, info: _Registered) -> None:
        self.info, self.sharers, self.memory, self.cores = info, 0, 0, 0

    def take(self, piece: Piece, times: int) -> None:
        """Count a piece, or with ``times`` -1 no longer."""
        self.sharers, self.memory, self.cores = (
            self.sharers + times, self.memory + times * piece.memory, self.cores + times * piece.cores,
        )  # fmt: skip

    def has_room(self, memory: int, cores: int, *, soft: bool) -> bool:
        """Whether another slice fits by count, memory and cores."""
        total = WHOLE if soft else self.info.devcore
        if self.sharers >= self.info.count or self.info.devmem - self.memory < memory or total - self.cores < cores:
            return False
        if total == WHOLE and cores == WHOLE and self.sharers:
            return False
        return not (total and self.cores == total and cores == 0)


class AscendNpu:
    """The kind: one chip of the configuration.

    ``over_capacity`` lets demands beyond a chip's memory pass as if they asked for none.
    """

    lock = "hami.io/mutex.lock"

    def __init__(self, chip: ChipSettings, policy: str, *, soft: bool, over_capacity: bool) -> None:
        self.chip, self.policy, self._soft, self._over_capacity = chip, policy, soft, over_capacity
        self.offered = chip.resource_name
        self.by_size = sorted(chip.templates, key=lambda template: template.memory)
        self.allocated = f"{PREFIX}{chip.common_word}{HELD}"
        self.to_allocate = f"{PREFIX}{chip.common_word}{TOLD}"

    def demand_of(self, task: Task) -> Demand | None:
        """What the limits of the pod's containers ask for."""
        requests = tuple(found for one in task.spec.containers if (found := self._request(one)) is not None)
        return Demand(requests, task.annotations.get(MODE) == SOFT) if requests else None

    def _request(self, container: Container) -> Request | None:
        limits, chip = container.resources.limits, self.chip
        if chip.resource_name not in limits and chip.resource_memory_name not in limits:
            return None
        count = amount(limits, chip.resource_name) if chip.resource_name in limits else 1
        memory, cores = (
            stated(container, name) for name in (chip.resource_memory_name, chip.resource_core_name)
        )  # fmt: skip
        return Request(count, memory or None, cores)

    def need(self, demand: Demand) -> Need:
        """See :class:`~stromboli.plugins.deviceshare.kind.Kind`."""
        parts = [request.memory for request in demand.requests if request.memory is not None]
        memory = max(parts) if len(parts) == len(demand.requests) else None
        sliced = memory if memory is None or demand.soft else self.slice_of(memory)[0]
        cores = max(request.cores for request in demand.requests) if demand.soft else 0
        return Need(sum(request.number for request in demand.requests), sliced, cores)

    def pool_of(self, node: NodeSpec) -> NpuPool | None:
        """The devices that the device plugin has registered."""
        word = self.chip.common_word
        devices = _registered(node.annotations.get(f"hami.io/node-register-{word}", ""))
        if not devices or amount(node.allocatable, self.chip.resource_name) <= 0:
            return None
        stated_soft = node.annotations.get(NODE_SOFT)
        return NpuPool(node.name, devices, self, self._soft if stated_soft is None else stated_soft == "true")

    def slice_of(self, memory: int) -> tuple[int, str]:
        """Memory and name of the smallest template with at least ``memory`` MB; without a name, the whole device.

        Beyond the chip's memory it is what no device has, or 0 with ``over_capacity``.
        """
        for template in self.by_size:
            if memory <= template.memory:
                return template.memory, template.name
        if memory <= self.chip.memory_capacity:
            return self.chip.memory_allocatable, ""
        return (0 if self._over_capacity else memory), ""


class NpuPool:
    """The devices of one node and chip."""

    def __init__(self, node: str, devices: Sequence[_Registered], kind: AscendNpu, soft: bool) -> None:
        self._node, self._kind, self._soft = node, kind, soft
        self.devices = {info.id: Device(info) for info in devices}
        self.held: dict[str, tuple[tuple[Piece, ...], ...]] = {}
        near = kind.chip.common_word.startswith(TOPOLOGY)
        self._near = near and all("NetworkID" in (info.custominfo or {}) for info in devices)

    def refusal(self, demand: Demand) -> Reason | None:
        """See :class:`~stromboli.plugins.deviceshare.kind.Pool`."""
        pieces = self._pieces(demand)
        return pieces if isinstance(pieces, Reason) else None

    def cards(self) -> list[CardUse]:
        """See :class:`~stromboli.plugins.deviceshare.kind.Pool`."""
        word = self._kind.chip.common_word
        return [
            CardUse(
                info.id, word, info.devmem, one.memory, WHOLE if self._soft else info.devcore, one.cores,
                one.sharers >= info.count,
            )
            for one in self.devices.values() for info in (one.info,)
        ]  # fmt: skip

    def shortage(self, demand: Demand) -> str:
        """See :class:`~stromboli.plugins.deviceshare.kind.Pool`."""
        free = (
            f"{one.info.id} {one.info.devmem - one.memory} of {one.info.devmem} MB" for one in self.devices.values()
        )
        return "free: " + ", ".join(free)

    def score(self, demand: Demand) -> float:
        """The sum over the first device of each container, and how many of these lie in one network."""
        pieces = self._pieces(demand)
        if isinstance(pieces, Reason):
            return 0.0
        first = [self.devices[row[0].id] for row in pieces if row]
        score = sum(self._score_of(device) for device in first)
        if not self._near or not first:
            return score
        networks = Counter(device.info.network for device in first)
        return score + CLOSE * max(networks.values()) / len(first)

    def assign(self, task: Task, demand: Demand, now: float) -> Mapping[str, str]:
        """See :class:`~stromboli.plugins.deviceshare.kind.Pool`."""
        pieces = self._pieces(demand)
        rows = () if isinstance(pieces, Reason) else pieces
        self._take(task, rows)
        word, seconds = self._kind.chip.common_word, str(int(now))
        ids = "".join("".join(f"{p.id},{word},{p.memory},{p.cores}:" for p in row) + ";" for row in rows)
        slices = [self._told(piece, demand) for row in rows for piece in row]
        return {
            self._kind.to_allocate: ids, self._kind.allocated: ids, "predicate-time": seconds,
            f"huawei.com/{word}": json.dumps(slices, separators=(",", ":")),
            "hami.io/vgpu-node": self._node, "hami.io/vgpu-time": seconds,
            "hami.io/bind-phase": "allocating", "hami.io/bind-time": seconds,
        }  # fmt: skip

    def restore(self, task: Task) -> None:
        """Pods that ask for NPUs hold what ``devices-allocated`` names; the plugin takes it out of ``to-allocate``."""
        if self._kind.demand_of(task) is None:
            return
        notes = task.annotations
        text = notes.get(self._kind.allocated) or notes.get(self._kind.to_allocate, "")
        self._take(task, tuple(tuple(self._read(row)) for row in text.split(";")))

    def release(self, task: Task) -> None:
        """See :class:`~stromboli.plugins.deviceshare.kind.Pool`."""
        for row in self.held.pop(task.uid, ()):
            for piece in row:
                self.devices[piece.id].take(piece, -1)

    def _told(self, piece: Piece, demand: Demand) -> dict[str, str | int]:
        """What the device plugin reads of a piece; what is empty is left out."""
        if demand.soft:
            told: dict[str, str | int] = {"UUID": piece.id, "memory": piece.memory, "core": piece.cores}
        else:
            told = {"UUID": piece.id, "temp": self._kind.slice_of(piece.memory)[1]}
        return {key: value for key, value in told.items() if value}

    def _read(self, text: str) -> Iterator[Piece]:
        for entry in text.split(":"):
            name, _, memory_text, cores_text, *_ = (*entry.split(","), "", "", "")
            memory, cores = number(memory_text), number(cores_text)
            if name in self.devices and memory is not None and cores is not None:
                yield Piece(name, memory, cores)

    def _take(self, task: Task, rows: tuple[tuple[Piece, ...], ...]) -> None:
        self.held[task.uid] = rows
        for row in rows:
            for piece in row:
                self.devices[piece.id].take(piece, 1)

    def _score_of(self, device: Device) -> float:
        return card_score(self._kind.policy, device.memory, device.info.devmem, device.sharers)

    def _pieces(self, demand: Demand) -> tuple[tuple[Piece, ...], ...] | Reason:
        """The pieces that each container would get; why there are none where the devices do not suffice."""
        left = sorted(self.devices.values(), key=lambda device: (-self._score_of(device), device.info.index))
        found: list[tuple[Piece, ...]] = []
        for request in demand.requests:
            memory = left[0].info.devmem if left and request.memory is None else request.memory or 0
            if not demand.soft:
                memory = self._kind.slice_of(memory)[0]
                if request.number > 1 and memory != self._kind.chip.memory_allocatable:
                    return NO_PART
            chosen = self._chosen(left, request, memory, demand)
            if chosen is None:
                return NO_DEVICE
            found.append(tuple(Piece(device.info.id, memory, request.cores) for device in chosen))
            left = [device for device in left if device not in chosen]
        return tuple(found)

    def _chosen(self, left: list[Device], request: Request, memory: int, demand: Demand) -> list[Device] | None:
        """Devices for one container, those of the network with most of them first."""
        if demand.soft and not self._soft:
            return None
        fitting = [device for device in left if device.has_room(memory, request.cores, soft=demand.soft)]
        if len(fitting) < request.number:
            return None
        if self._near:
            counts = Counter(device.info.network for device in fitting)
            fitting.sort(key=lambda device: (-counts[device.info.network], str(device.info.network)))
        return fitting[: request.number]
