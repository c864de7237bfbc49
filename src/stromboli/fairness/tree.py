"""Hierarchical dominant resource fairness: queues in a tree, jobs as its leaves.

Siblings are compared by dominant share over weight.  A child whose job cannot use any more (*saturated*) no longer
counts against its siblings, and a branch's usage is that of its children scaled down to the poorest of them.
(Bhattacharya et al., "Hierarchical Scheduling for Diverse Datacenter Workloads", SoCC 2013.)

Children are added up in the order in which they came, so equal histories give equal shares to the last bit.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from weakref import ref

from stromboli.fairness.share import divisors, dominant_share
from stromboli.model.resources.amounts import MIN

ROOT = "root"

_WEIGHT = re.compile(r"[+-]?(\d++\.?\d*+|\.\d++)([eE][+-]?\d++)?", re.ASCII)


class QueueNode:
    """One node; ``children`` is None for a job.

    ``allocated`` is by column: what a job holds, or what a branch counts for; ``request`` is what a job asks for in
    all.  ``stale`` says that something below has changed.
    """

    __slots__ = (
        "__weakref__", "_parent", "allocated", "children", "name", "request", "saturated", "share", "stale", "weight",
    )  # fmt: skip

    def __init__(self, name: str, weight: float, parent: QueueNode | None, is_job: bool = False) -> None:
        self.name, self.weight = name, weight
        self._parent = ref(parent) if parent is not None else None  # no cycle: the root holds them all
        self.children: dict[str, QueueNode] | None = None if is_job else {}
        self.allocated: list[float] = []
        self.request: list[int] = []
        self.share = 0.0
        self.saturated = self.stale = False

    def mark(self) -> None:
        """Let this node and all above it be worked out again."""
        node: QueueNode | None = self
        while node is not None:
            node.stale = True
            node = node._parent() if node._parent is not None else None


class QueueTree:
    """The tree of one session.  ``total`` is what the cluster has, by column.

    Change it with :meth:`place`, then call :meth:`update` before comparing.
    """

    def __init__(self, total: Sequence[int]) -> None:
        self._total = list(total)
        self._parts_of = divisors(total)
        self._demanding: list[bool] = []
        self.root = QueueNode(ROOT, 1.0, None)
        self._jobs: dict[str, QueueNode] = {}

    def place(
        self, uid: str, path: Sequence[str], weights: Sequence[float], held: Sequence[int], request: Sequence[int]
    ) -> None:
        """Put a job under the branch ``path`` (made where missing, with ``weights``), or renew what it holds.

        The first name of the path stands for the root, whatever it is.  Vectors are as long as the total.
        """
        job = self._jobs.get(uid)
        if job is None:
            branch = self._branch(path, weights)
            job = self._jobs[uid] = QueueNode(uid, 1.0, branch, is_job=True)
            _children(branch)[uid] = job
        job.allocated, job.request = [float(amount) for amount in held], list(request)
        job.share = dominant_share(held, self._parts_of)
        job.mark()

    def _branch(self, path: Sequence[str], weights: Sequence[float]) -> QueueNode:
        node = self.root
        for depth, name in enumerate(path[1:], 1):
            children = _children(node)
            if name not in children:
                weight = weights[depth] if depth < len(weights) else 1.0
                children[name] = QueueNode(name, weight, node)
            node = children[name]
        return node

    def update(self, held: Sequence[int]) -> None:
        """Work out shares and saturation; ``held`` is what all jobs hold together, by column."""
        demanding = [have < most for have, most in zip(held, self._total, strict=True)]
        everything = demanding != self._demanding
        self._demanding = demanding
        if everything or self.root.stale:
            self._renew(self.root, everything)

    def _renew(self, node: QueueNode, everything: bool) -> None:
        node.stale = False
        if node.children is None:
            node.saturated = self._is_saturated(node)
            return
        children = node.children.values()
        for child in children:
            if everything or child.stale:
                self._renew(child, everything)
        node.saturated = all(child.saturated for child in children)
        node.allocated = self._combined([child for child in children if child.share])
        node.share = dominant_share(node.allocated, self._parts_of)

    def _is_saturated(self, job: QueueNode) -> bool:
        """Whether the job has all of something that it asks for, or asks for something of which nothing is left."""
        for have, asked, demanding in zip(job.allocated, job.request, self._demanding, strict=True):
            if have >= MIN and asked and (have >= asked or not demanding):
                return True
        return False

    def _combined(self, children: Sequence[QueueNode]) -> list[float]:
        """What a branch counts for: unsaturated children scaled to the smallest share among them."""
        smallest = min((child.share for child in children if not child.saturated), default=1.0)
        smallest = min(smallest, 1.0)
        total = [0.0] * len(self._total)
        for child in children:
            scale = 1.0 if child.saturated else smallest / child.share
            for column, amount in enumerate(child.allocated):
                total[column] += amount * scale
        return total

    def compare(self, left: Sequence[str], right: Sequence[str]) -> int:
        """-1, 0 or 1: which of two branches comes first, level by level from the root.

        Unsaturated before saturated, then the smaller share for its weight; equal as far as the shorter path goes.
        """
        levels = zip(self._walk(left), self._walk(right), strict=False)
        for (saturated, share), (other_saturated, other_share) in levels:
            if saturated != other_saturated:
                return 1 if saturated else -1
            if share != other_share:
                return -1 if share < other_share else 1
        return 0

    def _walk(self, path: Sequence[str]) -> Iterator[tuple[bool, float]]:
        """(saturated, share over weight) from the root along ``path``; a branch without jobs has a share of 0."""
        node: QueueNode | None = self.root
        yield self.root.saturated, self.root.share
        for name in path[1:]:
            node = node.children.get(name) if node is not None and node.children is not None else None
            yield (False, 0.0) if node is None else (node.saturated, node.share / node.weight)


def _children(branch: QueueNode) -> dict[str, QueueNode]:
    """The children of a node that is no job."""
    if branch.children is None:
        branch.children = {}
    return branch.children


def parse_path(text: str) -> list[str]:
    """The path of a queue's annotation, ``root/eng/prod``; an empty one is the root itself."""
    return text.split("/")


def parse_weights(text: str) -> list[float]:
    """The weights of a queue's annotation, ``1/2/8``; what is no number, or less than 1, counts as 1."""
    return [max(float(part), 1.0) if _WEIGHT.fullmatch(part) else 1.0 for part in text.split("/")]
