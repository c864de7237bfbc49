"""A live scheduler on a server in memory, in virtual time; pods that are bound run at once if a kubelet is there."""

from __future__ import annotations

import asyncio
import random
from base64 import b64encode
from pathlib import Path
from typing import Any

import aiohttp

from stromboli.cluster.events import Added
from stromboli.cluster.mirror import Mirror
from stromboli.cluster.objects import from_value
from stromboli.cluster.state import ClusterState
from stromboli.framework.config.gates import switched_on
from stromboli.kube.client import Client
from stromboli.live.proofs.keys import SECRET
from stromboli.live.scheduler.configuration import Source
from stromboli.live.scheduler.options import Options
from stromboli.live.scheduler.scheduler import LiveScheduler
from stromboli.live.writing.first_reports import DELAY
from stromboli.model.names import NAMESPACE
from stromboli.model.proof import KEY_BYTES, sign
from stromboli.model.reservation import Held, restated
from stromboli.narration.observe import Counting
from tests.support.embedded_server import EmbeddedServer
from tests.support.memory_server import MemoryServer

Json = dict[str, Any]
KEY = bytes(range(KEY_BYTES))
"""The key by which schedulers prove reservations here."""
PREEMPTING = """actions: "enqueue, allocate, preempt, backfill"
tiers:
- plugins: [{name: priority}, {name: gang}, {name: conformance}]
- plugins: [{name: predicates}, {name: nodeorder}]
"""
IDLE = 'actions: "enqueue"\ntiers:\n- plugins:\n  - name: gang\n'
KINDS = {
    "nodes": "Node", "queues": "Queue", "pods": "Pod", "podgroups": "PodGroup", "namespaces": "Namespace",
    "priorityclasses": "PriorityClass", "services": "Service", "replicasets": "ReplicaSet",
    "poddisruptionbudgets": "PodDisruptionBudget", "resourceclaims": "ResourceClaim",
}  # fmt: skip


def node(name: str, cpu: int = 4, **labels: str) -> Json:
    room = {"cpu": str(cpu), "memory": "16Gi", "pods": "110"}
    return {"metadata": {"name": name, "labels": labels}, "status": {"allocatable": room, "capacity": room}}


def queue(name: str = "default", **spec: Any) -> Json:
    return {"metadata": {"name": name}, "spec": {"weight": 1, **spec}, "status": {"state": "Open"}}


async def fetched(port: int, path: str) -> tuple[int, str]:
    """The status and the text of a page that a process serves here."""
    async with aiohttp.ClientSession() as session, session.get(f"http://127.0.0.1:{port}{path}") as answer:
        return answer.status, await answer.text()


def group(name: str, least: int, **spec: Any) -> Json:
    spec = {"minMember": least, "queue": "default", **spec}
    return {"metadata": {"name": name, "namespace": "ns"}, "spec": spec, "status": {"phase": "Inqueue"}}


def pod(name: str, job: str = "", cpu: int = 1, **spec: Any) -> Json:
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": str(cpu), "memory": "1Gi"}}}
    annotations = {"scheduling.k8s.io/group-name": job} if job else {}
    return {
        "metadata": {"name": name, "namespace": "ns", "annotations": annotations},
        "spec": {"schedulerName": "volcano", "containers": [container], **spec},
        "status": {"phase": "Pending"},
    }


def gang(server: MemoryServer, name: str, size: int, cpu: int = 1, least: int | None = None) -> None:
    """A PodGroup with pods."""
    server.put("podgroups", group(name, size if least is None else least))
    for number in range(size):
        server.put("pods", pod(f"{name}-{number}", name, cpu))


def key_secret(*keys: bytes, made: str = "2027-01-01T00:00:00Z") -> Json:
    """The Secret of ``keys``, the one that signs first."""
    texts = {**dict(zip(("key", "previous"), keys, strict=False)), "made": made.encode()}
    data = {name: b64encode(text).decode() for name, text in texts.items()}
    return {"metadata": {"name": SECRET, "namespace": NAMESPACE}, "type": "Opaque", "data": data}


class Clock:
    """Seconds since 1970 by the virtual loop; ``jump`` moves it apart from the loop."""

    def __init__(self) -> None:
        self.jump = 0.0

    def __call__(self) -> float:
        return 1_800_000_000.0 + asyncio.get_running_loop().time() + self.jump


