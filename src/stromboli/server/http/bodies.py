"""Bodies of requests: read within bounds, and decoded from JSON, YAML or protobuf, large ones in threads."""

from __future__ import annotations

import asyncio
from typing import Any, Final

import msgspec
from starlette.requests import Request

from stromboli.cluster.body import Body, decode
from stromboli.cluster.files.yaml_values import load
from stromboli.errors import StromboliError
from stromboli.model.values.yaml_bounds import DEEPEST
from stromboli.server import status_errors
from stromboli.server.http.protobuf import from_protobuf

LARGEST: Final = 3 << 20
"""Bytes of a body: kube-apiserver's MaxRequestBodyBytes."""
WITHIN: Final = 60.0
"""Seconds in which a body must arrive: kube-apiserver's --request-timeout."""
LARGE: Final = 16 << 10
"""Bytes from which on a body is decoded in a thread: YAML and protobuf of this size take some 20 ms, of 3 MiB 4 s."""
AT_ONCE: Final = 2
"""Large bodies that are decoded at the same time; threads share one processor."""


class Decoding:
    """Decodes the bodies of one server's requests; belongs to one event loop."""

    def __init__(self) -> None:
        self._turns = asyncio.Semaphore(AT_ONCE)

    async def value(self, request: Request, media: str) -> Any:
        """What the body of a request holds, see :func:`value_of`; others are answered while a large one is decoded."""
        content = await read(request)
        if len(content) < LARGE:
            return value_of(content, media)
        async with self._turns:
            return await asyncio.to_thread(value_of, content, media)


async def read(request: Request) -> bytes:
    """The body of a request; refuses one that is too large before it is read, and one that does not come."""
    declared = request.headers.get("content-length", "")
    if declared.isdecimal() and len(declared) < 20 and int(declared) > LARGEST:
        raise status_errors.too_large(LARGEST)
    try:
        async with asyncio.timeout(WITHIN):
            return await _read(request)
    except TimeoutError as error:
        raise status_errors.timed_out() from error


async def _read(request: Request) -> bytes:
    content = bytearray()
    async for chunk in request.stream():
        content += chunk
        if len(content) > LARGEST:
            raise status_errors.too_large(LARGEST)
    return bytes(content)


def value_of(content: bytes, media: str) -> Any:
    """What a body of this media type holds; None if it is empty."""
    if not content:
        return None
    value = _decoded(content, media)
    if is_deeper(value, DEEPEST):
        raise status_errors.bad_request(
            f"error decoding the body of the request: it is nested more than {DEEPEST} deep"
        )
    return value


def _decoded(content: bytes, media: str) -> Any:
    try:
        if "protobuf" in media:
            return from_protobuf(content)
        return _yaml(content) if "yaml" in media else decode(content)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise status_errors.bad_request(f"error decoding the body of the request: {error}") from error


def _yaml(content: bytes) -> Body:
    try:
        value = decode(content)
    except (msgspec.DecodeError, UnicodeDecodeError):
        try:
            value = load(content.decode())
        except (StromboliError, UnicodeDecodeError) as error:
            raise status_errors.bad_request(f"error decoding YAML: {error}") from error
    if not isinstance(value, dict):
        raise status_errors.bad_request("the body of the request is no object")
    return value


def is_deeper(value: Any, most: int) -> bool:
    """Whether lists and maps are nested more than ``most`` deep; itself it does not recurse."""
    level = [value]
    for _ in range(most + 1):
        level = [
            inner
            for one in level
            if isinstance(one, dict | list)
            for inner in (one.values() if isinstance(one, dict) else one)
        ]
        if not level:
            return False
    return True
