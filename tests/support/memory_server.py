"""An API server in memory that is reached without a network: objects, versions, pages, watches, and faults on demand.

It is a :class:`~stromboli.kube.transport.Transport`.
"""

from __future__ import annotations

import asyncio
import copy
import json
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any

from stromboli.kube.transport import Request, Response, Stream
from tests.support.faulty import Faulty, Refused
from tests.support.faulty import status as status

Json = dict[str, Any]
BOOKMARK_EVERY = 20.0
"""Seconds of silence after which a watch is told how far the server has come."""

CREATED = "2026-01-01T00:00:00Z"


def merged(old: Any, patch: Any, *, strategic: bool = False) -> Any:
    """RFC 7386; ``strategic`` lists of conditions are merged by type."""
    if not isinstance(patch, dict):
        return patch
    found = dict(old) if isinstance(old, dict) else {}
    for key, value in patch.items():
        if value is None:
            found.pop(key, None)
        elif strategic and key == "conditions":
            rest = [c for c in found.get(key, []) if c["type"] not in {new["type"] for new in value}]
            found[key] = rest + value
        else:
            found[key] = merged(found.get(key), value, strategic=strategic)
    return found


class _Watch:
    status = 200
    headers: dict[str, str] = {}

    def __init__(self, server: MemoryServer, request: Request) -> None:
        self.server, self.request = server, request
        self.queue: asyncio.Queue[bytes | Exception | None] = asyncio.Queue()
        self.muffled = False

    async def chunks(self) -> AsyncIterator[bytes]:
        loop = asyncio.get_running_loop()
        said = loop.time()
        end = said + float(self.request.params["timeoutSeconds"])
        while True:
            until = min(loop.time() + BOOKMARK_EVERY, end) if self.server.bookmarks else end
            try:
                async with asyncio.timeout_at(until):
                    line = await self.queue.get()
            except TimeoutError:
                line = self.server.bookmark() if until < end else None
            if self.muffled:  # a watch that has been silent for too long ends
                await asyncio.sleep(said + self.request.timeout - loop.time())
                return
            if line is None:
                return
            if isinstance(line, Exception):
                raise line
            said = loop.time()
            yield line