class LiveWorld:
    """A server with nodes and queues, and schedulers on it; ``on`` is ``memory`` or ``embedded``."""

    def __init__(self, nodes: int = 4, cpu: int = 4, kubelet: bool = True, on: str = "memory") -> None:
        self.clock = Clock()
        self.server: Any = EmbeddedServer(self.clock) if on == "embedded" else MemoryServer()
        self.server.latency = 0.01
        self.server.put("secrets", key_secret(KEY))
        self.told = Counting(keep=10_000)
        for number in range(nodes):
            self.server.put("nodes", node(f"n{number}", cpu))
        for name in ("root", "default"):
            self.server.put("queues", queue(name))
        self.tasks: list[asyncio.Task[None]] = []
        if kubelet:
            self.server.bound_become = "Running"

    def scheduler(self, conf: str = "", transport: Any = None, **more: Any) -> LiveScheduler:
        """A scheduler; ``more`` are options, ``transport`` what it talks through, ``gates`` are turned so."""
        given = {name: more.pop(name) for name in ("may_write", "when_planned") if name in more}
        client = Client(transport or self.server, dice=random.Random(3), agent="stromboli-scheduler")
        features, plugins = switched_on(more.pop("gates", {})), more.pop("plugins", "")
        source = Source(conf, plugins=plugins, features=features, compat=more.pop("compat", False))
        options = Options(**{"in_thread": False, **more})
        return LiveScheduler(client, options, source, observer=self.told, clock=self.clock, **given)

    def reserve(self, name: str, held: Held, key: bytes = KEY, since: float | None = None) -> None:
        """Let a pod state ``held``, as a scheduler would have written it at this moment, or at ``since``."""
        found = self.server.get("pods", name, "ns")
        now = round((self.clock() if since is None else since) * 1000)
        proof = sign(key, found["metadata"]["uid"], held, now, now)
        notes = restated(found["metadata"].get("annotations", {}), held, str(proof))
        self.server.put("pods", {**found, "metadata": {**found["metadata"], "annotations": notes}})

    def start(self, scheduler: LiveScheduler) -> asyncio.Task[None]:
        """Let it run."""
        task = asyncio.create_task(scheduler.run())
        self.tasks.append(task)
        return task

    async def end(self) -> None:
        """Let nothing run any more."""
        for task in self.tasks:
            task.cancel()
        await asyncio.gather(*self.tasks, return_exceptions=True)

    async def settled(self, scheduler: LiveScheduler, within: float = 60.0) -> None:
        """Wait until nothing waits and nothing is under way, and then a moment longer."""
        quiet = 0
        async with asyncio.timeout(within):
            while quiet < 12:
                await asyncio.sleep(0.1)
                busy = self.waiting() or scheduler.mirror.assumed or scheduler.executor.in_flight
                quiet = 0 if busy else quiet + 1
            await scheduler.recorder.drain()

    # ------------------------------------------------------------------ what holds

    def pods(self) -> dict[str, str]:
        """Nodes by pod, empty for one that waits."""
        return {p["metadata"]["name"]: p["spec"].get("nodeName", "") for p in self.server.all("pods")}

    def waiting(self) -> list[str]:
        """Pods without a node."""
        return [name for name, at in self.pods().items() if not at]

    def check(self, scheduler: LiveScheduler | None = None) -> None:
        """No pod was bound twice, no node has too much, and the state is what a fresh list gives."""
        bound = [name for name, _ in self.server.bindings]
        assert len(bound) == len(set(bound)), "bound twice"
        fresh = self.fresh()
        table = fresh.nodes.snapshot()
        assert (table.used <= table.alloc).all(), "over-committed"
        if scheduler is not None:
            assert picture(scheduler.state) == picture(fresh)
            assert not scheduler.mirror.assumed

    def fresh(self) -> ClusterState:
        """A state made of what the server has."""
        state = ClusterState()
        mirror = Mirror(state)
        for collection, kind in KINDS.items():
            for found in self.server.all(collection):
                mirror.take(Added(kind, from_value(kind, found)))
        return state


class Directed(LiveWorld):
    """A world whose scheduler decides nothing by itself: plans are handed to its executor."""

    async def directed(self, tmp_path: Path, **more: Any) -> LiveScheduler:
        conf = tmp_path / "conf"
        conf.write_text(IDLE)
        scheduler = self.scheduler(str(conf), schedule_period=3600.0, **more)
        self.start(scheduler)
        await scheduler.ready.wait()
        await asyncio.sleep(2 * DELAY)  # the first reports are made
        self.server.requests.clear()
        return scheduler


def uid(world: LiveWorld, name: str) -> str:
    """The uid of a pod."""
    found: str = world.server.get("pods", name, "ns")["metadata"]["uid"]
    return found


def picture(state: ClusterState) -> Json:
    """All that scheduling sees of a state, in a form that compares."""
    tasks = {key: (task.uid, task.status.name, task.node_name) for key, task in state.tasks.items()}
    jobs = {
        uid: (job.phase, job.min_available, job.queue, sorted(t.key for t in job.tasks.values()))
        for uid, job in state.jobs.items()
    }
    return {
        "tasks": dict(sorted(tasks.items())),
        "jobs": dict(sorted(jobs.items())),
        "queues": sorted(state.queues),
        "nodes": {
            name: (_trimmed(entry.used), _trimmed(entry.releasing), sorted(entry.tasks))
            for name, entry in state.nodes.entries().items()
        },
    }


def _trimmed(sums: list[int]) -> list[int]:
    """Sums without zeros at their end, which say nothing."""
    return sums[: max((place for place, amount in enumerate(sums, 1) if amount), default=0)]
