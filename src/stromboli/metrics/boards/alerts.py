"""Alerts on the scheduler's metrics: one table, from which Prometheus' rules and their page in the docs are made."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final, Literal, NamedTuple, TypeAlias

Severity: TypeAlias = Literal["critical", "warning"]
"""``critical`` pages an operator; ``warning`` is for working hours."""

Part: TypeAlias = Literal["scheduler", "controllers", "webhooks"]

RUNBOOK: Final = "docs/operators/alerts.md"
"""The page that has a section for each alert."""

GROUP: Final = "stromboli"


class Alert(NamedTuple):
    """One alert: the expression that holds while there is trouble, and for how long it must, as Prometheus writes it.

    ``summary`` may name labels and the value in Prometheus' templates; ``action`` says what to do; ``part`` is the
    program whose metrics it needs.
    """

    name: str
    expr: str
    lasting: str
    severity: Severity
    summary: str
    action: str
    part: Part = "scheduler"


def grown(counter: str, window: str) -> str:
    """That a counter with labels has grown: ``increase`` sees nothing of a series that begins with its first count."""
    return f"(increase({counter}[{window}]) > 0) or ({counter} > 0 unless {counter} offset {window})"


LEFT: Final = "(stromboli_webhook_certificate_end_seconds > 0) - time()"
WHOLE: Final = "(stromboli_webhook_certificate_end_seconds - stromboli_webhook_certificate_begin_seconds)"
"""Seconds that a certificate has left, where they are known, and of its lifetime."""

ALERTS: Final = (
    Alert(
        "StromboliNoLeader",
        "(sum(stromboli_leading) or vector(0)) < 1",
        "2m",
        "critical",
        "No scheduler leads; no pod is bound or evicted.",
        "See whether the scheduler's pods run (`kubectl -n volcano-system get pods`), and what their logs say of the"
        " Lease: another holder, or no permission to write it. `kubectl -n volcano-system get lease volcano -o yaml`"
        " names the holder.",
    ),
    Alert(
        "StromboliNoCycles",
        "sum(rate(volcano_e2e_scheduling_latency_milliseconds_count[5m])) == 0 and on() sum(stromboli_leading) > 0",
        "5m",
        "critical",
        "A scheduler leads, and has finished no cycle for five minutes.",
        "Look for `cycle_failed` and `read_anew` in the leader's log. A cycle that does not end shows in"
        " `/debug/pprof/goroutine` (`--enable-pprof`). Restarting the pod loses no decision.",
    ),
    Alert(
        "StromboliSlowCycles",
        "sum(rate(volcano_e2e_scheduling_latency_milliseconds_sum[10m]))"
        " / sum(rate(volcano_e2e_scheduling_latency_milliseconds_count[10m])) > 5000",
        "15m",
        "warning",
        "Cycles take {{ $value | humanize }} ms in the mean, five times the usual period.",
        "The dashboard of the scheduler's health names the action and the plugin that take the time. More than one"
        " core of CPU helps a cycle little; fewer plugins, and one scheduler for each shard, do.",
    ),
    Alert(
        "StromboliBindsFail",
        "sum(rate(stromboli_bind_failures_total[10m]))"
        " / (sum(rate(stromboli_binds_total[10m])) + sum(rate(stromboli_bind_failures_total[10m]))) > 0.1",
        "10m",
        "critical",
        "{{ $value | humanizePercentage }} of the bindings fail.",
        "Pods say why in an event FailedScheduling; the scheduler's log has `bind_failed`. Common causes: a webhook or"
        " a policy that refuses pods/binding, missing permissions, volumes that cannot be had.",
    ),
    Alert(
        "StromboliEvictionsFail",
        "increase(stromboli_eviction_failures_total[30m]) > 0",
        "15m",
        "warning",
        "{{ $value | humanize }} evictions have failed within half an hour.",
        "The scheduler's log has `evict_pod_failed` with the API server's answer: finalizers and webhooks hold pods, or"
        " the account may not delete them.",
    ),
    Alert(
        "StromboliEvictionChurn",
        "sum(increase(stromboli_evictions_total[30m])) > 20"
        " and sum(increase(stromboli_evictions_total[30m])) > 0.5 * sum(increase(stromboli_binds_total[30m]))",
        "30m",
        "warning",
        "Half an hour has seen {{ $value | humanize }} evictions, more than half as many as pods were bound.",
        "Queues or priorities take room from each other in turn. The dashboard of evictions shows by which action;"
        " See docs/eviction.md for which queues reclaim from which.",
    ),
    Alert(
        "StromboliNothingStarts",
        "max(volcano_unschedule_job_count) > 0 and on() sum(increase(stromboli_binds_total[1h])) == 0",
        "1h",
        "warning",
        "{{ $value | humanize }} jobs wait, and no pod has been bound for an hour.",
        "`stromboli top` names the head of each queue and why it waits; `stromboli plan --explain JOB` says what would"
        " help. A full cluster is no fault; a cordoned, tainted or missing pool of nodes is.",
    ),
    Alert(
        "StromboliJobWaitsLong",
        "max by (queue) (time() - (volcano_e2e_job_scheduling_start_time"
        " unless on (job_name, queue, job_namespace) volcano_e2e_job_scheduling_last_time)) > 86400",
        "10m",
        "warning",
        "A job in queue {{ $labels.queue }} has waited {{ $value | humanizeDuration }} for its first pod.",
        "`stromboli top` shows the job and its reason. A request that no node can ever meet is found by"
        " `stromboli plan --explain JOB`.",
    ),
    Alert(
        "StromboliQueueStarves",
        "(volcano_queue_allocated_milli_cpu < 0.5 * volcano_queue_deserved_milli_cpu)"
        " and (volcano_queue_request_milli_cpu > volcano_queue_deserved_milli_cpu)",
        "1h",
        "warning",
        "Queue {{ $labels.queue_name }} asks for more than it deserves and holds less than half of that.",
        "Others hold its share. Reclaim takes it back only where the action `reclaim` is configured, and from queues"
        " that are reclaimable. docs/queues.md tells the rules.",
    ),
    Alert(
        "StromboliConfigurationRefused",
        "max(stromboli_configuration_refused) > 0",
        "5m",
        "warning",
        "The configuration file has a mistake; the last good configuration goes on.",
        "The log has `config_invalid` with file, line and the nearest known name. `stromboli lint --config FILE` finds"
        " all mistakes before a file is applied.",
    ),
    Alert(
        "StromboliInconsistentObjects",
        "max(volcano_inconsistencies) > 0",
        "10m",
        "warning",
        "{{ $value | humanize }} objects do not add up and are left out of the cycles.",
        "The log has `inconsistency` with each object's name and what is wrong with it; queues say it in"
        " `status.fault`, too.",
    ),
    Alert(
        "StromboliStateDrift",
        "increase(stromboli_state_drift_total[30m]) > 0",
        "0m",
        "warning",
        "The state differed from what the API server lists, in {{ $value | humanize }} objects; it has been mended.",
        "Once, after an interruption of the API server or its etcd, is harmless. Again and again is a fault worth"
        " reporting, with the log lines `drift_found` and a dump (SIGUSR1).",
    ),
    Alert(
        "StromboliWritesPileUp",
        "max(stromboli_writes_in_flight) > 2000",
        "10m",
        "warning",
        "{{ $value | humanize }} writes wait for the API server.",
        "The API server is slow, or holds the scheduler to a low rate: look at its metrics of priority and fairness,"
        " and at `--kube-api-qps`.",
    ),
    Alert(
        "StromboliDutyFails",
        grown("stromboli_duty_failures_total", "30m"),
        "10m",
        "warning",
        "Background work of the scheduler fails: {{ $labels.duty }}.",
        "The log has `duty_failed` with the error, and once with its traceback. Scheduling goes on without it.",
    ),
    Alert(
        "StromboliForgedReservations",
        grown('volcano_unproven_reservations_total{reason=~"forged|replayed"}', "1h"),
        "0m",
        "warning",
        "Pods state reservations that the scheduler has not written ({{ $labels.reason }}).",
        "A user or controller writes reservation annotations itself, or copies whole pods. They do not count and are"
        " removed; events ReservationIgnored name the pods.",
    ),
    Alert(
        "StromboliRecordStopped",
        "increase(stromboli_record_failures_total[1h]) > 0",
        "0m",
        "warning",
        "Recording (--record) has stopped; scheduling goes on.",
        "Most often the folder is full or read-only. See `--record-max-size`.",
    ),
    Alert(
        "StromboliControllersSilent",
        "absent(volcano_queue_pod_group_pending_count)",
        "10m",
        "critical",
        "No controllers report; jobs get no pods, and queues no state.",
        "See whether the controllers' pods run, lead (Lease vc-controller-manager) and are scraped at their port 8081.",
        "controllers",
    ),
    Alert(
        "StromboliWebhooksFail",
        'sum by (path) (rate(stromboli_webhook_reviews_total{outcome="failed"}[10m])) > 0',
        "10m",
        "critical",
        "Reviews on {{ $labels.path }} fail; what they are about is refused, or stored without being looked at.",
        "Look for `review_failed` in the logs of the webhook servers. What the API server says to users is the error"
        " that it got; `--no-webhooks` manifests, or `custom.enabled_admissions` without the path, take it away.",
        "webhooks",
    ),
    Alert(
        "StromboliWebhooksRefuseMuch",
        'sum by (path) (rate(stromboli_webhook_reviews_total{outcome="refused"}[15m]))'
        " / sum by (path) (rate(stromboli_webhook_reviews_total[15m])) > 0.5"
        ' and sum by (path) (rate(stromboli_webhook_reviews_total{outcome="refused"}[15m])) > 0.05',
        "30m",
        "warning",
        "{{ $value | humanizePercentage }} of what {{ $labels.path }} is asked about are refused.",
        "A client keeps sending objects that are refused: a controller with an invalid template, or jobs for a queue"
        " that is closed. The API server's audit log names the client, and each refusal gives the reason.",
        "webhooks",
    ),
    Alert(
        "StromboliWebhookCertificateEnds",
        f"min({LEFT} < 7 * 86400 and {LEFT} < {WHOLE} / 6)",
        "1h",
        "critical",
        "The webhook server's certificate ends in {{ $value | humanizeDuration }}; then all reviews fail.",
        "It has less than a week left, and less than a sixth of its lifetime. Certificates that are made here are"
        " replaced a month before, those of less than 90 days (`--certificate-lifetime`) in their last third: look for"
        " `certificate_trouble` in the log, most often a Secret that may not be written. Those of `--tls-cert-file` are"
        " not replaced by the server: renew them at their source.",
        "webhooks",
    ),
    Alert(
        "StromboliWebhookCertificateUnknown",
        "stromboli_webhook_certificate_end_seconds == 0",
        "1h",
        "warning",
        "The webhook server shows no certificate whose end can be read.",
        "It has none yet, and is not ready, or one of `--tls-cert-file` that TLS takes and that cannot be read here:"
        " nothing warns of its end. Look for `certificate_trouble` in the log.",
        "webhooks",
    ),
)  # fmt: skip


def anchor(alert: Alert) -> str:
    """The heading's anchor on the runbook page."""
    return alert.name.lower()


