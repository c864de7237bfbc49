"""The NUMA nodes of nodes: which CPUs sit where, and which of them are free."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Final

from stromboli.api.topology import CpuInfo
from stromboli.errors import QuantityError
from stromboli.model.names import CPU
from stromboli.model.resources import quantity
from stromboli.model.spec import Amount, Wire

MOST_CPUS: Final = 4096
"""CPUs with greater numbers do not count."""
MOST_NUMA_NODES: Final = 16
"""A node with more NUMA nodes has no hints: their sets would be too many."""


class NumaResource(Wire, frozen=True):
    """What is offered of one resource: the free CPUs, as a list such as ``0,2,4-7``."""

    allocatable: str = ""


class PodOnCpus(Wire, frozen=True):
    """A pod of which the kubelet says that it has its CPUs."""

    uid: str = ""
    name: str = ""
    namespace: str = ""


class NumaSpec(Wire, frozen=True, dict=True, gc=True):
    """``spec`` of a Numatopology, which bears the name of its node.  Sets of CPUs are masks: bit i stands for CPU i."""

    policies: dict[str, str] = {}
    res_reserved: dict[str, Amount] = {}
    numares: dict[str, NumaResource] = {}
    cpu_detail: dict[str, CpuInfo] = {}
    pod_allocations: tuple[PodOnCpus, ...] = ()

    @property
    def is_static(self) -> bool:
        """Whether the kubelet gives whole CPUs to containers."""
        return self.policies.get("CPUManagerPolicy") == "static"

    @property
    def policy(self) -> str:
        """The kubelet's topology policy."""
        return self.policies.get("TopologyManagerPolicy", "")

    @cached_property
    def free(self) -> int:
        """The free CPUs."""
        return mask_of(self.numares[CPU].allocatable) if CPU in self.numares else 0

    @cached_property
    def reserved(self) -> int:
        """How many CPUs the system keeps for itself, a begun one counting as one."""
        try:
            return -(-quantity.milli(self.res_reserved.get(CPU, 0)) // 1000)
        except QuantityError:
            return 0

    @cached_property
    def places(self) -> tuple[tuple[int, int, int, int], ...]:
        """(CPU, NUMA node, socket, core) of each CPU, in order: equal for nodes that are built alike."""
        numbered = {int(cpu): at for cpu, at in self.cpu_detail.items() if _is_number(cpu)}
        return tuple(sorted((cpu, at.numa, at.socket, at.core) for cpu, at in numbered.items() if cpu < MOST_CPUS))

    @cached_property
    def listed(self) -> frozenset[str]:
        """The pods, by uid, of which the kubelet says that they have their CPUs."""
        return frozenset(pod.uid for pod in self.pod_allocations)


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) < 6


def mask_of(listed: str) -> int:
    """The CPUs of a list such as ``0,2,4-7``; none where it is no such list."""
    mask = 0
    for part in listed.split(",") if listed else ():
        first, dash, last = part.partition("-")
        ends = (first.strip(), (last if dash else first).strip())
        if not all(map(_is_number, ends)):
            return 0
        low, high = int(ends[0]), min(int(ends[1]), MOST_CPUS - 1)
        mask |= ((1 << (high + 1)) - 1) & ~((1 << low) - 1) if low <= high else 0
    return mask


def cpus_of(mask: int) -> list[int]:
    """The numbers of the CPUs in ``mask``, ascending."""
    return [cpu for cpu in range(mask.bit_length()) if mask >> cpu & 1]


Topologies = Mapping[str, NumaSpec]
"""By name of the node."""

__all__ = ["NumaResource", "NumaSpec", "PodOnCpus", "Topologies", "cpus_of", "mask_of"]
