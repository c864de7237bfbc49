"""What became of one job: the times at which something about it changed, told from its PodGroup and its pods."""

from __future__ import annotations

from typing import Final, NamedTuple

from stromboli.cluster.state import ClusterState
from stromboli.model.names import CONDITION_TRUE
from stromboli.model.values.times import stamp

ABSENT: Final = "not there"
"""The phase of a job that does not exist."""


class Span(NamedTuple):
    """From ``since`` on (seconds since 1970) the job was in ``phase``, ``placed`` of its ``pods`` on nodes."""

    since: float
    phase: str
    placed: int
    pods: int
    why: str

    def __str__(self) -> str:
        placed = f"{self.placed} of {self.pods} pods on nodes"
        return f"{stamp(self.since)}  {self.phase or '-'}, {placed}  {self.why}".rstrip()


def span(state: ClusterState, uid: str, now: float) -> Span:
    """How job ``uid`` stands."""
    job = state.jobs.get(uid)
    if job is None:
        return Span(now, ABSENT, 0, 0, "")
    said = [one for one in job.conditions if one.status == CONDITION_TRUE]
    why = f"{said[-1].reason}: {said[-1].message}" if said and said[-1].message else ""
    placed = sum(bool(task.own_node) for task in job.tasks.values())
    return Span(now, job.phase, placed, len(job.tasks), why)


def missing_job(uid: str) -> str:
    """What is said of a job that a part of a record does not hold."""
    return f"there is no job {uid} in that part of the record; a job is written namespace/podgroup"


class Story:
    """The spans of job ``uid``, noted cycle by cycle."""

    def __init__(self, uid: str) -> None:
        self.uid = uid
        self.spans: list[Span] = []

    @property
    def was_there(self) -> bool:
        """Whether the job existed in any of the cycles."""
        return any(span.phase != ABSENT for span in self.spans)

    def look(self, state: ClusterState, now: float) -> bool:
        """Note how the job stands; whether that is another way than before."""
        found = span(state, self.uid, now)
        if self.spans and self.spans[-1][1:] == found[1:]:
            return False
        self.spans.append(found)
        return True
