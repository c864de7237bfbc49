"""Which CPUs of a node a container gets: the kubelet's static CPU manager, foreseen.  Sets of CPUs are masks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import combinations
from typing import NamedTuple

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
        self.all = sum(1 << cpu for cpu, *_ in places)
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
        if count <= 0:
            return 0
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


def hints(layout: Layout, free: int, count: int) -> Iterator[Hint]:
    """Every set of NUMA nodes with ``count`` of ``free``, small sets first, then by number."""
    numbers = sorted(layout.numa)
    if len(numbers) > MOST_NUMA_NODES or count > free.bit_count():
        return
    sets = [nodes for size in range(1, len(numbers) + 1) for nodes in combinations(numbers, size)]
    least = min((len(nodes) for nodes in sets if layout.in_numa(nodes).bit_count() >= count), default=len(numbers))
    for nodes in sets:
        if (layout.in_numa(nodes) & free).bit_count() >= count:
            yield Hint(nodes, len(nodes) == least)


def best(layout: Layout, found: Iterable[Hint], single: bool) -> Hint:
    """The best hint: preferred, then of few nodes, then of low ones; all nodes, not preferred, where there is none.

    With ``single`` only preferred ones of one node are looked at.
    """
    usable = [hint for hint in found if not single or (hint.preferred and len(hint.nodes) == 1)]
    everywhere = Hint(tuple(sorted(layout.numa)), preferred=False)
    return min(usable, key=lambda hint: (not hint.preferred, len(hint.nodes), _value(hint.nodes)), default=everywhere)


def _value(nodes: Sequence[int]) -> int:
    return sum(1 << node for node in nodes)


BEST_EFFORT, RESTRICTED, SINGLE = "best-effort", "restricted", "single-numa-node"


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
        left = free & ~taken
        hint: Hint | None = None
        if policy in (BEST_EFFORT, RESTRICTED, SINGLE):
            unconcerned = Hint(tuple(sorted(layout.numa)), preferred=True)
            hint = best(layout, hints(layout, left, count), policy == SINGLE) if count else unconcerned
            if policy != BEST_EFFORT and not hint.preferred:
                return Plan(0, place)
        near = left & layout.in_numa(hint.nodes) if hint is not None else 0
        mine = layout.take(near, min(count, near.bit_count())) or 0
        more = layout.take(left & ~mine, count - mine.bit_count())
        taken |= 0 if more is None else mine | more
    return Plan(taken)
