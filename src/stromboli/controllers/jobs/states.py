r"""The state machine of jobs: what an action means in each phase, and which phase follows.

=====================  =============================  ==========================================================
phase                  action                         what is done, and the phase after it
=====================  =============================  ==========================================================
Pending, Running       RestartJob                     kill all; a retry more; Restarting
\                      RestartTask, -Pod, -Partition  kill these; a retry more; Restarting
\                      AbortJob, Terminate-, Complete-  kill what is alive; Aborting, Terminating, Completing
Pending                any other                      sync; Running once enough pods have started
Running                any other                      sync; Completed, Failed, Pending or as before
Restarting             SyncJob                        sync; Failed when out of retries, Pending when enough is gone
\                      RestartTask, -Pod, -Partition  kill these; the same
\                      any other                      kill all; the same
Aborting, Aborted      ResumeJob                      kill what is alive; a retry more; Restarting
Aborting               any other                      kill what is alive; Aborted when all is gone
Completing             any                            kill what is alive; Completed when all is gone
Terminating            any                            kill what is alive; Terminated when all is gone
Aborted, finished      any other                      kill what is alive; no change
=====================  =============================  ==========================================================
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import Enum
from typing import Final, NamedTuple

from stromboli.api.batch import (
    ABORTED,
    ABORTING,
    COMPLETED,
    COMPLETING,
    DEFAULT_RETRIES,
    FAILED,
    PENDING,
    RESTARTING,
    RUNNING,
    TERMINATED,
    TERMINATING,
    Job,
)
from stromboli.api.bus import (
    ABORT_JOB,
    COMPLETE_JOB,
    RESTART_JOB,
    RESTART_PARTITION,
    RESTART_POD,
    RESTART_TASK,
    RESUME_JOB,
    SYNC_JOB,
    TERMINATE_JOB,
)
from stromboli.controllers.jobs.counting import Counts
from stromboli.model.names import POD_SUCCEEDED

FINISHED: Final = (COMPLETED, FAILED, TERMINATED)
"""Phases that are never left."""

OUT_OF_RETRIES: Final = "OutOfRetries"
TOO_FEW_SUCCEEDED: Final = "TooFewPodsSucceeded"
"""Why jobs fail."""

Settle = Callable[[Job, Counts], str]
"""From a job as it was and its pods as they are to the phase that follows."""


class How(Enum):
    """What is done to the pods."""

    SYNC = "sync"
    KILL_ALL = "kill all"
    KILL_ALIVE = "kill what is alive"
    KILL_TARGET = "kill a part"


class Step(NamedTuple):
    """What an action means: what is done to the pods, the phase that follows, and whether it is a retry.

    ``begins`` says that the whole job is killed by it, also when no pod is left to kill.
    """

    how: How
    settle: Settle
    retry: bool = False
    begins: bool = False


def most_retries(job: Job) -> int:
    """How many times a job may be restarted."""
    return job.spec.max_retry or DEFAULT_RETRIES


def total(job: Job) -> int:
    """How many pods a job has in all."""
    return sum(task.replicas for task in job.spec.tasks)


# -- Which phase follows ---------------------------------------------------------------------------------------------


def stay(job: Job, counts: Counts) -> str:
    """The phase that it is in."""
    return job.status.state.phase or PENDING


def to(phase: str) -> Settle:
    """Always ``phase``."""
    return lambda job, counts: phase


def when_gone(phase: str) -> Settle:
    """``phase`` as soon as no pod is alive."""
    return lambda job, counts: stay(job, counts) if counts.alive else phase


def started(job: Job, counts: Counts) -> str:
    """Running as soon as enough pods have started, one at the least."""
    begun = counts.running + counts.succeeded + counts.failed
    return RUNNING if max(job.spec.min_available, 1) <= begun else PENDING


def restarted(job: Job, counts: Counts) -> str:
    """Failed when the retries are used up, Pending when enough pods are gone."""
    if job.status.retry_count >= most_retries(job):
        return FAILED
    least = job.status.min_available or job.spec.min_available
    return PENDING if total(job) - counts.terminating >= least else RESTARTING


def ended(job: Job, counts: Counts) -> str:
    """Completed or Failed when the pods have ended so, Pending when too few run."""
    spec, pods = job.spec, total(job)
    if not pods:
        return stay(job, counts)
    if spec.min_success is not None and counts.succeeded >= spec.min_success:
        return COMPLETED
    if counts.succeeded + counts.failed == pods:
        return _verdict(job, counts)
    return PENDING if counts.pending > pods - spec.min_available else stay(job, counts)


def _verdict(job: Job, counts: Counts) -> str:
    spec = job.spec
    enough = spec.min_available >= sum(task.min_available or 0 for task in spec.tasks)
    if enough and any(_short(counts.tasks.get(task.name), task.min_available) for task in spec.tasks):
        return FAILED
    if spec.min_success is not None:
        return FAILED
    return COMPLETED if counts.succeeded >= spec.min_available else FAILED


def _short(phases: Mapping[str, int] | None, least: int | None) -> bool:
    """Whether fewer pods of a task have succeeded than it needs; a task without any pods is not looked at."""
    return phases is not None and least is not None and phases.get(POD_SUCCEEDED, 0) < least


def failure(job: Job, counts: Counts) -> tuple[str, str]:
    """Why ``job`` fails now: a word and a sentence that says what would help."""
    if job.status.state.phase == RESTARTING:
        tries = job.status.retry_count
        times = f"the job was restarted or resumed {tries} time{'s' * (tries != 1)}, as often as its maxRetry allows"
        return OUT_OF_RETRIES, f"{times}: raise spec.maxRetry, or see to what it was restarted for"
    ended = f"{counts.succeeded} of {total(job)} pods succeeded and {counts.failed} failed"
    return TOO_FEW_SUCCEEDED, f"{ended}, while {_wanted(job, counts)}"


def _wanted(job: Job, counts: Counts) -> str:
    """What the pods of a job that has failed were to reach."""
    spec = job.spec
    short = (task for task in spec.tasks if _short(counts.tasks.get(task.name), task.min_available))
    if spec.min_success is not None and counts.succeeded < spec.min_success:
        return f"{spec.min_success} must succeed by spec.minSuccess"
    if counts.succeeded < spec.min_available:
        return f"{spec.min_available} must succeed by spec.minAvailable"
    return ", ".join(f"{task.min_available} of task {task.name} must by its minAvailable" for task in short)


# -- The table -------------------------------------------------------------------------------------------------------

_PARTS: Final = (RESTART_TASK, RESTART_POD, RESTART_PARTITION)
_ACTIVE: Final[Mapping[str, Step]] = {
    RESTART_JOB: Step(How.KILL_ALL, to(RESTARTING), retry=True, begins=True),
    **dict.fromkeys(_PARTS, Step(How.KILL_TARGET, to(RESTARTING), retry=True)),
    ABORT_JOB: Step(How.KILL_ALIVE, to(ABORTING), begins=True),
    TERMINATE_JOB: Step(How.KILL_ALIVE, to(TERMINATING), begins=True),
    COMPLETE_JOB: Step(How.KILL_ALIVE, to(COMPLETING), begins=True),
}
_RESTARTING: Final[Mapping[str, Step]] = {
    SYNC_JOB: Step(How.SYNC, restarted),
    **dict.fromkeys(_PARTS, Step(How.KILL_TARGET, restarted)),
}
_RESUME: Final[Mapping[str, Step]] = {RESUME_JOB: Step(How.KILL_ALIVE, to(RESTARTING), retry=True, begins=True)}
_LEFT: Final = Step(How.KILL_ALIVE, stay)

STEPS: Final[Mapping[str, tuple[Mapping[str, Step], Step]]] = {
    PENDING: (_ACTIVE, Step(How.SYNC, started)),
    RUNNING: (_ACTIVE, Step(How.SYNC, ended)),
    RESTARTING: (_RESTARTING, Step(How.KILL_ALL, restarted)),
    ABORTING: (_RESUME, Step(How.KILL_ALIVE, when_gone(ABORTED))),
    ABORTED: (_RESUME, _LEFT),
    COMPLETING: ({}, Step(How.KILL_ALIVE, when_gone(COMPLETED))),
    TERMINATING: ({}, Step(How.KILL_ALIVE, when_gone(TERMINATED))),
    **dict.fromkeys(FINISHED, ({}, _LEFT)),
}
"""By phase: what each action means, and what every other does."""


def step_for(phase: str, action: str) -> Step:
    """What ``action`` means in ``phase``; an unknown phase counts as Pending."""
    steps, otherwise = STEPS.get(phase) or STEPS[PENDING]
    return steps.get(action, otherwise)
