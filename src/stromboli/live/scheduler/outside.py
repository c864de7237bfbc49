"""What a live cluster offers to plugins and actions: an API client, listers, a recorder, gates, the way to the server.

A cycle runs in a thread of its own, and plugins wait for the answers to what they ask; the work is done in the event
loop.  A plan in whose making any of it was asked for is marked as not replayable.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Coroutine, Iterator, Mapping, Sequence
from concurrent.futures import CancelledError, Future
from functools import partial
from typing import Any, Final, NamedTuple, TypeVar

from stromboli.cluster.kinds import KINDS
from stromboli.errors import ApiError, LostLease, NotFoundError, StromboliError, Unreachable
from stromboli.framework.books.plan import GateRemoval
from stromboli.framework.config.gates import ADMISSION
from stromboli.framework.extension.capabilities import WRITING
from stromboli.kube.client import ALL, Client, Select
from stromboli.kube.informer import Informer
from stromboli.kube.informers import DOUBT_EVERY
from stromboli.kube.recorder import Recorder, Regarding
from stromboli.kube.resources import COMMANDS, EVENTS, JOBS, LEASES, RESOURCES, Resource, plain
from stromboli.kube.transport import Checked
from stromboli.live.process.events import Telling
from stromboli.live.scheduler.extenders import Extenders
from stromboli.model.names import QUEUE_ALLOCATION_GATE
from stromboli.model.task import Task
from stromboli.narration.observe import SILENT

T = TypeVar("T")
Body = dict[str, Any]
"""An object as the server sends it: mappings, lists, texts and numbers."""

PATIENCE: Final = 30.0
"""Seconds that a plugin waits for an answer at most; scheduling waits with it."""
REFUSALS: Final = frozenset({401, 403, 404})
"""Answers that mean that a kind cannot be listed: we are not known, may not, or there is no such kind."""

REFUSED_FOR: Final = 60.0
"""Seconds for which such an answer counts before the server is asked again."""

_OTHERS: Final = {resource.kind: resource for resource in (JOBS, COMMANDS, EVENTS, LEASES)}


class Refusal(NamedTuple):
    """That a kind cannot be listed; ``until`` is when the server is asked again, by the event loop's clock."""

    error: ApiError
    until: float


