"""Label selectors, and one label over many objects."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

import numpy as np
import numpy.typing as npt

from stromboli.model.spec import LabelSelector, Requirement


def holds(requirement: Requirement, labels: Mapping[str, str]) -> bool:
    """Whether ``labels`` satisfies one expression; an operator that label selectors do not know never holds."""
    value = labels.get(requirement.key)
    match requirement.operator:
        case "In":
            return value is not None and value in requirement.values
        case "NotIn":
            return value is None or value not in requirement.values
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
    return False


def selects(selector: LabelSelector, labels: Mapping[str, str]) -> bool:
    """Whether ``selector`` takes an object with ``labels``; an empty selector takes every object."""
    wanted = selector.match_labels.items()
    return all(labels.get(k) == v for k, v in wanted) and all(holds(r, labels) for r in selector.match_expressions)


def belonging(labels: Mapping[str, str], controller: str, named: Mapping[str, LabelSelector]) -> LabelSelector | None:
    """The selector of a pod's services and of its controller (``ReplicaSet/web``) together; None when it has none.

    ``named`` are selectors of the pod's namespace.  As Kubernetes' default constraints have it, labels of services
    and of a ReplicationController are laid over each other; those of ReplicaSets and StatefulSets must hold as well.
    """
    wanted: dict[str, str] = {}
    for name, selector in named.items():
        stated = selector.match_labels
        if name.startswith("Service/") and stated and all(labels.get(key) == stated[key] for key in stated):
            wanted.update(stated)
    own = named.get(controller)
    if own is None:
        more: tuple[Requirement, ...] = ()
    elif controller.startswith("ReplicationController/"):
        wanted.update(own.match_labels)
        more = ()
    else:
        exact = (Requirement(key, "In", (value,)) for key, value in own.match_labels.items())
        more = (*exact, *own.match_expressions)
    return LabelSelector(wanted, more) if wanted or more else None


class LabelColumn:
    """One label over all nodes: ``codes[row]`` numbers its value in ``values``; -1 where a node lacks the label."""

    __slots__ = ("codes", "values")

    def __init__(self, labels: Iterable[Mapping[str, str]], key: str) -> None:
        numbers: dict[str, int] = {}
        found = (one.get(key) for one in labels)
        codes = [-1 if value is None else numbers.setdefault(value, len(numbers)) for value in found]
        self.codes: npt.NDArray[np.int32] = np.array(codes, dtype=np.int32)
        self.values: list[str] = list(numbers)

    def where(self, holds: Callable[[str], bool], absent: bool) -> npt.NDArray[np.bool_]:
        """Which nodes' value satisfies ``holds``; a node without the label counts as ``absent``.  Shape (nodes,)."""
        table = np.array([*(holds(value) for value in self.values), absent], dtype=bool)
        return table[self.codes]
