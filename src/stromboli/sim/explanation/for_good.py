"""Waiting jobs that no end of another job lets start: why the scheduler's cycle refuses them.

A job that is refused because others hold the room, or the quota, is none of these: it starts once they end.
Nor is one that a cordon or a taint such as node.kubernetes.io/memory-pressure keeps from its nodes, as these pass.
"""

from __future__ import annotations

from typing import Final

from stromboli.filters import selectors, taints
from stromboli.filters.columns import Bools
from stromboli.framework.extension.figures import by_name, exceeding
from stromboli.framework.extension.weighing import Numbers
from stromboli.framework.session.admission import Refusal, closed
from stromboli.framework.session.session import Session
from stromboli.model.job import Job
from stromboli.model.podgroup import is_volcano_jobs
from stromboli.model.spec import Taint
from stromboli.model.task import Task, is_held_back
from stromboli.plugins.overcommit import Overcommit
from stromboli.sim.explanation.reasons import PLACES, Cycle, Reason, waiting_tasks, waits

_ITSELF: Final = frozenset({"no queue", "no pod group"})
"""Causes that lie in the job itself, or in what is not there."""
_LIMITS: Final = ("realCapability", "hard")
"""What an amount that is asked for may never exceed, by what plugins call it."""

_PASSING: Final = "node.kubernetes.io/"
"""Begins the keys of taints by which Kubernetes tells how a node fares: they end with jobs, or by themselves."""


def refused_for_good(cycle: Cycle, job: Job) -> str:
    """Why ``job`` cannot start whatever ends; empty where it waits for room, or does not wait."""
    if not waits(job):
        return ""
    reason = cycle.reason(job)
    if reason.cause in _ITSELF or (reason.cause == "invalid" and _lacks_pods(job)):
        return reason.message
    return _by_queue(cycle.session, job, reason) or _by_pods(cycle.session, job)


def _lacks_pods(job: Job) -> bool:
    """Whether pods are missing that no controller of ours is about to make."""
    return bool(job.tasks) and not is_volcano_jobs(job.name)


def _by_queue(session: Session, job: Job, reason: Reason) -> str:
    """Why admission or quota refuses it, where that is more than what others hold or have been promised."""
    if not reason.refused_by or reason.cause not in ("not admitted", "queue quota"):
        return ""
    if text := closed(session, job):
        return text
    return next((one.message for one in reason.refused_by if _is_beyond(_limits(session, one), one.numbers)), "")


def _limits(session: Session, refusal: Refusal) -> dict[str, float]:
    """The most that may ever be asked for, by the plugin that refuses; empty where only what is left is limited."""
    named = next((refusal.numbers[what] for what in _LIMITS if what in refusal.numbers), {})
    plugin = session.plugins.get(refusal.plugin)
    if named or not isinstance(plugin, Overcommit):
        return named
    total = by_name(session.axes.resource(session.axes.full(session.ledger.total)))
    return {name: total.get(name, 0.0) * plugin.factor for name in refusal.numbers["request"]}


def _is_beyond(limits: dict[str, float], numbers: Numbers) -> bool:
    request = numbers.get("request", {})
    return bool(exceeding([request], limits, request.keys() & limits.keys()))


def _by_pods(session: Session, job: Job) -> str:
    """Why too few of its pods may have a node, whatever is placed or evicted."""
    waiting = waiting_tasks(job)
    free = [task for task in waiting if not is_held_back(task)]
    refused = {task.template.number: text for task in _kinds(free) if (text := _no_node(session, task))}
    hopeful = sum(task.template.number not in refused for task in free)
    needed = min(max(job.min_available - job.number(*PLACES), 1), len(waiting))
    if hopeful >= needed:
        return ""
    gates = sorted({gate for task in waiting if is_held_back(task) for gate in task.gates})
    held = [f"scheduling gates hold its pods back: {', '.join(gates)}"] if gates else []
    return "; ".join([*held, *list(refused.values())[:1]])


def _kinds(tasks: list[Task]) -> list[Task]:
    return list({task.template.number: task for task in tasks}.values())


def _no_node(session: Session, task: Task) -> str:
    """Why no node takes ``task``, whatever is placed or evicted, now or later; empty where one may."""
    placer, plugins = session.placer, session.plugins.values()
    if not len(session.table):
        return ""
    if placer.hopeless(task):
        return f"no node offers {', '.join(sorted(session.axes.unoffered(task.request)))}"
    if any(placer.eligible(task)) or _closed_for_now(session, task).any():
        return ""
    fits, passing = placer.refusals(task, room=False), {plugin.name for plugin in plugins if plugin.depends_on_time}
    return "" if any(reason.plugin in passing for reason in fits.counts) else fits.text


def _closed_for_now(session: Session, task: Task) -> Bools:
    """The nodes that would suit ``task`` but for a cordon, or taints that come and go with what a node goes through."""
    nodes, derived, tolerations = session.table.view(), session.table.statics.derived, task.spec.tolerations
    tainted, cordoned = derived(taints.taint_column), derived(taints.cordon_column).where(nodes, bool)
    closed = ~taints.admitting_rows(tolerations, tainted, nodes)
    if not taints.ignores_cordons(tolerations):
        closed |= cordoned
    stays = tainted.where(nodes, lambda each: not taints.admits(tolerations, filter(_is_lasting, each)))
    return closed & ~stays & selectors.rows_suiting(task.spec, nodes)


def _is_lasting(taint: Taint) -> bool:
    return not taint.key.startswith(_PASSING)
