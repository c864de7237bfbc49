"""What happens to a cluster between two cycles when everything that was decided simply comes true."""

from __future__ import annotations

from collections.abc import Iterable

from stromboli.cluster.events import Event
from stromboli.cluster.scenario import Change
from stromboli.cluster.state import ClusterState
from stromboli.errors import ManifestError
from stromboli.framework.plan import Plan
from stromboli.model.names import QUEUE_ALLOCATION_GATE
from stromboli.model.podgroup import PodGroupStatus
from stromboli.model.status import TaskStatus
from stromboli.model.task import Condition, Task, twin


def apply_plan(state: ClusterState, plan: Plan, bound_become: str = "", evicted_become: str = "") -> None:
    """Bound pods run (``bound_become`` Bound: stay bound), evicted ones are gone (``terminating``: stay, marked), and
    what the cycle wrote on PodGroups and pods stands there; gates that it opened are gone.
    """
    for update in plan.pod_groups:
        if update.key in state.jobs:
            status = PodGroupStatus(update.phase, update.conditions, update.running, update.succeeded, update.failed)
            state.set_status(update.key, status)
    for written in plan.pod_conditions:
        if (task := state.tasks.get(written.key)) is not None:
            changed = twin(task)
            changed.condition = Condition("False", written.reason, written.message)
            changed.nominated_node = written.nominated_node or task.nominated_node
            _replace(state, task, changed)
    for removal in plan.gates:
        if (task := state.tasks.get(removal.key)) is not None:
            changed = twin(task)
            changed.gates = tuple(gate for gate in task.gates if gate != QUEUE_ALLOCATION_GATE)
            _replace(state, task, changed)
    for bind in plan.binds:
        if (task := state.tasks.get(bind.key)) is not None:
            changed = twin(task)
            changed.node_name = bind.node
            changed.status = TaskStatus.Bound if bound_become == "Bound" else TaskStatus.Running
            _replace(state, task, changed)
    for eviction in plan.evictions:
        if (task := state.tasks.get(eviction.key)) is not None:
            _end(state, task, terminating=evicted_become == "terminating")


def _end(state: ClusterState, task: Task, terminating: bool) -> None:
    if terminating:
        changed = twin(task)
        changed.status = TaskStatus.Releasing
        _replace(state, task, changed)
    else:
        state.remove_task(task)


def apply_change(state: ClusterState, change: Change) -> list[ManifestError]:
    """Let what a scenario says happen; returns what could not be used."""
    for key in change.delete_pods:
        if (task := state.tasks.get(key)) is not None:
            state.remove_task(task)
    for key in change.succeed_pods:
        if (task := state.tasks.get(key)) is not None:
            changed = twin(task)
            changed.status = TaskStatus.Succeeded
            _replace(state, task, changed)
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


def _replace(state: ClusterState, old: Task, new: Task) -> None:
    state.remove_task(old)
    state.add_task(new)
