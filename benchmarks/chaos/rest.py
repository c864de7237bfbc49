"""What must hold once faults are over: what is not at rest yet, and what logs may not hold."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from e2e.clusters import Json
from stromboli.model.reservation import written

JOB_LABEL: Final = "volcano.sh/job-name"
_TELLING: Final = frozenset({"drift_found"})
"""Keys of log lines that tell of a fault of ours."""


@dataclass(frozen=True)
class Found:
    """What a namespace holds, and what is known to be deleted from it."""

    jobs: Collection[Json]
    pods: Collection[Json]
    wanted: Collection[Json]
    """What was created."""
    deleted: Collection[str] = field(default=frozenset())
    """Names of jobs and pods that a user, or the loss of a node, has deleted."""


def unrest(found: Found) -> list[str]:
    """What is not as it must be in the end; empty once everything is at rest."""
    jobs = {one["metadata"]["name"]: one for one in found.jobs}
    return [*_lost(found, jobs), *_held(found.pods), *_unplaced(found.pods), *_partly(found, jobs)]


def _lost(found: Found, jobs: Mapping[str, Json]) -> Iterator[str]:
    pods = {one["metadata"]["name"]: one for one in found.pods}
    for body in found.wanted:
        name, is_job = body["metadata"]["name"], body["kind"] == "Job"
        if name in found.deleted:
            continue
        there = (jobs if is_job else pods).get(name)
        if there is None:
            yield f"{body['kind']} {name} is gone"
        elif not is_job and there.get("status", {}).get("phase") != "Succeeded":
            yield f"pod {name} is {there.get('status', {}).get('phase')}"


def _held(pods: Iterable[Json]) -> Iterator[str]:
    for pod in pods:
        if said := written(pod["metadata"].get("annotations", {})):
            yield f"pod {pod['metadata']['name']} still says {said}"


def _unplaced(pods: Iterable[Json]) -> Iterator[str]:
    for pod in pods:
        if pod.get("status", {}).get("phase") not in ("Running", "Succeeded"):
            yield f"pod {pod['metadata']['name']} is {pod.get('status', {}).get('phase')}"


def _partly(found: Found, jobs: Mapping[str, Json]) -> Iterator[str]:
    for name, one in jobs.items():
        spec, status = one["spec"], one.get("status") or {}
        phase = (status.get("state") or {}).get("phase", "")
        needed, size = spec["minAvailable"], sum(task["replicas"] for task in spec["tasks"])
        runs = [pod for pod in found.pods if _of(pod) == name and pod.get("status", {}).get("phase") == "Running"]
        if phase != ("Running" if name == "stays" else "Completed"):
            yield f"job {name} is {phase or 'new'}"
        if runs and len(runs) < needed:
            yield f"job {name}: {len(runs)} of a gang of {needed} run"
        if name == "stays" and len(runs) != size:
            yield f"job {name}: {len(runs)} of {size} pods run"
        if phase == "Completed" and not found.deleted and status.get("succeeded", 0) != size:
            yield f"job {name}: {status.get('succeeded', 0)} of {size} pods have succeeded"


def orphans(dependents: Iterable[Json], jobs: Iterable[Json]) -> Iterator[Json]:
    """Pods and PodGroups of Jobs that are gone, which a cluster's garbage collector deletes.

    ``jobs`` are those that were there after ``dependents`` were read.
    """
    present = {one["metadata"]["uid"] for one in jobs}
    for dependent in dependents:
        owners = [one for one in dependent["metadata"].get("ownerReferences") or () if one["kind"] == "Job"]
        if owners and not any(one["uid"] in present for one in owners):
            yield dependent


def _of(pod: Json) -> str:
    name: str = pod["metadata"].get("labels", {}).get(JOB_LABEL, "")
    return name


def told(log: str) -> list[str]:
    """What is wrong in a process's log: tracebacks, and what says itself that state was not right."""
    lines = log.splitlines()
    return [line[-600:] for at, line in enumerate(lines) if _wrong(line)]


def _wrong(line: str) -> bool:
    return "Traceback" in line or (line.startswith("{") and line.endswith("}") and json.loads(line)["key"] in _TELLING)


def refused_conf(log: str) -> bool:
    """Whether a process has ended as it was started with a configuration that cannot be read."""
    return any(line.startswith("stromboli: ") and ".conf:" in line for line in log.splitlines()[-1:])


def gave_up_leading(log: str) -> bool:
    """Whether a process with this log has ended because it lost its Lease, which is what it must do then.

    The cycle that runs meanwhile may go on logging for a moment.
    """
    return any('"lease_lost"' in line for line in log.splitlines())
