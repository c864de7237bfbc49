"""Where the webhook server's certificate comes from: a Secret that its replicas keep by themselves, or files."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple, Protocol

from stromboli.errors import AccessError, ApiError, ManifestError
from stromboli.kube.client import Client
from stromboli.kube.resources import SECRETS
from stromboli.live.process.events import Telling
from stromboli.live.webhooks.certificates import Held, Terms, due, first, is_usable
from stromboli.model.values.times import seconds, stamp

CERTIFICATE, KEY, AUTHORITIES = "tls.crt", "tls.key", "ca.crt"
NEXT_CERTIFICATE, NEXT_KEY = "next.crt", "next.key"
SINCE: Final = "since"
"""What stands in the Secret; the first three as in Secrets of the reference and of cert-manager."""

ROTATE: Final = "stromboli.dev/rotate-certificate"
"""Annotation of the Secret: whatever its value, a new certificate is made, and the annotation removed."""


class Serving(NamedTuple):
    """The certificate shown to API servers, and the authorities they must trust; empty if they are set up elsewhere."""

    certificate: bytes
    key: bytes
    authorities: bytes

    def __repr__(self) -> str:
        return "Serving(...)"


class Source(Protocol):
    """Where a certificate comes from."""

    async def current(self) -> Serving:
        """What is to be served now.  Raises StromboliError."""


class Files:
    """A certificate in files, which may be replaced; each look reads them."""

    def __init__(self, certificate: str, key: str, authorities: str) -> None:
        self._paths = (certificate, key, authorities)

    async def current(self) -> Serving:
        """What stands in the files.  Raises AccessError."""
        return Serving(*(_read(path) if path else b"" for path in self._paths))


def _read(path: str) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise AccessError(error.strerror or str(error), file=path) from error


class SharedSecret:
    """A Secret that holds what all replicas serve; each of them takes the steps that are due, one is first.

    A Secret that is deleted, or holds what cannot be used, is made again of what is known here.  ``clock`` gives
    seconds since 1970.
    """

    def __init__(
        self, client: Client, name: tuple[str, str], terms: Terms, tell: Telling, clock: Callable[[], float]
    ) -> None:
        self._client, self._terms, self._tell, self._clock = client, terms, tell, clock
        self._namespace, self._name = name
        self.title = "/".join(name)
        self._held: Held | None = None

    async def current(self) -> Serving:
        """What the Secret says, after a step that was due.  Raises ApiError, ManifestError, Unreachable."""
        self._held = await self._looked()
        return Serving(self._held.certificate, self._held.key, self._held.authorities)

    async def _looked(self) -> Held:
        try:
            found = await self._client.get(SECRETS, self._name, self._namespace)
        except ApiError as error:
            if not error.not_found:
                raise
            return await self._created()
        held = _held(found, self.title)
        if held is None or not is_usable(held, self._clock(), self._terms):
            known = self._known()._replace(asked=_is_asked(found))  # what is known here has heard of no wish
            return held_after(await self._replaced(found, known, "certificate_unusable"), self.title)
        step = due(held, self._clock(), self._terms)
        return held if step is None else held_after(await self._replaced(found, step), self.title)

    def _known(self) -> Held:
        """What is served, if that is still good, or else something new."""
        now = self._clock()
        return (self._held and due(self._held, now, self._terms)) or self._held or first(now, self._terms)

    async def _created(self) -> Held:
        held = self._known()
        metadata = {"name": self._name, "namespace": self._namespace}
        body = {"apiVersion": "v1", "kind": "Secret", "type": "Opaque", "metadata": metadata, "data": _data(held)}
        try:
            made = await self._client.create(SECRETS, body, self._namespace)
        except ApiError as error:
            if not error.conflict:
                raise
            made = await self._client.get(SECRETS, self._name, self._namespace)  # another replica was first
        else:
            self._tell("certificate_step", secret=self.title)
        return held_after(made, self.title)

    async def _replaced(self, found: dict[str, Any], held: Held, *reasons: str) -> dict[str, Any]:
        """Take a step, and tell it and its ``reasons``; where another replica was first, what it wrote counts."""
        metadata = dict(found["metadata"])
        notes = {key: text for key, text in (metadata.get("annotations") or {}).items() if key != ROTATE or held.asked}
        body = {**found, "metadata": {**metadata, "annotations": notes}, "data": _data(held)}
        try:
            made = await self._client.replace(SECRETS, self._name, self._namespace, body)
        except ApiError as error:
            if not error.conflict:
                raise
            return await self._client.get(SECRETS, self._name, self._namespace)
        for key in (*reasons, "certificate_step"):
            self._tell(key, secret=self.title)
        return made


def held_after(found: Mapping[str, Any], title: str) -> Held:
    """What a Secret holds after a write.  Raises ManifestError where it holds nothing that can be read."""
    held = _held(found, title)
    if held is None:
        raise ManifestError(f"holds no {CERTIFICATE}, {KEY} and {AUTHORITIES}", object=f"Secret {title}")
    return held


def _held(found: Mapping[str, Any], title: str) -> Held | None:
    """What a Secret holds; None where a part is missing.  Raises ManifestError for what is no base64.

    A time of the last step that cannot be read is long ago.
    """
    data = {key: _decoded(text, title, key) for key, text in (found.get("data") or {}).items()}
    if not all(data.get(key) for key in (CERTIFICATE, KEY, AUTHORITIES)):
        return None
    following = (data.get(NEXT_CERTIFICATE, b""), data.get(NEXT_KEY, b""))
    since = data.get(SINCE, b"").decode("ascii", "replace")
    return Held(
        data[CERTIFICATE],
        data[KEY],
        data[AUTHORITIES],
        following if all(following) else None,
        _moment(since),
        _is_asked(found),
    )


def _is_asked(found: Mapping[str, Any]) -> bool:
    return ROTATE in (found["metadata"].get("annotations") or {})


def _moment(text: str) -> float:
    try:
        return seconds(text, f"data.{SINCE}") if text else 0.0
    except ManifestError:
        return 0.0


def _decoded(text: object, title: str, key: str) -> bytes:
    try:
        return base64.b64decode(str(text), validate=True)
    except (binascii.Error, ValueError) as error:
        raise ManifestError("is no base64", object=f"Secret {title}", path=f"data.{key}") from error


def _data(held: Held) -> dict[str, str]:
    texts = {CERTIFICATE: held.certificate, KEY: held.key, AUTHORITIES: held.authorities}
    if held.next is not None:
        texts |= {NEXT_CERTIFICATE: held.next[0], NEXT_KEY: held.next[1]}
    texts[SINCE] = stamp(held.since).encode()
    return {name: base64.b64encode(text).decode() for name, text in texts.items()}
