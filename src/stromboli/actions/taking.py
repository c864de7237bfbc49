"""What preempt and reclaim share: every starving job has one turn, and takes the room of a whole gang or nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from stromboli.actions.giving_up import Lenders
from stromboli.actions.patience import Patience
from stromboli.actions.starving import jobs_in_turn
from stromboli.actions.victim_search import Search
from stromboli.framework.jobs import QueueInfo
from stromboli.framework.session import Session
from stromboli.framework.statement import Statement
from stromboli.model.job import Job
from stromboli.model.task import Task

Take = Callable[[Session, Statement, Job], Search]
"""Lets a job take room in a statement; returns the search that was used."""


def between_jobs(
    session: Session, queue: QueueInfo, starving: list[Job], lenders: Lenders, take: Take, patience: Patience
) -> None:
    """Every job of ``queue`` that starves has one turn: what it took is committed if that makes it whole.

    With ``patience`` it goes on waiting where its victims are slow to end.
    """
    turns = jobs_in_turn(session, starving)
    while len(turns):
        job = turns.pop()
        if patience.rests(job):
            continue
        with session.statement() as given, session.statement() as statement:
            lent = lenders.release(given, job)
            search = take(session, statement, job)
            if session.ask.job_pipelined(job):
                search.spare(statement)
                if patience.postpones(job, statement):
                    statement.rollback(0)  # not discarded: no node is nominated for which nobody goes
                    given.rollback(0)
                    continue
                lenders.settle(given, lent, statement)
                commit(session, given, search.way.reason)
    if say := session.tells("no_preemptors"):
        say(queue=queue.name)


def while_starving(session: Session, job: Job, tasks: Iterable[Task]) -> Iterator[Task]:
    """One of ``tasks`` after the other, as long as ``job`` starves."""
    left = iter(tasks)
    while session.ask.job_starving(job):
        if (task := next(left, None)) is None:
            if say := session.tells("no_preemptor_task"):
                say(job=job)
            return
        yield task


def commit(session: Session, statement: Statement, action: str) -> None:
    """Commit what a job took, and count it where somebody is evicted."""
    if statement.has_evictions and (say := session.tells("metric.eviction_transaction")):
        say(action=action)
    statement.commit()
