"""What a simulation has shown, in figures: each with its formula.

Sums over time, such as the length of the queue, come from :mod:`stromboli.sim.simulation.accounts`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from math import ceil
from typing import Final

from stromboli.sim.simulation.accounts import Accounts
from stromboli.sim.simulation.pods import JobRun

TAU: Final = 10.0
"""Seconds: shorter runtimes count as this long in the bounded slowdown, as Feitelson proposed."""

Row = dict[str, str | float | int | bool | None]


def job_row(run: JobRun, accounts: Accounts) -> Row:
    """A job's row of the table: times in seconds from the beginning, empty where they did not come."""
    job = run.job
    return {
        "job": job.name, "queue": job.queue, "user": job.user, "pods": job.size, "submit": job.submit,
        "runtime": job.runtime, "start": run.start, "end": run.end, "wait": wait(run), "response": response(run),
        "bounded_slowdown": bounded_slowdown(run), "finish_time_fairness": finish_time_fairness(run, accounts),
        "evictions": run.evictions, "failures": run.failures, "restarts": run.restarts, "held": run.held,
        "useful": run.useful, "lost": run.lost, "failed": run.failed,
    }  # fmt: skip


def sample_rows(accounts: Accounts) -> list[Row]:
    """The samples of a run as rows, with a column for each resource and each queue."""
    return [
        {
            "time": one.time, "waiting": one.waiting, "running": one.running, "fragmentation": one.fragmentation,
            "jain": one.jain, **{f"allocated {name}": part for name, part in one.allocated.items()},
            **{f"queue {name}": part for name, part in one.queues.items()},
        }
        for one in accounts.samples
    ]  # fmt: skip


def wait(run: JobRun) -> float | None:
    """Seconds from submission to start, start - submit; None for a job that has not started."""
    return None if run.start is None else run.start - run.job.submit


def response(run: JobRun) -> float | None:
    """Seconds from submission to end, end - submit; None for a job that has not ended."""
    return None if run.end is None else run.end - run.job.submit


def bounded_slowdown(run: JobRun) -> float | None:
    """max(1, (wait + runtime) / max(runtime, τ)); None for a job that has not started or runs for ever.

    D. G. Feitelson et al., "Theory and Practice in Parallel Job Scheduling", JSSPP 1997.
    """
    waited, runtime = wait(run), run.job.runtime
    return None if waited is None or runtime is None else max(1.0, (waited + runtime) / max(runtime, TAU))


def finish_time_fairness(run: JobRun, accounts: Accounts) -> float | None:
    """ρ = response / (runtime x max(1, share x N)): above 1, a job ended later than alone on its part of the cluster.

    N is the mean number of jobs that were there while it was, and ``share`` the part of the cluster that it asks for:
    on 1/N of the cluster it would take share x N times its runtime.  K. Mahajan et al., "Themis", NSDI 2020.  None for
    a job that has not ended well, and for one without a runtime.
    """
    took, runtime = response(run), run.job.runtime
    if took is None or not runtime or run.failed:
        return None
    share = accounts.share(accounts.vector(run.job.asks()))
    return took / (runtime * max(1.0, share * run.company))


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


def goodput(runs: Sequence[JobRun], accounts: Accounts) -> float:
    """Σ useful x share / Σ held x share: the part of what pods held that went into work which remains.

    ``share`` is the part of the cluster that a pod of the job asks for, by the resource of which that is most.
    """
    shares = [accounts.share(accounts.vector(run.job.asks())) / run.job.size for run in runs]
    held = sum(run.held * share for run, share in zip(runs, shares, strict=True))
    useful = sum(run.useful * share for run, share in zip(runs, shares, strict=True))
    return useful / held if held else 1.0


def utilisation(runs: Sequence[JobRun], accounts: Accounts) -> dict[str, float]:
    """By resource: Σ held x request / (capacity x makespan), for what jobs ask for and nodes offer."""
    used = dict.fromkeys(accounts.names, 0.0)
    for run in runs:
        for name, amount in run.job.asks().items():
            if name in used:
                used[name] += amount / run.job.size * run.held
    span = makespan(runs)
    return {name: used[name] / (accounts.capacity[name] * span) for name in used if accounts.capacity[name] and span}


