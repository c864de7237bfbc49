"""vGPU with HAMi-core: containers share cards, each with some memory and some percent of the cores.

The node's device plugin reads which of its cards a pod gets from the pod's annotations (https://github.com/Project-HAMi/volcano-vgpu-device-plugin).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Final, NamedTuple

from stromboli.framework.extension.reason import Reason
from stromboli.model.names import GROUP_NAME
from stromboli.model.resources.device_settings import DEFAULTS, Geometry, NvidiaSettings
from stromboli.model.spec import Container, NodeSpec
from stromboli.model.task import Task
from stromboli.plugins.deviceshare.kind import (
    BINPACK,
    SPREAD,
    CardUse,
    Need,
    amount,
    card_score,
    number,
    remember,
    stated,
    words,
)  # fmt: skip
from stromboli.plugins.deviceshare.mig import slot_at, slot_for, split
from stromboli.plugins.deviceshare.vgpu_register import REGISTER, registered

_PREFIX: Final = "volcano.sh/"
MODE: Final = f"{_PREFIX}vgpu-mode"
IDS: Final = f"{_PREFIX}vgpu-ids-new"
USE_TYPE, NO_TYPE = "nvidia.com/use-gputype", "nvidia.com/nouse-gputype"
USE_UUID, NO_UUID = f"{_PREFIX}vgpu-use-gpuuuid", f"{_PREFIX}vgpu-nouse-gpuuuid"
GROUP_POLICY: Final = f"{_PREFIX}vgpu-podgroup-policy"
ALLOCATING: Final = "allocating"
HELD_FIELDS: Final = 4
"""Fields of a card that a pod holds: name, vendor, memory in MB, cores."""
WHOLE: Final = 100
"""Percent of a card's cores, and of its memory."""

MIG, SHARED = "mig", "hami-core"
"""Modes of nodes; cards whose type has no geometries are not cut."""
REFUSED: Final = Reason("hami-vgpuDeviceSharing error", plugin="deviceshare")


class Share(NamedTuple):
    """What one container asks for: ``cards``, and of each some memory (MB, or percent) and cores (%)."""

    cards: int
    memory: int | None
    cores: int
    percent: int = 100
    """Where ``memory`` is None."""


class Demand(NamedTuple):
    """What a pod asks for, container by container, and which cards its annotations let it use."""

    shares: tuple[Share, ...]
    mode: str = ""
    types: tuple[str, ...] = ()
    other_types: tuple[str, ...] = ()
    uuids: tuple[str, ...] = ()
    other_uuids: tuple[str, ...] = ()
    apart_from: str = ""
    """The PodGroup of whose pods no card may hold one; empty for any."""
    rules: tuple[int, ...] = ()
    """Rules of exclusivity that the pod matches."""

    @property
    def keeps_apart(self) -> bool:
        """Whether it matters which pods are on a card."""
        return bool(self.apart_from or self.rules)


class Piece(NamedTuple):
    """A share of one card that a container holds."""

    uuid: str
    memory: int
    cores: int
    name: str = ""
    """What the device plugin calls it, if it is not all of the card's name."""
    booked: int = 0
    """The memory that is taken: that of the MIG instance, where it is one."""

    @property
    def slot(self) -> tuple[str, int] | None:
        """Group and position of the MIG instance."""
        found = split(self.name)
        return found and found[1:]


