"""The states of a task, and which pod is in which."""

from __future__ import annotations

from enum import IntEnum


class TaskStatus(IntEnum):
    """State of a task.  The values are powers of two, as on the wire; ``str()`` gives the plain name."""

    Pending = 1
    Allocated = 2
    Pipelined = 4
    Binding = 8
    Bound = 16
    Running = 32
    Releasing = 64
    Succeeded = 128
    Failed = 256
    Unknown = 512

    __hash__ = int.__hash__  # states are keys in hot places; hashing the name is several times slower

    def __str__(self) -> str:
        return self.name

    def __format__(self, spec: str) -> str:
        return format(self.name, spec)


ALLOCATED_STATUS: frozenset[TaskStatus] = frozenset(
    {TaskStatus.Bound, TaskStatus.Binding, TaskStatus.Running, TaskStatus.Allocated}
)
"""States in which a task occupies its node's idle room and counts as allocated."""

READY_STATUS: frozenset[TaskStatus] = ALLOCATED_STATUS | {TaskStatus.Succeeded}
"""States that count towards a gang being ready."""

VALID_STATUS: frozenset[TaskStatus] = READY_STATUS | {TaskStatus.Pipelined, TaskStatus.Pending}
"""States that count towards a gang being valid, that is, having enough pods at all."""

PREEMPTABLE_STATUS: frozenset[TaskStatus] = frozenset({TaskStatus.Bound, TaskStatus.Running})
"""States in which a task may become a victim."""

COMPLETED_STATUS: frozenset[TaskStatus] = frozenset({TaskStatus.Failed, TaskStatus.Succeeded})
"""States of a task that has ended."""

SCHEDULED_STATUS: frozenset[TaskStatus] = PREEMPTABLE_STATUS | COMPLETED_STATUS
"""States of a task that the cluster has placed, whether it still runs or has ended."""

_ENDED = {"Succeeded": TaskStatus.Succeeded, "Failed": TaskStatus.Failed}


def is_allocated(status: TaskStatus) -> bool:
    """Whether a task in this state occupies its node (:data:`ALLOCATED_STATUS`)."""
    return status in ALLOCATED_STATUS


def status_of(phase: str, deleting: bool, node_name: str) -> TaskStatus:
    """State of a task from its pod.

    ``phase`` is the pod's ``status.phase``, ``deleting`` whether it has a deletion timestamp, ``node_name`` its
    ``spec.nodeName`` or empty.  An ended pod stays ended while it is being deleted; an unrecognized phase is Unknown.
    """
    if phase in _ENDED:
        return _ENDED[phase]
    if phase not in ("Running", "Pending"):
        return TaskStatus.Unknown
    if deleting:
        return TaskStatus.Releasing
    if phase == "Running":
        return TaskStatus.Running
    return TaskStatus.Bound if node_name else TaskStatus.Pending
