"""Batch Jobs: pods until enough of them have succeeded, too many have failed, or the Job's time is over."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice, repeat
from typing import Final

from stromboli.cluster.body import Body, meta, part, seconds_of
from stromboli.server.controllers.workloads.back_off import Failures
from stromboli.server.controllers.workloads.job_counts import (
    INDEX,
    JOBS,
    TRACKING,
    completed,
    count,
    index_of,
    is_indexed,
    release,
)
from stromboli.server.controllers.workloads.objects import (
    MOST_AT_ONCE,
    PODS,
    Objects,
    controller_of,
    is_active,
    is_ending,
    is_ready,
    phase,
    pod_parts,
    template_of,
)

OURS: Final = "kubernetes.io/job-controller"
"""The controller whose part is played here; Jobs with another ``managedBy`` are left alone."""
_UNHEEDED: Final = ("podFailurePolicy", "successPolicy", "backoffLimitPerIndex", "maxFailedIndexes")
_OVER: Final = ("Complete", "Failed")

NO_FAILURES: Final = Failures()

End = tuple[str, str, str]
"""Condition, reason and message with which a Job is over."""


def sync(objects: Objects, job: Body) -> None:
    """Make and delete pods, and say how the job stands.  Raises ApiFailure."""
    if part(job, "spec", "managedBy") not in (None, OURS):
        return
    if meta(job).get("deletionTimestamp") or _is_over(job):
        _clear(objects, job)
        return
    if not part(job, "status", "startTime"):
        _warn(objects, job)
    job = count(objects, job)
    end = _end(objects, job, objects.owned(job))
    try:
        pods = objects.owned(job)
        if end or part(job, "spec", "suspend"):
            _delete(objects, filter(is_active, pods))
        else:
            _scale(objects, job, pods)
    finally:
        _tell(objects, job, end)


def _warn(objects: Objects, job: Body) -> None:
    """Say what the Job asks for and does not get here."""
    fields = [f"spec.{name}" for name in _UNHEEDED if part(job, "spec", name) is not None]
    if part(job, "spec", "podReplacementPolicy") == "Failed":
        fields.append("spec.podReplacementPolicy")
    if fields and not part(job, "status", "conditions"):
        objects.tell(job, "FieldsIgnored", f"the embedded cluster does not act on {', '.join(fields)}")


def release_orphan(objects: Objects, pod: Body) -> None:
    """Release a pod that no Job controls any more, even if it has other owners.  Raises ApiFailure."""
    collection, _ = objects.store.places.get(controller_of(pod), (None, None))
    if collection != JOBS:
        release(objects, pod)


def _clear(objects: Objects, job: Body) -> None:
    """Let the pods of a Job go that is over or being deleted, and the Job itself after its time to live."""
    objects.failures.pop(meta(job)["uid"], None)
    for pod in objects.owned(job):
        release(objects, pod)
    life = part(job, "spec", "ttlSecondsAfterFinished")
    if life is not None and not meta(job).get("deletionTimestamp"):
        since = max(seconds_of(one.get("lastTransitionTime")) or 0.0 for one in _final(job))
        if objects.is_due(JOBS, job, since + life):
            objects.delete(JOBS, job)


def _final(job: Body) -> list[Body]:
    """The conditions that say that the Job is over."""
    conditions = part(job, "status", "conditions") or ()
    return [one for one in conditions if one["type"] in _OVER and one["status"] == "True"]


def _is_over(job: Body) -> bool:
    return bool(_final(job))


def _done(job: Body) -> int:
    """How many completions there are: pods, or indices of pods, that have succeeded."""
    return int(part(job, "status", "succeeded") or 0)


def _end(objects: Objects, job: Body, pods: list[Body]) -> End | None:
    """How the Job is over; None while it goes on."""
    if _has_failed_too_often(job, pods):
        return "Failed", "BackoffLimitExceeded", "Job has reached the specified backoff limit"
    wanted, done = part(job, "spec", "completions"), _done(job)
    alive = any(is_active(pod) for pod in pods)
    if (done >= wanted) if wanted is not None else (done > 0 and not alive):
        return "Complete", "CompletionsReached", "Reached expected number of succeeded pods"
    if _is_late(objects, job):
        return "Failed", "DeadlineExceeded", "Job was active longer than specified deadline"
    return None


def _has_failed_too_often(job: Body, pods: list[Body]) -> bool:
    """More pods have failed than allowed, or containers of the pods have been started again as often as that."""
    limit = int(part(job, "spec", "backoffLimit"))
    if int(part(job, "status", "failed") or 0) > limit:
        return True
    if part(template_of(job), "spec", "restartPolicy") != "OnFailure":
        return False
    return sum(map(_restarts, filter(is_active, pods))) >= max(limit, 1)


def _restarts(pod: Body) -> int:
    kinds = ("initContainerStatuses", "containerStatuses")
    return sum(one.get("restartCount", 0) for kind in kinds for one in part(pod, "status", kind) or ())


def _is_late(objects: Objects, job: Body) -> bool:
    """Whether the Job has been active for longer than its deadline; if it has one, it is looked at again then."""
    deadline, since = part(job, "spec", "activeDeadlineSeconds"), seconds_of(part(job, "status", "startTime"))
    if deadline is None or part(job, "spec", "suspend"):
        return False
    return objects.is_due(JOBS, job, (objects.clock() if since is None else since) + deadline)


def _delete(objects: Objects, pods: Iterator[Body]) -> None:
    """Delete pods that do not count as failed."""
    for pod in pods:
        release(objects, pod)
        objects.delete(PODS, pod)


def _scale(objects: Objects, job: Body, pods: list[Body]) -> None:
    active = [pod for pod in pods if is_active(pod)]
    wanted, most = part(job, "spec", "completions"), part(job, "spec", "parallelism")
    left = most if wanted is None else min(most, wanted - _done(job))
    if wanted is None and _done(job):
        left = min(left, len(active))
    _delete(objects, iter(active[max(left, 0) :]))
    missing = max(min(left - len(active), MOST_AT_ONCE), 0)
    if missing and not objects.is_due(JOBS, job, objects.failures.get(meta(job)["uid"], NO_FAILURES).over):
        return
    for index in islice(_free_indices(job, pods) if is_indexed(job) else repeat(None), missing):
        _make(objects, job, index)


def _free_indices(job: Body, pods: list[Body]) -> Iterator[int]:
    taken = {index_of(pod) for pod in pods if is_active(pod)} | completed(job)
    return (index for index in range(part(job, "spec", "completions") or 0) if index not in taken)


def _make(objects: Objects, job: Body, index: int | None) -> None:
    name = meta(job)["name"]
    if index is None:
        metadata, spec = pod_parts(template_of(job))
        objects.create(PODS, job, {**_tracked(metadata), "generateName": f"{name}-"}, spec=spec)
        return
    number = {INDEX: str(index)}
    metadata, spec = pod_parts(template_of(job), number, number)
    source = {"fieldRef": {"fieldPath": f"metadata.labels['{INDEX}']"}}
    entry = {"name": "JOB_COMPLETION_INDEX", "valueFrom": source}
    parts = {
        kind: [{**one, "env": [*(one.get("env") or ()), entry]} for one in spec[kind]]
        for kind in ("containers", "initContainers")
        if spec.get(kind)
    }
    spec = {"hostname": f"{name}-{index}", **spec, **parts}
    objects.create(PODS, job, {**_tracked(metadata), "generateName": f"{name}-{index}-"}, spec=spec)


def _tracked(metadata: Body) -> Body:
    return {**metadata, "finalizers": [*metadata.get("finalizers", ()), TRACKING]}


def _tell(objects: Objects, job: Body, end: End | None) -> None:
    current = objects.get(JOBS, meta(job)["namespace"], meta(job)["name"])
    if current is None:
        return
    now, known = objects.now(), current.get("status") or {}
    status = {**known, **_counts(objects.owned(current))}
    if part(current, "spec", "suspend"):
        status.pop("startTime", None)
    else:
        status["startTime"] = known.get("startTime") or now
    conditions = _conditions(current, end, now, known)
    if end is not None and end[0] == "Complete":
        status["completionTime"] = now
    status["conditions"] = conditions
    objects.set_status(JOBS, current, {name: value for name, value in status.items() if value not in ([], None)})


def _counts(pods: list[Body]) -> Body:
    """What the status says of the pods that are there."""
    active = [pod for pod in pods if is_active(pod)]
    terminating = sum(is_ending(pod) and phase(pod) not in ("Succeeded", "Failed") for pod in pods)
    counts = {"active": len(active) or None, "ready": sum(map(is_ready, active)), "terminating": terminating}
    return {**counts, "uncountedTerminatedPods": {}}


def _conditions(job: Body, end: End | None, now: str, known: Body) -> list[Body]:
    found = [one for one in known.get("conditions") or () if one["type"] != "Suspended"]
    if part(job, "spec", "suspend"):
        found.append(_condition(("Suspended", "JobSuspended", "Job suspended"), now, known))
    if end is not None:
        early = "SuccessCriteriaMet" if end[0] == "Complete" else "FailureTarget"
        found += [_condition((kind, *end[1:]), now, known) for kind in (early, end[0])]
    return found


def _condition(said: tuple[str, str, str], now: str, known: Body) -> Body:
    kind, reason, message = said
    before = next((one for one in known.get("conditions") or () if one["type"] == kind), None)
    fresh = {"type": kind, "status": "True", "reason": reason, "message": message}
    return before or {**fresh, "lastProbeTime": now, "lastTransitionTime": now}
