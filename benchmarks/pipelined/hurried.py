"""A workload as a real server gets it: everything :data:`SPEED` times as fast, and what its watches tell counted."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field, replace
from typing import Final, NamedTuple

from benchmarks.pipelined.measuring import Outcome
from benchmarks.pipelined.quick import SPEED
from benchmarks.pipelined.workloads import CONFIGURATION
from stromboli.cluster.body import Body, changed, meta, part, with_meta
from stromboli.cluster.events import Deleted
from stromboli.cluster.lives import OVERSTAY, RUN_FOR, START_AFTER, STOP_AFTER
from stromboli.model.reservation import Held, read
from stromboli.model.values import duration
from stromboli.sim.world import SimChange, SimWorld, key_of

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
    """A pod of a workload with its times shortened; a pod that replaces it takes over its times."""
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


class _Moment(NamedTuple):
    """When a pod came to a node, or had to leave it, and how important it is."""

    when: float
    node: str
    priority: int
    pod: str


@dataclass
class Seen:
    """Counts the evictions that a world tells of, those for pods that state room which they had already, and room lost.

    On nodes that one pod fills the second are evictions next to a reservation that has settled, and those on a node to
    which one moves, unless a more important pod has come to the node that it leaves: that one has taken it.  Room is
    lost where a settled reservation ends without a bind, no pod that comes to that node then is more important,
    and the scheduler's log doesn't say that it was given up.  Nothing but the scheduler deletes pods that have not
    finished.
    """

    world: SimWorld
    outcome: Outcome = field(default_factory=Outcome)
    _going: set[str] = field(default_factory=set)
    _room: dict[str, str] = field(default_factory=dict)
    _held: dict[str, tuple[Held, float]] = field(default_factory=dict)
    _left: dict[str, float] = field(default_factory=dict)
    _moved: dict[str, list[_Moment]] = field(default_factory=dict)
    _came: list[_Moment] = field(default_factory=list)
    _suspected: list[_Moment] = field(default_factory=list)
    _lost: list[_Moment] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.world.follow(self._hear)

    def _hear(self, change: SimChange) -> None:
        if change.kind != "Pod":
            return
        pod, uid = change.body, str(meta(change.body)["uid"])
        goes = change.how is Deleted or "deletionTimestamp" in meta(pod)
        bound = str(part(pod, "spec", "nodeName") or "")
        held = None if goes or bound else read(meta(pod).get("annotations") or {})
        self._comes(pod, bound or (held.node if held else ""))
        self._note(pod, held, ends=goes or bool(bound))
        if goes and uid not in self._going:
            self._going.add(uid)
            self._leaves(pod)

    def _leaves(self, pod: Body) -> None:
        node = part(pod, "spec", "nodeName")
        if node and part(pod, "status", "phase") not in _FINISHED:
            self.outcome.evictions += 1
            settled = any(held.node == node and self._settled(at) for held, at in self._held.values())
            self.outcome.repeated += settled
            self._suspected += [one for one in self._moved.pop(node, ()) if not self._settled(one.when)]
            self._left[node] = self.world.timeline.now

    def read(self, given_up: Collection[tuple[str, str]] = ()) -> Outcome:
        """What it came to, where reservations of these pods, by key and node, were given up by rule."""
        taken = sum(
            bool(higher) and not any(higher) and (loss.pod, loss.node) not in given_up
            for loss, higher in zip(self._lost, map(self._higher, self._lost), strict=True)
        )
        paid_for = sum(not any(self._higher(move)) for move in self._suspected)
        return replace(self.outcome, repeated=self.outcome.repeated + paid_for, taken=taken)

    def _higher(self, loss: _Moment) -> list[bool]:
        """Of the other pods that came to that node at about that time, whether each is more important."""
        return [
            one.priority > loss.priority
            for one in self._came
            if one.node == loss.node and one.pod != loss.pod and abs(one.when - loss.when) <= SETTLED
        ]

    def _comes(self, pod: Body, node: str) -> None:
        uid = str(meta(pod)["uid"])
        if node and self._room.get(uid) != node:
            self._came.append(self._moment(pod, node))
        self._room[uid] = node

    def _moment(self, pod: Body, node: str) -> _Moment:
        return _Moment(self.world.timeline.now, node, int(part(pod, "spec", "priority") or 0), key_of(pod))

    def _note(self, pod: Body, held: Held | None, ends: bool) -> None:
        uid, now = str(meta(pod)["uid"]), self.world.timeline.now
        before, since = self._held.pop(uid, (None, now))
        if held is not None:
            self._held[uid] = held, since if before and before.node == held.node else now
        if before is None or (held and held.node == before.node) or not self._settled(since):
            return
        loss = self._moment(pod, before.node)
        if held is not None:
            self._moves(loss, held.node)
        elif not ends:
            self._lost.append(loss)

    def _moves(self, loss: _Moment, node: str) -> None:
        if self._just_left(node):
            self._suspected.append(loss)
        else:
            self._moved.setdefault(node, []).append(loss)

    def _just_left(self, node: str) -> bool:
        """Whether a pod was evicted on ``node`` in this session or the one before."""
        return node in self._left and not self._settled(self._left[node])

    def _settled(self, since: float) -> bool:
        return self.world.timeline.now - since > SETTLED
