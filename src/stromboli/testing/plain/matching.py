"""What specs say of nodes and of other pods: selectors, terms, taints."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from stromboli.model.spec import (
    LabelSelector,
    NodeSelectorTerm,
    NodeSpec,
    PodAffinity,
    PodAffinityTerm,
    PodSpec,
    Requirement,
    Taint,
    Toleration,
)
from stromboli.model.task import Task

Labels = Mapping[str, str]
Takes = Callable[[Labels], bool]

LISTS, PRESENCE, ORDERS = ("In", "NotIn"), ("Exists", "DoesNotExist"), ("Gt", "Lt")
WHOLE = re.compile(r"[+-]?[0-9]+")

# -- Requirements ----------------------------------------------------------------------------------------------------


def whole(text: str) -> int | None:
    """The 64-bit number that ``text`` spells, or None."""
    number = int(text) if WHOLE.fullmatch(text) else None
    return number if number is not None and -(2**63) <= number < 2**63 else None


def is_valid(want: Requirement, operators: Sequence[str]) -> bool:
    """Whether the API server would accept the requirement where only ``operators`` are known."""
    if want.operator not in operators:
        return False
    if want.operator in ORDERS:
        return len(want.values) == 1 and whole(want.values[0]) is not None
    return bool(want.values) == (want.operator in LISTS)


def holds(want: Requirement, value: str | None) -> bool:
    """Whether a label with ``value``, None where it is missing, satisfies a valid requirement."""
    if want.operator in ORDERS:
        number, bound = whole(value or ""), whole(want.values[0])
        if number is None or bound is None:
            return False
        return number > bound if want.operator == "Gt" else number < bound
    return {
        "In": value in want.values,
        "NotIn": value not in want.values,
        "Exists": value is not None,
        "DoesNotExist": value is None,
    }[want.operator]


# -- Pods by label ---------------------------------------------------------------------------------------------------


def matcher(selector: LabelSelector | None) -> Takes:
    """Whether labels satisfy a selector: without one nothing does, and an empty one is satisfied by everything."""
    if selector is None or not all(is_valid(want, LISTS + PRESENCE) for want in selector.match_expressions):
        return lambda labels: False
    equal, wanted = selector.match_labels.items(), selector.match_expressions
    return lambda labels: (
        all(labels.get(key) == value for key, value in equal)
        and all(holds(want, labels.get(want.key)) for want in wanted)
    )


def narrowed(takes: Takes, own: Labels, same: Sequence[str], other: Sequence[str] = ()) -> Takes:
    """``takes``, and for each key that ``own`` has: the same value (``same``), or another or none (``other``)."""
    return lambda labels: (
        takes(labels)
        and all(labels.get(key) == own[key] for key in same if key in own)
        and all(labels.get(key) != own[key] for key in other if key in own)
    )


class PodTerm(NamedTuple):
    """Pods that a term is about, and the node label whose values make its domains."""

    topology_key: str
    takes: Callable[[Task], bool]


def pod_term(term: PodAffinityTerm, owner: Task, namespaces: Mapping[str, Labels]) -> PodTerm:
    """The term of ``owner``; with neither namespaces nor a namespace selector it is about its own namespace."""
    reaches = reach(term, owner, namespaces)
    labels = narrowed(matcher(term.label_selector), owner.labels, term.match_label_keys, term.mismatch_label_keys)
    return PodTerm(term.topology_key, lambda pod: reaches(pod.namespace) and labels(pod.labels))


def reach(term: PodAffinityTerm, owner: Task, namespaces: Mapping[str, Labels]) -> Callable[[str], bool]:
    """Which namespaces a term is about: an empty selector means all of them, any other one those that are known."""
    selector = term.namespace_selector
    if selector is None:
        listed = term.namespaces or (owner.namespace,)
        return lambda name: name in listed
    if not selector.match_labels and not selector.match_expressions:
        return lambda name: True
    selected = matcher(selector)
    return lambda name: name in term.namespaces or (name in namespaces and selected(namespaces[name]))


def company(spec: PodSpec) -> PodAffinity:
    """The pod's affinity to other pods, empty where it has none."""
    return (spec.affinity.pod_affinity if spec.affinity else None) or PodAffinity()


def solitude(spec: PodSpec) -> PodAffinity:
    """The pod's anti-affinity to other pods, empty where it has none."""
    return (spec.affinity.pod_anti_affinity if spec.affinity else None) or PodAffinity()


def has_pod_affinity(spec: PodSpec) -> bool:
    """Whether the pod states any of the two, be it empty."""
    return spec.affinity is not None and bool(spec.affinity.pod_affinity or spec.affinity.pod_anti_affinity)


def wishes(spec: PodSpec) -> list[tuple[PodAffinityTerm, int]]:
    """Preferred terms of both with their weights, those of the anti-affinity negative."""
    liked = [(each.term, each.weight) for each in company(spec).preferred]
    return [*liked, *((each.term, -each.weight) for each in solitude(spec).preferred)]


# -- Nodes -----------------------------------------------------------------------------------------------------------


def term_takes(term: NodeSelectorTerm, node: NodeSpec) -> bool:
    """Whether a node satisfies all of a term; an empty term, or one with an invalid part, takes no node."""
    expressions, fields = term.match_expressions, term.match_fields
    usable = all(is_valid(want, LISTS + PRESENCE + ORDERS) for want in expressions) and all(
        want.operator in LISTS and len(want.values) == 1 for want in fields
    )
    if not usable or not (expressions or fields):
        return False
    known = {"metadata.name": node.name}
    return all(holds(want, node.labels.get(want.key)) for want in expressions) and all(
        holds(want, known.get(want.key, "")) for want in fields
    )


def suits(spec: PodSpec, node: NodeSpec) -> bool:
    """Whether a node satisfies nodeSelector and, if there is any, one term of the required node affinity."""
    affinity = spec.affinity.node_affinity if spec.affinity else None
    required = affinity.required if affinity else None
    return all(node.labels.get(key) == value for key, value in spec.node_selector.items()) and (
        required is None or any(term_takes(term, node) for term in required.node_selector_terms)
    )


def preference(spec: PodSpec, node: NodeSpec) -> int:
    """Weights of the preferred node affinity that a node earns."""
    affinity = spec.affinity.node_affinity if spec.affinity else None
    return sum(each.weight for each in (affinity.preferred if affinity else ()) if term_takes(each.preference, node))


# -- Taints ----------------------------------------------------------------------------------------------------------

CORDON = Taint("node.kubernetes.io/unschedulable", "", "NoSchedule")
"""The taint that a pod must tolerate to use a cordoned node."""


def tolerates(toleration: Toleration, taint: Taint) -> bool:
    """Whether a toleration covers a taint."""
    if toleration.effect and toleration.effect != taint.effect:
        return False
    if toleration.key and toleration.key != taint.key:
        return False
    if toleration.operator == "Exists":
        return True
    return toleration.operator in ("", "Equal") and toleration.value == taint.value


def keeps_out(spec: PodSpec, node: NodeSpec) -> bool:
    """Whether a NoSchedule or NoExecute taint of the node is not tolerated."""
    taints = [taint for taint in node.taints if taint.effect in ("NoSchedule", "NoExecute")]
    return any(not any(tolerates(each, taint) for each in spec.tolerations) for taint in taints)


def reluctance(spec: PodSpec, node: NodeSpec) -> int:
    """How many PreferNoSchedule taints of the node are not tolerated."""
    taints = [taint for taint in node.taints if taint.effect == "PreferNoSchedule"]
    return sum(not any(tolerates(each, taint) for each in spec.tolerations) for taint in taints)
