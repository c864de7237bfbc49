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
