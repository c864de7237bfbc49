"""priority: the more important first."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from stromboli.framework.extension.order import compare
from stromboli.framework.session.orphans import known_job
from stromboli.model.job import Job
from stromboli.model.subjobs import SubJob
from stromboli.model.task import Task
from stromboli.plugin import (
    Plugin,
    job_order,
    job_starving,
    preemptable,
    sub_job_order,
    task_order,
    unified_evictable,
)

if TYPE_CHECKING:
    from stromboli.framework.books.cluster_view import ClusterView

GANG_RECLAIM = "GangReclaim"


class GangEviction(Protocol):
    """The job and the action for which tasks are to be evicted."""

    @property
    def kind(self) -> str:
        """GangPreempt, GangReclaim, TaskPreempt or TaskReclaim."""

    @property
    def job(self) -> Job:
        """The job that needs room."""


class Priority(Plugin, trusted=True):
    """Orders jobs by the priority class of their PodGroups and tasks by their pods' priority, higher first.

    Preemption takes only from strictly less important jobs, and within a job from less important tasks.
    """

    name = "priority"

    def on_session_open(self, session: ClusterView) -> None:
        """Prepare the questions and the lines."""
        self.session = session
        self.say_task_order = session.tells("priority_task_order")
        self.say_job_order = session.tells("priority_job_order")
        self.say_refused_job = session.tells("priority_refused_job")
        self.say_refused_task = session.tells("priority_refused_task")
        self.say_victims = session.tells("priority_victims")

    # ------------------------------------------------------------------ orders

    @task_order
    def important_task_first(self, left: Task, right: Task) -> int:
        """Higher priority first."""
        if self.say_task_order:
            self.say_task_order(
                left=left.key, left_priority=left.priority, right=right.key, right_priority=right.priority
            )
        return compare(right.priority, left.priority)

    @task_order.key(own=True)
    def task_turn(self, task: Task) -> int:
        """The negative priority."""
        return -task.priority

    @job_order
    def important_job_first(self, left: Job, right: Job) -> int:
        """Higher priority first."""
        if self.say_job_order:
            self.say_job_order(
                left=left.uid, left_priority=left.priority, right=right.uid, right_priority=right.priority
            )
        return compare(right.priority, left.priority)

    @job_order.key(own=True)
    def job_turn(self, job: Job) -> int:
        """The negative priority."""
        return -job.priority

    @sub_job_order
    def important_part_first(self, left: SubJob, right: SubJob) -> int:
        """The highest priority among the tasks decides, higher first."""
        return compare(right.priority, left.priority)

    @sub_job_order.key
    def part_turn(self, sub_job: SubJob) -> int:
        """The negative highest priority among the tasks."""
        return -sub_job.priority

    # ------------------------------------------------------------------ victims

    @preemptable(own=True)
    def less_important(self, preemptor: Task, preemptees: Sequence[Task]) -> list[Task]:
        """Tasks of strictly less important jobs, and strictly less important tasks of the preemptor's own job."""
        job = known_job(self.session, self.name, preemptor, "preemptor")
        if job is None:
            return []
        victims = [task for task in preemptees if self._is_less(task, preemptor, job)]
        if self.say_victims:
            self.say_victims(victims=[task.key for task in victims])
        return victims

    @preemptable.job(own=True, by_priority=True)
    def job_may_be_less_important(self, preemptor: Task, job: Job) -> bool:
        """Whether the job, or in the preemptor's own some task, may be less important."""
        own = self.session.job_of(preemptor)
        return own is not None and (job.uid == own.uid or job.priority < own.priority)

    @unified_evictable
    def less_important_for_gang(self, context: GangEviction, candidates: Sequence[Task]) -> Sequence[Task]:
        """All candidates when a queue takes back what it deserves; else tasks of strictly less important jobs."""
        if context.kind == GANG_RECLAIM:
            return candidates
        return [task for task in candidates if self._is_less(task, None, context.job)]

    def _is_less(self, task: Task, preemptor: Task | None, own: Job) -> bool:
        """Whether ``task`` may go for ``own``; its job's own tasks only where ``preemptor`` is given."""
        job = known_job(self.session, self.name, task, "preemptee")
        if job is None:
            return False
        within = preemptor is not None and job.uid == own.uid
        mine = preemptor.priority if within and preemptor is not None else own.priority
        theirs = task.priority if within else job.priority
        say = self.say_refused_task if within else self.say_refused_job
        if theirs >= mine and say:
            say(task=task.key, preemptee=theirs, preemptor=mine)
        return theirs < mine

    @job_starving(own=True)
    def wants_all(self, job: Job) -> bool:
        """Whether any task is neither placed nor about to be; failed and ending ones count as wanting."""
        return job.ready_task_num() + job.waiting_task_num() < len(job.tasks)

    @job_starving.many
    def all_wanted_after(self, job: Job, task: Task, k: int) -> int:
        """After how many more tasks, at least 1, none is left to place; k + 1 if not within k."""
        return min(max(len(job.tasks) - job.ready_task_num() - job.waiting_task_num(), 1), k + 1)
