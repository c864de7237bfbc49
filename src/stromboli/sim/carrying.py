"""Carrying plans out on a world: every decision one write, as live, that lands at once or is refused."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from stromboli.api.scheduling import PodGroupStatus
from stromboli.cluster.body import Body, part, stamp
from stromboli.cluster.events import Modified
from stromboli.cluster.mirror import Mirror
from stromboli.cluster.rim import ClaimsGiven, StatusSet
from stromboli.errors import ApiError
from stromboli.framework.books.plan import (
    Bind,
    Eviction,
    GateRemoval,
    Plan,
    PodConditionUpdate,
    PodGroupUpdate,
    QueueUpdate,
)
from stromboli.model import names
from stromboli.model.reservation import patch
from stromboli.sim.world import Hear, SimChange, SimWorld

Refuse = Callable[[str, str], object]
"""Called with the verb and the key of every write; what it raises, an ApiError, is the server's answer."""


class Carrier:
    """Writes what plans say into ``world``.  Answers are ``heard``; ``written`` and ``refused`` count, by verb.

    A write that is refused is not tried again: the next cycle decides again.
    """

    def __init__(self, world: SimWorld, mirror: Mirror, heard: Hear, refuse: Refuse = lambda _verb, _key: None) -> None:
        self._world, self._mirror, self._heard = world, mirror, heard
        self.refuse = refuse
        self.written: Counter[str] = Counter()
        self.refused: Counter[str] = Counter()

    def carry_out(self, plan: Plan) -> None:
        """Write everything, evictions first, whose room others may wait for."""
        for eviction in plan.evictions:
            self._evict(eviction)
        for bind in plan.binds:
            self._bind(bind)
        for group in plan.pod_groups:
            self._group(group)
        for queue in plan.queues:
            self._queue(queue)
        for wish in plan.annotations:
            self._patch("annotate", "Pod", wish.key, {"metadata": {"annotations": patch(wish.held)}}, wish.uid)
        for condition in plan.pod_conditions:
            self._condition(condition)
        for gate in plan.gates:
            self._gate(gate)

    # ------------------------------------------------------------------ decisions

    def _bind(self, bind: Bind) -> None:
        if self._mirror.assume_bound(bind):
            self._mirror.rim.do(ClaimsGiven(bind.uid, bind.key, bind.claims))
            done = self._write("bind", bind.key, lambda: self._world.bind(bind.key, bind.uid, bind.node))
            self._settle(bind.key, bind.uid, done)

    def _evict(self, eviction: Eviction) -> None:
        if self._mirror.assume_evicted(eviction):
            self._say_why(eviction)
            done = self._write("evict", eviction.key, lambda: self._world.delete(eviction.key, eviction.uid))
            self._settle(eviction.key, eviction.uid, done)

    def _settle(self, key: str, uid: str, done: bool) -> None:
        if done:
            self._mirror.carried_out(key, uid, self._world.timeline.now)
        else:
            self._mirror.forget(key, uid)

    def _say_why(self, eviction: Eviction) -> None:
        condition = {"type": names.DISRUPTION_TARGET, "status": "True", "reason": names.PREEMPTION_BY_SCHEDULER}
        self._conditions("explain", eviction.key, eviction.uid, condition)

    # ------------------------------------------------------------------ statuses

    def _group(self, update: PodGroupUpdate) -> None:
        """The state has the new status at once, so that the next cycle need not wait for the news of it."""
        if update.key not in self._mirror.state.jobs:
            return
        status = PodGroupStatus(update.phase, update.conditions, update.running, update.succeeded, update.failed)
        self._mirror.rim.do(StatusSet(update.key, status))
        change: Body = {"status": msgspec.to_builtins(status)}
        if update.annotations is not None:
            change["metadata"] = {"annotations": update.annotations}
        self._patch("status", "PodGroup", update.key, change)

    def _queue(self, update: QueueUpdate) -> None:
        """Amounts that are gone have to be said too, as a patch leaves alone what it does not name."""
        known = part(self._world.get("Queue", update.name) or {}, "status", "allocated") or {}
        change = {"status": {"allocated": {**dict.fromkeys(known), **update.allocated}, "fault": update.fault or None}}
        self._patch("status", "Queue", update.name, change)

    def _condition(self, update: PodConditionUpdate) -> None:
        condition = {
            "type": names.POD_SCHEDULED,
            "status": names.CONDITION_FALSE,
            "reason": update.reason,
            "message": update.message,
        }
        more = {"nominatedNodeName": update.nominated_node} if update.nominated_node else {}
        self._conditions("status", update.key, update.uid, condition, **more)

    def _conditions(self, verb: str, key: str, uid: str, condition: Body, **more: str) -> None:
        """Put ``condition`` in the place of the pod's one of that type."""
        stands = part(self._world.get("Pod", key) or {}, "status", "conditions") or ()
        told = {**condition, "lastTransitionTime": stamp(self._world.timeline.now)}
        others = [each for each in stands if each["type"] != condition["type"]]
        self._patch(verb, "Pod", key, {"status": {"conditions": [*others, told], **more}}, uid)

    def _gate(self, removal: GateRemoval) -> None:
        stands = part(self._world.get("Pod", removal.key) or {}, "spec", "schedulingGates") or ()
        left = [gate for gate in stands if gate["name"] != names.QUEUE_ALLOCATION_GATE]
        noted = {names.QUEUE_ALLOCATION_GATE_REMOVED: stamp(self._world.timeline.now)}
        change = {"metadata": {"annotations": noted}, "spec": {"schedulingGates": left}}
        self._patch("gate", "Pod", removal.key, change, removal.uid)

    # ------------------------------------------------------------------ writing

    def _patch(self, verb: str, kind: str, key: str, change: Mapping[str, Any], uid: str = "") -> None:
        if self._write(verb, key, lambda: self._world.patch(kind, key, change, uid)):
            answer = self._world.get(kind, key)
            if answer is not None:
                self._heard(SimChange(Modified, kind, answer))

    def _write(self, verb: str, key: str, write: Callable[[], object]) -> bool:
        try:
            self.refuse(verb, key)
            write()
        except ApiError:
            self.refused[verb] += 1
            return False
        self.written[verb] += 1
        return True
