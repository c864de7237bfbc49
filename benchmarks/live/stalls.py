"""How long the scheduler's event loop stands still: ``python -m benchmarks.live.stalls [--nodes N] [--pods N]``.

A scheduler follows a large cluster on the embedded server while one thing after another happens to it.  Printed is for
each the longest time that the loop did not turn, how much of it our own work kept it, and what ran.  On a machine with
other work the latter is what counts: the rest is waiting for a CPU, which the system tells of every thread.
"""

from __future__ import annotations

import argparse
import asyncio
import signal
import sys
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable
from operator import attrgetter
from typing import Final

from benchmarks.live.served import Served, served
from benchmarks.live.watched import Stall
from benchmarks.tables import figure, head, machine, row

LIMIT: Final = 0.1
"""Seconds that none of our work, in whichever thread, may keep the loop from turning."""

GANG: Final = 50
"""Pods of a gang."""

_COLUMNS: Final = (
    "what happens",
    "seconds",
    "stalls",
    "longest ms",
    "kept ms",
    "the loop's ms",
    "collecting ms",
    "what ran",
)

Step = tuple[str, Callable[[Served], Awaitable[None]]]


async def _start(scheduler: Served) -> None:
    await scheduler.until_ready()


async def _cycles(_scheduler: Served) -> None:
    await asyncio.sleep(10)


async def _gangs(scheduler: Served) -> None:
    scheduler.standing.arrive(100, GANG)
    await scheduler.until_bound()


async def _singles(scheduler: Served) -> None:
    scheduler.standing.arrive(5000, 1)
    await scheduler.until_bound()


async def _leaving(scheduler: Served) -> None:
    scheduler.standing.leave(10_000)
    await asyncio.sleep(5)


async def _metrics(scheduler: Served) -> None:
    for _ in range(3):
        await scheduler.metrics()
        await asyncio.sleep(0.5)


async def _dump(scheduler: Served) -> None:
    scheduler.signal(signal.SIGUSR1)
    await scheduler.until_told("Snapshot written")


async def _summary(scheduler: Served) -> None:
    scheduler.signal(signal.SIGUSR2)
    await scheduler.until_told("pods, .* templates")


async def _audit(scheduler: Served) -> None:
    await scheduler.until_told("Compared state", 2)


async def _relist(scheduler: Served) -> None:
    scheduler.standing.forget()
    await asyncio.sleep(15)


async def _nodes(scheduler: Served) -> None:
    for turn in range(3):
        scheduler.standing.relabel(1000, f"turn-{turn}")
        await asyncio.sleep(3)


STEPS: Final[tuple[Step, ...]] = (
    ("start", _start), ("cycles without news", _cycles), ("100 gangs of 50 arrive", _gangs),
    ("5,000 single pods arrive", _singles), ("10,000 pods end", _leaving), ("1,000 nodes change", _nodes),
    ("metrics page", _metrics), ("SIGUSR1: dump", _dump), ("SIGUSR2: summary", _summary), ("two audits", _audit),
    ("410: pods listed anew", _relist), ("more cycles", _cycles),
)  # fmt: skip


async def measure(nodes: int, pods: int) -> bool:
    """Go through all steps and print the table; whether no stall took more than :data:`LIMIT`."""
    print(machine() + f"; {nodes} nodes, {pods} pods\n")
    spans = []
    async with served(nodes, pods // GANG, GANG, ["--audit-period=20s"]) as scheduler:
        for name, step in STEPS:
            began = time.time()
            async with asyncio.timeout(600):
                await step(scheduler)
            spans.append((name, began, time.time()))
            print(f"    {name}: {time.time() - began:.0f} s", file=sys.stderr, flush=True)
        await asyncio.sleep(2.0)
        cost, stalls = scheduler.cost(), scheduler.stalls()
    print(head(_COLUMNS))
    for name, began, ended in spans:
        print(_row(name, ended - began, [stall for stall in stalls if began <= stall.at < ended]))
    print("\nThe longest, by what kept the loop:\n")
    for stall in sorted(stalls, key=_kept, reverse=True)[:15]:
        print(f"    {stall.lasted * 1e3:6.0f} ms, kept {stall.kept * 1e3:5.0f} ms: {_places([stall], 5)}")
    print(f"\n{cost.cpu:.0f} CPU seconds, {cost.mib:.0f} MiB")
    return all(stall.kept <= LIMIT for stall in stalls)


_kept: Final = attrgetter("kept")


def _row(name: str, seconds: float, stalls: list[Stall]) -> str:
    if not stalls:
        return row([name, figure(seconds, 0), "0", *["-"] * 5])
    worst = max(stalls, key=_kept)
    times = (worst.lasted, worst.kept, worst.loop, worst.collecting)
    return row([name, figure(seconds, 0), str(len(stalls)), *(figure(1e3 * t, 0) for t in times), _places([worst])])


def _places(stalls: Iterable[Stall], most: int = 1) -> str:
    seen: Counter[str] = Counter()
    for stall in stalls:
        seen.update(stall.where)
    return "; ".join(f"{place} ({count})" for place, count in seen.most_common(most)) or "-"


def main() -> int:
    """Measure; 1 when the loop stood still for too long."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.live.stalls", description="Look for stalls.")
    parser.add_argument("--nodes", type=int, default=5000)
    parser.add_argument("--pods", type=int, default=50_000)
    options = parser.parse_args()
    return 0 if asyncio.run(measure(options.nodes, options.pods)) else 1


if __name__ == "__main__":
    sys.exit(main())
