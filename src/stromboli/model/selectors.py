"""Label selectors."""

from __future__ import annotations

from collections.abc import Mapping

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
