"""What a scheduler holds of the cluster, by its dumps, compared with what the server has."""

from __future__ import annotations

import json
import signal
from pathlib import Path

from e2e.clusters import Json
from e2e.stage import Stage, until


def differences(stage: Stage, name: str) -> list[str]:
    """Pods of which a scheduler's dump says anything else than the server does."""
    for old in (stage.folder / name).glob("snapshot-*.json"):
        old.unlink()
    process = stage.running[name]
    listening = "a process that listens: until then nothing answers"
    until(lambda: process.poll() is not None or _catches(process.pid, signal.SIGUSR1), listening)
    if process.poll() is not None:
        return [f"{name} has ended"]
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
