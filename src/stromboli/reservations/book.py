"""The reservations of a session: which pods hold room since when, and what pods are to state from now on.

A reservation is a waiting pod's claim on the room of one node, kept over sessions; a *holder* is a job with at least
one.  Statements only note wishes; the last wish for a task counts, and goes into the plan when the session closes if
the pod does not state it already.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from stromboli.framework.books.plan import PodAnnotations
from stromboli.framework.statement.operation import Operation
from stromboli.framework.statement.operation_kind import OperationKind
from stromboli.model.job import PIPELINED, RELEASING, Job
from stromboli.model.jobs.roles import roles_pipelined
from stromboli.model.proof import stated_since as proven_since
from stromboli.model.reservation import Held, stated, written
from stromboli.model.subjobs import counts_by_group, min_sub_jobs
from stromboli.model.task import Task
from stromboli.model.values import duration
from stromboli.reservations.memory import MEMORY, Delay, Hold, Memory, PodOnNode, decode, encode
from stromboli.reservations.terminating import Terminating

if TYPE_CHECKING:
    from stromboli.framework.statement.session_state import SessionState

TIMEOUT: Final = "10m"
"""The default of ``reservation-timeout``: how long room is held before it must be used."""

LIMIT: Final = "1h"
"""The default of ``reservation-limit``: how long room is held at most, however long victims take to terminate."""


class Reservations:
    """The reservations that outlive a session; without the gate PipelinedStatePersistence a session has none of this.

    ``stated`` are the pods, by uid, that stated a reservation when the session opened.  ``holders`` are the jobs, by
    uid, that hold room since an earlier session.  ``wishes`` says, by uid, what pods are to state, and ``wished``
    counts the wishes.  ``delays`` are the delays of evictions, by job, that have been noted in this session.
    """

    def __init__(self, session: SessionState) -> None:
        self._session = session
        self.terminating = Terminating(session)
        self._stored = session.snapshot.memory.get(MEMORY, {})
        self.memory = decode(self._stored)
        self.wishes: dict[str, tuple[Task, Held | None]] = {}
        self.wished = 0
        self.delays: dict[str, Delay] = {}
        self._cooldown: dict[str, float] = {}
        self._aged: dict[PodOnNode, Hold] = {}
        self.stated: Mapping[str, Task] = {task.uid: task for task in session.snapshot.reserved}
        self.holders: dict[str, Job] = {}
        self._standing: dict[str, str] = {}
        for uid, task in self.stated.items():
            if task.status is PIPELINED:
                self._standing[uid] = task.node_name
            elif task.status is not RELEASING:
                self.wish(task, None)  # it is bound, gated or finished, so its reservation is void

    # ------------------------------------------------------------------ what is held

    def of(self, job: Job) -> list[Task]:
        """The tasks of ``job`` that hold room since an earlier session, in task order."""
        return self._session.tasks_in_turn([task for task in job.of(PIPELINED) if self.is_held(task)])

    def is_held(self, task: Task) -> bool:
        """Whether ``task`` holds the room that its pod stated when the session opened."""
        return task.status is PIPELINED and self.held_on(task) == task.node_name

    def held_on(self, task: Task) -> str:
        """The node on which ``task`` holds room since an earlier session; empty where it holds none, or no longer."""
        return self._standing.get(task.uid, "")

    def will_hold(self, task: Task) -> bool:
        """Whether ``task`` holds the room that it waits for beyond this session, as things stand."""
        if task.uid in self.wishes:
            return self.wishes[task.uid][1] is not None
        return self.is_held(task)

    def waiting(self) -> dict[str, list[Task]]:
        """The tasks that hold room beyond this session as things stand, by job."""
        jobs, found = self._session.jobs, dict[str, list[Task]]()
        for uid in dict.fromkeys([*self.holders, *(task.job for task, _ in self.wishes.values())]):
            if jobs.peek_at(uid) is not None:
                tasks = [task for task in jobs[uid].of(PIPELINED) if self.will_hold(task)]
                found.update({uid: tasks} if tasks else {})
        return found

    def since(self, task: Task, node: str) -> float:
        """Since when ``task`` has held room on ``node``, in seconds since 1970; counted from now after a restart."""
        hold = self.memory.holds.get(PodOnNode(task.uid, node))
        return self._session.now if hold is None else hold.since

    def is_new(self, task: Task) -> bool:
        """Whether nothing is remembered of the room that ``task`` holds: the scheduler has been restarted since."""
        return PodOnNode(task.uid, task.node_name) not in self.memory.holds

    def shown_since(self, task: Task) -> float | None:
        """Since when ``task`` has held its room, to be shown; None where that is not known.

        For room that was found at the start of the scheduler, or of a tool, this is what the pod states, which decides
        nothing.
        """
        if self.is_held(task) and self.is_new(task):
            return self.memory.stated.get(PodOnNode(task.uid, task.node_name))
        return self.since(task, task.node_name)

    def age(self, task: Task, ends: float) -> float:
        """How long ``task`` has held its room, in seconds, without the time given to pods that terminate there.

        ``ends`` says when those that are still there must be gone.
        """
        now, pod = self._session.now, PodOnNode(task.uid, task.node_name)
        hold = self.memory.holds.get(pod, Hold(now)).exclude(now, ends)
        self._aged[pod] = hold
        return hold.age(now)

    def lasted(self, task: Task) -> float:
        """How long ``task`` has held its room, in seconds, without any deduction.

        What its annotations prove counts too, so that neither a restart nor an older statement resets it.
        """
        since = self.since(task, task.node_name)
        proven = proven_since(task.annotations) if self.held_on(task) == task.node_name else None
        return self._session.now - min(since, since if proven is None else proven)

    @cached_property
    def timeout(self) -> float:
        """How long room is held while no pod terminates there, in seconds: allocate's ``reservation-timeout``."""
        return duration.seconds(getattr(self._allocate, "reservation_timeout", TIMEOUT))

    @cached_property
    def limit(self) -> float:
        """How long room is held at most, in seconds: ``reservation-limit``, or the timeout if that is longer."""
        return max(self.timeout, duration.seconds(getattr(self._allocate, "reservation_limit", LIMIT)))

    @cached_property
    def _allocate(self) -> Any:
        session = self._session
        return session.registry.action("allocate")(session.config.arguments_of("allocate"))

    # ------------------------------------------------------------------ cooling down

    def cools_down(self, job: Job) -> bool:
        """Whether a reservation of the job has timed out, no longer ago than the timeout."""
        until = self._cooldown.get(job.uid) or self.memory.cooldown.get(job.uid, 0.0)
        return self._session.now < until

    def cool_down(self, job: Job) -> None:
        """For one timeout from now on, what the job keeps is not held for later sessions."""
        self._cooldown[job.uid] = self._session.now + self.timeout

    # ------------------------------------------------------------------ wishes

    def reject(self, task: Task) -> None:
        """Drop what ``task`` holds since an earlier session."""
        self._standing.pop(task.uid, None)
        self.wish(task, None)

    def wish(self, task: Task, held: Held | None) -> None:
        """Note that the pod of ``task`` is to state ``held``, or nothing."""
        self.wishes[task.uid] = (task, held)
        self.wished += 1

    def committed(self, operations: Iterable[Operation]) -> None:
        """Hold from now on what a committed statement leaves waiting, and no longer what it releases."""
        self._note(operations, _COMMITTED, lambda job: not self.cools_down(job))

    def kept(self, operations: Iterable[Operation]) -> None:
        """As for a committed statement; what is allocated, but not bound, is held as well: a gang is held whole."""
        self._note(operations, _KEPT, self._may_keep)

    def bound(self, tasks: Sequence[Task]) -> None:
        """Drop the reservations of ``tasks``, which are handed over for binding."""
        if self.stated or self.wishes:
            self._release([task for task in tasks if task.uid in self.stated or task.uid in self.wishes])

    def may_hold(self, job: Job) -> bool:
        """Whether what the job keeps now may be held for later sessions."""
        return self._may_keep(job) and is_whole(self._session, job)

    def _may_keep(self, job: Job) -> bool:
        return not job.gated and not self.cools_down(job)

    def _note(
        self, operations: Iterable[Operation], held: tuple[OperationKind, ...], may: Callable[[Job], bool]
    ) -> None:
        """Hold what ``operations`` of the ``held`` kinds place if the job ``may``; earlier holders keep theirs."""
        free: dict[str, bool] = {}
        for operation in operations:
            if operation.kind is OperationKind.UNPIPELINE:
                self._release(operation.tasks)
            elif operation.kind in held:
                job = operation.job
                if job.uid not in free:
                    free[job.uid] = may(job) or _has_victims(job)
                self._hold(operation.tasks, free[job.uid])

    def _hold(self, tasks: Sequence[Task], free: bool) -> None:
        for task in tasks:
            held = free or self.held_on(task)  # a part of a gang that moves is held at its new place in any case
            self.wish(task, Held(task.node_name, task.eviction_occurred) if held else None)

    def _release(self, tasks: Sequence[Task]) -> None:
        for task in tasks:
            self.wish(task, None)

    # ------------------------------------------------------------------ closing

    def close(self) -> None:
        """Put what pods are to state into the plan where they do not state it already, and store the memory."""
        holding: Mapping[str, str] = {}
        if self.stated or self.wishes or self._stored or self.delays:
            self._keep_whole()
            self._write()
            holding = self._holding()
            stored = encode(self._remembered(holding))
            if stored != self._stored:
                self._session.plan.memory[MEMORY] = stored
        if say := self._session.tells("metric.pipelined_tasks"):
            say(count=len(holding))

    def _keep_whole(self) -> None:
        """Release what jobs hold that would hold less than they need at once."""
        session = self._session
        touched = {task.job: None for task, _ in self.wishes.values()}
        broken = {uid for uid in touched if (job := session.jobs.peek_at(uid)) is None or not is_whole(session, job)}
        if not broken:
            return
        for task in (*self.stated.values(), *(task for task, _ in self.wishes.values())):
            if task.job in broken:
                self.wish(task, None)

    def _write(self) -> None:
        for uid, (task, held) in self.wishes.items():
            before = self.stated.get(uid)
            if held is not None if before is None else written(before.annotations) != stated(held):
                self._session.plan.annotations.append(PodAnnotations(uid, task.key, held))

    def _holding(self) -> dict[str, str]:
        """The nodes on which pods hold room once the wishes are written, by uid."""
        kept = {uid: node for uid, node in self._standing.items() if uid not in self.wishes}
        return {**kept, **{uid: held.node for uid, (_, held) in self.wishes.items() if held is not None}}

    def _remembered(self, holding: Mapping[str, str]) -> Memory:
        """What to remember of ``holding``, of jobs that cool down and of evictions that are delayed.

        If the clock goes back, everything counts from now: nothing ages, or cools down, for longer than the timeout.
        """
        now, known = self._session.now, self.memory
        cooldown = {uid: until for uid, until in known.cooldown.items() if until > now} | self._cooldown
        latest = now + self.timeout if cooldown else now
        return Memory(
            {pod: self._kept_hold(pod, now) for pod in itertools.starmap(PodOnNode, holding.items())},
            {uid: min(until, latest) for uid, until in cooldown.items()},
            self._delays(),
        )

    def _kept_hold(self, pod: PodOnNode, now: float) -> Hold:
        hold = self._aged.get(pod) or self.memory.holds.get(pod, Hold(now))
        return hold if hold.since <= now else hold._replace(since=now)

    def _delays(self) -> dict[str, Delay]:
        """The delays of jobs that are not ready yet, or want more than that."""
        session, ask, found = self._session, self._session.ask, dict(self.memory.delays)
        for uid, delay in self.delays.items():
            found[uid] = found.get(uid, Delay()).updated(delay)
        jobs = {uid: session.jobs.peek_at(uid) for uid in found}
        lacking = {uid for uid, job in jobs.items() if job and (not ask.job_ready(job) or ask.job_starving(job))}
        return {uid: delay for uid, delay in found.items() if uid in lacking}


_COMMITTED: Final = (OperationKind.PIPELINE,)
_KEPT: Final = (OperationKind.PIPELINE, OperationKind.ALLOCATE)
"""The operations whose tasks hold room once their statement is committed or kept."""


def _has_victims(job: Job) -> bool:
    """Whether pods were evicted for what the job waits for: then it holds all of it, even while it cools down."""
    return any(task.eviction_occurred for task in job.of(PIPELINED))


def is_whole(session: SessionState, job: Job) -> bool:
    """Whether the job is ready, or its reservations complete its minimum: in total, of each role and of sub-jobs."""
    if session.ask.job_ready(job):
        return True
    if not (job.is_pipelined() and roles_pipelined(job)):
        return False
    counts = counts_by_group(session.sub_jobs(job), "is_pipelined") if job.facts.is_split else {}
    return all(counts.get(group, 0) >= least for group, least in min_sub_jobs(job).items())