@dataclass(slots=True)
class Card:
    """A card; ``pods`` are the shares on it by pod: how many, and of which PodGroup and rules."""

    uuid: str
    index: int
    count: int
    memory: int
    type: str
    geometries: tuple[Geometry, ...] = ()
    healthy: bool = True
    used_memory: int = 0
    used_cores: int = 0
    sharers: int = 0
    holders: dict[str, _Holder] = field(default_factory=dict)
    slots: tuple[tuple[str, int], ...] = ()
    """MIG instances that are taken."""

    def take(self, uid: str, holder: _Holder, piece: Piece, times: int = 1) -> None:
        """Count a share, or with ``times`` -1 no longer."""
        self.used_memory += piece.booked * times
        self.used_cores += piece.cores * times
        self.sharers += times
        if (slot := piece.slot) is not None:
            self.slots = (*self.slots, slot) if times > 0 else _without(self.slots, slot)
        if times > 0:
            self.holders[uid] = holder
        else:
            self.holders.pop(uid, None)

    def need(self, share: Share) -> int:
        """The memory that a share takes here."""
        return self.memory * share.percent // WHOLE if share.memory is None else share.memory

    def has_room(self, share: Share) -> bool:
        """Whether another share fits by count, memory and cores."""
        if self.sharers >= self.count or self.memory - self.used_memory < self.need(share):
            return False
        if self.used_cores + share.cores > WHOLE or (share.cores == WHOLE and self.sharers):
            return False
        return not (self.used_cores == WHOLE and share.cores == 0)

    def piece(self, share: Share, kind: VGpu) -> Piece | None:
        """What a container would get of a card with room; None where no MIG instance suffices."""
        need = self.need(share)
        if not self.geometries:
            return Piece(self.uuid, need, share.cores, self.uuid, need)
        slot = slot_for(need * kind.factor, self.geometries, self.slots, started_only=kind.started_only)
        return slot and Piece(self.uuid, need, share.cores, slot.id_of(self.uuid), slot.memory // kind.factor)

    def allows(self, demand: Demand) -> bool:
        """Whether the card's health, the pod's annotations and the pods that are here let it use the card."""
        if not self.healthy or self.uuid in demand.other_uuids or (demand.uuids and self.uuid not in demand.uuids):
            return False
        if demand.keeps_apart and any(holder.keeps_out(demand) for holder in self.holders.values()):
            return False
        if demand.types:
            return any(word in self.type.lower() for word in demand.types)
        return not (demand.other_types and any(word in self.type.lower() for word in demand.other_types))


class _Holder(NamedTuple):
    """What a card remembers of a pod: its PodGroup, the rules of exclusivity that it matches, and its name."""

    group: str
    rules: tuple[int, ...]
    pod: str

    def keeps_out(self, demand: Demand) -> bool:
        """Whether the pod of ``demand`` must not share a card with this one."""
        return self.group == demand.apart_from or not set(demand.rules).isdisjoint(self.rules)


class VGpu:
    """The kind; ``policy`` is ``binpack``, ``spread`` or empty, ``rules`` are labels of pods that share no card.

    With ``started_only`` a MIG card in use offers only sizes of which an instance is taken; with ``same_slots``
    containers of one pod may get the same instance; with ``any_health`` pods get cards that are said to be unhealthy.
    """

    lock = "hamivgpu"

    def __init__(
        self, policy: str, rules: Sequence[Mapping[str, str]], settings: NvidiaSettings = DEFAULTS.nvidia, *,
        spread_scores: bool, started_only: bool = False, same_slots: bool = False, any_health: bool = False,
    ) -> None:  # fmt: skip
        self._policy, self._rules, self._spread_scores, self._any = policy, rules, spread_scores, any_health
        self._settings, self.factor = settings, max(settings.gpu_memory_factor, 1)
        self.started_only, self.same_slots, self.offered = started_only, same_slots, settings.resource_count_name
        self._shares: dict[int, tuple[Share, ...]] = {}
        self.names = (self.offered, settings.resource_memory_name, settings.resource_core_name)

    def demand_of(self, task: Task) -> Demand | None:
        """What the limits of the pod's containers ask for; init containers do not count."""
        shares = self.shares_of(task)
        if not shares:
            return None
        notes = task.annotations
        types = tuple(word.lower() for word in words(notes.get(USE_TYPE, "")))
        others = tuple(word.lower() for word in words(notes.get(NO_TYPE, "")))
        return Demand(
            shares, notes.get(MODE, ""), types, others,
            tuple(words(notes.get(USE_UUID, ""))), tuple(words(notes.get(NO_UUID, ""))),
            group_of(task) if notes.get(GROUP_POLICY) == SPREAD else "", matching(self._rules, task.labels),
        )  # fmt: skip

    def shares_of(self, task: Task) -> tuple[Share, ...]:
        """The same for pods of one template, which are many."""
        found = self._shares.get(task.template.number)
        if found is None:
            found = tuple(share for one in task.spec.containers if (share := self._share(one)) is not None)
            self._shares[task.template.number] = found
        return found

    def need(self, demand: Demand) -> Need:
        """See :class:`~stromboli.plugins.deviceshare.kind.Kind`."""
        cards, memories, cores, percents = zip(*demand.shares, strict=True)
        known = [memory for memory in memories if memory is not None]
        return Need(sum(cards), max(known) if known else None, max(cores), max(percents))

    def pool_of(self, node: NodeSpec) -> VGpuPool | None:
        """The cards that the device plugin has registered; None where some entry is not whole."""
        if any(amount(node.allocatable, name) <= 0 for name in self.names):
            return None
        entries = registered(node.annotations.get(REGISTER, ""))
        if not entries:
            return None
        cut = [self._settings.geometries_of(one.type) for one in entries]
        mode = MIG if entries[-1].mode == MIG and cut[-1] else SHARED
        cards = [
            Card(one.uuid, i, one.shares, one.memory, one.type, cut[i] if mode == MIG else (), one.healthy or self._any)
            for i, one in enumerate(entries)
        ]
        return VGpuPool(node.name, cards, mode, self)

    def _share(self, container: Container) -> Share | None:
        limits, (count, memory_name, cores) = container.resources.limits, self.names
        if count not in limits and memory_name not in limits:
            return None
        number = amount(limits, count) if count in limits else 1
        percentage = self._settings.resource_memory_percentage_name
        percent = stated(container, percentage) if percentage else 0
        memory = stated(container, memory_name)
        whole = percent or not memory
        return Share(number, None if whole else memory, stated(container, cores), min(percent or WHOLE, WHOLE))

    def ordered(self, cards: Iterable[Card]) -> list[Card]:
        """``cards`` in the order in which they are tried."""
        if self._policy == BINPACK:
            return sorted(cards, key=lambda card: (-card.used_memory, card.index))
        if self._policy == SPREAD:
            return sorted(cards, key=lambda card: (card.sharers, card.index))
        return sorted(cards, key=lambda card: -card.index)

    def score_of(self, card: Card, memory: int) -> float:
        """The score of a card that gets ``memory`` MB more."""
        policy = "" if self._policy == SPREAD and not self._spread_scores else self._policy
        return card_score(policy, card.used_memory + memory, card.memory, card.sharers)

    def holder(self, task: Task) -> _Holder:
        """What a card remembers of a pod."""
        return _Holder(group_of(task), matching(self._rules, task.labels), task.name)


def group_of(task: Task) -> str:
    """Namespace and PodGroup of a pod."""
    return f"{task.namespace}/{task.annotations.get(GROUP_NAME, '')}"


def matching(rules: Sequence[Mapping[str, str]], labels: Mapping[str, str]) -> tuple[int, ...]:
    """The rules all of whose labels a pod has, by number."""
    return tuple(number for number, rule in enumerate(rules) if rule and rule.items() <= labels.items())


def _without(slots: tuple[tuple[str, int], ...], slot: tuple[str, int]) -> tuple[tuple[str, int], ...]:
    """``slots`` without one of those that are equal to ``slot``."""
    at = slots.index(slot)
    return slots[:at] + slots[at + 1 :]


class VGpuPool:
    """The cards of one node, and the pieces that each pod holds, container by container."""

    def __init__(self, node: str, cards: list[Card], mode: str, kind: VGpu) -> None:
        self.names = kind.names
        self.node, self._cards, self._mode, self._kind = node, cards, mode, kind
        self.held: dict[str, tuple[tuple[Piece, ...], ...]] = {}
        self.by_uuid = {card.uuid: card for card in cards}
        self._known: dict[Demand, tuple[tuple[Piece, ...], ...] | None] = {}  # until the cards change

    def refusal(self, demand: Demand) -> Reason | None:
        """See :class:`~stromboli.plugins.deviceshare.kind.Pool`."""
        return REFUSED if self._pieces(demand) is None else None

    def cards(self) -> list[CardUse]:
        """See :class:`~stromboli.plugins.deviceshare.kind.Pool`."""
        return [
            CardUse(one.uuid, one.type, one.memory, one.used_memory, WHOLE, one.used_cores, one.sharers >= one.count)
            for one in self._cards
        ]

    def shortage(self, demand: Demand) -> str:
        """See :class:`~stromboli.plugins.deviceshare.kind.Pool`."""
        if demand.mode and demand.mode != self._mode:
            return f"pod required sharing mode {demand.mode:.40} is not the same as the node mode {self._mode:.40}"
        cards = (
            f"{card.uuid} {max(card.memory - card.used_memory, 0)} of {card.memory} MB, "
            f"{WHOLE - card.used_cores} % of its cores, {card.count - card.sharers} of {card.count} shares"
            + ("" if card.allows(demand) else " (not allowed to this pod)" if card.healthy else " (unhealthy)")
            for card in self._cards
        )
        return "free: " + "; ".join(cards)

    def score(self, demand: Demand) -> float:
        """The sum over the cards that the pod would get."""
        score = 0.0
        taken: list[Piece] = []
        for pieces in self._pieces(demand) or ():
            for piece in pieces:
                before = [other for other in taken if other.uuid == piece.uuid]
                card = self.by_uuid[piece.uuid]
                score += self._kind.score_of(card, piece.booked + sum(other.booked for other in before))
                taken.append(piece)
        return score

    def assign(self, task: Task, demand: Demand, now: float) -> Mapping[str, str]:
        """See :class:`~stromboli.plugins.deviceshare.kind.Pool`."""
        pieces = self._pieces(demand) or ()
        self._take(task, pieces)
        ids = ";".join("".join(f"{p.name},NVIDIA,{p.memory},{p.cores}:" for p in row) for row in pieces)
        seconds = str(int(now))
        return {
            f"{_PREFIX}vgpu-node": self.node, f"{_PREFIX}vgpu-time": seconds, IDS: ids,
            f"{_PREFIX}devices-to-allocate": ids, f"{_PREFIX}bind-phase": ALLOCATING, f"{_PREFIX}bind-time": seconds,
        }  # fmt: skip

    def restore(self, task: Task) -> None:
        """Pods that ask for shares hold the cards that ``vgpu-ids-new`` names."""
        if self._kind.shares_of(task):
            self._take(task, tuple(tuple(self._read(row)) for row in task.annotations.get(IDS, "").split(";")))

    def release(self, task: Task) -> None:
        """See :class:`~stromboli.plugins.deviceshare.kind.Pool`."""
        self._known.clear()
        holder = self._kind.holder(task)
        for pieces in self.held.pop(task.uid, ()):
            for piece in pieces:
                self.by_uuid[piece.uuid].take(task.uid, holder, piece, -1)

    def _read(self, text: str) -> Iterator[Piece]:
        for entry in text.split(":"):
            parts = entry.split(",")
            instance = split(parts[0])
            card = self.by_uuid.get(instance[0] if instance else parts[0])
            if len(parts) < HELD_FIELDS or card is None:
                continue
            memory, cores = number(parts[2]), number(parts[3])
            if memory is not None and cores is not None:
                slot = instance and slot_at(card.geometries, *instance[1:])
                yield Piece(card.uuid, memory, cores, parts[0], slot.memory // self._kind.factor if slot else memory)

    def _take(self, task: Task, rows: tuple[tuple[Piece, ...], ...]) -> None:
        self._known.clear()
        self.held[task.uid] = rows
        holder = self._kind.holder(task)
        for pieces in rows:
            for piece in pieces:
                self.by_uuid[piece.uuid].take(task.uid, holder, piece)

    def _pieces(self, demand: Demand) -> tuple[tuple[Piece, ...], ...] | None:
        """The pieces that each container would get; None where the cards do not suffice."""
        if demand not in self._known:
            remember(self._known, demand, self._found(demand))
        return self._known[demand]

    def _found(self, demand: Demand) -> tuple[tuple[Piece, ...], ...] | None:
        if demand.mode and demand.mode != self._mode:
            return None
        trial = {card.uuid: card for card in self._cards}
        found: list[tuple[Piece, ...]] = []
        for share in demand.shares:
            fitting = (
                piece for card in self._kind.ordered(trial.values())
                if card.has_room(share) and card.allows(demand) and (piece := card.piece(share, self._kind)) is not None
            )  # fmt: skip
            pieces = tuple(islice(fitting, share.cards))
            if len(pieces) < share.cards:
                return None
            found.append(pieces)
            if len(demand.shares) > 1:
                trial = {uuid: self._with(card, pieces) for uuid, card in trial.items()}
        return tuple(found)

    def _with(self, card: Card, pieces: Iterable[Piece]) -> Card:
        """``card`` with those of ``pieces`` on it that are its own, without a trace of their pod."""
        own = [piece for piece in pieces if piece.uuid == card.uuid]
        if not own:
            return card
        return replace(
            card, used_memory=card.used_memory + sum(p.booked for p in own),
            used_cores=card.used_cores + sum(p.cores for p in own), sharers=card.sharers + len(own),
            slots=card.slots if self._kind.same_slots else (*card.slots, *(p.slot for p in own if p.slot is not None)),
        )  # fmt: skip
