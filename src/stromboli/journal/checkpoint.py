"""A whole state as bytes and back: the state that is read gives the snapshots that the written one would have given."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from stromboli.api.topology import HyperNodeSpec
from stromboli.cluster.decoding import decode
from stromboli.cluster.decoding.attachable import Attachable
from stromboli.cluster.decoding.shards import Shards
from stromboli.cluster.state import ClusterState
from stromboli.errors import SnapshotError
from stromboli.model.claims import Allocation, DeviceObjects
from stromboli.model.codec import JobRow, Reader, TemplateRow, Writer
from stromboli.model.disruption import DisruptionBudget
from stromboli.model.job import Job
from stromboli.model.numa import NumaSpec
from stromboli.model.objects.storage import Storage
from stromboli.model.queue import PriorityClass, Queue, ResourceQuota
from stromboli.model.reservation import mentioned
from stromboli.model.resources.device_settings import DeviceSettings
from stromboli.model.resources.request import RequestGates
from stromboli.model.spec import LabelSelector, NodeSpec
from stromboli.model.task import PodTemplate, Task
from stromboli.model.usage import NodeUsage
from stromboli.model.values.format import Format


class _Settings(msgspec.Struct, frozen=True, array_like=True):
    default_queue: str
    ignored: list[str]
    reserving: bool
    gates: tuple[bool, bool]
    utc_offset: int
    number: int
    axes: list[str]
    templates_made: int
    templates_kept: int
    queue_columns: int
    uncounted: list[str] = []
    """Names of :attr:`~stromboli.model.resources.axes.Axes.ignored`."""


class _Values(msgspec.Struct, frozen=True):
    """What is written as it stands, by the name of its attribute in the state."""

    queues: dict[str, Queue]
    priorities: dict[str, PriorityClass]
    quotas: dict[str, dict[str, ResourceQuota]]
    namespace_labels: dict[str, dict[str, str]]
    services: dict[str, dict[str, LabelSelector]]
    budgets: dict[str, DisruptionBudget]
    usage: dict[str, NodeUsage]
    device_settings: dict[str, DeviceSettings]
    memory: dict[str, dict[str, float]]
    _upstream: dict[str, dict[str, str]] = {}


class _Body(msgspec.Struct, frozen=True):
    settings: _Settings
    values: _Values
    hyper_nodes: dict[str, HyperNodeSpec]
    numa: dict[str, NumaSpec]
    refused: dict[str, list[str]]
    storage: Storage
    given: dict[str, dict[str, str]]
    attachable: bool
    devices: DeviceObjects
    given_devices: dict[str, tuple[str, dict[str, Allocation]]]
    templates: list[TemplateRow]
    keys: list[tuple[bytes, int]]
    tasks: msgspec.Raw
    pods: list[int]
    nodes: list[tuple[str, NodeSpec | None, list[int]]]
    jobs: list[JobRow]
    shards: Shards = Shards()


CHECKPOINT: Final = Format("checkpoint", 2, _Body)
"""How states are written."""


class Checkpoint:
    """What a state is at this moment; :meth:`encode` may be called later, in another thread, as the state goes on."""

    def __init__(self, state: ClusterState) -> None:
        templates, gates = state.templates, state.templates.gates
        self._settings = _Settings(
            state.default_queue, sorted(state.ignored), state.reserving,
            (gates.pod_level_resources, gates.in_place_resize), state.utc_offset, state._number,
            list(state.axes.names), templates._next, templates._many, state._queue_names._columns,
            sorted(state.axes.ignored),
        )  # fmt: skip
        self._values = {field: _copied(getattr(state, field)) for field in _Values.__struct_fields__}
        self._hyper_nodes, self._numa = dict(state.hyper_nodes.specs()), state.numa.shown()
        self._refused = {name: sorted(some) for name, some in state._queue_names._refused.items()}
        self._storage, self._devices = state.storage.plain(), state.storage.devices.plain()
        self._given = {uid: dict(volumes) for uid, volumes in state.storage.given.items()}
        self._given_devices = {uid: (key, dict(claims)) for uid, (key, claims) in state.storage.devices.given.items()}
        self._attachable = state.storage.attachable is not None
        self._templates, self._shards = dict(templates._known), state.nodes.shards.plain()
        self._pods: list[Task] = list(state.tasks.values())
        self._nodes = [(name, one.spec, [*one.tasks.values()]) for name, one in state.nodes.entries().items()]
        self._jobs: list[Job] = list(state.jobs.values())
        state.keep_jobs()

    def encode(self) -> bytes:
        """The state as bytes.  Raises :class:`~stromboli.errors.SnapshotError` for what cannot be written."""
        rows = Writer()
        keys = [(key, rows.number(template)) for key, template in self._templates.items()]
        pods = [*map(rows.task, self._pods)]
        nodes = [(name, spec, [*map(rows.task, tasks)]) for name, spec, tasks in self._nodes]
        jobs = [*map(rows.job, self._jobs)]
        return CHECKPOINT.pack(_Body(
            self._settings, _Values(**self._values), self._hyper_nodes, self._numa, self._refused,
            self._storage, self._given, self._attachable, self._devices, self._given_devices,
            list(rows.templates.values()), keys, rows.tasks, pods, nodes, jobs,
            self._shards,
        ))  # fmt: skip


def _copied(found: dict[str, Any]) -> Any:
    return {key: dict(value) if isinstance(value, dict) else value for key, value in found.items()}


def restored(data: bytes, *, again: bool = False) -> ClusterState:
    """The state that a :class:`Checkpoint` wrote; ``again``: its next snapshot has the number of the last one.

    Raises :class:`~stromboli.errors.SnapshotError`.
    """
    body = CHECKPOINT.unpack(data)
    try:
        found = _state(body, Reader(body.templates, body.tasks))
        found._number -= again
        return found
    except (IndexError, KeyError, TypeError, ValueError, OverflowError, msgspec.DecodeError) as error:
        raise SnapshotError(f"this checkpoint is damaged: {type(error).__name__}: {error}") from error


def _state(body: _Body, rows: Reader) -> ClusterState:
    found, settings = ClusterState(body.settings.default_queue), body.settings
    found.ignored, found.reserving = frozenset(settings.ignored), settings.reserving
    found.utc_offset, found._number = settings.utc_offset, settings.number
    found.axes.ignored = frozenset(settings.uncounted)
    for name in settings.axes[len(found.axes) :]:
        found.axes.column(name)
    for field in _Values.__struct_fields__:
        getattr(found, field).update(getattr(body.values, field))
    found.priorities.find_default()
    found.storage.restore(body.storage)
    found.storage.devices.restore(body.devices)
    found.storage.given = dict(body.given)
    found.storage.devices.given = dict(body.given_devices)
    found.hyper_nodes._specs, found.numa._specs = body.hyper_nodes, body.numa
    found.nodes.shards.restore(body.shards)
    names = found._queue_names
    names._columns, names._refused = (
        settings.queue_columns,
        {key: frozenset(some) for key, some in body.refused.items()},
    )
    _fill_templates(found, body, rows.templates)
    if body.attachable:
        found.storage.attachable = Attachable(found, body.storage.ignored)
    _fill_nodes(found, body, rows)
    for row in body.jobs:
        job = found.jobs[row.uid] = rows.job(row)
        job.stamp = 0
        found.sums.touch(job)
        found._note_closeness(job)
    return found


def _fill_templates(state: ClusterState, body: _Body, made: dict[int, PodTemplate]) -> None:
    store = state.templates
    store.gates = RequestGates(*body.settings.gates)
    store._next, store._many = body.settings.templates_made, body.settings.templates_kept
    store._known = {key: made[number] for key, number in body.keys}


def _fill_nodes(state: ClusterState, body: _Body, rows: Reader) -> None:
    for task in (rows.tasks[number] for number in body.pods):
        state.tasks[task.key], state._uids[task.uid] = task, task.key
        if state.storage.attachable is not None:
            state.storage.attachable.follow(task)
        if state.reserving and mentioned(task.annotations):
            state._reserved.add(task.key)
    for _name, spec, numbers in body.nodes:
        if spec is not None:
            state.nodes.set_node(spec, state.axes.vector(decode.offer_of(spec)))
        for number in numbers:
            state.nodes.add(rows.tasks[number])
