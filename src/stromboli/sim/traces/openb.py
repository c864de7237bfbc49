"""Import of the openb trace: nodes and tasks of a production GPU cluster, published by Alibaba in 2023.

Described in Q. Weng et al., "Beware of Fragmentation: Scheduling GPU-Sharing Workloads with Fragmentation Gradient
Descent", USENIX ATC 2023.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from stromboli.model.names import CPU, MEMORY
from stromboli.model.resources.device_settings import DEFAULTS
from stromboli.plugins.deviceshare.kind import MOST_CARDS
from stromboli.plugins.deviceshare.vgpu import SHARED
from stromboli.plugins.deviceshare.vgpu_register import REGISTER
from stromboli.sim.traces.trace_objects import (
    CREATION_TIME,
    DELETION_TIME,
    RECORDED_PHASE,
    SCHEDULED_TIME,
    Manifest,
    membership,
    node,
    on_gpu_models,
    pod,
    pod_group,
    priority_class,
    queue,
)
from stromboli.sim.traces.trace_rows import Row, distinct, read_rows

NODE_COLUMNS: Final = ("sn", "cpu_milli", "memory_mib", "gpu", "model")
POD_COLUMNS: Final = ("name", "cpu_milli", "memory_mib", "num_gpu", "gpu_milli")
WITHOUT: Final = {
    "gpu_spec": "", "qos": "BE", "pod_phase": "", "creation_time": "", "deletion_time": "", "scheduled_time": "",
}  # fmt: skip
"""The cells of columns that some of the published lists of tasks lack altogether: any GPU, best effort, no times."""

GPU: Final = 1000
"""The memory of every GPU in MB, as its node registers it: a MB is a thousandth, and so many pods may share it."""

PRIORITIES: Final = {"guaranteed": 1000, "ls": 800, "burstable": 500, "be": 100}
"""Priority by qos: guaranteed, latency-sensitive, burstable, best effort; the order in which Kubernetes lets them keep
their memory. The distances leave room for classes in between."""

OTHER_PRIORITY: Final = 300
"""Priority of a qos that the published files do not have: above best effort alone."""


def import_openb(nodes_csv: Path, pods_csv: Path) -> Iterator[Manifest]:
    """The trace as manifests: all Nodes, then a PodGroup and a Pod a task, in the file's order.

    A task asks for `volcano.sh/vgpu-number` GPUs and of each for `volcano.sh/vgpu-memory`, in thousandths: its
    gpu_milli. The plugin deviceshare gives them, with `deviceshare.VGPUEnable: true`. `gpu_spec` becomes required node
    affinity to the GPU models it lists, `qos` a Queue and a PriorityClass, which come right before the first task that
    has it. All pods are pending, whatever phase the trace recorded; their times are annotations. What a list has no
    column for is as in :data:`WITHOUT`. Raises ManifestError, naming file, line and column, at a row that does not hold
    what it should.
    """
    yield from map(node_of, distinct(read_rows(nodes_csv, NODE_COLUMNS), "sn"))
    known: set[str] = set()
    for row in distinct(read_rows(pods_csv, POD_COLUMNS, WITHOUT), "name"):
        qos = row.name("qos")
        if qos not in known:
            known.add(qos)
            yield queue(qos)
            yield priority_class(qos, PRIORITIES.get(qos, OTHER_PRIORITY))
        yield group_of(row, qos)
        yield task_of(row, qos)


def node_of(row: Row) -> Manifest:
    """A row of the node list as a Node. Raises ManifestError."""
    count, name, model = row.whole("gpu"), row.name("sn"), row.label("model")
    shares = of_gpus(GPU * count, GPU * count) | {DEFAULTS.nvidia.resource_core_name: str(100 * count)}
    resources = {CPU: f"{row.whole('cpu_milli')}m", MEMORY: f"{row.whole('memory_mib')}Mi", **(shares if count else {})}
    cards = (f"{name}-{card},{GPU},{GPU},{model or 'GPU'},true,{SHARED}:" for card in range(min(count, MOST_CARDS)))
    return node(name, model, resources, {REGISTER: "".join(cards)} if count else {})


def of_gpus(number: int, memory: int) -> dict[str, str]:
    """So many GPUs, or shares of them, and thousandths."""
    return {DEFAULTS.nvidia.resource_count_name: str(number), DEFAULTS.nvidia.resource_memory_name: str(memory)}


def group_of(row: Row, qos: str) -> Manifest:
    """The PodGroup of a task, a gang of one."""
    spec = {"minMember": 1, "queue": qos, "priorityClassName": qos}
    return pod_group(row.name("name"), row.line, row.seconds("creation_time") or 0, spec)


def task_of(row: Row, qos: str) -> Manifest:
    """A row of the task list as a Pod. Raises ManifestError."""
    times = {
        CREATION_TIME: row.seconds("creation_time"),
        SCHEDULED_TIME: row.seconds("scheduled_time"),
        DELETION_TIME: row.seconds("deletion_time"),
    }
    phase = {RECORDED_PHASE: row.text("pod_phase")} if row.text("pod_phase") else {}
    annotations = {**membership(row.name("name")), **phase}
    spec = {"priorityClassName": qos, **on_gpu_models(row.labels("gpu_spec"))}
    requests = {CPU: f"{row.whole('cpu_milli')}m", MEMORY: f"{row.whole('memory_mib')}Mi", **gpu_request(row)}
    return pod(row.name("name"), row.line, times, annotations, spec, requests)


def gpu_request(row: Row) -> dict[str, str]:
    """The GPUs of a task, and the thousandths of each; nothing for none.

    Raises ManifestError when `gpu_milli` is not a share of one GPU, or of several.
    """
    count, milli = row.whole("num_gpu"), row.whole("gpu_milli")
    if count == 0 and milli:
        raise row.wrong("gpu_milli", "is a share of a GPU, but num_gpu is 0")
    if count and not 0 < milli <= GPU:
        raise row.wrong("gpu_milli", "is no share of a GPU; write 1 to 1000")
    if count > 1 and milli != GPU:
        raise row.wrong("gpu_milli", f"is a share of one GPU, but num_gpu is {count}; write 1000")
    return of_gpus(count, milli) if count else {}
