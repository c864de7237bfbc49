"""What a kind of device is to the scheduler: cards of a node that pods ask for, get, and give back."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from typing import Final, NamedTuple, Protocol, TypeVar

from stromboli.errors import QuantityError
from stromboli.framework.extension.reason import Reason
from stromboli.model.resources import quantity
from stromboli.model.spec import Amount, Container, NodeSpec
from stromboli.model.task import Task

SPREAD, BINPACK = "spread", "binpack"

MOST_CARDS: Final = 1024
"""Cards of a node that are looked at."""

MOST_WORDS: Final = 256
"""Words of an annotation that count."""

MOST_DIGITS: Final = 12
"""Numbers in annotations have fewer digits."""

KNOWN: Final = 64
"""Answers about one node that are remembered: what pods ask for is their users' word, and has no end."""

THOUSAND: Final = 1000
"""Parts of a card."""

Asked = TypeVar("Asked", bound=Hashable, contravariant=True)
Demand = TypeVar("Demand", bound=Hashable)
Asks = TypeVar("Asks", bound=Hashable)
Answer = TypeVar("Answer")


def remember(known: dict[Asks, Answer], asked: Asks, answer: Answer) -> None:
    """Note an answer; what is known is forgotten once it is :data:`KNOWN` answers."""
    if len(known) >= KNOWN:
        known.clear()
    known[asked] = answer


class CardUse(NamedTuple):
    """A card, and how much of it pods hold: memory in MB (0 where it is not told), cores in percent where ``all_cores``
    is not 0.
    """

    name: str
    type: str
    memory: int
    used: int
    all_cores: int = 0
    used_cores: int = 0
    is_full: bool = False
    """Whether it has as many sharers as it may have."""

    @property
    def free(self) -> int:
        """Thousandths that another pod could get: the smaller of memory and cores."""
        memory = THOUSAND * max(self.memory - self.used, 0) // self.memory if self.memory else THOUSAND
        cores = THOUSAND * max(self.all_cores - self.used_cores, 0) // self.all_cores if self.all_cores else THOUSAND
        return 0 if self.is_full else min(memory, cores)


class Need(NamedTuple):
    """The measure of a demand: so many cards, and of each this memory (MB; None for a percentage) and cores (%)."""

    cards: int
    memory: int | None
    cores: int = 0
    percent: int = 100

    def share(self, size: int) -> int:
        """Thousandths of a card of ``size`` MB, rounded up; 1001 for more than a card has."""
        memory = 10 * self.percent if self.memory is None else -(-THOUSAND * self.memory // max(size, 1))
        return min(max(memory, 10 * self.cores), THOUSAND + 1)


class Pool(Protocol[Asked]):
    """The cards of one kind on one node, and which pods hold what of them.

    A demand is what the kind made of a pod.  :meth:`assign` is asked only where :meth:`refusal` is None.
    """

    def refusal(self, demand: Asked) -> Reason | None:
        """Why the cards do not suffice for another pod; None where they do."""

    def cards(self) -> list[CardUse]:
        """The cards in the order of the node, and what of them is in use."""

    def shortage(self, demand: Asked) -> str:
        """What each card has left, for explanations."""

    def score(self, demand: Asked) -> float:
        """How well the pod suits the cards, from 0 to 100 for each card that it gets."""

    def assign(self, task: Task, demand: Asked, now: float) -> Mapping[str, str]:
        """Give a pod its cards; returns the annotations that tell the node's device plugin which."""

    def restore(self, task: Task) -> None:
        """Count what a pod's annotations say that it holds, if it asks for any: every user may annotate a pod."""

    def release(self, task: Task) -> None:
        """Take back what a pod holds, if anything."""


class Kind(Protocol[Demand]):
    """One kind of device; ``lock`` is the annotation that locks a node while one of its pods starts, or empty.

    ``offered`` is a resource that every node with its cards has in its allocatable amounts; empty where none has to be.
    """

    lock: str
    offered: str

    def demand_of(self, task: Task) -> Demand | None:
        """What a pod asks for, alike for pods that ask alike; None for nothing."""

    def need(self, demand: Demand) -> Need:
        """How much that is, roughly: several containers count as one."""

    def pool_of(self, node: NodeSpec) -> Pool[Demand] | None:
        """The cards of a node; None for a node without."""


def card_score(policy: str, memory: int, size: int, sharers: int) -> float:
    """The score of a card of ``size`` MB with ``memory`` used by ``sharers``, from 0 to 100."""
    if policy == BINPACK and size:
        return 100.0 * memory / size
    return 100.0 if policy == SPREAD and not sharers else 0.0


def stated(container: Container, name: str) -> int:
    """What a container asks for, by its limit if it has one."""
    resources = container.resources
    return amount(resources.limits if name in resources.limits else resources.requests, name)


def amount(amounts: Mapping[str, Amount], name: str) -> int:
    """A whole number from a resource list; 0 for what is not there or no number."""
    try:
        return quantity.whole(amounts.get(name, 0))
    except QuantityError:
        return 0


def number(text: str) -> int | None:
    """The number that a part of an annotation is; None for other text, and for more digits than an amount has."""
    return int(text) if text.isascii() and text.isdigit() and len(text) < MOST_DIGITS else None


def words(text: str) -> Iterable[str]:
    """The words of a comma-separated annotation, :data:`MOST_WORDS` at most."""
    parts = (part.strip() for part in text.split(",", MOST_WORDS)[:MOST_WORDS])
    return list(dict.fromkeys(word for word in parts if word))
