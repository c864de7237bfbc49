"""What becomes of reservations that pods state and the scheduler has not written: they are told and removed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from stromboli.cluster.decoding.proofs import FORGED, REPLAYED, UNSIGNED, Proofs
from stromboli.errors import ManifestError
from stromboli.live.proofs.keys import ReservationKeys
from stromboli.live.scheduler.context import Context
from stromboli.live.writing.updater import Updater
from stromboli.model.names import EVENT_WARNING, PIPELINED_NODE

EVENT_REASON: Final = "ReservationIgnored"
EVENT_TEXT: Final = (
    "The annotations volcano.sh/pipelined-* and volcano.sh/eviction-occurred are the scheduler's own, and these {why}. "
    "They do not count and are removed; leave them out of the pod and of the template that it is made from"
)
WHY: Final[Mapping[str, str]] = {
    UNSIGNED: "bear no proof that it has written them",
    FORGED: "bear a proof that is not one of this pod, this node and a key of the scheduler's",
    REPLAYED: "state a reservation that has ended or been replaced",
}
"""What the event says for each of the reasons."""


class Proving:
    """Keeps the keys of ``proofs`` up to date, and sees to what they refuse; all of it is a leader's to do."""

    def __init__(self, context: Context, proofs: Proofs, keys: ReservationKeys, updater: Updater) -> None:
        self._context, self._proofs, self._keys, self._updater = context, proofs, keys, updater

    async def refresh(self) -> None:
        """Read the keys; when they have changed, judge again what they have refused."""
        if not self._context.mirror.state.reserving or not self._context.may_write():
            return
        await self._keys.refresh()
        if self._keys.keys == self._proofs.keys:
            return
        self._proofs.keys = self._keys.keys
        for key in list(self._proofs.unproven):
            try:
                self._context.mirror.judge_anew(key)
            except ManifestError as error:
                self._context.tell("object_refused", error=error)
        self._updater.say_unwritten()

    def remove_unproven(self) -> None:
        """Tell of statements that have been refused since the last time, and have them removed."""
        for key in list(self._proofs.untold):
            self._remove(key)
        self._proofs.untold.clear()

    def _remove(self, key: str) -> None:
        found, mirror = self._proofs.unproven[key], self._context.mirror
        task = mirror.state.tasks.get(key)
        if task is None or task.uid != found.uid or task.scheduler not in mirror.ours.schedulers:
            return
        node = found.annotations.get(PIPELINED_NODE, "")[:80]
        self._context.tell("reservation_unproven", task=key, node=node, why=WHY[found.reason])
        self._context.tell("metric.unproven_reservation", reason=found.reason)
        message = EVENT_TEXT.format(why=WHY[found.reason])
        self._context.pod_event(key, found.uid, EVENT_WARNING, EVENT_REASON, message)
        if key not in mirror.unwritten:  # else what is about to be written takes its place
            self._updater.update_pod_annotations(task, None)
