"""Which jobs need no look in a cycle: their tasks are decided, and their status says all there is to say."""

from __future__ import annotations

from typing import Any

import pytest

from stromboli.cluster.mirror import Mirror
from stromboli.framework.books.phases import is_settled
from stromboli.framework.books.plan import Bind
from stromboli.model.job import FAILED, PENDING, Job
from stromboli.model.names import POD_GROUP_SCHEDULED, REASON_GANG_READY
from stromboli.plugin import Plugin, job_starving
from stromboli.preemption.starving import waiting
from stromboli.testing.builders import node, pod, pod_group, queue, state
from tests.acceptance.bench import Bench, conf

READY = [{"type": POD_GROUP_SCHEDULED, "status": "True", "reason": REASON_GANG_READY}]
RUNNING: dict[str, Any] = {"phase": "Running", "running": 1, "conditions": READY}
STANDING = [
    pytest.param("n1", RUNNING, True, id="it runs, and says so"),
    pytest.param("n1", {**RUNNING, "phase": "Inqueue"}, False, id="another phase"),
    pytest.param("n1", {**RUNNING, "running": 2}, False, id="another number"),
    pytest.param("n1", {**RUNNING, "conditions": []}, False, id="no condition"),
    pytest.param("", {"phase": "Inqueue", "conditions": READY}, True, id="it is being bound, and says so"),
    pytest.param("", {"phase": "Inqueue"}, False, id="it is being bound without a condition"),
    pytest.param("", {"phase": "Running", "conditions": READY}, False, id="it is being bound and says that it runs"),
]


@pytest.mark.parametrize(("on", "status", "settled"), STANDING)
def test_a_job_is_settled(on: str, status: dict[str, Any], settled: bool) -> None:
    mirror = Mirror(state(node("n1"), {**pod_group("g"), "status": status}, pod("g-0", group="g", on=on)))
    if not on:
        mirror.assume_bound(Bind("default/g-0", "default/g-0", "default/g", "n1"))
    assert is_settled(mirror.state.snapshot().jobs["default/g"]) is settled


@pytest.mark.parametrize(("own", "asked"), [(True, ["a", "q", "w"]), (False, ["a", "b", "c", "f", "q", "r", "w"])])
def test_settled_jobs_are_not_asked_whether_they_starve_where_that_is_known(own: bool, asked: list[str]) -> None:
    """The first job of each queue is, and one that waits; one whose pod failed has none left that an eviction helps."""
    seen: list[str] = []

    class Outsider(Plugin):
        name = "outsider"

        @job_starving(own=own)
        def wants(self, job: Job) -> bool:
            seen.append(job.name)
            return bool({PENDING, FAILED}.intersection(job.index))

    def runs(name: str, in_queue: str = "default", **status: Any) -> list[Any]:
        group = pod_group(name, queue=in_queue)
        return [{**group, "status": {**RUNNING, **status}}, pod(f"{name}-0", group=name, on="n1")]

    failed = [*runs("f", failed=1), pod("f-1", group="f", on="n1", phase="Failed")]
    waits = [pod_group("w", phase="Inqueue"), pod("w-0", group="w")]
    jobs = [*runs("a"), *runs("b"), *runs("c"), *failed, *runs("q", "other"), *runs("r", "other"), *waits]
    bench = Bench([node("n1", cpu=64), queue("other"), *jobs], conf("outsider", "gang priority"), Outsider)
    with bench.open() as session:
        assert [job.name for job in session.active_jobs()] == ["a", "q", "w"]  # a job is known to be settled once asked
        found = waiting(session, "preempt")
    assert sorted(seen) == asked
    starving = ["w"] if own else ["f", "w"]
    assert {name: [job.name for job in jobs] for name, jobs in found.jobs.items()} == {"default": starving}
    assert list(found.queues) == ["default", "other"]
