"""What the scheduler says of its shard: which nodes it uses, gives up and waits for."""

from __future__ import annotations

from typing import Final

from stromboli.errors import StromboliError
from stromboli.kube.resources import RESOURCES
from stromboli.live.scheduler.context import Context
from stromboli.model.values.times import stamp

NODE_SHARDS: Final = RESOURCES["NodeShard"]


class Sharding:
    """Writes the status of our NodeShard between cycles, so that a node is used only once that is said."""

    def __init__(self, context: Context) -> None:
        self._context = context

    async def publish(self) -> None:
        """Write what has changed; a write that fails is told, and tried again before the next cycle."""
        context, shards = self._context, self._context.mirror.state.nodes.shards
        if (status := shards.status()) is None:
            return
        parts = (status.nodes_in_use, status.nodes_to_remove, status.nodes_to_add)
        names = zip(("nodesInUse", "nodesToRemove", "nodesToAdd"), map(list, parts), strict=True)
        body = {"status": {**dict(names), "lastUpdateTime": stamp(context.clock())}}
        try:
            context.feed.answer(await context.client.patch(NODE_SHARDS, shards.name, "", body, subresource="status"))
        except StromboliError as error:
            context.tell("write_failed", what=f"the status of NodeShard {shards.name}", error=error)
