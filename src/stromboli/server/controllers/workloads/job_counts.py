"""What a batch Job counts of its pods, each once, even when a pod is deleted right after its end.

A pod of a Job has a finalizer until it is counted: first the Job's status notes the pod's uid, then the finalizer goes,
then the number grows.  An interruption between two of these steps counts no pod twice and forgets none.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import Final

from stromboli.cluster.body import Body, meta, part
from stromboli.server.controllers.workloads.back_off import Failures
from stromboli.server.controllers.workloads.objects import PODS, Objects, is_ending, phase

JOBS: Final = ("batch", "jobs")
_PREFIX: Final = "batch.kubernetes.io"
TRACKING: Final = f"{_PREFIX}/job-tracking"
"""The finalizer of a Job's pods that are not counted yet."""
INDEX: Final = f"{_PREFIX}/job-completion-index"
SUCCEEDED: Final = "succeeded"
FAILED: Final = "failed"
_RANGE: Final = re.compile("[0-9]{1,9}(-[0-9]{1,9})?")


def is_indexed(job: Body) -> bool:
    """Whether each completion has an index of its own."""
    return bool(part(job, "spec", "completionMode") == "Indexed")


def index_of(pod: Body) -> int:
    """The pod's completion index, -1 for none."""
    text = str((meta(pod).get("annotations") or {}).get(INDEX, ""))
    return int(text) if text.isdecimal() and len(text) < 10 else -1


def is_tracked(pod: Body) -> bool:
    """Whether the pod waits for being counted."""
    return TRACKING in (meta(pod).get("finalizers") or ())


def release(objects: Objects, pod: Body) -> None:
    """Take the finalizer off a pod.  Raises ApiFailure."""
    if is_tracked(pod):
        left = [name for name in meta(pod)["finalizers"] if name != TRACKING]
        objects.change(PODS, pod, {"metadata": {"finalizers": left or None}})


def count(objects: Objects, job: Body) -> Body:
    """Count the pods of a Job that have ended since the last look; the Job as it then is.  Raises ApiFailure."""
    pods = objects.owned(job)
    waiting = _noted(job)
    fresh = _ended(pods)
    _note_failures(objects, job, [one for one in fresh if meta(one[1])["uid"] not in waiting[one[0]]])
    for outcome, pod in fresh:
        waiting[outcome][meta(pod)["uid"]] = None
    if not any(waiting.values()):
        return job
    noted = {outcome: list(uids) for outcome, uids in waiting.items() if uids}
    done = {index_of(pod) for outcome, pod in fresh if outcome == SUCCEEDED}
    job = _with_status(objects, job, {**_indices(job, done), "uncountedTerminatedPods": noted})
    uids = waiting[SUCCEEDED] | waiting[FAILED]
    for pod in pods:
        if meta(pod)["uid"] in uids:
            release(objects, pod)
    return _with_status(objects, job, {**_grown(job, waiting), "uncountedTerminatedPods": {}})


def _ended(pods: Iterable[Body]) -> list[tuple[str, Body]]:
    """The pods that have ended and are not counted, each with how it has."""
    outcomes = ((_outcome(pod), pod) for pod in pods if is_tracked(pod))
    return [(outcome, pod) for outcome, pod in outcomes if outcome]


def _note_failures(objects: Objects, job: Body, ended: list[tuple[str, Body]]) -> None:
    """Remember how often pods have failed in a row; of Jobs that are gone nothing."""
    if not ended:
        return
    uid = meta(job)["uid"]
    before = objects.failures.pop(uid, Failures())
    after = before.with_ended(((outcome == FAILED, pod) for outcome, pod in ended), objects.clock())
    if after.number:
        for known in [known for known in objects.failures if known not in objects.store.places]:
            del objects.failures[known]
        objects.failures[uid] = after


def _indices(job: Body, new: set[int]) -> Body:
    """The part of the status that names the completed indices, of Jobs that have any."""
    done = completed(job) | {index for index in new if index >= 0}
    return {"completedIndexes": ranges(done)} if is_indexed(job) and done else {}


def _noted(job: Body) -> dict[str, dict[str, None]]:
    """The uids that the status has noted and not counted, by outcome."""
    noted = part(job, "status", "uncountedTerminatedPods") or {}
    return {outcome: dict.fromkeys(noted.get(outcome) or ()) for outcome in (SUCCEEDED, FAILED)}


def _outcome(pod: Body) -> str:
    """How the pod has ended, empty while it has not; a deleted pod that has not succeeded has failed."""
    if phase(pod) == "Succeeded":
        return SUCCEEDED
    return FAILED if phase(pod) == "Failed" or is_ending(pod) else ""


def _grown(job: Body, waiting: dict[str, dict[str, None]]) -> Body:
    """The numbers of the status after what waits is counted."""
    status = part(job, "status") or {}
    counts = {outcome: status.get(outcome, 0) + len(uids) for outcome, uids in waiting.items()}
    if is_indexed(job):
        counts[SUCCEEDED] = len(completed(job))
    return {outcome: number for outcome, number in counts.items() if number}


def _with_status(objects: Objects, job: Body, parts: Body) -> Body:
    objects.set_status(JOBS, job, {**(job.get("status") or {}), **parts})
    return objects.get(JOBS, meta(job)["namespace"], meta(job)["name"]) or job


# -- Indices as a status writes them ---------------------------------------------------------------------------------


def completed(job: Body) -> set[int]:
    """The indices that have succeeded."""
    most = part(job, "spec", "completions") or 0
    return set(_numbers(str(part(job, "status", "completedIndexes") or ""), most))


def _numbers(text: str, most: int) -> Iterator[int]:
    """The indices below ``most`` that a text names; pieces that are no range are passed over."""
    for piece in filter(_RANGE.fullmatch, text.split(",")):
        first, _, last = piece.partition("-")
        yield from range(int(first), min(int(last or first) + 1, most))


def ranges(indices: Iterable[int]) -> str:
    """Indices as a status names them: ``0,2-4``; two in a row are named one by one."""
    found = list[str]()
    for _, run in groupby(enumerate(sorted(indices)), lambda pair: pair[1] - pair[0]):
        numbers = [number for _, number in run]
        found += [f"{numbers[0]}-{numbers[-1]}"] if len(numbers) > 2 else map(str, numbers)
    return ",".join(found)
