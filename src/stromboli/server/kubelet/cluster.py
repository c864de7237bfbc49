"""The little that kubelets need of an API server, and the form that it has in the same process."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from typing import Final, Protocol

from stromboli.cluster.body import Body, decode, encode
from stromboli.server.addresses import address_of
from stromboli.server.api import Api
from stromboli.server.http.calls import Call, Calls
from stromboli.server.status_errors import no_such_path

JSON: Final = "application/json"
MERGE: Final = "application/merge-patch+json"
STRATEGIC: Final = "application/strategic-merge-patch+json"


class Cluster(Protocol):
    """An API server.  Refusals are raised as :class:`ApiFailure`; what can be tried again as OSError."""

    async def call(self, method: str, path: str, body: Body | None = None, media: str = JSON) -> Body:
        """One request."""

    def watch(self, path: str, query: Mapping[str, str]) -> AsyncIterator[Body]:
        """The events of one watch, until it ends."""


class Inside:
    """The embedded server, without a socket between."""

    def __init__(self, api: Api) -> None:
        self._api = api
        self._calls = Calls(api)

    async def call(self, method: str, path: str, body: Body | None = None, media: str = JSON) -> Body:
        """One request."""
        content = self._answer(method, path, body, media)
        if not isinstance(content, bytes):
            raise TypeError(f"{method} {path} is a watch")
        found: Body = decode(content)
        return found

    async def watch(self, path: str, query: Mapping[str, str]) -> AsyncIterator[Body]:
        """The events of one watch."""
        content = self._answer("GET", path, None, JSON, {**query, "watch": "true"})
        if isinstance(content, bytes):
            raise TypeError(f"{path} is no watch")
        async for lines in content:
            for line in lines.splitlines():
                yield decode(line)

    def _answer(
        self, method: str, path: str, body: Body | None, media: str, query: Mapping[str, str] | None = None
    ) -> bytes | AsyncIterator[bytes]:
        where, _, rest = path.partition("?")
        asked = dict(pair.partition("=")[::2] for pair in rest.split("&") if pair) | dict(query or {})
        address = address_of(where)
        resource = address and self._api.catalogue.find(address.group, address.version, address.plural)
        if address is None or resource is None:
            raise no_such_path()
        # Through the codec once, so that no body is shared with the store.
        plain = None if body is None else decode(encode(body))
        return self._calls.answer(Call(resource, address, method, asked, plain, media, "", "kubelet")).content
