"""Per-node hooks as the engine calls them: one vector function each, and its form for few rows."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from stromboli.framework.engine.fits import ABORTING
from stromboli.framework.extension.hook import Hook, Limit
from stromboli.framework.extension.reason import Reason
from stromboli.model.table import Node, NodeRows
from stromboli.model.task import Task

Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]
Masks = npt.NDArray[np.uint64]
Answer = npt.NDArray[Any] | None


@dataclass(slots=True, eq=False)
class Fit:
    """A predicate hook.  ``masks`` answers for many rows (bit i: reason i refuses), ``one`` for a single row.

    ``limit`` is that of the hook, see :class:`Hook`.
    """

    plugin: str
    hook: Hook
    vector: Callable[[Task, NodeRows], Answer]
    row: Callable[[Task, Node], object] | None
    reasons: list[Reason] = field(default_factory=list)
    limit: Callable[[Task], Limit | None] | None = None

    @property
    def abort_bits(self) -> int:
        """The bits of those reasons after which the plugin's further hooks are not asked."""
        return sum(1 << i for i, reason in enumerate(self.reasons) if reason.code in ABORTING)

    def masks(self, task: Task, nodes: NodeRows) -> Masks | None:
        """One mask a row, 0 where the task fits; None when the hook has nothing to say about such tasks."""
        answer = self.vector(task, nodes)
        if answer is None:
            return None
        if answer.dtype == np.bool_:
            return (~answer).astype(np.uint64)
        return answer.astype(np.uint64, copy=False)

    def admits(self, task: Task, nodes: NodeRows) -> Bools | None:
        """Which rows the task fits; None when the hook has nothing to say about such tasks."""
        answer = self.vector(task, nodes)
        if answer is None or answer.dtype == np.bool_:
            return answer
        fits: Bools = answer == 0
        return fits


@dataclass(slots=True, eq=False)
class Score:
    """A score hook: ``vector`` for many rows, ``row`` for one; ``normalise`` and ``alike`` for raw scores."""

    plugin: str
    hook: Hook
    vector: Callable[[Task, NodeRows], Answer]
    row: Callable[[Task, Node], float] | None
    normalise: Callable[[Task, Floats, float, float], Floats] | None = None
    alike: Callable[[Task, NodeRows, int], Floats | None] | None = None


def fit_of(plugin: str, hook: Hook, function: Callable[..., Any], row: Callable[..., Any] | None) -> Fit:
    """A predicate hook in the engine's form; a scalar one is asked row by row and its reasons numbered as they come."""
    if hook.form == "vector":
        return Fit(plugin, hook, function, row, [reason.said_by(plugin) for reason in hook.reasons])
    reasons: list[Reason] = []
    bits: dict[Reason, int] = {}

    def lifted(task: Task, nodes: NodeRows) -> Masks:
        return np.fromiter((mask_of(function(task, node)) for node in nodes), dtype=np.uint64, count=len(nodes))

    def mask_of(answer: object) -> int:
        said = answer if isinstance(answer, tuple) else () if answer is None else (answer,)
        return sum(1 << number(one.said_by(plugin)) for one in said)

    def number(reason: Reason) -> int:
        if reason not in bits:
            bits[reason] = len(reasons)
            reasons.append(reason)
        return bits[reason]

    return Fit(plugin, hook, lifted, function, reasons)


def score_of(plugin: str, hook: Hook, function: Callable[..., Any], row: Callable[..., Any] | None) -> Score:
    """A score hook in the engine's form; a scalar one is asked row by row."""
    if hook.form != "scalar":
        return Score(plugin, hook, function, row)

    def lifted(task: Task, nodes: NodeRows) -> Floats:
        return np.fromiter((function(task, node) for node in nodes), dtype=np.float64, count=len(nodes))

    return Score(plugin, hook, lifted, function)


def key_of(hook: Hook) -> Callable[[Task], Hashable]:
    """What the hook's answer depends on; without a declared key the task itself."""
    return hook.key or own_uid


def own_uid(task: Task) -> Hashable:
    """The key of an answer that no other task shares."""
    return task.uid


def reads_more(hook: Hook) -> bool:
    """Whether an answer may change without its node's row: it says so, or, having no key, promises nothing."""
    return bool(hook.reads) or hook.key is None


def row_sum(scorers: list[tuple[Score, Floats | None]], task: Task, node: Node) -> float:
    """The scores of one node, added up; each hook with its answer where that never changes."""
    total = 0.0
    for scorer, fixed in scorers:
        if fixed is not None:
            total += float(fixed[node.row])
        elif scorer.row is not None:
            total += scorer.row(task, node)
    return total
