"""``stromboli serve`` as a process on a real kube-apiserver: gangs, reloads, signals, leaders, a server that hangs."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from e2e.real import RealServer
from e2e.stage import PATIENCE
from stromboli.crds.manifests import definitions
from stromboli.errors import ApiError, StromboliError
from stromboli.framework.config.config import DEFAULT_CONFIG
from stromboli.kube.access import find_access
from stromboli.kube.client import Client
from stromboli.kube.resources import LEASES, NODES, POD_GROUPS, PODS, QUEUES, RESOURCES, Resource, plain

CRDS = Resource("apiextensions.k8s.io/v1", "customresourcedefinitions", "CustomResourceDefinition", False, plain)
IDLE = 'actions: "enqueue"\ntiers:\n- plugins:\n  - name: gang\n'
ROOM = {"cpu": "16", "memory": "64Gi", "pods": "110"}


class Cluster:
    """A client of the server, and what stories put there; names are made unlike those of other stories."""

    number = 0

    def __init__(self, client: Client) -> None:
        self.client = client
        Cluster.number += 1
        self.namespace = f"story-{Cluster.number}"

    async def prepare(self) -> None:
        for definition in definitions():
            await self._create(CRDS, definition)
        for resource in (QUEUES, POD_GROUPS, RESOURCES["HyperNode"]):
            await eventually(partial(self._served, resource))
        for name in ("volcano-system", self.namespace):
            await self._create(RESOURCES["Namespace"], {"metadata": {"name": name}})
        for number in range(4):
            status = {"allocatable": ROOM, "capacity": ROOM}
            await self._create(NODES, {"metadata": {"name": f"n{number}"}, "status": status})
        for name in ("root", "default"):
            body = {"apiVersion": QUEUES.api_version, "kind": "Queue", "metadata": {"name": name}}
            await self._create(QUEUES, {**body, "spec": {"weight": 1}})
            await self.client.patch(QUEUES, name, "", {"status": {"state": "Open"}}, subresource="status")

    async def _create(self, resource: Resource[Any], body: dict[str, Any], namespace: str = "") -> None:
        try:
            await self.client.create(resource, body, namespace)
        except ApiError as error:
            if error.reason != "AlreadyExists":
                raise

    async def _served(self, resource: Resource[Any]) -> bool:
        try:
            await self.client.page(resource)
        except StromboliError:
            return False
        return True

    async def gang(self, name: str, size: int) -> None:
        body = {"apiVersion": POD_GROUPS.api_version, "kind": "PodGroup", "metadata": {"name": name}}
        await self.client.create(POD_GROUPS, {**body, "spec": {"minMember": size, "queue": "default"}}, self.namespace)
        container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": "100m", "memory": "1Mi"}}}
        for number in range(size):
            metadata = {"name": f"{name}-{number}", "annotations": {"scheduling.k8s.io/group-name": name}}
            spec = {"schedulerName": "volcano", "containers": [container]}
            await self.client.create(PODS, {"metadata": metadata, "spec": spec}, self.namespace)

    async def bound(self, name: str) -> int:
        found = await self.client.list_all(PODS, self.namespace)
        return sum(bool(p.spec.node_name) for p in found if p.metadata.name.startswith(name))  # type: ignore[attr-defined]


async def eventually(what: Callable[[], Awaitable[bool]]) -> None:
    """Wait until ``what`` holds."""
    end = time.monotonic() + PATIENCE
    while not await what():
        assert time.monotonic() < end, "it never came"
        await asyncio.sleep(0.2)


class Serving:
    """Scheduler processes with a folder for their configuration and logs."""

    def __init__(self, folder: Path, server: RealServer) -> None:
        self.folder, self.server = folder, server
        self.conf = folder / "volcano-scheduler.conf"
        self.conf.write_text(DEFAULT_CONFIG)
        self.processes: list[subprocess.Popen[bytes]] = []

    def start(self, *flags: str) -> subprocess.Popen[bytes]:
        command = [
            sys.executable, "-m", "stromboli.cli.main", "serve", f"--kubeconfig={self.server.kubeconfig}",
            f"--scheduler-conf={self.conf}", "--schedule-period=200ms", f"--cache-dump-dir={self.folder}",
            "--log-format=json", "-v=2", *flags,
        ]  # fmt: skip
        with (self.folder / f"log-{len(self.processes)}").open("wb") as log:
            process = subprocess.Popen(command, stderr=log, stdout=log, stdin=subprocess.DEVNULL)
        self.processes.append(process)
        return process

    def configure(self, conf: str) -> None:
        """Replace the configuration, as a mounted ConfigMap is: by another file under the same name."""
        fresh = self.conf.with_suffix(".new")
        fresh.write_text(conf)
        fresh.rename(self.conf)

    def logged(self, number: int, key: str) -> int:
        """How many lines of a process's log bear the key; one that is still being written does not count."""
        lines = (self.folder / f"log-{number}").read_bytes().splitlines(keepends=True)
        return sum(json.loads(line)["key"] == key for line in lines if line.startswith(b"{") and line.endswith(b"\n"))

    def led(self, number: int) -> bool:
        """Whether a process has ever begun to lead."""
        return self.logged(number, "leading") > 0


