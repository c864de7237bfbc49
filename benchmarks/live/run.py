"""One run: a fresh API server, nodes, kubelets, the scheduler and the controllers, one load, and the figures."""

from __future__ import annotations

import asyncio
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import msgspec

from benchmarks.live.follow import Times, until_running
from benchmarks.live.load import NAMESPACE, NAMESPACES, Load, submit
from benchmarks.live.processes import Cost, Processes
from e2e.real import RealServer, real_server
from stromboli.crds.manifests import definitions
from stromboli.kube.access import find_access
from stromboli.kube.client import Client
from stromboli.kube.resources import NODES, nothing
from stromboli.live.installation.configurations import CONFIGURATION

NODE: Final = "32cpu,256Gi"
"""Every node, with 110 pods."""

_AUDIT: Final = """apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
omitManagedFields: true
rules:
- {level: None, verbs: [watch]}
- {level: None, users: ["system:apiserver"]}
- {level: Metadata}
"""

_STROMBOLI: Final = (sys.executable, "-m", "stromboli.cli.main")


@dataclass(frozen=True)
class Outcome:
    """Figures of one run; seconds are the client's clock, ``costs`` CPU seconds and MiB by process.

    ``requests`` counts what the API server was asked during the load, by who asked and what for.
    """

    load: Load
    rate: float
    first_bound: float
    latency: tuple[float, float]
    costs: dict[str, Cost] = field(default_factory=dict)
    requests: Counter[str] = field(default_factory=Counter)

    def per_pod(self, name: str) -> float:
        """CPU milliseconds of a process for each pod."""
        return 1000.0 * self.costs[name].cpu / self.load.pods if name in self.costs else 0.0


def run(load: Load, nodes: int, limit: float) -> Outcome:
    """Run ``load`` on a fresh cluster of ``nodes`` nodes.  Raises RuntimeError when it does not end well."""
    with tempfile.TemporaryDirectory(prefix="stromboli-bench-") as name:
        folder = Path(name)
        (folder / "audit.yaml").write_text(_AUDIT)
        (folder / "conf").mkdir()
        (folder / "conf" / "volcano-scheduler.conf").write_text(CONFIGURATION)
        audit = [f"--audit-policy-file={folder}/audit.yaml", f"--audit-log-path={folder}/audit.log"]
        flags = [*audit, "--audit-log-mode=batch", "--audit-log-maxsize=2000"]
        with real_server(folder / "kapi", flags) as server, Processes(folder) as processes:
            processes.adopt("apiserver", server.process)
            return asyncio.run(_Run(load, nodes, limit, folder, server, processes).go())


@dataclass
class _Run:
    load: Load
    nodes: int
    limit: float
    folder: Path
    server: RealServer
    processes: Processes
    times: Times = field(default_factory=Times)

    async def go(self) -> Outcome:
        self._install()
        async with Client.reaching(find_access(str(self.server.kubeconfig)), qps=5000, burst=10000) as client:
            await client.create(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
            self._start("kubelets", "kubelets", f"--nodes={self.nodes}x{NODE}", "--heartbeat=900")
            while len(await client.list_all(NODES.read_as(nothing))) < self.nodes:
                await asyncio.sleep(0.5)
            self._start("controllers", "controllers", *self._flags())  # they open the queues, too
            if not self.load.backlog:
                self._start("scheduler", "serve", *self._scheduler_flags())
            await asyncio.sleep(5.0)
            return await self._measured(client)

    async def _measured(self, client: Client) -> Outcome:
        before, since = self.processes.costs(), time.time()
        following = asyncio.create_task(
            until_running(client, self.times, self.load.pods, self.limit, self.processes.ended)
        )
        await submit(client, list(self.load.items()))
        began = min(self.times.created.values(), default=since)
        if self.load.backlog:
            began = time.time()
            self._start("scheduler", "serve", *self._scheduler_flags())
        try:
            await following
        except TimeoutError:
            raise RuntimeError(f"{self.load.name}: not all pods run: {self._why()}") from None
        costs = {
            name: Cost(cost.cpu - before[name].cpu if name in before else cost.cpu, cost.mib)
            for name, cost in self.processes.costs().items()
        }
        return self._outcome(began, costs, since)

    def _outcome(self, began: float, costs: dict[str, Cost], since: float) -> Outcome:
        bound, created = self.times.bound, self.times.created
        waits = sorted(bound[name] - max(created[name], began) for name in bound)
        span = max(bound.values()) - began
        latency = (statistics.median(waits), waits[int(0.99 * (len(waits) - 1))])
        requests = _requests(self.folder / "audit.log", since)
        return Outcome(self.load, self.load.pods / span, min(bound.values()) - began, latency, costs, requests)

    def _why(self) -> str:
        seen = {name: len(found) for name, found in vars(self.times).items()}
        return f"{seen}; ended: {self.processes.ended()}"

    # ------------------------------------------------------------------ processes

    def _install(self) -> None:
        crds = msgspec.json.encode({"apiVersion": "v1", "kind": "List", "items": definitions()})
        command = ["kubectl", f"--kubeconfig={self.server.kubeconfig}"]
        apply = [*command, "apply", "--server-side", "-f", "-"]
        subprocess.run(apply, input=crds, stdout=subprocess.DEVNULL, check=True)
        wait = [*command, "wait", "--for=condition=Established", "crd", "--all", "--timeout=60s"]
        subprocess.run(wait, stdout=subprocess.DEVNULL, check=True)

    def _start(self, name: str, *arguments: str) -> None:
        self.processes.start(name, [*_STROMBOLI, *arguments, f"--kubeconfig={self.server.kubeconfig}"])

    def _flags(self) -> Sequence[str]:
        return ("--leader-elect=false", "--healthz-address=127.0.0.1:0")

    def _scheduler_flags(self) -> Sequence[str]:
        conf = self.folder / "conf" / "volcano-scheduler.conf"
        metrics = "--listen-address=127.0.0.1:0"
        return (*self._flags(), metrics, f"--scheduler-conf={conf}", "--schedule-period=1s", "-v=3")


def _requests(audit: Path, since: float) -> Counter[str]:
    """What was asked for, by user agent, verb and resource."""
    time.sleep(2.0)  # the log is written in batches
    found: Counter[str] = Counter()
    start = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(since))
    for line in audit.read_bytes().splitlines():
        entry: dict[str, Any] = msgspec.json.decode(line)
        if entry["requestReceivedTimestamp"] >= start and "objectRef" in entry:
            target = entry["objectRef"]
            what = "/".join(part for part in (target["resource"], target.get("subresource", "")) if part)
            found[f"{entry.get('userAgent', '-').split('/')[0]} {entry['verb']} {what}"] += 1
    return found
