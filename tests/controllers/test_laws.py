"""Laws of the controllers: whatever happens to a job, in whatever order, and whichever writes fail on the way."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stromboli.api.batch import PHASES
from stromboli.api.bus import JOB_ACTIONS
from stromboli.controllers.changes import Create, KillPod, Patch
from stromboli.controllers.jobs.requests import Request
from stromboli.controllers.jobs.states import FINISHED
from stromboli.controllers.jobs.status import COUNTED_WITHIN
from tests.controllers.cluster import Cluster, started, task

LATE = 30
"""Seconds by which a policy may put its action off."""
ACTIONS = [action for action in JOB_ACTIONS if action != "ResumeJob"]
POLICY = st.builds(
    lambda event, action, late: {"event": event, "action": action, **({"timeout": f"{LATE}s"} if late else {})},
    st.sampled_from(["PodFailed", "PodEvicted", "TaskFailed", "TaskCompleted", "Unknown", "PodPending", "*"]),
    st.sampled_from(ACTIONS),
    st.booleans(),
)
STEP = st.one_of(
    st.tuples(st.just("phase"), st.integers(0, 5), st.sampled_from(["Running", "Succeeded", "Failed", "Pending"])),
    st.tuples(st.just("evict"), st.integers(0, 5), st.none()),
    st.tuples(st.just("command"), st.sampled_from(list(JOB_ACTIONS)), st.none()),
    st.tuples(st.just("break"), st.sampled_from([Create, Patch, KillPod]), st.integers(1, 3)),
    st.tuples(st.sampled_from(["admit", "reap", "time", "settle"]), st.none(), st.none()),
)


def do(cluster: Cluster, step: tuple[str, Any, Any]) -> None:
    """Let one thing happen."""
    what, first, second = step
    names = sorted(cluster.pods())
    if what == "phase" and names:
        cluster.pod_phase(names[first % len(names)], second, 1, restarts=first)
    elif what == "evict" and names:
        cluster.remove("pods", names[first % len(names)])
    elif what == "command":
        cluster.command(first, "Job", "j")
    elif what == "break":
        cluster.breaking[first] = second
    elif what == "admit":
        cluster.admit()
    elif what == "reap":
        cluster.reap()
    elif what == "time":
        cluster.now += 30
    else:
        cluster.settle()


def check(cluster: Cluster, before: dict[str, Any]) -> dict[str, Any]:
    """What holds whenever the controllers are at rest."""
    found: dict[str, Any] = cluster.job()["status"]
    phase = found["state"]["phase"]
    assert phase in PHASES
    for count in ("version", "retryCount"):
        assert found.get(count, 0) >= before.get(count, 0), "never counted down"
    if before["state"]["phase"] in FINISHED:
        assert phase == before["state"]["phase"], "finished is finished"
    alive = [name for name in cluster.names() if phase_of(cluster, name) in ("Pending", "Running")]
    if phase in (*FINISHED, "Aborting", "Aborted", "Completing", "Terminating"):
        assert alive == [], "nothing that lives is forgotten"
        assert cluster.groups() == []
    counted = sum(found.get(key, 0) for key in ("pending", "running", "succeeded", "failed", "terminating", "unknown"))
    assert counted == len(cluster.pods()), "every pod is counted once"
    statuses = [row["status"] for row in found["conditions"]]
    assert (len(statuses), statuses[-1]) == (len(set(statuses)), phase)
    assert len(cluster.names()) <= 6
    return found


def phase_of(cluster: Cluster, name: str) -> str:
    return str(cluster.pods()[name].get("status", {}).get("phase", "Pending"))


@pytest.mark.law("whatever happens to a job, its pods are counted, killed or kept, and what has finished stays")
@settings(max_examples=60)
@given(
    st.lists(STEP, max_size=14),
    st.lists(POLICY, max_size=2),
    st.integers(1, 3),
    st.sampled_from([None, 1, 2]),
)
def test_whatever_happens_to_a_job(
    steps: list[tuple[str, Any, Any]], policies: list[Any], retries: int, success: int | None
) -> None:
    cluster = started(
        task("a", 2, minAvailable=1),
        task("b", 2, partitionPolicy={"totalPartitions": 2, "partitionSize": 1}),
        policies=policies, maxRetry=retries, minSuccess=success, minAvailable=2,
    )  # fmt: skip
    found = cluster.job()["status"]
    for step in steps:
        do(cluster, step)
        cluster.wait(cluster.now + COUNTED_WITHIN)
        found = check(cluster, found)
    cluster.wait(cluster.now + LATE)  # what policies put off is done by then
    cluster.reap()
    cluster.admit()  # a resumed job's pods are made when its new group is let in
    cluster.wait(cluster.now + COUNTED_WITHIN)
    found = check(cluster, found)
    writes = len(cluster.writes)
    cluster.manager.ask_job(("ns", "j"), Request())
    cluster.settle()
    assert len(cluster.writes) == writes, "at rest nothing is written"
    if found["state"]["phase"] == "Running":
        assert set(cluster.pods()) == {"j-a-0", "j-a-1", "j-b-0", "j-b-1"}, "no pod is lost"
