"""Why each job waits: told from what the cycle did and what the session holds when it is closed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Literal

import msgspec

from stromboli.api.scheduling import POD_GROUP_INQUEUE, POD_GROUP_PENDING
from stromboli.cluster.state import ClusterState
from stromboli.framework.engine.fits import Fits
from stromboli.framework.engine.messages import fit_error
from stromboli.framework.extension.figures import amounts_text, by_name, exceeding, shown
from stromboli.framework.extension.weighing import Numbers
from stromboli.framework.session.admission import Refusal, Vote, refusals_text
from stromboli.model.job import ALLOCATED, BINDING, BOUND, PENDING, PIPELINED, RUNNING, SUCCEEDED, Job
from stromboli.model.resources.resource import Resource
from stromboli.model.task import Task
from stromboli.sim.explanation.notes import Notes, Refused
from stromboli.sim.explanation.reserved import reserved_text

if TYPE_CHECKING:
    from stromboli.framework.session.session import Session

Cause = Literal[
    "no queue", "no pod group", "not admitted", "invalid", "gated", "queue overused", "queue quota", "no node", "gang",
    "no domain", "reserved", "not tried",
]  # fmt: skip
"""The first thing that keeps a job from running."""

NO_NODES = "the cluster has no nodes"
"""What is said before anything else, as queues are given shares of nothing then."""

PLACES = (BINDING, BOUND, RUNNING, SUCCEEDED)
WAITS = (PENDING, ALLOCATED, PIPELINED)


class Reason(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """Why one job waits, or part of it.

    ``bound`` of ``pods`` pods have a node for good, ``needed`` must have one at once; ``waiting`` are those that have
    none, by ``namespace/name``; ``placeable`` counts those of them that found one before the gang gave up.
    ``message`` is the first reason that keeps the job waiting, ``refused_by`` the plugins that refused, with numbers.
    """

    phase: str
    queue: str
    bound: int
    needed: int
    pods: int
    waiting: tuple[str, ...]
    cause: Cause
    message: str
    placeable: int = 0
    refused_by: tuple[Refusal, ...] = ()


class Cycle:
    """A cycle that is over: the closed session, what was noted in it, the votes on jobs left outside, and the state."""

    def __init__(self, session: Session, notes: Notes, votes: Mapping[str, list[Vote]], state: ClusterState) -> None:
        self.session, self.notes, self.votes, self.state = session, notes, votes, state
        self.phases = {update.key: update.phase for update in session.plan.pod_groups}
        self.bound = {bind.uid for bind in session.plan.binds}

    def jobs(self) -> Iterator[Job]:
        """Every job with a PodGroup, as the cycle left it; those without a usable queue as they stand."""
        for uid, job in sorted(self.state.jobs.items()):
            if job.facts.queue:
                yield self.session.jobs.peek_at(uid) or job

    def phase(self, job: Job) -> str:
        """The phase that the PodGroup has after the cycle."""
        return self.phases.get(job.uid) or job.phase or "Pending"

    def reasons(self) -> dict[str, Reason]:
        """Why each job waits that does, by ``namespace/podgroup``."""
        found = {job.uid: self.reason(job) for job in self.jobs() if waits(job)}
        return {**found, **dict(self._without_group())}

    def _without_group(self) -> Iterator[tuple[str, Reason]]:
        for uid, job in sorted(self.state.jobs.items()):
            if not job.facts.queue and (waiting := waiting_tasks(job)):
                keys = tuple(sorted(task.key for task in waiting))
                yield uid, Reason("", "", 0, 0, len(job.tasks), keys, "no pod group", no_group(job))

    # ------------------------------------------------------------------ one job

    def reason(self, job: Job) -> Reason:
        """Why ``job`` waits."""
        cause, message, refusals = self._first_cause(job)
        waiting = tuple(sorted(task.key for task in waiting_tasks(job)))
        return Reason(
            self.phase(job), job.queue, job.number(*PLACES), job.min_available, len(job.tasks), waiting, cause, message,
            placeable(job), refusals,
        )  # fmt: skip

    def _first_cause(self, job: Job) -> tuple[Cause, str, tuple[Refusal, ...]]:
        if not job.facts.queue:
            return "no pod group", no_group(job), ()
        if job.queue not in self.session.queues:
            return "no queue", f"queue {job.queue} does not exist", ()
        if not len(self.session.table):
            return "no node", NO_NODES, ()
        if job.is_pending():
            return self._not_admitted(job)
        if invalid := self.invalid(job):
            return "invalid", invalid, ()
        if text := reserved_text(self.session, job):
            return "reserved", text, ()
        if job.uid not in self.notes.turns:
            return self._no_turn(job)
        return self._tried(job)

    def invalid(self, job: Job) -> str:
        """Why the job cannot be looked at; empty when it can."""
        if not job.tasks:
            return f"it has no pods yet, {job.min_available} needed"
        if job.uid in self.notes.invalid:
            return self.notes.invalid[job.uid][1]
        short = not waiting_tasks(job) and job.valid_task_num() < job.min_available
        return f"{job.valid_task_num()} of its pods can still run, {job.min_available} needed" if short else ""

    def _not_admitted(self, job: Job) -> tuple[Cause, str, tuple[Refusal, ...]]:
        refusals = tuple(vote.refusal for vote in self.votes.get(job.uid, ()) if vote.refusal is not None)
        said = [event.message for event in self.session.plan.events if event.key == job.uid and event.type == "Normal"]
        if not refusals and said:
            refusals = (Refusal("", said[0]),)
        return "not admitted", refusals_text(refusals), refusals

    def _no_turn(self, job: Job) -> tuple[Cause, str, tuple[Refusal, ...]]:
        """Admitted, valid, and allocate never came to it."""
        if gates := sorted({gate for task in waiting_tasks(job) for gate in task.gates}):
            return "gated", f"scheduling gates hold its pods back: {', '.join(gates)}", ()
        if job.fits:
            return self._no_node(job)
        if job.queue in self.notes.overused:
            return self.overused(job, self.notes.overused[job.queue])
        if job.uid in self.notes.skipped:
            return "not tried", self.notes.skipped[job.uid], ()
        if "allocate" not in self.session.config.actions:
            return "not tried", "the configuration has no action allocate, so nothing is placed", ()
        if any(task.best_effort for task in waiting_tasks(job)) and "backfill" not in self.session.config.actions:
            return (
                "not tried",
                "pods that request nothing are placed by the action backfill alone; it is not configured",
                (),
            )
        return "not tried", f"waits for its turn: {fit_error(job)}", ()

    def overused(self, job: Job, said: Refused | None) -> tuple[Cause, str, tuple[Refusal, ...]]:
        """Why the job's queue got no turn, as the plugin has ``said``."""
        if said is None:
            return "queue overused", f"queue {job.queue} has its share, so its other jobs got no turn", ()
        numbers = numbers_of(said)
        held, deserved = numbers.get("allocated", {}), numbers.get("deserved", {})
        named = [name for name in held if name in deserved]
        amounts = ", ".join(f"{name} {shown(name, held[name])} of {shown(name, deserved[name])}" for name in named)
        text = f"queue {job.queue} holds all that it deserves ({amounts}), so its other jobs got no turn"
        if not deserved:
            text = f"queue {job.queue} deserves nothing, so its jobs got no turn"
        return "queue overused", text, (Refusal(said.plugin, text, 0, numbers),)

    def _tried(self, job: Job) -> tuple[Cause, str, tuple[Refusal, ...]]:
        refused = self.notes.turns[job.uid].refused
        if refused:
            return self._quota(job, *next(iter(refused.items())), len(refused))
        if job.fits:
            return self._no_node(job)
        if job.queue in self.notes.overused:
            return self.overused(job, self.notes.overused[job.queue])
        if job.fit_error_text:
            return "no domain", f"{self._counts(job)}{job.fit_error_text}", ()
        return "gang", fit_error(job), ()

    def _quota(self, job: Job, name: str, said: Refused | None, count: int) -> tuple[Cause, str, tuple[Refusal, ...]]:
        text, numbers = f"queue {job.queue} has no quota left for pod {name}", {}
        if said is not None and said.state:
            text = f"queue {job.queue} is {said.state}, not Open"
        elif said is not None:
            numbers = numbers_of(said)
            text = quota_text(said.queue, numbers)
        elif fault := self.session.queues[job.queue].fault:
            text = f"queue {job.queue} cannot be used: {fault}"
        several = f"for {count} pods: " if count > 1 else ""
        plugin = said.plugin if said is not None else ""
        return "queue quota", f"{self._counts(job)}{several}{text}", (Refusal(plugin, text, 0, numbers),)

    def _no_node(self, job: Job) -> tuple[Cause, str, tuple[Refusal, ...]]:
        task = first_failed(job)
        fits = job.fits[task.uid] if task else None
        text = fits.text if isinstance(fits, Fits) else fit_error(job)
        name = f"{task.name}: " if task and len(job.tasks) > 1 else ""
        refusals = node_refusals(task, fits) if task and isinstance(fits, Fits) else []
        return "no node", f"{self._counts(job)}{name}{text}", tuple(refusals)

    def _counts(self, job: Job) -> str:
        """How far the gang got, as the beginning of a sentence; nothing for a pod alone."""
        if len(job.tasks) == 1:
            return ""
        have, could = job.number(*PLACES), placeable(job)
        needed, pods = job.min_available, len(job.tasks)
        in_vain = f", {could} found a node in vain" if could else ""
        return f"{have} of {pods} pods placed, {needed} needed{in_vain}; "


