"""An API server's verbs, asynchronously: read, write, watch; held to a rate, tried again where that is safe.

>>> async with Client(HttpTransport(access), access.credentials) as client:      # doctest: +SKIP
...     pod = await client.get(PODS, "web-0", "default")
...     await client.patch(PODS, "web-0", "default", {"metadata": {"labels": {"a": "b"}}})

What is tried again: any request that the server turned away (429, or 503 with Retry-After) after the time it names, but
not after more than :data:`LONGEST_ASKED`; after a 401 once, with a fresh login; and requests that may be repeated
without harm (reads, and writes that say so) after a broken connection, a timeout or a 5xx.  Everything else is the
caller's decision: ApiError is the server's no, Unreachable means that the outcome is unknown.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from copy import copy
from enum import StrEnum
from typing import Any, Final, NamedTuple, Self, TypeVar

import msgspec

from stromboli.errors import ApiError, ManifestError, Unreachable
from stromboli.kube.access import Access
from stromboli.kube.bucket import Bucket
from stromboli.kube.contact import Contact
from stromboli.kube.credentials import Credentials, Fixed, Login
from stromboli.kube.http_transport import HttpTransport
from stromboli.kube.resources import PODS, Raw, Resource
from stromboli.kube.transport import Request, Response, Transport
from stromboli.kube.turns import Turnstile

T = TypeVar("T")
Json = Mapping[str, Any]

QPS: Final = 2000.0
BURST: Final = 2000
"""The reference's defaults of ``--kube-api-qps`` and ``--kube-api-burst``."""

TRIES: Final = 5
"""Attempts for one request before its failure is the caller's."""

FIRST_PAUSE: Final = 0.1
LONGEST_PAUSE: Final = 5.0
"""Seconds between attempts: doubling from the first to the longest, each drawn from the half below."""

LONGEST_ASKED: Final = 60.0
"""Seconds of a Retry-After that are waited at most: a busy API server asks for seconds, and hours are a mistake."""

PAGE: Final = 500
"""Objects of one page of a list: more would keep the event loop busy for too long at once."""

MANAGER: Final = "stromboli"
"""The field manager of our writes."""

WATCH_SECONDS: Final = (30.0, 40.0)
"""How long one watch is asked for: drawn between these, so that not all end at once.

By then a server ends a watch, and says shortly before how far it has come, if it has come any further.  So a watch
without a word for :data:`SILENCE` is dead, though the server may be there; and a quiet one is resumed where it was.
"""

SILENCE: Final = 45.0
"""Seconds without a word after which a watch is given up: what Kubernetes' own clients take to notice a dead one.

They ping a connection on which nothing has come for 30 s, and give it 15 s; over HTTP/1.1 there are no pings.
"""


class Patch(StrEnum):
    """The four kinds of patch, by their content types."""

    merge = "application/merge-patch+json"
    strategic = "application/strategic-merge-patch+json"
    json = "application/json-patch+json"
    apply = "application/apply-patch+yaml"


class Page(NamedTuple):
    """Part of a list: the objects as JSON, the token of the next page (empty at the end), the list's version."""

    items: list[msgspec.Raw]
    next: str
    resource_version: str


class WatchEvent(msgspec.Struct):
    """One line of a watch: ADDED, MODIFIED, DELETED, BOOKMARK or ERROR, and the object as JSON."""

    type: str
    object: msgspec.Raw


class Select(NamedTuple):
    """Which objects: by label selector and field selector, each in the API's own form, empty for all."""

    labels: str = ""
    fields: str = ""

    def params(self) -> dict[str, str]:
        """The query's parameters."""
        both = {"labelSelector": self.labels, "fieldSelector": self.fields}
        return {name: text for name, text in both.items() if text}


ALL: Final = Select()


class _ListMeta(msgspec.Struct):
    resource_version: str = msgspec.field(default="", name="resourceVersion")
    next: str = msgspec.field(default="", name="continue")


class _List(msgspec.Struct):
    metadata: _ListMeta = msgspec.field(default_factory=_ListMeta)
    items: list[msgspec.Raw] | None = None


