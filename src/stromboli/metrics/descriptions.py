"""The tables of all metrics, of the scheduler and of the controllers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from stromboli.api.batch import COMPLETED, FAILED
from stromboli.api.flow import FLOW_FAILED, FLOW_SUCCEED
from stromboli.api.scheduling import (
    POD_GROUP_COMPLETED,
    POD_GROUP_INQUEUE,
    POD_GROUP_PENDING,
    POD_GROUP_RUNNING,
    POD_GROUP_UNKNOWN,
)
from stromboli.metrics.families import Description, Span

_JOB: Final = ("job_name", "queue", "job_namespace")

AMOUNTS: Final = ("allocated", "request", "deserved", "capacity", "real_capacity", "inqueue")
"""The amounts of a queue that are shown; fields of :class:`~stromboli.narration.observe.QueueFigures`."""


def _gauge(name: str, text: str, *labels: str) -> Description:
    return Description(name, "gauge", labels, text)


def _never(row: Description, why: str) -> Description:
    """A metric that the reference has and that nothing sets here."""
    return replace(row, unset=why)


def _counter(name: str, text: str, *labels: str) -> Description:
    return Description(name, "counter", labels, text)


def _histogram(name: str, text: str, span: Span, *labels: str) -> Description:
    return Description(name, "histogram", labels, text, span)


_NO_NAMESPACES: Final = "no plugin shares by namespace"

_CARD: Final = ("devID", "NodeName")
OF_CARDS: Final = (
    _gauge("vgpu_device_shared_number", "Shares of a card that pods have.", *_CARD),
    _gauge("vgpu_device_allocated_memory", "Memory of a card that pods have, in MB.", *_CARD),
    _gauge("vgpu_device_allocated_cores", "Cores of a card that pods have, in percent.", *_CARD),
    _gauge("vgpu_device_memory_limit", "All memory of a card, in MB.", *_CARD),
)
"""What is shown of each vGPU card."""
OF_PODS_ON_CARDS: Final = (
    _gauge(
        "vgpu_device_memory_allocation_for_a_certain_pod", "Memory of a card that a pod has, in MB.", *_CARD, "podName"
    ),
    _gauge(
        "vgpu_device_core_allocation_for_a_certain_pod",
        "Cores of a card that a pod has, in percent.",
        *_CARD,
        "podName",
    ),
)
"""What is shown of each pod on a vGPU card."""

_ROWS: Final = (
    # ------------------------------------------------------------------------------------------------------ durations
    _histogram(
        "e2e_scheduling_latency_milliseconds",
        "Length of a cycle, from opening to closing the session.",
        (1, 5000, 20),
    ),
    _histogram(
        "open_session_duration_milliseconds",
        "Time to open a session, snapshot and plugins included.",
        (1, 5000, 20),
    ),
    _histogram(
        "plugin_scheduling_latency_milliseconds",
        "Time of a plugin when a session opens or closes.",
        (0.1, 100, 15),
        "plugin",
        "OnSession",
    ),
    _histogram("action_scheduling_latency_milliseconds", "Time of an action.", (1, 2000, 20), "action"),
    _histogram(
        "e2e_job_scheduling_latency_milliseconds",
        "Time from a job's creation to each placement of a task.",
        (100, 120000, 30),
    ),
    _histogram(
        "task_scheduling_latency_milliseconds",
        "Time from a pod's creation to the stages of its way.",
        (50, 60000, 30),
        "stage",
    ),
    _histogram(
        "scheduling_stage_duration_milliseconds",
        "Time of the stages of placing and binding.",
        (0.1, 500, 20),
        "stage",
    ),
    # ----------------------------------------------------------------------------------------------------------- jobs
    _gauge("e2e_job_scheduling_duration", "Milliseconds from a job's creation to its last placement.", *_JOB),
    _gauge("e2e_job_scheduling_last_time", "When a task of the job was placed last, in Unix seconds.", *_JOB),
    _gauge("e2e_job_scheduling_start_time", "When the job was created, in Unix seconds.", *_JOB),
    _gauge("unschedule_task_count", "Tasks that a job's gang lacks.", "job_id"),
    _gauge("unschedule_job_count", "Jobs whose gang is incomplete."),
    _gauge("job_share", "Dominant share of a job.", "job_ns", "job_id"),
    _counter("job_retry_counts", "Cycles that ended with the job's gang incomplete.", "job_id"),
    # ---------------------------------------------------------------------------------------- attempts and evictions
    _never(
        _counter("schedule_attempts_total", "Attempts to place a task, by result.", "result"),
        "pods have no attempts of their own, as each cycle decides on all that wait",
    ),
    _gauge("pod_preemption_victims", "Victims of the last preemption."),
    _counter("total_preemption_attempts", "Rounds of preemption."),
    _counter("eviction_transactions_total", "Committed statements that evict.", "action"),
    # ---------------------------------------------------------------------------------------- namespaces and queues
    _never(_gauge("namespace_share", "Dominant share of a namespace.", "namespace_name"), _NO_NAMESPACES),
    _never(_gauge("namespace_weight", "Weight of a namespace.", "namespace_name"), _NO_NAMESPACES),
    _never(
        _gauge("namespace_weighted_share", "Dominant share of a namespace over its weight.", "namespace_name"),
        _NO_NAMESPACES,
    ),
    *(
        _gauge(f"queue_{amount}_{unit}", f"{amount.replace('_', ' ').capitalize()} of a queue: {meaning}.", *labels)
        for amount in AMOUNTS
        for unit, labels, meaning in (
            ("milli_cpu", ("queue_name",), "thousandths of a core"),
            ("memory_bytes", ("queue_name",), "bytes of memory"),
            ("scalar_resources", ("queue_name", "resource"), "thousandths of every other resource, pods in units"),
        )
    ),
    _gauge("queue_share", "Allocated over deserved, of the dimension where it is largest.", "queue_name"),
    _gauge("queue_weight", "Weight of a queue.", "queue_name"),
    _gauge("queue_overused", "1 while a queue holds more than it deserves, else 0.", "queue_name"),
    # ------------------------------------------------------------------------------------- reserved (pipelined) tasks
    _gauge("pipelined_tasks", "Tasks that hold a reservation on room that is about to become free."),
    _counter("pipelined_restored_total", "Reservations read back after a start: restored or rejected.", "result"),
    _counter("pipelined_fast_path_total", "Reserved tasks looked at first: allocated, waiting or released.", "result"),
    _counter("pipelined_given_up_total", "Reservations given up, by reason.", "reason"),
    _counter(
        "pod_annotation_patches_total",
        "Reservations written to pods: ok, skipped, conflict, gone, error, unsigned (there is no key).",
        "result",
    ),
    _counter(
        "unproven_reservations_total",
        "Reservations that pods stated and the scheduler had not written: unsigned, forged or replayed.",
        "reason",
    ),
    _gauge("reservation_keys", "Keys that prove reservations; with 0 they last as long as the process."),
    _counter("bind_already_bound_total", "Bindings of pods that had a node: same_node or other_node.", "result"),
    _counter("plugin_dealloc_underflow_total", "Amounts given back that were more than what was held.", "plugin"),
    # ------------------------------------------------------------------------------------------------------- devices
    *OF_CARDS,
    *OF_PODS_ON_CARDS,
    # ----------------------------------------------------------------------------------------- mistakes of others
    _gauge("inconsistencies", "Objects that do not add up and were left out of the last cycle."),
    _counter("config_reloads_total", "Reloads of the configuration: ok or refused.", "result"),
    _counter("invalid_arguments_total", "Arguments of plugins and actions replaced by their defaults.", "plugin"),
)

DESCRIPTIONS: Final[Mapping[str, Description]] = {row.name: row for row in _ROWS}
"""Every metric of the scheduler by its name without the prefix."""

GROUP_PHASES: Final = (POD_GROUP_INQUEUE, POD_GROUP_PENDING, POD_GROUP_RUNNING, POD_GROUP_UNKNOWN, POD_GROUP_COMPLETED)
"""Phases of PodGroups that are counted by queue."""

JOB_PHASES: Final = (COMPLETED, FAILED)
"""Final phases of jobs that are counted by job."""


def groups_in(phase: str) -> Description:
    """How many PodGroups of a queue are in ``phase``."""
    return _gauge(f"queue_pod_group_{phase.lower()}_count", f"PodGroups of a queue that are {phase}.", "queue_name")


def jobs_ended(phase: str) -> Description:
    """How often a job has come to ``phase``."""
    text = f"How often a job, named with its namespace, became {phase}."
    return _counter(f"job_{phase.lower()}_phase_count", text, "job_name", "queue_name")


FLOW_PHASES: Final = (FLOW_SUCCEED, FLOW_FAILED)
"""Final phases of JobFlows that are counted by namespace."""


def flows_ended(phase: str) -> Description:
    """How many JobFlows of a namespace have come to ``phase``."""
    return _counter(f"jobflow_{phase.lower()}_phase_count", f"JobFlows that became {phase}.", "jobflow_namespace")


CONTROLLERS: Final = (
    *map(groups_in, GROUP_PHASES),
    *map(jobs_ended, JOB_PHASES),
    *map(flows_ended, FLOW_PHASES),
)
"""The metrics of the controllers."""

COUNTED: Final[Mapping[str, tuple[str, tuple[str, ...]]]] = {
    "metric.preemption_attempt": ("total_preemption_attempts", ()),
    "metric.schedule_attempt": ("schedule_attempts_total", ("result",)),
    "metric.pipelined_restored": ("pipelined_restored_total", ("result",)),
    "metric.pipelined_fast_path": ("pipelined_fast_path_total", ("result",)),
    "metric.pipelined_given_up": ("pipelined_given_up_total", ("reason",)),
    "metric.pod_annotation_patch": ("pod_annotation_patches_total", ("result",)),
    "metric.unproven_reservation": ("unproven_reservations_total", ("reason",)),
    "metric.bind_already_bound": ("bind_already_bound_total", ("result",)),
    "metric.dealloc_underflow": ("plugin_dealloc_underflow_total", ("plugin",)),
    "metric.config_reload": ("config_reloads_total", ("result",)),
    "metric.argument_invalid": ("invalid_arguments_total", ("plugin",)),
}
"""Keys of which each tell counts one: the counter, and the fields that are its labels."""

SET: Final[Mapping[str, str]] = {
    "metric.preemption_victims": "pod_preemption_victims",
    "metric.unschedule_job_count": "unschedule_job_count",
    "metric.pipelined_tasks": "pipelined_tasks",
    "metric.inconsistencies": "inconsistencies",
    "metric.reservation_keys": "reservation_keys",
}
"""Keys whose field ``count`` is the value of a gauge."""

TRANSACTIONS: Final = ("preempt", "reclaim", "gangpreempt", "gangreclaim")
"""Actions whose evictions are counted."""
