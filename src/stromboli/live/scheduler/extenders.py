"""Calls to extenders, made in the event loop while the cycle's thread waits."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, Final

import aiohttp

from stromboli.errors import ExtenderError
from stromboli.model.values.redaction import without_logins

LARGEST: Final = 10 << 20
"""Bytes of an answer, at most."""


class Extenders:
    """POSTs requests as JSON; ``wait`` has work done in the event loop and gives what came of it."""

    def __init__(self, wait: Callable[[Coroutine[Any, Any, tuple[float, bytes]]], tuple[float, bytes]]) -> None:
        self._wait = wait
        self._session: aiohttp.ClientSession | None = None

    def post(self, url: str, body: bytes, timeout: float) -> tuple[float, bytes]:
        """Seconds that the call took, and the answer, which must be a 200.  Raises StromboliError."""
        return self._wait(self._post(url, body, timeout))

    async def _post(self, url: str, body: bytes, limit: float) -> tuple[float, bytes]:
        loop = asyncio.get_running_loop()
        began = loop.time()
        if self._session is None:
            self._session = aiohttp.ClientSession(headers={"Content-Type": "application/json"})
        try:
            async with (
                asyncio.timeout(limit),
                self._session.post(url, data=body, allow_redirects=False) as response,
            ):
                if response.status != 200:
                    raise ExtenderError("", f"answered with code {response.status}")
                found = await self._body(response)
        except TimeoutError:
            raise ExtenderError("", f"no answer within {limit:g} s") from None
        except (aiohttp.ClientError, OSError, ValueError) as error:
            raise ExtenderError("", without_logins(f"{type(error).__name__}: {error}")) from error
        return loop.time() - began, found

    async def _body(self, response: aiohttp.ClientResponse) -> bytes:
        found = bytearray()
        async for chunk in response.content.iter_any():
            found += chunk
            if len(found) > LARGEST:
                raise ExtenderError("", f"the answer is larger than {LARGEST} bytes")
        return bytes(found)

    async def close(self) -> None:
        """Let connections go."""
        if self._session is not None:
            await self._session.close()
            self._session = None
