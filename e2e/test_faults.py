"""What may go wrong on each kind of server with real processes, and how everything is whole again afterwards."""

from __future__ import annotations

import json
import signal
import time
from collections import Counter
from pathlib import Path

import pytest

from e2e.clusters import Json
from e2e.objects import job
from e2e.stage import Stage, until

AWAY = 30.0
"""Seconds for which the API server is gone."""

SIZE = 16


def test_server_goes_away_and_comes_back(stage: Stage, space: str) -> None:
    with stage.scheduler():
        stage.create(job(space, "before", 4, command="sleep 2"), job(space, "stays", 2))
        kept = stage.until_bound(space, "stays", 2)
        stage.create(job(space, "during", 6, cpu="2", command="sleep 2"))
        stage.server.kill()
        time.sleep(AWAY)
        stage.server.start()
        stage.create(job(space, "after", 3, command="sleep 1"))
        for name, count in (("before", 4), ("during", 6), ("after", 3)):
            assert stage.until_phase(space, name, "Completed")["succeeded"] == count
        assert stage.bound(space, "stays") == kept
        until(lambda: not differences(stage, "scheduler"), "the state equals a fresh list")
        assert not [line for line in stage.logged("scheduler") if line["key"] == "drift_found"]


@pytest.mark.parametrize("bound", [1, 7, 15])
def test_scheduler_is_killed_amid_a_gang(stage: Stage, space: str, bound: int) -> None:
    slow = ("--kube-api-qps=8", "--kube-api-burst=8")
    with stage.scheduler(*slow, name="killed") as first:
        stage.create(job(space, "gang", SIZE))
        before = stage.until_bound(space, "gang", bound)
        first.kill()
        first.wait()
        before = stage.bound(space, "gang")
    with stage.scheduler():
        stage.until_phase(space, "gang", "Running")
        after = stage.bound(space, "gang")
        assert len(after) == SIZE
        assert before.items() <= after.items()
        until(lambda: not differences(stage, "scheduler"), "the state equals a fresh list")
    assert not [target for target, times in _bindings(stage, space).items() if times > 1]


def _bindings(stage: Stage, space: str) -> Counter[str]:
    """How often each pod of a namespace was bound, where the server writes that down."""
    targets = [entry["objectRef"] for entry in stage.server.audit() if entry["responseStatus"]["code"] == 201]
    binds = [one for one in targets if one.get("subresource") == "binding" and one["namespace"] == space]
    return Counter(one["name"] for one in binds)


def differences(stage: Stage, name: str) -> list[str]:
    """Pods of which a scheduler's dump says anything else than the server does."""
    for old in (stage.folder / name).glob("snapshot-*.json"):
        old.unlink()
    process = stage.running[name]
    until(lambda: _catches(process.pid, signal.SIGUSR1), "a process that listens: until then nobody answers")
    process.send_signal(signal.SIGUSR1)
    (path,) = until(lambda: list((stage.folder / name).glob("snapshot-*.json")), "a dump")
    told, there = _places(_read(path)), _places(stage.items("/api/v1/pods"))
    return [uid for uid in told.keys() | there.keys() if told.get(uid) != there.get(uid)]


def _catches(pid: int, number: signal.Signals) -> bool:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    caught = next(int(line.split()[1], 16) for line in lines if line.startswith("SigCgt:"))
    return bool(caught >> (number - 1) & 1)


def _read(path: Path) -> list[Json]:
    found: list[Json] = json.loads(path.read_text())["items"]
    return [one for one in found if one["kind"] == "Pod"]


def _places(pods: list[Json]) -> dict[str, str]:
    """Where the pods are that are not over."""
    alive = [pod for pod in pods if pod["status"].get("phase") not in ("Succeeded", "Failed")]
    return {pod["metadata"]["uid"]: pod["spec"].get("nodeName", "") for pod in alive}
