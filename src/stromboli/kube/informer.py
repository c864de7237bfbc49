"""Following one kind of object: a list, then a watch, for as long as the process lives.

>>> informer = Informer(client, PODS, select=Select(fields="spec.nodeName!="))      # doctest: +SKIP
>>> informer.subscribe(on_change)
>>> task = asyncio.create_task(informer.run()); await informer.synced.wait()

An :class:`Informer` keeps what it has seen in :attr:`~Informer.store` and tells its subscribers every :class:`Change`,
in order, each object at each version once.  A watch that ends is taken up again at the last version; when the server
has forgotten that one (410), the objects are listed again and only the differences are reported.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from contextlib import aclosing
from enum import StrEnum
from typing import Final, Generic, TypeVar

import msgspec

from stromboli.cluster.body import newer
from stromboli.errors import ApiError, ManifestError, StromboliError, Unreachable, in_words
from stromboli.kube.client import ALL, Client, Page, Select, WatchEvent, watch_error
from stromboli.kube.collecting import not_collecting
from stromboli.kube.resources import Raw, Resource
from stromboli.kube.turns import Slices

T = TypeVar("T")
Key = tuple[str, str]
"""Namespace (empty for kinds of the whole cluster) and name."""

UNKNOWN_PAUSE: Final = 10.0
"""Seconds between attempts to list a kind that the server does not know."""

AT_ONCE: Final = 1.0
"""Seconds within which a watch that ends without a word has failed."""


class What(StrEnum):
    """What has happened to an object."""

    added = "added"
    modified = "modified"
    deleted = "deleted"


class Change(msgspec.Struct, Generic[T], frozen=True):
    """One object has come, changed or gone.

    ``object`` is how it stands, of a deleted one how it stood last; None when the informer does not keep objects and it
    was found missing in a list.  ``old`` is what was known before, if it is kept.
    """

    what: What
    key: Key
    uid: str
    version: str
    object: T | None
    old: T | None = None


class Known(msgspec.Struct, Generic[T], gc=False):
    """What is known of one object; ``object`` is None where it is not kept, or cannot be read."""

    uid: str
    version: str
    object: T | None = None


class Identity(msgspec.Struct):
    """Which object something is, and in which version."""

    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = msgspec.field(default="", name="resourceVersion")


class _Stub(msgspec.Struct):
    metadata: Identity = msgspec.field(default_factory=Identity)


_decode_stub: Final = msgspec.json.Decoder(_Stub).decode


def identity(raw: Raw) -> Identity:
    """What an object's metadata say of it; the rest of it is not read."""
    return _decode_stub(raw).metadata


Subscriber = Callable[[Change[T]], None]
Troubled = Callable[[StromboliError], None]


