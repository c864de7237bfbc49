"""nodegroup: which groups of nodes a queue may use, which it likes, and how much of each it may take."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from stromboli.errors import QuantityError
from stromboli.filters.columns import Bools, Floats, Masks, SpecColumn, picked
from stromboli.framework.extension.handlers import TaskEvent
from stromboli.model.job import HELD_STATUS
from stromboli.model.names import NODE_GROUP_NAME, NODE_GROUP_RESOURCE_LIMITS, ROOT_QUEUE
from stromboli.model.resources.amounts import le
from stromboli.model.resources.axes import Axes, Vector, add_to
from stromboli.model.resources.resource import Resource
from stromboli.model.spec import NodeSpec
from stromboli.model.table import NodeRows
from stromboli.model.task import Task
from stromboli.plugin import Hook, Plugin, Reason, arg, node_order, on_allocate, on_deallocate, predicate

if TYPE_CHECKING:
    from stromboli.framework.books.cluster_view import ClusterView
    from stromboli.framework.books.jobs import QueueInfo

INVALID = Reason("node group resource limit annotation invalid", resolvable=False)
UNLABELLED = Reason("node group label not found", resolvable=False)
UNRULED = Reason("node group affinity not specified", resolvable=False)
ELSEWHERE = Reason("node does not satisfy the node group affinity", resolvable=False)
EXCEEDED = Reason("node group resource limit exceeded", resolvable=False)

GROUP_REASONS = (INVALID, UNLABELLED, UNRULED, ELSEWHERE)
FITS = 0

REQUIRED_SCORE, PREFERRED_SCORE, AVOIDED_SCORE = 100.0, 50.0, -1.0

Limits = Mapping[str, Mapping[int, float]]
"""Most of each column that a queue may take of a group, by group; what is not named is unlimited."""


@dataclass(frozen=True, slots=True)
class Rules:
    """What a Queue's ``spec.affinity`` says: groups that must or should be used, and that must not or should not."""

    required: tuple[str, ...] = ()
    preferred: tuple[str, ...] = ()
    forbidden: tuple[str, ...] = ()
    avoided: tuple[str, ...] = ()

    def allow(self, group: str) -> bool:
        """Whether nodes of ``group`` may be used; a group that is only avoided may."""
        if group in self.avoided:
            return True
        return group not in self.forbidden and (group in self.required or group in self.preferred)

    def score(self, group: str, ordered: bool) -> float:
        """How much ``group`` is liked; ``ordered`` says that groups named earlier are liked more."""
        if group in self.avoided:
            return AVOIDED_SCORE
        score = REQUIRED_SCORE if group in self.required else 0.0
        if group in self.preferred:
            count, place = len(self.preferred), self.preferred.index(group) if ordered else 0
            score += PREFERRED_SCORE * (count - place) / count
        return score


NO_RULES = Rules()


