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
    which one moves, unless somebody more important has come to the node that it leaves: that one has taken it.  Nothing
    but the scheduler deletes pods that have not finished.
    """

    world: World
    outcome: Outcome = field(default_factory=Outcome)
    _going: set[str] = field(default_factory=set)
    _held: dict[str, tuple[Held, float]] = field(default_factory=dict)
    _left: dict[str, float] = field(default_factory=dict)
    _moved: dict[str, list[tuple[float, str, int]]] = field(default_factory=dict)
    _came: list[tuple[float, str, int]] = field(default_factory=list)
    _suspected: list[tuple[float, str, int]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.world.follow(self._hear)

    def _hear(self, change: Change) -> None:
        if change.kind != "Pod":
            return
        pod, uid = change.body, str(meta(change.body)["uid"])
        goes = change.how is Deleted or "deletionTimestamp" in meta(pod)
        held = None if goes or part(pod, "spec", "nodeName") else read(meta(pod).get("annotations") or {})
        self._note(uid, int(part(pod, "spec", "priority") or 0), held)
        if goes and uid not in self._going:
            self._going.add(uid)
            self._leaves(pod)

    def _leaves(self, pod: Body) -> None:
        node = part(pod, "spec", "nodeName")
        if node and part(pod, "status", "phase") not in _FINISHED:
            self.outcome.evictions += 1
            settled = any(held.node == node and self._settled(at) for held, at in self._held.values())
            self.outcome.repeated += settled
            self._suspected += [one for one in self._moved.pop(node, ()) if not self._settled(one[0])]
            self._left[node] = self.world.timeline.now

    def read(self) -> Outcome:
        """What it came to."""
        self.outcome.repeated += sum(not self._is_taken(one) for one in self._suspected)
        self._suspected.clear()
        return self.outcome

    def _is_taken(self, move: tuple[float, str, int]) -> bool:
        """Whether somebody more important came, at about the time of the ``move``, to the node that was left."""
        when, node, priority = move
        return any(
            other == node and rank > priority and abs(came - when) <= SETTLED for came, other, rank in self._came
        )

    def _note(self, uid: str, priority: int, held: Held | None) -> None:
        before = self._held.pop(uid, None)
        if held is None:
            return
        if before is None or before[0].node != held.node:
            now = self.world.timeline.now
            self._came.append((now, held.node, priority))
            if before is not None and self._settled(before[1]):
                move = now, before[0].node, priority
                if self._just_left(held.node):
                    self._suspected.append(move)
                else:
                    self._moved.setdefault(held.node, []).append(move)
            before = held, now
        self._held[uid] = held, before[1]

    def _just_left(self, node: str) -> bool:
        """Whether somebody was evicted on ``node`` in this session or the one before."""
        return node in self._left and not self._settled(self._left[node])

    def _settled(self, since: float) -> bool:
        return self.world.timeline.now - since > SETTLED
