"""Which CPUs of a node a container gets: the kubelet's static CPU manager, foreseen.  Sets of CPUs are masks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache, reduce
from itertools import accumulate
from operator import or_
from typing import NamedTuple

from stromboli.api.batch import BEST_EFFORT, RESTRICTED, SINGLE_NUMA_NODE
from stromboli.model.numa import MOST_NUMA_NODES, cpus_of

Places = tuple[tuple[int, int, int, int], ...]
"""(CPU, NUMA node, socket, core) of each CPU."""


class Layout:
    """The CPUs of nodes that are built alike: by NUMA node, by socket, by core."""

    def __init__(self, places: Places) -> None:
        self.numa: dict[int, int] = {}
        self.sockets: dict[int, int] = {}
        self.cores: dict[int, int] = {}
        self.socket_of: dict[int, int] = {}
        for cpu, numa, socket, core in places:
            for found, key in ((self.numa, numa), (self.sockets, socket), (self.cores, core)):
                found[key] = found.get(key, 0) | 1 << cpu
            self.socket_of.setdefault(core, socket)
        self.all = reduce(or_, self.numa.values(), 0)
        cores = len({(socket, core) for _, _, socket, core in places})
        self.per_socket = len(places) // len(self.sockets) if places else 0
        self.per_core = len(places) // cores if places else 0

    def in_numa(self, nodes: Iterable[int]) -> int:
        """The CPUs of NUMA nodes."""
        return sum(self.numa[node] for node in nodes)

    def spread(self, cpus: int) -> int:
        """On how many NUMA nodes ``cpus`` lie."""
        return sum(1 for mask in self.numa.values() if mask & cpus)

    # ------------------------------------------------------------------ taking

    def take(self, free: int, count: int) -> int | None:
        """``count`` of ``free``: whole sockets, then whole cores, then single CPUs; None where they are too few."""
        if count > free.bit_count():
            return None
        taking = _Taking(self, free, count)
        for cpus, size in ((taking.sockets, self.per_socket), (taking.cores, self.per_core), (taking.singles, 1)):
            if taking.missing >= max(size, 1):
                taking.take(cpus(), size)
        return taking.taken


class _Taking:
    """One choice of CPUs in progress."""

    def __init__(self, layout: Layout, free: int, count: int) -> None:
        self.layout, self.free, self.missing, self.taken = layout, free, count, 0

    def take(self, groups: Iterable[int], size: int) -> None:
        """Take group after group while at least ``size`` are missing."""
        for group in groups:
            if self.missing < max(size, 1):
                return
            cpus = group & self.free
            self.taken |= cpus
            self.free &= ~cpus
            self.missing -= cpus.bit_count()

    def sockets(self) -> list[int]:
        """Sockets by number; the reference takes one for free if the CPU of its number is."""
        return [mask for socket, mask in sorted(self.layout.sockets.items()) if self._starts(mask, socket)]

    def cores(self) -> list[int]:
        """Cores by socket, the socket with fewest first; the reference takes one for free as with sockets."""
        by_socket: dict[int, list[int]] = {}
        for core, mask in sorted(self.layout.cores.items()):
            if self._starts(mask, core):
                by_socket.setdefault(self.layout.socket_of[core], []).append(mask)
        order = sorted(by_socket, key=lambda socket: (len(by_socket[socket]), socket))
        return [mask for socket in order for mask in by_socket[socket]]

    def _starts(self, mask: int, number: int) -> bool:
        return bool(mask & self.free) and number >= 0 and bool(self.free >> number & 1)

    def singles(self) -> list[int]:
        """Single CPUs: on sockets where some are taken, on the fuller socket, on the fuller core, by number."""
        layout = self.layout

        def turn(core: int) -> tuple[int, int, int, int, int]:
            socket = layout.socket_of[core]
            whole = layout.sockets[socket]
            left = layout.cores[core] & self.free
            return (
                -(whole & self.taken).bit_count(), (whole & self.free).bit_count(), left.bit_count(), socket, core
            )  # fmt: skip

        cores = sorted((core for core, mask in layout.cores.items() if mask & self.free), key=turn)
        return [1 << cpu for core in cores for cpu in cpus_of(layout.cores[core] & self.free)]


class Hint(NamedTuple):
    """Some NUMA nodes, and whether no smaller number of them could do."""

    nodes: tuple[int, ...]
    preferred: bool


def best(layout: Layout, free: int, count: int, single: bool) -> Hint:
    """The NUMA nodes where ``count`` of ``free`` are to be taken: the fewest that have them, of those the lowest mask.

    Preferred where fewer would not do if all CPUs were free, with ``single`` only one node.  All nodes, not preferred,
    where none have as many.  The kubelet looks at each set of nodes; their sums, largest first, tell the same.
    """
    numbers = sorted(layout.numa)
    everywhere = Hint(tuple(numbers), preferred=False)
    if len(numbers) > MOST_NUMA_NODES or count > free.bit_count():
        return everywhere
    room = {node: (layout.numa[node] & free).bit_count() for node in numbers}
    needed = _fewest(room.values(), count)
    least = _fewest((mask.bit_count() for mask in layout.numa.values()), count)
    if needed is None or (single and not least == needed == 1):
        return everywhere
    return Hint(_lowest(room, needed, count), needed == least)


def _fewest(rooms: Iterable[int], count: int) -> int | None:
    """How many of ``rooms`` together have ``count``; at least one."""
    sums = accumulate(sorted(rooms, reverse=True))
    return next((number for number, total in enumerate(sums, start=1) if total >= count), None)


def _lowest(room: Mapping[int, int], number: int, count: int) -> tuple[int, ...]:
    """The ``number`` NUMA nodes with room for ``count`` whose highest is lowest, then the next; ``room`` ascends."""
    taken: list[int] = []
    left = list(room)
    while len(taken) < number:
        highest = left.pop()
        open_places = number - len(taken)
        if sum(sorted((room[node] for node in left), reverse=True)[:open_places]) < count or len(left) < open_places:
            taken.append(highest)
            count -= room[highest]
    return tuple(reversed(taken))


class Plan(NamedTuple):
    """The CPUs that a pod's containers get; ``refused`` is the place of the first that cannot have its own, or -1."""

    cpus: int
    refused: int = -1


@lru_cache(maxsize=1024)
def layout_of(places: Places) -> Layout:
    """The layout of nodes with these CPUs."""
    return Layout(places)


def plan(layout: Layout, free: int, policy: str, counts: Sequence[int]) -> Plan:
    """What containers get that ask for ``counts`` whole CPUs (0: it has no preference, and gets none of its own)."""
    taken = 0
    for place, count in enumerate(counts):
        if not count:
            continue
        left = free & ~taken
        near = 0
        if policy in (BEST_EFFORT, RESTRICTED, SINGLE_NUMA_NODE):
            hint = best(layout, left, count, policy == SINGLE_NUMA_NODE)
            if policy != BEST_EFFORT and not hint.preferred:
                return Plan(0, place)
            near = left & layout.in_numa(hint.nodes)
        if count <= left.bit_count():
            mine = layout.take(near, min(count, near.bit_count())) or 0
            taken |= mine | (layout.take(left & ~mine, count - mine.bit_count()) or 0)
    return Plan(taken)