@pytest.fixture
def serving(tmp_path: Path, kube_apiserver: RealServer) -> Iterator[Serving]:
    made = Serving(tmp_path, kube_apiserver)
    yield made
    for process in made.processes:
        process.kill()
        process.wait()


def story(serving: Serving, tell: Callable[[Cluster], Coroutine[Any, Any, None]]) -> None:
    async def main() -> None:
        async with Client.reaching(find_access(str(serving.server.kubeconfig)), qps=0) as client:
            cluster = Cluster(client)
            await cluster.prepare()
            await tell(cluster)

    asyncio.run(main())


def test_gangs_reloads_dumps_and_a_graceful_stop(serving: Serving) -> None:
    async def tell(cluster: Cluster) -> None:
        process = serving.start("--leader-elect=false")
        await cluster.gang("one", 10)
        await eventually(lambda: has(cluster, "one", 10))
        loaded = serving.logged(0, "config_loaded")
        serving.configure(IDLE)
        await eventually(lambda: done(serving.logged(0, "config_loaded") > loaded))
        await cluster.gang("two", 5)
        await asyncio.sleep(2)
        assert await cluster.bound("two") == 0
        serving.configure("actions: bakfill\n")
        await eventually(lambda: done(serving.logged(0, "config_invalid") > 0))
        process.send_signal(signal.SIGUSR1)
        await eventually(lambda: done(bool(list(serving.folder.glob("snapshot-*.json")))))
        (dump,) = serving.folder.glob("snapshot-*.json")
        command = [sys.executable, "-m", "stromboli.cli.main", "plan", str(dump), "-o", "json"]
        planned = json.loads(subprocess.run(command, capture_output=True, check=True).stdout)
        assert len([pod for pod in planned["outcome"]["binds"] if "/two-" in pod]) == 5
        serving.configure(DEFAULT_CONFIG)
        await eventually(lambda: has(cluster, "two", 5))
        process.terminate()
        assert process.wait(PATIENCE) == 0
        assert serving.logged(0, "stopped")

    story(serving, tell)


@pytest.mark.parametrize(("how", "lease"), [(signal.SIGTERM, 2 * PATIENCE), (signal.SIGKILL, 15)])
def test_another_one_takes_the_lead(serving: Serving, how: signal.Signals, lease: float) -> None:
    """A process that ends in order hands the Lease back; the next one need not wait until the Lease runs out."""

    async def tell(cluster: Cluster) -> None:
        name = f"story-{int(how)}"
        terms = (f"--leader-elect-resource-name={name}", f"--leader-elect-lease-duration={lease:g}s")
        processes = [serving.start(*terms) for _ in range(2)]
        await cluster.gang("one", 5)
        await eventually(lambda: has(cluster, "one", 5))
        await eventually(lambda: done(any(serving.led(number) for number in range(2))))
        leads = [serving.led(number) for number in range(2)]
        assert sorted(leads) == [False, True]
        processes[leads.index(True)].send_signal(how)
        await cluster.gang("two", 5)
        await eventually(lambda: has(cluster, "two", 5))
        await eventually(lambda: done(all(serving.led(number) for number in range(2))))
        found = await cluster.client.get(LEASES, name, "volcano-system")
        assert found["spec"]["leaseTransitions"] >= 1

    story(serving, tell)


def test_a_server_that_hangs_for_half_a_minute(serving: Serving) -> None:
    async def tell(cluster: Cluster) -> None:
        serving.start("--leader-elect=false")
        await cluster.gang("before", 5)
        await eventually(lambda: has(cluster, "before", 5))
        await cluster.gang("while", 40)
        os.kill(serving.server.process.pid, signal.SIGSTOP)
        try:
            await asyncio.sleep(30)
        finally:
            os.kill(serving.server.process.pid, signal.SIGCONT)
        await cluster.gang("after", 5)
        await eventually(lambda: has(cluster, "after", 5))
        await eventually(lambda: has(cluster, "while", 40))
        assert serving.processes[0].poll() is None

    story(serving, tell)


async def has(cluster: Cluster, name: str, count: int) -> bool:
    return await cluster.bound(name) == count


async def done(value: bool) -> bool:
    return value
