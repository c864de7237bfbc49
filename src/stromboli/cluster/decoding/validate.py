"""Whether an object can be used at all, checked beforehand: what ``lint`` asks, and what decoding would raise."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from stromboli.api.topology import HYPER_NODE, NODE, SELECTOR_MISSING, SELECTORS_CLASH, Member
from stromboli.cluster import kinds
from stromboli.cluster.decoding.amounts import COUNT, check_whole
from stromboli.cluster.decoding.decode import (
    demand_of,
    node_of,
    podgroup_of,
    priority_class_of,
    queue_of,
    quota_of,
    task_of,
)
from stromboli.cluster.decoding.templates import TemplateStore
from stromboli.cluster.job_pods import with_defaults
from stromboli.errors import ManifestError
from stromboli.model.values import patterns

_MEMBER_TYPES: Final = (NODE, HYPER_NODE)
_PERCENTAGE: Final = re.compile(r"[0-9]{1,9}%", re.ASCII)


def check(found: kinds.Object, store: TemplateStore) -> None:
    """Raise :class:`~stromboli.errors.ManifestError`, naming object and field, for what cannot be used of ``found``."""
    if isinstance(found, kinds.Pod):
        task_of(found, store)
    elif (checks := _CHECKS.get(type(found))) is not None:
        checks(found)


def _check_hyper_node(hyper_node: kinds.HyperNode) -> None:
    name = f"HyperNode {hyper_node.metadata.name}"
    if hyper_node.spec.tier not in COUNT:
        raise ManifestError(f"{hyper_node.spec.tier!r:.40} is no tier", object=name, path="spec.tier")
    for number, member in enumerate(hyper_node.spec.members):
        problem, field = _member_problem(member)
        if problem:
            raise ManifestError(problem, object=name, path=f"spec.members[{number}].{field}")


def _member_problem(member: Member) -> tuple[str, str]:
    """(what is wrong, which field) of a HyperNode's member; empty texts when it is sound."""
    selector = member.selector
    given = [part for part in (selector.exact_match, selector.regex_match, selector.label_match) if part is not None]
    if member.type not in _MEMBER_TYPES:
        return f"{member.type[:40]!r} is neither {' nor '.join(_MEMBER_TYPES)}", "type"
    if not given:
        return SELECTOR_MISSING, "selector"
    if len(given) > 1:
        return SELECTORS_CLASH, "selector"
    if selector.regex_match is not None:
        told = patterns.problem(selector.regex_match.pattern)
        return told and f"member regexMatch pattern is invalid: {told}", "selector.regexMatch.pattern"
    return "", ""


def _check_budget(budget: kinds.PodDisruptionBudget) -> None:
    name = kinds.title("PodDisruptionBudget", budget.metadata)
    spec = budget.spec
    if spec.min_available is not None and spec.max_unavailable is not None:
        raise ManifestError("minAvailable and maxUnavailable exclude each other", object=name, path="spec")
    for field, value in (("minAvailable", spec.min_available), ("maxUnavailable", spec.max_unavailable)):
        path = f"spec.{field}"
        if isinstance(value, str) and not _PERCENTAGE.fullmatch(value):
            raise ManifestError(f"{value[:40]!r} is neither a number nor a percentage", object=name, path=path)
        if isinstance(value, int):
            try:
                check_whole(value, COUNT, path)
            except ManifestError as error:
                raise ManifestError(error.problem, object=name, path=path) from error


_CHECKS: Final[Mapping[type[kinds.Object], Callable[[Any], object]]] = {
    kinds.Node: node_of,
    kinds.PodGroup: podgroup_of,
    kinds.Queue: queue_of,
    kinds.PriorityClass: priority_class_of,
    kinds.ResourceQuota: quota_of,
    kinds.Job: with_defaults,
    kinds.HyperNode: _check_hyper_node,
    kinds.PodDisruptionBudget: _check_budget,
    kinds.ResourceClaim: demand_of,
}
"""What finds fault with an object, by its class; pods need the store of templates, too."""
