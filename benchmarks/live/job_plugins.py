"""Prints what Jobs with plugins cost the controllers: ``python -m benchmarks.live.job_plugins [--jobs N] [--size N]``.

The embedded API server stands in this process and lets the PodGroups in; the controllers are a process of their own.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from benchmarks.live.load import NAMESPACE, NAMESPACES, Load, submit
from benchmarks.live.processes import Processes
from benchmarks.tables import figure, head, machine, row
from stromboli.cluster.body import changed, part
from stromboli.kube.access import from_kubeconfig
from stromboli.kube.client import Client
from stromboli.kube.resources import QUEUES
from stromboli.server.api import Api
from stromboli.server.http.serving import serving

LIMIT: Final = 2.5
"""CPU milliseconds of the controllers for each pod, where no keys are made."""
SPACE: Final = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}
GIVEN: Final = ["--ssh-private-key=given", "--ssh-public-key=given"]
CASES: Final[Mapping[str, dict[str, list[str]]]] = {
    "none": {},
    "svc": {"svc": []},
    "svc, ssh with a given key": {"svc": [], "ssh": GIVEN},
    "svc, ssh": {"svc": [], "ssh": []},
}
_QUEUES: Final = ("scheduling.volcano.sh", "queues")
_GROUPS: Final = ("scheduling.volcano.sh", "podgroups")


async def cpu_of(load: Load, plugins: dict[str, list[str]]) -> float:
    """CPU seconds of the controllers until all pods have been made."""
    with tempfile.TemporaryDirectory(prefix="stromboli-bench-") as name, Processes(Path(name)) as processes:
        async with serving(Path(name) / "server") as served:
            kubeconfig = str(served.access.kubeconfig)
            command = ["controllers", f"--kubeconfig={kubeconfig}", "--leader-elect=false"]
            processes.start("controllers", [sys.executable, "-m", "stromboli.cli.main", *command])
            async with Client.reaching(from_kubeconfig([kubeconfig]), qps=5000, burst=10000) as client:
                await client.create(NAMESPACES, SPACE)
                await client.create(QUEUES, {"metadata": {"name": "default"}, "spec": {"weight": 1}})
                while not _is_open(served.api):
                    await asyncio.sleep(0.5)
                before = processes.costs()["controllers"].cpu
                await submit(client, [(kind, _with(body, plugins)) for kind, body in load.items()])
                while len(served.api.store.of(("", "pods")).entries) < load.pods:
                    _admit(served.api)
                    await asyncio.sleep(0.2)
                await asyncio.sleep(3.0)
                return processes.costs()["controllers"].cpu - before


def _with(body: dict[str, Any], plugins: dict[str, list[str]]) -> dict[str, Any]:
    return {**body, "spec": {**body["spec"], "plugins": plugins}}


def _is_open(api: Api) -> bool:
    queue = api.store.get(_QUEUES, ("", "default"))
    return queue is not None and part(queue.body, "status", "state") == "Open"


def _admit(api: Api) -> None:
    """What a scheduler with room does."""
    for entry in list(api.store.of(_GROUPS).sorted()):
        if part(entry.body, "status", "phase") in (None, "Pending"):
            api.store.put(_GROUPS, changed(entry.body, status={"phase": "Inqueue"}))


def main() -> int:
    """Print the table; 1 when a case without keys costs more than its limit."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.live.job_plugins")
    parser.add_argument("--jobs", type=int, default=1000)
    parser.add_argument("--size", type=int, default=5)
    parser.add_argument("cases", nargs="*", choices=[[], *CASES], help="default: all")
    options = parser.parse_args()
    load = Load("jobs", "jobs", options.jobs, options.size, backlog=False)
    print(machine() + "\n\n" + head(("plugins", "ms/pod", "ms/Job")))
    fine = True
    for name in options.cases or CASES:
        seconds = asyncio.run(cpu_of(load, CASES[name]))
        each = seconds / load.pods * 1000
        print(row((name, figure(each), figure(each * options.size))), flush=True)
        fine &= each <= LIMIT or name == "svc, ssh"
    return 0 if fine else 1


if __name__ == "__main__":
    sys.exit(main())
