"""Runs crowded clusters with reservations kept and not kept, and prints both: ``python -m benchmarks.pipelined``."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import NamedTuple

from benchmarks.pipelined.comparing import COLUMNS, SERVED_COLUMNS, Pair, cells, chart_of, complaints, served_cells
from benchmarks.pipelined.measuring import run
from benchmarks.pipelined.workloads import WORKLOADS, Workload, staying
from benchmarks.tables import head, machine, row


class _Task(NamedTuple):
    workload: Workload
    seed: int
    seconds: float


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table, draw the chart; the exit code is 1 when keeping reservations does not hold what it promises."""
    options = _options(arguments)
    print(machine())
    return _on_server(options) if options.server else _in_virtual_time(options)


def _in_virtual_time(options: argparse.Namespace) -> int:
    began = time.perf_counter()
    chosen = [workload for workload in WORKLOADS if not options.names or workload.name in options.names]
    tasks = [_Task(workload, seed, options.seconds) for workload in chosen for seed in range(options.seeds)]
    print(f"{options.seeds} histories of {options.seconds:g} s each\n\n{head(COLUMNS)}")
    by_workload: dict[Workload, list[Pair]] = {}
    with ProcessPoolExecutor(options.jobs) as pool:
        pairs = pool.map(_pair, tasks)
        for workload in chosen:
            by_workload[workload] = [next(pairs) for _ in range(options.seeds)]
            print(row(cells(workload, by_workload[workload])), flush=True)
    print(f"\n{time.perf_counter() - began:.0f} s of this machine")
    if options.chart:
        Path(options.chart).write_text(chart_of(by_workload), encoding="utf-8")
    wrong = [text for workload, found in by_workload.items() for text in complaints(workload, found)]
    print("\n".join(["", *wrong] if wrong else []))
    return 1 if wrong else 0


def _on_server(options: argparse.Namespace) -> int:
    """Print what a server tells, and virtual time of the same histories.

    The exit code is 1 when a pod is evicted for a pod with room, or takes such room.  Both ways of a history run side
    by side, so that neither has it easier.
    """
    chosen = [workload for workload in WORKLOADS if workload.name in (options.names or ["preempt, trainers"])]
    print(f"{options.seeds} histories of {options.seconds:g} s each\n\n{head(SERVED_COLUMNS)}")
    found: list[Pair] = []
    for workload in map(staying, chosen):
        tasks = [_Task(workload, seed, options.seconds) for seed in range(options.seeds)]
        with ProcessPoolExecutor(2) as pool:
            virtual = list(pool.map(_pair, tasks))
            print(row(["virtual time", *served_cells(workload, virtual)]), flush=True)
            served = [_served_pair(pool, options.server, task) for task in tasks]
        print(row([options.server, *served_cells(workload, served)]), flush=True)
        found += served
    return 1 if any(pair.on.repeated or pair.on.taken for pair in found) else 0


def _served_pair(pool: ProcessPoolExecutor, server: str, task: _Task) -> Pair:
    from benchmarks.pipelined.served import run as run_served  # it takes kubectl and the tests' servers

    ways = [pool.submit(run_served, server, *task[:2], keep, task.seconds) for keep in (False, True)]
    return Pair(task.seed, *(way.result() for way in ways))


def _pair(task: _Task) -> Pair:
    """The same happenings twice: nothing kept, and reservations kept."""
    return Pair(task.seed, *(run(task.workload, task.seed, keep, task.seconds) for keep in (False, True)))


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.pipelined", description=__doc__)
    names = [workload.name for workload in WORKLOADS]
    parser.add_argument("names", nargs="*", metavar="NAMES", help=f"of {'; '.join(names)}; default: all")
    parser.add_argument("--seeds", type=int, metavar="N", help="how many histories of each workload (20; a server: 3)")
    parser.add_argument("--seconds", type=float, metavar="S", help="how long each lasts (1800; a server: 1200)")
    parser.add_argument(
        "--server", choices=["embedded", "real"], help="play on processes, 20 times as fast (default: in virtual time)"
    )
    parser.add_argument("--jobs", type=int, default=2, metavar="N", help="how many are run at once (2)")
    parser.add_argument("--chart", metavar="FILE", help="where to draw them, as SVG")
    options = parser.parse_args(arguments)
    if unknown := [name for name in options.names if name not in names]:
        parser.error(f"no workload is named {unknown[0]!r}")
    options.seeds = options.seeds or (3 if options.server else 20)
    options.seconds = options.seconds or (1200.0 if options.server else 1800.0)
    return options


if __name__ == "__main__":
    sys.exit(main())
