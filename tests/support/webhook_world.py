"""A webhook server over real TLS on loopback, next to an embedded API server that it follows and writes to."""

from __future__ import annotations

import asyncio
import base64
import io
import ssl
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import aiohttp
import msgspec

from stromboli.crds.admission import Settings
from stromboli.crds.admission.paths import ALL_PATHS, Path
from stromboli.crds.registration import Registration, configurations
from stromboli.kube.client import Client
from stromboli.kube.informers import Informers
from stromboli.live.process.events import Telling
from stromboli.live.webhooks.bundles import Bundles
from stromboli.live.webhooks.certificates import Terms as CertificateTerms
from stromboli.live.webhooks.sight import Sight
from stromboli.live.webhooks.sources import SharedSecret, Source
from stromboli.live.webhooks.webhook_server import Terms, WebhookServer
from stromboli.narration.observe import Silent
from stromboli.server.http.certificates import Bearer
from tests.support.embedded_server import EmbeddedServer

Json = dict[str, Any]
SERVICE, NAMESPACE, SECRET = "hooks", "volcano-system", "certificate"
SERVER_NAME = f"{SERVICE}.{NAMESPACE}.svc"
REGISTRATION = Registration(SERVICE, NAMESPACE)
BOTH = ("mutatingwebhookconfigurations", "validatingwebhookconfigurations")


class Told(Silent):
    """An observer that keeps what it hears."""

    def __init__(self) -> None:
        self.lines: list[tuple[str, Json]] = []

    def wants(self, key: str) -> bool:
        return not key.startswith("metric.")

    def tell(self, key: str, fields: Mapping[str, object]) -> None:
        self.lines.append((key, dict(fields)))

    @property
    def keys(self) -> list[str]:
        return [key for key, _ in self.lines]


@dataclass
class Replica:
    """One process's worth of webhook server."""

    server: WebhookServer
    sight: Sight
    told: Told
    task: asyncio.Task[None]
    counted: list[tuple[str, str]]

    async def ready(self) -> None:
        async with asyncio.timeout(60):
            while self.server.unready():
                if self.task.done():
                    self.task.result()
                await asyncio.sleep(0.01)

    async def end(self) -> None:
        self.server.stop()
        await self.task


@dataclass
class WebhookWorld:
    """The API server, and the replicas next to it."""

    api: EmbeddedServer = field(default_factory=lambda: EmbeddedServer(time.time))
    settings: Settings = Settings()  # noqa: RUF009
    look: float = 10.0
    ahead: float = 0.0
    """Seconds by which the replicas' clock is ahead."""
    valid: float = 365 * 86_400.0
    replicas: list[Replica] = field(default_factory=list)

    def now(self) -> float:
        """The replicas' clock: seconds since 1970."""
        return time.time() + self.ahead

    @property
    def secret(self) -> dict[str, bytes]:
        """What stands in the Secret."""
        data = self.api.get("secrets", SECRET, NAMESPACE)["data"]
        return {key: base64.b64decode(text) for key, text in data.items()}

    def register(self, paths: Sequence[Path] = tuple(ALL_PATHS.values())) -> None:
        """Store the configurations of paths, as an installation does."""
        for found in configurations(paths, REGISTRATION):
            self.api.put(f"{str(found['kind']).lower()}s", dict(found))

    def bundle(self, path: str) -> bytes:
        """The authorities in the configuration of a path."""
        row = ALL_PATHS[path]
        found = self.api.get(BOTH[not row.is_mutating], row.configuration)
        return base64.b64decode(found["webhooks"][0]["clientConfig"].get("caBundle") or "")

    def start(self, paths: Sequence[Path] = tuple(ALL_PATHS.values()), source: Source | None = None) -> Replica:
        """Start a replica."""
        told, informers, client = Told(), Informers(), Client(self.api)
        tell = Telling(told)
        sight, bundles = Sight(client, paths, informers, tell), Bundles(client, paths, informers, tell)
        terms = CertificateTerms(Bearer(SERVER_NAME, (SERVER_NAME,)), self.valid)
        kept = source or SharedSecret(client, (NAMESPACE, SECRET), terms, tell, self.now)
        counted: list[tuple[str, str]] = []
        server = WebhookServer(
            paths, sight, bundles, kept, informers, lambda: self.settings,
            Terms("127.0.0.1", 0, drain=0.2, graceful=5.0, look=self.look), tell,
            lambda path, outcome, _: counted.append((path.path, outcome)),
        )  # fmt: skip
        replica = Replica(server, sight, told, asyncio.create_task(server.run()), counted)
        self.replicas.append(replica)
        return replica

    async def end(self) -> None:
        for replica in self.replicas:
            if not replica.task.done():
                await replica.end()
            with suppress(asyncio.CancelledError):
                replica.task.result()

    # ------------------------------------------------------------------ asking

    async def post(
        self, replica: Replica, path: str, body: bytes, session: aiohttp.ClientSession, trusted: bytes = b"",
        content: str = "application/json",
    ) -> tuple[int, bytes]:  # fmt: skip
        """Post as an API server does: over TLS, with the authorities of the path's configuration."""
        authorities = trusted or self.bundle(path)
        context = ssl.create_default_context(cadata=authorities.decode())
        url = f"https://127.0.0.1:{replica.server.port}{path}?timeout=10s"
        async with session.post(
            url, data=io.BytesIO(body), headers={"Content-Type": content}, ssl=context, server_hostname=SERVER_NAME
        ) as answer:
            return answer.status, await answer.read()


def review(
    path: str, operation: str, value: Json | None, old: Json | None = None, namespace: str | None = None
) -> Json:
    """A review as a kube-apiserver sends it."""
    group, version, plural = ALL_PATHS[path].place
    metadata = (value or old or {}).get("metadata", {})
    place = {"group": group, "version": version, "resource": plural}
    kind = {"group": group, "version": version, "kind": "Kind"}
    space = namespace if namespace is not None else metadata.get("namespace", "")
    request = {
        "uid": "705ab4f5-6393-11e8-b7cc-42010a800002", "kind": kind, "resource": place, "requestKind": kind,
        "requestResource": place, "name": metadata.get("name", ""), "namespace": space, "operation": operation,
        "userInfo": {"username": "admin", "groups": ["system:authenticated"]}, "object": value, "oldObject": old,
        "dryRun": False, "options": {"apiVersion": "meta.k8s.io/v1", "kind": "CreateOptions"},
    }  # fmt: skip
    return {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}


def encoded(found: Json) -> bytes:
    return msgspec.json.encode(found)
