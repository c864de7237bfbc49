"""Keeps the authorities in webhook configurations (``caBundle``) those of the certificate that is served."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Iterable, Iterator
from typing import Any, Final

from stromboli.crds.admission.paths import ALL_PATHS, Path
from stromboli.crds.registration import API_VERSION, MUTATING_KIND, VALIDATING_KIND
from stromboli.errors import StromboliError
from stromboli.kube.client import Client, Patch
from stromboli.kube.informer import Informer
from stromboli.kube.informers import Informers
from stromboli.kube.resources import Resource, plain, plural_of
from stromboli.live.process.events import Telling

MUTATING: Final = Resource(API_VERSION, plural_of(MUTATING_KIND), MUTATING_KIND, False, plain)
VALIDATING: Final = Resource(API_VERSION, plural_of(VALIDATING_KIND), VALIDATING_KIND, False, plain)
INJECTED: Final = "cert-manager.io/inject-"
"""How annotations begin that leave a configuration's authorities to cert-manager."""


class Bundles:
    """Follows the configurations of ``paths``; ``changed`` is set when one of them has come or changed.

    Configurations that are missing, and those that would ask for a path that is not served, are told of once.
    """

    def __init__(self, client: Client, paths: Iterable[Path], informers: Informers, tell: Telling) -> None:
        self._client, self._tell = client, tell
        self._paths = tuple(paths)
        self.changed = asyncio.Event()
        self._told: set[str] = set()
        self._informers = {
            is_mutating: informers.add(Informer[dict[str, Any]](client, kind, troubled=self._troubled))
            for is_mutating, kind in ((True, MUTATING), (False, VALIDATING))
        }
        for informer in self._informers.values():
            informer.subscribe(lambda _: self.changed.set())

    def _troubled(self, error: Exception) -> None:
        self._tell("following_trouble", kind="webhook configurations", error=error)

    async def keep(self, authorities: bytes) -> None:
        """Write ``authorities`` (PEM) where others stand; none: only say what is missing.

        Raises the last error once all configurations have been looked at.
        """
        self.changed.clear()
        failed: StromboliError | None = None
        for path in ALL_PATHS.values():
            found = self._informers[path.is_mutating].get(path.configuration)
            if path not in self._paths:
                self._warn_of_unserved(path, found)
            elif found is None:
                self._once("configuration_missing", path.path, configuration=path.configuration)
            elif authorities and not _is_injected(found):
                try:
                    await self._write(path, found, base64.b64encode(authorities).decode())
                except StromboliError as error:
                    failed = error
        if failed is not None:
            raise failed

    async def _write(self, path: Path, found: dict[str, Any], bundle: str) -> None:
        hooks = [hook for hook in found.get("webhooks") or () if hook["clientConfig"].get("caBundle") != bundle]
        if not hooks:
            return
        changed = [{"name": hook["name"], "clientConfig": {"caBundle": bundle}} for hook in hooks]
        body = {"metadata": {"uid": found["metadata"]["uid"]}, "webhooks": changed}
        kind = MUTATING if path.is_mutating else VALIDATING
        await self._client.patch(kind, path.configuration, "", body, Patch.strategic, again=True)
        self._tell("authorities_written", configuration=path.configuration)

    def _warn_of_unserved(self, path: Path, found: dict[str, Any] | None) -> None:
        if found is not None and path.path in set(_asked(found)):
            self._once("path_not_served", path.path, configuration=path.configuration)

    def _once(self, key: str, path: str, configuration: str) -> None:
        if path not in self._told:
            self._told.add(path)
            self._tell(key, path=path, configuration=configuration)


def _is_injected(found: dict[str, Any]) -> bool:
    return any(key.startswith(INJECTED) for key in found["metadata"].get("annotations") or ())


def _asked(found: dict[str, Any]) -> Iterator[str]:
    """The paths of our server that a configuration names."""
    for hook in found.get("webhooks") or ():
        yield (hook["clientConfig"].get("service") or {}).get("path") or ""
