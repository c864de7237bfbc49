"""What one job may cost the controllers: pods, pods in one look, volumes."""

from __future__ import annotations

from typing import Any

import pytest

from stromboli.api.kinds import JOBS
from stromboli.controllers.changes import Change
from stromboli.controllers.jobs import look, reconcile, volumes
from tests.controllers.cluster import started, task


def test_a_job_of_too_many_pods_costs_nothing_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    def counted_up(*_: object) -> str:
        raise AssertionError("a name was made")

    cluster = started(task("t", 2))
    monkeypatch.setattr(look, "pod_name", counted_up)
    cluster.change(JOBS, "j", {"spec": {"tasks": [task("t", 2_000_000_000)]}})
    cluster.settle()
    assert len(cluster.names()) == 2, "the pods that there are stay"
    assert "its tasks have more than 1000000 replicas together" in cluster.job()["status"]["state"]["message"]


def test_one_look_makes_so_many_pods_and_the_next_ones_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[int] = []

    class Counting(look.Look):
        def _made(self, *args: Any) -> list[Change]:
            found = super()._made(*args)
            made.append(len(found))
            return found

    monkeypatch.setattr(look, "MADE_AT_ONCE", 2)
    monkeypatch.setattr(reconcile, "Look", Counting)
    cluster = started(task("t", 5))
    assert (len(cluster.names()), max(made)) == (5, 2)


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
