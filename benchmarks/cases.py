"""What is measured, what it may cost, and what the reference needed for the same."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from benchmarks.workloads import EVICTING, Workload
from stromboli.builtin import ACTIONS

LOAD_LIMIT: Final = 100.0
"""Microseconds of CPU a pod that loading may take."""

_QUICK_NODES, _QUICK_PODS, _QUICK_WAITING = 200, 2000, 200


@dataclass(frozen=True)
class Case:
    """One row of the table.

    ``target`` is in CPU seconds of one cycle, ``memory`` in MiB at the peak, loading included; None: nothing is asked.
    ``load`` is in microseconds of CPU a pod, its own claim or volume included.  ``large`` ones run only when named.
    ``reference`` and ``reference_memory`` are what Volcano (commit ed72c7c8) needed for the same; None: not known.
    """

    name: str
    workload: Workload
    target: float | None = None
    reference: float | None = None
    memory: float | None = None
    reference_memory: float | None = None
    load: float = LOAD_LIMIT
    large: bool = False

    def quick(self) -> Case:
        """The same on a cluster so small that only the outcome is worth looking at."""
        small = replace(
            self.workload, nodes=_QUICK_NODES, pods=_QUICK_PODS, waiting=min(self.workload.waiting, _QUICK_WAITING)
        )
        return Case(f"{self.name} (quick)", small)


_5K, _10K = 1.2 * 1024, 2.2 * 1024

CASES: Final = (
    Case("gangs-5k", Workload("default", 5000, 50_000), 2.5, 258.4, _5K, 2233),
    Case("single-5k", Workload("default", 5000, 50_000, gang=1), 6.0, 339.3, _5K, 4034),
    Case("hetero-1k", Workload("hetero", 1000, 10_000), 2.0, 48.4, None, 540),
    Case("hetero-5k", Workload("hetero", 5000, 50_000), 10.0, 611.0, _5K),
    Case("gangs-10k", Workload("default", 10_000, 100_000), 6.0, 566.9, _10K, 4497),
    Case("gangs-100k", Workload("default", 100_000, 1_000_000), 30.0, None, _10K, large=True),
    Case("topology-5k", Workload("topology", 5000, 50_048, gang=64), 3.0, None, _5K),
    Case("topology-racks-5k", Workload("topology", 5000, 50_048, gang=64, rack=8), 3.9, None, _5K),
    Case("topology-10k", Workload("topology", 10_000, 100_032, gang=64), 8.0, None, _10K),
    Case("numa-1k", Workload("numa", 1000, 10_000), 3.0),
    Case("roles-1k", Workload("roles", 1000, 10_000)),
    Case("strategy-5k", Workload("strategy", 5000, 50_000), 3.75, None, _5K),
    Case("running-gangs-5k", Workload("running", 5000, 50_000), 0.1, None, _5K),
    Case("running-gangs-1k5", Workload("running", 1500, 15_000), 0.002),
    Case("running-single-5k", Workload("running", 5000, 50_000, gang=1), 0.1, None, _5K),
    Case("changed-10-5k", Workload("running", 5000, 50_000, gang=1, changed=10), 0.1, None, _5K),
    Case("changed-100-5k", Workload("running", 5000, 50_000, gang=1, changed=100), 0.1, None, _5K),
    Case("written-single-5k", Workload("written", 5000, 50_000, gang=1), 0.4, None, _5K),
    Case("full-5k", Workload("full", 5000, 50_000, gang=10, waiting=10_000), 0.4, None, _5K),
    Case("names-2k", Workload("names", 2000, 10_000, gang=1), 1.5, None, 500),
    Case("vgpu-1k", Workload("vgpu", 1000, 10_000), 4.0),
    Case("claimed-500", Workload("claimed", 500, 2000, gang=10), 4.0, load=3 * LOAD_LIMIT),
    Case("volumes-1k", Workload("volumes", 1000, 10_000, gang=10), 3.0, load=3 * LOAD_LIMIT),
    Case("gangs-1k", Workload("default", 1000, 10_000), None, 36.1, None, 457),
    Case("single-1k", Workload("default", 1000, 10_000, gang=1), None, 39.8, None, 840),
    Case("binpack-1k", Workload("binpack", 1000, 10_000), None, 40.2, None, 503),
    Case("preempt-1k", Workload("preempt", 1000, 10_000, waiting=1000), 0.3, 3.0, None, 335),
    Case("reclaim-1k", Workload("reclaim", 1000, 10_000, waiting=1000), 0.2, 1.1, None, 338),
    Case("preempt-5k", Workload("preempt", 5000, 50_000, waiting=5000), 5.0, None, _5K),
    Case("reclaim-5k", Workload("reclaim", 5000, 50_000, waiting=5000), 5.0, None, _5K),
)
"""All rows.  The reference did not end hetero-5k: 611 seconds are what it had used when it was stopped."""


def can_run(kind: str) -> bool:
    """Whether the scheduler has the action that a kind of workload is about, which bears the kind's name."""
    return kind not in EVICTING or kind in ACTIONS


def case_named(name: str) -> Case:
    """The case of a name.  Raises KeyError when there is none."""
    return {case.name: case for case in CASES}[name]
