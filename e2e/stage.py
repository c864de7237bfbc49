"""Where stories play: an API server with our manifests, simulated nodes, controllers, and schedulers as asked for."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Final, TypeVar

from e2e.clusters import STROMBOLI, Api, Json, Login, Refused, Server, kubectl
from e2e.laws import Recorder
from e2e.real import UNREACHABLE, ended
from stromboli.live.installation.configurations import CONFIGURATION
from stromboli.live.process.control_process import AGENT as CONTROLLERS
from stromboli.live.process.process import AGENT as SCHEDULER

NODES: Final = "4x8cpu,32Gi"
GONE: Final = 404
CONFLICT: Final = 409
ALREADY_THERE: Final = 409
NAMESPACE: Final = "volcano-system"
ACCOUNTS: Final = {"webhooks": "stromboli-admission", "controllers": CONTROLLERS}
"""The accounts of the processes of those names; all others are schedulers."""
PATIENCE: Final = 150.0
"""Seconds until a story gives up waiting; nothing takes that long unless it is broken."""

TERMS: Final = (
    "--leader-elect=true", "--leader-elect-lease-duration=8s", "--leader-elect-renew-deadline=6s",
    "--leader-elect-retry-period=500ms",
)  # fmt: skip
"""Of leaders that are soon replaced, yet not for a pause that a busy machine makes."""

LAST_WORDS: Final = 20
"""Lines of each process's log that are shown when a story has failed."""

T = TypeVar("T")


class Waited(AssertionError):
    """What a story waited for did not come."""


def until(look: Callable[[], T | None], what: str, seconds: float = PATIENCE) -> T:
    """The first answer of ``look`` that is true; the server may be away meanwhile.  Raises Waited."""
    end = time.monotonic() + seconds
    seen: T | Exception | None = None
    while time.monotonic() < end:
        try:
            if seen := look():
                return seen
        except (*UNREACHABLE, Refused) as error:
            seen = error
        time.sleep(0.1)
    raise Waited(f"{what}: {seen!r}")


