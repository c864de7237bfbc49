"""Stories of trouble: nodes that go, requests that fail, watches that end, leaders that change, bad configurations."""

from __future__ import annotations

import asyncio
import random

from stromboli.errors import Unreachable
from stromboli.kube.lease import Election, Terms
from stromboli.kube.transport import Request, Response
from stromboli.live.process.leading import Leadership
from stromboli.live.scheduler.scheduler import LiveScheduler
from tests.recorded.live.cluster import Cluster, job, pod, priority, queue, task
from tests.recorded.live.sharing import PREEMPTING
from tests.support.faulty import status

RELOADED = """actions: "enqueue, allocate, backfill"
tiers:
- plugins: [{name: priority}, {name: gang, enablePreemptable: false}]
- plugins: [{name: predicates}, {name: binpack, arguments: {binpack.weight: 5, binpack.cpu: much}}, {name: nodeorder}]
"""


async def nodes(c: Cluster) -> None:
    """Nodes are cordoned, tainted, silent, smaller, gone and back again, under running jobs."""
    await c.begin()
    retry = [{"event": "PodEvicted", "action": "RestartJob"}]
    await c.make(
        job("wide", task("t", 8), minAvailable=8, policies=retry, maxRetry=5),
        job("small", task("t", 2, spec={"nodeSelector": {"zone": "a"}}), minAvailable=2),
        pod("tolerant", tolerations=[{"operator": "Exists"}]),
    )
    await c.change("nodes", "node-4", {"metadata": {"labels": {"zone": "a"}}})
    await asyncio.sleep(8)
    await c.change("nodes", "node-1", {"spec": {"unschedulable": True}})
    await c.change("nodes", "node-2", {"spec": {"taints": [{"key": "bad", "effect": "NoExecute", "value": "x"}]}})
    await asyncio.sleep(12)
    await c.change("nodes", "node-2", {"spec": {"taints": None}})
    await c.change("nodes", "node-1", {"spec": {"unschedulable": None}})
    await c.change("nodes", "node-3", {"metadata": {"annotations": {"simulation.stromboli.dev/not-ready": "true"}}})
    await asyncio.sleep(8)
    await c.make(job("late", task("t", 4, "sleep 10"), minAvailable=2))
    await asyncio.sleep(12)
    await c.change("nodes", "node-3", {"metadata": {"annotations": {"simulation.stromboli.dev/not-ready": None}}})
    small = {"allocatable": {"cpu": "1"}, "capacity": {"cpu": "1"}}
    await c.change("nodes", "node-4", {"status": small}, below="/status")
    await asyncio.sleep(8)
    gone = c.server.get("nodes", "node-2")
    await c.remove("nodes", "node-2")
    await asyncio.sleep(50)
    c.server.put(
        "nodes", {"metadata": {"name": "node-2", "labels": gone["metadata"]["labels"]}, "status": gone["status"]}
    )
    await asyncio.sleep(10)


class Faults:
    """Fails some requests, as dice fall."""

    def __init__(self, c: Cluster, share: float) -> None:
        self.dice, self.share = random.Random(c.seed), share

    def __call__(self, request: Request, when: str) -> Response | None:
        if self.dice.random() > self.share:
            return None
        match self.dice.randrange(6):
            case 0:
                return status(500, "InternalError")
            case 1:
                return status(429, "TooManyRequests", retry_after="1")
            case 2 if request.method != "GET":
                return status(409, "Conflict")
            case 3 if request.method == "PATCH":
                return status(404, "NotFound")
            case 4 if request.method == "POST":
                return status(403, "Forbidden", "no")
            case _:
                raise Unreachable("no answer")


def forbidden(request: Request, when: str) -> Response | None:
    """Pods of one job may not be made."""
    is_meant = when == "before" and request.method == "POST" and b'"denied-t-' in (request.body or b"")
    return status(403, "Forbidden", "not those") if is_meant else None


async def faults(c: Cluster) -> None:
    """Requests fail in every way while jobs run, and preempt; watches end, repeat themselves, or cannot be resumed."""
    await c.begin(PREEMPTING, {"max_requeue": 1}, audit_period=20.0, resync_period=37.0)
    await c.make(priority("high", 1000), priority("low", 10))
    c.server.faults += [Faults(c, 0.15), forbidden]
    await c.make(job("denied", task("t", 2), minAvailable=2))
    for number in range(6):
        name = "high" if number % 3 == 2 else "low"
        await c.make(job(f"j{number}", task("t", 4, f"sleep {5 + 3 * number}"), minAvailable=2, priorityClassName=name))
        await asyncio.sleep(5)
        match number:
            case 1:
                c.server.cut()
            case 2:
                c.server.forget()
                c.server.cut()
            case 3:
                c.server.confused = random.Random(c.seed)
                c.server.cut(Unreachable("broken"))
            case 4:
                c.server.confused = None
                c.server.cut()
    await asyncio.sleep(20)
    c.server.faults.clear()
    await asyncio.sleep(20)


