"""A day of 200 nodes, recorded by live schedulers in virtual time: ``python -m benchmarks.records.day DIR``.

A cycle a second; jobs, nodes and disruption budgets come and go, high priorities evict and reserve, schedulers are
killed and lead in turn, requests fail, watches end and cannot be resumed.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final
from unittest.mock import patch

from stromboli.errors import Unreachable
from stromboli.kube.transport import Request, Response
from stromboli.live.scheduler import scheduler as live
from stromboli.live.scheduler.recording import Recorder, record
from stromboli.narration.observe import Counting
from tests.support.faulty import status
from tests.support.live_world import LiveWorld, group, node, pod, queue
from tests.support.virtual import VirtualLoop, run

NODES: Final = 200
CORES: Final = 8
REIGN: Final = 7200.0
EVERY: Final = 18.0
CONF: Final = """actions: "enqueue, allocate, preempt, backfill"
tiers:
- plugins: [{name: priority}, {name: gang}, {name: conformance}, {name: pdb}]
- plugins: [{name: predicates}, {name: nodeorder}]
"""
TROUBLES: Final = ("record_stopped", "cycle_failed", "following_trouble", "read_anew")
"""What is counted of all that the schedulers tell."""
LONGEST_WORK: Final = 16
"""Pieces of work that may wait for a recorder's writer before virtual time waits for it."""


