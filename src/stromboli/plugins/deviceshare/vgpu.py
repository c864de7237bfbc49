"""vGPU with HAMi-core: containers share cards, each with some memory and some percent of the cores.

The node's device plugin registers cards in ``volcano.sh/node-vgpu-register`` and reads which of them a pod gets from
the pod's annotations (https://github.com/Project-HAMi/volcano-vgpu-device-plugin).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Final, NamedTuple

from stromboli.framework.extension.reason import Reason
from stromboli.model.names import GROUP_NAME
from stromboli.model.spec import Container, NodeSpec
from stromboli.model.task import Task
from stromboli.plugins.deviceshare.kind import amount, number, words

_PREFIX: Final = "volcano.sh/"
NUMBER, MEMORY, CORES = (f"{_PREFIX}vgpu-{name}" for name in ("number", "memory", "cores"))
REGISTER: Final = f"{_PREFIX}node-vgpu-register"
MODE: Final = f"{_PREFIX}vgpu-mode"
IDS: Final = f"{_PREFIX}vgpu-ids-new"
USE_TYPE, NO_TYPE = "nvidia.com/use-gputype", "nvidia.com/nouse-gputype"
USE_UUID, NO_UUID = f"{_PREFIX}vgpu-use-gpuuuid", f"{_PREFIX}vgpu-nouse-gpuuuid"
GROUP_POLICY: Final = f"{_PREFIX}vgpu-podgroup-policy"
SPREAD, BINPACK = "spread", "binpack"
ALLOCATING: Final = "allocating"
FIELDS: Final = 6
"""Fields of a registered card: UUID, count, memory in MB, type, health, mode."""
MOST_CARDS: Final = 1024
WHOLE: Final = 100
"""Percent of a card's cores, and of its memory."""

MIG: Final = "mig"
NO_MIG: Final = Reason("node(s) with vGPUs in MIG mode, which are not shared yet", resolvable=False)
REFUSED: Final = Reason("hami-vgpuDeviceSharing error")


class Share(NamedTuple):
    """What one container asks for: a number of cards, and of each some memory (MB; None: all of it) and cores (%)."""

    number: int
    memory: int | None
    cores: int


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


class Piece(NamedTuple):
    """A share of one card that a container holds."""

    uuid: str
    memory: int
    cores: int


@dataclass(slots=True)
class Card:
    """A card; ``pods`` are the shares on it by pod: how many, and of which PodGroup and rules."""

    uuid: str
    index: int
    count: int
    memory: int
    type: str
    used_memory: int = 0
    used_cores: int = 0
    sharers: int = 0
    holders: dict[str, _Holder] = field(default_factory=dict)

    def take(self, uid: str, holder: _Holder, piece: Piece, times: int = 1) -> None:
        """Count a share, or with ``times`` -1 no longer."""
        self.used_memory += piece.memory * times
        self.used_cores += piece.cores * times
        self.sharers += times
        if times > 0:
            self.holders[uid] = holder
        else:
            self.holders.pop(uid, None)

    def need(self, share: Share) -> int:
        """The memory that a share takes here."""
        return self.memory if share.memory is None else share.memory

    def has_room(self, share: Share) -> bool:
        """Whether another share fits by count, memory and cores."""
        if self.sharers >= self.count or self.memory - self.used_memory < self.need(share):
            return False
        if self.used_cores + share.cores > WHOLE or (share.cores == WHOLE and self.sharers):
            return False
        return not (self.used_cores == WHOLE and share.cores == 0)

    def allows(self, demand: Demand) -> bool:
        """Whether the pod's annotations, and the pods that are here, let it use the card."""
        if self.uuid in demand.other_uuids or (demand.uuids and self.uuid not in demand.uuids):
            return False
        if any(holder.keeps_out(demand) for holder in self.holders.values()):
            return False
        name = self.type.lower()
        if demand.types:
            return any(word in name for word in demand.types)
        return not any(word in name for word in demand.other_types)


