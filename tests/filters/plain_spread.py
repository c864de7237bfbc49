"""Topology spread of one pod, answered from plain lists of nodes and pods."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from math import floor, log

import numpy as np

from stromboli.filters.scores import beside_extremes
from stromboli.filters.selectors import node_suits, takes
from stromboli.filters.spread import HOSTNAME, MISSING_LABEL, MUST, SKEWED, Constraint, constraints, preferences
from stromboli.filters.taints import admits
from stromboli.model.spec import LabelSelector, NodeSpec
from stromboli.model.task import Task


def refusal(
    task: Task, node: NodeSpec, nodes: Mapping[str, NodeSpec], others: Sequence[tuple[Task, str]]
) -> int | None:
    """The first reason against ``node`` (:data:`MISSING_LABEL`, :data:`SKEWED`), or None.

    ``nodes`` are all nodes by name, ``others`` the pods on them (with the node's name) that are not being deleted.
    """
    musts = constraints(task, MUST)
    for must in musts:
        value = node.labels.get(must.topology_key)
        if value is None:
            return MISSING_LABEL
        found = _by_domain(must, musts, task, nodes, others)
        least = min(found.values()) if len(found) >= must.min_domains else 0
        if found.get(value, 0) + takes(must.wanted, task.labels) - least > must.max_skew:
            return SKEWED
    return None


def _by_domain(
    each: Constraint,
    every: Sequence[Constraint],
    task: Task,
    nodes: Mapping[str, NodeSpec],
    others: Sequence[tuple[Task, str]],
) -> dict[str, int]:
    """Pods that count, by domain; only nodes with the labels of ``every`` constraint make domains."""
    labelled = {name: spec for name, spec in nodes.items() if all(c.topology_key in spec.labels for c in every)}
    domains = {n: spec.labels.get(each.topology_key, "") for n, spec in labelled.items() if welcomes(each, task, spec)}
    found = Counter(domains[at] for other, at in others if at in domains and counts(each, other, task.namespace))
    return {value: found[value] for value in domains.values()}


def scores(
    task: Task,
    candidates: Sequence[NodeSpec],
    nodes: Mapping[str, NodeSpec],
    others: Sequence[tuple[Task, str]],
    default_selector: LabelSelector | None = None,
) -> list[int] | None:
    """The score of each candidate, 0 to 100; None where the pod has no preference.  Arguments as :func:`refusal`."""
    wishes = preferences(task, default_selector)
    if not wishes:
        return None
    strict = wishes if task.spec.topology_spread_constraints else []
    scored = [all(wish.topology_key in node.labels for wish in strict) for node in candidates]
    inside = [node for node, there in zip(candidates, scored, strict=True) if there]
    raw = {node.name: 0.0 for node in inside}
    for wish in wishes:
        found = _by_domain(wish, strict, task, nodes, others)
        weight = log((len(inside) if wish.topology_key == HOSTNAME else len(_values(wish, inside))) + 2)
        for node in inside:
            if wish.topology_key in node.labels:
                here = sum(at == node.name and counts(wish, other, task.namespace) for other, at in others)
                count = here if wish.topology_key == HOSTNAME else found.get(node.labels[wish.topology_key], 0)
                raw[node.name] += count * weight + (wish.max_skew - 1)
    rounded = np.array([floor(value) + (value - floor(value) >= 0.5) for value in raw.values()], dtype=np.int64)
    fair = iter(beside_extremes(rounded, int(rounded.min()), int(rounded.max())).tolist() if len(rounded) else ())
    return [next(fair) if there else 0 for there in scored]


def _values(wish: Constraint, nodes: Sequence[NodeSpec]) -> set[str]:
    return {node.labels.get(wish.topology_key, "") for node in nodes}


def counts(each: Constraint, task: Task, namespace: str) -> bool:
    """Whether a pod of that namespace counts."""
    return bool(each.wanted) and task.namespace == namespace and takes(each.wanted, task.labels)


def welcomes(each: Constraint, task: Task, node: NodeSpec) -> bool:
    """Whether the node takes part in the constraint of ``task``, going by its policies."""
    suits = not each.honor_affinity or node_suits(task.spec, node)
    return suits and (not each.honor_taints or admits(task.spec.tolerations, node.taints))
