"""Events of the turns of jobs that evict pods: evictions that are delayed, domains that are tried, what is evicted."""

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
    """Reports the events of one job's turn in a gang action; an event without an observer costs one comparison."""

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