class Informer(Generic[T]):
    """Follows one kind of object, all of them or those that ``select`` and ``namespace`` leave.

    Without ``keep`` the store holds versions only, which saves memory where a subscriber keeps what it needs.
    ``troubled`` is told of everything that went wrong and was got over: broken watches, objects that cannot be read (as
    ManifestError; followers keep what was known before).  ``older`` are the resource's versions that servers may
    have in its place; of an ``optional`` one there are none, too, where we may not look.  ``relists`` and ``watches``
    count.
    """

    def __init__(
        self, client: Client, resource: Resource[T], *, namespace: str = "", select: Select = ALL, keep: bool = True,
        troubled: Troubled = lambda _: None, older: Iterable[Resource[T]] = (), optional: bool = False,
    ) -> None:  # fmt: skip
        self.client, self.resource = client, resource
        self._nothing = frozenset({404, 403} if optional else {404})
        self._versions = deque([resource, *older])
        self._last_version = self._versions[-1]
        self.namespace, self.select, self.keep = namespace, select, keep
        self.store: dict[Key, Known[T]] = {}
        self.synced = asyncio.Event()
        self.resource_version = ""
        self.relists = self.watches = 0
        self._troubled = troubled
        self._subscribers: list[Subscriber[T]] = []
        self._failures = 0
        self._again = self._is_unknown = False
        self._watching: asyncio.Future[None] | None = None
        self._heard = float("-inf")
        self._answered: dict[Key, Known[T]] = {}

    def subscribe(self, subscriber: Subscriber[T]) -> None:
        """Tell ``subscriber`` every change from now on; first, as added, everything that is known already."""
        self._subscribers.append(subscriber)
        for key, known in self.store.items():
            subscriber(Change(What.added, key, known.uid, known.version, known.object))

    def get(self, name: str, namespace: str = "") -> T | None:
        """The object as last seen, if it is kept."""
        known = self.store.get((namespace, name))
        return None if known is None else known.object

    def objects(self) -> Iterator[T]:
        """All objects as last seen, if they are kept."""
        return (known.object for known in self.store.values() if known.object is not None)

    def answered(self, key: Key, uid: str, version: str) -> bool:
        """The server has answered a write with an object in this version; False where it is known to be gone again.

        It may be created, and deleted, between the end of a watch and the next list, which only differs from what was
        known: so it counts as known until a list or a watch that has come as far says more.
        """
        if key in self.store:
            return True
        if self.resource_version and not newer(version, self.resource_version):
            return False
        before = self._answered.get(key)
        if before is None or newer(version, before.version):
            self._answered[key] = Known(uid, version)
        return True

    # ------------------------------------------------------------------ following

    def refresh(self) -> None:
        """List again as soon as possible; :attr:`synced` is set again when that is done.

        There is no need to wait for a kind that the server does not know: it is asked for again and again anyway.
        """
        if not self._is_unknown:
            self.synced.clear()
        self._again = True
        self._end_watch()

    def forget(self) -> None:
        """Forget what has been seen: everything is listed again, as soon as possible, and reported as added."""
        self.store.clear()
        self.refresh()

    def doubt(self) -> None:
        """Resume a watch that has said nothing since requests got no answer, if they are answered again.

        A proxy may keep it open although the server has gone and come back.
        """
        if self.client.contact.doubts(self._heard):
            self._end_watch()

    def _end_watch(self) -> None:
        if self._watching is not None:
            self._watching.cancel()

    async def run(self) -> None:
        """Follow until cancelled."""
        while True:
            try:
                if self._again:
                    self._again, self.resource_version = False, ""
                if not self.resource_version:
                    await self._relist()
                await self._watch_until_refreshed()
                await asyncio.sleep(self.client.backoff(1))
            except ApiError as error:
                await self._recover(error)
            except Exception as error:  # noqa: BLE001  # nothing else follows the kind
                await self._rest(error)

    async def _recover(self, error: ApiError) -> None:
        if error.gone:
            self.resource_version = ""
        if error.code in self._nothing and not self.resource_version:
            await self._unknown(error)
        else:
            await self._rest(error)

    async def _unknown(self, error: ApiError) -> None:
        """The server does not know the kind (yet), perhaps in another version: else there are none of it."""
        self._versions.rotate(-1)
        tried, self.resource = self.resource, self._versions[0]
        if tried is not self._last_version:
            return
        if not self.synced.is_set():
            self._troubled(error)
        self._is_unknown = True
        self.synced.set()
        await asyncio.sleep(UNKNOWN_PAUSE)

    async def _rest(self, error: Exception) -> None:
        self._troubled(error if isinstance(error, StromboliError) else ManifestError(in_words(error)))
        self._failures += 1
        await asyncio.sleep(self.client.backoff(self._failures, 0.2))

    async def _watch_until_refreshed(self) -> None:
        if self._again:
            return
        self._watching = asyncio.ensure_future(self._watch())
        try:
            await self._watching
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if task is None or task.cancelling():  # we are to end, not only the watch
                raise
        finally:
            self._watching.cancel()
            self._watching = None

    async def _watch(self) -> None:
        """Raises Unreachable for a watch that ends at once: another one would so, too."""
        self.watches += 1
        began = self._heard = _now()
        version = self.resource_version
        lines = self.client.watch(self.resource, self.namespace, self.select, resource_version=version)
        busy = Slices()
        async with aclosing(lines):
            async for event in lines:
                self._heard = _now()
                self._hear(event)
                self._failures = 0
                await busy.give_way()
        if self._heard == began and _now() - began < AT_ONCE:
            raise Unreachable("it ended at once", request=f"watch of {self.resource}")
        self._failures = 0

    def _hear(self, event: WatchEvent) -> None:
        if event.type == "ERROR":
            raise watch_error(event)
        stub = identity(event.object)
        if event.type == "DELETED":
            self._deleted(stub, event.object)
        elif event.type != "BOOKMARK":
            self._seen(stub, event.object)
        self.resource_version = stub.resource_version

    # ------------------------------------------------------------------ listing

    async def _relist(self) -> None:
        """List everything and tell the differences, page by page."""
        self.relists += 1
        seen: set[Key] = set()
        version = ""
        busy = Slices()
        with not_collecting():
            async for page, begins in self._pages():
                if begins:
                    seen.clear()
                    version = page.resource_version
                for raw in page.items:
                    stub = identity(raw)
                    seen.add((stub.namespace, stub.name))
                    self._seen(stub, raw)
                    await busy.give_way()
        for key in list(self.store):
            if key not in seen and key in self.store:  # what is forgotten meanwhile is not missed
                self._missing(key)
            await busy.give_way()
        self._settle_answered(version)
        self.resource_version = version
        self._is_unknown = False
        if not self._again:  # else a caller wants to know what has happened since this list was begun
            self.synced.set()

    def _settle_answered(self, version: str) -> None:
        """Of what was answered, report as deleted what a list in this version would have shown."""
        for key, known in list(self._answered.items()):
            if not newer(known.version, version):
                del self._answered[key]
                self._tell(Change(What.deleted, key, known.uid, known.version, None))

    async def _pages(self) -> AsyncIterator[tuple[Page, bool]]:
        """All pages, and of each whether a list begins with it: when the rest expires, everything comes at one go.

        Pages of one list may differ in version where a proxy answers for several servers.
        """
        begins = True
        try:
            async for page in self.client.pages(self.resource, self.namespace, self.select):
                yield page, begins
                begins = False
        except ApiError as error:
            if not error.gone:
                raise
            yield await self.client.page(self.resource, self.namespace, self.select, limit=0), True

    # ------------------------------------------------------------------ changes

    def _seen(self, stub: Identity, raw: msgspec.Raw) -> None:
        key = (stub.namespace, stub.name)
        known = self.store.get(key)
        if known is not None and known.uid == stub.uid and not newer(stub.resource_version, known.version):
            return
        found = self._read(stub, raw)
        if known is not None and known.uid != stub.uid:
            self._missing(key)
            known = None
        self.store[key] = Known(stub.uid, stub.resource_version, found if self.keep else None)
        self._answered.pop(key, None)
        if found is not None:
            what = What.added if known is None else What.modified
            self._tell(Change(what, key, stub.uid, stub.resource_version, found, known.object if known else None))

    def _deleted(self, stub: Identity, raw: msgspec.Raw) -> None:
        key = (stub.namespace, stub.name)
        known = self.store.get(key)
        if known is None:
            return
        if known.uid != stub.uid:
            if newer(stub.resource_version, known.version):  # old news had brought it back
                self._missing(key)
            return
        del self.store[key]
        last = self._read(stub, raw) or known.object
        self._tell(Change(What.deleted, key, stub.uid, stub.resource_version, last, known.object))

    def _missing(self, key: Key) -> None:
        known = self.store.pop(key)
        self._tell(Change(What.deleted, key, known.uid, known.version, known.object, known.object))

    def _read(self, stub: Identity, raw: msgspec.Raw) -> T | None:
        try:
            return self.resource.decode(raw)
        except ManifestError as error:
            self._troubled(error)
        except Exception as error:  # noqa: BLE001  # one object's trouble must not be all others'
            self._troubled(unforeseen("read", error, self.resource.kind, (stub.namespace, stub.name)))
        return None

    def _tell(self, change: Change[T]) -> None:
        for subscriber in self._subscribers:
            subscriber(change)


def unforeseen(what: str, error: Exception, kind: str, key: Key) -> ManifestError:
    """That an object cannot be read, or taken in (``what``), because of an unexpected error."""
    name = "/".join(part for part in key if part)
    return ManifestError(f"cannot be {what}: {in_words(error)}", object=f"{kind} {name}")


def _now() -> float:
    return asyncio.get_running_loop().time()
