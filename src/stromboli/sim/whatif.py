"""What would help a job that waits: changes of the cluster, each confirmed by a cycle run on the changed snapshot."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

from msgspec.structs import replace

from stromboli.cluster.decode import job_facts, offer_of
from stromboli.model.job import Job
from stromboli.model.queue import Queue
from stromboli.model.spec import NodeSpec
from stromboli.sim.planning import Planning
from stromboli.sim.reasons import PLACES, placeable

SLOWEST = 2.0
"""Seconds that a cycle may take for other cycles to be tried."""
MOST_NODES = 16
"""How many more nodes are tried at most."""


class Change(NamedTuple):
    """Something that might help: in words, and a way to make it and to take it back."""

    words: str
    make: Callable[[], None]
    undo: Callable[[], None]


def what_would_help(planning: Planning, uid: str) -> tuple[str, ...]:
    """The changes, each on its own, with which a cycle binds pods of job ``uid``; none where cycles are slow."""
    if planning.cycle_wall[-1] > SLOWEST:
        return ()
    with _kept(planning):
        return tuple(
            change.words for change in _changes(planning, planning.state.jobs[uid]) if _helps(planning, uid, change)
        )


@contextmanager
def _kept(planning: Planning) -> Iterator[None]:
    """Cycles run meanwhile leave no trace in the planning."""
    kept = planning.plans, planning.figures, planning.shares, planning.cycle_cpu, planning.cycle_wall
    planning.plans, planning.cycle_cpu, planning.cycle_wall = [], [], []
    planning.observer.quiet = True
    try:
        yield
    finally:
        planning.plans, planning.figures, planning.shares, planning.cycle_cpu, planning.cycle_wall = kept
        planning.observer.quiet = False


def _helps(planning: Planning, uid: str, change: Change) -> bool:
    change.make()
    try:
        return any(bind.job == uid for bind in planning.cycle().session.plan.binds)
    finally:
        change.undo()


def _changes(planning: Planning, job: Job) -> Iterator[Change]:
    """What is tried, in this order: a smaller gang, a queue without limits, more nodes of each kind."""
    yield from _smaller_gang(planning, job)
    queue = planning.state.queues.get(job.queue)
    if queue is not None:
        yield from _wider_queue(planning, queue)
    yield from _more_nodes(planning, job)


def _smaller_gang(planning: Planning, job: Job) -> Iterator[Change]:
    seen = planning.last.session.jobs.peek_at(job.uid)
    enough = seen.number(*PLACES) + placeable(seen) if seen is not None else 0
    if not 0 < enough < job.min_available:
        return
    group = job.group
    smaller = replace(group, spec=replace(group.spec, min_member=enough, min_task_member={}))
    state = planning.state
    yield Change(
        f"minMember {enough} instead of {job.min_available} in PodGroup {job.uid}",
        lambda: state.set_group(job_facts(smaller, state.default_queue, state.axes)),
        lambda: state.set_group(job_facts(group, state.default_queue, state.axes)),
    )


def _wider_queue(planning: Planning, queue: Queue) -> Iterator[Change]:
    name = queue.name
    wider = {
        f"queue {name} without its capability": replace(queue.spec, capability=None),
        f"weight {queue.spec.weight * 10} instead of {queue.spec.weight} in queue {name}": replace(
            queue.spec, weight=queue.spec.weight * 10
        ),
    }
    for words, spec in wider.items():
        if spec != queue.spec:
            yield _queue_change(planning, words, queue, replace(queue, spec=spec))


def _queue_change(planning: Planning, words: str, queue: Queue, wider: Queue) -> Change:
    queues, name = planning.state.queues, queue.name
    return Change(words, lambda: queues.__setitem__(name, wider), lambda: queues.__setitem__(name, queue))


def _more_nodes(planning: Planning, job: Job) -> Iterator[Change]:
    """One more node, two, four ... like the largest of each kind; no larger number of a kind once one has helped."""
    for spec in _kinds(planning):
        count = 1
        while count <= MOST_NODES:
            change = _copies(planning, spec, count)
            if _helps(planning, job.uid, change):
                yield change
                return
            count *= 2


def _kinds(planning: Planning) -> list[NodeSpec]:
    """One node of each kind: equal offer, labels other than the name, and taints."""
    kinds: dict[object, NodeSpec] = {}
    for spec in planning.last.session.table.statics.specs:
        labels = tuple(sorted((key, value) for key, value in spec.labels.items() if value != spec.name))
        kinds.setdefault((str(offer_of(spec)), labels, spec.taints, spec.unschedulable), spec)
    return list(kinds.values())[:6]


def _copies(planning: Planning, spec: NodeSpec, count: int) -> Change:
    state, name = planning.state, spec.name
    names = [f"{name}-more-{number}" for number in range(1, count + 1)]

    def make() -> None:
        for each in names:
            labels = {key: each if value == name else value for key, value in spec.labels.items()}
            state.nodes.set_node(replace(spec, name=each, labels=labels), state.axes.vector(offer_of(spec)))

    def undo() -> None:
        for each in names:
            state.nodes.drop_node(each)

    return Change(f"{count} more {'node' if count == 1 else 'nodes'} like {name}", make, undo)
