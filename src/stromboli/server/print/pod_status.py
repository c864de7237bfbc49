"""The word that kubectl shows as the status of a pod, and its counts of ready containers and restarts."""

from __future__ import annotations

from typing import NamedTuple

from stromboli.cluster.body import Body, meta, part
from stromboli.server.print.conditions import condition_of, readiness
from stromboli.server.print.durations import age

_NODE_LOST = "NodeLost"


class Summary(NamedTuple):
    """What a pod's row tells."""

    ready: str
    status: str
    restarts: str


def summary(pod: Body, now: float) -> Summary:
    """The pod's row, as of ``now`` in seconds since 1970."""
    statuses = part(pod, "status", "containerStatuses") or []
    ready = sum(map(_is_ready, statuses))
    total = len(part(pod, "spec", "containers") or [])
    return Summary(f"{ready}/{total}", _word(pod, statuses), _restarts(statuses, now))


def _word(pod: Body, statuses: list[Body]) -> str:
    if "deletionTimestamp" in meta(pod):
        return "Unknown" if part(pod, "status", "reason") == _NODE_LOST else "Terminating"
    word = part(pod, "status", "reason") or part(pod, "status", "phase") or ""
    if condition_of(pod, "PodScheduled").get("reason") == "SchedulingGated":
        word = "SchedulingGated"
    word = next(filter(None, map(_container_word, statuses)), word)
    if word == "Completed" and any(map(_is_ready, statuses)):
        return "Running" if readiness(pod) == "True" else "NotReady"
    return str(word)


def _is_ready(status: Body) -> bool:
    return bool(status.get("ready")) and part(status, "state", "running") is not None


def _container_word(status: Body) -> str | None:
    waiting, ended = part(status, "state", "waiting"), part(status, "state", "terminated")
    if waiting and waiting.get("reason"):
        return str(waiting["reason"])
    if ended is None:
        return None
    if ended.get("reason"):
        return str(ended["reason"])
    return f"Signal:{ended['signal']}" if ended.get("signal") else f"ExitCode:{ended.get('exitCode', 0)}"


def _restarts(statuses: list[Body], now: float) -> str:
    count = sum(one.get("restartCount", 0) for one in statuses)
    last = max((part(one, "lastState", "terminated", "finishedAt") or "" for one in statuses), default="")
    return f"{count} ({age(last, now)} ago)" if count and last else str(count)
