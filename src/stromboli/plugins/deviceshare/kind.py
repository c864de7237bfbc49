"""What a kind of device is to the scheduler: cards of a node that pods ask for, get, and give back."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from typing import Final, Protocol, TypeVar

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

Asked = TypeVar("Asked", bound=Hashable, contravariant=True)
Demand = TypeVar("Demand", bound=Hashable)


class Pool(Protocol[Asked]):
    """The cards of one kind on one node, and which pods hold what of them.

    A demand is what the kind made of a pod.  :meth:`assign` is asked only where :meth:`refusal` is None.
    """

    def refusal(self, demand: Asked) -> Reason | None:
        """Why the cards do not suffice for another pod; None where they do."""

    def shortage(self, demand: Asked) -> str:
        """What each card has left, for explanations."""

    def score(self, demand: Asked) -> float:
        """How well the pod suits the cards, from 0 to 100 for each card that it gets."""

    def assign(self, task: Task, demand: Asked, now: float) -> Mapping[str, str]:
        """Give a pod its cards; returns the annotations that tell the node's device plugin which."""

    def restore(self, task: Task) -> None:
        """Count what a pod's annotations say that it holds."""

    def release(self, task: Task) -> None:
        """Take back what a pod holds, if anything."""


class Kind(Protocol[Demand]):
    """One kind of device; ``lock`` is the annotation that locks a node while one of its pods starts, or empty."""

    lock: str

    def demand_of(self, task: Task) -> Demand | None:
        """What a pod asks for, alike for pods that ask alike; None for nothing."""

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
