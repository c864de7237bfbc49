"""Kubelets whose pods are processes of this machine, in namespaces that take no privileges."""

from __future__ import annotations

import asyncio
import shutil
import signal
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Final

from stromboli.cluster.body import Body, meta, part, stamp
from stromboli.cluster.lives import Life, Run
from stromboli.errors import ApiFailure, QuantityError, ShapeError
from stromboli.model.resources import quantity
from stromboli.server.kubelet import statuses
from stromboli.server.kubelet.kubelets import BACKOFFS, Kubelets, path_of
from stromboli.server.kubelet.real import contents, hosts
from stromboli.server.kubelet.real.container import Container
from stromboli.server.kubelet.real.layout import MEMORY, Command, Mount, script
from stromboli.server.kubelet.real.sandbox import Sandbox, give

MOST_CONTAINERS: Final = 256
"""Containers of pods that are not over, all together."""
NETWORK: Final = "127.1"
"""Where pods have their addresses: all of it is loopback."""
_AGAIN: Final = 2.0
"""Seconds until a pod that lacks something is tried again."""
_AT_MOST: Final = 10.0
"""Seconds that the end of a killed process is waited for."""
_LOST: Final = Run(0.0, 137)
_VARIABLES: Final = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/"}


@dataclass
class RealPod:
    """A pod on its node; ``body`` knows its address."""

    body: Body
    folder: Path
    address: str
    inits: list[Container] = field(default_factory=list)
    containers: list[Container] = field(default_factory=list)
    scripts: dict[str, Path] = field(default_factory=dict)
    """What starts each container."""

    @property
    def policy(self) -> str:
        """Its restart policy."""
        return str(part(self.body, "spec", "restartPolicy") or "Always")

    @property
    def all(self) -> list[Container]:
        """Containers, those that come first included."""
        return [*self.inits, *self.containers]

    @property
    def phase(self) -> str:
        """As its containers stand."""
        if self.policy == "Never" and any(one.exit_code for one in self.inits):
            return "Failed"
        codes = [one.exit_code for one in self.containers]
        if None in codes:
            begun = any(code is not None or "running" in one.state or one.last for code, one in self._with(codes))
            return "Running" if begun else "Pending"
        return "Failed" if any(codes) else "Succeeded"

    def _with(self, codes: list[int | None]) -> Iterator[tuple[int | None, Container]]:
        return zip(codes, self.containers, strict=True)

    def again(self, one: Container) -> bool:
        """Whether a container that has ended is started once more."""
        if self.policy == "Always" and one in self.containers:
            return True
        return self.policy != "Never" and bool(one.exit_code)


