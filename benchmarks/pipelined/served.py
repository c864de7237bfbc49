"""Plays a workload on real processes: an API server, ``stromboli serve``, controllers and simulated kubelets.

The events, the replacement of evicted pods and the counts are those of virtual time; the world that they look at
follows the server's watches, and writes to the server.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
import time
from collections.abc import Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, Final

from benchmarks.pipelined.hurried import HURRIED_CONFIGURATION, Seen, created, hurried
from benchmarks.pipelined.measuring import BEGINNING, Clock, Outcome
from benchmarks.pipelined.quick import SPEED
from benchmarks.pipelined.workloads import CORES, Happening, Workload, history
from e2e.clusters import SERVERS
from e2e.stage import Stage, begun, until
from stromboli.cluster.body import Body, meta, with_meta
from stromboli.cluster.events import Added, Deleted, Event, Modified
from stromboli.errors import ApiError
from stromboli.framework.config.gates import PIPELINED_STATE
from stromboli.kube.access import find_access
from stromboli.kube.client import Client
from stromboli.kube.informer import Change as News
from stromboli.kube.informer import Informer, What
from stromboli.kube.resources import RESOURCES, nothing, plain
from stromboli.sim.owners import Owners, group_of
from stromboli.sim.timeline import Timeline
from stromboli.sim.world import SimChange, SimWorld, key_of

_EVENTS: Final[Mapping[What, type[Event]]] = {What.added: Added, What.modified: Modified, What.deleted: Deleted}
_FOLLOWED: Final = ("Node", "PodGroup", "Pod")
_TICK: Final = 0.01
"""Seconds between two looks at what is due."""


class Served(SimWorld):
    """The objects of a server, as far as watches have shown them; writes go to the server one after the other.

    The timeline goes :data:`SPEED` times as fast as the clock.
    """

    def __init__(self, client: Client) -> None:
        super().__init__(Timeline(BEGINNING))
        self._client = client
        self._writes: asyncio.Queue[Any] = asyncio.Queue()
        self._owners: dict[str, Any] = {}
        self._began: float | None = None

    # ------------------------------------------------------------------ writing

    def create(self, body: Mapping[str, Any]) -> Body:
        """Have an object made."""
        body = with_meta(body, resourceVersion=None, managedFields=None)
        if body["kind"] == "Pod":
            self._owners.setdefault(group_of(body), meta(body)["ownerReferences"])
            body = created(body)
        resource = RESOURCES[body["kind"]].read_as(nothing)
        self._writes.put_nowait(partial(self._client.create, resource, body, meta(body).get("namespace", "")))
        return body

    def remove(self, kind: str, key: str, uid: str = "") -> None:
        """Have an object taken away at once."""
        namespace, _, name = key.rpartition("/")
        self._writes.put_nowait(partial(self._client.delete, RESOURCES[kind], name, namespace, uid=uid, grace=0))

    async def write(self) -> None:
        """Carry the writes out, until cancelled; what is there or gone already is as it should be."""
        while True:
            try:
                await (await self._writes.get())()
            except ApiError as error:
                if error.code not in (404, 409):
                    raise

    # ------------------------------------------------------------------ hearing

    async def follow_server(self) -> None:
        """Follow the server until cancelled."""
        async with asyncio.TaskGroup() as group:
            for kind in _FOLLOWED:
                informer = Informer(self._client, RESOURCES[kind].read_as(plain))
                informer.subscribe(partial(self._heard, kind))
                group.create_task(informer.run())

    def _heard(self, kind: str, news: News[Body]) -> None:
        body = news.object
        if body is None:
            raise LookupError(f"{kind} {news.key} is gone and was not kept")
        self._pass()
        if kind == "Pod" and (owners := self._owners.get(group_of(body))):
            body = with_meta(body, ownerReferences=owners)
        self._objects.setdefault(kind, {})[key_of(body)] = body
        if news.what is What.deleted:
            del self._objects[kind][key_of(body)]
        self._told(SimChange(_EVENTS[news.what], kind, body))

    # ------------------------------------------------------------------ time

    def begin(self) -> None:
        """Let time pass from now on."""
        self._began = time.monotonic()

    def _pass(self) -> None:
        if self._began is not None:
            self.timeline.run(BEGINNING + SPEED * (time.monotonic() - self._began))

    async def until(self, seconds: float) -> None:
        """Let everything happen until so many seconds of the workload have passed."""
        while self.timeline.now < BEGINNING + seconds:
            self._pass()
            await asyncio.sleep(_TICK)


def run(server: str, workload: Workload, seed: int, keep: bool, seconds: float) -> Outcome:
    """Let a workload, of which no node leaves, happen on a fresh server of that name."""
    with (
        tempfile.TemporaryDirectory(prefix="stromboli-bench-") as name,
        begun(SERVERS[server](Path(name) / "server"), Path(name)) as stage,
    ):
        return _on(stage, workload, seed, keep, seconds)


def _on(stage: Stage, workload: Workload, seed: int, keep: bool, seconds: float) -> Outcome:
    stage.install()
    kubeconfig = f"--kubeconfig={stage.server.kubeconfig}"
    stage.start("kubelets", "kubelets", f"--nodes={workload.nodes}x{CORES}cpu,{4 * CORES}Gi", kubeconfig)
    stage.control()
    stage.command = (sys.executable, "-m", "benchmarks.pipelined.quick")
    gate = f"--feature-gates={PIPELINED_STATE}={str(keep).lower()}"
    with stage.scheduler(gate, "--schedule-period=250ms", "-v=3", conf=HURRIED_CONFIGURATION) as scheduler:
        stage.until_open("default")
        for name, weight in workload.queues.items():
            stage.queue(name, weight=weight, reclaimable=True)
        until(lambda: len(stage.items("/api/v1/nodes")) == workload.nodes, "nodes")
        happenings = history(workload, seed, seconds)
        stage.create(*(body for body in happenings[0].come if body["kind"] == "PriorityClass"))
        time.sleep(1.0)  # admission of pods learns of the classes
        seen = asyncio.run(_played(stage, happenings, seconds))
        if scheduler.poll() is not None:
            raise RuntimeError(f"the scheduler has ended with {scheduler.returncode}")
    lines = stage.logged("scheduler")
    return seen.read({(line["task"], line["node"]) for line in lines if line["key"] == "reservation_given_up"})


async def _played(stage: Stage, happenings: list[Happening], seconds: float) -> Seen:
    async with Client.reaching(find_access(str(stage.server.kubeconfig)), qps=5000, burst=10000) as client:
        world = Served(client)
        Owners(world)
        clock, seen = Clock(world), Seen(world)
        for happening in happenings:
            world.timeline.at(BEGINNING + happening.when, partial(_happen, world, happening))
        tasks = [asyncio.create_task(work) for work in (world.follow_server(), world.write())]
        await asyncio.sleep(0.5)  # the nodes are known
        world.begin()
        playing = asyncio.create_task(world.until(seconds))
        done, _ = await asyncio.wait([*tasks, playing], return_when=asyncio.FIRST_COMPLETED)
        for task in tasks:
            task.cancel()
        for task in done:
            task.result()
        with suppress(asyncio.CancelledError):
            await asyncio.gather(*tasks)
        clock.read(seen.outcome)
        return seen


def _happen(world: SimWorld, happening: Happening) -> None:
    for body in happening.come:
        if body["kind"] in ("PodGroup", "Pod"):
            world.create(hurried(body) if body["kind"] == "Pod" else body)
