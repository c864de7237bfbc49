"""A session's book of reservations: who holds room since when, and what pods shall state of it from now on.

A reservation is a waiting pod's claim on the room of one node, kept over sessions; a *holder* is a job with at least
one.  Statements only note what they wish; the last wish for a task counts, and what differs from what its pod states
already goes into the plan when the session closes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from stromboli.framework.operation import Entry, Operation
from stromboli.framework.plan import PodAnnotations
from stromboli.model import duration
from stromboli.model.job import PIPELINED, RELEASING, Job
from stromboli.model.reservation import Held, stated, written
from stromboli.model.subjobs import counts_by_group
from stromboli.model.task import Task

if TYPE_CHECKING:
    from stromboli.framework.session import Session

MEMORY: Final = "reservations"
"""Under which name the session remembers, for later cycles, since when room is held, which jobs are cooling down, and
since when jobs have been about to evict others, who are how slow to end."""

TIMEOUT: Final = "10m"
"""How long a reservation may stay unredeemed where the action allocate is not told otherwise."""


class Reservations:
    """``stated`` are the pods that said anything of a reservation when the session opened, by uid; ``holders`` the jobs
    that hold room since an earlier session, by uid; ``wishes`` what pods shall state, by uid, ``wished`` how often
    anything was wished.

    Without the gate PipelinedStatePersistence a session has none of this.
    """

    def __init__(self, session: Session) -> None:
        self._session = session
        self._known = session.snapshot.memory.get(MEMORY, {})
        self.wishes: dict[str, tuple[Task, Held | None]] = {}
        self.wished = 0
        self._cooling: dict[str, float] = {}
        self._asked: dict[str, float] = {}
        self._aging: dict[str, float] = {}
        self.stated: Mapping[str, Task] = {task.uid: task for task in session.snapshot.reserved}
        self.holders: dict[str, Job] = {}
        self._standing: dict[str, str] = {}
        for uid, task in self.stated.items():
            if task.status is PIPELINED:
                self._standing[uid] = task.node_name
            elif task.status is not RELEASING:
                self.wish(task, None)  # it is bound, gated or over: what it states means nothing any more

    # ------------------------------------------------------------------ what is held

    def of(self, job: Job) -> list[Task]:
        """The tasks of ``job`` that hold room since an earlier session, in the order of their turns."""
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
        """Who holds room beyond this session as things stand, by job; tasks as the session has them."""
        jobs, found = self._session.jobs, dict[str, list[Task]]()
        for uid in dict.fromkeys([*self.holders, *(task.job for task, _ in self.wishes.values())]):
            if jobs.peek_at(uid) is not None:
                tasks = [task for task in jobs[uid].of(PIPELINED) if self.will_hold(task)]
                found.update({uid: tasks} if tasks else {})
        return found

    def since(self, task: Task, node: str) -> float:
        """Since when ``task`` has held room on ``node``, in seconds since 1970; a restart begins anew."""
        return self._known.get(_since(task.uid, node), self._session.now)

    def is_new(self, task: Task) -> bool:
        """Whether nothing is remembered of the room that ``task`` holds: the scheduler has been started since."""
        return _since(task.uid, task.node_name) not in self._known

    def told_since(self, task: Task) -> float | None:
        """Since when to say that ``task`` holds its room; None where nobody knows.

        Of room that was found when the scheduler, or whoever only looks, began, others may know: by what they know
        nothing is judged.
        """
        if self.is_held(task) and self.is_new(task):
            return self._known.get(stated_since(task.uid, task.node_name))
        return self.since(task, task.node_name)

    def age(self, task: Task, ends: float) -> float:
        """For how long ``task`` has held its room, in seconds, less the time that those had who were ending there.

        Those who are still there have it until ``ends``.  Who is there at the first look has had it since the room was
        held, who comes later from now on; what they had is taken off once, and given back where they leave early.
        """
        node, now, known = task.node_name, self._session.now, self._known
        since, aging, ending = min(self.since(task, node), now), _aging(task.uid, node), _ending(task.uid, node)
        begun = until = max(since, ends)
        if ending in known:
            until, latest = known[ending], max(ends, now)
            more = latest - max(until, now)
            begun = min(max(known[aging] + more, since), latest)  # a clock that goes back begins anew
            until = latest if more else until
        self._aging |= {aging: begun, ending: until}
        return now - begun

    @cached_property
    def timeout(self) -> float:
        """How long room is held at most, in seconds: the argument ``reservation-timeout`` of the action allocate."""
        session = self._session
        action: Any = session.registry.action("allocate")(session.config.arguments_of("allocate"))
        return duration.seconds(getattr(action, "reservation_timeout", TIMEOUT))

    # ------------------------------------------------------------------ cooling down

    def cools_down(self, job: Job) -> bool:
        """Whether the job has let a reservation grow too old, not longer than the timeout ago."""
        until = self._cooling.get(job.uid) or self._known.get(_cooling(job.uid), 0.0)
        return self._session.now < until

    def cool_down(self, job: Job) -> None:
        """For one timeout from now on what the job keeps lasts as long as its session."""
        self._cooling[job.uid] = self._session.now + self.timeout

    # ------------------------------------------------------------------ asking

    def asking_since(self, job: Job) -> float:
        """Since when ``job`` has been about to evict others; a restart, and a clock that goes back, begin anew."""
        now, key = self._session.now, _asking(job.uid)
        return self._asked.setdefault(key, min(now, self._known.get(key, now)))

    def postpone(self, job: Job, excess: float) -> None:
        """``job`` does not evict others in this session: the slowest ends so many seconds later than is usual.

        Of what several actions find the quickest counts.
        """
        key = _excess(job.uid)
        self._asked[key] = min(excess, self._asked.get(key, excess))

    def postpones(self, job: Job) -> bool:
        """Whether ``job`` has put off an eviction in this session."""
        return _excess(job.uid) in self._asked

    def excess_found(self, job: Job) -> float:
        """What :meth:`postpone` was told of ``job`` in an earlier session; 0 where nothing was."""
        return self._known.get(_excess(job.uid), 0.0)

    def _still_asking(self) -> dict[str, float]:
        """What is to be remembered of every job that is not ready yet, or wants more than that."""
        session, ask = self._session, self._session.ask
        found = {key: when for key, when in self._known.items() if key.startswith((_ASKING, _EXCESS))} | self._asked
        jobs = {uid: session.jobs.peek_at(uid) for uid in map(_uid, found)}
        lacking = {uid for uid, job in jobs.items() if job and (not ask.job_ready(job) or ask.job_starving(job))}
        return {key: when for key, when in found.items() if _uid(key) in lacking}

    # ------------------------------------------------------------------ wishes

    def reject(self, task: Task) -> None:
        """What ``task`` holds since an earlier session does not stand."""
        self._standing.pop(task.uid, None)
        self.wish(task, None)

    def wish(self, task: Task, held: Held | None) -> None:
        """The pod of ``task`` shall state ``held``, or nothing."""
        self.wishes[task.uid] = (task, held)
        self.wished += 1

    def committed(self, entries: Iterable[Entry]) -> None:
        """What a committed statement leaves waiting is held from now on, what it lets go no longer."""
        self._note(entries, _COMMITTED, lambda job: not self.cools_down(job))

    def kept(self, entries: Iterable[Entry]) -> None:
        """As for a committed statement; what is allocated, but not bound, is held as well: a gang is held whole."""
        self._note(entries, _KEPT, self._may_keep)

    def bound(self, tasks: Sequence[Task]) -> None:
        """``tasks`` are handed over for binding: they need no reservation any more."""
        if self.stated or self.wishes:
            self._let_go([task for task in tasks if task.uid in self.stated or task.uid in self.wishes])

    def may_hold(self, job: Job) -> bool:
        """Whether what the job keeps now may be held for later sessions."""
        return self._may_keep(job) and is_whole(self._session, job)

    def _may_keep(self, job: Job) -> bool:
        return not job.gated and not self.cools_down(job)

    def _note(self, entries: Iterable[Entry], held: frozenset[Operation], may: Callable[[Job], bool]) -> None:
        """What ``entries`` place by an operation of ``held`` is held, where the job ``may``; who held room holds on."""
        free: dict[str, bool] = {}
        for entry in entries:
            if entry.kind is Operation.UNPIPELINE:
                self._let_go(entry.tasks)
            elif entry.kind in held:
                job = entry.job
                if job.uid not in free:
                    free[job.uid] = may(job) or _was_paid_for(job)
                self._hold(entry.tasks, free[job.uid])

    def _hold(self, tasks: Sequence[Task], free: bool) -> None:
        for task in tasks:
            held = free or self.held_on(task)  # a part of a gang that moves is held there, whatever has come since
            self.wish(task, Held(task.node_name, task.eviction_occurred) if held else None)

    def _let_go(self, tasks: Sequence[Task]) -> None:
        for task in tasks:
            self.wish(task, None)

    # ------------------------------------------------------------------ closing

    def close(self) -> None:
        """Put what pods shall state into the plan where they state something else; remember since when it holds."""
        holding: Mapping[str, str] = {}
        if self.stated or self.wishes or self._known or self._asked:
            self._keep_whole()
            self._write()
            holding = self._holding()
            self._remember(holding)
        if say := self._session.tells("metric.pipelined_tasks"):
            say(count=len(holding))

    def _keep_whole(self) -> None:
        """A job that would hold less than it needs at once holds nothing."""
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
        """The nodes on which pods hold room once what is wished is written, by uid."""
        kept = {uid: node for uid, node in self._standing.items() if uid not in self.wishes}
        return {**kept, **{uid: held.node for uid, (_, held) in self.wishes.items() if held is not None}}

    def _remember(self, holding: Mapping[str, str]) -> None:
        """A clock that goes back begins anew: nothing ages, or cools down, for longer than the timeout from now on."""
        now, known = self._session.now, self._known
        keys = [_since(uid, node) for uid, node in holding.items()]
        kept = {key: min(known.get(key, now), now) for key in keys}
        aging = {**known, **self._aging}
        ages = (key(uid, node) for uid, node in holding.items() for key in (_aging, _ending))
        kept.update((key, aging[key]) for key in ages if key in aging)
        cooling = {key: until for key, until in known.items() if key.startswith(_COOLING) and until > now}
        cooling |= {_cooling(uid): until for uid, until in self._cooling.items()}
        latest = now + self.timeout if cooling else now
        found = {**kept, **{key: min(until, latest) for key, until in cooling.items()}, **self._still_asking()}
        if found != known:
            self._session.plan.memory[MEMORY] = found


_COMMITTED: Final = frozenset({Operation.PIPELINE})
_KEPT: Final = frozenset({Operation.PIPELINE, Operation.ALLOCATE})
"""The operations that make room held, where their statement is committed or kept."""

_COOLING: Final = "cooling "
_ASKING: Final = "asking "
_EXCESS: Final = "excess "


def _since(uid: str, node: str) -> str:
    """Under which key the memory says since when pod ``uid`` has held room on ``node``."""
    return f"held {uid} {node}"


def _aging(uid: str, node: str) -> str:
    """Under which key the memory says from when on what pod ``uid`` holds on ``node`` ages."""
    return f"aging {uid} {node}"


def _ending(uid: str, node: str) -> str:
    """Under which key the memory says until when those have time who are ending on ``node``, which is taken off."""
    return f"ending {uid} {node}"


def stated_since(uid: str, node: str) -> str:
    """Under which key a memory may say since when pod ``uid`` states that it holds room on ``node``.

    No session writes it, and none judges by it: :meth:`Reservations.told_since` only tells it.
    """
    return f"stated {uid} {node}"


def _cooling(uid: str) -> str:
    """Under which key the memory says until when job ``uid`` cools down."""
    return f"{_COOLING}{uid}"


def _asking(uid: str) -> str:
    """Under which key the memory says since when job ``uid`` has been about to evict others."""
    return f"{_ASKING}{uid}"


def _excess(uid: str) -> str:
    """Under which key the memory says by how much the slowest victim that job ``uid`` waits for exceeds the usual."""
    return f"{_EXCESS}{uid}"


def _uid(key: str) -> str:
    """The job of which such a key of the memory speaks."""
    return key.partition(" ")[2]


def _was_paid_for(job: Job) -> bool:
    """Whether somebody was evicted for what the job waits for: then it holds all of it, even while it cools down."""
    return any(task.eviction_occurred for task in job.of(PIPELINED))


def is_whole(session: Session, job: Job) -> bool:
    """Whether the job is ready, or has its minimum, in all, of every role and of sub-jobs, with its reservations."""
    if session.ask.job_ready(job):
        return True
    if not (job.is_pipelined() and job.roles_pipelined()):
        return False
    counts = counts_by_group(session.sub_jobs(job), "is_pipelined") if job.has_sub_group_policy else {}
    return all(counts.get(group, 0) >= least for group, least in job.min_sub_jobs.items())


__all__ = ["MEMORY", "TIMEOUT", "Reservations", "is_whole", "stated_since"]
