"""drf: dominant resource fairness between jobs, and between queues in a hierarchy."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from stromboli.fairness.share import divisors, dominant_share
from stromboli.fairness.tree import QueueTree, parse_path, parse_weights
from stromboli.framework.extension.handlers import TaskEvent
from stromboli.framework.extension.order import compare
from stromboli.framework.session.orphans import known_job
from stromboli.model.job import Job
from stromboli.model.names import HIERARCHY, HIERARCHY_WEIGHTS
from stromboli.model.resources.axes import Vector, add_to
from stromboli.model.task import PodTemplate, Task
from stromboli.narration.observe import Derived
from stromboli.plugin import Hook, Plugin, job_order, on_allocate, on_deallocate, preemptable, queue_order, reclaimable

if TYPE_CHECKING:
    from stromboli.framework.books.cluster_view import ClusterView
    from stromboli.framework.books.jobs import QueueInfo

TOLERANCE = 1e-6
"""Shares closer than this count as equal where tasks are to be evicted."""

HIERARCHICAL = ("queue_order", "reclaimable")
EVENTS = ("on_allocate", "on_deallocate")


class Drf(Plugin, trusted=True):
    """Jobs with a smaller dominant share of the cluster come first.

    A job's dominant share is the largest part of any resource of the cluster that its tasks hold.  With
    ``enableHierarchy: true`` queues are compared, too, along the paths of their annotations ``volcano.sh/hierarchy``
    and ``volcano.sh/hierarchy-weights`` (see :mod:`stromboli.fairness.tree`).
    """

    name = "drf"
    queue_accounts = 1

    def on_session_open(self, session: ClusterView) -> None:
        """Take the cluster's total and, with a hierarchy, build the tree."""
        self.session = session
        self.parts_of = divisors(session.ledger.total)
        self._kinds: dict[str, Collection[PodTemplate]] = {}
        self.hierarchy = Hierarchy(session) if session.config.hierarchy_enabled(self.name) else None
        self.say_order = session.tells("drf_job_order")
        self.say_refused = session.tells("drf_refused")
        self.say_victims = session.tells("drf_victims")
        self.say_hierarchical_victims = session.tells("hdrf_victims")
        self.say_allocated = session.tells("drf_allocated")
        self.say_deallocated = session.tells("drf_deallocated")
        if say := session.tells("drf_total"):
            say(total=session.axes.resource(session.ledger.total))

    def hooks(self) -> Iterator[tuple[Hook, Callable[..., Any]]]:
        """All hooks; without a hierarchy queues are not compared, and events are heard only to be reported."""
        heard = self.hierarchy or self.say_allocated or self.say_deallocated
        silent = {*(() if self.hierarchy else HIERARCHICAL), *(() if heard else EVENTS)}
        return ((hook, function) for hook, function in super().hooks() if hook.point.name not in silent)

    def on_session_close(self, session: ClusterView) -> None:
        """Tell the jobs' shares: what they hold, so that the jobs themselves go when they are replaced."""
        if say := session.tells("metric.job_share"):
            parts_of = self.parts_of
            say(shares=Derived(session.jobs.holdings(), lambda amounts: dominant_share(amounts, parts_of)))

    # ------------------------------------------------------------------ jobs

    @job_order
    def poorer_first(self, left: Job, right: Job) -> int:
        """The smaller dominant share first."""
        shares = self.share(left), self.share(right)
        if self.say_order:
            self.say_order(left=left.uid, left_share=shares[0], right=right.uid, right_share=shares[1])
        return compare(*shares)

    @job_order.key(own=True)
    def share(self, job: Job) -> float:
        """The job's dominant share, pipelined tasks included."""
        held = job.sums.held
        return dominant_share(held, self.parts_of) if held else 0.0

    @preemptable
    def richer(self, preemptor: Task, preemptees: Sequence[Task]) -> list[Task]:
        """Tasks without which their job still has no smaller share than the preemptor's job will have.

        Every candidate is taken off its job's running sum, whether it is chosen or not.
        """
        job = known_job(self.session, self.name, preemptor, "preemptor")
        if job is None:
            return []
        mine = dominant_share(added(job.sums.held, preemptor.template.vector), self.parts_of)
        left: dict[str, list[int]] = {}
        victims = [task for task in preemptees if self._is_richer(task, mine, left)]
        if self.say_victims:
            self.say_victims(victims=[task.key for task in victims])
        return victims

    @preemptable.job
    def may_be_richer(self, preemptor: Task, job: Job) -> bool:
        """Whether the job has a share that could stay above the preemptor's once a task has left it."""
        own = self.session.job_of(preemptor)
        if own is None:
            return False
        mine = dominant_share(added(own.sums.held, preemptor.template.vector), self.parts_of)
        return job.uid == own.uid or any(
            mine - dominant_share(added(job.sums.held, template.vector, -1), self.parts_of) <= TOLERANCE
            for template in self._templates(job)
        )

    def _templates(self, job: Job) -> Collection[PodTemplate]:
        """The templates of the job's tasks, each once; a session gives a job no others."""
        found = self._kinds.get(job.uid)
        if found is None:
            found = self._kinds[job.uid] = {task.template for task in job.tasks.values()}
        return found

    def _is_richer(self, task: Task, mine: float, left: dict[str, list[int]]) -> bool:
        if task.job not in left:
            job = known_job(self.session, self.name, task, "preemptee")
            if job is None:
                return False
            left[task.job] = job.sums.held.copy()
        add_to(left[task.job], task.template.vector, -1)
        theirs = dominant_share(left[task.job], self.parts_of)
        if mine - theirs <= TOLERANCE:
            return True
        if self.say_refused:
            self.say_refused(task=task.key, preemptor_share=mine, preemptee_share=theirs)
        return False

    # ------------------------------------------------------------------ queues in a hierarchy

    @queue_order
    def poorer_branch_first(self, left: QueueInfo, right: QueueInfo) -> int:
        """Level by level along the queues' paths: unsaturated first, then the smaller share for its weight."""
        return self.hierarchy.compare(left.name, right.name) if self.hierarchy else 0

    @reclaimable
    def from_richer_branches(self, reclaimer: Task, reclaimees: Sequence[Task]) -> list[Task]:
        """Tasks without which, each alone, the reclaimer's queue would still come before theirs."""
        job = known_job(self.session, self.name, reclaimer, "reclaimer")
        if job is None or self.hierarchy is None:
            return []
        found = ((task, known_job(self.session, self.name, task, "reclaimee")) for task in reclaimees)
        victims = self.hierarchy.richer(job, reclaimer, [(task, owner) for task, owner in found if owner is not None])
        if self.say_hierarchical_victims:
            self.say_hierarchical_victims(victims=[task.key for task in victims])
        return victims

    @on_allocate
    def note_allocation(self, event: TaskEvent) -> None:
        """A job has more than before."""
        self._note(event.task)
        if self.say_allocated and (job := known_job(self.session, self.name, event.task, "allocate event for task")):
            self.say_allocated(task=event.task.key, request=event.task.request, share=self.share(job))

    @on_allocate.many
    def note_allocations(self, task: Task, rows: Sequence[int]) -> None:
        """As for one task."""
        self.note_allocation(TaskEvent(task))

    @on_deallocate
    def note_deallocation(self, event: TaskEvent) -> None:
        """A job has less than before."""
        self._note(event.task)
        if self.say_deallocated and (
            job := known_job(self.session, self.name, event.task, "deallocate event for task")
        ):
            self.say_deallocated(task=event.task.key, request=event.task.request, share=self.share(job))

    @on_deallocate.many
    def note_deallocations(self, task: Task, rows: Sequence[int]) -> None:
        """As for one task."""
        self.note_deallocation(TaskEvent(task))

    def _note(self, task: Task) -> None:
        if self.hierarchy:
            self.hierarchy.changed[task.job] = None


