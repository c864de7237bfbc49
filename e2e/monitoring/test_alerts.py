"""Each alert fires in one story and stays silent in another, as Prometheus' own promtool judges them."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Final, NamedTuple

import pytest

from stromboli.metrics.boards.alerts import ALERTS, Alert, groups, rule

Series = Mapping[str, str]
"""Values of series, a minute apart, in promtool's notation."""

CYCLES: Final = "volcano_e2e_scheduling_latency_milliseconds"
LEADS: Final = {'stromboli_leading{pod="a"}': "1x240"}


class Story(NamedTuple):
    """What is measured while an alert fires after ``minutes`` and while it does not; ``quiet`` lasts as long.

    ``summary`` is what people read then, ``labels`` what the alert says besides its severity.
    """

    loud: Series
    quiet: Series
    minutes: int
    summary: str
    labels: Mapping[str, str] = {}


def cycles(count: str, total: str) -> Series:
    """Cycles and their milliseconds."""
    return {f'{CYCLES}_count{{pod="a"}}': count, f'{CYCLES}_sum{{pod="a"}}': total}


def job(started: str, placed: str = "") -> Series:
    """When a job was created, and when a task of it was placed."""
    labels = '{job_name="j", queue="q", job_namespace="n", pod="a"}'
    begun = {f"volcano_e2e_job_scheduling_start_time{labels}": started}
    return begun | ({f"volcano_e2e_job_scheduling_last_time{labels}": placed} if placed else {})


def queue(allocated: int, deserved: int, request: int) -> Series:
    """A queue's thousandths of a core."""
    amounts = {"allocated": allocated, "deserved": deserved, "request": request}
    return {f'volcano_queue_{name}_milli_cpu{{queue_name="q"}}': f"{value}x240" for name, value in amounts.items()}


def steady(name: str, value: float) -> Series:
    """A gauge of one process."""
    return {f'{name}{{pod="a"}}': f"{value:g}x240"}


def certificate(begin: float, end: float) -> Series:
    """When a webhook server's certificate begins and ends, in seconds of the story."""
    return {
        **steady("stromboli_webhook_certificate_begin_seconds", begin),
        **steady("stromboli_webhook_certificate_end_seconds", end),
    }


def growing(name: str, step: float, labels: str = "") -> Series:
    """A counter of one process that grows so much a minute."""
    return {f'{name}{{pod="a"{labels}}}': f"0+{step:g}x240"}


REVIEWS: Final = "stromboli_webhook_reviews_total"
BEGINS: Final = "_x20 1x240"
"""A counter with labels that is not there at first and begins with its first count."""

