"""Carries plans out on a live cluster, alongside the cycles."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Final

from stromboli.cluster.executor import StatusUpdater
from stromboli.framework.books.plan import Bind, Event, Eviction, Plan, PodAnnotations, PodConditionUpdate
from stromboli.kube.recorder import Regarding
from stromboli.kube.resources import RESOURCES
from stromboli.live.scheduler.context import Context
from stromboli.live.writing.binds import Binder
from stromboli.live.writing.evictions import Evictor
from stromboli.live.writing.first_reports import FirstReports, Sort
from stromboli.live.writing.pool import Pool
from stromboli.live.writing.updater import Updater
from stromboli.model import names
from stromboli.model.reservation import Held, mentioned
from stromboli.model.task import Task

BINDS_AT_ONCE: Final = 48
EVICTIONS_AT_ONCE: Final = 16
"""Requests of each sort that are under way at once."""

BIND_FAILED: Final = "failed to bind to node {node}: {error}"


class LiveExecutor:
    """Takes decisions over without waiting; :meth:`run` carries them out.

    ``scheduler`` is the name that evicted pods are told; ``updater`` writes statuses in the place of the usual one.
    """

    def __init__(
        self, context: Context, scheduler: str = names.SCHEDULER_NAME, updater: StatusUpdater | None = None
    ) -> None:
        self._context = context
        self.binder = Binder(context, BINDS_AT_ONCE, self._bind_ended)
        self.updater = self._own = Updater(context)
        self.evictor = Evictor(context, EVICTIONS_AT_ONCE, scheduler, self._own.disrupted)
        self._updater = updater or self._own
        self.first_reports = FirstReports(context)
        context.recorder.gives_way_to = lambda: self.binder.urgency

    def status_updater(self) -> StatusUpdater:
        """What writes statuses, conditions and reservations."""
        return self._updater

    async def run(self) -> None:
        """Work until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self.first_reports.run())
            for pool in self._pools():
                group.create_task(pool.run())

    def _pools(self) -> tuple[Pool, ...]:
        return self.binder.pool, self.evictor.pool, self._own.writes.pool, self._own.reservations.pool

    @property
    def in_flight(self) -> int:
        """How many requests are under way or wait."""
        return sum(pool.waiting + pool.running for pool in self._pools())

    async def quiet(self) -> None:
        """Return when nothing is under way."""
        for pool in self._pools():
            await pool.quiet()

    def hand_back(self) -> int:
        """Let go of binds that have not been sent, and of reports that are not due; answers how many binds."""
        self.first_reports.drop()
        self._own.writes.hasten()
        return self.binder.hand_back()

    # ------------------------------------------------------------------ decisions

    def bind(self, binds: Sequence[Bind]) -> None:
        """Pods that are to be bound."""
        _all(self._context.each(binds, self.binder.take))

    def evict(self, evictions: Sequence[Eviction]) -> None:
        """Pods that are to go."""
        _all(self._context.each(evictions, self.evictor.take))

    def finish(self, plan: Plan) -> None:
        """Everything of a plan but its binds and evictions."""
        _all(self.steps(plan))

    def steps(self, plan: Plan) -> Iterator[None]:
        """The same in small steps, between which others may have their turn."""
        each, updater = self._context.each, self._updater
        yield from each(plan.pod_groups, updater.update_pod_group)
        yield from each(plan.pod_conditions, self._pod_condition)
        yield from each(plan.queues, updater.update_queue)
        yield from each(plan.gates, updater.remove_gate)
        yield from each(plan.annotations, self._annotate)
        yield from each(plan.events, self._event)

    def _pod_condition(self, update: PodConditionUpdate) -> None:
        """A nomination is written at once, and so is what changes; that a pod waits is not said before it does."""
        self._write_condition(update, at_once=bool(update.nominated_node))

    def _write_condition(self, update: PodConditionUpdate, *, at_once: bool) -> None:
        write = partial(self._updater.update_pod_condition, update)
        self.first_reports.make(Sort.CONDITION, update.key, update.uid, write, at_once=at_once)

    def _annotate(self, wish: PodAnnotations) -> None:
        """A pod that is being bound keeps its reservation until it is known how that ends; others' pods are theirs."""
        mirror = self._context.mirror
        task, assumed = mirror.state.tasks.get(wish.key), mirror.assumed.get(wish.key)
        being_bound = assumed is not None and assumed.node
        if task is None or task.uid != wish.uid or being_bound or task.scheduler not in mirror.ours.schedulers:
            return
        self.update_pod_annotations(task, wish.held)

    def update_pod_annotations(self, task: Task, desired: Held | None) -> None:
        """Let the pod of ``task`` state the reservation ``desired``, None for none, and nothing else."""
        self._updater.update_pod_annotations(task, desired)

    # ------------------------------------------------------------------ after a bind

    def _bind_ended(self, bind: Bind, error: Exception | None) -> None:
        """Whatever came of it, the pod holds no reservation any more."""
        state = self._context.mirror.state
        task = state.tasks.get(bind.key)
        if state.reserving and task is not None and task.uid == bind.uid and mentioned(task.annotations):
            self.update_pod_annotations(task, None)
        if error is not None:
            self._bind_failed(bind, error)

    def _bind_failed(self, bind: Bind, error: Exception) -> None:
        """The pod says so, and counts as the cluster says it stands."""
        message = BIND_FAILED.format(node=bind.node, error=error)
        condition = PodConditionUpdate(bind.uid, bind.key, names.REASON_SCHEDULER_ERROR, message)
        self._write_condition(condition, at_once=True)
        warning = names.EVENT_WARNING, names.EVENT_FAILED_SCHEDULING, message
        tell = partial(self._context.pod_event, bind.key, bind.uid, *warning)
        self.first_reports.make(Sort.EVENT, bind.key, bind.uid, tell, at_once=True)
        self.resync(bind.key)

    # ------------------------------------------------------------------ asking again

    def resync(self, key: str) -> None:
        """Ask the server how a pod stands."""
        self._own.writes.want(f"Pod:resync {key}", key, partial(self._resync, key))

    async def _resync(self, key: str) -> None:
        self._context.tell("resync_task", name=key)
        await self._context.look(key)

    def ask_for_overdue(self) -> None:
        """Ask for pods whose news should have come by now, and stop assuming what they do not say."""
        for key, uid in self._context.mirror.overdue(self._context.clock()):
            self._own.writes.want(f"Pod:overdue {key}", uid, partial(self._overdue, key, uid))

    async def _overdue(self, key: str, uid: str) -> None:
        self._context.tell("resync_task", name=key)
        if await self._context.look(key, force=True) is not None:
            self._context.mirror.forget(key, uid)

    # ------------------------------------------------------------------ events

    def _event(self, event: Event) -> None:
        about = self._regarding(event)
        record = partial(self._context.recorder.record, about, event.type, event.reason, event.message)
        if event.kind == "Pod" and event.type == names.EVENT_WARNING:
            self.first_reports.make(Sort.EVENT, event.key, about.uid, record)
        else:
            record()

    def _regarding(self, event: Event) -> Regarding:
        """The object of an event; its uid is empty where the object is gone."""
        state = self._context.mirror.state
        if event.kind == "PodGroup":
            return self._context.group_of(event.key, state.jobs[event.key].group.uid if event.key in state.jobs else "")
        namespace, _, name = event.key.rpartition("/")
        uid = state.tasks[event.key].uid if event.kind == "Pod" and event.key in state.tasks else ""
        return Regarding(RESOURCES[event.kind].api_version, event.kind, namespace, name, uid)


def _all(steps: Iterator[None]) -> None:
    """Do all steps at one go."""
    for _ in steps:
        pass
