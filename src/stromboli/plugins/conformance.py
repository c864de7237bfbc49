"""conformance: what keeps the cluster itself running is never evicted."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from stromboli.model.task import Task
from stromboli.plugin import Hook, Plugin, preemptable, reclaimable, unified_evictable, victim_tasks

if TYPE_CHECKING:
    from stromboli.framework.books.cluster_view import ClusterView

CRITICAL_CLASSES = ("system-cluster-critical", "system-node-critical")
SYSTEM_NAMESPACE = "kube-system"


class Conformance(Plugin, trusted=True):
    """Keeps pods of Kubernetes' own priority classes and of its system namespace from being victims."""

    name = "conformance"
    _lets_shuffle = False

    def on_session_open(self, session: ClusterView) -> None:
        """See whether evictions without a preemptor are let through, as in the reference."""
        self._lets_shuffle = session.compat.asks("protections-absolute")
        self.say_spared = session.tells("spared")

    def hooks(self) -> Iterator[tuple[Hook, Callable[..., Any]]]:
        """All of them; in the reference's way nothing is kept from being moved."""
        return (
            (hook, function)
            for hook, function in super().hooks()
            if not (self._lets_shuffle and hook.point.name == "victim_tasks")
        )

    @victim_tasks(protects=True)
    def not_critical_to_move(self, tasks: Sequence[Task]) -> list[Task]:
        """The tasks without system pods."""
        return self._uncritical(tasks)

    @preemptable(protects=True, own=True)
    def not_critical(self, preemptor: Task, preemptees: Sequence[Task]) -> list[Task]:
        """The candidates without system pods."""
        return self._uncritical(preemptees)

    @reclaimable(protects=True, own=True)
    def not_critical_of_others(self, reclaimer: Task, reclaimees: Sequence[Task]) -> list[Task]:
        """The candidates without system pods."""
        return self._uncritical(reclaimees)

    @unified_evictable(protects=True)
    def not_critical_for_gang(self, context: object, candidates: Sequence[Task]) -> list[Task]:
        """The candidates without system pods."""
        return self._uncritical(candidates)

    def _uncritical(self, tasks: Sequence[Task]) -> list[Task]:
        if self.say_spared:
            for task in filter(is_critical, tasks):
                why = f"priority class {task.spec.priority_class_name or '(none)'}, namespace {task.namespace}"
                self.say_spared(plugin=self.name, task=task.key, why=why)
        return [task for task in tasks if not is_critical(task)]


def is_critical(task: Task) -> bool:
    """Whether the pod belongs to the cluster's own machinery."""
    return task.spec.priority_class_name in CRITICAL_CLASSES or task.namespace == SYSTEM_NAMESPACE
