"""Writes that must not be left undone: how often they are tried, with which pauses, and what ends them."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any, cast

import pytest

from stromboli.cluster.events import Modified
from stromboli.cluster.mirror import Mirror
from stromboli.cluster.objects import from_value
from stromboli.cluster.state import ClusterState
from stromboli.errors import ApiError, StromboliError, Unreachable
from stromboli.framework.books.plan import Bind
from stromboli.live.process.events import Telling
from stromboli.live.scheduler.context import ATTEMPTS, CONFLICTS, Attempts, Context
from stromboli.live.scheduler.feed import Feed
from stromboli.narration.observe import Counting
from tests.support.live_world import pod
from tests.support.virtual import run

BIND = Bind("p", "default/p", "default/g", "n")
CONFLICT, BROKEN, GONE = (
    ApiError(409, "Conflict", "changed"),
    ApiError(500, "InternalError", "broken"),
    ApiError(404, "NotFound", "gone"),
)


class World:
    """A context whose client answers with errors, one after the other, and then well."""

    def __init__(self, *errors: StromboliError) -> None:
        self.errors, self.told, self.leads = list(errors), Counting(), True
        self.tried = 0
        dice = SimpleNamespace(uniform=lambda low, high: low)
        client: Any = SimpleNamespace(dice=dice, backoff=lambda attempt, longest: min(0.5 * attempt, longest))
        client.get = self.get
        mirror = Mirror(ClusterState())
        feed = Feed(mirror, Telling(self.told), lambda: 0.0, lambda *_: None)
        self.context = Context(client, feed, cast(Any, None), may_write=lambda: self.leads, clock=lambda: 0.0)

    async def get(self, *_: Any) -> Any:
        await self.write()

    async def write(self) -> None:
        self.tried += 1
        if self.errors:
            raise self.errors.pop(0)

    def seconds(self) -> float:
        """How long it takes until the write is known."""

        async def story() -> float:
            loop = asyncio.get_running_loop()
            began = loop.time()
            await self.context.until_known(self.write, BIND)
            return loop.time() - began

        return run(story())


@pytest.mark.parametrize(
    ("errors", "tried", "seconds"),
    [
        ([], 1, 0.0),
        ([BROKEN, BROKEN], 3, 0.5 + 1.0),
        ([BROKEN] * 6, 7, 0.5 + 1.0 + 1.5 + 3 * 2.0),
        ([CONFLICT, CONFLICT], 3, 0.02),
        ([ApiError(429, "TooManyRequests", "later", retry_after=7.0)], 2, 7.0),
        ([Unreachable("away")] * 3, 4, 0.5 + 1.0 + 1.5),
        ([BROKEN] * ATTEMPTS, ATTEMPTS, None),
        ([CONFLICT] * CONFLICTS, CONFLICTS, None),
        ([Unreachable("away")] * (ATTEMPTS + 1), ATTEMPTS + 2, None),
        ([ApiError(422, "Invalid", "never")], 1, 0.0),
    ],
)
def test_what_must_be_done_is_tried_until_it_is_done_or_hopeless(
    errors: Sequence[StromboliError], tried: int, seconds: float | None
) -> None:
    world = World(*errors)
    took = world.seconds()
    assert world.tried == tried
    assert seconds is None or took == pytest.approx(seconds)
    assert world.told.counts["bind_retried"] == len(errors)


def test_a_writer_that_does_not_lead_sends_no_request() -> None:
    world = World()
    world.leads = False
    assert (world.seconds(), world.tried) == (0.0, 0)


def test_a_pod_that_the_server_does_not_have_is_gone() -> None:
    world = World(GONE, GONE, BROKEN)
    body = pod("p", "job")
    body["metadata"] |= {"uid": "u", "resourceVersion": "1"}
    world.context.feed.take(Modified("Pod", from_value("Pod", body)))
    tasks = world.context.mirror.state.tasks
    assert world.context.waiting("ns/p", "u") is tasks["ns/p"]
    assert world.context.waiting("ns/p", "another") is None
    assert asyncio.run(world.context.look("ns/p")) is None
    assert "ns/p" not in tasks
    assert world.context.waiting("ns/p", "u") is None
    assert asyncio.run(world.context.look("ns/p")) is None, "a pod that is not known cannot go"
    with pytest.raises(ApiError, match="broken"):
        asyncio.run(world.context.look("ns/p"))


@pytest.mark.parametrize("code", [400, 401, 403, 404, 405, 406, 407, 408, 413, 414, 415, 422, 423, 500, 503])
def test_what_a_server_refuses_for_good_is_not_asked_for_again(code: int) -> None:
    for_good = (400, 401, 403, 405, 406, 413, 415, 422)
    assert Attempts().are_over(ApiError(code, "", "refused")) is (code in for_good)
