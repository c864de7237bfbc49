"""Places the tasks of one part of a job, one after another or in runs, until the part is ready."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from stromboli.allocation.pending_tasks import TaskCursor
from stromboli.allocation.placement_events import PlacementEvents
from stromboli.allocation.quota_reasons import tell_no_quota
from stromboli.errors import PlacementError, PluginError
from stromboli.framework.books.hyper_nodes import TOP
from stromboli.framework.books.plan import GateRemoval
from stromboli.framework.engine.fits import Fits
from stromboli.framework.engine.placement import Choice
from stromboli.framework.extension.reason import Reason
from stromboli.framework.session.session import Session
from stromboli.framework.session.shortages import Shortages
from stromboli.framework.session.topology import grown
from stromboli.framework.statement.statement import Statement
from stromboli.model.job import PENDING, Job
from stromboli.model.jobs.roles import READY, role_counts
from stromboli.model.names import QUEUE_ALLOCATION_GATE
from stromboli.model.subjobs import SubJob
from stromboli.model.task import Task
from stromboli.reservations.terminating import find

if TYPE_CHECKING:
    from stromboli.framework.engine.rows import Bools
    from stromboli.model.snapshot import HyperNodeInfo


GATES_FEATURE = "SchedulingGatesQueueAdmission"
"""The feature gate under which the scheduler takes its own gate off pods that have their quota."""

Many = list[Callable[..., int]]
"""The forms for runs of tasks of all plugins at one point."""


class Placing:
    """What all attempts of one action share: the ``events`` that they report, and the ``shortages`` of domains."""

    __slots__ = ("events", "shortages")

    def __init__(self, session: Session) -> None:
        self.events, self.shortages = PlacementEvents(session), Shortages(session)


AT_FIRST, MORE_THEN = 8, 16
"""How many tasks are looked at to see how long a run is, and how many times as many next: most runs are short where
tasks of several roles take turns."""


class TaskPlacer:
    """One attempt to place ``tasks`` of ``part`` within a hypernode, recorded in ``statement``.

    ``full`` is the template for which no run could be placed, and how far the nodes' journal had come then.
    ``failed`` are the roles of tasks that have found no node, None until it is asked for.
    """

    __slots__ = (
        "events", "failed", "full", "job", "nodes", "part", "queue", "session", "statement", "tasks", "where", "within",
    )  # fmt: skip

    def __init__(
        self,
        session: Session,
        events: PlacementEvents,
        job: Job,
        part: SubJob,
        tasks: TaskCursor,
        hyper_node: HyperNodeInfo,
    ) -> None:
        self.session, self.events, self.job, self.part, self.tasks = session, events, job, part, tasks
        self.queue = session.queues[job.queue]
        self.where = "" if hyper_node.name == TOP else hyper_node.name
        self.within: Bools | None = None if hyper_node.name == TOP else session.table.mask(hyper_node.rows)
        self.nodes = len(hyper_node.rows)
        self.statement = Statement(session)
        self.full: tuple[object, int] = (None, 0)
        self.failed: set[str] | None = None

    def run(self) -> Statement | None:
        """Place until the part is ready; the statement if it is ready or pipelined, else None with all undone."""
        if not self.nodes:
            return None
        self.part.lies_in = self.part.allocated_hyper_node
        try:
            return self._attempt()
        except BaseException:
            self.statement.discard()
            raise
        finally:
            self.part.lies_in = ""

    def _attempt(self) -> Statement | None:
        over = ready = False
        while len(self.tasks) and not over:
            over, ready = self._step()
        if ready or self.session.ask.sub_job_ready(self.job, self.part):
            self.events.part_ready(self.job, self.part)
            return self.statement
        if self.session.ask.sub_job_pipelined(self.job, self.part):
            self.events.part_pipelined(self.job, self.part)
            return self.statement
        self.statement.discard()
        return None

    # ------------------------------------------------------------------ steps

    def _step(self) -> tuple[bool, bool]:
        """Deal with the next task, or with a run of equal ones; whether the attempt is over, and the part ready."""
        self.tasks.choose_next()
        task = self.tasks.tasks[self.tasks.next]
        if self._run_of_tasks(task):
            return self._after_placing()
        self.tasks.next += 1
        if not self._may_try(task):
            return False, False
        refusal: Reason | None = self.session.ask.pre_predicate(task)
        if refusal is not None:
            return self._refused_beforehand(task, refusal), False
        try:
            choice = self._nominated(task) or find(self.session, task, self.within)
        except PluginError as error:
            return self._no_scores(error), False
        if choice is None:
            return self._no_node(task), False
        self._place((task,), choice)
        return self._after_placing()

    def _after_placing(self) -> tuple[bool, bool]:
        ready = self.session.ask.sub_job_ready(self.job, self.part)
        return ready, ready

    def _run_of_tasks(self, task: Task) -> bool:
        """Place a run of tasks like ``task`` at once; False when they must be looked at one by one."""
        tasks, first = self.tasks.tasks, self.tasks.next
        if not (self.tasks.may_run and tasks[first + 1].template is task.template and self._plain((task,), task.role)):
            return False
        moment = task.template, len(self.session.table.journal)
        asked = None if self.full == moment else self._many()
        if asked is None or self._role_failed(task) or self.session.ask.pre_predicate(task) is not None:
            return False
        count = self._length(task, first, *asked)
        try:
            choice = self.session.placer.place_run(tasks[first : first + count], self.within) if count > 1 else None
        except PluginError:  # one by one the task that it is about comes to light
            return False
        if choice is None or not choice.rows:
            self.full = moment  # nothing has room for such tasks until something moves
            return False
        self._take_run(tasks[first : first + len(choice.rows)], choice)
        return True

    def _take_run(self, tasks: list[Task], choice: Choice) -> None:
        """Place a run at once; or task by task where each is told in its step: then an objection ends the run."""
        if not (choice.stepwise and self.session.statement_events.tells_each):
            self.tasks.next += len(tasks)
            self._place(tasks, choice)
            return
        for task, row in zip(tasks, choice.rows, strict=True):
            self.tasks.next += 1
            self._look(task)
            if not self._place((task,), Choice([row], choice.kind)):
                return

    def _length(self, task: Task, first: int, allocatable: Many, ready: Many) -> int:
        """How many tasks from ``first`` on are alike, allocatable, and needed until the part is ready."""
        tasks = self.tasks.tasks
        most = min(len(tasks) - first, max([many(self.job, task, len(tasks) - first) for many in ready], default=1))
        count, seen = 1, 1
        while count == seen < most:
            seen = min(most, max(AT_FIRST, MORE_THEN * seen))
            alike = self.session.placer.run_length(tasks[first : first + seen])
            count += self._following(task, tasks[first + count : first + alike])
        return min([count, *(many(self.queue, task, count) for many in allocatable)])

    def _plain(self, tasks: Sequence[Task], role: str) -> int:
        """How many of ``tasks``, from the first on, are of ``role`` and need no look of their own."""
        places = self.session.ledger.second_places.rows
        for number, task in enumerate(tasks):
            if task.role != role or task.gates or task.nominated_node or task.uid in places:
                return number
        return len(tasks)

    def _following(self, task: Task, others: Sequence[Task]) -> int:
        """How many of ``others``, of its class, may come after ``task`` in a run: of one role, as minimums go by role.

        What the plugins say beforehand is known where it follows from the template, as ``task`` has been asked about.
        """
        count = self._plain(others, task.role)
        if self.session.hooks.by_template:
            return count
        refused = self.session.ask.pre_predicate
        return next((number for number in range(count) if refused(others[number]) is not None), count)

    def _many(self) -> tuple[Many, Many] | None:
        """The plugins' forms for runs, of allocatable and of job_ready; None when one of them has none."""
        hooks = self.session.hooks
        allocatable, ready = hooks.batch_forms["allocatable"], hooks.batch_forms["job_ready"]
        if allocatable is None or ready is None or self.job.facts.is_split or not hooks.handlers.take_runs:
            return None
        return allocatable, ready

    def _may_try(self, task: Task) -> bool:
        if not self.session.ask.allocatable(self.queue, task):
            self.events.overused(self.queue.name, task)
            tell_no_quota(self.session, self.job, self.queue, task)
            return False
        if task.gates:
            self._gated(task)
            return False
        if self._role_failed(task):
            text = f"Task {task.name} with role spec {task.role} has already predicated failed, skip"
            self.events.role_failed(task)
            self._note(task, Fits(error=text))
            return False
        self._look(task)
        return True

    def _look(self, task: Task) -> None:
        self.events.looking(self.job, task, self.nodes, self.within)

    def _gated(self, task: Task) -> None:
        """A task with our own gate: it has its quota, so the gate may go; it is placed in a later cycle."""
        admits = GATES_FEATURE in self.session.config.features
        if admits and task.annotations.get(QUEUE_ALLOCATION_GATE) == "true":
            self.events.gate_removed(task)
            self.session.plan.gates.append(GateRemoval(task.uid, task.key))

    def _role_failed(self, task: Task) -> bool:
        """Whether a task of the same role and part has found no node before."""
        return bool(task.role) and bool(self.job.fits) and task.role in self._failed_roles()

    def _failed_roles(self) -> set[str]:
        if self.failed is None:
            tasks = self.job.tasks
            members = set(self.part.task_uids) if self.job.facts.is_split else tasks
            self.failed = {tasks[uid].role for uid in self.job.fits if uid in members and uid in tasks}
        return self.failed

    def _note(self, task: Task, fits: Fits) -> None:
        """``task`` has found no node."""
        self.job.fits[task.uid] = fits
        if self.failed is not None:
            self.failed.add(task.role)

    # ------------------------------------------------------------------ nodes

    def _nominated(self, task: Task) -> Choice | None:
        """The node that an earlier preemption made room on, if it takes the task now."""
        row = self.session.table.statics.row.get(task.nominated_node, -1)
        if row < 0 or (self.within is not None and not self.within[row]):
            return None
        return self.session.placer.place(task, self.session.table.mask([row]))

    def _refused_beforehand(self, task: Task, refusal: Reason) -> bool:
        self.events.refused_beforehand(task, refusal.text)
        self._note(task, Fits.everywhere(refusal, self.nodes))
        return not self._go_on()

    def _no_scores(self, error: PluginError) -> bool:
        """A score out of its range: no node is best, so the task waits; others go on."""
        self.events.no_scores(error)
        return False

    def _no_node(self, task: Task) -> bool:
        fits = self.session.placer.refusals(task, self.within)
        if self.where:
            fits = Fits(fits.counts, fits.nodes, fits.error, self.where)
        self._note(task, fits)
        self.events.no_node(fits)
        return not self._go_on()

    def _place(self, tasks: tuple[Task, ...] | list[Task], choice: Choice) -> bool:
        """Place ``tasks``; False when a handler objects, which the statement has told: then they go on waiting."""
        if len(tasks) > 1:
            self._look(tasks[0])
        self.events.placing(tasks, choice)
        try:
            self.statement.place(self.job, tasks, choice.rows, choice.kind)
        except PlacementError:
            return False
        if self.part.network_topology is not None:
            for row in dict.fromkeys(choice.rows):
                self.part.lies_in = grown(self.session, self.part.lies_in, row)
        if not self.session.narrator.mute.on:
            self.session.statement_events.counters.placed(self.job, len(tasks))
        return True

    # ------------------------------------------------------------------ going on after a failure

    def _go_on(self) -> bool:
        """Whether other tasks may still complete the gang after one has found no node."""
        job, part = self.job, self.part
        if job.min_available == len(job.tasks) or part.min_available >= self._size():
            return False
        roles = job.facts.task_min
        if job.facts.is_split or not roles:
            return True
        failed = self._failed_roles()
        if job.min_available < sum(roles.values()):
            left = sum(task.role not in failed for task in job.of(PENDING))
            return job.ready_task_num() + left >= job.min_available
        have = role_counts(job, *READY, pending_best_effort=True)
        return all(not roles.get(role) or have.get(role, 0) >= roles[role] for role in failed)

    def _size(self) -> int:
        return len(self.part.task_uids) if self.job.facts.is_split else len(self.job.tasks)
