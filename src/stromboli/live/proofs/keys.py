"""The keys by which the scheduler proves that reservations are its own, in a Secret that its replicas share.

The leader creates the Secret where it is missing, and a new key when the one there is :data:`ROTATE_AFTER` old.  The
key before it stays and is still accepted until the next one is made, so nothing that is written becomes void by it.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import secrets
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from stromboli.errors import ApiError, ManifestError, StromboliError
from stromboli.kube.client import Client
from stromboli.kube.resources import SECRETS
from stromboli.live.process.events import Telling
from stromboli.live.process.leading import hinted
from stromboli.model.proof import KEY_BYTES
from stromboli.model.values.times import seconds, stamp

SECRET: Final = "stromboli-reservations"
"""Name of the Secret."""

KEY: Final = "key"
PREVIOUS: Final = "previous"
MADE: Final = "made"
"""What stands in it: two keys, and when the first was made (RFC 3339)."""

ROTATE_AFTER: Final = 30 * 86_400.0
"""Seconds after which a key is replaced."""

LOOK_EVERY: Final = 300.0
"""Seconds between looks at the Secret while we lead."""

PATIENCE: Final = 10.0
"""Seconds that a look may take."""


class Held(NamedTuple):
    """The keys of a Secret, the one that signs first, and when that was made, in seconds since 1970."""

    keys: tuple[bytes, ...]
    made: float


class ReservationKeys:
    """The keys in the Secret of ``namespace``; :meth:`refresh` brings :attr:`keys` up to date, empty as long as none
    could be read or made.

    What goes wrong is told once, and the keys that are known stay.  ``clock`` gives seconds since 1970.
    """

    def __init__(self, client: Client, namespace: str, tell: Telling, clock: Callable[[], float]) -> None:
        self._client, self._namespace, self._tell, self._clock = client, namespace, tell, clock
        self._held, self._secret = Held((), 0.0), f"{namespace}/{SECRET}"
        self._trouble = ""

    @property
    def keys(self) -> tuple[bytes, ...]:
        """The keys that proofs are accepted from; the first signs."""
        return self._held.keys

    async def refresh(self) -> None:
        """Read the Secret; make it where it is missing, and a new key where that is due.  It is a leader's to do."""
        trouble = ""
        try:
            async with asyncio.timeout(PATIENCE):
                self._held = await self._looked()
        except TimeoutError:
            trouble = "no answer"
        except StromboliError as error:
            trouble = hinted(str(error), self._namespace)
        if trouble and trouble != self._trouble:
            self._tell("reservation_key_trouble", secret=self._secret, error=trouble, then=self._then())
        self._trouble = trouble
        self._tell("metric.reservation_keys", count=len(self.keys))

    def _then(self) -> str:
        if self.keys:
            return "the keys read before go on to count"
        return "reservations are neither written nor believed, and last as long as this process"

    async def _looked(self) -> Held:
        try:
            found = await self._client.get(SECRETS, SECRET, self._namespace)
        except ApiError as error:
            if not error.not_found:
                raise
            return await self._made()
        held = _read(found)
        return held if self._clock() < held.made + ROTATE_AFTER else await self._rotated(found, held)

    async def _made(self) -> Held:
        """Make the Secret: of the known keys, after it has been deleted.  Raises ApiError."""
        held = self._held if self.keys else Held((secrets.token_bytes(KEY_BYTES),), self._clock())
        metadata = {"name": SECRET, "namespace": self._namespace}
        body = {"apiVersion": "v1", "kind": "Secret", "type": "Opaque", "metadata": metadata, "data": _data(held)}
        try:
            await self._client.create(SECRETS, body, self._namespace)
        except ApiError as error:
            if error.not_found:  # the namespace
                raise
        else:
            self._tell("reservation_key_made", secret=self._secret)
            return held
        return _read(  # another replica may have made it meanwhile; then what stands there counts
            await self._client.get(SECRETS, SECRET, self._namespace)
        )

    async def _rotated(self, found: dict[str, Any], held: Held) -> Held:
        """Put a new key in front.  Raises ApiError: what others wrote meanwhile is read the next time."""
        fresh = Held((secrets.token_bytes(KEY_BYTES), held.keys[0]), self._clock())
        await self._client.replace(SECRETS, SECRET, self._namespace, {**found, "data": _data(fresh)})
        self._tell("reservation_key_made", secret=self._secret)
        return fresh


def _data(held: Held) -> dict[str, str]:
    texts = dict(zip((KEY, PREVIOUS), held.keys, strict=False)) | {MADE: stamp(held.made).encode()}
    return {name: base64.b64encode(text).decode() for name, text in texts.items()}


def _read(found: dict[str, Any]) -> Held:
    """The keys in a Secret.  Raises ManifestError, which tells nothing of what stands there."""
    data = found.get("data") or {}
    keys = tuple(_text(data, name) for name in (KEY, PREVIOUS) if name in data)
    if KEY not in data or any(len(key) != KEY_BYTES for key in keys):
        problem = f"is no base64 of {KEY_BYTES} bytes; delete the Secret, and a new one is made"
        raise ManifestError(problem, object=f"Secret {SECRET}", path=f"data.{KEY}")
    return Held(keys, seconds(_text(data, MADE).decode("ascii", "replace"), f"data.{MADE}"))


def _text(data: Mapping[str, Any], name: str) -> bytes:
    try:
        return base64.b64decode(data.get(name) or "", validate=True)
    except (binascii.Error, TypeError, ValueError) as error:
        raise ManifestError("is no base64", object=f"Secret {SECRET}", path=f"data.{name}") from error