class _Holder(NamedTuple):
    """What a card remembers of a pod: its PodGroup, and the rules of exclusivity that it matches."""

    group: str
    rules: tuple[int, ...]

    def keeps_out(self, demand: Demand) -> bool:
        """Whether the pod of ``demand`` must not share a card with this one."""
        return self.group == demand.apart_from or not set(demand.rules).isdisjoint(self.rules)


class VGpu:
    """The kind; ``policy`` is ``binpack``, ``spread`` or empty, ``rules`` are labels of pods that share no card."""

    def __init__(self, policy: str, rules: Sequence[Mapping[str, str]], *, spread_scores: bool) -> None:
        self.lock = "hamivgpu"
        self._policy, self._rules, self._spread_scores = policy, rules, spread_scores

    def demand_of(self, task: Task) -> Demand | None:
        """What the limits of the pod's containers ask for; init containers do not count."""
        shares = tuple(_share(container) for container in task.spec.containers)
        if not any(share.number for share in shares):
            return None
        notes = task.annotations
        types = tuple(word.lower() for word in words(notes.get(USE_TYPE, "")))
        others = tuple(word.lower() for word in words(notes.get(NO_TYPE, "")))
        apart = notes.get(GROUP_POLICY) == SPREAD
        return Demand(
            shares, notes.get(MODE, ""), types, others,
            tuple(words(notes.get(USE_UUID, ""))), tuple(words(notes.get(NO_UUID, ""))),
            group_of(task) if apart else "", matching(self._rules, task.labels),
        )  # fmt: skip

    def pool_of(self, node: NodeSpec) -> VGpuPool | None:
        """The cards that the device plugin has registered; None where some entry is not whole."""
        if any(amount(node.allocatable, name) <= 0 for name in (NUMBER, MEMORY, CORES)):
            return None
        entries = [entry.split(",") for entry in node.annotations.get(REGISTER, "").split(":") if entry.strip()]
        if not entries or len(entries) > MOST_CARDS or not all(_is_whole(entry) for entry in entries):
            return None
        cards = [Card(e[0], i, int(e[1]), int(e[2]), e[3]) for i, e in enumerate(entries)]
        return VGpuPool(node.name, cards, entries[-1][5], self)

    def ordered(self, cards: Iterable[Card]) -> list[Card]:
        """``cards`` in the order in which they are tried."""
        if self._policy == BINPACK:
            return sorted(cards, key=lambda card: (-card.used_memory, card.index))
        if self._policy == SPREAD:
            return sorted(cards, key=lambda card: (card.sharers, card.index))
        return sorted(cards, key=lambda card: -card.index)

    def score_of(self, card: Card, memory: int) -> float:
        """The score of a card that gets ``memory`` MB more."""
        if self._policy == BINPACK and card.memory:
            return 100.0 * (card.used_memory + memory) / card.memory
        return 100.0 if self._policy == SPREAD and self._spread_scores and not card.sharers else 0.0

    def holder(self, task: Task) -> _Holder:
        """What a card remembers of a pod."""
        return _Holder(group_of(task), matching(self._rules, task.labels))


def group_of(task: Task) -> str:
    """Namespace and PodGroup of a pod."""
    return f"{task.namespace}/{task.annotations.get(GROUP_NAME, '')}"


def matching(rules: Sequence[Mapping[str, str]], labels: Mapping[str, str]) -> tuple[int, ...]:
    """The rules all of whose labels a pod has, by number."""
    return tuple(number for number, rule in enumerate(rules) if rule and rule.items() <= labels.items())


def _share(container: Container) -> Share:
    limits, requests = container.resources.limits, container.resources.requests
    memory = amount(limits, MEMORY) or amount(requests, MEMORY)
    number = amount(limits, NUMBER) or (1 if memory else 0)
    return Share(max(number, 0), memory or None, amount(limits, CORES))


def _is_whole(entry: Sequence[str]) -> bool:
    return len(entry) >= FIELDS and all(number(text) is not None for text in entry[1:3])


