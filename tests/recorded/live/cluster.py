"""A whole cluster in virtual time, of which everything is noted: server, kubelets, schedulers, controllers, users."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Callable, Coroutine, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec
from prometheus_client import CollectorRegistry

from stromboli.cluster.files.written import manifests
from stromboli.controllers.changes import Target
from stromboli.errors import StromboliError
from stromboli.framework.config.gates import switched_on
from stromboli.kube.client import Client
from stromboli.live.controllers.controller_runner import Controllers
from stromboli.live.controllers.options import Options as ControllerOptions
from stromboli.live.process.control_gauges import ControlGauges
from stromboli.live.process.gauges import LiveGauges
from stromboli.live.scheduler.configuration import Source
from stromboli.live.scheduler.options import Options
from stromboli.live.scheduler.scheduler import LiveScheduler
from stromboli.metrics.prometheus import MetricsObserver
from stromboli.narration.observe import Several
from stromboli.server.controllers.node_lifecycle import TICK
from stromboli.server.controllers.workloads.room import Workloads
from stromboli.server.kubelet.cluster import Inside
from stromboli.server.kubelet.kubelets import Kubelets
from stromboli.server.kubelet.shapes import nodes_of
from tests.recorded.live.notes import Json, Notes, Server, Told, Wire, figures
from tests.support.live_world import KEY, Clock, key_secret

MERGE: Final = "application/merge-patch+json"
LATENCIES: Final = {"user": 0.0031, "scheduler": 0.0113, "controllers": 0.0171}
"""Seconds that requests take: no two parts ever write at one moment."""


class Cluster:
    """What a story plays with; ``dice`` are its own."""

    def __init__(
        self, folder: Path, seed: int, uid: Callable[[], str], nodes: Sequence[str] = ("4x4cpu,16Gi",), level: int = 3
    ) -> None:
        self.folder, self.seed, self.level = folder, seed, level
        self.dice, self.clock, self.notes = random.Random(seed), Clock(), Notes()
        self.notes.texts[str(folder)] = "FOLDER"
        self.server = Server(self.clock, self.notes, uid)
        self.server.put("secrets", key_secret(KEY))
        self.inside = Inside(self.server.api)
        self.tasks: list[asyncio.Task[Any]] = []
        self._commands = self._asked = 0
        self.registries: dict[str, CollectorRegistry] = {}
        self.schedulers: dict[str, LiveScheduler] = {}
        self.user = self.client("user")
        self.kubelets = Kubelets(self.inside, nodes_of(nodes), self.clock)
        self.workloads = Workloads(self.server.api)

    # ------------------------------------------------------------------ parts

    def client(self, author: str, **more: Any) -> Client:
        """A client whose requests are noted as ``author``'s."""
        latency = LATENCIES.get(author, 0.0059 + 0.0013 * len(self.registries))
        wire = Wire(self.server, author, latency)
        return Client(wire, dice=random.Random(f"{self.seed} {author}"), agent=author, **more)

    def observer(self, author: str) -> Several:
        """What notes the lines and counts the figures of ``author``."""
        registry = self.registries[author] = CollectorRegistry()
        loop = asyncio.get_running_loop()
        return Several(
            [MetricsObserver(registry, self.clock, loop.time), Told(self.notes, author, self.level, self.clock)]
        )

    def scheduler(self, conf: str = "", author: str = "scheduler", **more: Any) -> LiveScheduler:
        """A scheduler; ``more`` are its options."""
        given = {name: more.pop(name) for name in ("may_write", "when_planned") if name in more}
        path = more.pop("path", "")
        source = Source(
            str(self.configure(conf)) if conf else path,
            plugins=more.pop("plugins", ""),
            features=switched_on(more.pop("gates", {})),
            compat=more.pop("compat", False),
            lenient=more.pop("lenient", False),
        )
        options = Options(**{"in_thread": False, **more})
        found = LiveScheduler(
            self.client(author), options, source, observer=self.observer(author), clock=self.clock, **given
        )
        LiveGauges(self.registries[author], found)
        self.schedulers[author] = found
        return found

    def controllers(self, author: str = "controllers", **more: Any) -> Controllers:
        """Controllers; ``more`` are their options."""
        given = {"ask": self._answers, **{name: more.pop(name) for name in ("may_write",) if name in more}}
        found = Controllers(
            self.client(author), ControllerOptions(**more), observer=self.observer(author), clock=self.clock, **given
        )
        ControlGauges(self.registries[author], found.manager)
        return found

    async def _answers(self, target: Target) -> bool:
        """Whether a pod that a JobFlow waits for is up: those with a path are after a while, the others never."""
        await asyncio.sleep(0.7)
        self._asked += 1
        self.notes.note("asked", str(target))
        return bool(target.path) and self._asked > 6

    def configure(self, text: str, name: str = "scheduler.conf") -> Path:
        """Write a configuration."""
        path = self.folder / name
        path.write_text(text)
        return path

    def start(self, work: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        """Let something run until it ends, or the story does."""
        task = asyncio.create_task(work)
        self.tasks.append(task)
        return task

    async def begin(self, conf: str = "", controlled: Mapping[str, Any] = {}, **more: Any) -> LiveScheduler:
        """The cluster itself, controllers and a scheduler."""
        for work in (self.kubelets.run(), self.workloads.run(), self._tick()):
            self.start(work)
        await self.kubelets.registered.wait()
        self.start(self.controllers(**controlled).run())
        found = self.scheduler(conf, **more)
        self.start(found.run())
        await asyncio.sleep(2.5)
        return found

    async def _tick(self) -> None:
        while True:
            await asyncio.sleep(TICK)
            self.server.api.clockwork.tick()

    def note_figures(self, author: str, found: Mapping[str, object]) -> None:
        """Note what something has counted."""
        for name, value in sorted(found.items()):
            self.notes.note(author, f"{name}: {value}")

    def note_pods(self) -> None:
        """Note where all pods are, and what is said of them."""
        for found in self.pods():
            said = {"spec": found["spec"].get("nodeName"), "status": found.get("status")}
            self.notes.note("pod", f"{found['metadata']['name']} {json.dumps(said, separators=(',', ':'))}")

    async def end(self) -> list[str]:
        """Stop everything; the lines of the whole story, in the end what schedulers know and all figures."""
        for author, one in self.schedulers.items():
            for each in manifests(one.state, self.clock()):
                self.notes.note(f"{author} knows", json.dumps(each, separators=(",", ":")))
        self.note_pods()
        for author, registry in self.registries.items():
            for line in figures(registry):
                self.notes.note(f"{author} metrics", line)
        for task in self.tasks:
            task.cancel()
        await asyncio.gather(*self.tasks, return_exceptions=True)
        return self.notes.lines

    # ------------------------------------------------------------------ users

    async def make(self, *bodies: Json) -> None:
        """Create objects as a user does; what is refused is noted."""
        for body in bodies:
            await self._ask("POST", self.path(body), body)

    async def change(self, kind: str, name: str, patch: Json, namespace: str = "ns", below: str = "") -> None:
        """Change an object as a user does."""
        await self._ask("PATCH", self.at(kind, name, namespace) + below, patch, MERGE)

    async def remove(self, kind: str, name: str, namespace: str = "ns", **how: Any) -> None:
        """Delete an object as a user does."""
        await self._ask("DELETE", self.at(kind, name, namespace), how or None)

    async def command(self, action: str, kind: str, name: str) -> None:
        """Issue a command as a user does."""
        found = self.server._kinds[f"{kind.lower()}s"]
        key = ("" if kind == "Queue" else "ns", name)
        known = self.server.api.store.get(found.collection, key)
        uid = "gone" if known is None else known.body["metadata"]["uid"]
        self._commands += 1
        meta = {"name": f"command-{self._commands}", "namespace": "ns"}
        target = {"apiVersion": found.group_version, "kind": kind, "name": name, "uid": uid}
        api = "bus.volcano.sh/v1alpha1"
        await self.make({"apiVersion": api, "kind": "Command", "metadata": meta, "action": action, "target": target})

    async def _ask(self, method: str, path: str, body: Json | None, media: str = "application/json") -> None:
        try:
            data = None if body is None else msgspec.json.encode(body)
            await self.user.request(method, path, body=data, content=media)
        except StromboliError:
            return  # the answer is noted

    def path(self, body: Json) -> str:
        """The collection of an object."""
        found = self.server.api.catalogue.of_kind(body["apiVersion"], body["kind"])
        if found is None:
            raise LookupError(body["kind"])
        root = "/api/v1" if body["apiVersion"] == "v1" else f"/apis/{body['apiVersion']}"
        namespace = body["metadata"].get("namespace", "ns") if found.namespaced else ""
        return f"{root}/{f'namespaces/{namespace}/' if namespace else ''}{found.plural}"

    def at(self, kind: str, name: str, namespace: str = "ns") -> str:
        """The address of an object; ``kind`` is a plural, or ends in the group."""
        found = self.server._kinds[kind]
        body = {"apiVersion": found.group_version, "kind": found.kind, "metadata": {"namespace": namespace}}
        return f"{self.path(body)}/{name}"

    # ------------------------------------------------------------------ what there is

    def all(self, collection: str) -> list[Json]:
        """All objects of a collection."""
        return self.server.all(collection)

    def pods(self, start: str = "") -> list[Json]:
        """The pods whose names begin so."""
        return [one for one in self.all("pods") if one["metadata"]["name"].startswith(start)]


Story = Callable[[Cluster], Coroutine[Any, Any, None]]


def container(cpu: str = "1", memory: str = "1Gi", seconds: str = "", **more: str) -> Json:
    """A container that requests so much and ends by itself after ``seconds``."""
    amounts = {"cpu": cpu, "memory": memory, **more}
    limits = {"limits": more} if more else {}
    command = {"command": ["sh", "-c", seconds]} if seconds else {}
    return {"name": "main", "image": "busybox", "resources": {"requests": amounts, **limits}, **command}


def task(name: str = "t", replicas: int = 1, seconds: str = "", *, spec: Mapping[str, Any] = {}, **fields: Any) -> Json:
    """A task of a job; ``spec`` is its pods'."""
    amounts = {key: fields.pop(key) for key in ("cpu", "memory") if key in fields}
    pods = {"restartPolicy": "Never", "containers": [container(**amounts, seconds=seconds)], **spec}
    metadata = {"metadata": fields.pop("metadata")} if "metadata" in fields else {}
    return {"name": name, "replicas": replicas, "template": {**metadata, "spec": pods}, **fields}


def job(name: str, *tasks: Json, metadata: Mapping[str, Any] = {}, **spec: Any) -> Json:
    """A job of tasks."""
    return {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {"name": name, "namespace": "ns", **metadata},
        "spec": {"schedulerName": "volcano", "tasks": list(tasks or (task(),)), **spec},
    }


def pod(name: str, cpu: str = "1", seconds: str = "", notes: Mapping[str, str] = {}, **spec: Any) -> Json:
    """A pod of its own."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "ns", "annotations": dict(notes)},
        "spec": {
            "schedulerName": "volcano",
            "restartPolicy": "Never",
            "containers": [container(cpu, seconds=seconds)],
            **spec,
        },
    }


def queue(name: str, **spec: Any) -> Json:
    """A queue."""
    return {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "Queue",
        "metadata": {"name": name},
        "spec": {"weight": 1, **spec},
    }


def group(name: str, least: int, **spec: Any) -> Json:
    """A PodGroup."""
    return {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "PodGroup",
        "metadata": {"name": name, "namespace": "ns"},
        "spec": {"minMember": least, **spec},
    }


def priority(name: str, value: int, **more: Any) -> Json:
    """A priority class."""
    return {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": name},
        "value": value,
        **more,
    }
