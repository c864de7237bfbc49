"""Dashboards as tables of panels; :mod:`stromboli.metrics.boards.grafana` makes Grafana's documents of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Literal, NamedTuple, TypeAlias

Form: TypeAlias = Literal["timeseries", "stat", "table"]

QUEUES: Final = 'queue_name=~"$queue"'
RATE: Final = "$__rate_interval"


class Query(NamedTuple):
    """One query, and the name of its series, in which ``{{label}}`` stands for a label's value."""

    expr: str
    legend: str = ""


class Panel(NamedTuple):
    """One panel; ``unit`` is Grafana's name of it.  ``text`` says what to see in it.

    ``quiet`` says when the panel has no data: not every cluster does what it shows.
    """

    title: str
    queries: Sequence[Query]
    unit: str = "short"
    text: str = ""
    form: Form = "timeseries"
    quiet: str = ""


class Dashboard(NamedTuple):
    """One dashboard; ``choices`` are variables: name, and the metric and label that values come from."""

    uid: str
    title: str
    panels: Sequence[Panel]
    choices: Sequence[tuple[str, str, str]] = ()


def _quantile(share: float, metric: str, *labels: str) -> str:
    by = ", ".join(("le", *labels))
    return f"histogram_quantile({share:g}, sum by ({by}) (rate({metric}_bucket[{RATE}])))"


def _of_queues(unit: str, divisor: str = "") -> list[Query]:
    return [
        Query(
            f"max by (queue_name) (volcano_queue_{name}_{unit}{{{QUEUES}}}){divisor}",
            f"{{{{queue_name}}}} {name.replace('_', ' ')}",
        )
        for name in ("allocated", "request", "deserved", "real_capacity")
    ]


_QUEUES = Dashboard(
    "stromboli-queues",
    "Stromboli / Queues and fairness",
    (
        Panel("CPU of queues", _of_queues("milli_cpu", " / 1000"), "short",
              "Cores: what queues hold, ask for, deserve and may have at most."),
        Panel("Memory of queues", _of_queues("memory_bytes"), "bytes"),
        Panel("Share of queues", [Query(f"max by (queue_name) (volcano_queue_share{{{QUEUES}}})", "{{queue_name}}")],
              "percentunit", "Allocated over deserved; above 1 a queue holds more than it deserves."),
        Panel("Overused queues", [Query("sum(volcano_queue_overused)", "queues")], form="stat"),
        Panel("PodGroups of queues", [
            Query(f"max by (queue_name) (volcano_queue_pod_group_{phase}_count{{{QUEUES}}})",
                  f"{{{{queue_name}}}} {phase}")
            for phase in ("pending", "inqueue", "running")]),
        Panel("Distance from fairness", [
            Query("stddev(volcano_queue_share) / avg(volcano_queue_share)", "coefficient of variation")],
            "percentunit", "0 when all queues hold the same part of what they deserve.",
            quiet="while no queue holds anything"),
        Panel("Dominant share of jobs", [
            Query("topk(10, max by (job_ns, job_id) (volcano_job_share))", "{{job_ns}}/{{job_id}}")], "percentunit",
            quiet="without the plugin drf"),
        Panel("Jobs ended", [
            Query(f"sum by (queue_name) (increase(volcano_job_{phase}_phase_count{{{QUEUES}}}[1h]))",
                  f"{{{{queue_name}}}} {phase}") for phase in ("completed", "failed")],
            quiet="while no job has ended"),
    ),
    (("queue", "volcano_queue_weight", "queue_name"),),
)  # fmt: skip

_GANGS = Dashboard(
    "stromboli-gangs",
    "Stromboli / Gangs and waiting",
    (
        Panel("Jobs whose gang is incomplete", [Query("max(volcano_unschedule_job_count)", "jobs")], form="stat"),
        Panel("Tasks that gangs lack", [
            Query("topk(10, max by (job_id) (volcano_unschedule_task_count))", "{{job_id}}")],
            quiet="while no gang waits"),
        Panel("Longest wait for a first pod", [
            Query("max by (queue) (time() - (volcano_e2e_job_scheduling_start_time"
                  " unless on (job_name, queue, job_namespace) volcano_e2e_job_scheduling_last_time))", "{{queue}}")],
            "s", quiet="while no job waits"),
        Panel("Job latency", [
            Query(_quantile(share, "volcano_e2e_job_scheduling_latency_milliseconds"), f"{share:.0%}")
            for share in (0.5, 0.95, 0.99)], "ms", "From a job's creation to each placement of a task."),
        Panel("Time of pods by stage", [
            Query(_quantile(0.95, "volcano_task_scheduling_latency_milliseconds", "stage"), "{{stage}}")], "ms",
            "From a pod's creation to the stages of its way, 95 %."),
        Panel("Mean time to placement by queue", [
            Query("avg by (queue) (volcano_e2e_job_scheduling_duration)", "{{queue}}")], "ms"),
        Panel("Cycles that jobs have waited", [
            Query("topk(10, max by (job_id) (volcano_job_retry_counts))", "{{job_id}}")],
            quiet="while no gang waits"),
        Panel("Pods bound", [Query(f"sum(rate(stromboli_binds_total[{RATE}]))", "pods a second")], "ops"),
    ),
)  # fmt: skip

