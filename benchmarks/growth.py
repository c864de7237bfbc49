"""How the time of a cycle grows with the cluster: twice the pods, twice the nodes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Final

from benchmarks.measure import Measured, measure
from benchmarks.tables import figure, head, row
from benchmarks.workloads import Workload

PODS_LIMIT, NODES_LIMIT = 2.0 * 1.1, 1.6
"""By what factor a cycle may become slower when pods or nodes double."""

_KINDS: Final = (("default", 100), ("default", 1), ("hetero", 100))
_MIDDLE: Final = (5000, 25_000)
_QUICK_MIDDLE: Final = (400, 2000)


@dataclass(frozen=True)
class Step:
    """A workload, and the one with half its pods or half its nodes (``what``) to which it is compared."""

    smaller: Workload
    larger: Workload
    what: str

    @property
    def limit(self) -> float:
        """How many times longer the larger one may take."""
        return PODS_LIMIT if self.what == "pods" else NODES_LIMIT


def steps(quick: bool) -> Iterator[Step]:
    """All steps: two doublings of the pods and two of the nodes, for each kind."""
    nodes, pods = _QUICK_MIDDLE if quick else _MIDDLE
    for kind, gang in _KINDS:
        middle = Workload(kind, nodes, pods, gang)
        for what, count in (("pods", middle.pods), ("nodes", middle.nodes)):
            sizes = [_sized(middle, what, n) for n in (count // 2, count, count * 2)]
            yield from (Step(smaller, larger, what) for smaller, larger in pairwise(sizes))


def _sized(workload: Workload, what: str, count: int) -> Workload:
    return replace(workload, pods=count) if what == "pods" else replace(workload, nodes=count)


def show(quick: bool, repeat: int, limit: float) -> bool:
    """Print the table, measuring each size once; answers whether all is right and, unless quick, within its limit."""
    print("\n" + head(["doubled", "kind", "pods a job", "from", "to", "CPU s", "CPU s", "factor", "limit", "verdict"]))
    known: dict[Workload, Measured] = {}
    fine = True
    for step in steps(quick):
        for workload in (step.smaller, step.larger):
            if workload not in known:
                known[workload] = measure(workload, repeat=repeat, limit=limit)
        text, good = _judged(step, known[step.smaller], known[step.larger], quick)
        print(text, flush=True)
        fine &= good
    return fine


def _judged(step: Step, smaller: Measured, larger: Measured, quick: bool) -> tuple[str, bool]:
    factor = larger.cycle / smaller.cycle if smaller.cycle else 0.0
    wrong = smaller.wrong or larger.wrong
    over = factor > step.limit and not quick
    verdict = f"wrong: {wrong[0]}" if wrong else "over" if over else "-" if quick else "ok"
    sizes = [f"{side.nodes:,} × {side.pods:,}" for side in (step.smaller, step.larger)]
    seconds = [figure(side.cycle) for side in (smaller, larger)]
    kind = [step.what, step.larger.kind, str(step.larger.gang)]
    return row([*kind, *sizes, *seconds, figure(factor), figure(step.limit), verdict]), not wrong and not over
