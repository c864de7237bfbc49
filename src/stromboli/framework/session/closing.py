"""Closing a session: plugins have their last word, then PodGroups, pods and queues get their new status."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from numbers import Real
from typing import TYPE_CHECKING, Final, cast

from stromboli.api.scheduling import POD_GROUP_PENDING
from stromboli.framework.books.phases import WAITING, phase_of
from stromboli.framework.books.plan import Event, PodConditionUpdate, PodGroupUpdate, QueueUpdate, Reservation
from stromboli.framework.engine.messages import fit_error, scheduling_reason
from stromboli.framework.extension.guarded import PluginFailed, asked
from stromboli.framework.session.topology import carry_over
from stromboli.model.job import ALLOCATED, BINDING, FAILED, PENDING, PIPELINED, RUNNING, SUCCEEDED, Job
from stromboli.model.names import POD_GROUP_NOT_ADMITTED
from stromboli.model.resources.axes import UNOFFERED, add_to, amount_at
from stromboli.model.resources.resource import Resource
from stromboli.model.spec import Amount
from stromboli.model.status import ALLOCATED_STATUS
from stromboli.model.task import Task

if TYPE_CHECKING:
    from stromboli.framework.session.session import Session

MOST_NAMES: Final = 64
"""Resources that no node offers which a queue's status names: users invent as many names as they like."""

SHORTENED: Final = "status.allocated names {named} of {count} resources that no node offers; {left_out} are left out"


def close(session: Session) -> None:
    """Do everything that happens after the last action; one job's trouble does not stop the others."""
    if "statement_events" in vars(session):
        session.statement_events.counters.report()
    for name, plugin in reversed(session.plugins.items()):
        session.narrator.observer.started("plugin_close", name)
        try:
            asked(plugin, plugin.on_session_close, session)
        except PluginFailed as failure:
            session.put_aside(failure)
        session.narrator.observer.ended("plugin_close", name)
    for job in session.active_jobs():  # those that are settled have been written as they stand
        update_job(session, job)
    update_queues(session)
    carry_over(session)
    _close_book(session)
    _settle_memory(session)
    if "candidates" in vars(session):
        session.candidates.let_go()
    session.plan.inconsistencies += session.snapshot.inconsistencies
    if say := session.tells("session_closed"):
        say(session=session.uid)


def _close_book(session: Session) -> None:
    """Settle what pods shall state; a plugin that raises meanwhile is put aside, and it is settled without it."""
    while session.reservations is not None:
        try:
            session.reservations.close()
        except PluginFailed as failure:
            session.put_aside(failure)
            session.recompile()
            continue
        return


def _settle_memory(session: Session) -> None:
    """Make what plugins keep what it is once it has been written down and read back: floats, numpy's included."""
    for plugin, kept in session.plan.memory.items():
        if {float}.issuperset(map(type, kept.values())):  # as nearly always
            continue
        for key, value in cast("list[tuple[str, object]]", list(kept.items())):
            if (number := _number(value)) is not None:
                kept[key] = number
            else:
                del kept[key]
                session.plan.inconsistencies.append(f"plugin {plugin}: keeps {key}, which is no number")


def _number(value: object) -> float | None:
    """``value`` as a float; None for what is no number, or beyond what a float holds."""
    try:
        return float(value) if isinstance(value, Real) else None
    except OverflowError:
        return None


# ---------------------------------------------------------------------- PodGroups


def update_job(session: Session, job: Job) -> None:
    """Put the new status of a job's PodGroup into the plan if it differs, and its events and pod conditions."""
    phase = phase_of(job, job.uid in session.pod_groups.unschedulable)
    stated = job.conditions or job.uid in session.pod_groups.conditions
    if stated and phase != POD_GROUP_PENDING:  # admitted, or never asked: its pods may have been bound without us
        session.pod_groups.clear_condition(job, POD_GROUP_NOT_ADMITTED)
    index, old = job.index, job.group.status
    running, succeeded, failed = (
        len(index.get(RUNNING, ())), len(index.get(SUCCEEDED, ())), len(index.get(FAILED, ())),
    )  # fmt: skip
    conditions = session.pod_groups.conditions.get(job.uid)
    changed = conditions is not None or (phase, running, succeeded, failed) != (
        old.phase, old.running, old.succeeded, old.failed,
    )  # fmt: skip
    if changed:
        shown = job.conditions if conditions is None else conditions
        session.plan.pod_groups.append(PodGroupUpdate(job.uid, phase, shown, running, succeeded, failed))
    _events(session, job, phase, changed)


def _events(session: Session, job: Job, phase: str, changed: bool) -> None:
    waiting = phase in WAITING
    undecided = not job.index.keys().isdisjoint((PENDING, ALLOCATED, PIPELINED))
    if undecided or (waiting and not _is_being_bound(session, job)):
        _waiting_events(session, job, waiting)
    if changed and not waiting:
        session.pod_groups.record_event(job, "Normal", "Scheduled", "pod group is ready")


def _waiting_events(session: Session, job: Job, waiting: bool) -> None:
    """Report why tasks of a job wait, and on its PodGroup if that is ``waiting`` as a whole."""
    error = fit_error(job)
    if waiting:
        text = f"{job.number(PENDING)}/{len(job.tasks)} tasks in gang unschedulable: {error}"
        session.pod_groups.record_event(job, "Warning", "Unschedulable", text)
    for task in job.of(ALLOCATED, PENDING, PIPELINED):
        if not task.gates:
            _pod_condition(session, job, task, error)
    _left_behind(session, job)


