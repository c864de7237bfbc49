"""The loop of preempt and reclaim: every starving job has one turn, and gets room for its whole gang or nothing."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator

from stromboli.framework.books.jobs import QueueInfo
from stromboli.framework.session.session import Session
from stromboli.framework.statement.statement import Statement
from stromboli.model.job import Job
from stromboli.model.task import Task
from stromboli.preemption.eviction_delay import EvictionDelay
from stromboli.preemption.idle_room import IdleRoom
from stromboli.preemption.starving import jobs_in_turn
from stromboli.preemption.victim_search import Search
from stromboli.reservations.claims import YieldBeforeEviction

Take = Callable[[Session, Statement, Job], Search]
"""Makes room for a job in a statement; returns the search that was used."""


def run(
    session: Session,
    queue: QueueInfo,
    starving: list[Job],
    idle: IdleRoom,
    holders: YieldBeforeEviction,
    take: Take,
    delay: EvictionDelay,
) -> None:
    """Give every starving job of ``queue`` one turn, and commit its room if that completes the job.

    A job that ``idle`` room serves evicts nothing, and one that ``delay`` postpones goes on waiting.
    """
    turns = jobs_in_turn(session, starving)
    while len(turns):
        job = turns.pop()
        if idle.serves(job) or delay.rests(job):
            continue
        with session.statement() as released, session.statement() as statement:
            yielded = holders.release(released, job)
            search = take(session, statement, job)
            search.events.figures()
            if session.ask.job_pipelined(job):
                search.reprieve(statement)
                if not yielded and idle.replaces(statement):
                    continue
                if delay.postpones(job, statement):
                    statement.rollback(0)  # not discarded: without evictions no node is nominated
                    released.rollback(0)
                    continue
                holders.settle(released, yielded, statement)
                commit(session, released, search.policy.reason)
    session.tell("no_preemptors", queue=queue.name)


def while_starving(session: Session, job: Job, tasks: deque[Task]) -> Iterator[Task]:
    """Take ``tasks`` out one after the other, as long as ``job`` starves."""
    while session.ask.job_starving(job):
        if not tasks:
            session.tell("no_preemptor_task", job=job)
            return
        yield tasks.popleft()


def commit(session: Session, statement: Statement, action: str) -> None:
    """Commit the room of a job, and count the transaction if it evicts pods."""
    if statement.has_evictions:
        session.tell("metric.eviction_transaction", action=action)
    statement.commit()