class _Status(msgspec.Struct):
    code: int = 0
    reason: str = ""
    message: str = ""


_decode_list: Final = msgspec.json.Decoder(_List).decode
_decode_event: Final = msgspec.json.Decoder(WatchEvent).decode
_decode_status: Final = msgspec.json.Decoder(_Status).decode


class Client:
    """Talks to one API server through ``transport``, as ``credentials`` say.

    At most ``qps`` requests a second leave, ``burst`` at once; watches are not counted.  ``dice`` spreads the pauses.
    ``sent`` counts the attempts by method, ``contact`` is how well the server can be reached, and ``agent`` is what
    its logs call us; ``access`` is the server's address and our identity there, if known.
    """

    def __init__(
        self, transport: Transport, credentials: Credentials | None = None, *, qps: float = QPS, burst: int = BURST,
        dice: random.Random | None = None, agent: str = MANAGER, access: Access | None = None,
    ) -> None:  # fmt: skip
        self._transport, self.access, self._credentials = transport, access, credentials or Fixed(Login())
        self._bucket = Bucket(qps, burst)
        self._turnstile = Turnstile()
        self._headers = {"Accept": "application/json", "User-Agent": agent}
        self.dice = dice or random.Random()
        self.sent: dict[str, int] = {}
        self.contact = Contact()

    @classmethod
    def reaching(
        cls, access: Access, *, connections: int = 64, qps: float = QPS, burst: int = BURST, agent: str = MANAGER
    ) -> Self:
        """A client over HTTP."""
        transport = HttpTransport(access, connections)
        return cls(transport, access.credentials, qps=qps, burst=burst, agent=agent, access=access)

    def through(self, wrap: Callable[[Transport], Transport]) -> Self:
        """The same client, with its rate and its counts, which sends through what ``wrap`` makes of the transport."""
        other = copy(self)
        other._transport = wrap(self._transport)
        return other

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._transport.close()

    # ------------------------------------------------------------------ reading

    async def get(self, resource: Resource[T], name: str, namespace: str = "") -> T:
        """One object.  Raises ApiError (``not_found`` where there is none)."""
        return resource.decode(await self.request("GET", resource.path(namespace, name)))

    async def page(
        self, resource: Resource[T], namespace: str = "", select: Select = ALL, *, limit: int = PAGE, token: str = ""
    ) -> Page:
        """One page of a list; ``limit`` 0 asks for everything at once."""
        params = select.params() | ({"limit": str(limit)} if limit else {}) | ({"continue": token} if token else {})
        found = _read(_decode_list, await self.request("GET", resource.path(namespace), params=params))
        return Page(found.items or [], found.metadata.next, found.metadata.resource_version)

    async def pages(self, resource: Resource[T], namespace: str = "", select: Select = ALL) -> AsyncIterator[Page]:
        """A whole list page by page.  Raises ApiError (``gone``) when it takes so long that the rest has expired."""
        token = ""
        while True:
            page = await self.page(resource, namespace, select, token=token)
            yield page
            token = page.next
            if not token:
                return

    async def list_all(self, resource: Resource[T], namespace: str = "", select: Select = ALL) -> list[T]:
        """All objects, as of one moment."""
        return [resource.decode(raw) async for page in self.pages(resource, namespace, select) for raw in page.items]

    async def watch(
        self, resource: Resource[T], namespace: str = "", select: Select = ALL, *, resource_version: str = "",
        silence: float = SILENCE,
    ) -> AsyncGenerator[WatchEvent, None]:  # fmt: skip
        """What happens after ``resource_version``, bookmarks and errors included, until the server ends it.

        That is soon (:data:`WATCH_SECONDS`); a ``silence`` of so many seconds ends it too.  Raises ApiError,
        Unreachable, and ManifestError for a line that is no event.
        """
        params = select.params() | {
            "watch": "1", "allowWatchBookmarks": "true", "resourceVersion": resource_version,
            "timeoutSeconds": str(int(self.dice.uniform(*WATCH_SECONDS))),
        }  # fmt: skip
        request = Request("GET", resource.path(namespace), params, self._headers, timeout=silence)
        login = await self._credentials.current()
        with self.contact.kept():
            async with self._transport.stream(request, login) as stream:
                self.contact.note(stream.status)
                if stream.status != 200:
                    body = b"".join([chunk async for chunk in stream.chunks()])
                    if stream.status == 401:
                        self._credentials.refused()
                    raise api_error(Response(stream.status, stream.headers, body), request)
                async for line in _lines(stream.chunks()):
                    yield _read(_decode_event, line)

    # ------------------------------------------------------------------ writing

    async def create(self, resource: Resource[T], body: Json, namespace: str = "", *, again: bool = False) -> T:
        """Create an object; returns it as the server has it.  Raises ApiError (``conflict`` where it exists).

        With ``again`` a name that exists already may be our own earlier attempt.
        """
        path, params = resource.path(namespace), {"fieldManager": MANAGER}
        return resource.decode(await self.request("POST", path, body=_encoded(body), params=params, again=again))

    async def replace(self, resource: Resource[T], name: str, namespace: str, body: Json, subresource: str = "") -> T:
        """Replace an object; its metadata.resourceVersion, if given, must still hold (else ``conflict``)."""
        path = resource.path(namespace, name, subresource)
        return resource.decode(await self.request("PUT", path, body=_encoded(body), params={"fieldManager": MANAGER}))

    async def patch(
        self, resource: Resource[T], name: str, namespace: str, body: Json | list[Json], kind: Patch = Patch.merge,
        subresource: str = "", *, again: bool = False, patient: bool = True,
    ) -> T:  # fmt: skip
        """Change parts of an object; returns it as the server has it.

        A ``metadata.resourceVersion`` or ``metadata.uid`` in ``body`` must still hold.  ``again`` says that doing it
        twice does no harm; without ``patient`` there is one attempt.
        """
        params = {"fieldManager": MANAGER} | ({"force": "true"} if kind is Patch.apply else {})
        path = resource.path(namespace, name, subresource)
        data = _encoded(body)
        answer = await self.request("PATCH", path, params=params, body=data, content=kind, again=again, patient=patient)
        return resource.decode(answer)

    async def delete(
        self, resource: Resource[T], name: str, namespace: str = "", *, uid: str = "", resource_version: str = "",
        grace: int | None = None, propagation: str = "", patient: bool = True,
    ) -> None:  # fmt: skip
        """Delete an object, only if it still is the one of ``uid`` and ``resource_version`` where those are given.

        ``grace`` in seconds: None leaves it to the object; ``propagation`` is Background, Foreground or Orphan.
        Without ``patient`` there is one attempt.
        """
        body = _encoded(_delete_options(uid, resource_version, grace, propagation))
        path = resource.path(namespace, name)
        await self.request("DELETE", path, body=body, again=bool(uid), patient=patient)

    async def bind(self, namespace: str, name: str, uid: str, node: str, annotations: Json | None = None) -> None:
        """Bind the pod ``name``, if it still is the one of ``uid``, to ``node``; ``annotations`` are put on the pod.

        There is one attempt: the caller, which knows whether it still leads, decides whether to retry.
        """
        metadata = {"name": name, "namespace": namespace, "uid": uid}
        if annotations:
            metadata["annotations"] = annotations  # type: ignore[assignment]  # the one entry that is no text
        target = {"apiVersion": "v1", "kind": "Node", "name": node}
        body = {"apiVersion": "v1", "kind": "Binding", "metadata": metadata, "target": target}
        await self.request("POST", PODS.path(namespace, name, "binding"), body=_encoded(body), patient=False)

    async def evict(self, namespace: str, name: str, *, uid: str = "", grace: int | None = None) -> None:
        """Ask for a pod's eviction, which its disruption budgets may refuse (ApiError 429, not waited for)."""
        options = _delete_options(uid, "", grace, "")
        metadata = {"name": name, "namespace": namespace}
        body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": metadata, "deleteOptions": options}
        await self.request("POST", PODS.path(namespace, name, "eviction"), body=_encoded(body), patient=False)

    # ------------------------------------------------------------------ requests

    async def request(
        self, method: str, path: str, *, params: Mapping[str, str] | None = None, body: bytes | None = None,
        content: str = "application/json", again: bool = False, patient: bool = True, timeout: float = 60.0,
    ) -> bytes:  # fmt: skip
        """Send one request and return the body of the answer; see the module for what is tried again.

        ``again`` says that doing it twice does no harm, as it never does for reads; without ``patient`` there is one
        attempt, whatever comes of it.  ``timeout`` in seconds is for each attempt.
        """
        headers = self._headers if body is None else {**self._headers, "Content-Type": str(content)}
        request = Request(method, path, params or {}, headers, body, timeout)
        again = again or method == "GET"
        attempt = 0
        while True:
            attempt += 1
            try:
                return await self._attempt(request)
            except (ApiError, Unreachable) as error:
                pause = _pause_after(error, again)
                if pause is None or not patient or attempt == TRIES:
                    raise
            await asyncio.sleep(pause or self.backoff(attempt))

    async def _attempt(self, request: Request) -> bytes:
        """One attempt; after a 401 a second one with a fresh login."""
        response = await self._send(request)
        if response.status == 401:
            self._credentials.refused()
            response = await self._send(request)
        if 200 <= response.status < 300:
            return response.body
        raise api_error(response, request)

    async def _send(self, request: Request) -> Response:
        await self._bucket.take()
        await self._turnstile.passed()
        self.sent[request.method] = self.sent.get(request.method, 0) + 1
        login = await self._credentials.current()
        with self.contact.kept():
            response = await self._transport.send(request, login)
        await self._turnstile.passed()
        self.contact.note(response.status)
        return response

    def backoff(self, attempt: int, first: float = FIRST_PAUSE, longest: float = LONGEST_PAUSE) -> float:
        """Seconds to wait after the ``attempt``-th failure in a row."""
        return min(first * 2.0 ** min(attempt - 1, 30), longest) * self.dice.uniform(0.5, 1.0)


