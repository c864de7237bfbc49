"""The interface that carries out a plan: a live cluster, a simulator, a test.

An executor's failure is no error of the cycle that decided: it comes back as an event for the next one.  A plan is the
same whatever an executor answers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from stromboli.framework.books.plan import (
    Bind,
    Eviction,
    GateRemoval,
    Plan,
    PodConditionUpdate,
    PodGroupUpdate,
    QueueUpdate,
)
from stromboli.model.reservation import Held
from stromboli.model.task import Task


class Executor(Protocol):
    """Takes decisions over in the order in which they were made.  No method waits for anything."""

    def bind(self, binds: Sequence[Bind]) -> None:
        """Pods that are to be bound; called while the cycle may still be going on."""

    def evict(self, evictions: Sequence[Eviction]) -> None:
        """Pods that are to go; called while the cycle may still be going on."""

    def finish(self, plan: Plan) -> None:
        """The whole plan of a cycle that is over; its binds and evictions have been handed over before."""


class StatusUpdater(Protocol):
    """Writes conditions, events and status of objects; a replacement for it receives every such write.

    The latest status of an object counts.  No method blocks.
    """

    def update_pod_group(self, update: PodGroupUpdate) -> None:
        """The whole status of a PodGroup, and its annotations where those changed."""

    def update_pod_condition(self, update: PodConditionUpdate) -> None:
        """Why a pod waits, and the node that is nominated for it."""

    def update_pod_annotations(self, task: Task, desired: Held | None) -> None:
        """The reservation that a pod shall state, None for none; the annotations of others stay as they are."""

    def update_queue(self, update: QueueUpdate) -> None:
        """What a queue holds."""

    def remove_gate(self, removal: GateRemoval) -> None:
        """A pod that is admitted to its queue."""
