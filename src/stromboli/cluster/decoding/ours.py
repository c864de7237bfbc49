"""Which of a cluster's objects a scheduler looks at."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import NamedTuple

from stromboli.cluster import kinds
from stromboli.cluster.kinds import Metadata


def node_labels(entries: Iterable[str]) -> tuple[tuple[str, str], ...]:
    """The labels that entries ``label:value`` name; those without a label or a value say nothing."""
    pairs = ([part.strip() for part in entry.partition(":")[::2]] for entry in entries)
    return tuple((key, value) for key, value in pairs if key and value)


def everything(_name: str) -> bool:
    """The share of a scheduler that divides with none."""
    return True


class Ours(NamedTuple):
    """``schedulers`` are the names whose pods are ours, ``labels`` those of which a node must have one, if any.

    ``owns`` says which of the names of nodes and of owners are ours, where several schedulers divide them.
    """

    schedulers: Collection[str]
    labels: tuple[tuple[str, str], ...] = ()
    owns: Callable[[str], bool] = everything

    def matches(self, found: kinds.Object) -> bool:
        """Whether a node is one of those that we schedule on, and a PodGroup one of those that we look after."""
        if isinstance(found, kinds.PodGroup):
            return self.owns(_owner(found.metadata))
        if not isinstance(found, kinds.Node):
            return True
        has = found.metadata.labels
        return self.owns(found.metadata.name) and (not self.labels or any(has.get(k) == v for k, v in self.labels))

    def counts(self, pod: kinds.Pod) -> bool:
        """Whether scheduling looks at the pod: it is ours, or has a node that may be."""
        node = pod.spec.node_name
        ours = pod.spec.scheduler_name in self.schedulers and self.owns(_owner(pod.metadata))
        return ours or bool(node and self.owns(node))


def _owner(metadata: Metadata) -> str:
    """The name by which schedulers divide pods and PodGroups: that of the first owner, else their own."""
    return metadata.owner_references[0].name if metadata.owner_references else metadata.name
