"""Events of the turns of jobs that evict pods: which may, what is delayed, which domains are tried, what is evicted."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from stromboli.model.job import Job
from stromboli.model.resources.axes import Vector
from stromboli.model.values.times import stamp
from stromboli.preemption.bundles import Bundle, tasks_of, total

if TYPE_CHECKING:
    from stromboli.framework.session.session import Session
    from stromboli.framework.statement.statement import Statement
    from stromboli.preemption.gang_eviction import EvictionContext


class StarvingEvents:
    """Reports which jobs may take room in an action, and why others may not; the keys are the action's.

    An event without an observer costs one comparison; ``hears_any`` is whether there is an observer of any.
    """

    __slots__ = ("_invalid", "_not_starving", "_queue_added", "_queue_missing", "hears_any")

    def __init__(self, session: Session, action: str) -> None:
        tells = session.tells
        self._invalid, self._not_starving = tells(f"{action}_job_invalid"), tells(f"{action}_not_starving")
        self._queue_missing = tells("preempt_queue_missing" if action == "preempt" else "queue_missing")
        self._queue_added = tells("reclaim_queue_added" if action == "reclaim" else "queue_added")
        self.hears_any = any((self._invalid, self._not_starving, self._queue_missing, self._queue_added))

    def invalid(self, job: Job, why: tuple[str, str]) -> None:
        """Plugins find ``job`` invalid: ``why`` is the reason and the message."""
        if say := self._invalid:
            say(job=job, queue=job.queue, reason=why[0], message=why[1])

    def queue_missing(self, job: Job) -> None:
        """The session lacks the queue of ``job``."""
        if say := self._queue_missing:
            say(queue=job.queue, job=job)

    def queue_added(self, job: Job) -> None:
        """The queue of ``job`` has its turn in the action."""
        if say := self._queue_added:
            say(queue=job.queue, job=job)

    def not_starving(self, job: Job) -> None:
        """``job`` does not starve."""
        if say := self._not_starving:
            ready, waiting = job.ready_task_num(), job.waiting_task_num()
            say(job=job, queue=job.queue, min_available=job.min_available, ready=ready, waiting=waiting)


class DelayEvents:
    """Reports the evictions that jobs delay; an event without an observer costs one comparison."""

    __slots__ = ("_not_sought", "_postponed")

    def __init__(self, session: Session) -> None:
        self._not_sought, self._postponed = session.tells("eviction_not_sought"), session.tells("eviction_postponed")

    def not_sought(self, job: Job, until: float, checked: int) -> None:
        """``job`` waits ``until`` then without a search, as so many waiting jobs have been ``checked``."""
        if say := self._not_sought:
            say(job=job, until=stamp(until), looks=checked)

    def postponed(self, job: Job, victims: int, grace: float, until: float) -> None:
        """``job`` waits ``until`` then before it evicts so many ``victims``, the slowest with this ``grace`` period."""
        if say := self._postponed:
            say(job=job, victims=victims, grace=grace, until=stamp(until))


class GangEvents:
    """Reports the events of one job's turn in a gang action."""

    __slots__ = ("_session",)

    def __init__(self, session: Session) -> None:
        self._session = session

    def tried(
        self,
        context: EvictionContext,
        found: Sequence[Bundle],
        let_go: Sequence[Bundle],
        need: Vector,
        idle: Callable[[], list[int]],
    ) -> None:
        """A domain is tried for a job that needs ``need``: of the bundles that were ``found`` plugins ``let_go`` some.

        ``idle`` gives the idle room of the domain.
        """
        if say := self._session.tells("gang_domain"):
            axes, left = self._session.axes, tasks_of(let_go)
            say(
                job=context.job, domain=context.hyper_node, context=context, candidates=tasks_of(found), allowed=left,
                need=axes.resource(axes.full(need)), idle=axes.resource(idle()),
                gain=axes.resource(axes.full(total(left))),
            )  # fmt: skip

    def evicts(self, action: str, job: Job, domain: str, statement: Statement) -> None:
        """``statement`` evicts pods in ``domain`` for ``job``."""
        self._session.tell("metric.eviction_transaction", action=action)
        if say := self._session.tells("gang_evicts"):
            say(job=job, domain=domain, victims=statement.evicted)