def gini(values: Iterable[float]) -> float:
    """Gini's coefficient, Σ Σ |x - y| / (2 n Σ x): 0 if all are equal, near 1 if one has all; 0 of none."""
    found = sorted(values)
    total, count = sum(found), len(found)
    ranked = sum((2 * rank - count - 1) * value for rank, value in enumerate(found, 1))
    return ranked / (count * total) if total else 0.0


def gini_of_users(runs: Sequence[JobRun]) -> float:
    """Gini's coefficient of the users' mean bounded slowdowns; jobs whose user the trace does not say are left out."""
    users: dict[str, list[float | None]] = {}
    for run in runs:
        if run.job.user:
            users.setdefault(run.job.user, []).append(bounded_slowdown(run))
    return gini(mean(slowdowns) for slowdowns in users.values())


def queue_length(accounts: Accounts) -> float:
    """∫ jobs that wait for their first start dt / time."""
    return accounts.integrals.waiting / accounts.now if accounts.now else 0.0


def mean_jain(accounts: Accounts) -> float:
    """Jain's index over allocated / deserved of queues, ∫ J dt / time, over the times when any queue holds anything."""
    return accounts.integrals.jain / accounts.integrals.shared if accounts.integrals.shared else 1.0


OF_JOBS: Final[Mapping[str, Callable[[Sequence[JobRun]], float]]] = {
    "jobs": len,
    "unfinished": lambda runs: sum(run.end is None for run in runs),
    "unstarted": lambda runs: sum(run.start is None for run in runs),
    "failed": lambda runs: sum(run.failed for run in runs),
    "mean_wait": lambda runs: mean(map(wait, runs)),
    "median_wait": lambda runs: percentile(map(wait, runs), 0.5),
    "p95_wait": lambda runs: percentile(map(wait, runs), 0.95),
    "mean_response": lambda runs: mean(map(response, runs)),
    "bounded_slowdown": lambda runs: mean(map(bounded_slowdown, runs)),
    "makespan": makespan,
    "evictions": lambda runs: sum(run.evictions for run in runs),
    "failures": lambda runs: sum(run.failures for run in runs),
    "restarts": lambda runs: sum(run.restarts for run in runs),
    "lost_work": lambda runs: sum(run.lost for run in runs),
    "gini_slowdown": gini_of_users,
}
"""Figures of any set of jobs, all of a run or those of one queue; times in seconds, work in seconds of pods."""

OF_STARTED: Final = frozenset({"mean_wait", "median_wait", "p95_wait", "bounded_slowdown", "goodput"})
"""Figures that say nothing where no job has started."""


def figures(runs: Sequence[JobRun], accounts: Accounts) -> dict[str, float]:
    """All figures of a run; ``utilisation RESOURCE`` and ``shortfall RESOURCE`` for each resource."""
    found = _of_jobs(runs, accounts)
    found["queue_length"], found["longest_queue"] = queue_length(accounts), accounts.most_waiting
    found["jain"] = mean_jain(accounts)
    found["fragmentation"] = mean(one.fragmentation for one in accounts.samples)
    found |= {f"utilisation {name}": share for name, share in utilisation(runs, accounts).items()}
    for column, name in enumerate(accounts.names):
        found[f"shortfall {name}"] = sum(account.shortfall[column] for account in accounts.queues.values())
    return found


def _of_jobs(runs: Sequence[JobRun], accounts: Accounts) -> dict[str, float]:
    rhos = [finish_time_fairness(run, accounts) for run in runs]
    found = {name: float(figure(runs)) for name, figure in OF_JOBS.items()}
    found["goodput"] = goodput(runs, accounts)
    found["finish_time_fairness"], found["worst_finish_time_fairness"] = mean(rhos), percentile(rhos, 1.0)
    return found


def by_queue(runs: Sequence[JobRun], accounts: Accounts) -> dict[str, dict[str, float]]:
    """The figures of each queue's jobs, and what it missed of what it deserved, ``shortfall RESOURCE``."""
    queues: dict[str, list[JobRun]] = {}
    for run in runs:
        queues.setdefault(run.job.queue, []).append(run)
    found = {name: _of_jobs(queues[name], accounts) for name in sorted(queues)}
    for name, row in found.items():
        row |= {
            f"shortfall {each}": amount
            for each, amount in zip(accounts.names, accounts.queues[name].shortfall, strict=True)
        }
    return found
