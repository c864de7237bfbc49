"""Asks the sources of network topology that have to be polled: UFM over HTTP, and trees in files or ConfigMaps."""

from __future__ import annotations

import asyncio
import base64
import binascii
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any, Final

import aiohttp

from stromboli.controllers.discovery import static_tree, ufm
from stromboli.controllers.discovery.configuration import Source
from stromboli.controllers.topology import TopologyController
from stromboli.errors import MeasurementError, StromboliError, in_words
from stromboli.kube.client import Client
from stromboli.kube.resources import Resource, plain
from stromboli.model.values.redaction import without_logins

TIMEOUT: Final = 30.0
LARGEST: Final = 100 << 20
"""Seconds that UFM may take, and bytes of its largest answer."""
TREES: Final = Path("/etc/stromboli/topology")
"""Where trees are that ``config.path`` may name."""
AGAIN: Final = 60.0
"""Seconds at most before a source that failed is asked again."""

_SECRET: Final = Resource("v1", "secrets", "Secret", True, plain)
_CONFIG_MAP: Final = Resource("v1", "configmaps", "ConfigMap", True, plain)


class TopologyPoller:
    """Keeps one task for each polled source of ``topology.discovery``, each by itself, so that none holds up another.

    ``wake`` is set when there is something to look at; sources are asked only while ``may_write``.
    """

    def __init__(
        self, client: Client, topology: TopologyController, wake: asyncio.Event, may_write: Callable[[], bool]
    ) -> None:
        self._client, self._topology, self._wake, self._may_write = client, topology, wake, may_write
        self._renewed = asyncio.Event()
        self._tasks: dict[str, tuple[Source, asyncio.Task[None]]] = {}
        self._asking: Mapping[str, Callable[[Source], Awaitable[bytes]]] = {
            ufm.SOURCE: self._ask_ufm,
            static_tree.SOURCE: self._read_tree,
        }

    def renew(self) -> None:
        """The sources may have changed."""
        self._renewed.set()

    async def run(self) -> None:
        """Poll until cancelled."""
        try:
            while True:
                await self._renewed.wait()
                self._renewed.clear()
                self._restart()
        finally:
            for _, task in self._tasks.values():
                task.cancel()

    def _restart(self) -> None:
        """Stop sources that are gone or have changed; start those that are new."""
        wanted = self._topology.discovery.sources
        for name, (source, task) in list(self._tasks.items()):
            if wanted.get(name) != source:
                task.cancel()
                del self._tasks[name]
        for name, source in wanted.items():
            if name in self._asking and name not in self._tasks:
                self._tasks[name] = source, asyncio.create_task(self._poll(source))

    async def _poll(self, source: Source) -> None:
        discovery = self._topology.discovery
        while True:
            pause = source.interval
            if self._may_write():
                try:
                    news = discovery.answered(source.name, await self._asking[source.name](source))
                except Exception as error:  # noqa: BLE001  # one source's trouble must not end the controllers
                    news = discovery.failed(source.name, without_logins(in_words(error)))
                    pause = min(pause, AGAIN)
                if news:
                    self._topology.ask_sources([source.name])
                    self._wake.set()
            await asyncio.sleep(pause if self._may_write() else 1.0)

    # -- UFM ---------------------------------------------------------------------------------------------------------

    async def _ask_ufm(self, source: Source) -> bytes:
        """UFM's list of ports."""
        endpoint = str(source.config.get("endpoint") or "").rstrip("/")
        if not endpoint:
            raise MeasurementError("UFM", "UFM endpoint is not configured")
        user, password = await self._login(source)
        address = endpoint if "://" in endpoint else f"https://{endpoint}"
        headers = {"Authorization": aiohttp.encode_basic_auth(user, password)}
        checked = source.config.get("insecureSkipVerify") is not True
        limit = aiohttp.ClientTimeout(total=TIMEOUT)
        async with (
            aiohttp.ClientSession(headers=headers, timeout=limit, trust_env=True) as session,
            session.get(address + ufm.PORTS, ssl=checked) as response,
        ):
            if response.status != 200:
                raise MeasurementError("UFM", f"unexpected status code: {response.status} {response.reason}")
            return await _bounded(response)

    async def _login(self, source: Source) -> tuple[str, str]:
        """User and password from the source's Secret."""
        if source.secret is None:
            raise MeasurementError("UFM", "UFM authentication credentials are not configured")
        namespace, name = source.secret
        if namespace != (own := self._topology.discovery.namespace):  # or an address could be sent any login
            raise MeasurementError("UFM", f"secret {namespace}/{name} is not in namespace {own}; put the login there")
        try:
            data: Any = (await self._client.get(_SECRET, name, namespace)).get("data") or {}
        except StromboliError as error:
            raise MeasurementError("UFM", f"failed to get secret {namespace}/{name}: {error}") from error
        texts = []
        for key in ("username", "password"):
            if key not in data:
                raise MeasurementError("UFM", f"{key} not found in secret {namespace}/{name}")
            try:
                texts.append(base64.b64decode(data[key], validate=True).decode())
            except (binascii.Error, UnicodeDecodeError) as error:
                raise MeasurementError("UFM", f"{key} in secret {namespace}/{name} is no text") from error
        return texts[0], texts[1]

    # -- Trees -------------------------------------------------------------------------------------------------------

    async def _read_tree(self, source: Source) -> bytes:
        """The text of the tree, from a file or a ConfigMap next to the configuration."""
        path, reference = source.config.get("path"), source.config.get("configMap")
        if isinstance(path, str) and path:
            return await asyncio.to_thread(_read, path)
        if not isinstance(reference, dict):
            raise MeasurementError("file", "config.path or config.configMap must say where the tree is")
        namespace = self._topology.discovery.namespace
        found: Any = await self._client.get(_CONFIG_MAP, str(reference.get("name") or ""), namespace)
        data = found.get("data") or {}
        key = str(reference.get("key") or next(iter(sorted(data)), ""))
        if key not in data:
            raise MeasurementError("file", f"ConfigMap {namespace}/{reference.get('name')} has no key {key!r}")
        return str(data[key]).encode()


async def _bounded(response: aiohttp.ClientResponse) -> bytes:
    found = bytearray()
    async for chunk in response.content.iter_any():
        found += chunk
        if len(found) > LARGEST:
            raise MeasurementError("UFM", f"the answer is larger than {LARGEST} bytes")
    return bytes(found)


def _read(path: str) -> bytes:
    """A file's content; a byte more than may be used shows that it is too large.

    Events quote lines that cannot be read, so other files of this machine stay out of reach, also by links.
    """
    found = Path(path).resolve()
    if not found.is_relative_to(TREES) or (found.exists() and not found.is_file()):
        raise MeasurementError("file", f"config.path {path[:200]!r} is no file in {TREES}; mount the tree there")
    with found.open("rb") as file:
        return file.read(static_tree.LARGEST + 1)
