"""Pods of a job that come and start in numbers are counted together in its status."""

from __future__ import annotations

from typing import Any

import pytest

from stromboli.api.batch import Job
from stromboli.api.fields import Metadata
from stromboli.api.kinds import JOBS
from stromboli.controllers.changes import Patch
from stromboli.controllers.jobs.status import MOMENT, Uncounted
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
        ([(10.0, COUNT, ""), (10.25, COUNT, ""), (12.0, COUNT, "")], [MOMENT, MOMENT - 0.25, 0.0]),
        ([(10.0, COUNT, ""), (12.0, COUNT, ""), (12.5, COUNT, "written")], [MOMENT, 0.0, MOMENT]),
        ([(10.0, COUNT, ""), (12.0, COUNT, ""), (12.1, COUNT, "")], [MOMENT, 0.0, 0.0]),
        ([(10.0, COUNT, "makes pods"), (15.0, COUNT, ""), (15.5, COUNT, "")], [MOMENT, MOMENT, MOMENT - 0.5]),
        ([(10.0, COUNT, ""), (5.0, COUNT, "")], [MOMENT, 0.0]),
        ([(10.0, COUNT, ""), (10.5, {}, ""), (11.5, COUNT, "")], [MOMENT, 0.0, MOMENT]),
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
        "a phase",
        "a retry",
    ],
)  # fmt: skip
def test_how_long_a_count_of_pods_is_put_off(looks: list[tuple[float, Any, str]], pauses: list[float]) -> None:
    uncounted, found = Uncounted(), list[float]()
    for now, patch, what in looks:
        version = "2" if what == "written" else "1"
        one = Job(metadata=Metadata(name="j", namespace="ns", uid="u", resource_version=version))
        found.append(uncounted.pause(one, patch, now, makes_pods=what == "makes pods"))
    assert found == pauses


def start_one_by_one(cluster: Cluster, seconds: float) -> None:
    for number in range(4):
        cluster.pod_phase(f"j-a-{number}", "Running")
        cluster.wait(cluster.now + seconds)


@pytest.mark.parametrize(
    ("least", "seconds", "told"),
    [
        (4, MOMENT / 8, [(0, 4)]),
        (4, 2 * MOMENT, [(4, 0), (3, 1), (2, 2), (1, 3), (0, 4)]),
        (2, MOMENT / 8, [(2, 2), (0, 4)]),
        (1, MOMENT / 8, [(3, 1), (0, 4)]),
    ],
    ids=["together", "one by one", "the phase changes meanwhile", "the phase changes at first"],
)
def test_pods_that_start_are_counted_together_and_a_phase_is_told_at_once(
    least: int, seconds: float, told: list[tuple[int, int]]
) -> None:
    cluster = started(task("a", 4, minAvailable=least), running=False)
    if seconds > MOMENT:
        cluster.wait(cluster.now + MOMENT)
    start_one_by_one(cluster, seconds)
    cluster.wait(cluster.now + MOMENT)
    assert counts(cluster) == told
    assert cluster.phase() == "Running"
