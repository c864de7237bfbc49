"""Pods of a job that come and start in numbers are counted together in its status."""

from __future__ import annotations

from typing import Any

import pytest

from stromboli.api.batch import Job, JobStatus
from stromboli.api.fields import Metadata
from stromboli.api.kinds import JOBS, POD_GROUPS
from stromboli.controllers.changes import Patch
from stromboli.controllers.jobs.status import COUNTED_REST, COUNTED_WITHIN, OutdatedCounts
from stromboli.controllers.work import About, Work
from tests.controllers.cluster import Cluster, started, task


def counts(cluster: Cluster) -> list[tuple[int, int]]:
    """How many pods the statuses that were written say to be pending and running."""
    patches: list[Any] = [w.body["status"] for w in cluster.writes if isinstance(w, Patch) and w.resource == JOBS]
    told = [one for one in patches if {"pending", "running"} & one.keys()]
    return [(one.get("pending") or 0, one.get("running") or 0) for one in told]


COUNT: dict[str, Any] = {"pending": 4, "state": {"lastTransitionTime": "2027-01-01T00:00:00Z"}}
PHASE: dict[str, Any] = {"pending": 4, "state": {"phase": "Running"}}


@pytest.mark.parametrize(
    ("looks", "pauses"),
    [
        ([(10.0, COUNT, ""), (10.25, COUNT, ""), (12.0, COUNT, "")], [COUNTED_WITHIN, COUNTED_WITHIN - 0.25, 0.0]),
        ([(10.0, COUNT, ""), (12.0, COUNT, ""), (12.5, COUNT, "written")], [COUNTED_WITHIN, 0.0, COUNTED_WITHIN]),
        ([(10.0, COUNT, ""), (12.0, COUNT, ""), (12.1, COUNT, "")], [COUNTED_WITHIN, 0.0, 0.0]),
        ([(10.0, COUNT, "makes pods"), (15.0, COUNT, ""), (15.5, COUNT, "")], [2.0, 2.0, 1.5]),
        ([(10.0, COUNT, ""), (5.0, COUNT, "")], [COUNTED_WITHIN, 0.0]),
        ([(10.0, COUNT, ""), (10.5, {}, ""), (11.5, COUNT, "")], [COUNTED_WITHIN, 0.0, COUNTED_WITHIN]),
        ([(10.0, COUNT, "makes pods"), (11.0, COUNT, "makes pods"), (19.5, COUNT, "makes pods")], [2.0, 2.0, 0.5]),
        ([(10.0, COUNT, "makes pods"), (20.0, COUNT, "makes pods")], [2.0, 0.0]),
        ([(10.0, PHASE, ""), (10.1, PHASE, "makes pods")], [0.0, 0.0]),
        ([(10.0, {**COUNT, "retryCount": 1}, "")], [0.0]),
    ],
    ids=[
        "a moment",
        "a moment after each status",
        "one that could not be written",
        "from when the pods have been made",
        "a clock that is set back",
        "counted by another",
        "as long as pods are made",
        "but not for ever",
        "a phase",
        "a retry",
    ],
)  # fmt: skip
def test_how_long_a_count_of_pods_is_put_off(looks: list[tuple[float, Any, str]], pauses: list[float]) -> None:
    outdated, found = OutdatedCounts(), list[float]()
    for now, patch, what in looks:
        status = JobStatus(pending=3 if what == "written" else 2)
        version = str(now)  # others may write annotations meanwhile
        one = Job(metadata=Metadata(name="j", namespace="ns", uid="u", resource_version=version), status=status)
        found.append(outdated.pause(one, patch, now, makes_pods=what == "makes pods"))
    assert found == pauses


def start_one_by_one(cluster: Cluster, seconds: float) -> None:
    for number in range(4):
        cluster.pod_phase(f"j-a-{number}", "Running")
        cluster.wait(cluster.now + seconds)


@pytest.mark.parametrize(
    ("least", "seconds", "told"),
    [
        (4, COUNTED_WITHIN / 8, [(0, 4)]),
        (4, 2 * COUNTED_WITHIN, [(4, 0), (3, 1), (2, 2), (1, 3), (0, 4)]),
        (2, COUNTED_WITHIN / 8, [(2, 2), (0, 4)]),
        (1, COUNTED_WITHIN / 8, [(3, 1), (0, 4)]),
    ],
    ids=["together", "one by one", "the phase changes meanwhile", "the phase changes at first"],
)
def test_pods_that_start_are_counted_together_and_a_phase_is_told_at_once(
    least: int, seconds: float, told: list[tuple[int, int]]
) -> None:
    cluster = started(task("a", 4, minAvailable=least), running=False)
    if seconds > COUNTED_WITHIN:
        cluster.wait(cluster.now + COUNTED_WITHIN)
    start_one_by_one(cluster, seconds)
    cluster.wait(cluster.now + COUNTED_WITHIN)
    assert counts(cluster) == told
    assert cluster.phase() == "Running"


def test_a_job_rests_after_a_look_that_puts_its_count_off() -> None:
    """Its pods start one after another, and each look counts all of them."""
    cluster = started(task("a", 4), running=False)
    cluster.wait(cluster.now + COUNTED_WITHIN)
    cluster.pod_phase("j-a-0", "Running")
    look = Work(About.job, ("ns", "j"))
    assert cluster.manager.look(look, cluster.now).rest == COUNTED_REST
    assert cluster.manager.look(look, cluster.now + COUNTED_WITHIN).rest == 0.0


def test_where_no_pods_may_be_made_a_count_is_put_off_for_a_moment_only() -> None:
    cluster = started(task("a", 4, minAvailable=1), running=False)
    cluster.pod_phase("j-a-0", "Running")
    cluster.settle()
    [group] = cluster.groups()
    cluster.change(POD_GROUPS, group["metadata"]["name"], {"status": {"phase": "Pending"}})
    cluster.wait(cluster.now + COUNTED_WITHIN)
    cluster.writes.clear()
    for number in (1, 2, 3):
        cluster.pod_phase(f"j-a-{number}", "Running")
        cluster.wait(cluster.now + 0.75 * COUNTED_WITHIN)
    assert counts(cluster) == [(1, 3)]


def test_a_job_whose_status_is_lost_counts_its_pods_with_the_first_status() -> None:
    cluster = started(task("a", 2))
    stored = cluster.job()
    cluster.writes.clear()
    cluster.store(JOBS, {**stored, "status": {}})
    cluster.settle()
    assert counts(cluster)[0] == (0, 2)


def test_while_a_job_makes_pods_their_count_is_put_off_from_the_last() -> None:
    cluster = started(task("a", 2, minAvailable=1))
    cluster.wait(cluster.now + COUNTED_WITHIN)
    cluster.writes.clear()
    for replicas in (3, 4):
        cluster.change(JOBS, "j", {"spec": {"tasks": [{**cluster.job()["spec"]["tasks"][0], "replicas": replicas}]}})
        cluster.wait(cluster.now + 0.75 * COUNTED_WITHIN)
    assert counts(cluster) == []
    cluster.wait(cluster.now + COUNTED_WITHIN)
    assert counts(cluster) == [(2, 0)]