# ---------------------------------------------------------------------- parts


def no_group(job: Job) -> str:
    """What is said of a job whose pods name a PodGroup that is not there."""
    return f"there is no PodGroup {job.uid}, which the pods' annotation names"


def waiting_tasks(job: Job) -> list[Task]:
    """Tasks that have no node for good."""
    return list(job.of(*WAITS))


def waits(job: Job) -> bool:
    """Whether pods of the job wait, or it has not begun and lacks pods that could."""
    if any(job.index.get(status) for status in WAITS):
        return True
    return job.phase in ("", POD_GROUP_PENDING, POD_GROUP_INQUEUE) and job.number(*PLACES) < job.min_available


def placeable(job: Job) -> int:
    """Waiting tasks that had a node until the rest of the gang found none."""
    kept = job.number(ALLOCATED, PIPELINED)
    return kept + sum(t.last is not None and t.last.status in (ALLOCATED, PIPELINED) for t in job.of(PENDING))


def first_failed(job: Job) -> Task | None:
    """The first task that found no node."""
    failed = [job.tasks[uid] for uid in job.fits if uid in job.tasks]
    told = [task for task in failed if isinstance(fits := job.fits[task.uid], Fits) and fits.nodes] or failed
    return min(told, key=lambda task: (task.created, task.index, task.uid), default=None)