class VGpuPool:
    """The cards of one node, and the pieces that each pod holds, container by container."""

    def __init__(self, node: str, cards: list[Card], mode: str, kind: VGpu) -> None:
        self._node, self.cards, self._mode, self._kind = node, cards, mode, kind
        self.held: dict[str, tuple[tuple[Piece, ...], ...]] = {}
        self._by_uuid = {card.uuid: card for card in cards}

    def refusal(self, demand: Demand) -> Reason | None:
        """See :class:`~stromboli.plugins.deviceshare.kind.Pool`."""
        if self._mode == MIG:
            return NO_MIG
        return REFUSED if self._pieces(demand) is None else None

    def score(self, demand: Demand) -> float:
        """The sum over the cards that the pod would get."""
        score = 0.0
        taken: list[Piece] = []
        for pieces in self._pieces(demand) or ():
            for piece in pieces:
                before = [other for other in taken if other.uuid == piece.uuid]
                card = self._by_uuid[piece.uuid]
                score += self._kind.score_of(card, piece.memory + sum(other.memory for other in before))
                taken.append(piece)
        return score

    def assign(self, task: Task, demand: Demand, now: float) -> Mapping[str, str]:
        """See :class:`~stromboli.plugins.deviceshare.kind.Pool`."""
        pieces = self._pieces(demand) or ()
        self._take(task, pieces)
        ids = ";".join("".join(f"{p.uuid},NVIDIA,{p.memory},{p.cores}:" for p in row) for row in pieces)
        seconds = str(int(now))
        return {
            f"{_PREFIX}vgpu-node": self._node, f"{_PREFIX}vgpu-time": seconds, IDS: ids,
            f"{_PREFIX}devices-to-allocate": ids, f"{_PREFIX}bind-phase": ALLOCATING, f"{_PREFIX}bind-time": seconds,
        }  # fmt: skip

    def restore(self, task: Task) -> None:
        """Pods hold the cards that ``vgpu-ids-new`` names."""
        self._take(task, tuple(tuple(self._read(row)) for row in task.annotations.get(IDS, "").split(";")))

    def release(self, task: Task) -> None:
        """See :class:`~stromboli.plugins.deviceshare.kind.Pool`."""
        holder = self._kind.holder(task)
        for pieces in self.held.pop(task.uid, ()):
            for piece in pieces:
                self._by_uuid[piece.uuid].take(task.uid, holder, piece, -1)

    def _read(self, text: str) -> Iterator[Piece]:
        for entry in text.split(":"):
            parts = entry.split(",")
            if len(parts) < 4 or parts[0] not in self._by_uuid:
                continue
            memory, cores = number(parts[2]), number(parts[3])
            if memory is not None and cores is not None:
                yield Piece(parts[0], memory, cores)

    def _take(self, task: Task, rows: tuple[tuple[Piece, ...], ...]) -> None:
        self.held[task.uid] = rows
        holder = self._kind.holder(task)
        for pieces in rows:
            for piece in pieces:
                self._by_uuid[piece.uuid].take(task.uid, holder, piece)

    def _pieces(self, demand: Demand) -> tuple[tuple[Piece, ...], ...] | None:
        """The pieces that each container would get; None where the cards do not suffice."""
        if demand.mode and demand.mode != self._mode:
            return None
        trial = {card.uuid: card for card in self.cards}
        found: list[tuple[Piece, ...]] = []
        for share in demand.shares:
            fitting = (
                card for card in self._kind.ordered(trial.values()) if card.has_room(share) and card.allows(demand)
            )
            pieces = tuple(Piece(card.uuid, card.need(share), share.cores) for card in islice(fitting, share.number))
            if len(pieces) < share.number:
                return None
            found.append(pieces)
            if len(demand.shares) > 1:
                trial = {uuid: self._with(card, pieces) for uuid, card in trial.items()}
        return tuple(found)

    @staticmethod
    def _with(card: Card, pieces: Iterable[Piece]) -> Card:
        """``card`` with those of ``pieces`` on it that are its own, without a trace of their pod."""
        own = [piece for piece in pieces if piece.uuid == card.uuid]
        if not own:
            return card
        memory, cores = sum(p.memory for p in own), sum(p.cores for p in own)
        return Card(
            card.uuid, card.index, card.count, card.memory, card.type,
            card.used_memory + memory, card.used_cores + cores, card.sharers + len(own), card.holders,
        )  # fmt: skip
