"""A plan for a cluster as it is at this moment."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING

from stromboli.builtin import full_registry
from stromboli.cli.terminal import say
from stromboli.cli.vcctl.held_since import held_since
from stromboli.cluster.events import Added
from stromboli.cluster.mirror import Mirror
from stromboli.cluster.objects import from_json
from stromboli.errors import ApiError, ManifestError
from stromboli.reservations.memory import MEMORY
from stromboli.sim.planning import Planning, Settings, config_of

if TYPE_CHECKING:
    from stromboli.kube.client import Client, Page


async def planned(client: Client, config: str | None) -> Planning:
    """One cycle over everything that a scheduler would look at; nothing of it is carried out."""
    from stromboli.live.scheduler.feed import FOLLOWED

    settings = Settings(config or "")
    registry = full_registry(settings.plugins)
    planning = Planning(config_of(settings, registry), registry, now=time.time())
    mirror = Mirror(planning.state)
    since: dict[str, float] = {}
    for kind in FOLLOWED:
        async for page in _pages(client, kind):
            for raw in page.items:
                try:
                    found = from_json(kind, raw)
                    mirror.take(Added(kind, found))
                    since |= held_since(found, raw)
                except ManifestError as error:
                    say(f"warning: {error}")
    planning.state.remember({MEMORY: since})
    planning.run()
    return planning


async def _pages(client: Client, kind: str) -> AsyncIterator[Page]:
    """All objects of a kind, in the newest version that the server has of it."""
    from stromboli.kube.resources import versions_of
    from stromboli.live.scheduler.feed import OPTIONAL

    for resource in versions_of(kind):
        try:
            async for page in client.pages(resource):
                yield page
            return
        except ApiError as error:
            if not error.not_found:
                raise
            unknown = error
    if kind not in OPTIONAL:
        raise unknown
