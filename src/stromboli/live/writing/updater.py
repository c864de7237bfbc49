"""What cycles say of objects that stay where they are, on its way to the cluster.

Statuses, conditions, gates, and the reservations that pods hold.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from functools import partial
from typing import Any, Final

import msgspec

from stromboli.api.scheduling import PodGroupCondition, PodGroupStatus
from stromboli.cluster import kinds
from stromboli.cluster.decoding.upstream import placed_anew, scheduled_in, told_upstream, with_theirs
from stromboli.cluster.rim import StatusSet
from stromboli.errors import ApiError, ManifestError, StromboliError
from stromboli.framework.books.plan import Eviction, GateRemoval, PodConditionUpdate, PodGroupUpdate, QueueUpdate
from stromboli.kube.client import Patch
from stromboli.kube.resources import PODS
from stromboli.live.scheduler.context import HOPELESS, UNWELCOME, Context, is_other
from stromboli.live.writing.writes import Writes, is_absent
from stromboli.model import names
from stromboli.model.job import BINDING, BOUND, Job
from stromboli.model.podgroup import UPSTREAM, is_upstream
from stromboli.model.reservation import Held, patch
from stromboli.model.status import ALLOCATED_STATUS, TaskStatus
from stromboli.model.task import Task
from stromboli.model.values.times import stamp

WRITES_AT_ONCE: Final = 16
RESERVATIONS_AT_ONCE: Final = 16
"""Requests of each sort that are under way at once."""

MEANWHILE: Final = 5.0
"""Seconds within which a status is written that says how far the start of a job's pods has come."""
AGAIN_AFTER: Final = 60.0
"""Seconds after which a reservation that could not be written is tried again."""


