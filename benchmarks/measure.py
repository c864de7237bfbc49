"""Runs a workload in a fresh process and reads off what it cost."""

from __future__ import annotations

import io
import resource
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import BinaryIO

import msgspec

from benchmarks.checks import wrong
from benchmarks.workloads import Json, Workload


@dataclass(frozen=True)
class Measured:
    """What one run cost.

    ``cycle`` and ``load`` are CPU seconds as the process counts them, ``process`` those of the whole process from its
    start to its end, as the system counts them; ``peak`` is in MiB, ``binds`` how many pods were bound.  ``wrong`` says
    what is amiss with the outcome; the figures are 0 where there is none.
    """

    cycle: float = 0.0
    load: float = 0.0
    process: float = 0.0
    peak: float = 0.0
    binds: int = 0
    wrong: tuple[str, ...] = ()


@dataclass(frozen=True)
class Answer:
    """What a process wrote, or why there is nothing, and its CPU seconds as the system counts them."""

    content: Json | None
    trouble: str
    process: float


def measure(workload: Workload, *, repeat: int = 1, limit: float = 600.0, options: Sequence[str] = ()) -> Measured:
    """Run a workload ``repeat`` times, each time in a new process; the run whose cycle is the median one.

    ``limit`` is how many seconds a run may take, ``options`` are those of :mod:`benchmarks.child`.
    """
    with tempfile.TemporaryFile() as scenario:
        workload.write(scenario)
        runs = [_measured(workload, ask(scenario, limit, options)) for _ in range(repeat)]
    failed = [run for run in runs if run.wrong]
    if failed:
        return failed[0]
    middle = statistics.median_low(run.cycle for run in runs)
    return next(run for run in runs if run.cycle == middle)


def ask(scenario: BinaryIO, limit: float, options: Sequence[str] = ()) -> Answer:
    """Have a new process answer the scenario in a file."""
    scenario.seek(0)
    command = [sys.executable, "-m", "benchmarks.child", *options]
    before = _children()
    with tempfile.TemporaryFile() as answer, tempfile.TemporaryFile() as log:
        try:
            ended = subprocess.run(command, stdin=scenario, stdout=answer, stderr=log, timeout=limit, check=False)
        except subprocess.TimeoutExpired:
            return Answer(None, f"did not end within {limit:g} s", _children() - before)
        spent = _children() - before
        if ended.returncode:
            return Answer(None, _last_line(log) or f"ended with code {ended.returncode}", spent)
        answer.seek(0)
        return Answer(msgspec.json.decode(answer.read()), "", spent)


def text_of(workload: Workload) -> bytes:
    """The scenario of a workload."""
    scenario = io.BytesIO()
    workload.write(scenario)
    return scenario.getvalue()


def in_turns(ways: Sequence[Callable[[], float]], count: int) -> Iterator[tuple[float, ...]]:
    """What each way comes to, round by round, in this process; each round begins with another way.

    A machine that grows slower meanwhile slows all of them.
    """
    ways[0]()  # the first run imports what is needed
    for turn in range(count):
        order = [(turn + k) % len(ways) for k in range(len(ways))]
        found = {k: ways[k]() for k in order}
        yield tuple(found[k] for k in range(len(ways)))


def _measured(workload: Workload, answer: Answer) -> Measured:
    if answer.content is None:
        return Measured(process=answer.process, wrong=(answer.trouble,))
    timing = answer.content["timing"]
    return Measured(
        cycle=last_cycle(answer.content),
        load=timing["load_cpu_s"],
        process=answer.process,
        peak=timing["peak_rss_mib"],
        binds=len(answer.content["outcome"]["binds"]),
        wrong=tuple(wrong(workload, answer.content)),
    )


def last_cycle(answer: Json) -> float:
    """CPU seconds of the last cycle of an answer."""
    cycles = answer["timing"]["cycle_cpu_s"]
    seconds: float = cycles[-1] if isinstance(cycles, list) else cycles
    return seconds


def _children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _last_line(log: BinaryIO) -> str:
    log.seek(0)
    lines = log.read().decode(errors="replace").split("\n")
    return next((line.strip() for line in reversed(lines) if line.strip()), "")
