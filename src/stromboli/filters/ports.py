"""Host ports: which nodes have those free that a pod asks for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, TypeAlias

import numpy as np

from stromboli.filters.columns import Bools, picked
from stromboli.filters.pods_on_nodes import Event, PodsOnNodes
from stromboli.model.table import NodeRows

HostPort: TypeAlias = tuple[str, str, int]
"""Address, protocol and port on the node, as in :class:`~stromboli.model.task.PodTemplate`."""

EVERY_ADDRESS: Final = "0.0.0.0"


def conflicts(wanted: HostPort, taken: HostPort) -> bool:
    """Whether two pods cannot have these side by side: same port and protocol, and an address in common."""
    shared = wanted[0] == taken[0] or EVERY_ADDRESS in (wanted[0], taken[0])
    return shared and wanted[1:] == taken[1:]


class PortsInUse:
    """Host ports that the pods on nodes hold, row by row, kept as placements come and go."""

    __slots__ = ("_bucket", "_lane", "_read", "_rows", "_taken")

    def __init__(self, pods: PodsOnNodes, rows: int) -> None:
        self._lane = pods.lane(lambda task: True if task.template.host_ports else None)
        self._bucket: list[Event] = self._lane.bucket(True)
        self._read, self._rows = 0, rows
        self._taken: dict[tuple[str, int], dict[int, list[str]]] = {}

    def free_rows(self, wanted: Sequence[HostPort], nodes: NodeRows) -> Bools:
        """Rows where all ports in ``wanted`` are free.  Shape (rows,)."""
        self._follow()
        free = np.ones(self._rows, dtype=bool)
        for address, protocol, port in wanted:
            holders = self._taken.get((protocol, port), {})
            free[[row for row, taken in holders.items() if _meet(address, taken)]] = False
        return picked(free, nodes)

    def free_row(self, wanted: Sequence[HostPort], row: int) -> bool:
        """:meth:`free_rows` for one row."""
        self._follow()
        ports = ((address, self._taken.get((protocol, port), {})) for address, protocol, port in wanted)
        return not any(_meet(address, holders.get(row, [])) for address, holders in ports)

    def _follow(self) -> None:
        self._lane.feed()
        fresh = self._bucket[self._read :]
        self._read += len(fresh)
        for task, row, sign in fresh:
            for address, protocol, port in task.template.host_ports:
                taken = self._taken.setdefault((protocol, port), {}).setdefault(row, [])
                if sign > 0:
                    taken.append(address)
                else:
                    taken.remove(address)


def _meet(address: str, taken: Sequence[str]) -> bool:
    return bool(taken) and (address == EVERY_ADDRESS or EVERY_ADDRESS in taken or address in taken)
