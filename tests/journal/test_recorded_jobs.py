"""Volcano Jobs, whose pods are made once they are admitted, in a record of scheduler and controllers."""

from __future__ import annotations

import asyncio
import json
import random
from pathlib import Path
from typing import Any

import pytest

from stromboli.builtin import full_registry
from stromboli.cli.main import main
from stromboli.kube.client import Client
from stromboli.live.controllers.controller_runner import Controllers
from stromboli.live.installation.configurations import CONFIGURATION
from stromboli.live.scheduler.recording import record
from stromboli.server.verbs.writing import Options
from stromboli.study.closed_loop import ClosedLoop
from stromboli.study.recorded.history import History
from stromboli.study.recorded.trace import recorded_trace
from tests.support.live_world import LiveWorld
from tests.support.virtual import run

REGISTRY = full_registry("")
PERIOD = 1.0
JOBS = 14
"""As many as four nodes of four cores run in the time of the record, but for the last ones."""
SECONDS = 150


def job(number: int) -> dict[str, Any]:
    """A Job of three pods of two cores, in one of two queues; the runtime is in its name."""
    resources = {"requests": {"cpu": "2", "memory": "1Gi"}, "limits": {"cpu": "2", "memory": "1Gi"}}
    pod = {"restartPolicy": "OnFailure", "containers": [{"name": "main", "image": "busybox", "resources": resources}]}
    tasks = [{"name": "worker", "replicas": 3, "template": {"spec": pod}}]
    spec = {"schedulerName": "volcano", "minAvailable": 3, "queue": ("default", "research")[number % 2], "tasks": tasks}
    metadata = {"name": f"train-{number}", "namespace": "ns"}
    return {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "metadata": metadata, "spec": spec}


async def kubelets(world: LiveWorld) -> None:
    """Pods run for 15 to 28 seconds, as the number of their job says."""
    since: dict[str, float] = {}
    while True:
        await asyncio.sleep(0.25)
        now = world.clock()
        for pod in world.server.all("pods"):
            name = pod["metadata"]["name"]
            if "deletionTimestamp" in pod["metadata"]:
                world.server.drop("pods", name, "ns")
            elif pod["status"]["phase"] == "Running" and now - since.setdefault(name, now) > 15 + int(
                name.split("-")[1]
            ):
                world.server.put("pods", {**pod, "status": {**pod["status"], "phase": "Succeeded"}})


async def made(world: LiveWorld, body: dict[str, Any]) -> None:
    api = world.server.api
    api.writer.create(api.catalogue.of_kind(body["apiVersion"], body["kind"]), "ns", body, Options())
    await asyncio.sleep(0)


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("jobs")
    (folder / "conf").write_text(CONFIGURATION)

    async def story() -> None:
        world = LiveWorld(on="embedded")
        scheduler = world.scheduler(str(folder / "conf"), schedule_period=PERIOD)
        recorder = record(scheduler, folder / "rec")
        client = Client(world.server, dice=random.Random(5), agent="stromboli-controllers")
        controllers = Controllers(client, observer=world.told, clock=world.clock)
        world.tasks += [asyncio.create_task(controllers.run()), asyncio.create_task(kubelets(world))]
        world.start(scheduler)
        await asyncio.sleep(5.3)
        queue = {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue", "metadata": {"name": "research"}}
        await made(world, {**queue, "spec": {"weight": 3, "capability": {"cpu": "12"}}})
        await asyncio.sleep(3.3)
        for number in range(JOBS):
            await made(world, job(number))
        await asyncio.sleep(SECONDS)
        await world.end()
        recorder.close()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("stromboli.live.scheduler.scheduler.LOOK_EVERY", PERIOD)
        run(story())
    return folder / "rec"


def test_jobs_start_in_a_simulation_as_they_were_admitted(recorded: Path) -> None:
    history = History(recorded, REGISTRY).read()
    found = ClosedLoop(history, history.config, REGISTRY)
    late = [one for one in history.jobs.values() if one.started is not None and one.started - one.came > 10]
    assert len(late) >= 5, "jobs wait to be admitted"
    assert found.model_error.jobs == JOBS
    assert found.model_error.within == 1.0


def test_jobs_that_still_wait_have_the_pods_that_their_pod_groups_say(recorded: Path) -> None:
    history = History(recorded, REGISTRY, until=history_half(recorded)).read()
    assert history.not_admitted
    trace = recorded_trace(history, "record")
    jobs = {job.key: job for job in trace.workload.jobs}
    assert len(jobs) == JOBS
    for uid in history.not_admitted:
        assert uid in trace.guessed
        assert [(some.count, some.requests) for some in jobs[uid].pods] == [
            (1, {"cpu": "2", "memory": "1073741824"})
        ] * 3


def history_half(recorded: Path) -> float:
    """A moment at which jobs wait."""
    return History(recorded, REGISTRY).read().first + 30


def test_a_job_is_explained_while_it_waits_to_be_admitted(recorded: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["job", "explain", "train-13", "-n", "ns", "--record", str(recorded)]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert "Pending, 0 of 0 pods on nodes Refused: not admitted: overcommit" in out
    assert "waits: it has no pods yet, 3 needed at once" in out


def test_starts_of_jobs_that_wait_to_be_admitted_are_estimated(
    recorded: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "250")
    main(["eta", "--record", str(recorded), "--at", str(history_half(recorded))])
    rows = [line.split() for line in capsys.readouterr().out.splitlines() if line.startswith("ns/train-")]
    assert len(rows) >= 5


def test_what_a_replay_logs_bears_the_times_of_the_record(recorded: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["replay", str(recorded), "-v", "3"]) == 0
    lines = capsys.readouterr().err.splitlines()
    begins = {line.split()[0] for line in lines if "Open Session" in line}
    assert begins == {"I0115"}, "the world's clock begins on 15 January 2027"


def test_a_job_that_is_submitted_stands_behind_those_that_wait(
    recorded: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "250")
    (tmp_path / "job.yaml").write_text(json.dumps({**job(98), "metadata": {"name": "late", "namespace": "ns"}}))
    main(["eta", str(tmp_path / "job.yaml"), "--record", str(recorded), "--at", str(history_half(recorded))])
    (row,) = (line.split() for line in capsys.readouterr().out.splitlines() if line.startswith("ns/late "))
    assert int(row[2]) >= 2, "jobs of its queue come first"
