"""Connections to a served cluster below the level of requests."""

from __future__ import annotations

import asyncio
import ssl
from contextlib import asynccontextmanager

from stromboli.server.http.serving import serving


@asynccontextmanager
async def connected(found, *, tls=True):
    context = ssl.create_default_context(cadata=found.access.authority) if tls else None
    port = int(found.url.rsplit(":", 1)[1])
    reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=context)
    try:
        yield reader, writer
    finally:
        writer.close()


def served(folder, story, run=asyncio.run):
    async def whole():
        async with serving(folder) as found:
            return await asyncio.wait_for(story(found), 20)

    return run(whole())
