"""The bars of records and simulations, with figures for what is built: ``python -m benchmarks.insight TRACES``."""

from __future__ import annotations

import argparse
import csv
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from heapq import heappop, heappush
from math import log10
from pathlib import Path
from typing import Final, NamedTuple

from benchmarks.records.bars import forecasts, records
from benchmarks.records.others import show
from benchmarks.tables import head, machine, row
from stromboli.builtin import full_registry
from stromboli.sim.simulation.metrics import TAU, mean
from stromboli.sim.simulation.workload import SimJob, Workload
from stromboli.sim.traces.trace_objects import queue
from stromboli.study.simulating import read_trace, simulate

LOGS: Final = ("lublin_256", "lublin_256_new2")
PROCESSORS: Final = 256
FIFO: Final = 'actions: "enqueue, allocate"\ntiers:\n- plugins: [{name: gang}, {name: predicates}]\n'
NOT_BUILT: Final = {
    "dashboard in a browser": "first paint in 1 s",
}
NOT_MEASURED: Final = {
    "24 h recorded and replayed (python -m benchmarks.records.day DIR, .replayed DIR)": "100 % equal",
    "half an hour on servers (python -m benchmarks.records.half_hour real DIR)": "100 % equal",
}


class Job(NamedTuple):
    """A job of the reference kernel: its submission (absolute, in seconds), runtime, and processors."""

    submit: float
    runtime: float
    size: int


Score = Callable[[Job], float]
POLICIES: Final[dict[str, Score]] = {
    "FCFS": lambda job: job.submit,
    "SJF": lambda job: job.runtime,
    # D. Carastan-Santos, R. Y. de Camargo, "Obtaining Dynamic Scheduling Policies with Simulation and Machine
    # Learning", SC 2017
    "F1": lambda job: log10(job.runtime or 0.1) * job.size + 870 * log10(job.submit or 0.1),
}


class Kernel:
    """Jobs on equal processors, one event at a time: the job that is chosen waits for room before another is chosen.

    With ``backfill`` others start meanwhile, in order of arrival, where they end before the room would be there: the
    rules of RLScheduler (SC 2020), whose figures are published.  Of jobs that end together the one that started first
    frees its processors first, and others may backfill before the next does.
    """

    def __init__(self, jobs: Sequence[Job], score: Score, backfill: bool) -> None:
        self.jobs, self.score, self.backfill = jobs, score, backfill
        self.now, self.free, self.next = jobs[0].submit, PROCESSORS, 0
        self.waiting: list[int] = []
        self.running: list[tuple[float, int, int]] = []
        self.starts: dict[int, float] = {}

    def run(self) -> float:
        """The mean bounded slowdown."""
        while len(self.starts) < len(self.jobs):
            while not self.waiting:
                self._advance()
            chosen = min(self.waiting, key=lambda number: (self.score(self.jobs[number]), number))
            self._wait_for_room(chosen)
            self._start(chosen)
        return sum(slowdown(self.jobs[number], start) for number, start in self.starts.items()) / len(self.jobs)

    def _wait_for_room(self, chosen: int) -> None:
        size = self.jobs[chosen].size
        shadow = self._shadow(size)
        while size > self.free:
            for number in sorted(self.waiting) if self.backfill else ():
                job = self.jobs[number]
                if number != chosen and job.size <= self.free and self.now + job.runtime < shadow:
                    self._start(number)
            self._advance()

    def _shadow(self, size: int) -> float:
        """When there are ``size`` processors, as things stand."""
        free, when = self.free, self.now
        for end, _, number in sorted(self.running):
            if free >= size:
                break
            free, when = free + self.jobs[number].size, end
        return when

    def _advance(self) -> None:
        """To the next event: a job comes, or the first of those that run ends."""
        ends = self.running[0][0] if self.running else float("inf")
        if self.next < len(self.jobs) and self.jobs[self.next].submit <= ends:
            self.now = max(self.now, self.jobs[self.next].submit)
            self.waiting.append(self.next)
            self.next += 1
        else:
            self.now, number = max(self.now, ends), heappop(self.running)[2]
            self.free += self.jobs[number].size

    def _start(self, number: int) -> None:
        self.waiting.remove(number)
        self.starts[number] = self.now
        self.free -= self.jobs[number].size
        heappush(self.running, (self.now + self.jobs[number].runtime, len(self.starts), number))


