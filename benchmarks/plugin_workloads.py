"""What the workloads that one plugin is about have beside those of ``default``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

ONE_NUMA_NODE: Final = "single-numa-node"
"""The policy of nodes and pods in ``numa``."""

TOGETHER: Final = {
    "volcano.sh/task-topology-affinity": "server,worker",
    "volcano.sh/task-topology-anti-affinity": "server",
}
"""Annotations of the PodGroups of ``roles``."""

_STRATEGY: Final = """resource-strategy-fit
    arguments:
      resources:
        cpu: {type: MostAllocated, weight: 2}
        memory: {type: LeastAllocated, weight: 1}"""
MORE: Final[Mapping[str, tuple[str, ...]]] = {
    "binpack": ("binpack",),
    "topology": ("network-topology-aware",),
    "numa": ("numa-aware",),
    "roles": ("task-topology",),
    "strategy": (_STRATEGY,),
}
"""The plugins that a kind is about, as they are written in the configuration."""


def numa_nodes(name: str, cores: int) -> dict[str, Any]:
    """A Numatopology: four NUMA nodes in two sockets, two CPUs a core."""
    detail = {
        str(cpu): {"numa": cpu * 4 // cores, "socket": cpu * 2 // cores, "core": cpu // 2} for cpu in range(cores)
    }
    policies = {"CPUManagerPolicy": "static", "TopologyManagerPolicy": ONE_NUMA_NODE}
    free = {"cpu": {"allocatable": f"0-{cores - 1}"}}
    return {"metadata": {"name": name}, "spec": {"policies": policies, "cpuDetail": detail, "numares": free}}