async def away(c: Cluster) -> None:
    """The server is away for a while, then refuses to serve some kinds, then says yes again."""
    c.server.faults.append(
        lambda request, _: status(404, "NotFound") if "nodetopo" in request.path or "jobflow" in request.path else None
    )
    await c.begin()
    away = [False]

    def unreachable(_request: Request, _when: str) -> None:
        if away[0]:
            raise Unreachable("connection refused")

    c.server.faults.append(unreachable)
    await c.make(job("before", task("t", 3, "sleep 9"), minAvailable=3), job("all", task("t", 2), minAvailable=2))
    await asyncio.sleep(3.2)
    away[0] = True
    c.server.cut(Unreachable("connection reset"))
    for found in c.pods("all-t-1"):
        c.server.drop("pods", found["metadata"]["name"], "ns")
    await asyncio.sleep(25)
    away[0] = False
    c.server.forget()
    await asyncio.sleep(25)
    c.server.faults.clear()
    await c.make(job("after", task("t", 3, "sleep 4"), minAvailable=3))
    await asyncio.sleep(15)


async def leaders(c: Cluster) -> None:
    """Of two schedulers and two runners of controllers one leads; leaders stop, are cut off, and follow each other."""
    c.server.put("namespaces", {"metadata": {"name": "volcano-system"}, "status": {"phase": "Active"}})
    for work in (c.kubelets.run(), c.workloads.run(), c._tick()):
        c.start(work)
    await c.kubelets.registered.wait()

    schedulers, running = dict[str, LiveScheduler](), dict[str, asyncio.Task[object]]()

    def stand(author: str) -> Leadership:
        found = Leadership()
        one = schedulers[author] = c.scheduler(PREEMPTING, author, may_write=found.leads)
        found.stand(one.client, Terms("volcano-system", "volcano", author), one.tell, one.recorder)
        assert isinstance(found.election, Election)
        found.election._clock = c.clock
        c.start(found.lead())
        running[author] = c.start(one.run())
        c.start(c.controllers(f"{author}-controllers", may_write=found.leads).run())
        return found

    first, second = stand("first"), stand("second")
    await asyncio.sleep(4)
    await c.make(queue("q"))
    await asyncio.sleep(1)
    await c.make(job("one", task("t", 4), queue="q", minAvailable=4))
    await asyncio.sleep(5)
    leader = "first" if first.leads() else "second"
    schedulers[leader].stop()
    await running[leader]
    await (first if leader == "first" else second).release()
    await c.make(job("two", task("t", 4, "sleep 9"), minAvailable=4))
    await asyncio.sleep(12)
    third = stand("third")
    await asyncio.sleep(3)

    def cut_off(request: Request, _when: str) -> None:
        if "leases" in request.path and request.method != "GET" and not third.leads():
            raise Unreachable("no way")

    c.server.faults.append(cut_off)
    await asyncio.sleep(14)
    c.server.faults.clear()
    await c.make(job("three", task("t", 4, "sleep 9"), minAvailable=4))
    await asyncio.sleep(30)


async def configurations(c: Cluster) -> None:
    """The configuration changes, is refused, is unreadable, and is gone, while jobs come."""
    scheduler = await c.begin(PREEMPTING)
    for number, text in enumerate(
        (RELOADED, "actions: [nonsense", RELOADED + "\n# again\n", 'actions: "dance"\ntiers: []\n')
    ):
        await c.make(job(f"j{number}", task("t", 4, "sleep 6"), minAvailable=2))
        await asyncio.sleep(2.2)
        c.configure(text)
        await asyncio.sleep(4)
        c.notes.note("story", f"the configuration is refused: {scheduler.configuration.is_refused}")
    (c.folder / "scheduler.conf").unlink()
    await asyncio.sleep(3)
    (c.folder / "scheduler.conf").mkdir()
    await asyncio.sleep(3)
    (c.folder / "scheduler.conf").rmdir()
    c.configure(PREEMPTING + "metrics: {type: file, address: nowhere.json, interval: 5s}\n")
    await asyncio.sleep(12)
    scheduler.stop()
    await asyncio.sleep(5)