class Outside:
    """The work behind what is offered; :meth:`run` it in the event loop of ``client``.

    ``may_write`` is asked right before each request that writes is sent, and LostLease raised where it says no;
    ``remove_gate`` takes the queue's gate off a pod.
    """

    def __init__(
        self, client: Client, recorder: Recorder, may_write: Callable[[], bool], *,
        tell: Telling | None = None, remove_gate: Callable[[GateRemoval], None] = lambda _: None,
    ) -> None:  # fmt: skip
        self.client = client.through(lambda transport: Checked(transport, self.refuse_unless_leading))
        self.recorder, self._may_write, self._tell = recorder, may_write, tell or Telling(SILENT)
        self._remove_gate = remove_gate
        self.extenders = Extenders(self.wait)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._informers: dict[str, Informer[Body]] = {}
        self._refusals: dict[str, Refusal] = {}
        self._following: list[asyncio.Task[None]] = []
        self._asked: set[Future[Any]] = set()

    def offered(self, features: Collection[str] = ()) -> Mapping[str, object]:
        """What a session may hand out, by name; ``features`` are the gates that are on."""
        calls = Calls(self)
        found: dict[str, object] = {
            "kube_client": calls,
            "vc_client": calls,
            "informers": Listers(self),
            "recorder": Events(self),
            "shared_dra_manager": SharedDevices(self),
            "extender": self.extenders,
        }
        if self.client.access is not None:
            found["client_config"] = self.client.access
        if ADMISSION in features:
            found["gate_manager"] = GateManager(self, self._remove_gate)
        return found

    def offered_to_read(self, features: Collection[str] = ()) -> Mapping[str, object]:
        """What a session may hand out in a run that writes nothing: no way past ``client``, and events go nowhere."""
        kept = {name: one for name, one in self.offered(features).items() if name not in WRITING}
        return {**kept, "recorder": NoEvents()}

    async def run(self) -> None:
        """Answer until cancelled; callers that wait then get no answer."""
        self._loop = asyncio.get_running_loop()
        try:
            while True:
                await asyncio.sleep(DOUBT_EVERY)
                for informer in self._informers.values():
                    informer.doubt()
        finally:
            self._loop = None
            for asked in [*self._asked]:
                asked.cancel()
            for task in self._following:
                task.cancel()
            await self.extenders.close()

    # ------------------------------------------------------------------ from the cycle's thread

    def wait(self, work: Coroutine[Any, Any, T]) -> T:
        """What ``work`` gives in the event loop.  Raises its errors, and Unreachable where it takes too long."""
        if self._loop is None:
            work.close()
            raise Unreachable("the scheduler ends")
        asked = asyncio.run_coroutine_threadsafe(work, self._loop)
        self._asked.add(asked)
        try:
            return asked.result(PATIENCE)
        except CancelledError:
            raise Unreachable("the scheduler ends") from None
        except TimeoutError:
            asked.cancel()
            raise Unreachable(f"no answer within {PATIENCE:g} s") from None
        finally:
            self._asked.discard(asked)

    def later(self, call: Callable[..., object], *arguments: object) -> None:
        """Have ``call`` made in the event loop, without waiting."""
        if self._loop is not None:
            self._loop.call_soon_threadsafe(call, *arguments)

    def refuse_unless_leading(self) -> None:
        """Raise LostLease where another scheduler may lead by now."""
        if not self._may_write():
            raise LostLease("another scheduler may lead by now; nothing is written")

    # ------------------------------------------------------------------ in the event loop

    async def followed(self, *versions: Resource[Body]) -> Informer[Body]:
        """The informer of a kind, in the first of its versions that the server has, followed from its first use on.

        Raises ApiError where the server refuses to list the kind; for :data:`REFUSED_FOR` it is not asked again.
        """
        path = versions[0].path()
        if path not in self._informers:
            resource = await self._listed(path, versions)
            if path not in self._informers:  # another thread of the plugin may have asked meanwhile
                self._follow(path, resource)
        await self._informers[path].synced.wait()
        return self._informers[path]

    def _follow(self, path: str, resource: Resource[Body]) -> None:
        informer = Informer(self.client, resource, troubled=partial(self._troubled, resource.kind))
        self._informers[path] = informer
        self._following.append(asyncio.create_task(informer.run()))

    async def _listed(self, path: str, versions: Sequence[Resource[Body]]) -> Resource[Body]:
        """The version that can be listed.  Raises ApiError."""
        known, now = self._refusals.get(path), asyncio.get_running_loop().time()
        if known is not None and now < known.until:
            raise known.error.with_traceback(None)
        try:
            found = await self._served(versions)
        except ApiError as error:
            if error.code in REFUSALS:
                if known is None or known.error.code != error.code:
                    self._tell("lister_refused", resource=versions[0], seconds=REFUSED_FOR, error=error)
                self._refusals[path] = Refusal(error, now + REFUSED_FOR)
            raise
        self._refusals.pop(path, None)
        return found

    async def _served(self, versions: Sequence[Resource[Body]]) -> Resource[Body]:
        for resource in versions[:-1]:
            try:
                await self.client.page(resource, limit=1)
            except ApiError as error:
                if not error.not_found:
                    raise
            else:
                return resource
        await self.client.page(versions[-1], limit=1)
        return versions[-1]

    def _troubled(self, kind: str, error: StromboliError) -> None:
        self._tell("following_trouble", kind=kind, error=error)


def resource_of(kind: str | Resource[Any]) -> Resource[Body]:
    """The resource of a kind by its name, or as given for kinds that are not known here.  Raises NotFoundError."""
    if not isinstance(kind, str):
        return kind.read_as(plain)
    found = RESOURCES.get(kind) or _OTHERS.get(kind)
    if found is None:
        why = f"kind {kind} is not known; give a stromboli.kube.resources.Resource in its place"
        raise NotFoundError("kind", kind, message=why)
    return found.read_as(plain)


class Calls:
    """An API client: each call waits for its answer, objects are dictionaries as the server has them.

    ``kind`` is a name such as ``Pod``, or a :class:`~stromboli.kube.resources.Resource`.  Calls raise ApiError,
    Unreachable, and those that write LostLease.
    """

    def __init__(self, outside: Outside) -> None:
        self._outside, self._client = outside, outside.client

    def get(self, kind: str | Resource[Any], name: str, namespace: str = "") -> Body:
        """One object."""
        return self._outside.wait(self._client.get(resource_of(kind), name, namespace))

    def all(self, kind: str | Resource[Any], namespace: str = "", select: Select = ALL) -> list[Body]:
        """All objects of a kind, or those of a namespace or selection."""
        return self._outside.wait(self._client.list_all(resource_of(kind), namespace, select))

    def create(self, kind: str | Resource[Any], body: Body, namespace: str = "") -> Body:
        """Create an object; returns it as the server has it."""
        return self._outside.wait(self._client.create(resource_of(kind), body, namespace))

    def patch(
        self, kind: str | Resource[Any], name: str, body: Body, namespace: str = "", subresource: str = ""
    ) -> Body:
        """Merge ``body`` into an object; returns it as the server has it."""
        resource = resource_of(kind)
        return self._outside.wait(self._client.patch(resource, name, namespace, body, subresource=subresource))

    def delete(self, kind: str | Resource[Any], name: str, namespace: str = "", *, uid: str = "") -> None:
        """Delete an object, only if it still is the one of ``uid`` where that is given."""
        self._outside.wait(self._client.delete(resource_of(kind), name, namespace, uid=uid))


