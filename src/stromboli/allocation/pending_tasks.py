"""What allocate has to do for each job: its waiting tasks, part by part, in the order in which they are placed."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from collections.abc import Set as AbstractSet

from stromboli.framework.books.priority_queue import HeapQueue
from stromboli.framework.session.session import Session
from stromboli.model.job import PENDING, Job
from stromboli.model.subjobs import SubJob, min_sub_jobs
from stromboli.model.task import Task, is_held_back


class TaskCursor:
    """Waiting tasks of one part of a job; ``next`` is the place of the first one not taken yet.

    With ``queue`` the order depends on what has been placed, and each task is chosen when its turn comes.
    """

    __slots__ = ("next", "queue", "tasks")

    def __init__(self, tasks: list[Task], first: int = 0, queue: HeapQueue[Task] | None = None) -> None:
        self.tasks, self.next, self.queue = tasks, first, queue

    def __len__(self) -> int:
        return len(self.tasks) - self.next

    def clone(self) -> TaskCursor:
        """The same tasks, to be taken again from the same place."""
        if self.queue is None:
            return TaskCursor(self.tasks, self.next)
        return TaskCursor(list(self.tasks), self.next, self.queue.clone())

    def choose_next(self) -> None:
        """Bring the task whose turn it is now to its place, unless it is there already."""
        if self.queue is not None and len(self.queue) == len(self):
            task = self.queue.pop()
            self.tasks.remove(task)
            self.tasks.insert(self.next, task)

    @property
    def may_run(self) -> bool:
        """Whether several are left, in an order that stands."""
        return self.queue is None and len(self) > 1

    @property
    def waiting(self) -> list[Task]:
        """The tasks not taken yet, in order."""
        return self.tasks[self.next :]


class Worksheet:
    """A job's waiting tasks by part, those that the job needs first.

    ``hyper_node`` is where the job was placed last and ``places`` where its parts lie then, by id.
    """

    __slots__ = ("hyper_node", "job", "places", "queue", "required", "session", "sheets")

    def __init__(self, session: Session, job: Job, required: AbstractSet[str]) -> None:
        self.session, self.job, self.required = session, job, required
        self.hyper_node = ""
        self.places: dict[str, str] = {}
        self.sheets: dict[str, TaskCursor] = {}
        self.queue: HeapQueue[SubJob] = HeapQueue(_by_need(session, required))

    def __len__(self) -> int:
        return len(self.queue)

    def clone(self) -> Worksheet:
        """An independent worksheet over the same tasks."""
        twin = Worksheet(self.session, self.job, self.required)
        twin.sheets = {uid: sheet.clone() for uid, sheet in self.sheets.items()}
        for part in self.queue:
            twin.queue.push(part)
        return twin

    def adopt(self, other: Worksheet, hyper_node: str) -> None:
        """Go on where ``other``, placed in ``hyper_node``, has stopped."""
        self.sheets, self.queue, self.places, self.hyper_node = other.sheets, other.queue, other.places, hyper_node


def _by_need(session: Session, required: AbstractSet[str]) -> Callable[[SubJob, SubJob], int]:
    """The order of parts: those in ``required`` first, then as the plugins order them."""

    def compare(left: SubJob, right: SubJob) -> int:
        needs = (right.uid in required) - (left.uid in required)
        return needs or session.ask.sub_job_order(left, right)

    return compare


def waiting_tasks(session: Session, tasks: Iterable[Task]) -> list[Task]:
    """The ``tasks`` that allocate places: pending, with a request, and without a scheduling gate of another owner."""
    found: list[Task] = []
    for task in tasks:
        if is_held_back(task):
            session.tell("task_gated", task=task)
        elif task.template.best_effort:
            session.tell("task_best_effort", task=task)
        else:
            found.append(task)
    return session.tasks_in_turn(found)


def whole(session: Session, job: Job) -> TaskCursor:
    """The waiting tasks of a job that is not split."""
    again = session.ledger.second_places
    listed = filter(again.waits, job.tasks.values()) if again.rows else job.of(PENDING)
    return _tasks(session, waiting_tasks(session, listed))


def _tasks(session: Session, tasks: list[Task]) -> TaskCursor:
    """``tasks`` to be taken in their order, which may change meanwhile where a plugin gives no key for it."""
    order = session.hooks.orders["task_order"]
    if order.key is not None:
        return TaskCursor(tasks)
    queue = HeapQueue[Task](order.compare)
    for task in tasks:
        queue.push(task)
    return TaskCursor(tasks, 0, queue)


def by_part(session: Session, job: Job, *, gated: bool = True) -> Worksheet:
    """The worksheet of a job part by part; ``gated`` says whether tasks with our own gate have a place in it."""
    parts = list(session.sub_jobs(job).values())
    sheet = Worksheet(session, job, _required(session, job, parts))
    for part in parts:
        pending = (
            task for task in part.tasks if session.ledger.second_places.waits(task) and (gated or not task.gates)
        )
        tasks = _tasks(session, waiting_tasks(session, pending))
        if len(tasks):
            sheet.sheets[part.uid] = tasks
            sheet.queue.push(part)
    return sheet


def _required(session: Session, job: Job, parts: list[SubJob]) -> set[str]:
    """The fewest unready parts, in order, that bring every group to its minimum of ready ones."""
    count: dict[str, int] = {}
    unready = HeapQueue[SubJob](session.ask.sub_job_order)
    for part in parts:
        if session.ask.sub_job_ready(job, part):
            count[part.group] = count.get(part.group, 0) + 1
        else:
            unready.push(part)
    required, least = set[str](), min_sub_jobs(job)
    while len(unready):
        part = unready.pop()
        if count.get(part.group, 0) < least.get(part.group, 0):
            required.add(part.uid)
            count[part.group] = count.get(part.group, 0) + 1
    return required
