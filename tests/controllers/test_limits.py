"""What one job may cost the controllers: pods, pods in one look, volumes."""

from __future__ import annotations

from typing import Any

import pytest

from stromboli.api.kinds import JOBS
from stromboli.controllers.changes import Change, KillPod, Patch
from stromboli.controllers.jobs import look, reconcile, volumes
from stromboli.controllers.jobs.requests import Request
from stromboli.controllers.jobs.status import COUNTED_WITHIN
from stromboli.controllers.work import About, Work
from tests.controllers.cluster import started, task


def test_a_job_of_too_many_pods_costs_nothing_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    def counted_up(*_: object) -> str:
        raise AssertionError("a name was made")

    cluster = started(task("t", 2))
    monkeypatch.setattr(look, "pod_name", counted_up)
    cluster.change(JOBS, "j", {"spec": {"tasks": [task("t", 2_000_000_000)]}})
    cluster.settle()
    assert len(cluster.names()) == 2, "the pods that there are stay"
    assert cluster.job()["status"]["running"] == 2
    assert "its tasks have more than 1000000 replicas together" in cluster.job()["status"]["state"]["message"]


@pytest.mark.parametrize(("pods", "made"), [(2, 2), (3, 0)])
def test_a_job_of_just_as_many_pods_as_may_be_gets_them(pods: int, made: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(look, "MOST_PODS", 2)
    assert len(started(task("t", pods)).names()) == made


def test_a_look_counts_the_pods_that_it_ends_as_ending() -> None:
    cluster = started(task("a", 3, minAvailable=1))
    cluster.now += 90 - COUNTED_WITHIN
    cluster.pod_phase("j-a-2", "Pending")
    cluster.settle()
    cluster.now += COUNTED_WITHIN  # so long counts of pods are put off
    work, marks = Work(About.job, ("ns", "j")), {"volcano.sh/controller-out-of-sync": "true"}
    cluster.change("pods", "j-a-0", {"metadata": {"annotations": marks}})
    first = list(cluster.run(work).changes())
    cluster.manager.ask_job(work.key, Request(action="AbortJob"))
    second = list(cluster.run(work).changes())
    ended = [[one.name for one in changes if isinstance(one, KillPod)] for changes in (first, second)]
    told: list[Any] = [one.body["status"] for changes in (first, second) for one in changes if isinstance(one, Patch)]
    assert ended == [["j-a-0"], ["j-a-1", "j-a-2"]]
    assert [(one.get("terminating"), one.get("runningDuration")) for one in told] == [(1, None), (3, "1m30s")]


def test_one_look_makes_so_many_pods_and_the_next_ones_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[tuple[int, float | None]] = []

    class Counting(look.Look):
        def _made(self, *args: Any) -> list[Change]:
            found = super()._made(*args)
            made.append((len(found), self._outcome.after))
            return found

    monkeypatch.setattr(look, "MADE_AT_ONCE", 2)
    monkeypatch.setattr(reconcile, "Look", Counting)
    cluster = started(task("t", 5))
    assert (len(cluster.names()), set(made)) == (5, {(2, 0.0), (1, None), (0, None)})


def test_volumes_times_containers_that_no_server_takes_keep_the_pods_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(volumes, "MOST_MOUNTS", 3)
    containers = [{"name": name, "image": "i"} for name in "xy"]
    cluster = started(
        task("a", 1, pod={"containers": containers}), running=False,
        volumes=[{"mountPath": f"/{n}", "volumeClaim": {}} for n in range(2)],
    )  # fmt: skip
    assert cluster.names() == []
    text = "task a would mount 2 volumes of the job in each of 2 containers; 3 mounts in a pod are the most"
    assert text in cluster.job()["status"]["state"]["message"]
