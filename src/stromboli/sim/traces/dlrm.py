"""Import of the DLRM trace (instances of inference services, Alibaba 2025) onto the nodes of the spot GPU trace (2026).

The services rank with deep learning recommendation models whose instances are disaggregated: CN instances work on CPUs
only, HN instances have a GPU as well. Described in L. Yang et al., "GPU-Disaggregated Serving for Deep Learning
Recommendation Models at Scale", USENIX NSDI 2025.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from math import inf
from pathlib import Path
from typing import Final

from stromboli.errors import ManifestError
from stromboli.model.names import CPU, EPHEMERAL_STORAGE, GPU, MEMORY, TASK_SPEC
from stromboli.sim.traces.trace_objects import (
    CREATION_TIME,
    DELETION_TIME,
    MAX_PER_NODE,
    RDMA,
    SCHEDULED_TIME,
    Manifest,
    cores,
    gibibytes,
    gpus,
    membership,
    node,
    one_per_node,
    pod,
    pod_group,
    queue,
)
from stromboli.sim.traces.trace_rows import Row, distinct, read_rows

NODE_COLUMNS: Final = ("gpu_model", "gpu_capacity_num", "cpu_num", "node_name")
INSTANCE_COLUMNS: Final = (
    "instance_sn", "role", "app_name", "cpu_request", "gpu_request", "rdma_request", "memory_request", "disk_request",
    "max_instance_per_node", "creation_time", "scheduled_time", "deletion_time",
)  # fmt: skip

QUEUE: Final = "dlrm"
"""The queue of all applications; the trace does not say whose they are."""

APP: Final = "app"
"""Label of a pod: its application."""

MEMORY_GIB_PER_CPU: Final = 8
"""The node list has no memory. Instances ask for 2 to 10 GiB a core, 5 on average: with 8, cores run out first on most
nodes, as on machines of this kind they do."""

RDMA_PER_NODE: Final = 100
"""Instances ask for hundredths of a node's network card; every node is given one whole card."""

DISK_GIB_PER_NODE: Final = 8192
"""The node list has no disks. The largest instance asks for 996 GiB, so that disks never bind before the eight GPUs of
the largest node do."""


def import_dlrm(
    trace_csv: Path, nodes_csv: Path, memory_gib_per_cpu: float = MEMORY_GIB_PER_CPU, at: float | None = None
) -> Iterator[Manifest]:
    """The trace as manifests: all Nodes, a Queue, then for each application its PodGroup and its Pods.

    With `at` (seconds since the trace's start) only the instances alive at that moment become pods, and the gang of an
    application is all of them. Without it all instances of the trace do, and the gang (minMember) is as large as the
    number of instances alive when the application began: later ones come on top. Instances whose times are empty began
    before the trace, or outlived it. All pods are pending, their times are annotations. `memory_gib_per_cpu` is the
    memory of a node for each of its cores, in GiB, above 0. Raises ManifestError, naming file, line and column, at a
    row that does not hold what it should, and for memory that is not positive.
    """
    if not 0 < memory_gib_per_cpu < inf:
        raise ManifestError(f"{memory_gib_per_cpu} GiB of memory for each cpu is no size of a node; write e.g. 8")
    per_cpu = Fraction(memory_gib_per_cpu)
    for row in distinct(read_rows(nodes_csv, NODE_COLUMNS), "node_name"):
        yield node_of(row, per_cpu)
    yield queue(QUEUE)
    for name, instances in applications(distinct(read_rows(trace_csv, INSTANCE_COLUMNS), "instance_sn")).items():
        yield from application(name, instances, at)


def node_of(row: Row, memory_gib_per_cpu: Fraction) -> Manifest:
    """A row of the node list as a Node, with the memory, disk and network that the list leaves out."""
    count = row.whole("cpu_num")
    resources = {
        CPU: str(count),
        MEMORY: gibibytes(Fraction(count) * memory_gib_per_cpu),
        **gpus(row.whole("gpu_capacity_num")),
        RDMA: str(RDMA_PER_NODE),
        EPHEMERAL_STORAGE: f"{DISK_GIB_PER_NODE}Gi",
    }
    return node(row.name("node_name", prefix="node-"), row.label("gpu_model"), resources)


def applications(rows: Iterator[Row]) -> dict[str, list[Row]]:
    """Instances by application, in the order of the file."""
    found: dict[str, list[Row]] = {}
    for row in rows:
        found.setdefault(row.name("app_name"), []).append(row)
    return found


def application(name: str, instances: Sequence[Row], at: float | None) -> Iterator[Manifest]:
    """The PodGroup and the Pods of an application; nothing when none of its instances is alive at that moment."""
    began = min(map(born, instances))
    living = [row for row in instances if is_alive(row, began if at is None else at)]
    members = instances if at is None else living
    if members:
        spec = {"minMember": max(len(living), 1), "queue": QUEUE}
        yield pod_group(name, members[0].line, int(max(0, min(map(born, members)))), spec)
    for row in members:
        yield instance_of(row, name)


def born(row: Row) -> float:
    """When the instance was created, in seconds; before everything else when the trace does not say."""
    seconds = row.seconds("creation_time")
    return -inf if seconds is None else seconds


def is_alive(row: Row, moment: float) -> bool:
    """Whether the instance was there at that moment, given in seconds."""
    died = row.seconds("deletion_time")
    return born(row) <= moment < (inf if died is None else died)


def instance_of(row: Row, app: str) -> Manifest:
    """A row of the instance list as a Pod. Raises ManifestError."""
    times = {
        CREATION_TIME: row.seconds("creation_time"),
        SCHEDULED_TIME: row.seconds("scheduled_time"),
        DELETION_TIME: row.seconds("deletion_time"),
    }
    role, most = row.name("role"), row.whole("max_instance_per_node", least=-1)
    limit = {MAX_PER_NODE: str(most)} if most > 0 else {}
    annotations = {**membership(app), TASK_SPEC: role, **limit}
    spec = one_per_node(APP, app) if most == 1 else {}
    labels = {APP: app, TASK_SPEC: role}
    return pod(row.name("instance_sn"), row.line, times, annotations, spec, requests_of(row), labels)


def requests_of(row: Row) -> dict[str, str]:
    """Quantities by resource; memory and disk are GiB in the trace. Raises ManifestError."""
    return {
        CPU: cores(row.number("cpu_request")),
        MEMORY: gibibytes(row.number("memory_request")),
        GPU: str(row.whole("gpu_request")),
        RDMA: str(row.whole("rdma_request")),
        EPHEMERAL_STORAGE: gibibytes(row.number("disk_request")),
    }
