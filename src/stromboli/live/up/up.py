"""A complete small cluster in one process: API server, simulated nodes, controllers and scheduler."""

from __future__ import annotations

import asyncio
import logging
import tempfile
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, Final

import msgspec

from stromboli.api.batch import FINISHED
from stromboli.api.kinds import JOBS, KINDS, QUEUES, SCHEDULING_GROUP
from stromboli.api.scheduling import POD_GROUP_INQUEUE, POD_GROUP_PENDING
from stromboli.cluster.body import Body, key_of, meta, part
from stromboli.cluster.files.documents import whole_objects
from stromboli.errors import in_words, innermost
from stromboli.kube.access import from_kubeconfig
from stromboli.kube.client import Client
from stromboli.kube.credentials import Fixed, Login
from stromboli.kube.memory import giving_back
from stromboli.kube.recorder import Recorder
from stromboli.live.controllers.controller_runner import Controllers
from stromboli.live.process.events import Telling
from stromboli.live.process.process import AGENT
from stromboli.live.scheduler.configuration import Source
from stromboli.live.scheduler.options import Options
from stromboli.live.scheduler.recording import record
from stromboli.live.scheduler.scheduler import LiveScheduler
from stromboli.live.up.default_scheduler import DefaultScheduler
from stromboli.live.up.placing_state import DEFAULT_SCHEDULER
from stromboli.live.up.shown_configuration import refusal_event, show_configuration
from stromboli.live.up.stored_nodes import silence_all_but, stored_nodes
from stromboli.live.up.strangers import Strangers
from stromboli.model.names import DEFAULT_QUEUE, NAMESPACE, POD_GROUP_NOT_ADMITTED, POD_GROUP_UNSCHEDULABLE
from stromboli.narration.catalogue import LINES
from stromboli.narration.observe import SILENT, Observer, Silent
from stromboli.server.api import Api
from stromboli.server.controllers.controllers import preinstalled
from stromboli.server.controllers.workloads.room import Workloads
from stromboli.server.http.serving import Serving, serving
from stromboli.server.http.tokens import service_account
from stromboli.server.kubelet.cluster import Inside
from stromboli.server.kubelet.kubelets import Kubelets
from stromboli.server.kubelet.real.pods import RealKubelets
from stromboli.server.print.conditions import condition_of

DONE: Final = frozenset(FINISHED)
"""Phases in which a job is over."""
_POD_GROUPS: Final = (SCHEDULING_GROUP, KINDS["PodGroup"].plural)
_WAITING: Final = (POD_GROUP_PENDING, POD_GROUP_INQUEUE, None)
UP: Final = "stromboli-up"
"""The source of events that come from neither scheduler nor controllers."""
_LOOK_EVERY: Final = 0.25
"""Seconds between two looks at the jobs."""
_QUEUED: Final = ("Job", "PodGroup")
EXAMPLES_WITHIN: Final = 5.0
"""Seconds that a start waits for the queues of its examples to open; the cluster is there without them then."""
_LOG: Final = logging.getLogger(__name__)


@dataclass(frozen=True)
class Setup:
    """What is to be there.

    ``nodes`` are Node objects, with ``keep_nodes`` only for a start that finds no simulated nodes stored, which are
    kept otherwise; ``data`` is the directory that keeps everything, None for one that goes with the cluster;
    ``examples`` are objects to be created at the start; ``until_done`` ends the cluster when their jobs are over;
    ``real_pods`` runs pods as processes of this machine; ``record`` is the folder of the scheduler's record.
    """

    nodes: Sequence[Body] = ()
    keep_nodes: bool = False
    data: Path | None = None
    port: int = 0
    scheduler: bool = True
    controllers: bool = True
    source: Source = field(default_factory=Source)
    period: float = 0.25
    examples: Sequence[Body] = ()
    until_done: bool = False
    real_pods: bool = False
    record: Path | None = None
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
    creation: asyncio.Task[None]
    """That of the examples."""

    def jobs(self) -> list[Row]:
        """Its jobs, by namespace and name."""
        api = self.serving.api
        return [_row(body, _why(api, body)) for body in _bodies(api, JOBS)]

    @property
    def all_done(self) -> bool:
        """Whether there were jobs and all are over, those of the examples included."""
        jobs = self.jobs()
        return bool(jobs) and self.creation.done() and all(job.phase in DONE for job in jobs)


def _bodies(api: Api, resource: str) -> list[Body]:
    plural, _, group = resource.partition(".")
    return [entry.body for entry in api.store.of((group, plural)).sorted()]


