"""The statuses that kubelets write: of nodes, and of pods that start, run, end, and start again."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any, Final

from stromboli.cluster.body import Body, meta, part, stamp
from stromboli.cluster.lives import Run

_PRESSURES: Final = (
    ("MemoryPressure", "KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
    ("DiskPressure", "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
    ("PIDPressure", "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
)
_READY: Final = ("True", "KubeletReady", "kubelet is posting ready status")
_NOT_READY: Final = ("False", "KubeletNotReady", "the node is simulated as not ready")
KILLED: Final = 143
"""Exit code of a container that ends when it is told to (128 + SIGTERM)."""


def node_conditions(now: float, ready: bool, known: Sequence[Body] = ()) -> list[Body]:
    """A node's conditions; those of the ``known`` that have not changed keep the time of their last change."""
    rows = [(kind, "False", reason, message) for kind, reason, message in _PRESSURES]
    rows.append(("Ready", *(_READY if ready else _NOT_READY)))
    before, beat = {one["type"]: one for one in known}, stamp(now)
    found = []
    for kind, status, reason, message in rows:
        last = before.get(kind, {})
        since = last.get("lastTransitionTime") if last.get("status") == status else None
        times = {"lastHeartbeatTime": beat, "lastTransitionTime": since or beat}
        found.append({"type": kind, "status": status, "reason": reason, "message": message, **times})
    return found


def running(pod: Body, now: float, host: str, address: str, restarts: int = 0, last: Sequence[Body] = ()) -> Body:
    """The status of a pod whose containers run; ``last`` are their former ends, if they had any."""
    at = stamp(now)
    statuses = [
        {
            **_container(pod, one, restarts),
            "ready": True,
            "started": True,
            "state": {"running": {"startedAt": at}},
            "lastState": {"terminated": last[index]} if last else {},
        }
        for index, one in enumerate(_containers(pod))
    ]
    return {
        "phase": "Running",
        "conditions": conditions(pod, at, ready=True),
        "containerStatuses": statuses,
        "hostIP": host,
        "hostIPs": [{"ip": host}],
        "podIP": address,
        "podIPs": [{"ip": address}],
        "startTime": part(pod, "status", "startTime") or at,
    }


def ended(pod: Body, now: float, runs: Sequence[Run], *, killed: bool = False) -> Body:
    """The status of a pod whose containers are done, for good."""
    stops = terminations(pod, now, runs, killed=killed)
    statuses = [
        {**_container(pod, one, _restarts(pod)), "ready": False, "started": False, "state": {"terminated": stop}}
        | {"lastState": {}}
        for one, stop in zip(_containers(pod), stops, strict=True)
    ]
    failed = any(stop["exitCode"] for stop in stops)
    return {
        "phase": "Failed" if failed else "Succeeded",
        "conditions": conditions(pod, stamp(now), ready=False),
        "containerStatuses": statuses,
    }


def backing_off(pod: Body, stops: Sequence[Body], now: float) -> Body:
    """The status of a pod that waits to be started once more."""
    statuses = [
        {
            **_container(pod, one, _restarts(pod)),
            "ready": False,
            "started": False,
            "state": {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off restarting failed container"}},
            "lastState": {"terminated": stop},
        }
        for one, stop in zip(_containers(pod), stops, strict=True)
    ]
    return {"conditions": conditions(pod, stamp(now), ready=False), "containerStatuses": statuses}


def terminations(pod: Body, now: float, runs: Sequence[Run], *, killed: bool = False) -> list[Body]:
    """How each container ended."""
    found = []
    known = part(pod, "status", "containerStatuses") or []
    for index, (one, run) in enumerate(zip(_containers(pod), runs, strict=True)):
        code = KILLED if killed and (run.seconds is None or run.seconds > 0) else run.exit_code
        began = part(known[index], "state", "running", "startedAt") if index < len(known) else None
        found.append(
            {
                "exitCode": code,
                "reason": "Error" if code else "Completed",
                "startedAt": began or stamp(now),
                "finishedAt": stamp(now),
                "containerID": identity(pod, one["name"]),
            }
        )
    return found


def _containers(pod: Body) -> list[Body]:
    return part(pod, "spec", "containers") or []


def _restarts(pod: Body) -> int:
    return max((one.get("restartCount", 0) for one in part(pod, "status", "containerStatuses") or ()), default=0)


def _container(pod: Body, container: Body, restarts: int) -> Body:
    image: Any = container.get("image", "")
    called = identity(pod, container["name"])
    return {
        "name": container["name"],
        "image": image,
        "imageID": image,
        "containerID": called,
        "restartCount": restarts,
    }


def identity(pod: Body, name: str) -> str:
    """The identity of a container."""
    return "simulated://" + hashlib.sha256(f"{meta(pod).get('uid')}/{name}".encode()).hexdigest()


def conditions(pod: Body, at: str, *, ready: bool) -> list[Body]:
    """Conditions with the times at which they changed; those that others wrote stay."""
    known = {one["type"]: one for one in part(pod, "status", "conditions") or ()}
    done: Body = {} if ready else {"reason": "PodCompleted"}
    wanted: dict[str, Body] = {
        "PodReadyToStartContainers": {"status": "True" if ready else "False"},
        "Initialized": {"status": "True", **done},
        "Ready": {"status": "True" if ready else "False", **done},
        "ContainersReady": {"status": "True" if ready else "False", **done},
    }
    result = [one for kind, one in known.items() if kind not in wanted]
    for kind, condition in wanted.items():
        before = known.get(kind, {})
        since = before.get("lastTransitionTime") if before.get("status") == condition["status"] else None
        result.append({"type": kind, "lastProbeTime": None, "lastTransitionTime": since or at, **condition})
    return result
