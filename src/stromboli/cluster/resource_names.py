"""Which names of resources have a column: those that nodes offer or queues name, from then on.

A column is never given back, and queues come and go: they get :data:`MOST_OF_QUEUES` columns and no more.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Final, TypeAlias

import msgspec

from stromboli.cluster.decoding.decode import job_facts
from stromboli.model.queue import Queue, QueueSpec
from stromboli.model.resources.axes import UNOFFERED
from stromboli.model.resources.resource import Resource
from stromboli.model.spec import Amount, NodeSpec

if TYPE_CHECKING:
    from stromboli.cluster.state import ClusterState

Amounts: TypeAlias = dict[str, Amount]


MOST_OF_QUEUES: Final = 128
"""Columns that a state has at most for names that no node offered when a queue named them."""


REGISTER: Final = "hami.io/node-register-"
"""With the name of a chip, the annotation of a node in which HAMi's device plugin registers its devices."""
MOST_IGNORED: Final = 64
"""Names of parts of devices that a state notes."""


class QueueNames:
    """The names that queues brought; what is beyond the bound counts as not offered until a node offers it."""

    __slots__ = ("_columns", "_refused", "_state")

    def __init__(self, state: ClusterState) -> None:
        self._state, self._columns = state, 0
        self._refused: dict[str, frozenset[str]] = {}

    def take(self, queue: Queue) -> None:
        """Give the names of ``queue`` columns, in order, while the bound allows it."""
        known = self._state.axes.index.keys()
        new = sorted({*names_in(queue.spec)} - known)
        taken, refused = new[: MOST_OF_QUEUES - self._columns], new[MOST_OF_QUEUES - self._columns :]
        self._columns += len(taken)
        learn(self._state, taken)
        self._refused.pop(queue.name, None)
        if refused:
            self._refused[queue.name] = frozenset(refused)

    def shown(self, queues: Mapping[str, Queue]) -> dict[str, Queue]:
        """``queues`` in the order of their creation, without what they say of names beyond the bound."""
        found = dict(sorted(queues.items(), key=lambda item: (item[1].created, item[0])))
        for name, refused in self._without_column():
            if name in found:
                found[name] = msgspec.structs.replace(found[name], spec=_without(found[name].spec, refused))
        return found

    def problems(self) -> Iterator[str]:
        """Which queues name resources beyond the bound."""
        for queue, refused in sorted(self._without_column()):
            names = ", ".join(sorted(refused)[:3]) + (" and others" if len(refused) > 3 else "")
            problem = f"queues have named {MOST_OF_QUEUES} resources that no node offered, what it says of {names}"
            yield f"queue {queue}: {problem} does not count"

    def _without_column(self) -> Iterator[tuple[str, frozenset[str]]]:
        for queue, refused in self._refused.items():
            if queue in self._state.queues and (left := refused - self._state.axes.index.keys()):
                yield queue, left


def _without(spec: QueueSpec, names: frozenset[str]) -> QueueSpec:
    def kept(amounts: Amounts | None) -> Amounts | None:
        return None if amounts is None else {name: amounts[name] for name in amounts if name not in names}

    guarantee = spec.guarantee and msgspec.structs.replace(spec.guarantee, resource=kept(spec.guarantee.resource))
    return msgspec.structs.replace(
        spec, capability=kept(spec.capability), deserved=kept(spec.deserved), guarantee=guarantee
    )


def names_in(spec: QueueSpec) -> Iterator[str]:
    """Names of the resources that a queue limits, deserves or guarantees."""
    guarantee = spec.guarantee.resource if spec.guarantee else None
    for amounts in (spec.capability, spec.deserved, guarantee):
        yield from Resource.from_list(amounts or {}).scalars or ()


def learn_node(state: ClusterState, node: NodeSpec) -> None:
    """Take over the names that a node offers; those of its devices' parts are no longer counted."""
    learn(state, node.allocatable)
    chips = (key.removeprefix(REGISTER) for key in node.annotations if key.startswith(REGISTER))
    parts = {f"huawei.com/{chip}-{part}" for chip in chips for part in ("memory", "core")}
    new = parts - state.axes.ignored
    if new and len(state.axes.ignored) < MOST_IGNORED:
        state.axes.ignored |= new
        _recount_tasks(state, frozenset(new))
        _recount_jobs(state, frozenset(new))


def learn(state: ClusterState, names: Iterable[str]) -> None:
    """Give ``names`` columns of their own; pods and jobs that already request one are counted again."""
    new = frozenset(names) - state.axes.index.keys()
    for name in sorted(new):
        state.axes.column(name)
    if new and UNOFFERED in state.axes.index:
        _recount_tasks(state, new)
        _recount_jobs(state, new)


def _recount_tasks(state: ClusterState, new: frozenset[str]) -> None:
    made = state.templates.learn(new)
    for task in [task for task in state.tasks.values() if task.template.number in made]:
        state.remove_task(task)
        state.add_task(msgspec.structs.replace(task, template=made[task.template.number]))


def _recount_jobs(state: ClusterState, new: frozenset[str]) -> None:
    for job in [*state.jobs.values()]:
        least = job.facts.min_resources
        if least is not None and least.scalars and not new.isdisjoint(least.scalars):
            state.set_group(job_facts(job.group, state.default_queue, state.axes))
