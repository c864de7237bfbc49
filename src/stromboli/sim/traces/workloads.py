"""Trace files as workloads, whatever their format."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from math import inf
from pathlib import Path
from typing import Any, Final

from stromboli.errors import ManifestError
from stromboli.model.names import CPU, GPU, GROUP_NAME
from stromboli.sim.simulation.workload import Pods, SimJob, Workload, in_order, pods_of
from stromboli.sim.traces import swf
from stromboli.sim.traces.dlrm import import_dlrm
from stromboli.sim.traces.openb import import_openb
from stromboli.sim.traces.trace_objects import CREATION_TIME, DELETION_TIME, SCHEDULED_TIME, Manifest
from stromboli.sim.traces.trace_rows import Row, checked_rows

PHILLY: Final = ("timestamp", "duration", "num_gpus", "cluster")


def read_swf(path: Path) -> Workload:
    """A log of parallel jobs.  A job's processors are cores, in as few pods as the nodes allow that it is put on.

    Jobs without a size, a runtime or a time of submission are left out, as logs hold jobs that never ran.
    """
    jobs = []
    for row in swf.rows(path):
        user = "" if row[swf.USER] < 0 else f"user-{row[swf.USER]:.15g}"
        where = f"queue-{row[swf.QUEUE]:.15g}" if row[swf.QUEUE] > 0 else "default"
        pods = pods_of(swf.cores(row), swf.cores(row), CPU)
        name = f"job-{row[swf.NUMBER]:.15g}"
        jobs.append(SimJob(name, row[swf.SUBMIT], row[swf.RUNTIME], pods, where, user, divides=CPU))
    return Workload(path.name, in_order(jobs))


def read_philly(path: Path) -> Workload:
    """Jobs of Microsoft's Philly clusters: GPUs, in as few pods as nodes allow; each virtual cluster is a queue."""
    jobs, begin = [], inf
    try:
        with swf.opened(path) as file:
            for row in checked_rows(path.name, csv.DictReader(file, strict=True), PHILLY):
                when = _when(row)
                begin = min(begin, when)
                gpus, queue = row.whole("num_gpus", least=1), row.name("cluster", prefix="vc-")
                runtime, pods = float(row.number("duration")), pods_of(gpus, gpus, GPU)
                jobs.append(SimJob(f"job-{row.line - 1}", when, runtime, pods, queue, divides=GPU))
    except (OSError, EOFError, UnicodeDecodeError, csv.Error) as error:
        raise ManifestError(f"cannot be read: {error}", file=str(path)) from error
    return Workload(path.name, in_order(replace(one, submit=one.submit - begin) for one in jobs))


def _when(row: Row) -> float:
    try:
        return datetime.fromisoformat(row.text("timestamp")).replace(tzinfo=UTC).timestamp()
    except ValueError:
        raise row.wrong("timestamp", "is no time; write e.g. 2017-10-16 10:31:54") from None


def of_manifests(name: str, manifests: Iterable[Manifest]) -> Workload:
    """A workload of imported objects: every pod a job of its own that lives from its creation until its deletion.

    What a pod waited in the trace is no part of its runtime.
    """
    objects: list[Manifest] = []
    groups: dict[str, Mapping[str, Any]] = {}
    jobs: list[SimJob] = []
    for body in manifests:
        whole: Any = body
        if body["kind"] == "Pod":
            jobs.append(_pod_job(whole, groups[whole["metadata"]["annotations"][GROUP_NAME]]))
        elif body["kind"] == "PodGroup":
            groups[whole["metadata"]["name"]] = whole["spec"]
        else:
            objects.append(body)
    return Workload(name, in_order(jobs), tuple(objects))


def _pod_job(pod: Any, group: Mapping[str, Any]) -> SimJob:
    metadata, spec = pod["metadata"], pod["spec"]
    told: Mapping[str, str] = metadata["annotations"]
    came = float(told.get(CREATION_TIME, 0))
    began = float(told.get(SCHEDULED_TIME, came))
    runtime = max(float(told[DELETION_TIME]) - began, 0.0) if DELETION_TIME in told else None
    requests = spec["containers"][0]["resources"]["requests"]
    kept = {key: value for key, value in spec.items() if key not in ("containers", "schedulerName")}
    labels = {"labels": metadata["labels"]} if "labels" in metadata else {}
    pods = (Pods(1, requests, kept, labels),)
    name = metadata["name"]
    return SimJob(name, came, runtime, pods, group["queue"], priority_class=group.get("priorityClassName", ""))


def read_openb(path: Path, nodes: Path) -> Workload:
    """Tasks of the openb trace on its ``nodes``."""
    return of_manifests(path.name, import_openb(nodes, path))


def read_dlrm(path: Path, nodes: Path) -> Workload:
    """Instances of the DLRM trace on the ``nodes`` of the spot GPU trace."""
    return of_manifests(path.name, import_dlrm(path, nodes))


FORMATS: Final[Mapping[str, Callable[[Path], Workload]]] = {"swf": read_swf, "philly": read_philly}
"""Formats of traces without nodes, which are stated separately."""

WITH_NODES: Final[Mapping[str, Callable[[Path, Path], Workload]]] = {"openb": read_openb, "dlrm": read_dlrm}
"""Formats that have a list of nodes of their own."""


def format_of(path: Path) -> str:
    """The format that a file's header tells; empty where it does not."""
    if ".swf" in path.suffixes:
        return "swf"
    try:
        with swf.opened(path) as file:
            header = set(file.readline(4096).strip().split(","))
    except (OSError, EOFError, UnicodeDecodeError) as error:
        raise ManifestError(f"cannot be read: {error}", file=str(path)) from error
    columns = {"philly": set(PHILLY), "openb": {"cpu_milli", "num_gpu"}, "dlrm": {"instance_sn", "app_name"}}
    return next((name for name, wanted in columns.items() if wanted <= header), "")
