"""A million jobs of a log, read and begun, and their table written: ``python -m benchmarks.records.million``.

Prints the most memory that it took.
"""

from __future__ import annotations

import argparse
import random
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from benchmarks.child import peak_mib
from stromboli.builtin import full_registry
from stromboli.sim.simulation.simulation import Simulation
from stromboli.sim.traces.swf import ALLOCATED, FIELDS, NUMBER, REQUESTED, RUNTIME, SUBMIT, USER
from stromboli.study.simulating import Run, read_trace

LIMIT: Final = 2048.0
"""MiB."""
NODES: Final = "100x64cpu"


def lines(jobs: int, seed: int) -> Iterator[str]:
    """So many lines of a log in the Standard Workload Format, a job each 30 seconds in the mean."""
    dice, now = random.Random(seed), 0.0
    for number in range(jobs):
        now += dice.expovariate(1 / 30)
        size = 2 ** dice.randrange(6)
        fields = [-1] * FIELDS
        for name, value in (
            (NUMBER, number + 1), (SUBMIT, round(now)), (RUNTIME, round(dice.expovariate(1 / 600)) + 1),
            (ALLOCATED, size), (REQUESTED, size), (USER, dice.randrange(200)),
        ):  # fmt: skip
            fields[name] = value
        yield " ".join(map(str, fields)) + "\n"


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure; 1 if it took more than 2 GiB."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.records.million", description=__doc__)
    parser.add_argument("--jobs", type=int, default=1_000_000)
    parser.add_argument("--hours", type=float, default=1.0, help="of the log that are simulated (1)")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="stromboli-bench-") as name:
        log = Path(name) / "log.swf"
        with log.open("w", encoding="utf-8") as file:
            file.writelines(lines(options.jobs, 1))
        registry = full_registry("")
        simulation = Simulation(read_trace(log, NODES), registry.configured(""), registry, period=10.0)
        run = Run(simulation.run(options.hours * 3600), simulation.accounts, simulation.cycles)
        run.jobs.write(Path(name) / "jobs.csv")
    most = peak_mib() or float("inf")  # where the system does not tell, nothing is shown
    print(f"{len(run.runs)} jobs, of which {sum(one.start is not None for one in run.runs)} began: {most:.0f} MiB")
    return 0 if most <= LIMIT else 1


if __name__ == "__main__":
    raise SystemExit(main())
