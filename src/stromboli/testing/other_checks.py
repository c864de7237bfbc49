"""Checks of the other forms: ``.many`` for runs of equal tasks, ``.key`` for orders."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import suppress
from itertools import product
from typing import Any, Final

from stromboli.errors import PlacementError
from stromboli.framework.books.jobs import QueueInfo
from stromboli.framework.extension.answers import Answer
from stromboli.framework.session.session import Session
from stromboli.framework.statement.operation_kind import OperationKind
from stromboli.model.job import BINDING, BOUND, RUNNING, SUCCEEDED, Job
from stromboli.model.subjobs import SubJob
from stromboli.model.task import Task
from stromboli.testing.node_checks import per_node, said
from stromboli.testing.trial import MOST, Trial

# -- Orders ----------------------------------------------------------------------------------------------------------


def check_orders(trial: Trial) -> None:
    """Comparisons contradict themselves nowhere, and sort keys order as they do."""
    session = trial.session
    jobs = list(session.jobs.values())[:MOST]
    check_order(trial, "job_order", jobs)
    check_order(trial, "queue_order", list(session.queues.values()))
    for job in jobs:
        check_order(trial, "task_order", list(job.tasks.values())[:MOST])
        check_order(trial, "sub_job_order", list(session.sub_jobs(job).values())[:MOST])


def check_order(trial: Trial, point: str, items: Sequence[Any]) -> None:
    """The hooks of one order point over ``items``."""
    keys = trial.answers(point, "key")
    for answer in trial.answers(point, "scalar"):
        for left, right in product(items, items):
            order = _sign(trial.ask(answer.hook, answer.function, left, right))
            back = _sign(trial.ask(answer.hook, answer.function, right, left))
            if order != -back:
                trial.fail(answer.hook.name, f"says {order} of {left} and {right}, but {back} the other way round")
            for key in keys:
                _check_key_order(trial, key, left, right, order)


def _check_key_order(trial: Trial, answer: Answer, left: Any, right: Any, order: int) -> None:
    first, second = (trial.ask(answer.hook, answer.function, each) for each in (left, right))
    by_key = (first > second) - (first < second)
    if by_key != order:
        flaw = (
            f"gives {left} {first!r} and {right} {second!r}, which compare as {by_key}; {answer.hook.point.name} says"
        )
        trial.fail(answer.hook.name, f"{flaw} {order}")


def _sign(number: float) -> int:
    return (number > 0) - (number < 0)


# -- Runs of equal tasks: answers ------------------------------------------------------------------------------------


def check_many(trial: Trial) -> None:
    """``.many`` says what the plain form says while the tasks are placed one after the other."""
    session = trial.session
    for job, sub_job, tasks in runs(session) if len(session.table) else ():
        check_allocatable(trial, job, tasks)
        check_until(trial, "job_ready", job, tasks, ends=True)
        check_until(trial, "sub_job_ready", sub_job, tasks, ends=True)
        check_until(trial, "job_starving", job, tasks, ends=False)


def runs(session: Session) -> Iterator[tuple[Job, SubJob, list[Task]]]:
    """Pending tasks of one template, role and sub-job, with their job and sub-job."""
    for job in list(session.jobs.values()):
        for sub_job in session.sub_jobs(job).values():
            waiting = [task for task in sub_job.tasks if not task.node_name]
            for first in waiting[:1]:
                like = [each for each in waiting if each.role == first.role and each.template is first.template]
                yield job, sub_job, like[:MOST]


def check_allocatable(trial: Trial, job: Job, tasks: Sequence[Task]) -> None:
    """To how many of ``tasks``, placed one after the other, the answer stays true."""
    queue = trial.session.queues[job.queue]
    for one, many in _pairs(trial, "allocatable"):
        found = trial.ask(many.hook, many.function, queue, tasks[0], len(tasks))

        def goes_on(count: int, one: Answer = one) -> bool:
            return count < len(tasks) and bool(trial.ask(one.hook, one.function, queue, tasks[count]))

        _compare_counts(trial, many, tasks, found, goes_on)


def check_until(trial: Trial, point: str, part: Job | SubJob, tasks: Sequence[Task], *, ends: bool) -> None:
    """After how many of ``tasks``, at least one, the answer for a job or sub-job is ``ends``."""
    for one, many in _pairs(trial, point):
        found = trial.ask(many.hook, many.function, part, tasks[0], len(tasks))

        def goes_on(count: int, one: Answer = one) -> bool:
            return not (count and bool(trial.ask(one.hook, one.function, part)) is ends)

        _compare_counts(trial, many, tasks, found, goes_on)


def check_quotas(trial: Trial) -> None:
    """What a queue is allowed with ``own=`` follows from what it holds."""
    session = trial.session
    for job, _, tasks in runs(session) if len(session.table) else ():
        queue = session.queues[job.queue]
        for answer in trial.answers("allocatable", "many"):
            if answer.hook.own:
                said = [_after(trial, task, answer, queue, tasks[-1], 1) for task in tasks[:-1]]
                if len(set(said)) > 1:
                    what = f"says {said} for {tasks[-1]} when in turn each of {tasks[:-1]} has a place"
                    trial.fail(answer.hook.name, f"{what}; leave out own=")
        for answer in trial.answers("preemptive", "scalar"):
            if answer.hook.own and trial.ask(answer.hook, answer.function, queue, tasks):
                _check_each(trial, answer, queue, tasks)


SATED: Final = frozenset({BINDING, BOUND, RUNNING, SUCCEEDED})
"""States of tasks that want nothing more."""


def check_sated(trial: Trial) -> None:
    """With ``own=`` no job starves that has all it wants."""
    for job in trial.session.jobs.values():
        if job.index and job.is_ready() and SATED.issuperset(job.index):
            for answer in trial.answers("job_starving", "scalar"):
                if answer.hook.own and trial.ask(answer.hook, answer.function, job):
                    trial.fail(answer.hook.name, f"says that {job} starves, all of whose tasks run; leave out own=")


def _after(trial: Trial, placed: Task, answer: Answer, *asked: object) -> object:
    """What a hook answers while one task is ``placed``."""
    with trial.session.statement() as statement, suppress(PlacementError):  # a handler objects
        statement.place(trial.session.jobs[placed.job], (placed,), (0,), OperationKind.PIPELINE)
        return trial.ask(answer.hook, answer.function, *asked)
    return None


def _check_each(trial: Trial, answer: Answer, queue: QueueInfo, tasks: Sequence[Task]) -> None:
    """``tasks``, which are allowed together, must be allowed one after the other."""
    with trial.session.statement() as statement, suppress(PlacementError):
        for task in tasks:
            if not trial.ask(answer.hook, answer.function, queue, [task]):
                flaw = f"allows {list(tasks)} together, but not {task} once those before it are placed"
                trial.fail(answer.hook.name, f"{flaw}; leave out own=")
            statement.place(trial.session.jobs[task.job], (task,), (0,), OperationKind.PIPELINE)


def _pairs(trial: Trial, point: str) -> list[tuple[Answer, Answer]]:
    """The plain form and the form for runs of one point, if the plugin has both."""
    return list(zip(trial.answers(point, "scalar"), trial.answers(point, "many"), strict=False))


def _compare_counts(
    trial: Trial, many: Answer, tasks: Sequence[Task], found: int, goes_on: Callable[[int], bool]
) -> None:
    session, count = trial.session, 0
    with session.statement() as statement:
        while count <= len(tasks) and goes_on(count):
            for task in tasks[count : count + 1]:
                try:
                    statement.place(session.jobs[task.job], (task,), (0,), OperationKind.ALLOCATE)
                except PlacementError:  # a handler objects, so no run would come so far
                    return
            count += 1
    if found != count:
        trial.fail(many.hook.name, f"says {found!r} for {len(tasks)} tasks like {tasks[0]}; one by one it is {count}")


# -- Runs of equal tasks: handlers -----------------------------------------------------------------------------------


def check_handlers(trial: Trial) -> None:
    """A plugin that was told of a run at once answers as one that was told task by task; so when all is taken back."""
    session = trial.session
    told = session.hooks.handlers.allocate or session.hooks.handlers.deallocate
    if not len(session.table) or not told or not session.hooks.handlers.take_runs:
        return
    for number, (_, _, tasks) in enumerate(list(runs(session))[:2]):
        if len(tasks) > 1:
            together, single = (_told(trial, number, at_once) for at_once in (True, False))
            for what in (each for each in together if together[each] != single[each]):
                flaw = f"told at once, {what} is {together[what]!r}; told task by task {single[what]!r}"
                trial.fail("on_allocate.many and on_deallocate.many", flaw)


def _told(trial: Trial, number: int, at_once: bool) -> dict[str, Hashable]:
    """What the plugin answers once it knows of a run, and once that is taken back."""
    twin = Trial(trial.plugin_class, trial.arguments, trial.objects, trial.moves)
    session = twin.session
    job, _, tasks = list(runs(session))[number]
    rows = [row % len(session.table) for row in range(len(tasks))]
    parts = [(tasks, rows)] if at_once else [([task], [row]) for task, row in zip(tasks, rows, strict=True)]
    found: dict[str, Hashable] = {}
    with session.statement() as statement, suppress(PlacementError):
        for some, where in parts:
            statement.place(job, some, where, OperationKind.ALLOCATE)
        found = observed(twin, "after placing ")
    return {**found, **observed(twin, "after taking back ")} if found else {}


def observed(trial: Trial, moment: str) -> dict[str, Hashable]:
    """What the plugin says of tasks, jobs and queues, by the question."""
    session = trial.session
    found: dict[str, Hashable] = {}
    for number, answer in enumerate(per_node(trial)):
        for task in trial.waiting:
            found[f"{moment}{answer.hook.name} #{number} of {task.key}"] = tuple(said(trial, answer, task))
    jobs, queues = list(session.jobs.values()), list(session.queues.values())
    questions: dict[str, list[tuple[Any, ...]]] = {
        "allocatable": [
            (session.queues[task_job.queue], task) for task_job, _, tasks in runs(session) for task in tasks
        ],
        "overused": [(queue,) for queue in queues],
        "job_ready": [(job,) for job in jobs],
        "job_order": list(product(jobs, jobs)),
        "queue_order": list(product(queues, queues)),
    }
    for point, arguments in questions.items():
        for answer in trial.answers(point, "scalar"):
            for asked in arguments:
                found[f"{moment}{point}{asked}"] = trial.ask(answer.hook, answer.function, *asked)
    return found
