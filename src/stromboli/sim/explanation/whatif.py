"""What would help a job that waits: changes of the cluster, each confirmed by a cycle run on the changed snapshot."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import NamedTuple

from msgspec.structs import replace

from stromboli.api.scheduling import PodGroupSpec
from stromboli.cluster.decoding.decode import job_facts, offer_of
from stromboli.framework.session.topology import is_hard, job_topology
from stromboli.model.job import Job
from stromboli.model.names import TOPOLOGY_GROUP
from stromboli.model.podgroup import PodGroup
from stromboli.model.queue import Queue, QueueSpec
from stromboli.model.spec import NodeSpec
from stromboli.sim.explanation.reasons import PLACES, placeable
from stromboli.sim.planning import Planning

SECONDS = 6.0
"""What all tries together may take, by what the last cycle took; MOST_TRIES are enough for small clusters."""
MOST_TRIES = 40
MOST_NODES = 16
"""How many more nodes are tried at most."""


class WhatIf(NamedTuple):
    """Something that might help: in words, and a way to make it and to take it back."""

    words: str
    make: Callable[[], None]
    undo: Callable[[], None]


class Help(NamedTuple):
    """Changes that help, in words, which sorts of change were tried, and for how many series there was no time."""

    words: tuple[str, ...] = ()
    tried: tuple[str, ...] = ()
    untried: int = 0


class Series(NamedTuple):
    """Changes of one ``sort``, from little to much."""

    sort: str
    changes: Sequence[WhatIf]


def what_would_help(planning: Planning, uid: str) -> Help:
    """The changes, each alone, with which a cycle binds pods of job ``uid``; where cycles are slow few are tried.

    A job whose pods are made once it is admitted is helped by what has it admitted.
    On a cluster without nodes none is tried: there is no kind of node to have more of, and nothing else would do.
    """
    if not len(planning.last.session.table):
        return Help()
    found = planning.last.session.jobs.peek_at(uid)
    has_pods = found is not None and bool(found.tasks)
    if found is not None and not has_pods and not found.is_pending():
        return Help()  # it is admitted, and waits for its controller alone
    tries = min(MOST_TRIES, int(SECONDS / max(planning.cycle_wall[-1], 1e-6)))
    series = [each for each in _series(planning, planning.state.jobs[uid]) if each.changes]
    with _kept(planning):
        return _tried(partial(_helps, planning, uid, has_pods), series, tries)


def _tried(helps: Callable[[WhatIf], bool], series: Sequence[Series], tries: int) -> Help:
    """Of each series the first change that helps.  A series goes from little to much, so its end is tried first."""
    words: list[str] = []
    sorts: dict[str, None] = {}
    for place, (sort, (*less, most)) in enumerate(series):
        if not tries:
            return Help(tuple(words), tuple(sorts), len(series) - place)
        sorts[sort] = None
        tries -= 1
        if not helps(most):
            continue
        enough = next((change for change in less[:tries] if helps(change)), most)
        tries -= min(tries, less.index(enough) + 1 if enough in less else len(less))
        words.append(enough.words)
    return Help(tuple(words), tuple(sorts))


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


def _helps(planning: Planning, uid: str, has_pods: bool, change: WhatIf) -> bool:
    """Whether a cycle binds pods of the job then, or admits it where there are none yet."""
    change.make()
    try:
        session = planning.cycle().session
        found = session.jobs.peek_at(uid)
        admitted = not has_pods and found is not None and not found.is_pending()
        return admitted or any(bind.job == uid for bind in session.plan.binds)
    finally:
        change.undo()


def _series(planning: Planning, job: Job) -> Iterator[Series]:
    """What is tried: a smaller gang, a wider tier, no topology group, a wider or heavier queue, more nodes."""
    yield Series("a smaller gang", list(_smaller_gang(planning, job)))
    yield Series("a wider topology", list(_wider_topology(planning, job)))
    yield Series("no topology group", list(_no_topology_group(planning, job)))
    queue = planning.state.queues.get(job.queue)
    if queue is not None:
        weight = queue.spec.weight
        unlimited, heavier = replace(queue.spec, capability=None), replace(queue.spec, weight=weight * 10)
        without, more = f"queue {queue.name} without its capability", f"weight {weight * 10} instead of {weight}"
        yield Series("a wider queue", list(_wider_queue(planning, queue, unlimited, without)))
        yield Series("a wider queue", list(_wider_queue(planning, queue, heavier, f"{more} in queue {queue.name}")))
    for spec in _kinds(planning):
        yield Series("more nodes", list(_more_nodes(planning, spec)))


def _smaller_gang(planning: Planning, job: Job) -> Iterator[WhatIf]:
    seen = planning.last.session.jobs.peek_at(job.uid)
    enough = seen.number(*PLACES) + placeable(seen) if seen is not None else 0
    if not 0 < enough < job.min_available:
        return
    smaller = replace(job.group.spec, min_member=enough, min_task_member={})
    yield _changed_group(planning, job, smaller, f"minMember {enough} instead of {job.min_available}")


def _wider_topology(planning: Planning, job: Job) -> Iterator[WhatIf]:
    """The next tier up, and so on, for the job as a whole."""
    session = planning.last.session
    topology = job_topology(session, job)
    if topology is None or topology.highest_tier_allowed is None or not is_hard(topology):
        return
    for tier in session.hyper_nodes.by_tier:
        if topology.highest_tier_allowed < tier < session.hyper_nodes.top.tier:
            wider = replace(topology, highest_tier_allowed=tier, highest_tier_name="")
            spec = replace(job.group.spec, network_topology=wider)
            yield _changed_group(planning, job, spec, f"highestTierAllowed {tier}")


def _no_topology_group(planning: Planning, job: Job) -> Iterator[WhatIf]:
    if TOPOLOGY_GROUP in job.annotations:
        alone = {key: text for key, text in job.annotations.items() if key != TOPOLOGY_GROUP}
        changed = replace(job.group, annotations=alone)
        yield _another_group(planning, job, changed, f"no annotation {TOPOLOGY_GROUP} of PodGroup {job.uid}")


def _changed_group(planning: Planning, job: Job, spec: PodGroupSpec, words: str) -> WhatIf:
    return _another_group(planning, job, replace(job.group, spec=spec), f"{words} in PodGroup {job.uid}")


def _another_group(planning: Planning, job: Job, changed: PodGroup, words: str) -> WhatIf:
    state, group = planning.state, job.group
    return WhatIf(
        words,
        lambda: state.set_group(job_facts(changed, state.default_queue, state.axes)),
        lambda: state.set_group(job_facts(group, state.default_queue, state.axes)),
    )


def _wider_queue(planning: Planning, queue: Queue, spec: QueueSpec, words: str) -> Iterator[WhatIf]:
    queues, name = planning.state.queues, queue.name
    if spec != queue.spec:
        wider = replace(queue, spec=spec)
        yield WhatIf(words, lambda: queues.__setitem__(name, wider), lambda: queues.__setitem__(name, queue))


def _more_nodes(planning: Planning, spec: NodeSpec) -> Iterator[WhatIf]:
    """One more node like ``spec``, two, four ..."""
    count = 1
    while count <= MOST_NODES:
        yield _copies(planning, spec, count)
        count *= 2


def _kinds(planning: Planning) -> list[NodeSpec]:
    """One node of each kind: equal offer, labels other than the name, and taints."""
    kinds: dict[object, NodeSpec] = {}
    for spec in planning.last.session.table.statics.specs:
        labels = tuple(sorted((key, value) for key, value in spec.labels.items() if value != spec.name))
        kinds.setdefault((str(offer_of(spec)), labels, spec.taints, spec.unschedulable), spec)
    return list(kinds.values())


def _copies(planning: Planning, spec: NodeSpec, count: int) -> WhatIf:
    state, name = planning.state, spec.name
    names = [f"{name}-more-{number}" for number in range(1, count + 1)]

    def make() -> None:
        for each in names:
            labels = {key: each if value == name else value for key, value in spec.labels.items()}
            state.nodes.set_node(replace(spec, name=each, labels=labels), state.axes.vector(offer_of(spec)))

    def undo() -> None:
        for each in names:
            state.nodes.drop_node(each)

    return WhatIf(f"{count} more {'node' if count == 1 else 'nodes'} like {name}", make, undo)
