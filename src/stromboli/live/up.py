"""A complete small cluster in one process: API server, simulated nodes, controllers and scheduler."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from stromboli.cluster.body import Body, meta, part
from stromboli.cluster.documents import whole_objects
from stromboli.crds.kinds import JOBS, QUEUES
from stromboli.errors import in_words, innermost
from stromboli.framework.catalogue import LINES
from stromboli.framework.observe import SILENT, Observer
from stromboli.kube.access import from_kubeconfig
from stromboli.kube.client import Client
from stromboli.live.configuration import Source
from stromboli.live.controlling import Controllers
from stromboli.live.options import Options
from stromboli.live.scheduler import LiveScheduler
from stromboli.live.telling import Telling
from stromboli.server.api import Api
from stromboli.server.conditions import condition_of
from stromboli.server.keeping import preinstalled
from stromboli.server.kubelet.cluster import Inside
from stromboli.server.kubelet.kubelets import Kubelets
from stromboli.server.serving import Serving, serving

DONE: Final = frozenset({"Completed", "Failed", "Terminated", "Aborted"})
"""Phases in which a job is over."""
_POD_GROUPS: Final = ("scheduling.volcano.sh", "podgroups")
_WAITING: Final = ("Pending", "Inqueue", None)
_LOOK_EVERY: Final = 0.25
"""Seconds between two looks at the jobs."""


@dataclass(frozen=True)
class Setup:
    """What is to be there.

    ``nodes`` are Node objects; ``data`` is the directory that keeps everything, None for one that goes with the
    cluster; ``examples`` are objects to be created at the start; ``until_done`` ends the cluster when their jobs are
    over.
    """

    nodes: Sequence[Body] = ()
    data: Path | None = None
    port: int = 0
    scheduler: bool = True
    controllers: bool = True
    source: Source = field(default_factory=Source)
    period: float = 0.25
    examples: Sequence[Body] = ()
    until_done: bool = False
    observer: Observer = SILENT


@dataclass(frozen=True)
class Row:
    """A job as a line of the live view; amounts are numbers of pods, ``why`` is what keeps it waiting."""

    name: str
    queue: str
    phase: str
    wanted: int
    pending: int
    running: int
    succeeded: int
    failed: int
    why: str = ""


@dataclass(frozen=True)
class Up:
    """The cluster that runs."""

    setup: Setup
    serving: Serving

    def jobs(self) -> list[Row]:
        """Its jobs, by namespace and name."""
        api = self.serving.api
        return [_row(body, _why(api, body)) for body in _bodies(api, JOBS)]

    @property
    def all_done(self) -> bool:
        """Whether there were jobs and all are over."""
        jobs = self.jobs()
        return bool(jobs) and all(job.phase in DONE for job in jobs)


def _bodies(api: Api, resource: str) -> list[Body]:
    plural, _, group = resource.partition(".")
    return [entry.body for entry in api.store.of((group, plural)).sorted()]


def _why(api: Api, job: Body) -> str:
    """What the scheduler says of the job's PodGroup while that waits."""
    for collection, key in sorted(api.store.dependents.get(meta(job).get("uid", ""), ())):
        entry = api.store.get(collection, key) if collection == _POD_GROUPS else None
        if entry is not None and part(entry.body, "status", "phase") in _WAITING:
            return str(condition_of(entry.body, "Unschedulable").get("message", ""))
    return ""


def _row(body: Body, why: str) -> Row:
    spec, status = body.get("spec") or {}, body.get("status") or {}
    wanted = sum(task.get("replicas", 0) for task in spec.get("tasks") or ())
    pending, running, succeeded, failed = (
        status.get(name, 0) for name in ("pending", "running", "succeeded", "failed")
    )
    phase = part(status, "state", "phase") or "Pending"
    name = f"{meta(body).get('namespace')}/{meta(body)['name']}"
    return Row(name, spec.get("queue", ""), phase, wanted, pending, running, succeeded, failed, why)


