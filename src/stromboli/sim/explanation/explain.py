"""One job's way through a cycle, step by step: admitted, valid, quota, nodes, gang; with the numbers of every step."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
import numpy as np
from msgspec import structs

from stromboli.actions.allocate import NOT_READY
from stromboli.errors import NotFoundError
from stromboli.framework.config.argument import nearest
from stromboli.framework.engine.fits import Fits
from stromboli.framework.engine.placer import Engine
from stromboli.framework.extension.figures import amounts_text, by_name
from stromboli.framework.extension.weighing import Numbers
from stromboli.framework.session.admission import Refusal, request_text
from stromboli.framework.session.session import Session
from stromboli.framework.session.shortages import Shortages
from stromboli.model.job import PIPELINED, Job
from stromboli.model.names import JOB_NAME
from stromboli.model.podgroup import volcano_job
from stromboli.model.status import COMPLETED_STATUS
from stromboli.model.task import Task
from stromboli.sim.explanation.cards import card_lines
from stromboli.sim.explanation.evicting import eviction_steps, evicts
from stromboli.sim.explanation.notes import Refused
from stromboli.sim.explanation.reasons import (
    NO_NODES,
    PLACES,
    Cycle,
    Reason,
    no_group,
    node_refusals,
    numbers_of,
    placeable,
    quota_text,
    waiting_tasks,
    waits,
)
from stromboli.sim.explanation.reserved import reserved_lines
from stromboli.sim.explanation.step import Step
from stromboli.sim.explanation.whatif import Help, what_would_help
from stromboli.sim.planning import Planning


class Explanation(msgspec.Struct, frozen=True):
    """Why a job waits: ``step`` is the number of the first failing step, ``cause`` its kind; both empty if it runs.

    ``tried`` names the sorts of change that were tried to see what ``would_help``, ``untried`` says for how many
    changes there was no time.
    """

    job: str
    verdict: str
    step: int | None
    cause: str
    phase: str
    queue: str
    priority: int
    bound: int
    needed: int
    pods: int
    steps: tuple[Step, ...]
    would_help: tuple[str, ...]
    tried: tuple[str, ...] = ()
    untried: int = 0


def find_job(planning: Planning, name: str) -> str:
    """The job called ``namespace/name`` or ``name``: that of its PodGroup, of its Volcano Job, or of one of its pods.

    Raises NotFoundError when there is none, or several.
    """
    jobs = planning.state.jobs
    if name in jobs:
        return name
    for names in (names_of, _pod_names):
        found = sorted(uid for uid, job in jobs.items() if name in names(job))
        if len(found) == 1:
            return found[0]
        if found:
            raise NotFoundError("job", name, message=f"{name} may be {', '.join(found[:5])}; say which")
    close = nearest(name, [text for job in jobs.values() for text in names_of(job)])
    hint = f"; did you mean {close}?" if close else "; jobs are named namespace/podgroup"
    raise NotFoundError("job", name, message=f"there is no job {name}{hint}")


def names_of(job: Job) -> list[str]:
    """What a job may be called, with its namespace and without it.

    As its PodGroup, or as the Volcano Job that this was made for or that its pods name.
    """
    named = (task.annotations.get(JOB_NAME, job.name) for task in job.tasks.values())
    names = dict.fromkeys((job.name, volcano_job(job.name), *named))
    return [text for name in names for text in (name, f"{job.namespace}/{name}")]


def _pod_names(job: Job) -> list[str]:
    return [text for task in job.tasks.values() for text in (task.name, task.key)]


def explain(planning: Planning, uid: str) -> Explanation:
    """The way of job ``uid`` through the last cycle."""
    cycle = planning.last
    job = cycle.session.jobs.peek_at(uid) or planning.state.jobs[uid]
    reason = cycle.reason(job) if waits(job) else None
    steps = tuple(_steps(cycle, job, reason))
    if reason is not None and evicts(planning) and steps and steps[-1].name == "bound":
        steps = _with_evictions(steps, eviction_steps(planning, uid))
    failing = next((step for step in steps if step.ok is False), None)
    changes = what_would_help(planning, uid) if reason else Help()
    return Explanation(
        job=uid,
        verdict=_verdict(job, reason),
        step=failing.n if failing else None,
        cause=reason.cause if reason else "",
        phase=cycle.phase(job),
        queue=job.queue,
        priority=job.priority,
        bound=job.number(*PLACES),
        needed=job.min_available,
        pods=len(job.tasks),
        steps=steps,
        would_help=changes.words,
        tried=changes.tried,
        untried=changes.untried,
    )


def _verdict(job: Job, reason: Reason | None) -> str:
    if reason is None:
        ended = bool(job.tasks) and all(task.status in COMPLETED_STATUS for task in job.tasks.values())
        return "has ended" if ended else "has all its pods"
    if not job.tasks:
        return f"waits: it has no pods yet, {reason.needed} needed at once"
    count = len(reason.waiting)
    word = "waits" if job.number(*PLACES) < max(job.min_available, 1) else "runs, with pods that wait"
    return f"{word}: {count} {'pod' if count == 1 else 'pods'} without a node, {reason.needed} needed at once"


def _steps(cycle: Cycle, job: Job, reason: Reason | None) -> list[Step]:
    """The steps up to the first that fails; those of placing belong together."""
    if not job.facts.queue:
        return [] if reason is None else [Step(0, "admitted", False, no_group(job))]
    if job.queue not in cycle.session.queues:
        return [Step(0, "admitted", False, f"queue {job.queue} does not exist")]
    if reason is not None and not len(cycle.session.table):
        return [Step(5, "nodes", False, NO_NODES)]
    steps = [_admitted(cycle, job)]
    if steps[-1].ok:
        steps.append(_valid(cycle, job))
    if steps[-1].ok:
        steps += [_quota(cycle, job), *_domains(cycle, job), _nodes(cycle, job)]
        steps += [_complete(cycle, job), _bound(job, reason)]
    return steps


def _with_evictions(steps: tuple[Step, ...], evicting: list[Step]) -> tuple[Step, ...]:
    """The steps of placing, which no longer decide, and then those of taking room from others."""
    if not evicting:
        return steps
    told = [structs.replace(step, ok=None) if step.ok is False and step.n >= _PLACING else step for step in steps]
    return (*(step for step in told if step.name not in ("gang", "bound")), *evicting)


_PLACING = 5
"""The number of the first step of placing."""


# ---------------------------------------------------------------------- the steps


def _admitted(cycle: Cycle, job: Job) -> Step:
    phase = cycle.phase(job)
    asked = f"phase {phase}; {request_text(job)}"
    if not job.is_pending():
        return Step(0, "admitted", True, asked)
    votes = cycle.votes.get(job.uid, [])
    lines = tuple(
        f"{vote.plugin} (tier {vote.tier}) {vote.word}" + (f": {vote.refusal.message}" if vote.refusal else "")
        for vote in votes
    )
    refusals = tuple(vote.refusal for vote in votes if vote.refusal is not None)
    return Step(0, "admitted", False, asked, lines, {}, refusals)


def _valid(cycle: Cycle, job: Job) -> Step:
    text = f"{_pods(job.valid_task_num())} that can run, {job.min_available} needed"
    invalid = cycle.invalid(job)
    return Step(2, "valid", not invalid, text, (invalid,) if invalid else ())


def _quota(cycle: Cycle, job: Job) -> Step:
    """What the queue plugins said when allocate came to the queue and the job."""
    notes, numbers = cycle.notes, _queue_numbers(cycle.session, job.queue)
    text = "; ".join(f"{what} {_without_pods(amounts)}" for what, amounts in numbers.items()) or "no queue plugin"
    text = f"queue {job.queue}: {text}"
    if job.uid in notes.turns:
        refused = notes.turns[job.uid].refused
        return _refused_tasks(job, refused, numbers, text) if refused else Step(5, "quota", True, text, (), numbers)
    if job.queue in notes.overused and waiting_tasks(job):
        said = notes.overused[job.queue]
        _, why, refusals = cycle.overused(job, said)
        return Step(5, "quota", False, text, (why,), numbers_of(said) if said else numbers, refusals)
    return Step(5, "quota", True, text, (), numbers)


def _refused_tasks(job: Job, refused: Mapping[str, Refused | None], numbers: Numbers, text: str) -> Step:
    """The step of a job whose queue has ``refused`` tasks; each with what was said."""
    name, said = next(iter(refused.items()))
    numbers = numbers_of(said) if said else numbers
    why = quota_text(job.queue, numbers) if said and not said.state else f"queue {job.queue} is not open"
    lines = (f"{_pods(len(refused))} refused, the first is {name}: {why}",)
    return Step(5, "quota", False, text, lines, numbers, (Refusal(said.plugin if said else "", why, 0, numbers),))


def _queue_numbers(session: Session, queue: str) -> Numbers:
    """What the queue deserves and holds now, in the dimensions of either."""
    figures = session.queues[queue].figures
    if "deserved" not in figures:
        return {}
    held = session.axes.resource(session.axes.full(session.queues[queue].sums.held))
    found = {"deserved": figures["deserved"], "allocated": held, "request": figures.get("request")}
    return {what: by_name(amount) for what, amount in found.items() if not isinstance(amount, float) and amount}


def _domains(cycle: Cycle, job: Job) -> list[Step]:
    """What the domains lack in which a job must lie that has not become complete; nothing for other jobs."""
    if not job.facts.is_close or not waiting_tasks(job) or job.is_ready():
        return []
    if not cycle.session.snapshot.hyper_nodes_ready:
        return [Step(5, "domains", False, job.fit_error_text or NOT_READY)]
    lines = Shortages(cycle.session).lines(job)
    lacking = not job.fits and bool(job.fit_error_text)
    text = job.fit_error_text if lacking else "HyperNodes were tried"
    return [Step(5, "domains", False if lacking else None, text, tuple(lines))] if lines else []


def _nodes(cycle: Cycle, job: Job) -> Step:
    failed = {task.template.number: task for task in _failed(job)}
    if not failed:
        asked = placeable(job) > 0 or any(uid in cycle.bound for uid in job.tasks)
        return Step(
            5, "nodes", True if asked or not waiting_tasks(job) else None, _found(job) if asked else "not asked"
        )
    lines: list[str] = []
    refusals: list[Refusal] = []
    for task in failed.values():
        fits = job.fits[task.uid]
        refusals += node_refusals(task, fits) if isinstance(fits, Fits) else []
        alike = sum(one.template is task.template for one in waiting_tasks(job))
        lines.append(f"{_pods(alike)} like {task.name}, each {_without_pods(by_name(task.request))}:")
        lines.append(f"  {fits.text if isinstance(fits, Fits) else fits}")
        lines.append(f"  {best_node(cycle.session, task)}")
        lines += card_lines(cycle.session, task)
    return Step(5, "nodes", False, _found(job), tuple(lines), {}, tuple(refusals))


def _pods(count: int) -> str:
    return f"{count} pod{'' if count == 1 else 's'}"


def _without_pods(amounts: dict[str, float]) -> str:
    return amounts_text({name: value for name, value in amounts.items() if name != "pods"})


def _found(job: Job) -> str:
    return f"{job.number(*PLACES) + placeable(job)} of {len(job.tasks)} pods found a node"


def _failed(job: Job) -> list[Task]:
    """Tasks that were looked for a node in vain, those that were only skipped left out."""
    told = [
        job.tasks[uid] for uid, fits in job.fits.items() if uid in job.tasks and isinstance(fits, Fits) and fits.nodes
    ]
    return sorted(told, key=lambda task: (task.created, task.index, task.uid), reverse=True)


def _complete(cycle: Cycle, job: Job) -> Step:
    """Whether the gang came together."""
    have, coming, could = job.number(*PLACES), job.number(PIPELINED), placeable(job)
    text = f"{have} bound, {coming} wait for room on their node, {job.min_available} needed"
    held = tuple(reserved_lines(cycle.session, job))
    if have + job.pending_best_effort_num() >= job.min_available:
        return Step(6, "gang", True, text, held)
    undone = f"{could - coming} more had a node and gave it back, because the others found none"
    return Step(6, "gang", False, text, (undone,) if could > coming else held)


def _bound(job: Job, reason: Reason | None) -> Step:
    nodes = sorted({task.node_name for task in job.of(*PLACES)})
    text = ", ".join(nodes[:8]) + (f" and {len(nodes) - 8} more nodes" if len(nodes) > 8 else "")
    return Step(7, "bound", reason is None, text or "nowhere")


# ---------------------------------------------------------------------- the node that comes nearest


def best_node(session: Session, task: Task) -> str:
    """A sentence on the node that lacks least of what ``task`` asks for, among those that its filters let pass."""
    passing = rows_passing(session, task)
    if not passing:
        return "no node passes the filters, whatever its room"
    request = by_name(task.request)
    idle, column = session.table.idle, session.axes.known
    columns = [column(name) for name in request]
    need = [request[name] for name in request]
    short = {row: _shortage(idle[columns, row].tolist(), need) for row in passing}
    row = min(short, key=lambda row: (short[row], row))
    amounts = {name: float(idle[column(name), row]) for name in request}
    name = session.table.statics.names[row]
    if not short[row]:
        return f"{name} has room for one now that the gang gave its places back: idle {_without_pods(amounts)}"
    return f"nearest of {len(passing)} nodes that pass the filters is {name}: idle {_without_pods(amounts)}"


def rows_passing(session: Session, task: Task) -> list[int]:
    """The rows of the nodes whose filters let ``task`` pass, whether or not they have room."""
    placer = session.placer
    if not isinstance(placer, Engine):
        return list(range(len(session.table)))
    passing: list[int] = np.flatnonzero(placer.classes.of(task, room=False, scores=False).fitting(None)).tolist()
    return passing


def _shortage(idle: list[int], need: list[float]) -> float:
    """How much is missing, the dimensions as parts of what is asked for added up."""
    return sum(max(want - have, 0) / want for have, want in zip(idle, need, strict=True) if want)
