"""What a simulation has shown, in figures: each with its formula."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from math import ceil
from typing import Final

from stromboli.sim.simulation.simulation import JobRun

TAU: Final = 10.0
"""Seconds: shorter runtimes count as this long in the bounded slowdown, as Feitelson proposed."""

Row = dict[str, str | float | int | None]


def job_row(run: JobRun) -> Row:
    """A job's row of the table: times in seconds from the beginning, empty where they did not come."""
    job = run.job
    return {
        "job": job.name, "queue": job.queue, "user": job.user, "pods": job.size, "submit": job.submit,
        "runtime": job.runtime, "start": run.start, "end": run.end, "wait": wait(run),
        "bounded_slowdown": bounded_slowdown(run), "evictions": run.evictions, "held": run.held, "lost": run.lost,
    }  # fmt: skip


def wait(run: JobRun) -> float | None:
    """Seconds from submission to start, start - submit; None for a job that has not started."""
    return None if run.start is None else run.start - run.job.submit


def bounded_slowdown(run: JobRun) -> float | None:
    """max(1, (wait + runtime) / max(runtime, τ)); None for a job that has not started or runs for ever."""
    waited, runtime = wait(run), run.job.runtime
    return None if waited is None or runtime is None else max(1.0, (waited + runtime) / max(runtime, TAU))


def mean(values: Iterable[float | None]) -> float:
    """The arithmetic mean of the values that are there; 0 of none."""
    found = [value for value in values if value is not None]
    return sum(found) / len(found) if found else 0.0


def percentile(values: Iterable[float | None], share: float) -> float:
    """The least value that ``share`` (0 to 1) of the values do not exceed (nearest rank); 0 of none."""
    found = sorted(value for value in values if value is not None)
    return found[max(ceil(share * len(found)) - 1, 0)] if found else 0.0


def makespan(runs: Sequence[JobRun]) -> float:
    """The last end minus the first submission, in seconds; 0 where nothing has ended."""
    ends = [run.end for run in runs if run.end is not None]
    return max(ends) - min(run.job.submit for run in runs) if ends else 0.0


def goodput(runs: Sequence[JobRun]) -> float:
    """1 - Σ lost / Σ held: the part of the pods' time on nodes that evictions did not take."""
    held = sum(run.held for run in runs)
    return 1.0 - sum(run.lost for run in runs) / held if held else 1.0


def utilisation(runs: Sequence[JobRun], capacity: Mapping[str, float]) -> dict[str, float]:
    """By resource: Σ held × request / (capacity × makespan), for what jobs ask for and nodes offer."""
    used: dict[str, float] = {}
    for run in runs:
        for name, amount in run.job.asks().items():
            used[name] = used.get(name, 0.0) + amount / run.job.size * run.held
    span = makespan(runs)
    return {name: used[name] / (capacity[name] * span) for name in sorted(used) if capacity.get(name) and span}


FIGURES: Final[Mapping[str, Callable[[Sequence[JobRun]], float]]] = {
    "jobs": len,
    "unfinished": lambda runs: sum(run.end is None for run in runs),
    "mean_wait": lambda runs: mean(map(wait, runs)),
    "p95_wait": lambda runs: percentile(map(wait, runs), 0.95),
    "bounded_slowdown": lambda runs: mean(map(bounded_slowdown, runs)),
    "makespan": makespan,
    "evictions": lambda runs: sum(run.evictions for run in runs),
    "goodput": goodput,
}
"""Figures of any set of jobs, all of a run or those of one queue; times in seconds."""


def figures(runs: Sequence[JobRun], capacity: Mapping[str, float]) -> dict[str, float]:
    """All figures of a run, and ``utilisation RESOURCE`` for each resource."""
    found = {name: figure(runs) for name, figure in FIGURES.items()}
    return found | {f"utilisation {name}": share for name, share in utilisation(runs, capacity).items()}


def by_queue(runs: Sequence[JobRun]) -> dict[str, dict[str, float]]:
    """The figures of each queue's jobs."""
    queues: dict[str, list[JobRun]] = {}
    for run in runs:
        queues.setdefault(run.job.queue, []).append(run)
    return {name: {key: figure(queues[name]) for key, figure in FIGURES.items()} for name in sorted(queues)}