@asynccontextmanager
async def up(setup: Setup) -> AsyncIterator[Up]:
    """The cluster, while the block lasts."""
    async with AsyncExitStack() as stack:
        folder = setup.data or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="stromboli-")))
        served = await stack.enter_async_context(serving(folder, durable=setup.data is not None, port=setup.port))
        kubelets = Kubelets(Inside(served.api), setup.nodes)
        parts: dict[str, Any] = {"simulated nodes": kubelets} if setup.nodes else {}
        if setup.scheduler or setup.controllers:
            client = Client.reaching(from_kubeconfig([str(served.access.kubeconfig)]), qps=0, burst=0)
            parts |= _brains(setup, await stack.enter_async_context(client))
        works = {name: found.run() for name, found in parts.items()}
        await stack.enter_async_context(_running(works, Telling(setup.observer)))
        if setup.nodes:
            await kubelets.registered.wait()
        await _create(served.api, setup.examples)
        yield Up(setup, served)


def _brains(setup: Setup, client: Client) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if setup.controllers:
        found["controllers"] = Controllers(client, observer=setup.observer)
    if setup.scheduler:
        options = Options(schedule_period=setup.period, audit_period=0.0)
        found["scheduler"] = LiveScheduler(client, options, setup.source, observer=setup.observer)
    return found


class Errors:
    """An observer that counts the errors it is told of."""

    def __init__(self) -> None:
        self.count = 0

    def wants(self, key: str) -> bool:
        """Whether a line of this key is one of an error."""
        return key in LINES and LINES[key].severity in ("E", "F")

    def tell(self, key: str, fields: Mapping[str, object]) -> None:
        """Count it."""
        self.count += 1

    def started(self, kind: str, name: str) -> None:
        """Not heard."""

    def ended(self, kind: str, name: str) -> None:
        """Not heard."""


@asynccontextmanager
async def _running(works: Mapping[str, Any], tell: Telling) -> AsyncIterator[None]:
    """Run works, by name, beside the block; the first that ends, which none should, is told and ends the block."""
    tasks = [asyncio.create_task(work, name=name) for name, work in works.items()]
    block = asyncio.current_task()
    failed: list[BaseException] = []

    def ended(task: asyncio.Task[Any]) -> None:
        if task.cancelled() or block is None:
            return
        error = innermost(task.exception() or RuntimeError(f"the {task.get_name()} ended before its time"))
        tell("part_ended", part=task.get_name(), error=in_words(error))
        failed.append(error)
        block.cancel()

    for task in tasks:
        task.add_done_callback(ended)
    try:
        yield
    except asyncio.CancelledError:
        if failed:
            raise failed[0] from None
        raise
    finally:
        for task in tasks:
            task.remove_done_callback(ended)
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _create(api: Api, bodies: Sequence[Body]) -> None:
    """Create queues, and the rest once the queues are open."""
    queues = [body for body in bodies if body.get("kind") == "Queue"]
    rest = [body for body in bodies if body.get("kind") != "Queue"]
    preinstalled(queues, api.catalogue, api.writer)
    if any(body.get("kind") in ("Job", "PodGroup") for body in rest):
        names = {meta(body)["name"] for body in queues} | {"default"}
        while not names <= {meta(body)["name"] for body in _bodies(api, QUEUES) if _is_open(body)}:
            await asyncio.sleep(0.05)
    preinstalled((_placed(api, body) for body in rest), api.catalogue, api.writer)


def _is_open(queue: Body) -> bool:
    return bool(part(queue, "status", "state") == "Open")


def _placed(api: Api, body: Body) -> Body:
    """The object in a namespace if it needs one."""
    resource = api.catalogue.of_kind(body.get("apiVersion", ""), body.get("kind", ""))
    if resource is None or not resource.namespaced:
        return body
    return {**body, "metadata": {"namespace": "default", **meta(body)}}


def objects_in(paths: Iterable[Path]) -> list[Body]:
    """The objects of manifests, files in the order of their names.  Raises ManifestError for what is no object."""
    files = (file for path in paths for file in (sorted(path.glob("*.yaml")) if path.is_dir() else [path]))
    return [body for file in files for body in whole_objects(file)]


async def hold(cluster: Up, show: Callable[[list[Row]], None]) -> None:
    """Show the jobs, each time that something changes, until cancelled or, if wished, until all jobs are over."""
    shown: list[Row] = []
    while True:
        rows = cluster.jobs()
        if rows != shown:
            show(rows)
            shown = rows
        if cluster.setup.until_done and cluster.all_done:
            return
        await asyncio.sleep(_LOOK_EVERY)
