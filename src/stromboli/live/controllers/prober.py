"""Asking pods whether they are ready, for JobFlows: a bounded number at once, each for a short time."""

from __future__ import annotations

import asyncio
from typing import Final

import aiohttp
from yarl import URL

from stromboli.controllers.changes import Target

AT_ONCE: Final = 16
"""Addresses that are asked at once, by all flows together."""

PATIENCE: Final = 2.0
"""Seconds within which an address has to answer."""

_BROKEN: Final = (aiohttp.ClientError, OSError, TimeoutError, ValueError, OverflowError)


class Prober:
    """Asks addresses.  Nothing of an answer is read but its status; no redirect, proxy or cookie is followed."""

    def __init__(self) -> None:
        self._places = asyncio.Semaphore(AT_ONCE)

    async def ask(self, target: Target) -> bool:
        """Whether an address answers well in time: with a status from 200 to 399, or by taking a connection."""
        async with self._places:
            try:
                async with asyncio.timeout(PATIENCE):
                    return await (_get(target) if target.path else _connect(target))
            except _BROKEN:
                return False


async def _connect(target: Target) -> bool:
    _, writer = await asyncio.open_connection(target.address, target.port)
    writer.transport.abort()
    return True


async def _get(target: Target) -> bool:
    path, _, query = target.path.partition("?")
    where = URL.build(scheme="http", host=target.address, port=target.port, path=path, query_string=query)
    headers = dict([target.header]) if target.header else {}
    async with (
        aiohttp.ClientSession(cookie_jar=aiohttp.DummyCookieJar()) as session,
        session.get(where, headers=headers, allow_redirects=False) as response,
    ):
        return 200 <= response.status < 400
