"""Batch Jobs: pods until enough of them have succeeded, or too many have failed."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice, repeat
from typing import Final

from stromboli.cluster.body import Body, meta, part
from stromboli.server.controllers.workloads.objects import (
    MOST_AT_ONCE,
    PODS,
    Objects,
    is_active,
    is_ending,
    is_ready,
    phase,
    pod_parts,
    template_of,
    without_zeros,
)

JOBS: Final = ("batch", "jobs")
_PREFIX: Final = "batch.kubernetes.io"
INDEX: Final = f"{_PREFIX}/job-completion-index"
_OVER: Final = ("Complete", "Failed")


def sync(objects: Objects, job: Body) -> None:
    """Make and delete pods, and say how the job stands.  Raises ApiFailure."""
    if meta(job).get("deletionTimestamp") or _is_over(job):
        return
    pods = objects.owned(job)
    end = _end(job, pods)
    try:
        if end or part(job, "spec", "suspend"):
            for pod in filter(is_active, pods):
                objects.delete(PODS, pod)
        else:
            _scale(objects, job, pods)
    finally:
        _tell(objects, job, end)


def _is_over(job: Body) -> bool:
    conditions = part(job, "status", "conditions") or ()
    return any(one["type"] in _OVER and one["status"] == "True" for one in conditions)


def _is_indexed(job: Body) -> bool:
    return bool(part(job, "spec", "completionMode") == "Indexed")


def _done(job: Body, pods: list[Body]) -> int:
    """How many completions there are: pods, or indices of pods, that have succeeded."""
    succeeded = [pod for pod in pods if phase(pod) == "Succeeded"]
    return len({_index(pod) for pod in succeeded}) if _is_indexed(job) else len(succeeded)


def _index(pod: Body) -> int:
    text = str((meta(pod).get("annotations") or {}).get(INDEX, ""))
    return int(text) if text.isdecimal() else -1


def _end(job: Body, pods: list[Body]) -> tuple[str, str, str] | None:
    """Condition, reason and message with which the job is over; None while it goes on."""
    if sum(phase(pod) == "Failed" for pod in pods) > part(job, "spec", "backoffLimit"):
        return "Failed", "BackoffLimitExceeded", "Job has reached the specified backoff limit"
    wanted, done = part(job, "spec", "completions"), _done(job, pods)
    alive = any(is_active(pod) for pod in pods)
    if (done >= wanted) if wanted is not None else (done > 0 and not alive):
        return "Complete", "CompletionsReached", "Reached expected number of succeeded pods"
    return None


def _scale(objects: Objects, job: Body, pods: list[Body]) -> None:
    active = [pod for pod in pods if is_active(pod)]
    wanted, most = part(job, "spec", "completions"), part(job, "spec", "parallelism")
    left = most if wanted is None else min(most, wanted - _done(job, pods))
    if wanted is None and any(phase(pod) == "Succeeded" for pod in pods):
        left = min(left, len(active))
    for pod in active[left:] if left < len(active) else ():
        objects.delete(PODS, pod)
    missing = max(min(left - len(active), MOST_AT_ONCE), 0)
    for index in islice(_free_indices(job, pods) if _is_indexed(job) else repeat(None), missing):
        _make(objects, job, index)


def _free_indices(job: Body, pods: list[Body]) -> Iterator[int]:
    taken = {_index(pod) for pod in pods if is_active(pod) or phase(pod) == "Succeeded"}
    return (index for index in range(part(job, "spec", "completions") or 0) if index not in taken)


def _make(objects: Objects, job: Body, index: int | None) -> None:
    name = meta(job)["name"]
    if index is None:
        metadata, spec = pod_parts(template_of(job))
        objects.create(PODS, job, {**metadata, "generateName": f"{name}-"}, spec=spec)
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
    objects.create(PODS, job, {**metadata, "generateName": f"{name}-{index}-"}, spec=spec)


def _tell(objects: Objects, job: Body, end: tuple[str, str, str] | None) -> None:
    current = objects.get(JOBS, meta(job)["namespace"], meta(job)["name"])
    if current is None:
        return
    now, pods, known = objects.now(), objects.owned(current), current.get("status") or {}
    status = _counts(current, pods)
    if not part(current, "spec", "suspend"):
        status["startTime"] = known.get("startTime") or now
    conditions = _conditions(current, end, now, known)
    if end is not None and end[0] == "Complete":
        status["completionTime"] = now
    objects.set_status(JOBS, current, {**status, **({"conditions": conditions} if conditions else {})})


def _counts(job: Body, pods: list[Body]) -> Body:
    active, succeeded = [pod for pod in pods if is_active(pod)], [pod for pod in pods if phase(pod) == "Succeeded"]
    failed = [pod for pod in pods if phase(pod) == "Failed"]
    indices = ",".join(map(str, sorted(set(map(_index, succeeded))))) if _is_indexed(job) else ""
    return {
        **without_zeros(active=len(active), failed=len(failed), succeeded=len(succeeded)),
        **({"completedIndexes": indices} if indices else {}),
        "ready": sum(map(is_ready, active)),
        "terminating": sum(map(is_ending, pods)),
        "uncountedTerminatedPods": {},
    }


def _conditions(job: Body, end: tuple[str, str, str] | None, now: str, known: Body) -> list[Body]:
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
