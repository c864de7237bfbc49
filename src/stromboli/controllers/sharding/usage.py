"""How much of each node's CPUs pods request, kept up as pods come and go."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from stromboli.api.fields import Resource
from stromboli.controllers.sharding.policies import NodeUse
from stromboli.controllers.world import Key
from stromboli.errors import ManifestError, QuantityError
from stromboli.model.resources import quantity
from stromboli.model.spec import Wire

MIRROR: Final = "kubernetes.io/config.mirror"
ENDED: Final = frozenset({"Succeeded", "Failed"})
MOVED: Final = 0.5
"""By how much a node's utilisation, or relatively its capacity, must have moved to count as changed."""


class _Requirements(Wire, frozen=True):
    requests: dict[str, str | int | float] = {}


class _Container(Wire, frozen=True):
    resources: _Requirements = _Requirements()


class _PodSpec(Wire, frozen=True):
    node_name: str = ""
    containers: tuple[_Container, ...] = ()


class _PodStatus(Wire, frozen=True):
    phase: str = ""


class PodOnNode(Resource, frozen=True):
    """A pod, as far as it takes CPUs of a node."""

    spec: _PodSpec = _PodSpec()
    status: _PodStatus = _PodStatus()

    @property
    def milli_cpu(self) -> int:
        """Thousandths of CPUs that its containers request; 0 once it has ended, and for copies of static pods."""
        if self.status.phase in ENDED or MIRROR in self.metadata.annotations:
            return 0
        return sum(_milli(container.resources.requests.get("cpu", 0)) for container in self.spec.containers)


class _NodeStatus(Wire, frozen=True):
    capacity: dict[str, str | int | float] = {}


class SizedNode(Resource, frozen=True):
    """A node and what it has."""

    status: _NodeStatus = _NodeStatus()


def _milli(amount: str | int | float) -> int:
    try:
        return quantity.milli(amount)
    except QuantityError as error:
        raise ManifestError(f"cpu: {error}") from error


class Usage:
    """All nodes, what pods request on each, and whether a division may look different for it."""

    def __init__(self) -> None:
        self._nodes: dict[str, tuple[int, Mapping[str, str]]] = {}
        self._pods: dict[Key, tuple[str, int]] = {}
        self._requested: defaultdict[str, int] = defaultdict(int)
        self._divided: dict[str, float] = {}
        """The utilisation of each node at the last division."""

    def put_node(self, node: SizedNode, labels: Iterable[str]) -> bool:
        """Take a node in; whether that may change a division, which reads these ``labels`` and capacities alone."""
        metadata, capacity = node.metadata, _milli(node.status.capacity.get("cpu", 0))
        known = self._nodes.get(metadata.name)
        self._nodes[metadata.name] = capacity, metadata.labels
        if known is None or any(metadata.labels.get(label) != known[1].get(label) for label in labels):
            return True
        return abs(capacity - known[0]) > MOVED * known[0]

    def __len__(self) -> int:
        """How many nodes there are."""
        return len(self._nodes)

    def drop_node(self, name: str) -> bool:
        """A node is gone; whether it was there."""
        return self._nodes.pop(name, None) is not None

    def put_pod(self, pod: PodOnNode) -> bool:
        """Take a pod in; whether that may change a division."""
        metadata = pod.metadata
        key = (metadata.namespace, metadata.name)
        node, amount = pod.spec.node_name, pod.milli_cpu
        if self._pods.get(key) == (node, amount):
            return False
        moved = self.drop_pod(key)
        if not node or not amount:
            return moved
        self._pods[key] = node, amount
        self._requested[node] += amount
        return self._has_moved(node) or moved

    def drop_pod(self, key: Key) -> bool:
        """A pod is gone; whether that may change a division."""
        known = self._pods.pop(key, None)
        if known is None:
            return False
        node, amount = known
        self._requested[node] -= amount
        if not self._requested[node]:
            del self._requested[node]
        return self._has_moved(node)

    def _has_moved(self, node: str) -> bool:
        return abs((self._part(node) or 0.0) - self._divided.get(node, 0.0)) > MOVED

    def _part(self, node: str) -> float | None:
        capacity = self._nodes[node][0] if node in self._nodes else 0
        return min(self._requested.get(node, 0) / capacity, 1.0) if capacity > 0 else None

    def nodes(self) -> Iterator[NodeUse]:
        """All nodes as they are to be divided now."""
        self._divided = {name: self._part(name) or 0.0 for name in self._nodes}
        for name, (_, labels) in self._nodes.items():
            yield NodeUse(name, self._part(name), labels)