_HEALTH = Dashboard(
    "stromboli-health",
    "Stromboli / Scheduler health",
    (
        Panel("Leaders", [Query("sum(stromboli_leading)", "leaders")], form="stat"),
        Panel("Configuration refused", [Query("max(stromboli_configuration_refused)", "refused")], form="stat"),
        Panel("Objects that do not add up", [Query("max(volcano_inconsistencies)", "objects")], form="stat"),
        Panel("Length of cycles", [
            Query(_quantile(share, "volcano_e2e_scheduling_latency_milliseconds"), f"{share:.0%}")
            for share in (0.5, 0.95, 0.99)], "ms"),
        Panel("Cycles", [
            Query(f"sum(rate(volcano_e2e_scheduling_latency_milliseconds_count[{RATE}]))", "cycles")], "ops"),
        Panel("Actions", [
            Query(_quantile(0.95, "volcano_action_scheduling_latency_milliseconds", "action"), "{{action}}")], "ms"),
        Panel("Plugins", [
            Query(_quantile(0.95, "volcano_plugin_scheduling_latency_milliseconds", "plugin", "OnSession"),
                  "{{plugin}} {{OnSession}}")], "ms", "At the opening and at the closing of a session."),
        Panel("Opening of sessions", [
            Query(_quantile(0.95, "volcano_open_session_duration_milliseconds"), "95%")], "ms"),
        Panel("Writes under way", [
            Query("max(stromboli_writes_in_flight)", "writes"),
            Query("max(stromboli_assumed_pods)", "unconfirmed pods")]),
        Panel("Failures", [
            Query(f"sum(rate(stromboli_{name}_total[{RATE}]))", text) for name, text in (
                ("bind_failures", "binds"), ("eviction_failures", "evictions"), ("audit_failures", "audits"),
                ("events_dropped", "events given up"), ("log_lines_lost", "log lines lost"))], "ops"),
        Panel("Drift", [Query("increase(stromboli_state_drift_total[1h])", "objects in the last hour")],
              text="Objects of which the state differed from a fresh list; they have been mended."),
        Panel("Lists read", [Query("sum by (kind) (increase(stromboli_relists_total[1h]))", "{{kind}}")]),
        Panel("CPU of processes", [Query(f"rate(process_cpu_seconds_total[{RATE}])", "{{instance}}")], "short"),
        Panel("Memory of processes", [Query("process_resident_memory_bytes", "{{instance}}")], "bytes"),
    ),
)  # fmt: skip

_EVICTIONS = Dashboard(
    "stromboli-evictions",
    "Stromboli / Evictions and reservations",
    (
        Panel("Pods evicted", [Query(f"sum(rate(stromboli_evictions_total[{RATE}]))", "pods a second")], "ops"),
        Panel("Statements that evict", [
            Query("sum by (action) (increase(volcano_eviction_transactions_total[1h]))", "{{action}}")],
            quiet="while no pod is evicted"),
        Panel("Rounds of preemption", [
            Query(f"sum(rate(volcano_total_preemption_attempts[{RATE}]))", "rounds")], "ops"),
        Panel("Victims of the last preemption", [Query("max(volcano_pod_preemption_victims)", "pods")], form="stat"),
        Panel("Reservations held", [Query("max(volcano_pipelined_tasks)", "tasks")]),
        Panel("Reserved tasks looked at first", [
            Query(f"sum by (result) (rate(volcano_pipelined_fast_path_total[{RATE}]))", "{{result}}")], "ops",
            quiet="while nothing is reserved"),
        Panel("Reservations given up", [
            Query("sum by (reason) (increase(volcano_pipelined_given_up_total[1h]))", "{{reason}}")],
            quiet="while none is given up"),
        Panel("Reservations not proven", [
            Query("sum by (reason) (increase(volcano_unproven_reservations_total[1h]))", "{{reason}}")],
            quiet="while none is forged"),
        Panel("Annotations written", [
            Query(f"sum by (result) (rate(volcano_pod_annotation_patches_total[{RATE}]))", "{{result}}")], "ops",
            quiet="while nothing is reserved"),
    ),
)  # fmt: skip

_DEVICES = Dashboard(
    "stromboli-devices",
    "Stromboli / Topology and devices",
    (
        Panel("Devices of queues", [
            Query(f"sum by (queue_name, resource) (volcano_queue_{name}_scalar_resources{{{QUEUES}}}) / 1000",
                  f"{{{{queue_name}}}} {{{{resource}}}} {name}") for name in ("allocated", "request", "deserved")],
            quiet="where queues ask for cores and memory alone"),
        Panel("Pods of queues", [
            Query(f'sum by (queue_name) (volcano_queue_allocated_scalar_resources{{{QUEUES}, resource="pods"}})',
                  "{{queue_name}}")]),
        Panel("Cost of placing by topology and devices", [
            Query(_quantile(0.95, "volcano_plugin_scheduling_latency_milliseconds", "plugin").replace(
                "milliseconds_bucket[", 'milliseconds_bucket{plugin=~"network-topology-aware|deviceshare|numa-aware|'
                'task-topology|resource-strategy-fit|predicates"}['), "{{plugin}}")], "ms",
            quiet="without these plugins"),
        Panel("Stages of placing", [
            Query(_quantile(0.95, "volcano_scheduling_stage_duration_milliseconds", "stage"), "{{stage}}")], "ms"),
    ),
    (("queue", "volcano_queue_weight", "queue_name"),),
)  # fmt: skip

DASHBOARDS: Final = (_QUEUES, _GANGS, _HEALTH, _EVICTIONS, _DEVICES)
