"""Evicting pods: a word on why, then the deletion, which the pod's own grace period delays."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Final

from stromboli.errors import ApiError, StromboliError
from stromboli.framework.books.plan import Eviction
from stromboli.kube.client import Patch
from stromboli.kube.resources import PODS
from stromboli.live.scheduler.context import Attempts, Context
from stromboli.live.writing.pool import Pool
from stromboli.model import names
from stromboli.model.values.times import stamp

PREEMPTING: Final = "{scheduler}: preempting to accommodate a higher priority pod"


class Evictor:
    """Takes evictions over: the pod counts as going at once; if it cannot be deleted it counts as before.

    ``scheduler`` is the name that pods are told.  ``done`` hears of each eviction that the cluster has accepted.
    ``evicted`` and ``failed`` count.
    """

    def __init__(self, context: Context, size: int, scheduler: str, done: Callable[[Eviction], None]) -> None:
        self._context, self._scheduler, self._done = context, scheduler, done
        self.pool = Pool(size, context.tell)
        self.evicted = self.failed = 0

    def take(self, eviction: Eviction) -> None:
        """Carry ``eviction`` out, unless its pod is gone or going."""
        if self._context.mirror.assume_evicted(eviction):
            self._tell_group(eviction)
            self.pool.put(
                f"Pod:eviction {eviction.key}", partial(self._carry_out, eviction), partial(self._fail, eviction)
            )

    def _tell_group(self, eviction: Eviction) -> None:
        self._context.tell("evicting", task=eviction.key, reason=eviction.reason)
        job = self._context.mirror.state.jobs.get(eviction.job)
        if job is not None:
            about = self._context.group_of(job.uid, job.group.uid)
            note = self._context.recorder.record
            note(about, names.EVENT_NORMAL, names.EVENT_EVICT, eviction.reason, happened=True)

    async def _carry_out(self, eviction: Eviction) -> None:
        attempts = Attempts()
        told = False
        while self._context.may_write() and self._still_there(eviction):
            try:
                if not told:
                    await self._say_why(eviction)
                    told = True
                await self._delete(eviction)
                self._succeeded(eviction)
                return
            except StromboliError as error:
                if attempts.are_over(error):
                    self._fail(eviction, error)
                    return
                await self._context.pause(attempts.made, error)
        self._context.mirror.forget(eviction.key, eviction.uid)

    def _still_there(self, eviction: Eviction) -> bool:
        task = self._context.mirror.state.tasks.get(eviction.key)
        return task is not None and task.uid == eviction.uid

    async def _say_why(self, eviction: Eviction) -> None:
        namespace, _, name = eviction.key.partition("/")
        text = names.POD_EVICTED.format(reason=eviction.reason)
        self._context.pod_event(eviction.key, eviction.uid, names.EVENT_WARNING, names.EVENT_EVICT, text)
        now = stamp(self._context.clock())
        target = PREEMPTING.format(scheduler=self._scheduler)
        conditions = [
            _condition("Ready", "False", names.EVENT_EVICT, text, now),
            _condition(names.DISRUPTION_TARGET, "True", names.PREEMPTION_BY_SCHEDULER, target, now),
        ]
        body = {"metadata": {"uid": eviction.uid}, "status": {"conditions": conditions}}
        try:
            await self._context.client.patch(PODS, name, namespace, body, Patch.strategic, "status", patient=False)
        except ApiError as error:
            if error.code not in (404, 409, 422):  # gone, or another pod of that name: the deletion will find out
                raise

    async def _delete(self, eviction: Eviction) -> None:
        namespace, _, name = eviction.key.partition("/")
        try:
            await self._context.client.delete(PODS, name, namespace, uid=eviction.uid, patient=False)
        except ApiError as error:
            if not (error.not_found or error.conflict):
                raise

    def _succeeded(self, eviction: Eviction) -> None:
        self.evicted += 1
        self._context.mirror.carried_out(eviction.key, eviction.uid, self._context.clock())
        self._done(eviction)

    def _fail(self, eviction: Eviction, error: Exception) -> None:
        self.failed += 1
        self._context.tell("evict_pod_failed", task=eviction.key, error=error)
        self._context.mirror.forget(eviction.key, eviction.uid)


def _condition(kind: str, status: str, reason: str, message: str, now: str) -> dict[str, Any]:
    return {"type": kind, "status": status, "reason": reason, "message": message, "lastTransitionTime": now}
