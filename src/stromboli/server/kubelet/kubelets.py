"""All simulated kubelets of a cluster: one watch of pods, one life a pod, heartbeats of every node."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from typing import Any, Final

from stromboli.cluster.body import Body, meta, part, seconds_of, stamp
from stromboli.cluster.lives import Life, life_of
from stromboli.errors import ApiFailure
from stromboli.server.kubelet import statuses
from stromboli.server.kubelet.cluster import MERGE, STRATEGIC, Cluster
from stromboli.server.print.conditions import readiness

_LOG: Final = logging.getLogger(__name__)
BEAT_EVERY: Final = 10.0
"""Seconds between two renewals of a node's Lease, a quarter of its length, as kubelets do unless told otherwise."""
_STATUS_EVERY: Final = 30
"""Beats between two reports of a node's status."""
_PAUSE: Final = 0.2
"""Seconds before a request or a watch that failed is tried again; doubled up to two seconds."""
BACKOFFS: Final = (10.0, 20.0, 40.0, 80.0, 160.0, 300.0)
"""Seconds before a container is started once more, as kubelets do."""
_LEASES: Final = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
NOT_READY: Final = "simulation.stromboli.dev/not-ready"
"""Annotation of a node: with the value ``true`` its kubelet reports that it is not ready and renews no Lease."""


