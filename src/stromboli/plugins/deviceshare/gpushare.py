"""GPU memory in shares, or whole GPUs, of nodes with ``volcano.sh/gpu-memory`` and ``volcano.sh/gpu-number``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from stromboli.framework.extension.reason import Reason
from stromboli.model.spec import NodeSpec, PodSpec
from stromboli.model.task import Task
from stromboli.plugins.deviceshare.kind import MOST_CARDS, CardUse, Need, amount, number, words

GPU_MEMORY: Final = "volcano.sh/gpu-memory"
GPU_NUMBER: Final = "volcano.sh/gpu-number"
UNHEALTHY: Final = "volcano.sh/gpu-unhealthy-ids"
INDEX: Final = "volcano.sh/gpu-index"
PREDICATE_TIME: Final = "volcano.sh/predicate-time"

NO_MEMORY: Final = Reason("GpuShare no enough gpu memory on node {node}")
NO_CARDS: Final = Reason("GpuNumber no enough gpu number on node {node}")


class Demand(NamedTuple):
    """Memory of one card in MB, or a number of whole cards; the other is 0."""

    memory: int = 0
    number: int = 0


class GpuShare:
    """The kind: ``whole`` gives cards to one pod each, otherwise pods share their memory."""

    offered = ""
    """Cards are read from the capacity, which may be more than what is allocatable."""

    def __init__(self, *, whole: bool) -> None:
        self._whole, self.lock = whole, "" if whole else "gpu"

    def demand_of(self, task: Task) -> Demand | None:
        """What the pod's limits ask for: the larger of its containers' sum and its largest init container."""
        wanted = asked(task.spec, GPU_NUMBER if self._whole else GPU_MEMORY)
        if wanted <= 0:
            return None
        return Demand(number=wanted) if self._whole else Demand(memory=wanted)

    def need(self, demand: Demand) -> Need:
        """See :class:`~stromboli.plugins.deviceshare.kind.Kind`."""
        return Need(demand.number, None) if self._whole else Need(1, demand.memory)

    def pool_of(self, node: NodeSpec) -> GpuPool | None:
        """The node's healthy cards; they are of equal size."""
        memory, number = amount(node.capacity, GPU_MEMORY), amount(node.capacity, GPU_NUMBER)
        if memory <= 0 or number <= 0:
            return None
        unhealthy = set(words(node.annotations.get(UNHEALTHY, "")))
        cards = [card for card in range(min(number, MOST_CARDS)) if str(card) not in unhealthy]
        return GpuPool(node.name, memory // number, cards)


def asked(spec: PodSpec, name: str) -> int:
    """What a pod's limits name: its containers' sum, or more if an init container asks for more."""
    together = sum(amount(container.resources.limits, name) for container in spec.containers)
    return max([together, *(amount(container.resources.limits, name) for container in spec.init_containers)])


class GpuPool:
    """The cards of one node, ``size`` MB each, by number; ``held`` are the demands on each by pod."""

    def __init__(self, node: str, size: int, cards: list[int]) -> None:
        self.size = size
        self.held: dict[int, dict[str, int]] = {card: {} for card in cards}
        self._no_memory, self._no_cards = NO_MEMORY.of(node=node), NO_CARDS.of(node=node)

    def refusal(self, demand: Demand) -> Reason | None:
        """See :class:`~stromboli.plugins.deviceshare.kind.Pool`."""
        if self._cards_for(demand) is not None:
            return None
        return self._no_cards if demand.number else self._no_memory

    def cards(self) -> list[CardUse]:
        """See :class:`~stromboli.plugins.deviceshare.kind.Pool`; a pod that holds no memory has the card for itself."""
        used = ((card, sum(memory or self.size for memory in pods.values())) for card, pods in self.held.items())
        return [CardUse(str(card), "GPU", self.size, taken) for card, taken in used]

    def shortage(self, demand: Demand) -> str:
        """See :class:`~stromboli.plugins.deviceshare.kind.Pool`."""
        if demand.number:
            return f"free: {sum(not pods for pods in self.held.values())} of {len(self.held)} cards"
        left = (
            f"{card} {max(self.size - sum(pods.values()), 0)} of {self.size} MB" for card, pods in self.held.items()
        )
        return "free: " + ", ".join(left)

    def score(self, demand: Demand) -> float:
        """Nodes are alike."""
        return 0.0

    def assign(self, task: Task, demand: Demand, now: float) -> Mapping[str, str]:
        """The lowest cards that fit."""
        cards = self._cards_for(demand) or []
        self._hold(task, cards, demand.memory)
        return {PREDICATE_TIME: str(int(now * 1e9)), INDEX: ",".join(map(str, cards))}

    def restore(self, task: Task) -> None:
        """Pods that ask for GPUs, whole or in shares, hold the cards that ``gpu-index`` names."""
        numbers = (number(word) for word in words(task.annotations.get(INDEX, "")))
        named = [card for card in numbers if card is not None]
        memory = asked(task.spec, GPU_MEMORY) if named else 0
        if memory or (named and asked(task.spec, GPU_NUMBER)):
            self._hold(task, named, memory)

    def release(self, task: Task) -> None:
        """See :class:`~stromboli.plugins.deviceshare.kind.Pool`."""
        for pods in self.held.values():
            pods.pop(task.uid, None)

    def _hold(self, task: Task, cards: list[int], memory: int) -> None:
        for card in cards:
            if card in self.held:
                self.held[card][task.uid] = memory

    def _cards_for(self, demand: Demand) -> list[int] | None:
        if demand.number:
            idle = [card for card, pods in self.held.items() if not pods]
            return idle[: demand.number] if len(idle) >= demand.number else None
        fitting = (card for card, pods in self.held.items() if self.size - sum(pods.values()) >= demand.memory)
        return next(([card] for card in fitting), None)
