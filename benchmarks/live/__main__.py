"""Prints what live runs cost: ``python -m benchmarks.live [--quick] [--requests] [NAMES...]``.

Costs are counted until the last pod runs, and until nothing is left to write.  ``--against TREE`` runs another tree's
scheduler and controllers by turns with ours, beside the same kubelets, and compares.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Final

from benchmarks.live.compared import compare
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

PROCESSES: Final = ("scheduler", "controllers", "kubelets", "apiserver")

_COLUMNS: Final = (
    "load", "pods", "bound/s", "Volcano", "first bound s", "wait p50 s", "p99 s",
    *(f"{name} ms/pod" for name in PROCESSES), "API server's part", "scheduler MiB", "controllers MiB",
    "requests/pod", "all ms/pod", "requests/pod until quiet", "all ms/pod until quiet",
)  # fmt: skip


def main() -> int:
    """Print the table; 1 when a process costs more than its limit."""
    options = _options()
    loads = [load for load in LOADS if not options.names or load.name in options.names]
    share = 20 if options.quick else options.share
    loads = [Load(load.name, load.kind, max(load.groups // share, 1), load.size, load.backlog) for load in loads]
    nodes = 50 if options.quick else options.nodes
    print(machine() + "\n\n" + head(_COLUMNS))

    def shown(load: Load, tree: Path | None = None) -> Outcome:
        return _shown(run(load, nodes, options.limit, tree))

    if options.against is not None:
        compare(loads, options.rounds, shown, options.against)
        return 0
    fine = True
    for load in loads:
        outcome = shown(load)
        if options.requests:
            print(_listed(outcome), flush=True)
        fine &= options.quick or all(outcome.per_pod(name) <= limit for name, limit in LIMITS.items())
    return 0 if fine else 1


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.live", description="Measure a live cluster.")
    parser.add_argument("names", nargs="*", choices=[[], *(load.name for load in LOADS)], help="default: all")
    parser.add_argument("--nodes", type=int, default=1000)
    parser.add_argument("--limit", type=float, default=400.0, metavar="SECONDS", help="how long one run may take (400)")
    parser.add_argument("--quick", action="store_true", help="small: does it run")
    parser.add_argument("--share", type=int, default=1, metavar="N", help="one Nth of each load")
    parser.add_argument("--requests", action="store_true", help="list what the API server was asked for")
    parser.add_argument("--against", type=Path, metavar="TREE", help="compare with another tree of sources, by turns")
    parser.add_argument("--rounds", type=int, default=3, help="turns of each tree (3)")
    return parser.parse_args()


def _shown(outcome: Outcome) -> Outcome:
    """Print the line of a run."""
    running, quiet, pods = outcome.running, outcome.quiet, outcome.load.pods
    figures = (
        outcome.rate, VOLCANO[outcome.load.name], outcome.first_bound, *outcome.latency,
        *map(outcome.per_pod, PROCESSES), running.cpu("apiserver") / running.cpu(),
        *(running.costs[name].mib for name in ("scheduler", "controllers")),
        running.requests.total() / pods, 1000 * running.cpu() / pods,
        quiet.requests.total() / pods, 1000 * quiet.cpu() / pods,
    )  # fmt: skip
    print(row([outcome.load.name, str(pods), *map(figure, figures)]), flush=True)
    return outcome


def _listed(outcome: Outcome) -> str:
    """Requests by kind: until the last pod ran, and until nothing was left to write."""
    running, quiet = outcome.running.requests, outcome.quiet.requests
    return "\n".join(f"    {running[what]:7} {count:7} {what}" for what, count in quiet.most_common())


if __name__ == "__main__":
    sys.exit(main())