def rule(alert: Alert, labels: Mapping[str, str] | None = None) -> dict[str, object]:
    """One rule of a group, as Prometheus and the operator's PrometheusRule write it."""
    return {
        "alert": alert.name,
        "expr": alert.expr,
        "for": alert.lasting,
        "labels": {"severity": alert.severity, **(labels or {})},
        "annotations": {
            "summary": alert.summary,
            "description": alert.action,
            "runbook_url": f"{RUNBOOK}#{anchor(alert)}",
        },
    }


def groups(parts: Collection[Part] = ("scheduler", "controllers", "webhooks")) -> list[dict[str, object]]:
    """The groups of a rule file, and the ``spec.groups`` of a PrometheusRule, for the programs that are scraped."""
    return [{"name": GROUP, "rules": [rule(alert) for alert in ALERTS if alert.part in parts]}]


def page() -> str:
    """The text of the runbook page."""
    sections = [
        f"## {alert.name}\n\n"
        f"{alert.severity.capitalize()}, after {alert.lasting}: {_plain(alert.summary)}\n\n"
        f"```promql\n{alert.expr}\n```\n\n{alert.action}\n"
        for alert in ALERTS
    ]
    return "\n".join([_HEAD, *sections])


def _plain(summary: str) -> str:
    """A summary in which templates are replaced by words."""
    words = {
        "{{ $value | humanize }}": "N",
        "{{ $value | humanizePercentage }}": "N %",
        "{{ $value | humanizeDuration }}": "N hours",
        "{{ $labels.queue }}": "Q",
        "{{ $labels.queue_name }}": "Q",
        "{{ $labels.duty }}": "NAME",
        "{{ $labels.reason }}": "forged or replayed",
        "{{ $labels.path }}": "PATH",
    }
    for template, word in words.items():
        summary = summary.replace(template, word)
    return summary


_HEAD: Final = """\
# Alerts, and what to do

Generated from the table in `stromboli.metrics.boards.alerts`. `stromboli manifests --alerts` prints the same table as
a rule file of Prometheus. Critical alerts are worth waking for; the others can wait for the morning.
"""
