"""A workload as a real server gets it: everything :data:`SPEED` times as fast, and what its watches tell counted."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from benchmarks.pipelined.measuring import Outcome
from benchmarks.pipelined.quick import SPEED
from benchmarks.pipelined.workloads import CONFIGURATION
from stromboli.cluster.body import Body, changed, meta, part, with_meta
from stromboli.cluster.events import Deleted
from stromboli.cluster.lives import OVERSTAY, RUN_FOR, START_AFTER, STOP_AFTER
from stromboli.model import duration
from stromboli.model.reservation import Held, read
from stromboli.sim.world import Change, World

HURRIED_CONFIGURATION: Final = f"""\
{CONFIGURATION}configurations:
- name: allocate
  arguments: {{reservation-timeout: {600 // SPEED}s}}
"""
"""That of the workloads, with a reservation's ten minutes passing as fast as all else."""

SETTLED: Final = 20.0
"""Seconds of a workload, four cycles, after which a reservation surely stood when a session decided."""

_LIVES: Final = (RUN_FOR, START_AFTER, STOP_AFTER, OVERSTAY)
_FINISHED: Final = ("Succeeded", "Failed")


def hurried(pod: Body) -> Body:
    """A pod of a workload with its times shortened; whoever is made anew in its place has them from it."""
    notes = dict(meta(pod)["annotations"])
    for key in _LIVES:
        if key in notes:
            notes[key] = f"{duration.seconds(notes[key]) / SPEED:.2f}s"
    grace = max(1, round(pod["spec"]["terminationGracePeriodSeconds"] / SPEED))
    return changed(with_meta(pod, annotations=notes), spec={**pod["spec"], "terminationGracePeriodSeconds": grace})


def created(pod: Body) -> Body:
    """A pod as it is created on a server.

    It names no owner: the workload's owners are none of the server's objects, and it would clear the pod away.
    """
    containers = [{"image": "busybox", **one} for one in pod["spec"]["containers"]]
    spec = changed(
        pod["spec"], containers=containers, restartPolicy="Never", nodeName=pod["spec"].get("nodeName") or None
    )
    made = with_meta(pod, ownerReferences=None, uid=None, creationTimestamp=None)
    return changed(made, spec=spec, status=None)


@dataclass
class Seen:
    """Counts the evictions that a world tells of, and those for pods that state room which they had already.

    On nodes that one pod fills the latter are evictions beside a reservation that has settled, and those on a node to
    which one moves.  Nothing but the scheduler deletes pods that have not finished.
    """

    world: World
    outcome: Outcome = field(default_factory=Outcome)
    _going: set[str] = field(default_factory=set)
    _held: dict[str, tuple[Held, float]] = field(default_factory=dict)
    _left: dict[str, float] = field(default_factory=dict)
    _moved: dict[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.world.follow(self._hear)

    def _hear(self, change: Change) -> None:
        if change.kind != "Pod":
            return
        pod, uid = change.body, str(meta(change.body)["uid"])
        goes = change.how is Deleted or "deletionTimestamp" in meta(pod)
        self._note(uid, None if goes or part(pod, "spec", "nodeName") else read(meta(pod).get("annotations") or {}))
        if goes and uid not in self._going:
            self._going.add(uid)
            self._leaves(pod)

    def _leaves(self, pod: Body) -> None:
        node = part(pod, "spec", "nodeName")
        if node and part(pod, "status", "phase") not in _FINISHED:
            self.outcome.evictions += 1
            settled = any(held.node == node and self._settled(at) for held, at in self._held.values())
            self.outcome.repeated += settled or self._just(self._moved, node)
            self._left[node] = self.world.timeline.now

    def _note(self, uid: str, held: Held | None) -> None:
        before = self._held.pop(uid, None)
        if held is None:
            return
        if before is None or before[0].node != held.node:
            if before is not None and self._settled(before[1]):
                self.outcome.repeated += self._just(self._left, held.node)
                self._moved[held.node] = self.world.timeline.now
            before = held, self.world.timeline.now
        self._held[uid] = held, before[1]

    def _just(self, when: dict[str, float], node: str) -> bool:
        """Whether that has been on ``node`` in this session or the one before."""
        return node in when and not self._settled(when[node])

    def _settled(self, since: float) -> bool:
        return self.world.timeline.now - since > SETTLED
