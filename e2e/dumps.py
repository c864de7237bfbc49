"""What a scheduler holds of the cluster, by its dumps, compared with what the server has."""

from __future__ import annotations

import json
import signal
from pathlib import Path

from e2e.clusters import Json
from e2e.stage import Stage, until


def differences(stage: Stage, name: str) -> list[str]:
    """Pods and PodGroups of which a scheduler's dump says anything else than the server does."""
    for old in (stage.folder / name).glob("snapshot-*.json"):
        old.unlink()
    process = stage.running[name]
    listening = "a process that listens: until then nothing answers"
    until(lambda: process.poll() is not None or _catches(process.pid, signal.SIGUSR1), listening)
    if process.poll() is not None:
        return [f"{name} has ended"]
    process.send_signal(signal.SIGUSR1)
    (path,) = until(lambda: list((stage.folder / name).glob("snapshot-*.json")), "a dump")
    items = _read(path)
    told, there = _stood(items), _stood(_listed(stage))
    return [
        f"{what} {told.get(what)}, not {there.get(what)}" for what in told | there if told.get(what) != there.get(what)
    ]


def _catches(pid: int, number: signal.Signals) -> bool:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    caught = next(int(line.split()[1], 16) for line in lines if line.startswith("SigCgt:"))
    return bool(caught >> (number - 1) & 1)


def _read(path: Path) -> list[Json]:
    found: list[Json] = json.loads(path.read_text())["items"]
    return found


def _listed(stage: Stage) -> list[Json]:
    groups = stage.items("/apis/scheduling.volcano.sh/v1beta1/podgroups")
    pods = stage.items("/api/v1/pods")
    return [*({**one, "kind": "PodGroup"} for one in groups), *({**one, "kind": "Pod"} for one in pods)]


def _stood(items: list[Json]) -> dict[str, str]:
    """Where the pods are that are not over, and in which phase PodGroups."""
    found = {}
    for one in items:
        name, phase = (
            f"{one['metadata'].get('namespace', '')}/{one['metadata']['name']}",
            one.get("status", {}).get("phase"),
        )
        if one["kind"] == "Pod" and phase not in ("Succeeded", "Failed"):
            found[f"Pod {name} {one['metadata']['uid']}"] = one["spec"].get("nodeName", "")
        elif one["kind"] == "PodGroup":
            found[f"PodGroup {name}"] = phase
    return found