@dataclass
class Stage:
    """A server and the processes of ours that use it; their logs are in ``folder``."""

    server: Server
    folder: Path
    running: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)
    secrets: list[str] = field(default_factory=list)
    """Tokens that processes were given; the administrator's is the first."""
    command: Sequence[str] = STROMBOLI
    """What starts one of our processes."""

    @property
    def api(self) -> Api:
        """The administrator's access."""
        return Api(self.login)

    @property
    def login(self) -> Login:
        """The administrator's way in."""
        return Login.of(self.server.kubeconfig)

    @property
    def kind(self) -> str:
        """``embedded`` or ``real``."""
        return type(self.server).__name__.lower()

    # ------------------------------------------------------------------ set up

    def install(self) -> None:
        """Our manifests, as the user installs them."""
        self.secrets.append(self.api.login.token)
        command = [*STROMBOLI, "manifests", "--no-webhooks"]  # no pods run here that would serve them
        printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        self.define(printed)

    def define(self, manifests: str | Iterable[object]) -> None:
        """Apply manifests, and wait until all kinds are served."""
        self.apply(manifests)
        kubectl(self.server.kubeconfig, "wait", "--for=condition=Established", "crd", "--all", "--timeout=60s")

    def apply(self, manifests: str | Iterable[object], *flags: str) -> None:
        """Apply manifests, as text or as objects, as a user does."""
        if not isinstance(manifests, str):
            manifests = json.dumps({"apiVersion": "v1", "kind": "List", "items": [*manifests]})
        kubectl(self.server.kubeconfig, "apply", "--server-side", *flags, "-f", "-", given=manifests)

    def add_nodes(self, *shapes: str) -> None:
        """Start simulated kubelets, and wait for their nodes."""
        nodes = [f"--nodes={shape}" for shape in shapes]
        self.start("kubelets", "kubelets", *nodes, f"--kubeconfig={self.server.kubeconfig}")
        count = sum(int(shape.partition("x")[0]) for shape in shapes)
        until(lambda: len(self.items("/api/v1/nodes")) == count, "nodes")

    # ------------------------------------------------------------------ processes

    def start(self, name: str, *arguments: str) -> subprocess.Popen[bytes]:
        """Start one of our commands; its log is ``name``.log, and a later one of the same name goes on with it."""
        with (self.folder / f"{name}.log").open("ab") as log:
            self.running[name] = subprocess.Popen([*self.command, *arguments], stdout=log, stderr=log)
        return self.running[name]

    def control(self, through: str = "") -> None:
        """Start the controllers, ``through`` a proxy if one is named."""
        self.start("controllers", "controllers", *self._flags("controllers", through), "--leader-elect=false")

    @contextmanager
    def skewed(self, offset: float = 0.0) -> Iterator[Callable[[float], None]]:
        """Clocks of processes started while the block lasts are ``offset`` seconds off, until told another number."""
        file = self.folder / "offset"

        def jump(offset: float) -> None:
            fresh = file.with_suffix(".new")
            fresh.write_text(str(offset))
            fresh.rename(file)

        jump(offset)
        self.command = (sys.executable, "-m", "e2e.skewed", str(file))
        try:
            yield jump
        finally:
            self.command = STROMBOLI

    @contextmanager
    def controllers(self, through: str = "") -> Iterator[None]:
        """The controllers are others while the block lasts; they reach the server by the proxy of that address."""
        ended(self.running["controllers"])
        self.control(through)
        try:
            yield
        finally:
            code = self.running["controllers"].poll()
            ended(self.running["controllers"])
            self.control()
            assert code is None, f"the controllers have ended by themselves: {code}"

    @contextmanager
    def scheduler(
        self, *flags: str, conf: str = CONFIGURATION, name: str = "scheduler", through: str = ""
    ) -> Iterator[subprocess.Popen[bytes]]:
        """A scheduler while the block lasts; ``conf`` is put into ``name``/volcano-scheduler.conf.

        ``through`` is the address of a proxy that it reaches the server by.
        """
        process = self.schedule(*flags, conf=conf, name=name, through=through)
        try:
            yield process
        finally:
            with suppress(ProcessLookupError):
                process.send_signal(signal.SIGCONT)
            ended(process)

    def schedule(
        self, *flags: str, conf: str = CONFIGURATION, name: str = "scheduler", through: str = ""
    ) -> subprocess.Popen[bytes]:
        """Start a scheduler; see :meth:`scheduler`."""
        self.configure(conf, name)
        where = f"--scheduler-conf={self.folder / name / 'volcano-scheduler.conf'}"
        beside = ["--listen-address=127.0.0.1:0", f"--cache-dump-dir={self.folder / name}", "--schedule-period=200ms"]
        elected = [] if any(flag.startswith("--leader-elect") for flag in flags) else ["--leader-elect=false"]
        return self.start(name, "serve", *self._flags(name, through), where, *beside, *elected, *flags)

    def configure(self, conf: str, name: str = "scheduler") -> None:
        """Replace a scheduler's configuration, as a mounted ConfigMap is: by another file under the same name."""
        path = self.folder / name / "volcano-scheduler.conf"
        path.parent.mkdir(exist_ok=True)
        fresh = path.with_suffix(".new")
        fresh.write_text(conf)
        fresh.rename(path)

    def _flags(self, name: str, through: str = "") -> Sequence[str]:
        return (
            f"--kubeconfig={self._kubeconfig(name, through)}",
            "-v=5",
            "--log-format=json",
            "--log-flush-frequency=1s",
        )

    def _kubeconfig(self, name: str, through: str) -> Path:
        """How a process of ours gets in: by a token of the ServiceAccount of our manifests, where there are such."""
        login, token = self.login, self.server.account(NAMESPACE, ACCOUNTS.get(name, SCHEDULER))
        if not token and not through:
            return self.server.kubeconfig
        token = token or login.token
        self.secrets.append(token)
        folder = self.folder / "access" / name
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "token").write_text(token)
        (folder / "ca.crt").write_text(login.authority)
        trust = {} if through else {"certificate-authority": str(folder / "ca.crt")}
        cluster = {"server": through or login.url, **trust}
        found = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "c", "cluster": cluster}],
            "users": [{"name": "u", "user": {"tokenFile": str(folder / "token")}}],
            "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
            "current-context": "x",
        }
        path = folder / "kubeconfig"
        path.write_text(json.dumps(found))
        return path

    def logged(self, name: str) -> list[Json]:
        """The lines of a process's log."""
        lines = (self.folder / f"{name}.log").read_bytes().splitlines(keepends=True)
        return [json.loads(line) for line in lines if line.startswith(b"{") and line.endswith(b"\n")]

    def led(self, name: str) -> bool:
        """Whether a scheduler has ever begun to lead."""
        return any(line["key"] == "leading" for line in self.logged(name))

    # ------------------------------------------------------------------ objects

    def items(self, path: str) -> list[Json]:
        """The objects of a collection."""
        found: list[Json] = self.api.call("GET", path)["items"]
        return found

    def create(self, *bodies: Json) -> None:
        """Create objects; a server that has just come back may not take them at once."""
        for body in bodies:
            until(partial(self._created, body), f"{body['kind']} {body['metadata']['name']}")

    def _created(self, body: Json) -> bool:
        """Whether an object is there: if it was so before, an answer was lost."""
        try:
            self.api.call("POST", collection_of(body), body)
        except Refused as error:
            if error.is_final and error.code != ALREADY_THERE:
                raise AssertionError(str(error)) from error
            return error.code == ALREADY_THERE
        return True

    def delete(self, path: str, **options: object) -> None:
        """Delete an object, which may be gone by now, or another one where ``preconditions`` name its uid."""
        try:
            self.api.call("DELETE", path, options)
        except Refused as error:
            if error.code != GONE and not (error.code == CONFLICT and "preconditions" in options):
                raise

    def queue(self, name: str, **spec: object) -> None:
        """Create a queue, and wait until it is open."""
        self.create({"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue", "metadata": {"name": name}})
        path = f"/apis/scheduling.volcano.sh/v1beta1/queues/{name}"
        if spec:
            self.api.call("PATCH", path, {"spec": spec}, "application/merge-patch+json")
        self.until_open(name)

    def until_open(self, name: str) -> None:
        """Wait until a queue is open."""
        path = f"/apis/scheduling.volcano.sh/v1beta1/queues/{name}"
        until(lambda: self.api.call("GET", path).get("status", {}).get("state") == "Open", f"queue {name} open")

    def pods(self, space: str, job: str = "") -> list[Json]:
        """The pods of a namespace, of one job if it is named."""
        select = f"?labelSelector=volcano.sh/job-name={job}" if job else ""
        return self.items(f"/api/v1/namespaces/{space}/pods{select}")

    def bound(self, space: str, job: str = "") -> dict[str, str]:
        """The nodes of the pods that have one, by uid."""
        pods = [pod for pod in self.pods(space, job) if pod["spec"].get("nodeName")]
        return {pod["metadata"]["uid"]: pod["spec"]["nodeName"] for pod in pods}

    def job(self, space: str, name: str) -> Json:
        """A job's status, with its phase as ``phase``."""
        status: Json = self.api.call("GET", f"{JOBS.format(space)}/{name}").get("status") or {}
        return {**status, "phase": (status.get("state") or {}).get("phase", "")}

    def until_phase(self, space: str, name: str, phase: str, seconds: float = PATIENCE) -> Json:
        """A job's status once it is in ``phase``."""

        def look() -> Json | None:
            status = self.job(space, name)
            return status if status["phase"] == phase else None

        return until(look, f"{space}/{name} {phase}", seconds)

    def until_bound(self, space: str, job: str, count: int, seconds: float = PATIENCE) -> dict[str, str]:
        """Wait until at least ``count`` pods of a job have nodes."""

        def look() -> dict[str, str] | None:
            found = self.bound(space, job)
            return found if len(found) >= count else None

        return until(look, f"{count} pods of {space}/{job} bound", seconds)

    def clear(self, space: str) -> None:
        """Delete what a story made in its namespace; a bare API server collects no garbage."""
        for path in (JOBS.format(space), f"/apis/apps/v1/namespaces/{space}/replicasets"):
            for found in self.items(path):
                self.delete(f"{path}/{found['metadata']['name']}")
        until(lambda: not self.items(JOBS.format(space)), f"no job in {space}")
        until(lambda: self._emptied(space), f"no pods in {space}")

    def _emptied(self, space: str) -> bool:
        paths = (f"/api/v1/namespaces/{space}/pods", GROUPS.format(space))
        found = [f"{path}/{one['metadata']['name']}" for path in paths for one in self.items(path)]
        for path in found:
            with suppress(Refused):
                self.api.call("DELETE", path, {"gracePeriodSeconds": 0})
        return not found

    # ------------------------------------------------------------------ judging

    @contextmanager
    def lawful(self) -> Iterator[Recorder]:
        """No law is broken and no request forbidden while the block lasts."""
        recorder = Recorder(self.api)
        recorder.start()
        try:
            yield recorder
        finally:
            recorder.stop()
        assert not recorder.broken
        assert not [_told(entry) for entry in self.server.forbidden()]

    def scene(self, space: str) -> Iterator[str]:
        """How everything stands: what each process said last, and jobs, PodGroups and pods of a namespace."""
        for name in self.running:
            said = (self.folder / f"{name}.log").read_text(errors="replace").splitlines()
            yield "\n".join([f"{name} said last:", *said[-LAST_WORDS:]])
        with suppress(*UNREACHABLE, Refused):
            for path in (JOBS, GROUPS, "/api/v1/namespaces/{}/pods"):
                for found in self.items(path.format(space)):
                    yield f"{found['metadata']['name']}: {found['spec'].get('nodeName', '')} {found.get('status')}"

    def end(self) -> None:
        """End all processes, the last one first, and the server."""
        for process in reversed(self.running.values()):
            ended(process)
        self.server.stop()


