"""One run: a fresh API server, nodes, kubelets, the scheduler and the controllers, one load, and the figures."""

from __future__ import annotations

import asyncio
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import msgspec

from benchmarks.live.audit import POLICY, Audit
from benchmarks.live.follow import Times, until_running
from benchmarks.live.load import NAMESPACE, NAMESPACES, Load, submit
from benchmarks.live.processes import Cost, Processes
from e2e.real import RealServer, real_server
from stromboli.crds.manifests import definitions
from stromboli.kube.access import find_access
from stromboli.kube.client import Client
from stromboli.kube.resources import LEASES, QUEUES, Resource, nothing
from stromboli.live.installation.configurations import CONFIGURATION

NODE: Final = "32cpu,256Gi"
"""Every node, with 110 pods."""

_STROMBOLI: Final = (sys.executable, "-m", "stromboli.cli.main")


QUIET_SECONDS: Final = 3.0
"""Without a write for so long the cluster is quiet."""
QUIET_LIMIT: Final = 60.0
"""For so long at most that is waited for after the last pod runs."""


@dataclass(frozen=True)
class Spent:
    """What a load has cost up to a moment: CPU seconds and MiB by process, requests by client, verb and resource."""

    costs: Mapping[str, Cost]
    requests: Counter[str]

    def cpu(self, *names: str) -> float:
        """CPU seconds of these processes, of all of them unless named."""
        return sum(cost.cpu for name, cost in self.costs.items() if not names or name in names)


@dataclass(frozen=True)
class Outcome:
    """Figures of one run; seconds are by the server's clock.

    ``running`` is what it took until the last pod ran, ``quiet`` until nothing was left to write.
    """

    load: Load
    rate: float
    first_bound: float
    latency: tuple[float, float]
    running: Spent
    quiet: Spent

    def per_pod(self, name: str) -> float:
        """CPU milliseconds of a process for each pod, until all run."""
        return 1000.0 * self.running.cpu(name) / self.load.pods


def run(load: Load, nodes: int, limit: float, tree: Path | None = None) -> Outcome:
    """Run ``load`` on a fresh cluster of ``nodes`` nodes, with the scheduler and the controllers of another ``tree``.

    Raises RuntimeError when it does not end well.
    """
    with tempfile.TemporaryDirectory(prefix="stromboli-bench-") as name:
        folder = Path(name)
        (folder / "audit.yaml").write_text(POLICY)
        (folder / "conf").mkdir()
        (folder / "conf" / "volcano-scheduler.conf").write_text(CONFIGURATION)
        audit = [f"--audit-policy-file={folder}/audit.yaml", f"--audit-log-path={folder}/audit.log"]
        flags = [*audit, "--audit-log-mode=batch", "--audit-log-maxsize=2000"]
        with real_server(folder / "kapi", flags) as server, Processes(folder) as processes:
            processes.adopt("apiserver", server.process)
            return asyncio.run(_Run(load, nodes, limit, folder, server, processes, tree).go())


@dataclass
class _Run:
    load: Load
    nodes: int
    limit: float
    folder: Path
    server: RealServer
    processes: Processes
    tree: Path | None
    times: Times = field(default_factory=Times)

    async def go(self) -> Outcome:
        self._install()
        async with Client.reaching(find_access(str(self.server.kubeconfig)), qps=5000, burst=10000) as client:
            await client.create(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
            self._start("kubelets", "kubelets", f"--nodes={self.nodes}x{NODE}", "--heartbeat=900")
            await self._until(client, LEASES, self.nodes)  # what a kubelet writes last when it begins
            self._start("controllers", "controllers", *self._flags(), tree=self.tree)  # they open the queues, too
            if not self.load.backlog:
                self._start("scheduler", "serve", *self._scheduler_flags(), tree=self.tree)
                await self._until(client, QUEUES, 2)
            await asyncio.sleep(5.0)
            return await self._measured(client)

    async def _until(self, client: Client, resource: Resource[Any], count: int) -> None:
        namespace = "kube-node-lease" if resource is LEASES else ""
        while len(await client.list_all(resource.read_as(nothing), namespace)) < count:
            await asyncio.sleep(0.5)

    async def _measured(self, client: Client) -> Outcome:
        before, since, audit = self.processes.costs(), time.time(), Audit(self.folder / "audit.log")
        following = asyncio.create_task(
            until_running(audit, self.times, self.load.pods, self.limit, self.processes.ended)
        )
        await submit(client, list(self.load.items()))
        backlog = time.time()
        if self.load.backlog:
            self._start("scheduler", "serve", *self._scheduler_flags(), tree=self.tree)
        try:
            await following
        except TimeoutError:
            raise RuntimeError(f"{self.load.name}: not all pods run: {self._why()}") from None
        costs = [self._costs(before)]
        if last := await audit.until_quiet(QUIET_SECONDS, QUIET_LIMIT):
            print(f"{self.load.name}: not quiet within {QUIET_LIMIT:g} s; the last write: {last}", file=sys.stderr)
        costs.append(self._costs(before))
        ran = max(self.times.running.values())
        began = backlog if self.load.backlog else min(self.times.created.values(), default=since)
        requests = audit.requests(since, ran), audit.requests(since, time.time())
        return self._outcome(began, *map(Spent, costs, requests))

    def _costs(self, before: Mapping[str, Cost]) -> dict[str, Cost]:
        return {
            name: Cost(cost.cpu - before[name].cpu if name in before else cost.cpu, cost.mib)
            for name, cost in self.processes.costs().items()
        }

    def _outcome(self, began: float, running: Spent, quiet: Spent) -> Outcome:
        bound, created = self.times.bound, self.times.created
        waits = sorted(bound[name] - max(created.get(name, began), began) for name in bound)
        span = max(bound.values()) - began
        latency = (statistics.median(waits), waits[int(0.99 * (len(waits) - 1))])
        return Outcome(self.load, self.load.pods / span, min(bound.values()) - began, latency, running, quiet)

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

    def _start(self, name: str, *arguments: str, tree: Path | None = None) -> None:
        command = [*_STROMBOLI, *arguments, f"--kubeconfig={self.server.kubeconfig}"]
        self.processes.start(name, command, {} if tree is None else {"PYTHONPATH": str(tree / "src")})

    def _flags(self) -> Sequence[str]:
        return ("--leader-elect=false", "--healthz-address=127.0.0.1:0")

    def _scheduler_flags(self) -> Sequence[str]:
        conf = self.folder / "conf" / "volcano-scheduler.conf"
        metrics = "--listen-address=127.0.0.1:0"
        return (*self._flags(), metrics, f"--scheduler-conf={conf}", "--schedule-period=1s", "-v=3")