STORIES: Final[Mapping[str, Story]] = {
    "StromboliNoLeader": Story(
        {'stromboli_leading{pod="a"}': "0x240", 'stromboli_leading{pod="b"}': "0x240"},
        {'stromboli_leading{pod="a"}': "0x240", 'stromboli_leading{pod="b"}': "1x240"},
        10,
        "No scheduler leads; no pod is bound or evicted.",
    ),
    "StromboliNoCycles": Story(
        {**LEADS, **cycles("50x240", "500x240")},
        {**LEADS, **cycles("0+60x240", "0+600x240")},
        20,
        "A scheduler leads, and has finished no cycle for five minutes.",
    ),
    "StromboliSlowCycles": Story(
        cycles("0+10x240", "0+60000x240"),
        cycles("0+60x240", "0+60000x240"),
        40,
        "Cycles take 6k ms in the mean, five times the usual period.",
    ),
    "StromboliBindsFail": Story(
        {**growing("stromboli_bind_failures_total", 20), **growing("stromboli_binds_total", 60)},
        {**growing("stromboli_bind_failures_total", 1), **growing("stromboli_binds_total", 60)},
        30,
        "25% of the bindings fail.",
    ),
    "StromboliEvictionsFail": Story(
        growing("stromboli_eviction_failures_total", 1),
        steady("stromboli_eviction_failures_total", 3),
        60,
        "30 evictions have failed within half an hour.",
        {"pod": "a"},
    ),
    "StromboliEvictionChurn": Story(
        {**growing("stromboli_evictions_total", 2), **growing("stromboli_binds_total", 3)},
        {**growing("stromboli_evictions_total", 2), **growing("stromboli_binds_total", 30)},
        90,
        "Half an hour has seen 60 evictions, more than half as many as pods were bound.",
    ),
    "StromboliNothingStarts": Story(
        {**steady("volcano_unschedule_job_count", 3), **steady("stromboli_binds_total", 70)},
        {**steady("volcano_unschedule_job_count", 3), **growing("stromboli_binds_total", 0.1)},
        180,
        "3 jobs wait, and no pod has been bound for an hour.",
    ),
    "StromboliJobWaitsLong": Story(
        job("-88200x240"),
        job("-88200x240", "60x240"),
        30,
        "A job in queue q has waited 1d 1h 0m 0s for its first pod.",
        {"queue": "q"},
    ),
    "StromboliQueueStarves": Story(
        queue(allocated=2000, deserved=8000, request=12000),
        queue(allocated=2000, deserved=8000, request=2000),
        90,
        "Queue q asks for more than it deserves and holds less than half of that.",
        {"queue_name": "q"},
    ),
    "StromboliConfigurationRefused": Story(
        steady("stromboli_configuration_refused", 1),
        steady("stromboli_configuration_refused", 0),
        10,
        "The configuration file has a mistake; the last good configuration goes on.",
    ),
    "StromboliInconsistentObjects": Story(
        steady("volcano_inconsistencies", 2),
        steady("volcano_inconsistencies", 0),
        30,
        "2 objects do not add up and are left out of the cycles.",
    ),
    "StromboliStateDrift": Story(
        growing("stromboli_state_drift_total", 1),
        steady("stromboli_state_drift_total", 5),
        60,
        "The state differed from what the API server lists, in 30 objects; it has been mended.",
        {"pod": "a"},
    ),
    "StromboliWritesPileUp": Story(
        steady("stromboli_writes_in_flight", 5000),
        steady("stromboli_writes_in_flight", 500),
        30,
        "5k writes wait for the API server.",
    ),
    "StromboliDutyFails": Story(
        {'stromboli_duty_failures_total{pod="a", duty="the audit"}': BEGINS},
        {'stromboli_duty_failures_total{pod="a", duty="the audit"}': "1x240"},
        40,
        "Background work of the scheduler fails: the audit.",
        {"pod": "a", "duty": "the audit"},
    ),
    "StromboliForgedReservations": Story(
        {'volcano_unproven_reservations_total{pod="a", reason="forged"}': BEGINS},
        {'volcano_unproven_reservations_total{pod="a", reason="unsigned"}': BEGINS},
        25,
        "Pods state reservations that the scheduler has not written (forged).",
        {"pod": "a", "reason": "forged"},
    ),
    "StromboliRecordStopped": Story(
        growing("stromboli_record_failures_total", 1),
        steady("stromboli_record_failures_total", 2),
        90,
        "Recording (--record) has stopped; scheduling goes on.",
        {"pod": "a"},
    ),
    "StromboliWebhooksFail": Story(
        growing(REVIEWS, 6, ', path="/jobs/validate", outcome="failed"'),
        {
            **growing(REVIEWS, 6, ', path="/jobs/validate", outcome="refused"'),
            f'{REVIEWS}{{pod="a", path="/jobs/validate", outcome="failed"}}': "3x240",
        },
        30,
        "Reviews on /jobs/validate fail; what they are about is refused, or stored without being looked at.",
        {"path": "/jobs/validate"},
    ),
    "StromboliWebhooksRefuseMuch": Story(
        {
            **growing(REVIEWS, 30, ', path="/jobs/validate", outcome="refused"'),
            **growing(REVIEWS, 10, ', path="/jobs/validate", outcome="patched"'),
        },
        {
            **growing(REVIEWS, 1, ', path="/jobs/validate", outcome="refused"'),  # all of them, and few
            **growing(REVIEWS, 40, ', path="/queues/validate", outcome="refused"'),  # many, and less than half
            **growing(REVIEWS, 60, ', path="/queues/validate", outcome="allowed"'),
        },
        60,
        "75% of what /jobs/validate is asked about are refused.",
        {"path": "/jobs/validate"},
    ),
    "StromboliWebhookCertificateEnds": Story(
        certificate(-31_036_000, 500_000),
        certificate(-800_000, 450_000),  # of two weeks, in the last third of which another comes
        100,
        "The webhook server's certificate ends in 5d 17h 13m 20s; then all reviews fail.",
    ),
    "StromboliWebhookCertificateUnknown": Story(
        certificate(0, 0),
        certificate(-31_036_000, 500_000),
        100,
        "The webhook server shows no certificate whose end can be read.",
        {"pod": "a"},
    ),
    "StromboliControllersSilent": Story(
        LEADS,
        steady("volcano_queue_pod_group_pending_count", 0),
        30,
        "No controllers report; jobs get no pods, and queues no state.",
    ),
}


def fired(alert: Alert, story: Story) -> Mapping[str, object]:
    """The one alert that is expected."""
    found = rule(alert)
    annotations, labels = found["annotations"], found["labels"]
    assert isinstance(annotations, dict)
    assert isinstance(labels, dict)
    return {
        "exp_labels": {**labels, **story.labels},
        "exp_annotations": {**annotations, "summary": story.summary},
    }


def case(alert: Alert, series: Series, minutes: int, expected: list[Mapping[str, object]]) -> Mapping[str, object]:
    """One test of promtool's."""
    return {
        "interval": "1m",
        "input_series": [{"series": name, "values": values} for name, values in series.items()],
        "alert_rule_test": [{"eval_time": f"{minutes}m", "alertname": alert.name, "exp_alerts": expected}],
    }


def judged(promtool: str, folder: Path, tests: list[Mapping[str, object]]) -> subprocess.CompletedProcess[str]:
    """What promtool says of tests of our rules."""
    (folder / "rules.json").write_text(json.dumps({"groups": groups()}))
    (folder / "tests.json").write_text(json.dumps({"rule_files": ["rules.json"], "tests": tests}))
    command = [promtool, "test", "rules", "tests.json"]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


def test_every_alert_has_its_stories() -> None:
    assert set(STORIES) == {alert.name for alert in ALERTS}


def test_the_rules_are_well_formed(promtool: str, tmp_path: Path) -> None:
    (tmp_path / "rules.json").write_text(json.dumps({"groups": groups()}))
    command = [promtool, "check", "rules", "rules.json"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{len(ALERTS)} rules found" in done.stdout


@pytest.mark.parametrize("alert", ALERTS, ids=lambda alert: alert.name)
def test_it_fires_in_its_story_and_in_no_other(alert: Alert, promtool: str, tmp_path: Path) -> None:
    story = STORIES[alert.name]
    loud = case(alert, story.loud, story.minutes, [fired(alert, story)])
    quiet = [case(alert, story.quiet, minutes, []) for minutes in (5, story.minutes, 240)]
    early = [case(alert, story.loud, 1, [])] if alert.lasting != "0m" else []
    done = judged(promtool, tmp_path, [loud, *quiet, *early])
    assert done.returncode == 0, done.stdout + done.stderr