class NodeGroup(Plugin, trusted=True):
    """Keeps a queue to the groups of nodes (label ``volcano.sh/nodegroup-name``) that its affinity names.

    A queue that names no group may use no labelled node; no queue may use nodes without the label, unless ``strict`` is
    off, which opens them to queues that name no group.  With ``enableHierarchy`` a queue without an affinity has that
    of the nearest queue above.  The annotation ``volcano.sh/nodegroup-resource-limits`` of a Queue bounds what it may
    take of a group.
    """

    name = "nodegroup"
    strict = arg("strict", bool, True)
    preferred_order = arg("enablePreferredOrder", bool, False)

    def on_session_open(self, session: ClusterView) -> None:
        """Read the queues, and add up what those with limits hold."""
        self.session, self._names = session, session.table.statics.names
        self._groups = session.table.statics.derived(group_column)
        inherits = session.config.hierarchy_enabled(self.name)
        self._rules = {name: rules_of(session.queues, name, inherits) for name in session.queues}
        self._limits = {name: limits_of(queue.annotations, session.axes) for name, queue in session.queues.items()}
        self._held: dict[tuple[str, str], list[int]] = {}
        if any(self._limits.values()):
            for task, row in session.snapshot.pods_on_nodes():
                if task.status in HELD_STATUS:
                    self._count(task, [row], 1)

    def hooks(self) -> Iterator[tuple[Hook, Callable[..., Any]]]:
        """The hooks, separate by queue; those of limits only where a queue has some."""
        limited = any(self._limits.values())
        of_limits = {"within_limits", "come", "come_together", "leave", "leave_together"}
        for hook, function in super().hooks():
            if limited or function.__name__ not in of_limits:
                yield (replace(hook, key=self._queue_of) if hook.point.per_node else hook), function

    def _queue_of(self, task: Task) -> str:
        job = self.session.job_of(task)
        return job.queue if job else ""

    # ------------------------------------------------------------------ groups

    @predicate.vector(static=True, reasons=GROUP_REASONS)
    def may_use(self, task: Task, nodes: NodeRows) -> Masks:
        """Whether the queue may use each row's group: 0, or the bit of the reason."""
        queue = self._queue_of(task)
        masks = np.array([self._refusal(queue, group) for group in self._groups.values], dtype=np.uint64)
        return picked(masks[self._groups.codes], nodes)

    def _refusal(self, queue: str, group: str) -> int:
        rules = self._rules.get(queue, NO_RULES)
        if self._limits.get(queue, {}) is None:
            reason = INVALID
        elif not group:
            if not self.strict and rules == NO_RULES:
                return FITS
            reason = UNLABELLED
        elif rules == NO_RULES:
            reason = UNRULED
        else:
            if rules.allow(group):
                return FITS
            reason = ELSEWHERE
        return 1 << GROUP_REASONS.index(reason)

    @node_order.vector(static=True)
    def liked(self, task: Task, nodes: NodeRows) -> Floats:
        """How much the queue likes each row's group."""
        rules = self._rules.get(self._queue_of(task), NO_RULES)
        scores = [rules.score(group, self.preferred_order) if group else 0.0 for group in self._groups.values]
        return picked(np.array(scores, dtype=np.float64)[self._groups.codes], nodes)

    # ------------------------------------------------------------------ limits

    @predicate.vector(reads=("queue",), reasons=(EXCEEDED,))
    def within_limits(self, task: Task, nodes: NodeRows) -> Bools | None:
        """Rows of groups of which the queue may take the task's request, too; None for a queue without limits."""
        queue = self._queue_of(task)
        limits = self._limits.get(queue)
        if not limits:
            return None
        vector = task.template.vector
        return self._groups.where(nodes, lambda group: self._has_room(queue, group, vector, limits))

    def _has_room(self, queue: str, group: str, vector: Vector, limits: Limits) -> bool:
        total = self._held.get((queue, group), []).copy()
        add_to(total, vector)
        most = limits.get(group, {})
        return all(column >= len(total) or le(total[column], limit) for column, limit in most.items())

    @on_allocate
    def come(self, event: TaskEvent) -> None:
        """A task has come to a node."""
        self._count(event.task, [self.session.table.statics.row[event.task.node_name]], 1)

    @on_allocate.many
    def come_together(self, task: Task, rows: Sequence[int]) -> None:
        """Tasks like this one have come to ``rows``."""
        self._count(task, rows, 1)

    @on_deallocate
    def leave(self, event: TaskEvent) -> None:
        """A task has left its node; one that is gone itself was in no group."""
        row = self.session.table.statics.row.get(event.task.node_name)
        if row is not None:
            self._count(event.task, [row], -1)

    @on_deallocate.many
    def leave_together(self, task: Task, rows: Sequence[int]) -> None:
        """Tasks like this one have left ``rows``."""
        self._count(task, rows, -1)

    def _count(self, task: Task, rows: Sequence[int], times: int) -> None:
        queue = self._queue_of(task)
        if not self._limits.get(queue):
            return
        for row in rows:
            group = self._groups.values[self._groups.codes[row]]
            add_to(self._held.setdefault((queue, group), []), task.template.vector, times)


def group_column(specs: Sequence[NodeSpec]) -> SpecColumn[str]:
    """The group of each of ``specs``; empty for a node without one."""
    return SpecColumn(specs, lambda node: node.labels.get(NODE_GROUP_NAME, ""))


def rules_of(queues: Mapping[str, QueueInfo], name: str, inherits: bool) -> Rules:
    """The rules of queue ``name``; where it has no affinity and ``inherits``, of the nearest queue above with one."""
    seen: set[str] = set()
    while name in queues and name not in seen:
        seen.add(name)
        spec = queues[name].spec
        if spec.affinity is not None or not inherits:
            return read_rules(spec.affinity or {})
        name = spec.parent or ROOT_QUEUE
    return NO_RULES


def read_rules(affinity: Mapping[str, object]) -> Rules:
    """The rules that ``spec.affinity`` spells; what is no list of names counts as empty."""
    return Rules(
        _names(affinity, "nodeGroupAffinity", "required"),
        _names(affinity, "nodeGroupAffinity", "preferred"),
        _names(affinity, "nodeGroupAntiAffinity", "required"),
        _names(affinity, "nodeGroupAntiAffinity", "preferred"),
    )


def _names(affinity: Mapping[str, object], side: str, strength: str) -> tuple[str, ...]:
    rules = affinity.get(side)
    groups = rules.get(f"{strength}DuringSchedulingIgnoredDuringExecution") if isinstance(rules, dict) else None
    return tuple(str(group) for group in groups) if isinstance(groups, list) else ()


def limits_of(annotations: Mapping[str, str], axes: Axes) -> Limits | None:
    """The limits in a Queue's annotations; None where they cannot be read."""
    text = annotations.get(NODE_GROUP_RESOURCE_LIMITS, "")
    if not text:
        return {}
    try:
        groups = msgspec.json.decode(text, type=dict[str, dict[str, str | int | float]])
        return {group: _by_column(Resource.from_list(written), written, axes) for group, written in groups.items()}
    except (msgspec.MsgspecError, QuantityError):
        return None


def _by_column(amounts: Resource, written: Mapping[str, object], axes: Axes) -> dict[int, float]:
    scalars = amounts.scalars or {}
    return {axes.column(name): amounts.get(name) for name in written if name in ("cpu", "memory") or name in scalars}
