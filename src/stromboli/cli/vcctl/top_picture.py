"""What ``stromboli top`` shows, worked out of a cluster's state."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from stromboli.cli.vcctl.top_devices import DeviceLine, device_lines
from stromboli.cluster.state import ClusterState
from stromboli.model.job import Job
from stromboli.model.names import CONDITION_TRUE, POD_GROUP_NOT_ADMITTED, POD_GROUP_UNSCHEDULABLE
from stromboli.model.resources.axes import CPU, MEMORY
from stromboli.model.status import TaskStatus

WAITING: Final = (TaskStatus.Pending,)
PLACED: Final = (TaskStatus.Bound, TaskStatus.Binding, TaskStatus.Running)
OVER: Final = (TaskStatus.Succeeded, TaskStatus.Failed)
"""Of a job that is over such pods are all that is left, and none of its PodGroup."""
SPAN: Final = 10.0
"""Seconds that count as lately."""
NOT_SAID: Final = "the scheduler has not said why yet"


class QueueLine(NamedTuple):
    """One queue: its jobs by phase, its pods, and why the first of its jobs that wait does so."""

    name: str
    state: str
    weight: int
    phases: Mapping[str, int]
    placed: int
    waiting: int
    head: str = ""
    why: str = ""


class JobLine(NamedTuple):
    """One job: how many pods it has placed, needs, and has in all."""

    name: str
    queue: str
    phase: str
    priority: int
    placed: int
    least: int
    pods: int


class NodeLine(NamedTuple):
    """One node: parts of CPU and memory that are in use, and its pods."""

    name: str
    cpu: float
    memory: float
    pods: int


class Lately(NamedTuple):
    """What has happened in the last :data:`SPAN` seconds."""

    bound: int = 0
    ended: int = 0
    evicted: int = 0
    arrived: int = 0


class Picture(NamedTuple):
    """Everything that is shown."""

    queues: list[QueueLine]
    jobs: list[JobLine]
    nodes: list[NodeLine]
    lately: Lately
    devices: list[DeviceLine]


class Changes:
    """Counts what happens to pods from one look to the next."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[str, bool]] | None = None
        self._counts: list[tuple[float, Lately]] = []

    def look(self, state: ClusterState, now: float) -> Lately:
        """What has happened lately, up to ``now`` (seconds)."""
        seen = {task.uid: (task.node_name, task.status is TaskStatus.Releasing) for task in state.tasks.values()}
        if self._known is not None:
            self._counts.append((now, _between(self._known, seen)))
        self._known = seen
        self._counts = [entry for entry in self._counts if now - entry[0] <= SPAN]
        sums = [sum(parts) for parts in zip(*(counts for _, counts in self._counts), strict=True)]
        return Lately(*sums) if sums else Lately()


def _between(old: Mapping[str, tuple[str, bool]], new: Mapping[str, tuple[str, bool]]) -> Lately:
    nowhere = ("", False)
    return Lately(
        bound=sum(bool(node) and not old.get(uid, nowhere)[0] for uid, (node, _) in new.items()),
        ended=sum(uid not in new for uid in old),
        evicted=sum(leaving and not old.get(uid, nowhere)[1] for uid, (_, leaving) in new.items()),
        arrived=sum(uid not in old for uid in new),
    )


def picture_of(state: ClusterState, lately: Lately) -> Picture:
    """The picture of a state."""
    jobs = [job for job in state.jobs.values() if job.queue or job.number(*OVER) < len(job.tasks)]
    by_queue: dict[str, list[Job]] = {}
    for job in jobs:
        by_queue.setdefault(job.queue, []).append(job)
    queues = [_queue_line(state, name, by_queue.get(name, [])) for name in sorted({*state.queues, *by_queue})]
    lines = sorted((_job_line(job) for job in jobs), key=lambda line: (line.placed >= line.pods, -line.priority))
    return Picture(queues, lines, list(_node_lines(state)), lately, device_lines(state))


def _queue_line(state: ClusterState, name: str, jobs: list[Job]) -> QueueLine:
    queue = state.queues.get(name)
    head = min(
        (job for job in jobs if _waits(job)), key=lambda job: (-job.priority, job.created, job.uid), default=None
    )
    return QueueLine(
        name,
        (queue.status.state if queue else "") or "missing",
        queue.spec.weight if queue else 0,
        Counter(job.group.status.phase or "Pending" for job in jobs),
        sum(job.number(*PLACED) for job in jobs),
        sum(job.number(*WAITING) for job in jobs),
        head.uid if head else "",
        why_waiting(head, state.queues) if head else "",
    )


def _waits(job: Job) -> bool:
    return job.number(*PLACED) < max(job.min_available, 1) and job.number(*OVER) == 0


def why_waiting(job: Job, queues: Container[str]) -> str:
    """Why a job waits: what it lacks that is not there, or what the scheduler has last said of it."""
    if not job.queue:
        return "there is no PodGroup of that name"
    if job.queue not in queues:
        return f"there is no queue {job.queue}"
    said = {one.type: one.message for one in job.group.status.conditions if one.status == CONDITION_TRUE}
    return said.get(POD_GROUP_NOT_ADMITTED) or said.get(POD_GROUP_UNSCHEDULABLE) or NOT_SAID


def _job_line(job: Job) -> JobLine:
    phase = job.group.status.phase or "Pending"
    return JobLine(job.uid, job.queue, phase, job.priority, job.number(*PLACED), job.min_available, len(job.tasks))


def _node_lines(state: ClusterState) -> Iterable[NodeLine]:
    for name, entry in sorted(state.nodes.entries().items()):
        if entry.spec is None:
            continue
        used, offered = entry.used, entry.offer
        yield NodeLine(name, _part(used, offered, CPU), _part(used, offered, MEMORY), len(entry.tasks))


def _part(used: Sequence[int], offered: Sequence[int], place: int) -> float:
    """Used of offered in one dimension."""
    have = offered[place] if place < len(offered) else 0
    return used[place] / have if have and place < len(used) else 0.0
