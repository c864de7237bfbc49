"""The filters of volumes: NodeVolumeLimits, VolumeZone, VolumeRestrictions and VolumeBinding."""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from stromboli.filters.columns import Bools, Masks, picked
from stromboli.filters.volumes.book import FAR, GONE, REFUSALS, TOO_SMALL, UNBOUND, VolumeBook
from stromboli.filters.volumes.resolving import NOTHING, Wanted
from stromboli.filters.volumes.scoring import StorageScores, curve_of
from stromboli.framework.extension.handlers import TaskEvent
from stromboli.framework.extension.reason import Reason, StatusCode
from stromboli.model.objects.storage import VOLUME_SECONDS
from stromboli.model.table import Ints, NodeRows
from stromboli.model.task import Task

if TYPE_CHECKING:
    from stromboli.framework.books.cluster_view import ClusterView

LIMIT = Reason("node(s) exceed max volume count", plugin="NodeVolumeLimits")
ZONE = Reason("node(s) had no available volume zone", resolvable=False, plugin="VolumeZone")
IN_USE = Reason(
    "node has pod using PersistentVolumeClaim with the same name and ReadWriteOncePod access mode",
    plugin="VolumeRestrictions",
)
_TEXTS: Final = {
    FAR: "node(s) didn't match PersistentVolume's node affinity",
    UNBOUND: "node(s) didn't find available persistent volumes to bind",
    TOO_SMALL: "node(s) did not have enough free storage",
    GONE: "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)",
}
BINDING = tuple(
    Reason(", ".join(_TEXTS[each] for each in refused), resolvable=False, plugin="VolumeBinding")
    for refused in REFUSALS
)

HOOKS = {
    "volume_limits": "NodeVolumeLimits",
    "volume_zone": "VolumeZone",
    "volume_restrictions": "VolumeRestrictions",
    "volume_binding": "VolumeBinding",
}
"""The hooks about volumes, and what Kubernetes calls their filters."""


def not_before(seconds: int) -> str:
    """Refuse a time-out below 0."""
    return "" if seconds >= 0 else f"a time-out of {seconds} seconds is negative; {VOLUME_SECONDS} counts instead"


class VolumeFilters:
    """The filters as one session asks them; ``on`` has those that are switched on."""

    def __init__(self, session: ClusterView, on: Container[str]) -> None:
        self._session, self._on = session, on
        self._scores: StorageScores | None = None
        self.used = any(template.spec.volumes for template in session.snapshot.all_templates() or ())

    @cached_property
    def _book(self) -> VolumeBook:
        session = self._session
        counts_all = session.compat.asks("attachable-volumes")
        return VolumeBook(
            session.snapshot.storage,
            session.table,
            self._tasks(),
            session.snapshot.pods_on_nodes(),
            looks_at_capacity=session.snapshot.storage.looks_at_capacity,
            ignored=None if counts_all else session.snapshot.storage.ignored,
        )

    def _tasks(self) -> Iterator[Task]:
        """Every pod once: those of jobs, and those on nodes that are of none."""
        for job in self._session.jobs.peek():
            yield from job.tasks.values()
        yield from (task for task, _ in self._session.snapshot.pods_on_nodes() if not task.job)

    def wanted(self, task: Task) -> Wanted:
        """What the answers depend on."""
        return self._book.wanted(task) if task.volumes else NOTHING

    def problem(self, task: Task, name: str) -> Reason | None:
        """What rules out every node at once, as the filter ``name`` finds it."""
        if not task.volumes or name not in self._on:
            return None
        wanted = self.wanted(task)
        text = wanted.zone_problem if name == "VolumeZone" else wanted.problem
        return Reason(f"plugin {name} pre-predicates failed {text}", code=StatusCode.ERROR) if text else None

    def attachable(self, task: Task, nodes: NodeRows) -> Bools | None:
        """NodeVolumeLimits."""
        found = self._book.attachable(task) if task.volumes else None
        return None if found is None else picked(found, nodes)

    def in_zone(self, task: Task, nodes: NodeRows) -> Bools | None:
        """VolumeZone."""
        found = self._book.in_zone(task) if task.volumes else None
        return None if found is None else picked(found, nodes)

    def is_alone(self, task: Task, nodes: NodeRows) -> Bools | None:
        """VolumeRestrictions."""
        if not self.wanted(task).alone:
            return None
        return nodes.where(lambda _: self._book.is_alone(task))

    def binding(self, task: Task, nodes: NodeRows) -> Masks | None:
        """VolumeBinding: bits that number :data:`BINDING`."""
        found = self._book.binding(task) if task.volumes else None
        return None if found is None else picked(found, nodes)

    def scores(self, task: Task, nodes: NodeRows, shape: Sequence[Any]) -> Ints | None:
        """How good rows are by the volumes that the pod would get there; None for a pod that lacks none."""
        if not task.volumes:
            return None
        if self._scores is None:
            self._scores = StorageScores(self._book, curve_of(shape), len(self._session.table))
        found = self._scores.of(task)
        return None if found is None else picked(found, nodes)

    def placed(self, event: TaskEvent) -> None:
        """A pod has been placed: its claims get what is free there."""
        task = event.task
        row = self._session.table.statics.row.get(task.node_name) if task.volumes else None
        if row is None:
            return
        given = self._book.place(task, row, "VolumeBinding" in self._on)
        if given is None:
            event.err = f"the volumes of pod {task.key} can no longer be bound on node {task.node_name}"
        elif given:
            self._session.ledger.bind_volumes[task.uid] = given

    def removed(self, task: Task) -> None:
        """A pod has left its place, or is about to."""
        row = self._session.table.statics.row.get(task.node_name) if task.volumes else None
        if row is not None:
            self._book.leave(task, row)
            self._session.ledger.bind_volumes.pop(task.uid, None)
