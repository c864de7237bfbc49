"""Watches in virtual time: nothing is missed, whenever it happens."""

from __future__ import annotations

import asyncio

import msgspec
import pytest

from stromboli.server.api import Api
from stromboli.server.storage.watching import BOOKMARK_EVERY, Wish
from tests.support.virtual import run

INSTANT = 5e-10
"""Seconds apart at which an event loop still does two things in one round."""


@pytest.mark.parametrize("apart", [-INSTANT, 0.0, INSTANT])
@pytest.mark.parametrize("bookmarks", [True, False])
def test_news_of_the_very_moment_of_a_bookmark_are_told(bookmarks: bool, apart: float) -> None:
    async def story() -> list[tuple[str, str]]:
        loop = asyncio.get_running_loop()
        api = Api(loop.call_soon)
        await asyncio.sleep(0)  # housekeeping of the first objects
        resource = api.catalogue.find("", "v1", "configmaps")
        assert resource is not None
        body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "default"}}
        loop.call_at(loop.time() + BOOKMARK_EVERY + apart, api.store.put, resource.collection, body)
        wish = Wish("", api.store.version, None, bookmarks, 1.5 * BOOKMARK_EVERY, False)
        chunks = [chunk async for chunk in api.watcher.stream(resource, wish, None)]
        events = [msgspec.json.decode(line) for line in b"".join(chunks).splitlines()]
        return [(event["type"], event["object"]["metadata"].get("name", "")) for event in events]

    assert run(story()) == [("ADDED", "a"), *[("BOOKMARK", "")] * bookmarks]
