"""conformance: what keeps the cluster itself running is never evicted."""

from __future__ import annotations

from collections.abc import Sequence

from stromboli.model.task import Task
from stromboli.plugin import Plugin, preemptable, reclaimable, unified_evictable

CRITICAL_CLASSES = ("system-cluster-critical", "system-node-critical")
SYSTEM_NAMESPACE = "kube-system"


class Conformance(Plugin):
    """Keeps pods of Kubernetes' own priority classes and of its system namespace from being victims."""

    name = "conformance"

    @preemptable(protects=True)
    def not_critical(self, preemptor: Task, preemptees: Sequence[Task]) -> list[Task]:
        """The candidates without system pods."""
        return [task for task in preemptees if not is_critical(task)]

    @reclaimable(protects=True)
    def not_critical_of_others(self, reclaimer: Task, reclaimees: Sequence[Task]) -> list[Task]:
        """The candidates without system pods."""
        return [task for task in reclaimees if not is_critical(task)]

    @unified_evictable(protects=True)
    def not_critical_for_gang(self, context: object, candidates: Sequence[Task]) -> list[Task]:
        """The candidates without system pods."""
        return [task for task in candidates if not is_critical(task)]


def is_critical(task: Task) -> bool:
    """Whether the pod belongs to the cluster's own machinery."""
    return task.spec.priority_class_name in CRITICAL_CLASSES or task.namespace == SYSTEM_NAMESPACE