class Day(LiveWorld):
    """The cluster, its users and its failures; ``folder`` gets a record of each scheduler."""

    def __init__(self, folder: Path, seed: int, nodes: int = NODES, reign: float = REIGN, every: float = EVERY) -> None:
        super().__init__(nodes=nodes, cpu=CORES)
        self.nodes, self.reign, self.every = nodes, reign, every
        self.folder, self.dice, self.told = folder, random.Random(seed), Counting(TROUBLES)
        self.leader, self.number, self.jobs = 0, 0, 0
        self.recorders: list[Recorder] = []
        self.living: dict[int, asyncio.Task[None]] = {}
        self.conf = folder / "scheduler.conf"
        self.conf.write_text(CONF)
        for name, weight in (("research", 2), ("service", 1)):
            self.server.put("queues", queue(name, weight=weight, reclaimable=True))
        for name, value in (("high", 1000), ("low", 10)):
            self.server.put("priorityclasses", {"metadata": {"name": name}, "value": value})
        self.server.faults.append(self._fault)
        self.failing = 0.002

    # ------------------------------------------------------------------ schedulers

    def begin(self) -> int:
        """Start a scheduler, and record it."""
        self.number += 1
        number = self.number
        found = self.scheduler(str(self.conf), may_write=lambda: self.leader == number, schedule_period=1.0)
        self.recorders.append(record(found, self.folder / f"s{number:02d}"))
        self.living[number] = self.start(found)
        return number

    def kill(self, number: int) -> None:
        """As kill -9 does, but for its record's last frame."""
        self.living.pop(number).cancel()
        self.recorders[number - 1].close()

    async def rule(self) -> None:
        """Leaders change every ``reign`` seconds: one hands over and leads again, or is killed and another begins."""
        self.leader = self.begin()
        for turn in range(1000):
            await asyncio.sleep(self.reign * self.dice.uniform(0.8, 1.2))
            first = self.leader
            if turn % 2:
                self.kill(first)
                await asyncio.sleep(self.dice.uniform(1, 20))
                self.leader = self.begin()
                continue
            second = self.begin()
            await asyncio.sleep(30)
            for self.leader in (second, first):  # what leads is the attribute itself
                await asyncio.sleep(300)
            self.leader = second
            await asyncio.sleep(30)
            self.kill(first)

    # ------------------------------------------------------------------ users

    async def submit(self) -> None:
        """A job ``every`` so many seconds: most of them of one queue, some urgent, a few too large to ever run."""
        while True:
            await asyncio.sleep(self.dice.expovariate(1 / self.every))
            urgent = self.dice.random() < 0.04
            size = self.dice.choice((1, 1, 2, 4, 8, 16)) * (3 if urgent else 1)
            cores = self.dice.choice((1, 1, 2, 4)) if self.dice.random() > 0.002 else 2 * CORES
            where = "service" if self.dice.random() < 0.3 else "research"
            self._job(size, cores, where, "high" if urgent else "low")

    def _job(self, size: int, cores: int, where: str, priority: str) -> None:
        self.jobs += 1
        name = f"job{self.jobs:05d}"
        least = size if self.dice.random() < 0.7 else max(size // 2, 1)
        body = group(name, least, queue=where, priorityClassName=priority)
        self.server.put("podgroups", {**body, "status": {"phase": "Pending"}})
        for number in range(size):
            self.server.put("pods", self._pod(f"{name}-{number}", name, cores, priority))
        if self.dice.random() < 0.05:
            self._protect(name, max(size - 1, 1))
        lives = min(self.dice.expovariate(1 / 1800) + 20, 4 * 3600)
        self._after(lives, self._finish, name, size)

    def _pod(self, name: str, job: str, cores: int, priority: str) -> dict[str, Any]:
        value = {"high": 1000, "low": 10}[priority]
        found = pod(name, job, cores, priority=value, priorityClassName=priority)
        found["metadata"]["labels"] = {"job": job}
        found["spec"]["terminationGracePeriodSeconds"] = self.dice.choice((1, 30, 30, 60))
        return found

    def _protect(self, job: str, least: int) -> None:
        spec = {"minAvailable": least, "selector": {"matchLabels": {"job": job}}}
        budget = {"metadata": {"name": job, "namespace": "ns"}, "spec": spec, "status": {"disruptionsAllowed": 1}}
        self.server.put("poddisruptionbudgets", budget)

    def _finish(self, name: str, size: int) -> None:
        """The job's pods are done; one that has not begun lives on for a while."""
        pods = self.server.objects["pods"]
        mine = [key for number in range(size) if (key := ("ns", f"{name}-{number}")) in pods]
        if any(not pods[key]["spec"].get("nodeName") for key in mine) and self.dice.random() < 0.8:
            self._after(120.0, self._finish, name, size)
            return
        for _, pod_name in mine:
            self.server.drop("pods", pod_name, "ns")
        for collection in ("podgroups", "poddisruptionbudgets"):
            if ("ns", name) in self.server.objects.get(collection, {}):
                self.server.drop(collection, name, "ns")

    @staticmethod
    def _after(seconds: float, call: Any, *given: Any) -> None:
        asyncio.get_running_loop().call_later(seconds, call, *given)

    async def end_victims(self) -> None:
        """Evicted pods are gone seconds later, and come again where their job is still there."""
        going: set[str] = set()
        while True:
            await asyncio.sleep(2)
            for found in self.server.all("pods"):
                uid = found["metadata"]["uid"]
                if "deletionTimestamp" in found["metadata"] and uid not in going:
                    going.add(uid)
                    self._after(self.dice.uniform(1, 12), self._gone, found["metadata"]["name"], uid)

    def _gone(self, name: str, uid: str) -> None:
        found = self.server.objects["pods"].get(("ns", name))
        if found is None or found["metadata"]["uid"] != uid:
            return
        self.server.drop("pods", name, "ns")
        job = found["metadata"]["annotations"]["scheduling.k8s.io/group-name"]
        if ("ns", job) in self.server.objects["podgroups"]:
            cores = int(found["spec"]["containers"][0]["resources"]["requests"]["cpu"])
            again = self._pod(name, job, cores, found["spec"]["priorityClassName"])
            self._after(2.0, self._again, job, again)

    def _again(self, job: str, found: dict[str, Any]) -> None:
        if ("ns", job) in self.server.objects["podgroups"]:
            self.server.put("pods", found)

    # ------------------------------------------------------------------ failures

    async def change_nodes(self) -> None:
        """Nodes go with their pods, and come again."""
        while True:
            await asyncio.sleep(self.dice.expovariate(1 / 600))
            name = f"n{self.dice.randrange(self.nodes)}"
            if ("", name) not in self.server.objects["nodes"]:
                continue
            for found in self.server.all("pods"):
                if found["spec"].get("nodeName") == name:
                    self.server.drop("pods", found["metadata"]["name"], "ns")
            self.server.drop("nodes", name)
            self._after(self.dice.uniform(60, 600), self.server.put, "nodes", node(name, CORES))

    async def fail(self) -> None:
        """Watches end every few minutes; now and then they cannot be resumed, or tell old news for a while."""
        while True:
            await asyncio.sleep(self.dice.expovariate(1 / 400))
            match self.dice.randrange(8):
                case 0:
                    self.server.forget()
                    self.server.cut()
                case 1:
                    self.server.confused = random.Random(self.dice.random())
                    self.server.cut()
                    self._after(60.0, self._calm)
                case 2:
                    self.failing = 0.2
                    self._after(20.0, self._calm)
                case 3:
                    self.server.muffle()
                case _:
                    self.server.cut()

    def _calm(self) -> None:
        self.failing = 0.002
        if self.server.confused is not None:
            self.server.confused = None
            self.server.cut()

    def _fault(self, request: Request, when: str) -> Response | None:
        if self.dice.random() > self.failing:
            return None
        match self.dice.randrange(5):
            case 0:
                return status(500, "InternalError")
            case 1:
                return status(429, "TooManyRequests", retry_after="2")
            case 2 if request.method != "GET":
                return status(409, "Conflict")
            case _:
                raise Unreachable("no answer")

    # ------------------------------------------------------------------ what keeps it small

    async def tidy(self) -> None:
        """Forget what no watch will ask for any more."""
        while True:
            await asyncio.sleep(60)
            del self.server.log[:-2000]
            self.server.forgotten = max(self.server.forgotten, self.server.log[0][0] if self.server.log else 0)
            for kept in (self.server.requests, self.server.logins, self.server.bindings):
                kept.clear()
            self.server.objects.get("events", {}).clear()

    def wait_for_writers(self) -> None:
        """Let virtual time wait for the disk."""
        while any(one.waiting > LONGEST_WORK for one in self.recorders):
            time.sleep(0.001)


def recorded(
    folder: Path, hours: float, seed: int, tell: Any = print, nodes: int = NODES, reign: float = REIGN,
    every: float = EVERY,
) -> Day:  # fmt: skip
    """Record so many hours of so many nodes, with a job ``every`` so many seconds; a leader leads for ``reign``."""

    async def story() -> Day:
        world, loop = Day(folder, seed, nodes, reign, every), asyncio.get_running_loop()
        if isinstance(loop, VirtualLoop):
            loop.before_turns.append(world.wait_for_writers)
        parts = (world.rule, world.submit, world.end_victims, world.change_nodes, world.fail, world.tidy)
        beside = [asyncio.create_task(part()) for part in parts]
        began = time.monotonic()
        for quarter in range(round(hours * 4)):
            await asyncio.sleep(900)
            tell(
                f"{(quarter + 1) / 4:g} h: {time.monotonic() - began:.0f} s, CPU {time.process_time():.0f} s, "
                f"{world.jobs} jobs, {len(world.waiting())} pods wait, {dict(world.told.counts)}",
                flush=True,
            )
            if ended := [task for task in beside if task.done()]:
                await ended[0]
        for task in beside:
            task.cancel()
        await world.end()
        for one in world.recorders:
            one.close()
        return world

    with patch.object(live, "LOOK_EVERY", 0.5):  # looks cost what cycles do, where waiting costs nothing
        return run(story())


def main(arguments: Sequence[str] | None = None) -> int:
    """Record a day."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.records.day", description=__doc__)
    parser.add_argument("folder", type=Path, help="where the records go, one folder for each scheduler")
    parser.add_argument("--hours", type=float, default=24.0)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args(arguments)
    options.folder.mkdir(parents=True, exist_ok=True)
    world = recorded(options.folder, options.hours, options.seed)
    failures = sum(one.failures for one in world.recorders)
    print(f"{world.number} schedulers, {world.jobs} jobs, {failures} failures of records")
    return 1 if failures else 0


if __name__ == "__main__":
    raise SystemExit(main())
