"""What allocate has to do for each job: its waiting tasks, part by part, in the order in which they are placed."""

from __future__ import annotations

from collections.abc import Iterable

from stromboli.framework.session import Session
from stromboli.framework.turns import LessTurns
from stromboli.model.job import PENDING, Job
from stromboli.model.names import QUEUE_ALLOCATION_GATE
from stromboli.model.subjobs import SubJob
from stromboli.model.task import Task


class Tasks:
    """Waiting tasks of one part of a job; ``next`` is the place of the first one not taken yet."""

    __slots__ = ("next", "tasks")

    def __init__(self, tasks: list[Task], first: int = 0) -> None:
        self.tasks, self.next = tasks, first

    def __len__(self) -> int:
        return len(self.tasks) - self.next

    def clone(self) -> Tasks:
        """The same tasks, to be taken again from the same place."""
        return Tasks(self.tasks, self.next)

    @property
    def waiting(self) -> list[Task]:
        """The tasks not taken yet, in order."""
        return self.tasks[self.next :]


class Worksheet:
    """A job's waiting tasks by part.  ``parts`` is the order of the parts: those that the job needs come first."""

    __slots__ = ("job", "order", "required", "session", "sheets", "turns")

    def __init__(self, session: Session, job: Job) -> None:
        self.session, self.job = session, job
        self.sheets: dict[str, Tasks] = {}
        self.required: set[str] = set()
        self.turns: LessTurns[SubJob] = LessTurns(self.compare)

    def compare(self, left: SubJob, right: SubJob) -> int:
        """Required parts first, then as the plugins order them."""
        needs = (right.uid in self.required) - (left.uid in self.required)
        return needs or int(self.session.ask.sub_job_order(left, right))

    def __len__(self) -> int:
        return len(self.turns)

    def clone(self) -> Worksheet:
        """An independent worksheet over the same tasks."""
        twin = Worksheet(self.session, self.job)
        twin.required = self.required
        twin.sheets = {uid: sheet.clone() for uid, sheet in self.sheets.items()}
        for part in self.turns:
            twin.turns.push(part)
        return twin

    def adopt(self, other: Worksheet) -> None:
        """Go on where ``other`` has stopped."""
        self.sheets, self.turns = other.sheets, other.turns


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
    return Tasks(waiting_tasks(session, job.of(PENDING)))


def by_part(session: Session, job: Job) -> Worksheet:
    """The worksheet of a job that is split, or that must stay close together."""
    sheet = Worksheet(session, job)
    parts = list(session.sub_jobs(job).values())
    sheet.required = _required(session, job, parts)
    for part in parts:
        tasks = Tasks(waiting_tasks(session, (task for task in part.tasks if task.status is PENDING)))
        if len(tasks):
            sheet.sheets[part.uid] = tasks
            sheet.turns.push(part)
    return sheet


def _required(session: Session, job: Job, parts: list[SubJob]) -> set[str]:
    """The fewest unready parts, in order, that bring every group to its minimum of ready ones."""
    count: dict[str, int] = {}
    unready = LessTurns[SubJob](session.ask.sub_job_order)
    for part in parts:
        if sub_job_ready(session, job, part):
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


def sub_job_ready(session: Session, job: Job, part: SubJob) -> bool:
    """Whether a part has enough tasks; of a job without policies the job itself is asked."""
    return bool(session.ask.sub_job_ready(part) if job.has_sub_group_policy else session.ask.job_ready(job))


def sub_job_pipelined(session: Session, job: Job, part: SubJob) -> bool:
    """Whether a part is complete once room becomes free; of a job without policies the job itself is asked."""
    return bool(session.ask.sub_job_pipelined(part) if job.has_sub_group_policy else session.ask.job_pipelined(job))
