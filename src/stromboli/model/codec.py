"""Snapshots as bytes and back: MessagePack with a name and a version in front.

A decoded snapshot gives the same plan as the one it was made from, in any process: orders are kept, amounts are whole
numbers of any size, and what was shared between pods is shared again.  Take it down before a session changes it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, TypeVar

import msgspec
import numpy as np

from stromboli.api.fields import NetworkTopology
from stromboli.api.scheduling import PodGroupCondition
from stromboli.errors import SnapshotError
from stromboli.model.claims import DeviceObjects, Devices
from stromboli.model.disruption import DisruptionBudget
from stromboli.model.job import Job, JobFacts
from stromboli.model.jobs.hyper_nodes import JobHyperNodes
from stromboli.model.jobs.sums import Sums
from stromboli.model.numa import NumaSpec
from stromboli.model.objects.shard import Shard
from stromboli.model.objects.storage import Storage
from stromboli.model.podgroup import PodGroup
from stromboli.model.queue import Queue, ResourceQuota
from stromboli.model.resources.axes import Axes, Vector
from stromboli.model.resources.device_settings import DeviceSettings
from stromboli.model.resources.resource import Resource
from stromboli.model.snapshot import HyperNodeInfo, NodeTasks, QueueSums, Snapshot
from stromboli.model.spec import LabelSelector, NodeSpec, PodSpec
from stromboli.model.status import TaskStatus
from stromboli.model.table import AMOUNTS, NodeStatics, NodeTable
from stromboli.model.task import PodTemplate, Task
from stromboli.model.usage import NodeUsage
from stromboli.model.values.format import Format

T = TypeVar("T")

Whole = int | str
"""A whole number; a text of its digits where it needs more than 64 bits, which MessagePack does not have."""

LARGEST: Final = 2**63 - 1


# ---------------------------------------------------------------------- the records


class _Row(msgspec.Struct, frozen=True, array_like=True):
    """Base of the records: fields by position."""


class _Amount(_Row, frozen=True):
    milli_cpu: int | float
    memory: int | float
    scalars: dict[str, int | float] | None
    max_task_num: int


class TemplateRow(_Row, frozen=True):
    """A template of pods."""

    number: int
    spec: PodSpec
    request: _Amount
    vector: list[Whole]
    nonzero: list[Whole]


class _TaskRow(Task, array_like=True):
    """A task by position, its template as a number."""


class _Facts(_Row, frozen=True):
    group: PodGroup
    queue: str
    priority: int
    min_available: int
    task_min: dict[str, int]
    min_resources: _Amount | None
    min_vector: list[Whole]
    waiting_time: float | None
    preemptable: bool
    revocable_zone: str
    budget: tuple[str, str]
    network_topology: NetworkTopology | None


class JobRow(_Row, frozen=True):
    """A job, its tasks as numbers."""

    uid: str
    facts: _Facts
    tasks: list[int]
    index: list[tuple[TaskStatus, list[str]]]
    sums: dict[str, list[Whole]]
    phase: str
    conditions: tuple[PodGroupCondition, ...]
    annotations: dict[str, str]
    fit_error_text: str
    allocated_hyper_node: str
    part_hyper_nodes: dict[str, str]
    nominated_hyper_nodes: dict[str, str]
    started: float | None  # never set, but read by earlier versions
    stamp: int


class _QueueSums(_Row, frozen=True):
    amounts: dict[str, list[Whole]]
    jobs: int


class _HyperNode(_Row, frozen=True):
    name: str
    tier: int
    parent: str
    rows: list[int]
    children: list[str]
    known: bool


class _Body(msgspec.Struct, frozen=True):
    axes: list[str]
    nodes: list[NodeSpec]
    amounts: dict[str, bytes]
    templates: list[TemplateRow]
    templates_known: int | None
    tasks: msgspec.Raw
    node_tasks: list[list[int]]
    reserved: list[int]
    jobs: list[JobRow]
    queues: list[Queue]
    queue_sums: dict[str, _QueueSums]
    quotas: dict[str, dict[str, ResourceQuota]]
    namespace_labels: dict[str, dict[str, str]]
    services: dict[str, dict[str, LabelSelector]]
    usage: dict[str, NodeUsage]
    budgets: list[DisruptionBudget]
    claims: dict[str, dict[str, Devices]]
    memory: dict[str, dict[str, float]]
    utc_offset: int
    close_jobs: list[str] | None
    hyper_nodes: list[_HyperNode]
    hyper_node_tiers: dict[str, int]
    hyper_nodes_ready: bool
    cluster_uid: str
    number: int
    inconsistencies: list[str]
    queueless: dict[str, str] = {}
    numa: dict[str, NumaSpec] = {}
    storage: Storage = Storage()
    devices: DeviceObjects = DeviceObjects()
    device_settings: dict[str, DeviceSettings] = {}
    shard: Shard | None = None
    uncounted: list[str] = []
    """Names of :attr:`~stromboli.model.resources.axes.Axes.ignored`."""


SNAPSHOT: Final = Format("snapshot", 4, _Body)
"""How snapshots are written."""

SUMS: Final = ("allocated", "held", "request", "total")
"""Names of the sums of a job."""
_QUEUE_SUMS: Final = ("allocated", "held", "request", "elastic", "inqueue", "admitted")


def encode_snapshot(snapshot: Snapshot) -> bytes:
    """``snapshot`` as bytes.  Raises :class:`~stromboli.errors.SnapshotError` for what cannot be written."""
    return SNAPSHOT.pack(_body(Writer(), snapshot))


def decode_snapshot(data: bytes) -> Snapshot:
    """The snapshot that :func:`encode_snapshot` wrote.

    Raises :class:`~stromboli.errors.SnapshotError` for another kind or version of record, and for damage.
    """
    body = SNAPSHOT.unpack(data)
    try:
        return _snapshot(Reader(body.templates, body.tasks), body)
    except (IndexError, KeyError, ValueError, OverflowError, msgspec.DecodeError) as error:
        raise SnapshotError(f"this snapshot is damaged: {type(error).__name__}: {error}") from error


# ---------------------------------------------------------------------- writing


class Writer:
    """Takes templates, tasks and jobs down, every template and every task once, by numbers."""

    def __init__(self) -> None:
        self.templates: dict[int, TemplateRow] = {}
        self._tasks: dict[bytes, int] = {}
        self._numbers: dict[Task, int] = {}
        self._encode = msgspec.msgpack.Encoder(enc_hook=self.number).encode

    @property
    def tasks(self) -> msgspec.Raw:
        """All tasks, in the order of their numbers."""
        return msgspec.Raw(msgspec.msgpack.encode([msgspec.Raw(row) for row in self._tasks]))

    def task(self, task: Task) -> int:
        """The number of ``task``; equal tasks have one."""
        number = self._numbers.get(task)  # most stand in the cluster, on a node and in a job
        if number is None:
            row = self._encode(_TaskRow(*msgspec.structs.astuple(task)))
            number = self._numbers[task] = self._tasks.setdefault(row, len(self._tasks))
        return number

    def number(self, template: object) -> int:
        """The number of ``template``."""
        if not isinstance(template, PodTemplate):
            raise TypeError(f"no way to write a {type(template).__name__}")
        if template.number not in self.templates:
            self.templates[template.number] = TemplateRow(
                template.number, template.spec, _amount(template.request), _wholes(template.vector),
                _wholes(template.nonzero),
            )  # fmt: skip
        return template.number

    def job(self, job: Job) -> JobRow:
        """``job`` as it is written."""
        return JobRow(
            uid=job.uid,
            facts=_facts(job.facts),
            tasks=[*map(self.task, job.tasks.values())],
            index=[(status, list(members)) for status, members in job.index.items()],
            sums=_amounts(job.sums, SUMS),
            phase=job.phase,
            conditions=job.conditions,
            annotations=dict(job.annotations),
            fit_error_text=job.fit_error_text,
            allocated_hyper_node=job.hyper_nodes.allocated,
            part_hyper_nodes=dict(job.hyper_nodes.of_parts),
            nominated_hyper_nodes=dict(job.hyper_nodes.nominated),
            started=None,
            stamp=job.stamp,
        )


def _body(rows: Writer, snapshot: Snapshot) -> _Body:
    table = snapshot.table
    for template in snapshot.templates or ():
        rows.number(template)
    known = None if snapshot.templates is None else len(rows.templates)
    node_tasks = [[*map(rows.task, tasks.values())] for tasks in snapshot.node_tasks]
    jobs = [*map(rows.job, snapshot.jobs.values())]
    return _Body(
        reserved=[*map(rows.task, snapshot.reserved)],
        device_settings=dict(snapshot.device_settings), uncounted=sorted(snapshot.axes.ignored),
        axes=list(snapshot.axes.names), nodes=table.statics.specs,
        amounts={name: np.ascontiguousarray(getattr(table, name), dtype="<i8").tobytes() for name in AMOUNTS},
        templates=list(rows.templates.values()), templates_known=known,
        tasks=rows.tasks,
        node_tasks=node_tasks, jobs=jobs, queues=list(snapshot.queues.values()), numa=dict(snapshot.numa),
        queue_sums={name: _QueueSums(_amounts(s, _QUEUE_SUMS), s.jobs) for name, s in snapshot.queue_sums.items()},
        namespace_labels=_dicts(snapshot.namespace_labels), services=_dicts(snapshot.services),
        usage=dict(snapshot.usage), budgets=list(snapshot.budgets),
        claims=_dicts(snapshot.claims), memory=_dicts(snapshot.memory), utc_offset=snapshot.utc_offset,
        close_jobs=None if snapshot.close_jobs is None else list(snapshot.close_jobs),
        hyper_nodes=[msgspec.convert(h, _HyperNode, from_attributes=True) for h in snapshot.hyper_nodes.values()],
        hyper_node_tiers=snapshot.hyper_node_tiers, hyper_nodes_ready=snapshot.hyper_nodes_ready,
        cluster_uid=snapshot.cluster_uid, number=snapshot.number, queueless=dict(snapshot.queueless),
        storage=snapshot.storage, devices=snapshot.devices,
        inconsistencies=snapshot.inconsistencies, shard=snapshot.shard, quotas=_dicts(snapshot.quotas),
    )  # fmt: skip


def _dicts(nested: Mapping[str, Mapping[str, T]]) -> dict[str, dict[str, T]]:
    return {key: dict(inner) for key, inner in nested.items()}


def _facts(facts: JobFacts) -> _Facts:
    least = facts.min_resources
    return _Facts(
        facts.group, facts.queue, facts.priority, facts.min_available, dict(facts.task_min),
        None if least is None else _amount(least), _wholes(facts.min_vector), facts.waiting_time, facts.preemptable,
        facts.revocable_zone, facts.budget, facts.network_topology,
    )  # fmt: skip


def _amount(resource: Resource) -> _Amount:
    scalars = None if resource.scalars is None else dict(resource.scalars.items())
    return _Amount(resource.milli_cpu, resource.memory, scalars, resource.max_task_num)


def _amounts(sums: Sums | QueueSums, names: Sequence[str]) -> dict[str, list[Whole]]:
    return {name: _wholes(getattr(sums, name)) for name in names}


def _wholes(vector: Vector) -> list[Whole]:
    return [amount if -LARGEST <= amount <= LARGEST else str(amount) for amount in vector]


# ---------------------------------------------------------------------- reading


class Reader:
    """Makes templates (by their numbers) and tasks of what a :class:`Writer` took down, and jobs of them."""

    def __init__(self, templates: Sequence[TemplateRow], tasks: msgspec.Raw) -> None:
        self.templates = {row.number: _template(row) for row in templates}
        decoder = msgspec.msgpack.Decoder(list[_TaskRow], dec_hook=lambda _, number: self.templates[number])
        self.tasks = [Task(*msgspec.structs.astuple(row)) for row in decoder.decode(tasks)]

    def job(self, row: JobRow) -> Job:
        """The job of ``row``."""
        job = Job(row.uid, _facts_of(row.facts))
        tasks = {self.tasks[number].uid: self.tasks[number] for number in row.tasks}
        job.fill(tasks, {status: {uid: tasks[uid] for uid in members} for status, members in row.index})
        for name in SUMS:
            setattr(job.sums, name, _ints(row.sums[name]))
        job.phase, job.conditions, job.annotations = row.phase, row.conditions, row.annotations
        job.fit_error_text, job.stamp = row.fit_error_text, row.stamp
        job.hyper_nodes = JobHyperNodes(row.allocated_hyper_node, row.part_hyper_nodes, row.nominated_hyper_nodes)
        return job


def _snapshot(rows: Reader, body: _Body) -> Snapshot:
    axes = Axes(body.axes, frozenset(body.uncounted))
    found = Snapshot(axes, _table(axes, body))
    if body.templates_known is not None:
        found.templates = list(rows.templates.values())[: body.templates_known]
    found.node_tasks = [NodeTasks({rows.tasks[n].key: rows.tasks[n] for n in row}) for row in body.node_tasks]
    found.reserved = [rows.tasks[number] for number in body.reserved]
    found.jobs = {row.uid: rows.job(row) for row in body.jobs}
    found.queues = {queue.name: queue for queue in body.queues}
    found.queue_sums = {name: _queue_sums(row) for name, row in body.queue_sums.items()}
    found.quotas, found.namespace_labels, found.services = body.quotas, body.namespace_labels, body.services
    found.usage, found.budgets, found.close_jobs, found.numa = body.usage, body.budgets, body.close_jobs, body.numa
    found.claims, found.memory, found.utc_offset = body.claims, body.memory, body.utc_offset
    found.device_settings, found.shard = body.device_settings, body.shard
    found.hyper_nodes = {row.name: _hyper_node(row) for row in body.hyper_nodes}
    found.hyper_node_tiers, found.hyper_nodes_ready = body.hyper_node_tiers, body.hyper_nodes_ready
    found.storage, found.devices = body.storage, body.devices
    found.cluster_uid, found.number, found.queueless = body.cluster_uid, body.number, body.queueless
    found.inconsistencies = [*body.inconsistencies]
    return found


def _template(row: TemplateRow) -> PodTemplate:
    cpu, memory = _ints(row.nonzero)
    return PodTemplate(row.number, row.spec, _resource(row.request), tuple(_ints(row.vector)), (cpu, memory))


def _facts_of(row: _Facts) -> JobFacts:
    facts = JobFacts(row.group, row.queue)
    facts.priority, facts.min_available, facts.task_min = row.priority, row.min_available, row.task_min
    facts.min_resources = None if row.min_resources is None else _resource(row.min_resources)
    facts.min_vector, facts.waiting_time = tuple(_ints(row.min_vector)), row.waiting_time
    facts.preemptable, facts.revocable_zone = row.preemptable, row.revocable_zone
    facts.budget, facts.network_topology = row.budget, row.network_topology
    return facts


def _queue_sums(row: _QueueSums) -> QueueSums:
    sums = QueueSums()
    for name in _QUEUE_SUMS:
        setattr(sums, name, _ints(row.amounts[name]))
    sums.jobs = row.jobs
    return sums


def _hyper_node(row: _HyperNode) -> HyperNodeInfo:
    info = HyperNodeInfo(row.name, row.tier, row.rows, row.parent, known=row.known)
    info.children = list(row.children)
    return info


def _resource(row: _Amount) -> Resource:
    scalars = None if row.scalars is None else dict(row.scalars.items())
    return Resource(row.milli_cpu, row.memory, scalars, row.max_task_num)


def _ints(amounts: Sequence[Whole]) -> list[int]:
    return [int(amount) for amount in amounts]


def _table(axes: Axes, body: _Body) -> NodeTable:
    arrays = {}
    for name in AMOUNTS:
        flat = np.frombuffer(body.amounts[name], dtype="<i8").astype(np.int64)
        resources = 2 if name == "nonzero" else flat.size // len(body.nodes) if body.nodes else len(axes)
        arrays[name] = flat.reshape(resources, len(body.nodes))
    return NodeTable(axes, NodeStatics(body.nodes), arrays)


__all__ = ["SNAPSHOT", "JobRow", "Reader", "TemplateRow", "Writer", "decode_snapshot", "encode_snapshot"]
