"""The whole cluster in one process: what is submitted runs and finishes, and nothing stays behind."""

from __future__ import annotations

import asyncio
import os
import signal
from dataclasses import replace
from pathlib import Path

import pytest

from stromboli.cli.main import main
from stromboli.errors import ManifestError
from stromboli.live.controlling import Controllers
from stromboli.live.scheduler import LiveScheduler
from stromboli.live.up import DONE, Row, Setup, hold, objects_in, up
from stromboli.server.kubelet.shapes import nodes_of

GANG = {
    "apiVersion": "batch.volcano.sh/v1alpha1",
    "kind": "Job",
    "metadata": {"name": "gang"},
    "spec": {
        "minAvailable": 3,
        "tasks": [
            {
                "name": "worker",
                "replicas": 3,
                "template": {
                    "spec": {
                        "restartPolicy": "Never",
                        "containers": [
                            {
                                "name": "main",
                                "image": "busybox",
                                "command": ["sleep", "0.1"],
                                "resources": {"requests": {"cpu": "2"}},
                            }
                        ],
                    }
                },
            }
        ],
    },
}


def _run(setup):
    async def story():
        seen: list[list[Row]] = []
        async with up(setup) as cluster:
            kubeconfig = cluster.serving.access.kubeconfig
            await asyncio.wait_for(hold(cluster, seen.append), 30)
            pods = list(cluster.serving.api.bodies("", "pods", "default"))
        return seen, pods, kubeconfig

    return asyncio.run(story())


def test_a_gang_is_scheduled_run_and_finished_and_nothing_stays():
    setup = Setup(nodes_of(["2x4cpu,8Gi"]), examples=[GANG], until_done=True, period=0.05)
    seen, pods, kubeconfig = _run(setup)
    (last,) = seen[-1]
    assert (last.name, last.queue, last.phase, last.succeeded) == ("default/gang", "default", "Completed", 3)
    assert last.phase in DONE
    assert {pod["spec"]["nodeName"] for pod in pods} == {"node-1", "node-2"}
    assert not kubeconfig.exists()


def test_a_kept_cluster_goes_on_where_it_was(tmp_path):
    setup = Setup(nodes_of(["2x4cpu,8Gi"]), data=tmp_path, examples=[GANG], until_done=True, period=0.05)
    _run(setup)
    seen, pods, _ = _run(replace(setup, examples=()))
    assert [row.phase for row in seen[-1]] == ["Completed"]
    assert len(pods) == 3


def test_manifests_are_read_by_file_and_folder(tmp_path):
    (tmp_path / "b.yaml").write_text("{apiVersion: v1, kind: B}\n---\n{apiVersion: v1, kind: C}\n")
    (tmp_path / "a.yaml").write_text("{apiVersion: v1, kind: A}\n")
    assert [body["kind"] for body in objects_in([tmp_path])] == ["A", "B", "C"]
    (tmp_path / "a.yaml").write_text("[1]")
    with pytest.raises(ManifestError, match="without apiVersion and kind"):
        objects_in([tmp_path / "a.yaml"])


def test_the_examples_are_objects_that_the_cluster_takes():
    found = objects_in([Path("examples/cluster")])
    assert {body["kind"] for body in found} == {"Queue", "Job"}


# ---------------------------------------------------------------------- what goes wrong inside


async def _fails(part):
    async with asyncio.TaskGroup():
        raise KeyError("nobody foresaw this")


async def _returns(part):
    await asyncio.sleep(0)


@pytest.mark.parametrize(("part", "name"), [(LiveScheduler, "scheduler"), (Controllers, "controllers")])
@pytest.mark.parametrize(("run", "why"), [(_fails, "KeyError: 'nobody foresaw this'"), (_returns, "before its time")])
def test_a_part_that_dies_ends_the_cluster_and_is_told(monkeypatch, capsys, part, name, run, why):
    monkeypatch.setattr(part, "run", run)
    assert main(["up"]) == 3
    told = capsys.readouterr().err
    assert f"The {name} has ended: " in told
    assert why in told
    assert "TaskGroup" not in told


def test_errors_that_are_told_inside_are_seen_and_make_the_exit_code(monkeypatch, capsys):
    async def troubled(scheduler):
        scheduler.tell("cycle_failed", error="no luck")
        scheduler.tell("audit_failed", error="only a warning")
        os.kill(os.getpid(), signal.SIGINT)
        await asyncio.sleep(60)

    monkeypatch.setattr(LiveScheduler, "run", troubled)
    assert main(["up"]) == 1
    told = capsys.readouterr().err
    assert "Scheduling cycle failed: no luck" in told
    assert "only a warning" in told
    assert told.endswith("1 error, see above\n")


def test_a_cluster_in_which_nothing_goes_wrong_says_nothing(monkeypatch, capsys):
    async def interrupted(scheduler):
        os.kill(os.getpid(), signal.SIGINT)
        await asyncio.sleep(60)

    monkeypatch.setattr(LiveScheduler, "run", interrupted)
    assert main(["up"]) == 0
    assert capsys.readouterr().err == ""