class Hierarchy:
    """The queue tree of a session, brought up to date when it is asked.

    ``changed`` are the uids of jobs whose tasks have come or gone since then.  Jobs hang in the tree in the order in
    which the session lists them.
    """

    def __init__(self, session: ClusterView) -> None:
        self.session = session
        self.total = session.axes.full(session.ledger.total)
        self.tree = QueueTree(self.total)
        written = {name: queue.annotations for name, queue in session.queues.items()}
        self.paths = {name: parse_path(notes.get(HIERARCHY, "")) for name, notes in written.items()}
        self.weights = {name: parse_weights(notes.get(HIERARCHY_WEIGHTS, "")) for name, notes in written.items()}
        self.changed: dict[str, None] = {}
        session.ledger.followers.append(self.changed)
        for job in session.jobs.peek():
            self._place(job, job.sums.held)

    def compare(self, left: str, right: str) -> int:
        """-1, 0 or 1: which of two queues comes first."""
        self._catch_up()
        return self.tree.compare(self.paths[left], self.paths[right])

    def richer(self, job: Job, reclaimer: Task, candidates: Sequence[tuple[Task, Job]]) -> list[Task]:
        """Those candidates whose queue would come after that of ``job`` without them and with ``reclaimer``.

        Each comes with its job.
        """
        self._catch_up()
        request = reclaimer.template.vector
        held = added(self._held(), request)
        self._place(job, added(job.sums.held, request))
        victims = [task for task, theirs in candidates if self._is_richer(task, theirs, job, held)]
        self._place(job, job.sums.held)
        return victims

    def _is_richer(self, task: Task, job: Job, mine: Job, held: Sequence[int]) -> bool:
        self._place(job, added(job.sums.held, task.template.vector, -1))
        self.tree.update(added(held, task.template.vector, -1))
        first = self.tree.compare(self.paths[mine.queue], self.paths[job.queue]) < 0
        self._place(job, job.sums.held)
        return first

    def _catch_up(self) -> None:
        if not self.changed and not self.tree.root.stale:
            return
        for uid in self.changed:
            if job := self.session.jobs.peek_at(uid):
                self._place(job, job.sums.held)
        self.changed.clear()
        self.tree.update(self._held())

    def _place(self, job: Job, held: Vector) -> None:
        path, weights = self.paths[job.queue], self.weights[job.queue]
        self.tree.place(job.uid, path, weights, self._full(held), self._full(job.sums.total))

    def _held(self) -> list[int]:
        """What all jobs hold together."""
        held: list[int] = []
        for queue in self.session.queues.values():
            add_to(held, queue.sums.held)
        return self._full(held)

    def _full(self, vector: Vector) -> list[int]:
        """``vector`` as long as the total."""
        missing = len(self.total) - len(vector)
        return [*vector, *([0] * missing)] if missing >= 0 else list(vector[:missing])


def added(vector: Vector, more: Vector, times: int = 1) -> list[int]:
    """A new vector ``vector + times * more``."""
    total = list(vector)
    add_to(total, more, times)
    return total
