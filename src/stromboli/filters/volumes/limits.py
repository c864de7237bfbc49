"""How many volumes the CSI drivers of nodes attach, and which are attached."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from stromboli.filters.columns import Bools
from stromboli.filters.volumes.resolving import Wanted
from stromboli.model.objects.storage import IGNORED_PROVISIONERS, Storage, attached_as, attached_volume
from stromboli.model.table import Ints, NodeTable
from stromboli.model.task import Task

NO_LIMIT = np.iinfo(np.int64).max


class Limits:
    """Attached volumes of each driver by row; those of the drivers in ``ignored`` do not count."""

    def __init__(self, storage: Storage, table: NodeTable, ignored: frozenset[str]) -> None:
        self._storage, self._rows = storage, table.statics.row
        self._limits: dict[str, Ints] = {}
        for node in storage.csi_nodes.values():
            row = self._rows.get(node.metadata.name)
            for driver in node.spec.drivers if row is not None else ():
                if driver.allocatable and driver.allocatable.count is not None and driver.name not in ignored:
                    limit = self._limits.setdefault(driver.name, np.full(len(table), NO_LIMIT))
                    limit[row] = driver.allocatable.count
        self._counts = {driver: np.zeros(len(table), dtype=np.int64) for driver in self._limits}
        self._users: dict[tuple[str, str], dict[int, int]] = {}
        for attachment in storage.attachments.values() if self._limits else ():
            volume = storage.volumes.get(attachment.spec.source.persistent_volume_name)
            row = self._rows.get(attachment.spec.node_name)
            if volume is not None and row is not None:
                self._count(attached_volume(volume), row, 1)

    def __bool__(self) -> bool:
        return bool(self._limits)

    def count(self, task: Task, row: int, times: int) -> None:
        """A pod comes to a row (1) or goes (-1)."""
        for mount in task.volumes if self._limits else ():
            claim = self._storage.claims.get(mount.claim)
            if claim is not None:
                self._count(attached_as(claim, self._storage), row, times)

    def _count(self, volume: tuple[str, str], row: int, times: int) -> None:
        if volume[0] not in self._limits:
            return
        users = self._users.setdefault(volume, {})
        before = users.get(row, 0)
        users[row] = before + times
        if users[row] <= 0:
            del users[row]
        self._counts[volume[0]][row] += (users.get(row, 0) > 0) - (before > 0)

    def fit(self, wanted: Wanted, everywhere: Callable[[], Bools]) -> Bools | None:
        """Rows that attach what the pod adds; None where no limit concerns it."""
        new: dict[str, Ints | int] = {driver: number for driver, number in wanted.attached if driver in self._limits}
        for volume in wanted.shared:
            if volume[0] in self._limits:
                there = np.ones(len(self._rows), dtype=np.int64)
                there[list(self._users.get(volume, ()))] = 0
                new[volume[0]] = new.get(volume[0], 0) + there
        if not new:
            return None
        found = everywhere()
        for driver, number in new.items():
            found &= (self._limits[driver] - self._counts[driver] >= number) | (np.asarray(number) == 0)
        return found


def ignoring(named: frozenset[str]) -> frozenset[str]:
    """All provisioners whose volumes do not count."""
    return named | IGNORED_PROVISIONERS