def node_refusals(task: Task, fits: Fits) -> list[Refusal]:
    """One for each reason that nodes gave; ``nodes`` counts them and ``request`` is what the task asks for."""
    request = by_name(task.request)
    return [
        Refusal(reason.plugin, reason.text, 0, {"nodes": {"count": count, "of": fits.nodes}, "request": request})
        for reason, count in fits.counts.items()
    ]


def numbers_of(said: Refused) -> Numbers:
    """The amounts that a queue plugin told, by what they are."""
    names = {"real_capability": "realCapability"}
    return {names.get(key, key): by_name(value) for key, value in said.numbers.items() if isinstance(value, Resource)}


def quota_text(queue: str, numbers: Numbers) -> str:
    """The sum that would exceed what the queue may hold."""
    held, request = numbers.get("allocated", {}), numbers.get("request", {})
    what = "deserved" if "deserved" in numbers else "realCapability"
    limit = numbers.get(what, {})
    over = exceeding((held, request), limit, request)
    sums = [
        f"{name}: allocated {shown(name, held.get(name, 0))} + request {shown(name, request[name])} > "
        f"{what} {shown(name, limit.get(name, 0))}"
        for name in over
    ]
    return f"queue {queue}: {'; '.join(sums) or 'no quota left for ' + amounts_text(request)}"
