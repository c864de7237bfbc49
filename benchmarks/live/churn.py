"""What the scheduler's memory does while pods come and go: ``python -m benchmarks.live.churn [--churned N]``.

On a cluster on which pods run already, gangs and single pods arrive, are bound, run and end, as fast as the machine
allows; an hour of a busy cluster passes in minutes.  Printed is the memory at intervals.  The exit code is 1 when it
still grows in the second half, or is beyond the limit.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import Sequence
from typing import Final

from benchmarks.live.processes import Cost
from benchmarks.live.served import Served, served
from benchmarks.tables import figure, head, machine, row

LIMIT_MIB: Final = 1536.0
"""Most memory of a scheduler of 5,000 nodes and 50,000 pods."""

GROWTH_MIB: Final = 15.0
"""What the second half may add to the memory at the end of the first, for each 100,000 pods."""

GANGS: Final = 18
GANG: Final = 50
SINGLES: Final = 100
"""What arrives at once: gangs of so many pods, and single ones."""

IDLE_SECONDS: Final = 20.0
"""For how long it is watched while nothing changes."""

_TURN: Final = GANGS * GANG + SINGLES
_COLUMNS: Final = ("pods come and gone", "MiB", "CPU ms/pod")


async def measure(nodes: int, pods: int, churned: int, every: int) -> list[tuple[int, Cost]]:
    """Memory and CPU after every so many pods that have come and gone."""
    flags = ["--schedule-period=500ms", "-v=0"]
    async with served(nodes, pods // GANG, GANG, flags) as scheduler:
        await scheduler.until_ready()
        print(f"{await _idle(scheduler):.3f} cores while nothing changes\n\n{head(_COLUMNS)}")
        found = [_noted(0, scheduler)]
        for gone in range(_TURN, churned + 1, _TURN):
            await _turn(scheduler)
            if gone // every > found[-1][0] // every:
                found.append(_noted(gone, scheduler))
        return found


async def _idle(scheduler: Served) -> float:
    """CPU seconds a second before anything has changed."""
    before = scheduler.cost().cpu
    await asyncio.sleep(IDLE_SECONDS)
    return (scheduler.cost().cpu - before) / IDLE_SECONDS


async def _turn(scheduler: Served) -> None:
    """So many arrive, and as many that were there before end."""
    standing = scheduler.standing
    standing.arrive(GANGS, GANG)
    standing.arrive(SINGLES, 1)
    while standing.waiting > _TURN // 2:
        await asyncio.sleep(0.05)
    standing.leave(_TURN)


def _noted(gone: int, scheduler: Served) -> tuple[int, Cost]:
    cost = scheduler.cost()
    per_pod = figure(1000 * cost.cpu / gone if gone else None)
    print(row([f"{gone:,}", figure(cost.mib, 0), per_pod]), flush=True)
    return gone, cost


def growth(found: Sequence[tuple[int, Cost]]) -> float:
    """MiB for each 100,000 pods in the second half."""
    (half, before), (end, after) = found[len(found) // 2], found[-1]
    return (after.mib - before.mib) * 100_000 / max(end - half, 1)


def main() -> int:
    """Measure; 1 when memory grows or is too much."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.live.churn", description="Look for growth.")
    parser.add_argument("--nodes", type=int, default=5000)
    parser.add_argument("--pods", type=int, default=50_000, help="pods that run from the start")
    parser.add_argument("--churned", type=int, default=300_000, help="pods that come and go")
    parser.add_argument("--every", type=int, default=20_000, help="pods between two lines")
    options = parser.parse_args()
    print(machine() + f"; {options.nodes} nodes, {options.pods} pods\n")
    found = asyncio.run(measure(options.nodes, options.pods, options.churned, options.every))
    print(f"\n{growth(found):.1f} MiB more for each 100,000 pods in the second half")
    return 0 if growth(found) <= GROWTH_MIB and max(cost.mib for _, cost in found) <= LIMIT_MIB else 1


if __name__ == "__main__":
    sys.exit(main())
