"""The embedded API server without its sockets, in virtual time, with faults on demand.

It is a :class:`~stromboli.kube.transport.Transport`: requests go to the application that the real sockets serve.  What
tests arrange is put into the store as it is; what is asked of the API takes its usual way.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, Final
from urllib.parse import unquote, urlencode

from stromboli.cluster.body import encode
from stromboli.kube.transport import Request, Response, Stream
from stromboli.server.api import Api
from stromboli.server.http.http import Front
from stromboli.server.schema.resources import Resource
from stromboli.server.storage.store import CollectionName, event_line
from tests.support.faulty import Faulty, Json
from tests.support.memory_server import merged

TOKEN: Final = "token-of-the-test"
NAMESPACES: Final = ("ns", "volcano-system")
CREATED: Final = "2026-01-01T00:00:00Z"


class _Watch:
    """One watch: the application runs until it ends, or until it is cut."""

    status = 200
    headers: dict[str, str] = {}

    def __init__(self, server: EmbeddedServer, request: Request) -> None:
        self.collection = request.path.rpartition("/")[2]
        self.lines: asyncio.Queue[bytes | Exception | None] = asyncio.Queue()
        self.begun = asyncio.Event()
        self.task = asyncio.create_task(server.ask(request, self._take))
        self.task.add_done_callback(lambda _: self.lines.put_nowait(None))

    def _take(self, message: Json) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            self.begun.set()
        elif message.get("body"):
            self.lines.put_nowait(message["body"])

    async def chunks(self) -> AsyncIterator[bytes]:
        while (line := await self.lines.get()) is not None:
            if isinstance(line, Exception):
                raise line
            yield line


class EmbeddedServer(Faulty):
    """As :class:`~tests.support.memory_server.MemoryServer`; ``clock`` gives seconds since 1970."""

    def __init__(self, clock: Callable[[], float]) -> None:
        super().__init__()
        self.api = Api(lambda due: asyncio.get_running_loop().call_soon(due), clock=clock, token=TOKEN)
        self.front = Front(self.api)
        self.watches: list[_Watch] = []
        self.bindings: list[tuple[str, str]] = []
        self.bound_become = ""
        self._kinds: dict[str, Resource] = {}
        for found in sorted(self.api.catalogue, key=lambda found: not found.custom):  # our jobs, not Kubernetes'
            self._kinds.setdefault(found.plural, found)
            self._kinds.setdefault(found.title, found)
        for name in NAMESPACES:
            self.put("namespaces", {"metadata": {"name": name}, "status": {"phase": "Active"}})

    # ------------------------------------------------------------------ the transport

    async def carried_out(self, request: Request) -> Response:
        parts: list[Json] = []
        await self.ask(request, parts.append)
        start, *rest = parts
        headers = {key.decode().lower(): value.decode() for key, value in start["headers"]}
        if request.path.endswith("/binding") and start["status"] == 201:
            self._bound(request)
        return Response(start["status"], headers, b"".join(part.get("body", b"") for part in rest))

    @asynccontextmanager
    async def watched(self, request: Request) -> AsyncIterator[Stream]:
        watch = _Watch(self, request)
        self.watches.append(watch)
        try:
            await watch.begun.wait()
            yield watch
        finally:
            self.watches.remove(watch)
            watch.task.cancel()

    async def ask(self, request: Request, take: Callable[[Json], None]) -> None:
        """Have the application answer, message by message."""
        headers = {**request.headers, "Authorization": f"Bearer {TOKEN}"}
        scope = {
            "type": "http", "method": request.method, "path": unquote(request.path), "server": ("127.0.0.1", 443),
            "query_string": urlencode(request.params).encode(), "scheme": "https", "root_path": "",
            "headers": [(name.lower().encode(), text.encode()) for name, text in headers.items()],
        }  # fmt: skip
        bodies = iter([{"type": "http.request", "body": request.body or b""}])

        async def receive() -> Json:
            found = next(bodies, None)
            if found is None:
                await asyncio.Event().wait()  # the client never disconnects
            return found or {}

        async def send(message: Any) -> None:
            take(message)

        await self.front(scope, receive, send)

    def _bound(self, request: Request) -> None:
        """Note a binding, and be the kubelet that starts the pod."""
        _, _, rest = request.path.partition("/namespaces/")
        namespace, _, name, _ = rest.split("/")
        pod = self.get("pods", name, namespace)
        self.bindings.append((f"{namespace}/{name}", pod["spec"]["nodeName"]))
        if self.bound_become:
            self.put("pods", merged(pod, {"status": {"phase": self.bound_become}}))

    # ------------------------------------------------------------------ mischief

    def cut(self, error: Exception | None = None) -> None:
        """End all watches."""
        for watch in self.watches:
            watch.lines.put_nowait(error)

    def forget(self) -> None:
        """Watches cannot resume at any version before now."""
        for name in self.api.store.names():
            collection = self.api.store.of(name)
            collection.changes, collection.floor = [], self.api.store.version

    def shout(self, kind: str, collection: str, found: Json) -> None:
        """Tell watches something, true or not."""
        line = event_line(kind, encode(found))
        for watch in self.watches:
            if watch.collection == collection:
                watch.lines.put_nowait(line)

    # ------------------------------------------------------------------ objects

    @property
    def version(self) -> int:
        """The last resource version."""
        return self.api.store.version

    def put(self, collection: str, found: Json) -> Json:
        """Store an object as it is, new or changed."""
        kind = self._kinds[collection]
        old = self.api.store.get(kind.collection, self._key(found))
        meta = {"uid": old.body["metadata"]["uid"] if old else f"uid-{self.version + 1}", "creationTimestamp": CREATED}
        body = {"apiVersion": kind.group_version, "kind": kind.kind, **found, "metadata": {**meta, **found["metadata"]}}
        return dict(self.api.store.put(kind.collection, body).body)

    def drop(self, collection: str, name: str, namespace: str = "") -> None:
        """Remove an object."""
        self.api.store.drop(self._name(collection), (namespace, name))

    def get(self, collection: str, name: str, namespace: str = "") -> Json:
        """The object as it stands."""
        found = self.api.store.get(self._name(collection), (namespace, name))
        if found is None:
            raise KeyError(collection, namespace, name)
        return dict(found.body)

    def all(self, collection: str) -> list[Json]:
        """All objects of a collection."""
        return [dict(entry.body) for entry in self.api.store.of(self._name(collection)).sorted()]

    def _name(self, collection: str) -> CollectionName:
        return self._kinds[collection].collection

    def _key(self, found: Json) -> tuple[str, str]:
        return found["metadata"].get("namespace", ""), found["metadata"]["name"]
