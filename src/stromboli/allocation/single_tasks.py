"""Jobs of which one task is left to place, bound without the stages between the turn of a job and its binding.

In general a turn makes a part of the job, an attempt with a statement, an operation in it and a choice of nodes, and
asks after the placement whether part and job are ready.  A single task is a run of one: the plugins' forms for runs say
beforehand whether the queue may hold it and whether it completes the job, and the ledger takes it from Pending to
Binding in one move.  Where nothing hears or needs the stages, the same jobs get the same nodes in the same order, with
the same sums, plan and figures.  Until that is certain nothing is changed or told: every doubt leaves the turn to the
general way, which asks again and says why.

Bindings reach the plan some at once, at the latest before the general way has a turn or the action ends.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Final

from stromboli.allocation.pending_tasks import TaskCursor, Worksheet
from stromboli.errors import PluginError
from stromboli.framework.session.session import Session
from stromboli.framework.statement.operation import handed_over
from stromboli.framework.statement.statement import hand_over
from stromboli.model.job import PENDING, Job
from stromboli.model.task import Task

AT_ONCE: Final = 32
"""How many bindings reach the plan at once."""

GENERAL: Final[dict[str, Callable[[Session], object]]] = {
    "lines between the stages are heard": lambda session: session.narrator.hears_steps,
    "plugins are told of placements, and may object": lambda session: session.hooks.handlers.allocate,
    "a plugin does not say whether the queue may hold a run": lambda session: _no_form(session, "allocatable"),
    "a plugin does not say what a run completes": lambda session: _no_form(session, "job_ready"),
    "placements are only tried": lambda session: session.narrator.mute.on,
    "tasks are placed next to their reservations": lambda session: session.ledger.second_places.rows,
}
"""What leaves all turns of a session to the general way."""


def _no_form(session: Session, point: str) -> bool:
    return session.hooks.batch_forms[point] is None


def is_plain(job: Job, task: Task) -> bool:
    """Whether nothing about ``task``, the one that is left of ``job``, needs a look of its own."""
    facts = job.facts
    return not (
        facts.is_split
        or facts.is_close
        or job.hyper_nodes.nominated
        or job.fits  # a task of its role may have found no node
        or task.gates
        or task.nominated_node
        or task.status is not PENDING
    )


class SingleTasks:
    """The turns of one action that need nothing but a binding; no job holds room since an earlier session."""

    def __init__(self, session: Session) -> None:
        self._session = session
        forms = session.hooks.batch_forms
        self._allocatable, self._ready = forms["allocatable"] or (), forms["job_ready"] or ()
        self._full: dict[int, int] = {}  # by template how far the nodes' journal had come when no node had idle room
        self._jobs: list[Job] = []
        self._tasks: list[Task] = []

    @cached_property
    def applies(self) -> bool:
        """Whether the session has such turns at all; most of the time is asked of none."""
        return not any(holds(self._session) for holds in GENERAL.values())

    def bind(self, job: Job, sheet: TaskCursor | Worksheet) -> bool:
        """Bind the task that is left of ``sheet``, of a job that has no further turn: the sheet itself stays as it is.

        False, nothing changed, where the general way has to look.
        """
        if not (isinstance(sheet, TaskCursor) and len(sheet.tasks) == sheet.next + 1 and self.applies):
            self.hand_over()
            return False
        task = sheet.tasks[sheet.next]
        if (row := self._row(job, task)) is None:
            self.hand_over()
            return False
        task.last = None
        self._session.ledger.bind(job, task, row)
        self._jobs.append(job)
        self._tasks.append(task)
        if len(self._tasks) >= AT_ONCE:
            self.hand_over()
        return True

    def _row(self, job: Job, task: Task) -> int | None:
        """The best node for the one task that is left; None unless it is sure to be bound there."""
        session = self._session
        if not is_plain(job, task) or self._full.get(task.template.number) == len(session.table.journal):
            return None
        queue = session.queues[job.queue]
        for times in self._allocatable:
            if times(queue, task, 1) < 1:
                return None
        for after in self._ready:
            if after(job, task, 1) > 1:
                return None
        if session.ask.pre_predicate(task) is not None:
            return None
        try:
            row = session.placer.idle_row(task)
        except PluginError:
            return None
        if row < 0:
            self._full[task.template.number] = len(session.table.journal)
            return None
        return row

    def hand_over(self) -> None:
        """Put what has been bound into the plan."""
        if self._tasks:
            self._session.statement_events.counters.placed_each(self._jobs)
            handed_over(self._session, self._tasks)
            self._jobs, self._tasks = [], []
            hand_over(self._session)