class Updater:
    """The :class:`~stromboli.cluster.executor.StatusUpdater` of a live cluster.

    All patches name what is ours alone, so other writers of the same object are not disturbed.
    Reservations have places of their own in the row of requests: they never make statuses wait.
    """

    def __init__(self, context: Context) -> None:
        self._context = context
        self.writes = Writes(context, WRITES_AT_ONCE, self._as_it_stands, HOPELESS - UNWELCOME)
        self.reservations = Writes(context, RESERVATIONS_AT_ONCE, self._say_later)
        self._faults: dict[str, str] = {}

    # ------------------------------------------------------------------ PodGroups and queues

    def update_pod_group(self, update: PodGroupUpdate) -> None:
        """The state has the new status at once, so that the next cycle need not wait for the news of it.

        While pods of the job are being bound or start, one status follows the other.  One that leaves the phase as it
        is, and once they are bound the conditions, too, is put off for :data:`MEANWHILE`.
        """
        job = self._context.mirror.state.jobs.get(update.key)
        if job is None:
            return
        conditions, uid = update.conditions, job.group.uid
        starts = _follows_start(job, update)
        if is_upstream(update.key):
            conditions = with_theirs(update.conditions, job.group.status.conditions)
        shown = (update.phase, conditions, update.running, update.succeeded, update.failed)
        self._context.mirror.rim.do(StatusSet(update.key, PodGroupStatus(*shown)))
        if is_upstream(update.key):
            self._tell_upstream(update, uid, conditions)
            return
        annotations = tuple(sorted((update.annotations or {}).items()))
        send = partial(self._write, "PodGroup", update.key, _group_body(update, uid))
        self.writes.want(f"PodGroup {update.key}", (uid, shown, annotations), send, MEANWHILE if starts else 0.0)

    def _tell_upstream(self, update: PodGroupUpdate, uid: str, conditions: tuple[PodGroupCondition, ...]) -> None:
        """A PodGroup of Kubernetes' own is told whether it has been placed, and that it is no longer disrupted."""
        version = self._context.feed.resource("UpstreamPodGroup").api_version
        self._tell_of_parent(update.key)
        placed = told_upstream(update.phase, conditions, self._now(), scheduled_in(version))
        over = placed_anew(update.phase, conditions, self._now())
        for condition in (placed, over):
            if condition is not None:
                self._set_condition(update.key, uid, condition)

    def _set_condition(self, job: str, uid: str, condition: PodGroupCondition) -> None:
        """Set one condition of an upstream PodGroup; all other conditions stay as they are."""
        body = {"metadata": {"uid": uid}, "status": {"conditions": [_plainly(condition)]}}
        key = job.removesuffix(UPSTREAM)
        send = partial(self._write, "UpstreamPodGroup", key, body, Patch.strategic, "status")
        self.writes.want(f"UpstreamPodGroup:{condition.type} {key}", (uid, condition), send)

    def disrupted(self, eviction: Eviction) -> None:
        """A pod has been evicted: a PodGroup that is disrupted only as a whole says so once no pod of it stays."""
        job = self._context.mirror.state.jobs.get(eviction.job)
        if job is None or not is_upstream(job.uid) or not job.group.evicted_whole or not self._has_gone(job):
            return
        reason, text = names.PREEMPTION_BY_SCHEDULER, eviction.reason
        told = PodGroupCondition(names.DISRUPTION_TARGET, names.CONDITION_TRUE, "", self._now(), reason, text)
        self._set_condition(job.uid, job.group.uid, told)

    def _has_gone(self, job: Job) -> bool:
        """Whether no pod of a PodGroup keeps its node, and all evictions of it have been accepted."""
        going = job.index.get(TaskStatus.Releasing, {}).values()
        assumed = (self._context.mirror.assumed.get(task.key) for task in going)
        return not job.number(*ALLOCATED_STATUS) and all(one is None or one.until is not None for one in assumed)

    def _tell_of_parent(self, key: str) -> None:
        """A PodGroup that belongs to others is placed by itself, and is told so."""
        group = self._context.mirror.state.jobs[key].group
        if group.parent:
            about, text = self._context.group_of(key, group.uid), names.COMPOSITE_IGNORED.format(name=group.parent)
            self._context.recorder.record(about, names.EVENT_WARNING, names.EVENT_COMPOSITE_IGNORED, text)

    def update_queue(self, update: QueueUpdate) -> None:
        """Amounts that are gone have to be said too, as a patch leaves alone what it does not name."""
        queue = self._context.mirror.state.queues.get(update.name)
        if queue is None:
            return
        gone = dict.fromkeys(set(queue.status.allocated or ()) - set(update.allocated))
        allocated = {**update.allocated, **gone}
        status: dict[str, Any] = {"allocated": allocated}
        if update.fault != queue.status.fault:
            if self._faults.get(update.name, "") == update.fault and allocated == queue.status.allocated:
                return  # a definition of Queues that is not ours drops the field
            self._faults[update.name] = update.fault
            status["fault"] = update.fault or None
        send = partial(self._write, "Queue", update.name, {"status": status}, subresource="status")
        content = (update.fault, *sorted(allocated.items(), key=str))
        self.writes.want(f"Queue {update.name}", content, send)

    # ------------------------------------------------------------------ pods

    def update_pod_condition(self, update: PodConditionUpdate) -> None:
        """PodScheduled=False and, where one is given, the nominated node; of pods that have no node alone."""
        task = self._context.waiting(update.key, update.uid)
        if task is None:
            return
        lasting = task.condition is not None and task.condition.status == names.CONDITION_FALSE
        status: dict[str, Any] = {"conditions": [self._unscheduled(update, lasting)]}
        if update.nominated_node:
            status["nominatedNodeName"] = update.nominated_node
            before = task.nominated_node
            self._context.tell("nominated_node_updated", task=update.key, old_node=before, node=update.nominated_node)
        body = {"metadata": {"uid": update.uid}, "status": status}
        send = partial(self._write_of_waiting, update, body)
        content = (update.uid, update.reason, update.message, update.nominated_node)
        self._context.tell("condition_updated", task=update.key, type=names.POD_SCHEDULED, status=names.CONDITION_FALSE)
        self.writes.want(f"Pod {update.key}", content, send)

    async def _write_of_waiting(self, update: PodConditionUpdate, body: Mapping[str, Any]) -> None:
        """One attempt, unless the pod has got a node since: what kept it waiting is not said over its binding."""
        if self._context.waiting(update.key, update.uid) is not None:
            await self._write("Pod", update.key, body, Patch.strategic, "status")

    def _unscheduled(self, update: PodConditionUpdate, lasting: bool) -> dict[str, Any]:
        """PodScheduled=False; the time of a condition that was False before stays what it is."""
        condition: dict[str, Any] = {
            "type": names.POD_SCHEDULED,
            "status": names.CONDITION_FALSE,
            "reason": update.reason,
            "message": update.message,
        }
        if not lasting:
            condition["lastTransitionTime"] = self._now()
        return condition

    def _now(self) -> str:
        return stamp(self._context.clock())

    def remove_gate(self, removal: GateRemoval) -> None:
        """Take the queue-allocation gate off a pod, and note on it when that was."""
        gone = [{"$patch": "delete", "name": names.QUEUE_ALLOCATION_GATE}]
        noted = {names.QUEUE_ALLOCATION_GATE_REMOVED: self._now()}
        body = {"metadata": {"uid": removal.uid, "annotations": noted}, "spec": {"schedulingGates": gone}}
        send = partial(self._write, "Pod", removal.key, body, Patch.strategic)
        self.writes.want(f"Pod:gate {removal.key}", removal.uid, send)

    # ------------------------------------------------------------------ reservations

    def update_pod_annotations(self, task: Task, desired: Held | None) -> None:
        """The state has it at once; it is written alongside the cycles, and only where the pod says something else."""
        try:
            known = self._context.mirror.assume_reserved(task.key, task.uid, desired)
        except ManifestError as error:
            self._context.tell("object_refused", error=error)
            return
        if known:
            self._say(task.key, task.uid, desired)

    def _say(self, key: str, uid: str, held: Held | None) -> None:
        self.reservations.want(f"Pod:reservation {key}", (uid, held), partial(self._annotate, key, uid, held))

    async def _annotate(self, key: str, uid: str, held: Held | None) -> None:
        """One attempt, if nothing else has been decided meanwhile.  Raises what may be tried again."""
        mirror = self._context.mirror
        known = mirror.unwritten.get(key)
        if known is None or known[:2] != (uid, held):
            return
        if held is not None and mirror.proofs is not None and not mirror.proofs.keys:
            self._context.tell("metric.pod_annotation_patch", result="unsigned")
            await self._say_later(f"Pod:reservation {key}")  # no reader would accept it: it stands in the state alone
            return
        result = "skipped" if mirror.is_stated(key, held) else await self._annotated(key, uid, held)
        self._context.tell("metric.pod_annotation_patch", result=result)
        if result in ("ok", "skipped"):
            mirror.reserved(key, uid, held)
        else:
            mirror.forget_reservation(key, uid, held)
        if result == "conflict":
            await self._context.look(key)

    async def _annotated(self, key: str, uid: str, held: Held | None) -> str:
        """Write the annotations; what came of it, as the metric names it."""
        namespace, _, name = key.partition("/")
        proofs = self._context.mirror.proofs
        proof = None if held is None or proofs is None else proofs.sign(uid, held, self._context.clock())
        body = {"metadata": {"uid": uid, "annotations": patch(held, "" if proof is None else str(proof))}}
        try:
            found = await self._context.client.patch(PODS, name, namespace, body, patient=False)
        except StromboliError as error:
            if is_absent(error):
                return "gone"
            if is_other(error):
                return "conflict"
            self._context.tell("metric.pod_annotation_patch", result="error")
            raise
        if proofs is not None:
            proofs.wrote(uid, held, proof)
        self._context.feed.answer(found)
        return "ok"

    def say_unwritten(self) -> None:
        """Try everything again that stands in the state alone."""
        for key in list(self._context.mirror.unwritten):
            self._say_again(key)

    async def _say_later(self, key: str) -> None:
        """After a word that was refused for good: until it is heard, what was decided stands in the state alone."""
        asyncio.get_running_loop().call_later(AGAIN_AFTER, self._say_again, key.partition(" ")[2])

    def _say_again(self, key: str) -> None:
        known = self._context.mirror.unwritten.get(key)
        if known is not None:
            self._say(key, known.uid, known.held)

    # ------------------------------------------------------------------ writing

    async def _as_it_stands(self, key: str) -> None:
        """After a word that was refused for good: let the state say what the cluster says."""
        kind, _, rest = key.partition(" ")
        try:
            await self._context.ask(kind.partition(":")[0], rest, force=True)
        except StromboliError as error:
            self._context.tell("write_failed", what=key, error=error)

    async def _write(
        self, kind: str, key: str, body: Mapping[str, Any], how: Patch = Patch.merge, subresource: str = ""
    ) -> None:
        """One attempt.  One that meets another write is worth repeating while it still is about that very object."""
        namespace, _, name = key.rpartition("/")
        try:
            found = await self._context.client.patch(
                self._context.feed.resource(kind), name, namespace, body, how, subresource, patient=False
            )
        except ApiError as error:
            if not is_other(error) or await self._still_concerns(kind, key, body.get("metadata", {}).get("uid")):
                raise
            return
        self._context.feed.answer(found)

    async def _still_concerns(self, kind: str, key: str, uid: str | None) -> bool:
        """Whether an object, read again, is the one that was meant, and has no node yet where it is a pod."""
        found = await self._context.ask(kind, key)
        bound = isinstance(found, kinds.Pod) and found.spec.node_name
        return not bound and uid in (None, "", found.metadata.uid)


def _follows_start(job: Job, update: PodGroupUpdate) -> bool:
    """Whether an update only says how far the start of the job's pods has come, so that more of the kind follow."""
    if update.phase != job.phase or update.annotations is not None:
        return False
    return BINDING in job.index or (BOUND in job.index and tuple(update.conditions) == job.group.status.conditions)


def _plainly(condition: PodGroupCondition) -> dict[str, Any]:
    fields = msgspec.to_builtins(condition)
    return {name: fields.get(name, "") for name in ("type", "status", "reason", "message", "lastTransitionTime")}


def _group_body(update: PodGroupUpdate, uid: str) -> dict[str, Any]:
    """The status as a whole; a merge patch replaces the conditions together."""
    status = {
        "phase": update.phase,
        "conditions": [msgspec.to_builtins(condition) for condition in update.conditions],
        "running": update.running,
        "succeeded": update.succeeded,
        "failed": update.failed,
    }
    metadata: dict[str, Any] = {"uid": uid} if uid else {}
    if update.annotations is not None:
        metadata["annotations"] = update.annotations
    return {"metadata": metadata, "status": status}
