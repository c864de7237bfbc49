"""What has happened to a job, and what its policies say is to be done about it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from stromboli.api.batch import (
    ANY,
    COMMAND_ISSUED,
    DEFAULT_RETRIES,
    ON_EVICTED,
    ON_FAILED,
    ON_PENDING,
    ON_RUNNING,
    ON_TASK_COMPLETED,
    ON_TASK_FAILED,
    OUT_OF_SYNC,
    Job,
    LifecyclePolicy,
    Task,
)
from stromboli.api.bus import SYNC_JOB
from stromboli.controllers.pods import PodView
from stromboli.crds.admission.policies import events_of
from stromboli.errors import DurationError
from stromboli.model.names import POD_FAILED, POD_PENDING, POD_RUNNING, POD_SUCCEEDED
from stromboli.model.values import duration

PLAIN_EVENTS: Final = (OUT_OF_SYNC, COMMAND_ISSUED, ON_RUNNING)
"""Events that no policy is asked about."""
UNLIMITED: Final = -1


class Request(NamedTuple):
    """One thing that has happened to a job, or that is asked to be done to it (``action``).

    ``task``, ``pod``, ``pod_uid`` and ``partition`` say which part it concerns; ``version`` is the job's when the pod
    was made.
    """

    event: str = OUT_OF_SYNC
    action: str = ""
    job_uid: str = ""
    version: int = 0
    task: str = ""
    pod: str = ""
    pod_uid: str = ""
    partition: str = ""
    exit_code: int = 0


class Choice(NamedTuple):
    """What is to be done, and after how many seconds."""

    action: str = SYNC_JOB
    delay: float = 0.0


SYNC: Final = Choice()


# -- What pods tell --------------------------------------------------------------------------------------------------


def of_pod(event: str, pod: PodView) -> Request:
    """The request that ``event`` happened to ``pod``."""
    exit_code = pod.exit_code if event == ON_FAILED else 0
    return Request(event, "", pod.job_uid, pod.version, pod.task, pod.name, pod.uid, pod.partition, exit_code)


def of_seen_pod(pod: PodView, old: PodView | None, job: Job | None, pods: Mapping[str, PodView]) -> Request:
    """What a pod that has come or changed tells its job; ``pods`` are all of the job."""
    if pod.out_of_sync:
        return of_pod(OUT_OF_SYNC, pod)
    if old is None or old.uid != pod.uid:
        return of_pod(ON_PENDING if pod.phase == POD_PENDING else OUT_OF_SYNC, pod)
    return of_pod(_event(pod, old, job, pods), pod)


def _event(pod: PodView, old: PodView, job: Job | None, pods: Mapping[str, PodView]) -> str:
    if pod.phase != old.phase:
        if pod.phase == POD_SUCCEEDED:
            return ON_TASK_COMPLETED if _succeeded(pod, job, pods) else OUT_OF_SYNC
        return _ON_PHASE.get(pod.phase, OUT_OF_SYNC)
    return ON_TASK_FAILED if pod.restarts > old.restarts and _worn_out(pod, job, pods) else OUT_OF_SYNC


_ON_PHASE: Final = {POD_FAILED: ON_FAILED, POD_RUNNING: ON_RUNNING, POD_PENDING: ON_PENDING}


def _heeded(event: str, pod: PodView, job: Job | None) -> Task | None:
    """The task of ``pod``, if a policy is about ``event``: otherwise its pods need not be counted."""
    task = None if job is None else task_named(job, pod.task)
    if job is None or task is None:
        return None
    about = any({event, ANY} & set(events_of(policy)) for policy in (*task.policies, *job.spec.policies))
    return task if about else None


def _succeeded(pod: PodView, job: Job | None, pods: Mapping[str, PodView]) -> bool:
    """Whether all pods of the task have succeeded, and a policy asks for it."""
    task = _heeded(ON_TASK_COMPLETED, pod, job)
    if task is None:
        return False
    done = sum(other.task == task.name and other.phase == POD_SUCCEEDED for other in pods.values())
    return done >= task.replicas > 0


def _worn_out(pod: PodView, job: Job | None, pods: Mapping[str, PodView]) -> bool:
    """Whether the containers of the task have been restarted as often as they may be, and a policy asks for it."""
    task = _heeded(ON_TASK_FAILED, pod, job)
    if task is None or task.max_retry == UNLIMITED:
        return False
    alive = (one for one in pods.values() if one.task == task.name and one.phase in (POD_RUNNING, POD_PENDING))
    return sum(one.restarts for one in alive) >= (task.max_retry or DEFAULT_RETRIES)


def of_gone_pod(pod: PodView) -> Request:
    """What a pod that is gone tells its job: it was evicted, unless the controller deleted it."""
    return of_pod(OUT_OF_SYNC if pod.out_of_sync else ON_EVICTED, pod)


def task_named(job: Job, name: str) -> Task | None:
    """The task of that name."""
    return next((task for task in job.spec.tasks if task.name == name), None)


# -- What policies say -----------------------------------------------------------------------------------------------


def choose(job: Job, request: Request) -> Choice:
    """What is to be done: what was asked for, else what the first matching policy says, a task's before the job's."""
    if request.action:
        return Choice(request.action)
    stale = request.job_uid != job.metadata.uid or request.version < job.status.version
    if request.event in PLAIN_EVENTS or stale:
        return SYNC
    for policy in _policies(job, request.task):
        if matches(policy, request):
            return Choice(policy.action, delay_of(policy))
    return SYNC


def _policies(job: Job, task: str) -> Iterator[LifecyclePolicy]:
    found = task_named(job, task) if task else None
    if found is not None:
        yield from found.policies
    yield from job.spec.policies


def matches(policy: LifecyclePolicy, request: Request) -> bool:
    """Whether a policy is about what has happened."""
    events = events_of(policy)
    if request.event in events or ANY in events:
        return request.event != ON_PENDING or policy.timeout is not None
    return policy.exit_code is not None and policy.exit_code == request.exit_code != 0


def delay_of(policy: LifecyclePolicy) -> float:
    """Seconds after the event at which a policy acts; a text that is no duration counts as none."""
    try:
        return max(duration.seconds(policy.timeout), 0.0) if policy.timeout else 0.0
    except DurationError:
        return 0.0
