"""Runs of tasks that are alike: each takes the room of one victim on one node, and all of them do in one step.

A gang of a hundred evicts ten pods on each of ten nodes.  Once one of its tasks has taken the room of a pod there, the
next one would look at the same node first, evict the next victim, and be asked the same questions.  What these would be
answered is known beforehand where plugins promise it (``own=``, ``amounts=``) or answer for several tasks at once
(``.many``).  Every doubt ends the run, and leaves the task to the general way.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from functools import cached_property, partial
from itertools import islice, takewhile
from typing import Final, NamedTuple

from stromboli.framework.session.session import Session
from stromboli.model.job import Job
from stromboli.model.resources.axes import add_to, fits
from stromboli.model.task import GRACE, Task
from stromboli.preemption.eviction_policy import EvictionPolicy
from stromboli.preemption.kept_victims import placed_alike

GENERAL: Final[dict[str, Callable[[Session], object]]] = {
    "lines between the steps are heard": lambda session: session.narrator.hears_steps,
    "plugins are told of evictions": lambda session: session.hooks.handlers.deallocate,
    "plugins are told of placements, and may object": lambda session: session.hooks.handlers.allocate,
    "a plugin does not say for how many tasks a job starves": lambda session: (
        session.hooks.batch_forms["job_starving"] is None
    ),
    "tasks are placed next to their reservations": lambda session: session.ledger.second_places.rows,
}
"""What leaves all tasks of a session to the general way."""


class Run(NamedTuple):
    """``tasks``, each of which takes the room of one of ``victims`` on the same node."""

    tasks: list[Task]
    victims: list[Task]


class Runs:
    """The runs of one search for victims of ``job``."""

    def __init__(self, session: Session, job: Job, policy: EvictionPolicy) -> None:
        self._session, self._job, self._policy = session, job, policy

    @cached_property
    def may_be(self) -> bool:
        """Whether there may be runs at all: what plugins allow the queue must follow from what it holds."""
        session = self._session
        return session.hooks.own_quotas[self._policy.quota] and not any(holds(session) for holds in GENERAL.values())

    def of(
        self,
        task: Task,
        others: deque[Task],
        victims: Sequence[Task],
        row: int,
        need: Sequence[int],
        stays_first: Callable[[Sequence[float]], int],
    ) -> Run | None:
        """The longest run that begins with ``task``, which would be placed on ``row``, and the first of ``victims``.

        Those of ``others`` that belong to it are taken out; None, nothing changed, where it has no second task.
        ``need`` are the columns that decide whether a task fits; of scores that the row is to have in turn
        ``stays_first`` says with how many of them it goes on coming first.
        """
        if len(victims := self._in_turn(task, victims, row, need)) < 2:
            return None
        tasks = [task, *takewhile(partial(self._follows, task), islice(others, len(victims) - 1))]
        if (length := self._length(tasks, victims, row, stays_first)) < 2:
            return None
        for _ in range(length - 1):
            others.popleft()
        return Run(tasks[:length], victims[:length])

    def _follows(self, task: Task, other: Task) -> bool:
        """Whether nothing about ``other`` needs a look of its own after ``task``."""
        is_alike = placed_alike(self._session, other, task) and not other.nominated_node
        return is_alike and self._session.ask.pre_predicate(other) is None

    def _in_turn(self, task: Task, victims: Sequence[Task], row: int, need: Sequence[int]) -> list[Task]:
        """The first of ``victims``, as long as each of them costs least, is needed and is enough."""
        found: list[Task] = []
        wanted, room = task.template.vector, self._session.table.future_of(row)
        for victim in victims:
            needed = not fits(wanted, room, need)
            add_to(room, victim.template.vector)
            enough = fits(wanted, room, need)
            add_to(room, wanted, -1)
            if not needed or not enough or min(room) < 0 or not self._costs_least(victim):
                break
            found.append(victim)
        return found

    def _costs_least(self, victim: Task) -> bool:
        """Whether no node could have a victim that costs less, so that no others are compared with this one."""
        least = victim.priority == self._session.candidates.columns.lowest and victim.grace <= GRACE
        return least and not victim.best_effort

    def _length(
        self, tasks: Sequence[Task], victims: Sequence[Task], row: int, stays_first: Callable[[Sequence[float]], int]
    ) -> int:
        """For how many of ``tasks``, from the first on, it is certain that each is placed by evicting its victim."""
        session, forms = self._session, self._session.hooks.batch_forms["job_starving"] or ()
        most = min([len(tasks), *(many(self._job, tasks[0], len(tasks)) for many in forms)])
        if not self._policy.checked:
            return most if session.ask.preemptive(session.queues[self._job.queue], tasks[:most]) else 0
        scores = session.placer.foresee(tasks[:most], row, victims[:most])
        return min(len(scores), 1 + stays_first(scores))