def slowdown(job: Job, start: float) -> float:
    """The bounded slowdown, with τ = 10 s."""
    return max(1.0, (start - job.submit + job.runtime) / max(job.runtime, TAU))


def kernel_jobs(workload: Workload, first: int, count: int) -> list[Job]:
    """A window of a log for the kernel, with the log's own times."""
    return [_job(job) for job in workload.jobs[first : first + count]]


def _job(job: SimJob) -> Job:
    return Job(job.submit, job.runtime or 0.0, int(job.asks()["cpu"]))


def published(traces: Path) -> list[dict[str, str]]:
    """The published figures: a row for each log, window and policy."""
    with (traces / "swf_published.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def references(traces: Path, logs: dict[str, Workload]) -> Iterator[tuple[str, str, str]]:
    """How many windows and means of the kernel's figures are the published ones."""
    means: dict[tuple[str, ...], list[tuple[float, float]]] = {}
    for line in published(traces):
        if line["policy"] in POLICIES:
            jobs = kernel_jobs(logs[line["trace"]], int(line["window_start"]), int(line["jobs"]))
            found = Kernel(jobs, POLICIES[line["policy"]], line["backfill"] == "1").run()
            name = (line["trace"], line["policy"], line["backfill"])
            means.setdefault(name, []).append((found, float(line["bsld"])))
    windows = [pair for pairs in means.values() for pair in pairs]
    equal = sum(f"{found:.4f}" == f"{said:.4f}" for found, said in windows)
    rows = sum(all(f"{found:.4f}" == f"{said:.4f}" for found, said in pairs) for pairs in means.values())
    yield "kernel, reference policies: windows", f"{len(windows)} equal", f"{equal}"
    yield "kernel, reference policies: rows of the table", "12 equal", f"{rows}"


def in_one_queue(workload: Workload) -> Workload:
    """The same jobs in queue ``default``: the published figures are of one queue, whatever the log says."""
    return replace(workload, jobs=tuple(replace(job, queue="default") for job in workload.jobs))


class Window(NamedTuple):
    """A part of a log: which one it is, its jobs, and the bounded slowdown that is published of it for FCFS."""

    title: str
    workload: Workload
    published: float


def parts(traces: Path, logs: dict[str, Workload], numbers: range, name: str) -> dict[str, list[Window]]:
    """Those of the windows ``numbers`` that are published of logs whose name contains ``name``, jobs in one queue."""
    found: dict[str, list[Window]] = {log: [] for log in LOGS if name in log}
    rows = [one for one in published(traces) if (one["policy"], one["backfill"]) == ("FCFS", "0")]
    for log, windows in found.items():
        mine = [one for one in rows if one["trace"] == log]
        for number, one in enumerate(mine):
            if number not in numbers:
                continue
            first = int(one["window_start"])
            part = in_one_queue(logs[log].part(first, int(one["jobs"])))
            windows.append(Window(f"{log}, window {number}, jobs from {first}", part, float(one["bsld"])))
    return {log: windows for log, windows in found.items() if windows}


def scheduled(windows: dict[str, list[Window]], each: bool) -> Iterator[tuple[str, str, str]]:
    """The scheduler itself with a fifo queue: each log's mean over its windows, and ``each`` of them."""
    registry = full_registry("")
    config = registry.configured_by(FIFO, "fifo")
    first = {**queue("default"), "spec": {"weight": 1, "dequeueStrategy": "fifo"}}
    for log, some in windows.items():
        found, began = [], time.process_time()
        for one in some:
            run = simulate(one.workload.on([first]), config, registry=registry)
            found.append(run.metrics["bounded_slowdown"])
            if each:
                yield f"scheduler, fifo queue, {one.title}", f"{one.published:.4f}", f"{found[-1]:.4f}"
        cpu = time.process_time() - began
        title = f"scheduler, fifo queue, {log}, {len(found)} windows ({cpu:.0f} CPU s)"
        yield title, f"{mean(one.published for one in some):.2f}", f"{mean(found):.2f}"


def first_fit(jobs: Sequence[Job]) -> list[float]:
    """When each job starts if at every event all that fit start, in order of arrival: ends free processors first."""
    starts, waiting, running, free = [0.0] * len(jobs), list[int](), list[tuple[float, int]](), PROCESSORS
    come = 0
    while come < len(jobs) or waiting:
        now = min([job.submit for job in jobs[come : come + 1]] + [end for end, _ in running[:1]])
        while running and running[0][0] <= now:
            free += jobs[heappop(running)[1]].size
        while come < len(jobs) and jobs[come].submit <= now:
            waiting.append(come)
            come += 1
        for number in list(waiting):
            if jobs[number].size <= free:
                free -= jobs[number].size
                starts[number] = now
                heappush(running, (now + jobs[number].runtime, number))
                waiting.remove(number)
    return starts


def traversed(windows: dict[str, list[Window]]) -> Iterator[tuple[str, str, str]]:
    """The scheduler itself with a queue that is traversed: jobs that start in another second than by a first-fit."""
    registry = full_registry("")
    config = registry.configured_by(FIFO, "traverse")
    for one in (one for some in windows.values() for one in some):
        workload = one.workload.on([queue("default")])
        starts = [run.start for run in simulate(workload, config, registry=registry).runs]
        expected = first_fit([_job(job) for job in workload.jobs])
        others = sum(found != said for found, said in zip(starts, expected, strict=True))
        yield f"scheduler, queue traversed, {one.title}: jobs not in the second of a first-fit", "0", f"{others}"


def speeds(traces: Path) -> Iterator[tuple[str, str, str]]:
    """CPU seconds of a week of openb, of Philly's busiest week and of all of DLRM, a cycle every 10 s."""
    week = read_trace(traces / "openb_pod_list_default.csv", str(traces / "openb_node_list_all_node.csv"))
    philly = read_trace(traces / "philly_week6.csv.gz", "552x4gpu")
    dlrm = read_trace(traces / "disaggregated_DLRM_trace.csv", str(traces / "spot_gpu_2026_nodes.csv"))
    for name, workload, bar in (
        ("openb week 17", week.window(604_800, 17 * 604_800), 15), ("Philly's busiest week", philly, 75),
        ("DLRM, 31 days", dlrm, 300),
    ):  # fmt: skip
        began = time.process_time()
        result = simulate(workload, period=10.0)
        cpu = time.process_time() - began
        yield f"{name}, {len(result.runs)} jobs, {result.cycles} cycles", f"{bar} CPU s", f"{cpu:.1f}"


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table of bars; 1 if another command missed its own."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.insight", description=__doc__)
    parser.add_argument("traces", type=Path, help="the folder of traces")
    parser.add_argument("--windows", type=int, default=10, help="windows of each log that the scheduler runs (10)")
    parser.add_argument("--first", type=int, default=0, help="the first of them (0)")
    parser.add_argument("--each", action="store_true", help="a line for each window")
    parser.add_argument("--traverse", action="store_true", help="run them with a queue that is traversed, too")
    parser.add_argument("--log", default="", help="only logs whose name contains this")
    parser.add_argument("--no-speed", action="store_true", help="leave openb, Philly and DLRM out")
    parser.add_argument("--hours", type=float, default=0.0, help="hours that are recorded, replayed and simulated (0)")
    parser.add_argument("--eta-days", type=float, default=0.0, help="days of Philly on which starts are foretold (0)")
    parser.add_argument("--others", action="store_true", help="run what other commands measure, too: half an hour")
    options = parser.parse_args(arguments)
    nodes = f"1x{PROCESSORS}cpu"
    logs = {log: read_trace(options.traces / f"{log}.swf.gz", nodes) for log in LOGS}
    numbers = range(options.first, options.first + options.windows)
    windows = parts(options.traces, logs, numbers, options.log)
    if numbers and not windows:
        parser.error("no window is published that --first, --windows and --log name")
    print(f"{machine()}\n\n{head(('Bar', 'Asked', 'Found'))}")
    for line in references(options.traces, logs):
        print(row(line), flush=True)
    for line in scheduled(windows, options.each):
        print(row(line), flush=True)
    for line in traversed(windows) if options.traverse else ():
        print(row(line), flush=True)
    for line in () if options.no_speed else speeds(options.traces):
        print(row(line), flush=True)
    for line in records(options.hours) if options.hours else ():
        print(row(line), flush=True)
    philly = options.traces / "philly_week6.csv.gz"
    for line in forecasts(philly, "165x4gpu", options.eta_days) if options.eta_days else ():
        print(row(line), flush=True)
    good = show(options.traces, run=options.others)
    for name, bar in NOT_MEASURED.items():
        print(row((name, bar, "not measured here")))
    for name, bar in NOT_BUILT.items():
        print(row((name, bar, "not built")))
    return 0 if good else 1


if __name__ == "__main__":
    raise SystemExit(main())
