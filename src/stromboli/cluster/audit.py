"""Whether the state of a live cluster is what the cluster says."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from stromboli.cluster.mirror import Mirror, Version
from stromboli.cluster.state import ClusterState

Named = tuple[str, str]
"""Namespace and name."""


class Difference(NamedTuple):
    """One object of which the state says something else than the cluster."""

    kind: str
    namespace: str
    name: str
    problem: str

    @property
    def key(self) -> str:
        """``namespace/name``, or the name of what belongs to the whole cluster."""
        return f"{self.namespace}/{self.name}" if self.namespace else self.name


def differences(kind: str, fresh: Mapping[Named, Version], upto: int, mirror: Mirror) -> Iterator[Difference | None]:
    """Where ``mirror`` differs from a list of all objects of ``kind``; None for each object that is as it should be.

    The list is as of version ``upto``, and the mirror has heard everything up to there; what it knows beyond that is
    no difference.  What is asked for later is answered as of the moment of the first answer.
    """
    known = mirror.known(kind)
    for name, version in fresh.items():
        have = known.get(name)
        if have is None:
            yield None if mirror.was_deleted((kind, *name), version) else Difference(kind, *name, "is missing")
        elif have.number < version.number:
            what = "is another object" if have.uid != version.uid else "is out of date"
            yield Difference(kind, *name, f"{what}: version {have.number}, not {version.number}")
        else:
            yield None
    for name, have in known.items():
        gone = name not in fresh and have.number <= upto
        yield Difference(kind, *name, "is no longer there") if gone else None


def inconsistencies(state: ClusterState) -> Iterator[Difference | None]:
    """Where sums that are kept differ from what they are sums of; None for each object that adds up.

    The state may change between two answers: each object is looked at as it stands then.
    """
    entries = state.nodes.entries()
    for name in list(entries):
        entry = entries.get(name)
        fine = entry is None or entry.balanced()
        yield None if fine else Difference("Node", "", name, "has sums that its pods do not add up to")
    for key in list(state.tasks):
        yield _astray(key, state)


def _astray(key: str, state: ClusterState) -> Difference | None:
    """The difference that a pod is missing in its job, if so."""
    task = state.tasks.get(key)
    if task is None or not task.job:
        return None
    job = state.jobs.get(task.job)
    if job is not None and job.tasks.get(task.uid) is not None:
        return None
    return Difference("Pod", task.namespace, task.name, f"is missing in job {task.job}")