class RealKubelets(Kubelets):
    """Runs the commands of pods; images are not looked at."""

    def __init__(self, *arguments: Any, **more: Any) -> None:
        super().__init__(*arguments, **more)
        self._sandbox = Sandbox()
        self._pods: dict[str, RealPod] = {}
        self._runs: set[asyncio.Task[int]] = set()

    async def run(self) -> None:
        """Register the nodes and live until cancelled; every process ends with it.  Raises CannotServe."""
        try:
            async with self._sandbox:
                await super().run()
        finally:
            await asyncio.gather(*self._runs, return_exceptions=True)

    def written(self, pod: Body, container: str) -> bytes | None:
        """What a container has written in its present or last run, None before the first."""
        held = self._pods.get(meta(pod)["uid"])
        found = next((one for one in held.all if one.name == container), None) if held else None
        return found.log.read_bytes() if found and found.log.exists() else None

    # ------------------------------------------------------------------------------------------------ lives

    async def _live(self, pod: Body, life: Life) -> None:
        containers = pod["spec"]["containers"]
        if part(pod, "status", "phase") == "Running" and part(pod, "spec", "restartPolicy") == "Never":
            await self._write(pod, statuses.ended(pod, self._clock(), [_LOST] * len(containers)))
            return
        uid = meta(pod)["uid"]
        if sum(len(one.all) for one in self._pods.values() if one.phase in ("Pending", "Running")) >= MOST_CONTAINERS:
            text = f"Pod was rejected: this machine runs {MOST_CONTAINERS} containers at once, and that many are there"
            await self._write(pod, {"phase": "Failed", "reason": "OutOfpods", "message": text})
            return
        held = self._pods[uid] = self._held(pod)
        await self._prepared(held)
        for spec, one in zip(part(pod, "spec", "initContainers") or (), held.inits, strict=True):
            await self._through(held, spec, one)
            if held.phase == "Failed":
                return
        pairs = zip(containers, held.containers, strict=True)
        await asyncio.gather(*(self._through(held, spec, one) for spec, one in pairs))

    def _held(self, pod: Body) -> RealPod:
        """The pod with an address and a folder of its own."""
        address, folder = self._address(NETWORK), self._sandbox.folder / meta(pod)["uid"]
        host = self._nodes[pod["spec"]["nodeName"]]["status"]["addresses"][0]["address"]
        ips = {"podIP": address, "podIPs": [{"ip": address}], "hostIP": host, "hostIPs": [{"ip": host}]}
        body = {**pod, "status": {**(pod.get("status") or {}), **ips}}

        def made(kind: str) -> list[Container]:
            specs = part(pod, "spec", kind) or ()
            return [Container(one["name"], one.get("image", ""), folder / "c" / one["name"]) for one in specs]

        return RealPod(body, folder, address, made("initContainers"), made("containers"))

    async def _prepared(self, held: RealPod) -> None:
        """Wait until all is there that its containers need; its status says what is missing."""
        while True:
            try:
                await self._prepare(held)
                return
            except (ShapeError, QuantityError) as error:
                for one in held.all:
                    one.state = {"waiting": {"reason": "CreateContainerConfigError", "message": str(error)[:1024]}}
            await self._tell(held)
            await asyncio.sleep(_AGAIN)

    async def _through(self, held: RealPod, spec: Body, one: Container) -> None:
        """Run a container, as often as the pod's policy wishes."""
        while True:
            process = await self._sandbox.start(held.scripts[spec["name"]])
            one.run = asyncio.create_task(one.follow(process))
            self._runs.add(one.run)
            one.run.add_done_callback(self._runs.discard)
            one.state = {"running": {"startedAt": stamp(self._clock())}}
            await self._tell(held)
            one.ended(await asyncio.shield(one.run), stamp(self._clock()))
            if not held.again(one):
                await self._tell(held)
                return
            text = "back-off restarting failed container"
            one.last, one.state = one.state, {"waiting": {"reason": "CrashLoopBackOff", "message": text}}
            await self._tell(held)
            await asyncio.sleep(BACKOFFS[min(one.restarts, len(BACKOFFS) - 1)])
            one.restarts += 1

    async def _tell(self, held: RealPod) -> None:
        pod, phase, at = held.body, held.phase, stamp(self._clock())
        named = (("initContainerStatuses", held.inits), ("containerStatuses", held.containers))
        of = {key: [one.status(statuses.identity(pod, one.name)) for one in found] for key, found in named if found}
        keys = ("hostIP", "hostIPs", "podIP", "podIPs")
        body = {key: pod["status"][key] for key in keys} | {"phase": phase, "startTime": at, **of}
        ready = all("running" in one.state for one in held.containers)
        stored = await self._cluster.call("GET", path_of(pod))
        body["startTime"] = part(stored, "status", "startTime") or at
        await self._write(pod, {**body, "conditions": statuses.conditions(stored, at, ready=ready)})

    # ------------------------------------------------------------------------------------------------ what they get

    async def _prepare(self, held: RealPod) -> None:
        """Write its volumes and make its scripts.  Raises ShapeError for what is missing or not there."""
        pod = held.body
        await self._name_all(meta(pod)["namespace"])
        find = partial(self._find, meta(pod)["namespace"])
        for volume in part(pod, "spec", "volumes") or ():
            await contents.fill(pod, volume, held.folder / "volumes" / volume["name"], find)
        for spec in (*(part(pod, "spec", "initContainers") or ()), *pod["spec"]["containers"]):
            root = held.folder / "c" / spec["name"] / "root"
            root.mkdir(parents=True, exist_ok=True)
            start = held.scripts[spec["name"]] = root.with_name("start")
            start.touch(0o600)  # it holds the variables
            start.write_text(script(root, self._mounts(held, spec), await _command(pod, spec, find)))
            give(start)

    def _mounts(self, held: RealPod, spec: Body) -> Iterator[Mount]:
        namespace = meta(held.body)["namespace"]
        yield Mount(self._hosts_file(namespace), "/etc/hosts", read_only=True)
        for one in spec.get("volumeMounts") or ():
            source = held.folder / "volumes" / one["name"]
            if path := one.get("subPath"):
                source = contents.inside(source, path)
                if not source.exists():
                    source.mkdir(parents=True)
                    give(source)
            yield Mount(source, one["mountPath"], bool(one.get("readOnly")))

    def _hosts_file(self, namespace: str) -> Path:
        return self._sandbox.folder / f"hosts-{namespace}"

    async def _name_all(self, namespace: str) -> None:
        """Let the pods of a namespace know each other's names."""
        services = await self._cluster.call("GET", f"/api/v1/namespaces/{namespace}/services")
        pods = [(one.body, one.address) for one in self._pods.values() if meta(one.body)["namespace"] == namespace]
        hosts.write(self._hosts_file(namespace), pods, services["items"])

    async def _find(self, namespace: str, kind: str, name: str) -> Body | None:
        try:
            return await self._cluster.call("GET", f"/api/v1/namespaces/{namespace}/{kind}/{name}")
        except ApiFailure as failure:
            if failure.code != 404:
                raise
            return None

    # ------------------------------------------------------------------------------------------------ the end

    async def _die(self, pod: Body, life: Life) -> None:
        """SIGTERM, SIGKILL after the grace period, and let the pod go."""
        if held := self._pods.get(meta(pod)["uid"]):
            await self._end(held, meta(pod).get("deletionGracePeriodSeconds") or 0)
        await self._ask("DELETE", path_of(pod), {"gracePeriodSeconds": 0, "preconditions": {"uid": meta(pod)["uid"]}})

    async def _end(self, held: RealPod, grace: float) -> None:
        runs = {one.run: one for one in held.all if one.run and not one.run.done()}
        for number, seconds in ((signal.SIGTERM, grace), (signal.SIGKILL, _AT_MOST)) if runs else ():
            for one in runs.values():
                one.signal(number)
            if not (await asyncio.wait(runs, timeout=seconds))[1]:
                break
        for run, one in runs.items():
            if run.done():
                one.ended(run.result(), stamp(self._clock()))
        if runs:
            await self._tell(held)

    def _forget(self, uid: str) -> None:
        super()._forget(uid)
        if held := self._pods.pop(uid, None):
            for one in held.all:
                one.signal(signal.SIGKILL)
            shutil.rmtree(held.folder, ignore_errors=True)


async def _command(pod: Body, spec: Body, find: contents.Find) -> Command:
    name = hosts.hostname(pod)
    known = {**_VARIABLES, "HOSTNAME": name, **await contents.variables(pod, spec, find)}
    words = [contents.expanded(word, known) for word in (*(spec.get("command") or ()), *(spec.get("args") or ()))]
    if not spec.get("command"):
        raise ShapeError(f"container {spec['name']} states no command, and --pods real knows no images: state one")
    limit = (part(spec, "resources", "limits") or {}).get("memory")
    return Command(words, known, spec.get("workingDir") or "/", name, quantity.whole(limit) if limit else MEMORY)
