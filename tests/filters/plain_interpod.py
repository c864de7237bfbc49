"""Pod affinity of one pod on one node, answered from a plain list of pods."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from stromboli.filters.interpod import AFFINITY, ANTI_AFFINITY, EXISTING
from stromboli.filters.pod_terms import (
    NamespaceLabels,
    PodTerm,
    preferred_terms,
    required_affinity,
    required_anti_affinity,
    resolve,
)
from stromboli.model.spec import NodeSpec
from stromboli.model.task import Task

Neighbour: TypeAlias = tuple[Task, NodeSpec]
"""A pod and the node it is on."""


def refusal(task: Task, node: NodeSpec, others: Sequence[Neighbour], namespaces: NamespaceLabels) -> int | None:
    """The first reason against the node (a number from :data:`AFFINITY` on), or None."""
    needs = [resolve(term, task, namespaces) for term in required_affinity(task.spec)]
    if needs and not _satisfied(needs, task, node, others):
        return AFFINITY
    avoids = [resolve(term, task, namespaces) for term in required_anti_affinity(task.spec)]
    if any(_together(term, node, at) and term.pods.takes(other) for term in avoids for other, at in others):
        return ANTI_AFFINITY
    for other, at in others:
        held = (resolve(term, other, namespaces) for term in required_anti_affinity(other.spec))
        if any(_together(term, node, at) and term.pods.takes(task) for term in held):
            return EXISTING
    return None


def score(task: Task, node: NodeSpec, others: Sequence[Neighbour], namespaces: NamespaceLabels) -> int:
    """Weights of the pod's preferred terms for each pod in the domain, and of those pods' terms for the pod."""
    total = 0
    for other, at in others:
        for asker, asked in ((task, other), (other, task)):
            for each in preferred_terms(asker.spec):
                term = resolve(each.term, asker, namespaces)
                total += each.weight * (_together(term, node, at) and term.pods.takes(asked))
    return total


def _satisfied(needs: Sequence[PodTerm], task: Task, node: NodeSpec, others: Sequence[Neighbour]) -> bool:
    """Whether every term finds a pod that all terms match; the first of a group may start it where none is yet."""
    if any(term.topology_key not in node.labels for term in needs):
        return False
    matching = [at for other, at in others if all(term.pods.takes(other) for term in needs)]
    if all(any(_together(term, node, at) for at in matching) for term in needs):
        return True
    first = not any(term.topology_key in at.labels for at in matching for term in needs)
    return first and all(term.pods.takes(task) for term in needs)


def _together(term: PodTerm, node: NodeSpec, other: NodeSpec) -> bool:
    value = node.labels.get(term.topology_key)
    return value is not None and value == other.labels.get(term.topology_key)
