"""Checks of hooks that name victims: of what they answer, and of the promise of those that protect."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from itertools import product

from stromboli.framework.books.hyper_nodes import TOP
from stromboli.framework.extension.answers import Answer
from stromboli.model.job import Job
from stromboli.model.task import Task
from stromboli.preemption.gang_eviction import EvictionContext
from stromboli.testing.moves import make
from stromboli.testing.trial import MOST, Trial


def check_victims(trial: Trial) -> None:
    """Check that a task which a protecting hook permits among others is permitted alone, too."""
    placed = [task for task, _ in trial.session.snapshot.pods_on_nodes()][:MOST]
    for answer, actor in _questions(trial):
        let_go = trial.ask(answer.hook, answer.function, *actor, placed)
        for task in (let_go or ()) if answer.hook.protects else ():
            alone = trial.ask(answer.hook, answer.function, *actor, [task])
            if alone is not None and task not in alone:
                trial.fail(answer.hook.name, f"protects, lets {task} go among others, and does not let it go alone")


def check_own(trial: Trial) -> None:
    """Check that a vote with ``own=`` on a job depends on the job alone, not on other candidates or placements."""
    session, said = trial.session, dict[Hashable, object]()
    placed = [task for task, _ in session.snapshot.pods_on_nodes() if session.jobs.peek_at(task.job)][:MOST]
    voting = [(answer, actor) for answer, actor in _questions(trial) if answer.hook.own]
    with session.statement() as statement:
        for moves in ([], trial.moves):
            make(session, statement, moves)
            for at, (answer, actor) in enumerate(voting):
                for job, named in _by_job(trial, answer, actor, placed):
                    if named != (before := said.setdefault((at, job.uid, job.sums.moves), named)):
                        flaw = f"names {before} of {job.uid}, and {named} though no task of that job has moved"
                        trial.fail(answer.hook.name, f"{flaw}; leave out own=")


def check_by_priority(trial: Trial) -> None:
    """Check that a form for jobs with ``by_priority=`` says the same of jobs of one queue and priority at any time."""
    session = trial.session
    promising = [answer for point in ("preemptable", "reclaimable") for answer in trial.answers(point, "job")]
    promising = [answer for answer in promising if answer.hook.by_priority]
    with session.statement() as statement:
        for moves in ([], trial.moves):
            make(session, statement, moves)
            for answer, actor in product(promising, trial.waiting):
                _compare_jobs(trial, answer, actor)


def _compare_jobs(trial: Trial, answer: Answer, actor: Task) -> None:
    said = dict[Hashable, tuple[Job, bool]]()
    for job in list(trial.session.jobs.values())[:MOST]:
        if job.uid == actor.job:
            continue
        word = bool(trial.ask(answer.hook, answer.function, actor, job))
        other, before = said.setdefault((job.queue, job.priority), (job, word))
        if word is not before:
            flaw = f"says {before} of {other.uid} and {word} of {job.uid}, of the same queue and priority"
            trial.fail(answer.hook.name, f"{flaw}; leave out by_priority=")


def _by_job(
    trial: Trial, answer: Answer, actor: tuple[object, ...], placed: list[Task]
) -> Iterator[tuple[Job, list[Task]]]:
    """Each job of ``placed`` tasks with those of them that are named, among all of them and alone."""
    for uid in dict.fromkeys([task.job for task in placed]):
        own = [task for task in placed if task.job == uid]
        job = trial.session.jobs.peek_at(uid)
        for candidates in (placed, own):
            if job is None:
                continue
            named = trial.ask(answer.hook, answer.function, *actor, candidates) or ()
            yield job, [task for task in named if task.job == uid]


def _questions(trial: Trial) -> Iterator[tuple[Answer, tuple[object, ...]]]:
    """Hooks that name victims, and the preemptors that they are asked for."""
    actors: list[Task] = trial.waiting
    for answer in (*trial.answers("preemptable", "scalar"), *trial.answers("reclaimable", "scalar")):
        yield from ((answer, (actor,)) for actor in actors)
    for answer in trial.answers("unified_evictable", "scalar"):
        for job in list(trial.session.jobs.values())[:MOST]:
            yield answer, (EvictionContext("GangPreempt", job, TOP),)
    for answer in trial.answers("victim_tasks", "scalar"):
        yield answer, ()
