"""Half an hour on a server, recorded and replayed: ``python -m benchmarks.records.half_hour SERVER DIR``.

``embedded`` is ``stromboli up --record``; ``real`` is a kube-apiserver with ``stromboli serve --record``, which is
killed once in the middle.  Jobs of several sizes and priorities come all the time, and evict each other.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import msgspec

from benchmarks.live.processes import Processes
from e2e.real import real_server
from stromboli.crds.manifests import definitions
from stromboli.errors import StromboliError
from stromboli.kube.access import find_access
from stromboli.kube.client import Client
from stromboli.kube.resources import JOBS, Resource, nothing
from stromboli.live.installation.configurations import CONFIGURATION

NODES: Final = "--nodes=20x8cpu,32Gi"
STROMBOLI: Final = (sys.executable, "-m", "stromboli.cli.main")
CLASSES: Final[Resource[None]] = Resource("scheduling.k8s.io/v1", "priorityclasses", "PriorityClass", False, nothing)
SMALL: Final = ("--leader-elect=false", "--healthz-address=127.0.0.1:0")
CONF: Final = CONFIGURATION.replace('"enqueue, allocate, backfill"', '"enqueue, allocate, preempt, backfill"')


def _job(number: int, dice: random.Random) -> dict[str, Any]:
    urgent = dice.random() < 0.15
    size, seconds = dice.choice((1, 1, 2, 4, 8)) * (2 if urgent else 1), round(dice.expovariate(1 / 120)) + 5
    amounts = {"cpu": str(dice.choice((1, 1, 2, 4))), "memory": "1Gi"}
    container = {
        "name": "main", "image": "busybox:1.36", "command": ["sleep", str(seconds)],
        "resources": {"requests": amounts, "limits": amounts},
    }  # fmt: skip
    template = {"spec": {"containers": [container], "restartPolicy": "Never", "terminationGracePeriodSeconds": 5}}
    task = {"name": "worker", "replicas": size, "template": template}
    more = {"priorityClassName": "urgent"} if urgent else {}
    spec = {"schedulerName": "volcano", "minAvailable": size, "queue": "default", "tasks": [task], **more}
    metadata = {"name": f"job-{number}", "namespace": "default"}
    return {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "metadata": metadata, "spec": spec}


async def submit(kubeconfig: Path, seconds: float, first: int) -> int:
    """Create a job every few seconds, the first one with number ``first``; how many it were."""
    dice, loop = random.Random(first), asyncio.get_running_loop()
    until, number = loop.time() + seconds, first
    async with Client.reaching(find_access(str(kubeconfig)), qps=50, burst=50) as client:
        if not first:
            urgent = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "urgent"}}
            await _create(client, CLASSES, {**urgent, "value": 1000})
        while loop.time() < until:
            await _create(client, JOBS, _job(number, dice), "default")
            await asyncio.sleep(dice.expovariate(1 / 5))
            number += 1
    return number - first


async def _create(client: Client, resource: Resource[Any], body: dict[str, Any], namespace: str = "") -> None:
    try:
        await client.create(resource.read_as(nothing), body, namespace)
    except StromboliError as error:
        print(f"not created: {error}", flush=True)


@contextmanager
def embedded(folder: Path) -> Iterator[tuple[Path, Processes]]:
    """The cluster in one process, which records its scheduler."""
    kubeconfig = folder / "kubeconfig"
    flags = [NODES, f"--record={folder / 'rec'}", f"--kubeconfig={kubeconfig}", f"--config={folder / 'scheduler.conf'}"]
    with Processes(folder) as processes:
        processes.start("up", [*STROMBOLI, "up", *flags])
        yield kubeconfig, processes


@contextmanager
def real(folder: Path) -> Iterator[tuple[Path, Processes]]:
    """A kube-apiserver with all that it takes."""
    with real_server(folder / "kapi") as server, Processes(folder) as processes:
        given = f"--kubeconfig={server.kubeconfig}"
        crds = msgspec.json.encode({"apiVersion": "v1", "kind": "List", "items": definitions()})
        kubectl = ["kubectl", given]
        subprocess.run([*kubectl, "apply", "--server-side", "-f", "-"], input=crds, check=True)
        subprocess.run([*kubectl, "wait", "--for=condition=Established", "crd", "--all", "--timeout=60s"], check=True)
        processes.start("kubelets", [*STROMBOLI, "kubelets", NODES, given])
        processes.start("controllers", [*STROMBOLI, "controllers", *SMALL, given])
        serve(folder, processes, given)
        yield server.kubeconfig, processes


def serve(folder: Path, processes: Processes, kubeconfig: str) -> None:
    """Start the scheduler, recorded."""
    flags = (f"--scheduler-conf={folder / 'scheduler.conf'}", "--schedule-period=1s", f"--record={folder / 'rec'}")
    metrics = "--listen-address=127.0.0.1:0"
    processes.start("scheduler", [*STROMBOLI, "serve", *SMALL, metrics, kubeconfig, *flags])


async def half(kubeconfig: Path, processes: Processes, folder: Path, seconds: float, kills: bool) -> int:
    """Let it run."""
    while not kubeconfig.exists():
        await asyncio.sleep(0.5)
    await asyncio.sleep(5)
    first = await submit(kubeconfig, seconds / 2, 0)
    if kills:
        processes.kill("scheduler")
        serve(folder, processes, f"--kubeconfig={kubeconfig}")
    return first + await submit(kubeconfig, seconds / 2, first)


def replayed(folder: Path) -> tuple[int, int, str]:
    """How many cycles are equal, of how many, and what the command printed."""
    done = subprocess.run([*STROMBOLI, "replay", str(folder)], capture_output=True, text=True, check=False)
    found = re.search(r"([\d,]+) of ([\d,]+) cycles? equal", done.stdout)
    return (_number(found[1]), _number(found[2]), done.stderr) if found else (0, 0, done.stdout + done.stderr)


def _number(text: str) -> int:
    return int(text.replace(",", ""))


def main(arguments: Sequence[str] | None = None) -> int:
    """Record, replay, and say what came out."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.records.half_hour", description=__doc__)
    parser.add_argument("server", choices=("embedded", "real"))
    parser.add_argument("folder", type=Path)
    parser.add_argument("--seconds", type=float, default=1800.0)
    options = parser.parse_args(arguments)
    folder: Path = options.folder
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "scheduler.conf").write_text(CONF)
    begun = real(folder) if options.server == "real" else embedded(folder)
    with begun as (kubeconfig, processes):
        jobs = asyncio.run(half(kubeconfig, processes, folder, options.seconds, options.server == "real"))
        if options.server == "embedded":
            print("ended meanwhile:", processes.ended())
    equal, cycles, told = replayed(folder / "rec")
    print(f"{options.server}: {jobs} jobs in {options.seconds:.0f} s; {equal} of {cycles} cycles equal {told}")
    return 0 if cycles and equal == cycles else 1


if __name__ == "__main__":
    raise SystemExit(main())
