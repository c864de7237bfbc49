"""Which nodes suit a scheduler: the policies that a sharding configuration names, each with its arguments."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from stromboli.errors import ManifestError

WARMUP_LABEL: Final = "node.volcano.sh/warmup"
ROUNDED: Final = 2
"""Decimals of a utilisation that count."""


class NodeUse(NamedTuple):
    """A node, its labels, and the part of its CPUs that pods request, 0 to 1; None where its capacity is unknown."""

    name: str
    utilisation: float | None
    labels: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Policy:
    """What every policy answers; this one accepts every node, all alike."""

    @property
    def reads(self) -> frozenset[str]:
        """The labels of nodes on which its answers depend."""
        return frozenset()

    def accepts(self, node: NodeUse) -> bool:
        """Whether the scheduler may have ``node``."""
        return True

    def score(self, node: NodeUse) -> float:
        """How well ``node`` suits, 0 to 1."""
        return 0.0

    def select(self, nodes: Sequence[NodeUse]) -> Sequence[NodeUse]:
        """The nodes that are taken of those that are left, the best first."""
        return nodes


@dataclass(frozen=True, slots=True)
class AllocationRate(Policy):
    """Nodes whose utilisation lies within a range; fuller ones first."""

    least: float
    most: float

    def accepts(self, node: NodeUse) -> bool:
        """Whether the utilisation, to two decimals, lies within the range."""
        return node.utilisation is not None and self.least <= round(node.utilisation, ROUNDED) <= self.most

    def score(self, node: NodeUse) -> float:
        """Where in the range the utilisation lies; 1 where the range has no width."""
        if self.most <= self.least:
            return 1.0
        return (round(node.utilisation or 0.0, ROUNDED) - self.least) / (self.most - self.least)


@dataclass(frozen=True, slots=True)
class Warmup(Policy):
    """Nodes with a label first, such as those that hold images already."""

    label: str = WARMUP_LABEL
    value: str = "true"

    @property
    def reads(self) -> frozenset[str]:
        """Its one label."""
        return frozenset({self.label})

    def score(self, node: NodeUse) -> float:
        """1 with the label, else 0."""
        return float(node.labels.get(self.label) == self.value)


@dataclass(frozen=True, slots=True)
class NodeLimit(Policy):
    """At most ``most`` nodes; 0 for any number.  Too few nodes are reported: the controller cannot add any."""

    least: int = 0
    most: int = 0

    def select(self, nodes: Sequence[NodeUse]) -> Sequence[NodeUse]:
        """The best ones up to the limit."""
        return nodes[: self.most] if self.most else nodes


Arguments = Mapping[str, object]


def number(arguments: Arguments, key: str, default: float = 0.0) -> float:
    """A number among the arguments of a policy.  Raises ManifestError."""
    value = arguments.get(key, default)
    if isinstance(value, bool) or not isinstance(value, int | float) or value != value:
        raise ManifestError(f"{key} {str(value)[:40]!r} is no number")
    return float(value)


def _count(arguments: Arguments, key: str) -> int:
    value = number(arguments, key)
    if not value.is_integer() or value < 0:
        raise ManifestError(f"{key} {value:g} is no number of nodes")
    return int(value)


def _rate(arguments: Arguments) -> Policy:
    least, most = number(arguments, "minCPUUtil"), number(arguments, "maxCPUUtil")
    if not 0 <= least <= most <= 1:
        raise ManifestError(f"minCPUUtil {least:.2f} and maxCPUUtil {most:.2f} are no range within [0,1]")
    return AllocationRate(least, most)


def _warmup(arguments: Arguments) -> Policy:
    default = Warmup()
    label, value = arguments.get("warmupLabel") or default.label, arguments.get("warmupLabelValue") or default.value
    return Warmup(str(label), str(value).lower() if isinstance(value, bool) else str(value))


def _limit(arguments: Arguments) -> Policy:
    least, most = _count(arguments, "minNodes"), _count(arguments, "maxNodes")
    if 0 < most < least:
        raise ManifestError(f"maxNodes ({most}) must be >= minNodes ({least})")
    return NodeLimit(least, most)


ALLOCATION_RATE: Final = "allocation-rate"
WARMUP: Final = "warmup"
NODE_LIMIT: Final = "node-limit"
POLICIES: Final[Mapping[str, Callable[[Arguments], Policy]]] = {
    ALLOCATION_RATE: _rate,
    WARMUP: _warmup,
    NODE_LIMIT: _limit,
}
"""Each policy by its name, made from its arguments; those that it does not know are ignored."""