class Kubelets:
    """Kubelets of ``nodes``, Node objects as :mod:`shapes` makes them; ``clock`` gives seconds since 1970."""

    def __init__(
        self,
        cluster: Cluster,
        nodes: Sequence[Body],
        clock: Callable[[], float] = time.time,
        beat_every: float = BEAT_EVERY,
    ) -> None:
        self._cluster = cluster
        self._nodes = {meta(node)["name"]: node for node in nodes}
        self._clock = clock
        self._beat_every = beat_every
        self._lives: dict[str, asyncio.Task[None]] = {}
        self._dying: set[str] = set()
        self._silent: set[str] = set()
        self._conditions: dict[str, Sequence[Body]] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._writing = asyncio.Semaphore(64)
        self._addresses = 0
        self.registered = asyncio.Event()
        """Set when all nodes are there."""

    async def run(self) -> None:
        """Register the nodes and live until cancelled."""
        await asyncio.gather(*(self._register(node) for node in self._nodes.values()))
        self.registered.set()
        try:
            await asyncio.gather(self._follow_pods(), self._follow_nodes(), self._beat())
        finally:
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)

    # ------------------------------------------------------------------------------------------- nodes

    async def _register(self, node: Body) -> None:
        """Make the node, or bring the one up to date that an earlier kubelet has left."""
        name, path = meta(node)["name"], f"/api/v1/nodes/{meta(node)['name']}"
        try:
            await self._ask("POST", "/api/v1/nodes", {**node, "status": self._status(node, ())})
        except ApiFailure as failure:
            if failure.reason != "AlreadyExists":
                raise
            left = await self._ask("GET", path)
            status = self._status(node, part(left, "status", "conditions") or ())
            await self._ask("PATCH", f"{path}/status", {"status": status}, MERGE)
        await self._lease(name)

    def _status(self, node: Body, known: Sequence[Body]) -> Body:
        return {**node["status"], "conditions": statuses.node_conditions(self._clock(), ready=True, known=known)}

    async def _lease(self, name: str) -> None:
        now = stamp(self._clock()).replace("Z", ".000000Z")
        spec = {"holderIdentity": name, "leaseDurationSeconds": round(4 * self._beat_every), "renewTime": now}
        try:
            await self._ask("PATCH", f"{_LEASES}/{name}", {"spec": spec}, MERGE)
        except ApiFailure as failure:
            if failure.code != 404:
                raise
            await self._ask("POST", _LEASES, {"metadata": {"name": name}, "spec": spec})

    async def _beat(self) -> None:
        beats = 0
        while True:
            await asyncio.sleep(self._beat_every)
            beats += 1
            alive = [name for name in self._nodes if name not in self._silent]
            for name in alive:
                self._later(self._lease(name))
                if beats % _STATUS_EVERY == 0:
                    self._later(self._report(name))

    async def _report(self, name: str) -> None:
        known = self._conditions.get(name, ())
        conditions = statuses.node_conditions(self._clock(), name not in self._silent, known)
        path = f"/api/v1/nodes/{name}/status"
        await self._ask("PATCH", path, {"status": {"conditions": conditions}}, STRATEGIC)

    async def _follow_nodes(self) -> None:
        async for event in self._follow("/api/v1/nodes", ""):
            name = meta(event["object"]).get("name", "")
            if name not in self._nodes or event["type"] == "DELETED":
                continue
            self._conditions[name] = part(event["object"], "status", "conditions") or ()
            silent = (meta(event["object"]).get("annotations") or {}).get(NOT_READY) == "true"
            if silent != (name in self._silent):
                (self._silent.add if silent else self._silent.discard)(name)
                self._later(self._report(name))
            elif not silent and readiness(event["object"]) != "True":
                self._later(self._report(name))  # the cluster has not heard of it for long

    # -------------------------------------------------------------------------------------------- pods

    async def _follow_pods(self) -> None:
        async for event in self._follow("/api/v1/pods", "spec.nodeName!="):
            pod = event["object"]
            if part(pod, "spec", "nodeName") in self._nodes:
                self._meet(event["type"], pod)

    def _meet(self, kind: str, pod: Body) -> None:
        """Take news of a pod in; trouble with one is logged, and no other hears of it."""
        try:
            self._take(kind, pod)
        except Exception:  # noqa: BLE001  # one pod's trouble must not be all others'
            _LOG.exception("pod %s", meta(pod).get("name"))

    def _take(self, kind: str, pod: Body) -> None:
        uid = meta(pod).get("uid", "")
        if kind == "DELETED":
            self._forget(uid)
        elif "deletionTimestamp" in meta(pod):
            self._stop(uid, pod)
        elif uid not in self._lives and part(pod, "status", "phase") in ("Pending", "Running", None):
            self._lives[uid] = self._later(self._live(pod, life_of(pod)))

    def _forget(self, uid: str) -> None:
        self._dying.discard(uid)
        life = self._lives.pop(uid, None)
        if life is not None:
            life.cancel()

    def _stop(self, uid: str, pod: Body) -> None:
        if uid not in self._dying:
            self._dying.add(uid)
            life = self._lives.pop(uid, None)
            if life is not None:
                life.cancel()
            self._later(self._die(pod, life_of(pod)))

    async def _live(self, pod: Body, life: Life) -> None:
        """From the start to the end, through as many restarts as the pod's policy wishes."""
        restarts = 0
        pod = await self._begin(pod, life)
        while life.run.seconds is not None:
            await asyncio.sleep(self._rest(pod, life.run.seconds))
            policy = part(pod, "spec", "restartPolicy")
            if policy == "Never" or (policy == "OnFailure" and not life.run.exit_code):
                await self._write(pod, statuses.ended(pod, self._clock(), life.runs))
                return
            stops = statuses.terminations(pod, self._clock(), life.runs)
            pod = await self._write(pod, statuses.backing_off(pod, stops, self._clock()))
            await asyncio.sleep(BACKOFFS[min(restarts, len(BACKOFFS) - 1)])
            restarts += 1
            pod = await self._write(pod, self._running(pod, restarts, stops))

    async def _begin(self, pod: Body, life: Life) -> Body:
        if part(pod, "status", "phase") == "Running":
            return pod
        await asyncio.sleep(life.start_after)
        return await self._write(pod, self._running(pod, 0, []))

    def _rest(self, pod: Body, seconds: float) -> float:
        """Seconds that a run still lasts: less than all of it if it began under another kubelet."""
        first: Body = next(iter(part(pod, "status", "containerStatuses") or ()), {})
        started = seconds_of(part(first, "state", "running", "startedAt"))
        gone = 0.0 if started is None else self._clock() - started
        return seconds if gone < 1.0 else max(0.0, seconds - gone)

    def _running(self, pod: Body, restarts: int, stops: Sequence[Body]) -> Body:
        node = self._nodes[pod["spec"]["nodeName"]]
        host = node["status"]["addresses"][0]["address"]
        address = part(pod, "status", "podIP") or self._address("10.244")
        return statuses.running(pod, self._clock(), host, address, restarts, stops)

    def _address(self, network: str) -> str:
        """The next one of a network of 65,536."""
        self._addresses += 1
        high, low = divmod(self._addresses, 250)
        return f"{network}.{high % 256}.{low + 1}"

    async def _die(self, pod: Body, life: Life) -> None:
        """Stop as the pod does when it is told to, and let it go."""
        grace = meta(pod).get("deletionGracePeriodSeconds") or 0
        await asyncio.sleep(life.stops_within(grace))
        if part(pod, "status", "phase") == "Running":
            await self._write(pod, statuses.ended(pod, self._clock(), life.runs, killed=True))
        wish = {"gracePeriodSeconds": 0, "preconditions": {"uid": meta(pod)["uid"]}}
        await self._ask("DELETE", path_of(pod), wish)

    async def _write(self, pod: Body, status: Body) -> Body:
        found = {"uid": meta(pod)["uid"]}
        return await self._ask("PATCH", f"{path_of(pod)}/status", {"metadata": found, "status": status}, STRATEGIC)

    # ----------------------------------------------------------------------------------------- requests

    async def _ask(self, method: str, path: str, body: Body | None = None, media: str = "application/json") -> Body:
        """A request that is tried until the server answers it, one way or the other."""
        pause = _PAUSE
        while True:
            try:
                async with self._writing:
                    return await self._cluster.call(method, path, body, media)
            except ApiFailure as failure:
                if failure.code < 500 and failure.code != 429:
                    raise
            except OSError:
                _LOG.debug("%s %s: no answer", method, path)
            await asyncio.sleep(pause)
            pause = min(2 * pause, 2.0)

    async def _follow(self, path: str, fields: str) -> AsyncIterator[Body]:
        """Events of everything that is there and will be; what is gone after a gap is told as deleted."""
        query = {"fieldSelector": fields} if fields else {}
        known: dict[str, Body] = {}
        pause = _PAUSE
        while True:
            try:
                async for event in self._once(path, query, known):
                    pause = _PAUSE
                    yield event
            except (ApiFailure, OSError) as error:
                _LOG.debug("watch of %s: %s", path, error)
            await asyncio.sleep(pause)
            pause = min(2 * pause, 2.0)

    async def _once(self, path: str, query: dict[str, str], known: dict[str, Body]) -> AsyncIterator[Body]:
        listed = await self._cluster.call("GET", f"{path}?{'&'.join(f'{key}={value}' for key, value in query.items())}")
        there = {meta(item)["uid"]: item for item in listed["items"]}
        for uid in [uid for uid in known if uid not in there]:
            yield {"type": "DELETED", "object": known.pop(uid)}
        for uid, item in there.items():
            known[uid] = {"metadata": {"uid": uid, "name": meta(item)["name"]}, "spec": _placed(item)}
            yield {"type": "MODIFIED", "object": item}
        version = listed["metadata"]["resourceVersion"]
        while True:
            asked = {**query, "resourceVersion": version, "allowWatchBookmarks": "true"}
            async for event in self._cluster.watch(path, asked):
                if event["type"] == "ERROR":
                    return
                version = meta(event["object"]).get("resourceVersion", version)
                if event["type"] != "BOOKMARK":
                    self._remember(event, known)
                    yield event
            await asyncio.sleep(_PAUSE)

    def _remember(self, event: Body, known: dict[str, Body]) -> None:
        found = meta(event["object"])
        if event["type"] == "DELETED":
            known.pop(found["uid"], None)
        else:
            known[found["uid"]] = {
                "metadata": {"uid": found["uid"], "name": found["name"]},
                "spec": _placed(event["object"]),
            }

    def _later(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.create_task(_settled(work))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        task.add_done_callback(lambda _: work.close())  # a task that was cancelled at once has not begun it
        return task


async def _settled(work: Coroutine[Any, Any, None]) -> None:
    """Let work end; an object that is gone or another by now is no trouble, as its own events follow."""
    try:
        await work
    except ApiFailure as failure:
        if failure.code not in (404, 409):
            _LOG.warning("kubelet: %s", failure)


def path_of(pod: Body) -> str:
    """The pod's address at the API server."""
    return f"/api/v1/namespaces/{meta(pod)['namespace']}/pods/{meta(pod)['name']}"


def _placed(item: Body) -> Body:
    return {"nodeName": part(item, "spec", "nodeName")}
