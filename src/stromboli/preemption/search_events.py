"""Events of the search for victims: nodes that are looked at, victims that are tried, and what comes of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from stromboli.model.task import Task
from stromboli.narration.observe import OneOrMany
from stromboli.preemption.bundles import total

if TYPE_CHECKING:
    from stromboli.framework.session.session import Session
    from stromboli.framework.statement.statement import Statement
    from stromboli.preemption.eviction_policy import EvictionPolicy


class SearchEvents:
    """Reports the events of one search for victims; an event without an observer costs one comparison.

    ``hears_nodes`` is whether an observer wants what is found on each node.  ``attempts`` counts the nodes that were
    tried, ``victims`` the possible ones of the last node, -1 before the first; :meth:`figures` reports both.
    """

    __slots__ = (
        "_attempts", "_beforehand", "_considering", "_count", "_failed", "_freed", "_names", "_no_candidates",
        "_objected", "_policy", "_session", "_too_few", "_trying", "attempts", "hears_nodes", "victims",
    )  # fmt: skip

    def __init__(self, session: Session, policy: EvictionPolicy) -> None:
        tells, attempt = session.tells, "metric.preemption_attempt"
        self._session, self._policy, self._names = session, policy, session.table.statics.names
        self._considering, self._too_few = tells("considering_node"), tells("no_victims")
        self._no_candidates = None if policy.without_victims else tells("no_reclaimees")
        self.hears_nodes = bool(self._considering or self._too_few or self._no_candidates)
        self._trying, self._freed = tells(policy.trying), tells(policy.done)
        self._objected, self._beforehand = tells("pipeline_failed"), tells("pre_predicate_failed")
        self._failed, self._count = tells("preempt_failed"), tells("metric.preemption_victims")
        self._attempts = OneOrMany(tells(attempt), session.narrator.tells_all(attempt))
        self.attempts, self.victims = 0, -1

    # ------------------------------------------------------------------ nodes

    def considering(self, task: Task, row: int) -> None:
        """``row`` is looked at for ``task``."""
        if say := self._considering:
            say(task=task, node=self._names[row])

    def no_candidates(self, row: int) -> None:
        """No task on ``row`` could be evicted."""
        if say := self._no_candidates:
            say(node=self._names[row])

    def too_few(self, row: int, lack: str) -> None:
        """Evicting all victims on ``row`` would not be enough: ``lack`` says what would be missing."""
        if say := self._too_few:
            say(node=self._names[row], error=lack)

    def trying(self, victim: Task, task: Task) -> None:
        """``victim`` is about to be evicted for ``task``."""
        if say := self._trying:
            say(victim=victim, task=task)

    def freed(self, trial: Statement, task: Task, row: int) -> None:
        """The evictions of ``trial`` on ``row`` are done, whether or not they are enough for ``task``."""
        self.attempts += 1
        if say := self._freed:
            axes, policy = self._session.axes, self._policy
            amount = axes.resource(axes.full(total(trial.evicted)))
            fields: dict[str, object] = {policy.done: amount, "task": task, "request": task.request}
            if not policy.checked:
                available = axes.resource(self._session.table.future_of(row))
                fields |= {"node": self._names[row], "available": available}
            say(**fields)

    def objected(self, task: Task, node: str) -> None:
        """A handler objects to reserving ``node`` for ``task``."""
        if say := self._objected:
            say(task=task, node=node)

    # ------------------------------------------------------------------ tasks

    def refused_beforehand(self, task: Task, text: str) -> None:
        """A plugin refuses ``task`` on every node, for the reason ``text``."""
        if say := self._beforehand:
            say(task=task, error=text)

    def failed(self, task: Task, error: str) -> None:
        """``task`` gets no room, for the reason ``error``."""
        if say := self._failed:
            say(task=task, error=error)

    def no_node(self, task: Task) -> None:
        """``task`` gets no room on any node; the reasons of nodes against it are counted."""
        if self._failed:
            self.failed(task, self._session.placer.refusals(task, room=False).text)

    def figures(self) -> None:
        """How many nodes were tried, and how many victims the last one had, is reported and counted from 0 again."""
        if self.attempts and self._attempts:
            self._attempts.many(self.attempts, {})
        if self.victims >= 0 and (say := self._count):
            say(count=self.victims)
        self.attempts, self.victims = 0, -1


class DryRunEvents:
    """Reports the events of a topology-aware search; an event without an observer costs one comparison."""

    __slots__ = ("_candidates", "_enough", "_impossible", "_no_nodes", "_victims")

    def __init__(self, session: Session) -> None:
        tells = session.tells
        self._candidates, self._victims = tells("preemptees"), tells("all_victims")
        self._enough, self._no_nodes = tells("preempt_enough"), tells("preempt_no_nodes")
        self._impossible = tells("preempt_no_candidate")

    def no_nodes(self, task: Task) -> None:
        """Predicates allow no node for ``task``."""
        if say := self._no_nodes:
            say(task=task)

    def candidates(self, tasks: Sequence[Task], task: Task, node: str) -> None:
        """``tasks`` on ``node`` could be evicted for ``task``, as far as plugins allow it."""
        if say := self._candidates:
            say(tasks=tasks, task=task, node=node)

    def victims(self, tasks: Sequence[Task]) -> None:
        """Plugins allow ``tasks`` to be evicted."""
        if say := self._victims:
            say(tasks=tasks)

    def enough(self, task: Task, node: str, victim: Task) -> None:
        """``task`` fits on ``node`` once ``victim`` has left it, too."""
        if say := self._enough:
            say(task=task, node=node, victim=victim)

    def impossible(self, task: Task, node: str, error: str) -> None:
        """``node`` is no candidate for ``task``, for the reason ``error``."""
        if say := self._impossible:
            say(node=node, task=task, error=error)
