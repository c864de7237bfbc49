"""Simulated kubelets for any API server: nodes that are not there, whose pods start, run and end as they are told."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence

import msgspec

from stromboli.cluster.body import Body
from stromboli.errors import ApiError, ApiFailure, StromboliError
from stromboli.kube.client import Client, Select
from stromboli.kube.resources import Resource, plain
from stromboli.live.process.stopping import until_signal
from stromboli.server.kubelet.kubelets import Kubelets


class Reached:
    """An API server as kubelets ask it, by way of a client."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def call(self, method: str, path: str, body: Body | None = None, media: str = "application/json") -> Body:
        """One request.  Raises ApiFailure, and OSError when the outcome is unknown."""
        data = None if body is None else msgspec.json.encode(body)
        where, _, query = path.partition("?")
        params = dict(pair.split("=", 1) for pair in query.split("&") if pair)
        try:
            return plain(await self._client.request(method, where, params=params, body=data, content=media))
        except ApiError as error:
            raise _failure(error) from error
        except StromboliError as error:
            raise ConnectionError(str(error)) from error

    async def watch(self, path: str, query: Mapping[str, str]) -> AsyncIterator[Body]:
        """The events of one watch, until it ends."""
        select = Select(fields=query.get("fieldSelector", ""))
        events = self._client.watch(_at(path), select=select, resource_version=query.get("resourceVersion", ""))
        try:
            async for event in events:
                yield {"type": event.type, "object": plain(event.object)}
        except ApiError as error:
            raise _failure(error) from error
        except StromboliError as error:
            raise ConnectionError(str(error)) from error


def _failure(error: ApiError) -> ApiFailure:
    return ApiFailure(error.code, error.reason, error.problem)


def _at(path: str) -> Resource[Body]:
    """The collection at ``path``, such as ``/api/v1/pods``."""
    _, _, version, plural = path.split("/")
    return Resource(version, plural, "", False, plain)


async def simulate(client: Client, nodes: Sequence[Body], beat: float) -> None:
    """Register ``nodes`` and let their pods live until SIGINT or SIGTERM; ``beat`` seconds between heartbeats."""
    await until_signal(Kubelets(Reached(client), nodes, beat_every=beat).run())
