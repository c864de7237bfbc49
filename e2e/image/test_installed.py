"""The chart on a real API server, its programs from the image: webhooks answer, a gang runs, nothing is lost."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from e2e.chart.helm import CHART, helm
from e2e.chart.helm import missing as helm_missing
from e2e.clusters import Real, Refused
from e2e.conftest import missing
from e2e.image.kubelet import Deployments
from e2e.image.netns import missing as no_networks
from e2e.objects import job, namespace
from e2e.stage import JOBS, NAMESPACE, Stage, begun, until

VALUES: dict[str, Any] = {
    "basic": {"image": "stromboli:tested"},
    "custom": {"metrics_enable": True, "typo_enable": True, "scheduler_schedule_period": "200ms"},
}


@pytest.fixture
def bare(tmp_path: Path) -> Iterator[Stage]:
    """A server with nothing of ours on it, and with Services at addresses that no other story uses."""
    if reason := missing("real") or helm_missing() or no_networks():
        pytest.skip(reason)
    addresses = f"--service-cluster-ip-range=10.66.{os.getpid() % 256}.0/24"
    with begun(Real(tmp_path / "server", flags=[addresses]), tmp_path) as stage:
        yield stage


def upgrade(stage: Stage, *words: str) -> str:
    """Install or upgrade the release, and wait until its programs are ready."""
    file = stage.folder / "values.json"
    file.write_text(json.dumps(VALUES))
    what = ("upgrade", "--install", "volcano", str(CHART), f"--namespace={NAMESPACE}", "--create-namespace")
    return helm(
        *what,
        f"--values={file}",
        "--wait",
        "--timeout=5m",
        "--take-ownership",
        *words,
        kubeconfig=stage.server.kubeconfig,
    )


def submit(stage: Stage, name: str, count: int) -> dict[str, str]:
    """A gang, once it runs: the nodes of its pods by uid."""
    stage.create(job("ns", name, count))
    stage.until_phase("ns", name, "Running")
    return stage.bound("ns", name)


def check_webhooks(stage: Stage) -> None:
    """The API server asks the pods of the chart, by their Service: they refuse, and fill in."""
    wrong = job("ns", "wrong", 2, least=3)
    with pytest.raises(Refused, match=r"admission webhook ..validatejob.volcano.sh.. denied"):
        stage.api.call("POST", JOBS.format("ns"), wrong)
    made = stage.api.call("POST", f"{JOBS.format('ns')}?dryRun=All", job("ns", "right", 2))
    assert (made["spec"]["queue"], made["spec"]["maxRetry"]) == ("default", 3)


def test_a_gang_runs_and_upgrade_and_rollback_lose_nothing(bare: Stage, image: tuple[Path, Any]) -> None:
    pods = bare.folder / "pods"
    pods.mkdir()
    with Deployments(bare.server, NAMESPACE, image[0], pods) as deployments:
        try:
            notes = upgrade(bare)
            assert "custom.metrics_enable has no effect: nothing is bundled" in notes
            assert "custom.typo_enable has no effect: there is no such setting." in notes
            bare.add_nodes("4x8cpu,32Gi")
            bare.create(namespace("ns"))
            bare.until_open("default")
            first = submit(bare, "first", 4)
            assert len(first) == 4
            check_webhooks(bare)

            upgrade(bare, "--set=custom.scheduler_log_level=3", "--set=custom.controller_log_level=3")
            second = submit(bare, "second", 4)
            helm("rollback", "volcano", "1", f"--namespace={NAMESPACE}", "--wait", kubeconfig=bare.server.kubeconfig)
            third = submit(bare, "third", 4)
            for name, was in (("first", first), ("second", second), ("third", third)):
                assert bare.bound("ns", name) == was
            most = {"volcano-scheduler": 1, "volcano-controllers": 1, "volcano-admission": 1}
            assert deployments.most == most  # no two ever decided at once
            upgrade(bare, "--set=custom.scheduler_replicas=2", "--set=custom.controller_replicas=2")
            submit(bare, "fourth", 4)
            until(lambda: len(deployments.running) == 5, "two of each that decides")
            assert set(deployments.ended.values()) == {0}
            assert not bare.server.forbidden()
        except Exception as error:
            for name, text in deployments.logs().items():
                error.add_note(f"== {name}\n{text[-3000:]}")
            raise
