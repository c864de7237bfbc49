"""Closing a session: plugins have their last word, then PodGroups, pods and queues get their new status."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stromboli.framework.messages import fit_error, scheduling_reason
from stromboli.framework.opening import PluginFailed, labelled
from stromboli.framework.phases import WAITING, phase_of
from stromboli.framework.plan import Event, PodConditionUpdate, PodGroupUpdate, QueueUpdate, Reservation
from stromboli.framework.topology import carry_over
from stromboli.model.axes import add_to
from stromboli.model.job import ALLOCATED, BINDING, FAILED, PENDING, PIPELINED, RUNNING, SUCCEEDED, Job
from stromboli.model.podgroup import PodGroupCondition
from stromboli.model.resource import Resource
from stromboli.model.task import Task

if TYPE_CHECKING:
    from stromboli.framework.session import Session


def close(session: Session) -> None:
    """Do everything that happens after the last action; one job's trouble does not stop the others."""
    session.tally.tell()
    for name, plugin in reversed(session.plugins.items()):
        session.observer.started("plugin_close", name)
        try:
            labelled(plugin, plugin.on_session_close)(session)
        except PluginFailed as failure:
            session.put_aside(failure)
        session.observer.ended("plugin_close", name)
    for job in session.peek_unsettled():  # those that are settled have been written as they stand
        update_job(session, job)
    update_queues(session)
    carry_over(session)
    _close_book(session)
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


# ---------------------------------------------------------------------- PodGroups


def set_condition(session: Session, job: Job, condition: PodGroupCondition) -> None:
    """See :meth:`Session.update_pod_group_condition`.  A condition that says nothing new is not written again."""
    if condition.type == "Unschedulable" and condition.status == "True":
        session.unschedulable.add(job.uid)
    conditions = session.conditions.get(job.uid, job.conditions)
    for place, old in enumerate(conditions):
        if old.type == condition.type:
            if (old.status, old.reason, old.message) != (condition.status, condition.reason, condition.message):
                session.conditions[job.uid] = (
                    *conditions[:place],
                    _timed(session, condition),
                    *conditions[place + 1 :],
                )
            return
    session.conditions[job.uid] = (*conditions, _timed(session, condition))


def _timed(session: Session, condition: PodGroupCondition) -> PodGroupCondition:
    return PodGroupCondition(
        condition.type, condition.status, session.uid, session.time, condition.reason, condition.message
    )


def update_job(session: Session, job: Job) -> None:
    """Put the new status of a job's PodGroup into the plan if it differs, and its events and pod conditions."""
    phase = phase_of(job, job.uid in session.unschedulable)
    index, old = job.index, job.group.status
    running, succeeded, failed = (
        len(index.get(RUNNING, ())), len(index.get(SUCCEEDED, ())), len(index.get(FAILED, ())),
    )  # fmt: skip
    conditions = session.conditions.get(job.uid)
    changed = conditions is not None or (phase, running, succeeded, failed) != (
        old.phase, old.running, old.succeeded, old.failed,
    )  # fmt: skip
    if changed:
        shown = job.conditions if conditions is None else conditions
        session.plan.pod_groups.append(PodGroupUpdate(job.uid, phase, shown, running, succeeded, failed))
    _events(session, job, phase, changed)


def _events(session: Session, job: Job, phase: str, changed: bool) -> None:
    index = job.index
    waiting = phase in WAITING
    undecided = PENDING in index or ALLOCATED in index or PIPELINED in index
    if undecided or (waiting and not _is_being_bound(session, job)):
        error = fit_error(job)
        if waiting:
            pending = len(index.get(PENDING, ()))
            text = f"{pending}/{len(job.tasks)} tasks in gang unschedulable: {error}"
            session.plan.events.append(Event("PodGroup", job.uid, "Warning", "Unschedulable", text))
        for task in job.of(ALLOCATED, PENDING, PIPELINED):
            if not task.gates:
                _pod_condition(session, job, task, error)
        if PIPELINED in index or ALLOCATED in index:
            _left_behind(session, job)
    if changed and not waiting:
        session.plan.events.append(Event("PodGroup", job.uid, "Normal", "Scheduled", "pod group is ready"))


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


def _left_behind(session: Session, job: Job) -> None:
    """Note tasks that hold room without being bound: pipelined ones, and allocated ones of a gang that is not ready."""
    plan = session.plan
    for task in job.of(PIPELINED):
        plan.reservations.append(Reservation(task.uid, task.key, job.uid, task.node_name, task.eviction_occurred))
    for task in job.of(ALLOCATED):
        plan.allocated_not_bound.append(Reservation(task.uid, task.key, job.uid, task.node_name))


# ---------------------------------------------------------------------- queues


def update_queues(session: Session) -> None:
    """Put the new ``status.allocated`` of every queue whose amounts differ into the plan."""
    totals = {name: list(queue.sums.allocated) for name, queue in session.queues.items()}
    if "root" in session.queues:
        for name, queue in session.queues.items():
            twice = [name] if name == "root" and session.compat.asks("root-status-twice") else []
            for ancestor in (*_ancestors(session, name), *twice):
                add_to(totals[ancestor], queue.sums.allocated)
    for name, queue in session.queues.items():
        amounts = session.axes.resource(session.axes.full(totals[name]))
        old = queue.status.allocated
        if old is None or not _equal(amounts, Resource.from_list(old)):
            session.plan.queues.append(QueueUpdate(name, amounts.to_list()))
        elif say := session.tells("queue_status_kept"):
            say(queue=name, allocated=amounts)


def _equal(left: Resource, right: Resource) -> bool:
    return left.to_list() == right.to_list()


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
