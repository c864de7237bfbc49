"""reclaim: across queues, starving jobs of queues below their share take room from queues above theirs."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from stromboli.framework.extension.action import Action
from stromboli.framework.session.session import Session
from stromboli.framework.statement.statement import Statement
from stromboli.model.job import Job
from stromboli.model.task import Task
from stromboli.plugin import arg
from stromboli.preemption.eviction_delay import PATIENCE, EvictionDelay, is_part
from stromboli.preemption.eviction_policy import RECLAIM
from stromboli.preemption.idle_room import IdleRoom
from stromboli.preemption.preempt_loop import run, while_starving
from stromboli.preemption.starving import in_turn, never_preempts, pending_tasks, waiting
from stromboli.preemption.victim_search import Search
from stromboli.reservations.claims import YieldBeforeEviction


class Reclaim(Action):
    """Queue by queue: every starving job takes from other queues, a whole gang or nothing."""

    name = "reclaim"
    minimal_victims = arg("minimal-victims", bool, True)
    patience = arg("patience", float, PATIENCE, is_part)

    def execute(self, session: Session) -> None:
        """Take room for every starving job of queues that are not overused."""
        found = waiting(session, self.name)
        session.tell("reclaim_started", jobs=len(session.jobs), queues=len(session.queues))
        queues, holders = in_turn(session, found.queues), YieldBeforeEviction(session)
        delay = EvictionDelay(session, self.patience)
        with IdleRoom(session) as idle:
            while len(queues):
                queue = queues.pop()
                if session.ask.overused(queue):
                    session.tell("queue_overused", queue=queue.name)
                    continue
                run(session, queue, found.of(queue.name), idle, holders, self.take, delay)

    def take(self, session: Session, statement: Statement, job: Job) -> Search:
        """Place tasks of ``job``, one after the other, as long as it starves; returns the search that was used."""
        search = self.search(session, job)
        tasks = deque(pending_tasks(session, job))
        session.tell("reclaim_tasks", tasks=len(tasks), job=job)
        for task in while_starving(session, job, tasks):
            if self.may_reclaim(search, task):
                search.place(statement, task, tasks)
        return search

    def search(self, session: Session, job: Job) -> Search:
        """The search for ``job`` among the tasks of other queues that may be taken back."""
        minimal = self.minimal_victims and not session.compat.asks("minimal-victims")
        return Search(session, job, RECLAIM, scope(session, job), minimal=minimal)

    def may_reclaim(self, search: Search, task: Task) -> bool:
        """Whether ``task`` may take anything back for its queue."""
        session, queue = search.session, search.queue
        if never_preempts(search.job, task):
            session.tell("reclaim_never", task=task)
            return False
        if not session.ask.preemptive(queue, [task]):
            session.tell("reclaim_refused", queue=queue.name, name=task.name)
            return False
        return not search.refused_beforehand(task)


def scope(session: Session, job: Job) -> Callable[[Job], bool]:
    """Which jobs ``job`` may take from: those of other queues that give back what they have beyond their share."""
    own, queues = job.queue, session.queues
    return lambda other: other.queue != own and other.queue in queues and queues[other.queue].reclaimable