GROUPS: Final = "/apis/scheduling.volcano.sh/v1beta1/namespaces/{}/podgroups"
JOBS: Final = "/apis/batch.volcano.sh/v1alpha1/namespaces/{}/jobs"


def collection_of(body: Json) -> str:
    """The path of the collection that an object belongs to."""
    plurals = {"PriorityClass": "priorityclasses", "DeviceClass": "deviceclasses"}
    version, kind = body["apiVersion"], body["kind"]
    space = body["metadata"].get("namespace")
    place = f"/namespaces/{space}" if space else ""
    return f"/{'apis' if '/' in version else 'api'}/{version}{place}/{plurals.get(kind, kind.lower() + 's')}"


def _told(entry: Json) -> str:
    return f"{entry['user']['username']} {entry['verb']} {entry['requestURI']}: {entry['responseStatus']['code']}"


@contextmanager
def begun(server: Server, folder: Path) -> Iterator[Stage]:
    """A stage with a server that has nothing on it."""
    stage = Stage(server, folder)
    server.start()
    try:
        yield stage
    finally:
        stage.end()


@contextmanager
def staged(server: Server, folder: Path, nodes: Sequence[str] = (NODES,)) -> Iterator[Stage]:
    """A stage with everything but a scheduler."""
    with begun(server, folder) as stage:
        stage.install()
        stage.add_nodes(*nodes)
        stage.control()
        with stage.scheduler():  # it makes the queue that jobs without one are in
            stage.until_open("default")
        yield stage