def _why(api: Api, job: Body) -> str:
    """What keeps the job from its pods, else what the scheduler says of its PodGroup while that waits."""
    if said := part(job, "status", "state", "message"):
        return str(said)
    for collection, key in sorted(api.store.dependents.get(meta(job).get("uid", ""), ())):
        entry = api.store.get(collection, key) if collection == _POD_GROUPS else None
        if entry is not None and part(entry.body, "status", "phase") in _WAITING:
            said = (condition_of(entry.body, kind) for kind in (POD_GROUP_NOT_ADMITTED, POD_GROUP_UNSCHEDULABLE))
            return next((str(one["message"]) for one in said if one.get("message")), "")
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
        if setup.keep_nodes:
            setup = replace(setup, nodes=stored_nodes(served.api) or setup.nodes)
        silence_all_but(setup.nodes, served.api)
        if setup.scheduler:
            setup = replace(setup, source=show_configuration(served.api, setup.source, folder))
        kubelets = _kubelets(setup, served.api)
        parts: dict[str, Any] = {"simulated nodes": kubelets} if setup.nodes else {}
        if setup.scheduler or setup.controllers:
            access = from_kubeconfig([str(served.access.kubeconfig)])
            client = await stack.enter_async_context(Client.reaching(access, qps=0, burst=0))
            token = served.api.tokens.of_part(service_account(NAMESPACE, AGENT))  # policies know the scheduler by it
            own = msgspec.structs.replace(access, credentials=Fixed(Login({"Authorization": f"Bearer {token}"})))
            planner = await stack.enter_async_context(Client.reaching(own, qps=0, burst=0))
            parts |= _brains(setup, client, planner, served.api, stack)
        works = {name: found.run() for name, found in parts.items()} | {"memory": giving_back()}
        await stack.enter_async_context(_running(works, Telling(setup.observer)))
        if setup.nodes:
            await kubelets.registered.wait()
        creation = await _created_soon(served.api, setup.examples)
        stack.callback(creation.cancel)
        yield Up(setup, served, creation)


def _kubelets(setup: Setup, api: Api) -> Kubelets:
    """The nodes' kubelets, with pods as processes if wished."""
    if not setup.real_pods:
        return Kubelets(Inside(api), setup.nodes)
    real = RealKubelets(Inside(api), setup.nodes)
    api.written = real.written
    return real


def _brains(setup: Setup, client: Client, planner: Client, api: Api, stack: AsyncExitStack) -> dict[str, Any]:
    """Controllers and scheduler by name, the scheduler with a client of its own, ``planner``."""
    found: dict[str, Any] = {}
    if setup.controllers:
        found["controllers"] = Controllers(client, observer=setup.observer)
        found["controllers of workloads"] = Workloads(api)
    if setup.scheduler:
        options = Options(schedule_period=setup.period, audit_period=0.0)
        scheduler = found["scheduler"] = LiveScheduler(planner, options, setup.source, observer=setup.observer)
        if setup.source.path != setup.source.called:
            scheduler.configuration.when_refused = partial(refusal_event, api, scheduler.recorder)
        if setup.record is not None:
            stack.callback(record(scheduler, setup.record).close)
        found["default scheduler"] = DefaultScheduler(api, Recorder(client, DEFAULT_SCHEDULER))
        names = (*options.scheduler_names, DEFAULT_SCHEDULER)
        found["watch for pods of other schedulers"] = Strangers(api, Recorder(client, UP), names)
    return found


class Errors(Silent):
    """An observer that counts the errors it is told of."""

    def __init__(self) -> None:
        self.count = 0

    def wants(self, key: str) -> bool:
        """Whether a line of this key is one of an error."""
        return key in LINES and LINES[key].severity in ("E", "F")

    def tell(self, key: str, fields: Mapping[str, object]) -> None:
        """Count it."""
        self.count += 1


@asynccontextmanager
async def _running(works: Mapping[str, Any], tell: Telling) -> AsyncIterator[None]:
    """Run coroutines, by name, alongside the block; the first to end (none should) is reported and ends the block."""
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


async def _created_soon(api: Api, examples: Sequence[Body]) -> asyncio.Task[None]:
    """The creation of the examples, done unless their queues take long to open: then it goes on, and that is told."""
    creation = asyncio.create_task(_create(api, examples))
    await asyncio.wait({creation}, timeout=EXAMPLES_WITHIN)
    if creation.done():
        creation.result()
        return creation
    _LOG.warning("the examples wait until a scheduler and controllers have opened queues %s", _closed(api, examples))
    creation.add_done_callback(_tell_failure)
    return creation


def _tell_failure(creation: asyncio.Task[None]) -> None:
    if not creation.cancelled() and (error := creation.exception()) is not None:
        _LOG.error("the examples cannot be created: %s", in_words(error))


async def _create(api: Api, bodies: Sequence[Body]) -> None:
    """Create queues, and the rest once the queues have a state; what is there already stays as it is."""
    queues = [body for body in bodies if body.get("kind") == "Queue"]
    preinstalled(queues, api.catalogue, api.writer)
    rest = [body for body in bodies if body.get("kind") != "Queue"]
    while _closed(api, rest):
        await asyncio.sleep(0.05)
    placed = (_placed(api, body) for body in rest)
    preinstalled((body for body in placed if not _is_there(api, body)), api.catalogue, api.writer)


def _closed(api: Api, bodies: Iterable[Body]) -> str:
    """The queues of jobs and PodGroups that no controller has looked at yet; one that a user has closed has a state."""
    wanted = {part(body, "spec", "queue") or DEFAULT_QUEUE for body in bodies if body.get("kind") in _QUEUED}
    known = {meta(body)["name"] for body in _bodies(api, QUEUES) if part(body, "status", "state")}
    return ", ".join(sorted(wanted - known))


def _is_there(api: Api, body: Body) -> bool:
    """Whether an object of this name exists: what admission says of it now does not matter."""
    resource = api.catalogue.of_kind(body.get("apiVersion", ""), body.get("kind", ""))
    return resource is not None and api.store.get(resource.collection, key_of(body)) is not None


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
