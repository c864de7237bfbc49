"""What allocate has to do for each job: its waiting tasks, part by part, in the order in which they are placed."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from collections.abc import Set as AbstractSet

from stromboli.framework.books.priority_queue import LessTurns
from stromboli.framework.session.session import Session
from stromboli.model.job import PENDING, Job
from stromboli.model.names import QUEUE_ALLOCATION_GATE
from stromboli.model.subjobs import SubJob
from stromboli.model.task import Task


class Tasks:
    """Waiting tasks of one part of a job; ``next`` is the place of the first one not taken yet.

    With ``turns`` the order depends on what has been placed, and each task is chosen when its turn comes.
    """

    __slots__ = ("next", "tasks", "turns")

    def __init__(self, tasks: list[Task], first: int = 0, turns: LessTurns[Task] | None = None) -> None:
        self.tasks, self.next, self.turns = tasks, first, turns

    def __len__(self) -> int:
        return len(self.tasks) - self.next

    def clone(self) -> Tasks:
        """The same tasks, to be taken again from the same place."""
        if self.turns is None:
            return Tasks(self.tasks, self.next)
        return Tasks(list(self.tasks), self.next, self.turns.clone())

    def choose_next(self) -> None:
        """Bring the task whose turn it is now to its place, unless it is there already."""
        if self.turns is not None and len(self.turns) == len(self):
            task = self.turns.pop()
            self.tasks.remove(task)
            self.tasks.insert(self.next, task)

    @property
    def may_run(self) -> bool:
        """Whether several are left, in an order that stands."""
        return self.turns is None and len(self) > 1

    @property
    def waiting(self) -> list[Task]:
        """The tasks not taken yet, in order."""
        return self.tasks[self.next :]


class Worksheet:
    """A job's waiting tasks by part, those that the job needs first.

    ``hyper_node`` is where the job was placed last and ``places`` where its parts lie then, by id.
    """

    __slots__ = ("hyper_node", "job", "places", "required", "session", "sheets", "turns")

    def __init__(self, session: Session, job: Job, required: AbstractSet[str]) -> None:
        self.session, self.job, self.required = session, job, required
        self.hyper_node = ""
        self.places: dict[str, str] = {}
        self.sheets: dict[str, Tasks] = {}
        self.turns: LessTurns[SubJob] = LessTurns(_by_need(session, required))

    def __len__(self) -> int:
        return len(self.turns)

    def clone(self) -> Worksheet:
        """An independent worksheet over the same tasks."""
        twin = Worksheet(self.session, self.job, self.required)
        twin.sheets = {uid: sheet.clone() for uid, sheet in self.sheets.items()}
        for part in self.turns:
            twin.turns.push(part)
        return twin

    def adopt(self, other: Worksheet, hyper_node: str) -> None:
        """Go on where ``other``, placed in ``hyper_node``, has stopped."""
        self.sheets, self.turns, self.places, self.hyper_node = other.sheets, other.turns, other.places, hyper_node


def _by_need(session: Session, required: AbstractSet[str]) -> Callable[[SubJob, SubJob], int]:
    """The order of parts: those in ``required`` first, then as the plugins order them."""

    def compare(left: SubJob, right: SubJob) -> int:
        needs = (right.uid in required) - (left.uid in required)
        return needs or session.ask.sub_job_order(left, right)

    return compare


def waiting_tasks(session: Session, tasks: Iterable[Task]) -> list[Task]:
    """Those of ``tasks`` that allocate places: pending, asking for something, kept back by nobody else's gate."""
    gated, best_effort = session.tells("task_gated"), session.tells("task_best_effort")
    found: list[Task] = []
    for task in tasks:
        if task.gates and task.gates != (QUEUE_ALLOCATION_GATE,):
            if gated:
                gated(task=task)
        elif task.template.best_effort:
            if best_effort:
                best_effort(task=task)
        else:
            found.append(task)
    return session.tasks_in_turn(found)


def whole(session: Session, job: Job) -> Tasks:
    """The waiting tasks of a job that is not split."""
    return _tasks(session, waiting_tasks(session, job.of(PENDING)))


def _tasks(session: Session, tasks: list[Task]) -> Tasks:
    """``tasks`` to be taken in their order, which may change meanwhile where a plugin gives no key for it."""
    order = session.hooks.orders["task_order"]
    if order.key is not None:
        return Tasks(tasks)
    turns = LessTurns[Task](order.compare)
    for task in tasks:
        turns.push(task)
    return Tasks(tasks, 0, turns)


def by_part(session: Session, job: Job, *, gated: bool = True) -> Worksheet:
    """The worksheet of a job part by part; ``gated`` says whether tasks with our own gate have a place in it."""
    parts = list(session.sub_jobs(job).values())
    sheet = Worksheet(session, job, _required(session, job, parts))
    for part in parts:
        pending = (task for task in part.tasks if task.status is PENDING and (gated or not task.gates))
        tasks = _tasks(session, waiting_tasks(session, pending))
        if len(tasks):
            sheet.sheets[part.uid] = tasks
            sheet.turns.push(part)
    return sheet


def _required(session: Session, job: Job, parts: list[SubJob]) -> set[str]:
    """The fewest unready parts, in order, that bring every group to its minimum of ready ones."""
    count: dict[str, int] = {}
    unready = LessTurns[SubJob](session.ask.sub_job_order)
    for part in parts:
        if session.ask.sub_job_ready(job, part):
            count[part.group] = count.get(part.group, 0) + 1
        else:
            unready.push(part)
    required: set[str] = set()
    while len(unready):
        part = unready.pop()
        if count.get(part.group, 0) < job.min_sub_jobs.get(part.group, 0):
            required.add(part.uid)
            count[part.group] = count.get(part.group, 0) + 1
    return required
