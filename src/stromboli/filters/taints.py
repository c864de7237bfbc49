"""Taints and tolerations: which nodes keep a pod out, and which would rather not have it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from stromboli.filters.columns import Bools, SpecColumn
from stromboli.model.spec import NodeSpec, Taint, Toleration
from stromboli.model.table import Ints, NodeRows

EXCLUDING: Final = ("NoSchedule", "NoExecute")
"""Effects that keep a pod out."""
AVOIDING: Final = ("PreferNoSchedule",)
"""Effects that lower a node's score."""
CORDON: Final = Taint("node.kubernetes.io/unschedulable", "", "NoSchedule")
"""The taint that stands for ``spec.unschedulable``: pods that tolerate it may use a cordoned node."""

TaintColumn = SpecColumn[tuple[Taint, ...]]
"""The taints of all nodes; most nodes share one of a few tuples."""


def taint_column(specs: Sequence[NodeSpec]) -> TaintColumn:
    """The taints of ``specs``, row by row."""
    return SpecColumn(specs, lambda node: node.taints)


def cordon_column(specs: Sequence[NodeSpec]) -> SpecColumn[bool]:
    """Which of ``specs`` are cordoned."""
    return SpecColumn(specs, lambda node: node.unschedulable)


def tolerates(toleration: Toleration, taint: Taint) -> bool:
    """Whether the toleration covers the taint.

    An empty effect or key covers every one; operator Exists covers every value, Equal (or none) the same value.
    """
    named = toleration.effect in ("", taint.effect) and toleration.key in ("", taint.key)
    valued = toleration.operator in ("", "Equal") and toleration.value == taint.value
    return named and (valued or toleration.operator == "Exists")


def untolerated(tolerations: Sequence[Toleration], taints: Iterable[Taint], effects: Sequence[str]) -> int:
    """How many of the taints with one of ``effects`` no toleration covers."""
    left = (taint for taint in taints if taint.effect in effects)
    return sum(not any(tolerates(each, taint) for each in tolerations) for taint in left)


def admits(tolerations: Sequence[Toleration], taints: Iterable[Taint]) -> bool:
    """Whether a pod tolerates all taints that would keep it out."""
    return untolerated(tolerations, taints, EXCLUDING) == 0


def admitting_rows(tolerations: Sequence[Toleration], taints: TaintColumn, nodes: NodeRows) -> Bools:
    """Rows whose taints let the pod in.  Shape (rows,)."""
    return taints.where(nodes, lambda each: admits(tolerations, each))


def ignores_cordons(tolerations: Sequence[Toleration]) -> bool:
    """Whether a pod may use cordoned nodes."""
    return any(tolerates(each, CORDON) for each in tolerations)


def reluctance(tolerations: Sequence[Toleration], taints: Iterable[Taint]) -> int:
    """How many PreferNoSchedule taints the pod does not tolerate."""
    return untolerated(_about(tolerations, AVOIDING[0]), taints, AVOIDING)


def reluctance_rows(tolerations: Sequence[Toleration], taints: TaintColumn, nodes: NodeRows) -> Ints:
    """How many PreferNoSchedule taints of each row the pod does not tolerate.  Shape (rows,)."""
    return taints.count(nodes, lambda each: reluctance(tolerations, each))


def _about(tolerations: Sequence[Toleration], effect: str) -> list[Toleration]:
    return [each for each in tolerations if each.effect in ("", effect)]