def _pause_after(error: ApiError | Unreachable, again: bool) -> float | None:
    """Seconds to wait before the next attempt (0: as long as usual); None when there is to be none."""
    if isinstance(error, Unreachable):
        return 0.0 if again else None
    if error.code == 429 or (error.code == 503 and error.retry_after is not None):
        return error.retry_after or 0.0
    return 0.0 if again and error.code >= 500 else None


def api_error(response: Response, request: Request) -> ApiError:
    """The error that an answer other than 2xx means."""
    try:
        status = _decode_status(response.body)
    except (msgspec.DecodeError, UnicodeDecodeError):
        status = _Status(message=response.body[:200].decode(errors="replace"))
    after = response.headers.get("retry-after", "")
    seconds = min(float(after), LONGEST_ASKED) if after.isdecimal() else None
    return ApiError(response.status, status.reason, status.message.strip(), request=str(request), retry_after=seconds)


def watch_error(event: WatchEvent) -> ApiError:
    """The error that an ERROR line of a watch means."""
    status = _read(_decode_status, event.object)
    return ApiError(status.code, status.reason, status.message, request="watch")


def _read(decode: Callable[[Raw], T], raw: Raw) -> T:
    """What an answer says.  Raises ManifestError for one that is none, as gateways may give it."""
    try:
        return decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ManifestError(f"the answer cannot be read: {error}") from error


def _encoded(body: Json | list[Json]) -> bytes:
    return msgspec.json.encode(body)


def _delete_options(uid: str, resource_version: str, grace: int | None, propagation: str) -> dict[str, Any]:
    options: dict[str, Any] = {"apiVersion": "v1", "kind": "DeleteOptions"}
    conditions = {"uid": uid, "resourceVersion": resource_version}
    if wanted := {name: value for name, value in conditions.items() if value}:
        options["preconditions"] = wanted
    if grace is not None:
        options["gracePeriodSeconds"] = grace
    if propagation:
        options["propagationPolicy"] = propagation
    return options


async def _lines(chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """Lines of any length."""
    parts: list[bytes] = []
    async for chunk in chunks:
        *lines, rest = chunk.split(b"\n")
        for line in lines:
            if whole := b"".join([*parts, line]):
                yield whole
            parts = []
        if rest:
            parts.append(rest)
