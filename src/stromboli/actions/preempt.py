"""preempt: within a queue, starving jobs take room from less important ones, and tasks from others of their job."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from stromboli.framework.extension.action import Action
from stromboli.framework.session.session import Session
from stromboli.framework.session.topology import has_topology
from stromboli.framework.statement.statement import Statement
from stromboli.model.job import RELEASING, Job
from stromboli.model.task import Task
from stromboli.plugin import arg
from stromboli.preemption.dry_run import DryRun, Numbers
from stromboli.preemption.eviction_delay import PATIENCE, EvictionDelay, is_part
from stromboli.preemption.eviction_policy import PREEMPT
from stromboli.preemption.idle_room import IdleRoom
from stromboli.preemption.preempt_loop import commit, run, while_starving
from stromboli.preemption.starving import in_turn, never_preempts, pending_tasks, waiting
from stromboli.preemption.victim_search import Search
from stromboli.reservations.claims import YieldBeforeEviction

POLICY_NEVER = "not eligible to preempt other tasks due to preemptionPolicy is Never"
NOMINATED_UNKNOWN = "not eligible due to the pod's nominated node is not found in the session"
NOMINATED_FREE = (
    "not eligible due to the pod's nominated node is already schedulable, which should not happen as preemption means "
    "no node is schedulable"
)
STILL_ENDING = "not eligible due to a terminating pod caused by preemption on the nominated node"


class Preempt(Action):
    """Queue by queue: first every starving job takes from other jobs, a whole gang or nothing; then tasks of a job from
    less important ones of the same job.
    """

    name = "preempt"
    topology_aware = arg("enableTopologyAwarePreemption", bool, False)
    percentage = arg("minCandidateNodesPercentage", int, 10)
    least = arg("minCandidateNodesAbsolute", int, 1)
    most = arg("maxCandidateNodesAbsolute", int, 100)
    minimal_victims = arg("minimal-victims", bool, True)
    patience = arg("patience", float, PATIENCE, is_part)

    def execute(self, session: Session) -> None:
        """Take room for every starving job, queue by queue."""
        found, holders, delay = (
            waiting(session, self.name),
            YieldBeforeEviction(session),
            EvictionDelay(session, self.patience),
        )
        queues = in_turn(session, found.queues)
        with IdleRoom(session) as idle:
            while len(queues):
                queue = queues.pop()
                starving = [job for job in found.of(queue.name) if not _is_bound_to_topology(session, job)]
                run(session, queue, starving, idle, holders, self.take, delay)
                self.within_jobs(session, [job for job in starving if not delay.waits(job)], idle)

    def take(self, session: Session, statement: Statement, job: Job) -> Search:
        """Place tasks of ``job``, one after the other, as long as it starves; returns the search that was used."""
        search = self.search(session, job, within=False)
        tasks = deque(pending_tasks(session, job))
        for task in while_starving(session, job, tasks):
            self.preempt(search, statement, task, tasks)
        return search

    # ------------------------------------------------------------------ within a job

    def within_jobs(self, session: Session, starving: list[Job], idle: IdleRoom) -> None:
        """Each job's tasks take from less important ones of the same job; the first failure ends the job.

        Tasks for which there is ``idle`` room take nothing.
        """
        for job in starving:
            self._within(session, job, idle)

    def _within(self, session: Session, job: Job, idle: IdleRoom) -> None:
        search = self.search(session, job, within=True)
        for task in pending_tasks(session, job):
            if idle.takes((task, None)):
                continue
            with session.statement() as statement:
                if not self.preempt(search, statement, task):
                    break
                search.reprieve(statement)
                commit(session, statement, self.name)
        search.events.figures()

    # ------------------------------------------------------------------ one task

    def search(self, session: Session, job: Job, *, within: bool) -> Search:
        """The search for ``job``, among its own tasks or those of the queue's other jobs."""
        minimal = self.minimal_victims and not session.compat.asks("minimal-victims")
        return Search(session, job, PREEMPT, None if within else scope(job), minimal=minimal)

    def preempt(self, search: Search, statement: Statement, task: Task, others: deque[Task] | None = None) -> bool:
        """Find a node for ``task`` and evict the tasks there that must go; False, nothing changed, if there is none.

        ``others`` are those after it: some of them may be placed with it in a run, and taken out.
        """
        error = self._ineligible(search, task) or search.refused_beforehand(task)
        if not error and self.topology_aware:
            error = DryRun(search, Numbers(self.percentage, self.least, self.most)).place(statement, task)
        elif not error and not search.place(statement, task, others):
            search.events.no_node(task)
            return False
        if error:
            search.events.failed(task, error)
        return not error

    def _ineligible(self, search: Search, task: Task) -> str:
        """Why ``task`` may not preempt any pod; empty if it may."""
        if never_preempts(search.job, task):
            return POLICY_NEVER
        return self._waits_for_nomination(search, task) if task.nominated_node else ""

    def _waits_for_nomination(self, search: Search, task: Task) -> str:
        """Why a task that was given a node before should wait for it; empty if it may look for another."""
        session = search.session
        row = session.table.statics.row.get(task.nominated_node, -1)
        if row < 0:
            return NOMINATED_UNKNOWN if session.compat.asks("nominated-node-gone") else ""
        if session.placer.passes(task, row) and self._is_free(search, task, row):
            return NOMINATED_FREE
        if not session.placer.curable(task)[row]:
            return ""
        on_node = session.snapshot.node_tasks[row].values()
        ending = any(
            other.status is RELEASING and other.preempted and other.priority < task.priority for other in on_node
        )
        return STILL_ENDING if ending else ""

    def _is_free(self, search: Search, task: Task, row: int) -> bool:
        """Whether the task, which predicates let on its nominated node, need not take room anywhere.

        Where its gang lacks others, too, that is not enough: allocate has not found room for them all.
        """
        job = search.job
        if search.session.compat.asks("nominated-without-room"):
            return task.last is not None or task.uid in job.fits
        return job.ready_task_num() + 1 >= job.min_available and search.covered(task, search.room(row))


def scope(job: Job) -> Callable[[Job], bool]:
    """Which jobs ``job`` may take from: the others of its queue."""
    uid, queue = job.uid, job.queue
    return lambda other: other.queue == queue and other.uid != uid


def _is_bound_to_topology(session: Session, job: Job) -> bool:
    if not has_topology(job):
        return False
    session.tell("preempt_job_topology", job=job, queue=job.queue)
    return True
