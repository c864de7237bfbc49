"""Prints what live runs cost: ``python -m benchmarks.live [--quick] [--requests] [NAMES...]``."""

from __future__ import annotations

import argparse
import sys
from typing import Final

from benchmarks.live.load import Load
from benchmarks.live.run import Outcome, run
from benchmarks.tables import figure, head, machine, row

LOADS: Final = (
    Load("backlog-gangs", "gangs", 100, 50, backlog=True),
    Load("backlog-singles", "gangs", 5000, 1, backlog=True),
    Load("gangs", "gangs", 100, 50, backlog=False),
    Load("jobs", "jobs", 100, 50, backlog=False),
)
"""The loads that Volcano was measured with."""

VOLCANO: Final = {"backlog-gangs": 177.0, "backlog-singles": 102.0, "gangs": 53.4, "jobs": 145.1}
"""Its best pods per second on such a machine, for the same loads."""

LIMITS: Final = {"scheduler": 1.5, "controllers": 1.0}
"""CPU milliseconds for each pod."""

_COLUMNS: Final = (
    "load", "pods", "bound/s", "Volcano", "first bound s", "wait p50 s", "p99 s", "scheduler ms/pod",
    "controllers ms/pod", "API server ms/pod", "API server's part", "scheduler MiB", "controllers MiB", "requests/pod",
)  # fmt: skip


def main() -> int:
    """Print the table; 1 when a process costs more than its limit."""
    options = _options()
    loads = [load for load in LOADS if not options.names or load.name in options.names]
    print(machine() + "\n\n" + head(_COLUMNS))
    fine = True
    for load in loads:
        small = Load(load.name, load.kind, max(load.groups // 20, 1), load.size, load.backlog)
        outcome = run(small if options.quick else load, 50 if options.quick else options.nodes, options.limit)
        print(_row(outcome), flush=True)
        if options.requests:
            print("\n".join(f"    {count:7} {what}" for what, count in outcome.requests.most_common()), flush=True)
        fine &= options.quick or all(outcome.per_pod(name) <= limit for name, limit in LIMITS.items())
    return 0 if fine else 1


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.live", description="Measure a live cluster.")
    parser.add_argument("names", nargs="*", choices=[[], *(load.name for load in LOADS)], help="default: all")
    parser.add_argument("--nodes", type=int, default=1000)
    parser.add_argument("--limit", type=float, default=400.0, metavar="SECONDS", help="how long one run may take (400)")
    parser.add_argument("--quick", action="store_true", help="small: does it run")
    parser.add_argument("--requests", action="store_true", help="list what the API server was asked for")
    return parser.parse_args()


def _row(outcome: Outcome) -> str:
    costs = outcome.costs
    part = costs["apiserver"].cpu / sum(cost.cpu for cost in costs.values())
    figures = (
        outcome.rate, VOLCANO[outcome.load.name], outcome.first_bound, *outcome.latency, outcome.per_pod("scheduler"),
        outcome.per_pod("controllers"), outcome.per_pod("apiserver"), part, costs["scheduler"].mib,
        costs["controllers"].mib,
        sum(outcome.requests.values()) / outcome.load.pods,
    )  # fmt: skip
    return row([outcome.load.name, str(outcome.load.pods), *map(figure, figures)])


if __name__ == "__main__":
    sys.exit(main())