class MemoryServer(Faulty):
    """Objects by collection path and name; every change gets the next version and is kept for watches to resume."""

    def __init__(self) -> None:
        super().__init__()
        self.version = 100
        self.objects: dict[str, dict[tuple[str, str], Json]] = {}
        self.log: list[tuple[int, str, str, Json]] = []
        self.forgotten = 0
        self.watches: list[_Watch] = []
        self.bindings: list[tuple[str, str]] = []
        self.lists: dict[str, tuple[int, list[Json]]] = {}
        self.list_versions: Iterator[str] = iter(())  # what pages say instead of theirs
        self.bound_become = ""
        self.bookmarks = True

    # ------------------------------------------------------------------ the transport

    async def carried_out(self, request: Request) -> Response:
        return self.answer(request)

    @asynccontextmanager
    async def watched(self, request: Request) -> AsyncIterator[Stream]:
        since = int(request.params["resourceVersion"] or 0)
        if since < self.forgotten:
            yield Refused(status(410, "Expired", "too old resource version"))
            return
        watch = _Watch(self, request)
        for version, kind, collection, found in self.log:
            if version > since:
                self._offer(watch, kind, collection, found)
        self.watches.append(watch)
        try:
            yield watch
        finally:
            self.watches = [other for other in self.watches if other is not watch]

    def bookmark(self) -> bytes:
        """The line that tells how far the server has come."""
        found = {"metadata": {"resourceVersion": str(self.version)}}
        return json.dumps({"type": "BOOKMARK", "object": found}).encode() + b"\n"

    # ------------------------------------------------------------------ mischief

    def cut(self, error: Exception | None = None) -> None:
        """End all watches."""
        for watch in self.watches:
            watch.queue.put_nowait(error)

    def muffle(self) -> None:
        """Keep all watches of this moment open, and tell them nothing any more: they are dead, others live."""
        for watch in self.watches:
            watch.muffled = True

    def forget(self) -> None:
        """Watches cannot resume at any version before now."""
        self.forgotten, self.log = self.version, []

    def shout(self, kind: str, collection: str, found: Json) -> None:
        """Tell watches something, true or not."""
        for watch in self.watches:
            self._offer(watch, kind, collection, found)

    # ------------------------------------------------------------------ objects

    def put(self, collection: str, found: Json) -> Json:
        """Store an object as it is, new or changed."""
        found = copy.deepcopy(found)
        meta = found.setdefault("metadata", {})
        self.version += 1
        old = self.objects.setdefault(collection, {}).get((meta.get("namespace", ""), meta["name"]))
        meta.setdefault("uid", old["metadata"]["uid"] if old else f"uid-{self.version}")
        meta.setdefault("creationTimestamp", CREATED)
        meta["resourceVersion"] = str(self.version)
        self.objects[collection][meta.get("namespace", ""), meta["name"]] = found
        self._happened("MODIFIED" if old else "ADDED", collection, found)
        return found

    def drop(self, collection: str, name: str, namespace: str = "") -> None:
        """Remove an object."""
        found = self.objects[collection].pop((namespace, name))
        self.version += 1
        gone = copy.deepcopy(found)
        gone["metadata"]["resourceVersion"] = str(self.version)
        self._happened("DELETED", collection, gone)

    def get(self, collection: str, name: str, namespace: str = "") -> Json:
        """The object as it stands."""
        return self.objects[collection][namespace, name]

    def all(self, collection: str) -> list[Json]:
        """All objects of a collection."""
        return list(self.objects.get(collection, {}).values())

    def _happened(self, kind: str, collection: str, found: Json) -> None:
        self.log.append((self.version, kind, collection, found))
        self.shout(kind, collection, found)

    def _offer(self, watch: _Watch, kind: str, collection: str, found: Json) -> None:
        asked, namespace, *_ = _collection(watch.request.path)
        if asked == collection and _is_asked_for(found, namespace, watch.request):
            watch.queue.put_nowait(json.dumps({"type": kind, "object": found}).encode() + b"\n")

    # ------------------------------------------------------------------ requests

    def answer(self, request: Request) -> Response:
        """Carry a request out."""
        collection, namespace, name, below = _collection(request.path)
        stored = self.objects.setdefault(collection, {})
        if not name:
            return (
                self._listed(request, collection, namespace)
                if request.method == "GET"
                else self._created(request, collection, namespace)
            )
        if (namespace, name) not in stored:
            return status(404, "NotFound", f'{collection} "{name}" not found')
        body = json.loads(request.body) if request.body else {}
        verb = request.method.lower() if below in ("", "status") else below
        found: Response = getattr(self, f"_{verb}")(request, collection, stored[namespace, name], body)
        return found

    def _listed(self, request: Request, collection: str, namespace: str) -> Response:
        """One page of a list.  Later pages keep the version of the first, as kube-apiserver's do."""
        if token := request.params.get("continue"):
            version, found = self.lists[token]
        else:
            version = self.version
            found = [one for one in self.all(collection) if _is_asked_for(one, namespace, request)]
        limit = int(request.params.get("limit", 0)) or len(found)
        meta = {"resourceVersion": next(self.list_versions, str(version))}
        if len(found) > limit:
            meta["continue"] = f"token-{len(self.lists)}"
            self.lists[meta["continue"]] = version, found[limit:]
        return _ok({"metadata": meta, "items": found[:limit]})

    def _created(self, request: Request, collection: str, namespace: str) -> Response:
        body = json.loads(request.body or b"{}")
        if namespace:
            body["metadata"]["namespace"] = namespace
        if "name" not in body["metadata"]:
            body["metadata"]["name"] = f"{body['metadata']['generateName']}{self.version}"
        if (namespace, body["metadata"]["name"]) in self.objects[collection]:
            return status(409, "AlreadyExists")
        if collection == "pods":
            body.setdefault("status", {}).setdefault("phase", "Pending")
        return _ok(self.put(collection, body))

    def _get(self, _request: Request, _collection: str, found: Json, _body: Json) -> Response:
        return _ok(found)

    def _put(self, _request: Request, collection: str, found: Json, body: Json) -> Response:
        wanted = body["metadata"].get("resourceVersion")
        if wanted and wanted != found["metadata"]["resourceVersion"]:
            return status(409, "Conflict")
        return _ok(self.put(collection, body))

    def _patch(self, request: Request, collection: str, found: Json, body: Json) -> Response:
        wanted = body.get("metadata", {})
        if wanted.get("resourceVersion", found["metadata"]["resourceVersion"]) != found["metadata"]["resourceVersion"]:
            return status(409, "Conflict")
        if wanted.get("uid", found["metadata"]["uid"]) != found["metadata"]["uid"]:
            return status(422, "Invalid", "metadata.uid: field is immutable")
        strategic = "strategic" in request.headers["Content-Type"]
        return _ok(self.put(collection, merged(found, body, strategic=strategic)))

    def _delete(self, _request: Request, collection: str, found: Json, body: Json) -> Response:
        for key, wanted in body.get("preconditions", {}).items():
            if found["metadata"].get(key) != wanted:
                return status(409, "Conflict")
        meta = found["metadata"]
        if body.get("gracePeriodSeconds") == 0 or not found.get("spec", {}).get("nodeName"):
            self.drop(collection, meta["name"], meta.get("namespace", ""))
        else:
            self.put(collection, merged(found, {"metadata": {"deletionTimestamp": CREATED}}))
        return _ok({})

    def _binding(self, _request: Request, collection: str, found: Json, body: Json) -> Response:
        node, uid = body["target"]["name"], body["metadata"].get("uid")
        if uid and uid != found["metadata"]["uid"]:
            return status(409, "Conflict", "the uid differs")
        if found["spec"].get("nodeName"):
            return status(409, "Conflict", f"pod {found['metadata']['name']} is already assigned to node")
        self.bindings.append((found["metadata"]["namespace"] + "/" + found["metadata"]["name"], node))
        bound = {"spec": {"nodeName": node}, "metadata": {"annotations": body["metadata"].get("annotations", {})}}
        found = self.put(collection, merged(found, bound))
        if self.bound_become:
            self.put(collection, merged(found, {"status": {"phase": self.bound_become}}))
        return Response(201, {}, b"{}")


def _is_asked_for(found: Json, namespace: str, request: Request) -> bool:
    """Whether an object is in the namespace, if any, and has the name, if any, that a list or a watch asks for."""
    meta, (field, _, value) = found["metadata"], request.params.get("fieldSelector", "").partition("=")
    return namespace in ("", meta.get("namespace", "")) and (field != "metadata.name" or value == meta["name"])


def _ok(body: Json) -> Response:
    return Response(200, {}, json.dumps(body).encode())


def _collection(path: str) -> tuple[str, str, str, str]:
    """``/api/v1/namespaces/a/pods/b/status`` as ``("pods", "a", "b", "status")``."""
    parts = path.strip("/").split("/")
    rest = parts[2:] if parts[0] == "api" else parts[3:]
    namespace = ""
    if rest[0] == "namespaces" and len(rest) > 2:
        namespace, rest = rest[1], rest[2:]
    name, below = [*rest[1:], "", ""][:2]
    suffix = f".{parts[1]}" if (parts[1], rest[0]) == ("scheduling.k8s.io", "podgroups") else ""
    return rest[0] + suffix, namespace, name, below
