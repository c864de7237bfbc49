"""How the time of a cycle grows when one thing doubles.

Twice the pods, twice the nodes; where others have to go, twice the gangs that arrive, twice the full cluster.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Final

from benchmarks.cases import can_run
from benchmarks.measure import Measured, measure
from benchmarks.tables import figure, head, row
from benchmarks.workloads import EVICTING, Workload

LIMITS: Final = {"pods": 2.0 * 1.1, "nodes": 1.6, "arriving": 2.0 * 1.1, "cluster": 2.0 * 1.1}
"""By what factor a cycle may become slower when that doubles; a cluster is its nodes and the pods on them."""

_AGAIN: Final = 3
"""How often sizes are measured again; the median counts."""
_FIELDS: Final = {"pods": ("pods",), "nodes": ("nodes",), "arriving": ("waiting",), "cluster": ("nodes", "pods")}
_PLACING: Final = (("default", 100), ("default", 1), ("hetero", 100))
_MIDDLE: Final = {"nodes": 5000, "pods": 25_000}
# Of a full cluster no more than a fifth of its pods may arrive: overcommit admits no more.
_FULL: Final = {"nodes": 2500, "pods": 25_000, "waiting": 2000}
_QUICK_MIDDLE: Final = {"nodes": 400, "pods": 2000}
_QUICK_FULL: Final = {"nodes": 240, "pods": 2400, "waiting": 200}


@dataclass(frozen=True)
class Step:
    """A workload, and the one with half of ``what`` to which it is compared."""

    smaller: Workload
    larger: Workload
    what: str

    @property
    def limit(self) -> float:
        """How many times longer the larger one may take."""
        return LIMITS[self.what]


def steps(quick: bool) -> Iterator[Step]:
    """All steps: two doublings of each of two things, for each kind."""
    middle, full = (_QUICK_MIDDLE, _QUICK_FULL) if quick else (_MIDDLE, _FULL)
    for kind, gang in _PLACING:
        yield from _doublings(Workload(kind, gang=gang, **middle), ("pods", "nodes"))
    for kind in EVICTING:
        if can_run(kind):
            yield from _doublings(Workload(kind, **full), ("arriving", "cluster"))


def _doublings(middle: Workload, doubled: Sequence[str]) -> Iterator[Step]:
    for what in doubled:
        sizes = [_sized(middle, what, factor) for factor in (0.5, 1, 2)]
        yield from (Step(smaller, larger, what) for smaller, larger in pairwise(sizes))


def _sized(workload: Workload, what: str, factor: float) -> Workload:
    fields = _FIELDS[what]
    nodes, pods, waiting = (
        int(size * factor) if name in fields else size
        for name, size in (("nodes", workload.nodes), ("pods", workload.pods), ("waiting", workload.waiting))
    )
    return replace(workload, nodes=nodes, pods=pods, waiting=waiting)


def show(quick: bool, repeat: int, limit: float) -> bool:
    """Print the table; answers whether all is right and, unless quick, within its limit.

    Each size is measured once, and those of a step over its limit again: a machine that slows down between two sizes
    shows as growth.
    """
    print("\n" + head(["doubled", "kind", "pods a job", "from", "to", "CPU s", "CPU s", "factor", "limit", "verdict"]))
    known: dict[Workload, Measured] = {}
    fine = True
    for step in steps(quick):
        sizes = step.smaller, step.larger
        known |= {size: measure(size, repeat=repeat, limit=limit) for size in sizes if size not in known}
        if not quick and _factor(*(known[size] for size in sizes)) > step.limit:
            known |= {size: measure(size, repeat=_AGAIN, limit=limit) for size in sizes}
        text, good = _judged(step, known[step.smaller], known[step.larger], quick)
        print(text, flush=True)
        fine &= good
    return fine


def _judged(step: Step, smaller: Measured, larger: Measured, quick: bool) -> tuple[str, bool]:
    factor = _factor(smaller, larger)
    wrong = smaller.wrong or larger.wrong
    over = factor > step.limit and not quick
    verdict = f"wrong: {wrong[0]}" if wrong else "over" if over else "-" if quick else "ok"
    sizes = [f"{side.nodes:,} × {side.pods:,}" for side in (step.smaller, step.larger)]
    seconds = [figure(side.cycle) for side in (smaller, larger)]
    kind = [step.what, step.larger.kind, str(step.larger.gang)]
    return row([*kind, *sizes, *seconds, figure(factor), figure(step.limit), verdict]), not wrong and not over


def _factor(smaller: Measured, larger: Measured) -> float:
    return larger.cycle / smaller.cycle if smaller.cycle else 0.0