class Listers:
    """Listers by kind: ``session.informers["ConfigMap"]``; a kind is followed from its first use on."""

    def __init__(self, outside: Outside) -> None:
        self._outside = outside

    def __getitem__(self, kind: str | Resource[Any]) -> Lister:
        return Lister(self._outside, resource_of(kind))


class Lister:
    """Objects of one kind as last seen; nothing is asked of the server.

    ``versions`` are those that servers may have it in, the one that is looked for first in front.  Raises ApiError
    where the server refuses to list the kind.
    """

    def __init__(self, outside: Outside, *versions: Resource[Body]) -> None:
        self._outside, self._versions = outside, versions
        outside.wait(outside.followed(*versions))

    def get(self, name: str, namespace: str = "") -> Body | None:
        """One object; None when there is none."""

        async def found() -> Body | None:
            return (await self._outside.followed(*self._versions)).get(name, namespace)

        return self._outside.wait(found())

    def all(self, namespace: str = "") -> list[Body]:
        """All objects, or those of a namespace."""

        async def found() -> list[Body]:
            objects = (await self._outside.followed(*self._versions)).objects()
            return [one for one in objects if not namespace or one["metadata"].get("namespace") == namespace]

        return self._outside.wait(found())


class SharedDevices:
    """What the cluster says of devices that pods claim (dynamic resource allocation), to be read alone.

    Allocations that a cycle has decided are seen once they are written.  Each raises ApiError where
    the server has no such kind, or does not let us list it.
    """

    def __init__(self, outside: Outside) -> None:
        self._outside = outside

    @property
    def resource_claims(self) -> Lister:
        """ResourceClaims."""
        return Lister(self._outside, *_devices("resourceclaims", "ResourceClaim", namespaced=True))

    @property
    def resource_slices(self) -> Lister:
        """ResourceSlices: the devices that drivers offer."""
        return Lister(self._outside, *_devices("resourceslices", "ResourceSlice"))

    @property
    def device_classes(self) -> Lister:
        """DeviceClasses."""
        return Lister(self._outside, *_devices("deviceclasses", "DeviceClass"))


def _devices(plural: str, kind: str, *, namespaced: bool = False) -> Iterator[Resource[Body]]:
    for version in KINDS["ResourceClaim"].api_versions:
        yield Resource(version, plural, kind, namespaced, plain)


class GateManager:
    """Takes the queue's own scheduling gate off pods, alongside the cycles; it never waits."""

    def __init__(self, outside: Outside, remove: Callable[[GateRemoval], None]) -> None:
        self._outside, self._remove = outside, remove

    def enqueue(self, task: Task) -> bool:
        """Have the gate removed; False where it is not the only one that the pod has.  Raises LostLease."""
        if task.gates != (QUEUE_ALLOCATION_GATE,):
            return False
        self._outside.refuse_unless_leading()
        self._outside.later(self._remove, GateRemoval(task.uid, task.key))
        return True


class NoEvents:
    """Takes what :class:`Events` takes and records nothing: what a shadow decides does not happen."""

    def record(self, *_: object, **__: object) -> None:
        """Nothing."""


class Events:
    """Records events on objects, as this scheduler; it never waits."""

    def __init__(self, outside: Outside) -> None:
        self._outside = outside

    def record(
        self,
        kind: str | Resource[Any],
        key: str,
        type: str,  # noqa: A002 - the API's word
        reason: str,
        message: str,
        uid: str = "",
    ) -> None:
        """Note that something has happened to ``key`` (``namespace/name``); ``type`` is Normal or Warning.

        Raises LostLease.
        """
        self._outside.refuse_unless_leading()
        resource = resource_of(kind)
        namespace, _, name = key.rpartition("/")
        about = Regarding(resource.api_version, resource.kind, namespace, name, uid)
        self._outside.later(self._outside.recorder.record, about, type, reason, message)
