"""What happens to a cluster between two cycles when everything that was decided simply comes true."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from msgspec.structs import replace

from stromboli.api.scheduling import PodGroupStatus
from stromboli.cluster.events import Event
from stromboli.cluster.files.scenario import ScenarioChange
from stromboli.cluster.rim import ClaimsGiven
from stromboli.cluster.state import ClusterState
from stromboli.errors import ManifestError
from stromboli.framework.books.plan import Plan, QueueUpdate
from stromboli.framework.session.session import Session
from stromboli.model.names import QUEUE_ALLOCATION_GATE
from stromboli.model.status import TaskStatus
from stromboli.model.task import Condition, twin


def apply_plan(state: ClusterState, plan: Plan, bound_become: str = "", evicted_become: str = "") -> None:
    """Bound pods run (``bound_become`` Bound: stay bound), evicted ones are gone (``terminating``: stay, marked), and
    what the cycle wrote on PodGroups, pods and queues stands there; gates that it opened are gone.
    """
    _write(state, plan)
    now = TaskStatus.Bound if bound_become == "Bound" else TaskStatus.Running
    for bind in plan.binds:
        _change(state, bind.key, node_name=bind.node, status=now)
        ClaimsGiven(bind.uid, bind.key, bind.claims).make(state)
        if bind.annotations and (task := state.tasks.get(bind.key)):
            _change(state, bind.key, annotations={**task.annotations, **bind.annotations})
    state.learn(plan)
    for eviction in plan.evictions:
        _end(state, eviction.key, terminating=evicted_become == "terminating")


def _write(state: ClusterState, plan: Plan) -> None:
    """What the cycle wrote on objects stands there."""
    for update in plan.pod_groups:
        if update.key in state.jobs:
            status = PodGroupStatus(update.phase, update.conditions, update.running, update.succeeded, update.failed)
            state.set_status(update.key, status)
    for held in plan.queues:
        _set_allocated(state, held)
    for written in plan.pod_conditions:
        condition = Condition("False", written.reason, written.message)
        _change(state, written.key, condition=condition, nominated_node=written.nominated_node)
    for wish in plan.annotations:
        state.set_reservation(wish.key, wish.uid, wish.held)
    for removal in plan.gates:
        gates = state.tasks[removal.key].gates if removal.key in state.tasks else ()
        _change(state, removal.key, gates=tuple(gate for gate in gates if gate != QUEUE_ALLOCATION_GATE))


def _set_allocated(state: ClusterState, update: QueueUpdate) -> None:
    queue = state.queues.get(update.name)
    if queue is not None:
        state.queues[update.name] = replace(
            queue, status=replace(queue.status, allocated=update.allocated, fault=update.fault)
        )


def tentative_names(session: Session) -> dict[str, str]:
    """By pod, the node on which a task was placed in this session without being bound, taken back or not."""
    found: dict[str, str] = {}
    for job in session.jobs.peek():
        for task in job.of(TaskStatus.Pending, TaskStatus.Allocated, TaskStatus.Pipelined):
            if task.status is TaskStatus.Allocated:
                found[task.key] = task.node_name
            elif task.last is not None and task.last.status is TaskStatus.Allocated:
                found[task.key] = task.last.node_name
    return found


def leave_names(state: ClusterState, plan: Plan, names: Mapping[str, str]) -> None:
    """Pods that were placed tentatively, and that are written after the cycle, count as bound from then on."""
    bound = {bind.key for bind in plan.binds}
    for written in plan.pod_conditions:
        if written.key in names and written.key not in bound:
            _change(state, written.key, node_name=names[written.key], status=TaskStatus.Bound)


def _change(state: ClusterState, key: str, nominated_node: str = "", **values: object) -> None:
    """Give the pod ``key`` other values, if it is still there; a nominated node is only ever replaced."""
    task = state.tasks.get(key)
    if task is None:
        return
    changed = twin(task)
    changed.nominated_node = nominated_node or task.nominated_node
    for name, value in values.items():
        setattr(changed, name, value)
    state.remove_task(task)
    state.add_task(changed)


def _end(state: ClusterState, key: str, terminating: bool) -> None:
    if terminating:
        _change(state, key, status=TaskStatus.Releasing)
    elif key in state.tasks:
        state.remove_task(state.tasks[key])


def apply_change(state: ClusterState, change: ScenarioChange) -> list[ManifestError]:
    """Let what a scenario says happen; returns what could not be used."""
    for key in change.delete_pods:
        _end(state, key, terminating=False)
    for key in change.succeed_pods:
        _change(state, key, status=TaskStatus.Succeeded)
    return take(state, change.objects())


def take(state: ClusterState, events: Iterable[Event | ManifestError]) -> list[ManifestError]:
    """Apply all events; returns what could not be used."""
    problems: list[ManifestError] = []
    for event in events:
        if isinstance(event, ManifestError):
            problems.append(event)
            continue
        try:
            state.apply(event)
        except ManifestError as error:
            problems.append(error)
    return problems
