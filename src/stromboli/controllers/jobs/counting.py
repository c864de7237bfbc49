"""How many pods of a job are in which phase."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from stromboli.api.batch import TaskState
from stromboli.controllers.pods import PodView
from stromboli.model.names import POD_FAILED, POD_PENDING, POD_RUNNING, POD_SUCCEEDED

_FIELDS: Final = {POD_PENDING: "pending", POD_RUNNING: "running", POD_SUCCEEDED: "succeeded", POD_FAILED: "failed"}


@dataclass(slots=True)
class Counts:
    """Pods of a job by phase; those that are being deleted count as ``terminating`` only."""

    pending: int = 0
    running: int = 0
    succeeded: int = 0
    failed: int = 0
    terminating: int = 0
    unknown: int = 0
    tasks: dict[str, dict[str, int]] = field(default_factory=dict)

    def add(self, task: str, phase: str) -> None:
        """Count a pod that is not being deleted."""
        name = _FIELDS.get(phase, "unknown")
        setattr(self, name, getattr(self, name) + 1)
        phases = self.tasks.setdefault(task, {})
        phases[phase] = phases.get(phase, 0) + 1

    def add_all(self, pods: Iterable[PodView]) -> None:
        """Count pods as they are."""
        for pod in pods:
            if pod.terminating:
                self.terminating += 1
            else:
                self.add(pod.task, pod.phase)

    @property
    def alive(self) -> int:
        """Pods that have not ended."""
        return self.pending + self.running + self.terminating

    def task_states(self) -> dict[str, TaskState]:
        """The counts by task, as a status shows them."""
        return {name: TaskState(phase=dict(phases)) for name, phases in self.tasks.items()}