def _is_being_bound(session: Session, job: Job) -> bool:
    """Whether the job waits for nothing but its pods' bindings, which is no news for its users."""
    return BINDING in job.index and not session.compat.asks("events-while-bound")


def _pod_condition(session: Session, job: Job, task: Task, error: str) -> None:
    why = scheduling_reason(job, task)
    message = why.message or error
    nominated = why.nominated_node if why.nominated_node != task.nominated_node else ""
    if nominated or task.condition is None or not task.condition.says("False", why.reason, message):
        session.plan.pod_conditions.append(PodConditionUpdate(task.uid, task.key, why.reason, message, nominated))
        session.plan.events.append(Event("Pod", task.key, "Warning", "FailedScheduling", message))
    elif say := session.tells("condition_kept"):
        say(task=task, message=message)


def _left_behind(session: Session, job: Job) -> None:
    """Note tasks that hold room without being bound: pipelined ones, and allocated ones of a gang that is not ready."""
    plan = session.plan
    for task in job.of(PIPELINED):
        plan.reservations.append(Reservation(task.uid, task.key, job.uid, task.node_name, task.eviction_occurred))
    for task in job.of(ALLOCATED):
        plan.allocated_not_bound.append(Reservation(task.uid, task.key, job.uid, task.node_name))


# ---------------------------------------------------------------------- queues


def update_queues(session: Session) -> None:
    """Put the new ``status.allocated`` and ``status.fault`` of every queue in which they differ into the plan."""
    counted, unoffered = _counted(session), _unoffered(session)
    for name, queue in session.queues.items():
        amounts = _allocated(session, counted[name], unoffered)
        old = queue.status.allocated
        left_out = _shorten(amounts, session.axes.index, old or {}) if unoffered else 0
        fault = queue.fault or queue.warning
        if old is None or not _says(old, amounts) or fault != queue.status.fault:
            session.plan.queues.append(QueueUpdate(name, amounts.to_list(), fault))
            if left_out:
                text = SHORTENED.format(named=MOST_NAMES, count=MOST_NAMES + left_out, left_out=left_out)
                session.plan.events.append(Event("Queue", name, "Warning", "ResourcesLeftOut", text))
        elif say := session.tells("queue_status_kept"):
            say(queue=name, allocated=amounts)


def _counted(session: Session) -> Mapping[str, Sequence[str]]:
    """The queues whose jobs count in the status of each queue: itself and, with a hierarchy, those below it."""
    counted = {name: [name] for name in session.queues}
    if "root" in session.queues:
        for name in session.queues:
            for ancestor in _ancestors(session, name):
                counted[ancestor].append(name)
            if name == "root" and session.compat.asks("root-status-twice"):
                counted[name].append(name)
    return counted


def _allocated(session: Session, queues: Sequence[str], unoffered: Mapping[str, Mapping[str, float]]) -> Resource:
    """What ``queues`` hold together, with the names of what no node offers."""
    total: list[int] = []
    for name in queues:
        add_to(total, session.queues[name].sums.allocated)
        add_to(total, session.ledger.beyond.get(name, ()))
    amounts = session.axes.resource(session.axes.full(total))
    if amounts.scalars and amounts.scalars.pop(UNOFFERED, 0):
        for name in queues:
            for resource, amount in unoffered.get(name, {}).items():
                amounts.scalars[resource] = amounts.scalars.get(resource, 0.0) + amount
    return amounts


def _shorten(amounts: Resource, offered: Container[str], stated: Container[str]) -> int:
    """Take out names beyond :data:`MOST_NAMES` that no node offers, last those that are ``stated``; how many."""
    scalars = amounts.scalars or {}
    others = sorted((name not in stated, name) for name in scalars if name not in offered)
    for _, name in others[MOST_NAMES:]:
        del scalars[name]
    return len(others[MOST_NAMES:])


def _unoffered(session: Session) -> dict[str, dict[str, float]]:
    """What placed tasks hold of resources that no node offers, by queue and name: in sums these are not told apart."""
    column, found = session.axes.index.get(UNOFFERED), dict[str, dict[str, float]]()
    held = column is not None and any(amount_at(one.sums.allocated, column) for one in session.queues.values())
    for job in session.jobs.peek() if held else ():
        for task in (task for status in ALLOCATED_STATUS for task in job.of(status)):
            for name, amount in session.axes.unoffered(task.request).items():
                if not amount:
                    continue
                of_queue = found.setdefault(job.queue, {})
                of_queue[name] = of_queue.get(name, 0.0) + amount
    return found


def _says(written: Mapping[str, Amount], amounts: Resource) -> bool:
    """Whether a resource list comes to ``amounts``, as nearly always in the very words."""
    said = amounts.to_list()
    return said == written or said == Resource.from_list(written).to_list()


def _ancestors(session: Session, name: str) -> list[str]:
    """Queues above ``name``, nearest first; a parent that does not exist, or a cycle, ends the walk."""
    above: list[str] = []
    start = name
    while name != "root":
        name = session.queues[name].spec.parent or "root"
        if name not in session.queues or name in (start, *above):
            break
        above.append(name)
    return above
