"""Evictions that the server cannot carry out at once."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from stromboli.framework.books.plan import Eviction
from stromboli.kube.transport import Request, Response
from tests.support.live_world import Directed, group, pod, uid
from tests.support.memory_server import status
from tests.support.virtual import run


class Refusing(Directed):
    """A cluster whose server does not delete pods the first ``times`` times, and when it was asked to."""

    def __init__(self, times: int) -> None:
        super().__init__()
        self.asked: list[float] = []
        self.server.put("podgroups", group("job", 1))
        made = pod("job-0", "job", nodeName="n1")
        self.server.put("pods", {**made, "status": {"phase": "Running"}})

        def fault(request: Request, when: str) -> Response | None:
            if request.method != "DELETE" or when != "before":
                return None
            self.asked.append(asyncio.get_running_loop().time())
            return status(500, "InternalError") if len(self.asked) <= times else None

        self.server.faults.append(fault)

    def evicted(self) -> bool:
        return "deletionTimestamp" in self.server.get("pods", "job-0", "ns")["metadata"]


def test_an_eviction_is_tried_again_after_a_while_and_told_once(tmp_path: Path) -> None:
    async def story() -> None:
        world = Refusing(2)
        scheduler = await world.directed(tmp_path)
        scheduler.executor.evict([Eviction(uid(world, "job-0"), "ns/job-0", "ns/job", "n1", "preempt")])
        await asyncio.sleep(30)
        assert world.evicted()
        assert len(world.asked) == 3
        assert all(later - sooner > 0.05 for sooner, later in zip(world.asked, world.asked[1:], strict=False))
        written = [one for one in world.server.requests if one.method == "PATCH" and "/pods/job-0/status" in one.path]
        assert len(written) == 1, "why it ends was said before the first attempt"
        assert world.told.of("evicting") == [{"task": "ns/job-0", "reason": "preempt"}]
        await world.end()

    run(story())


@pytest.mark.parametrize("again", [False, True])
def test_an_eviction_of_a_pod_that_is_another_by_now_is_not_carried_out(again: bool, tmp_path: Path) -> None:
    """It has gone while the eviction waited for its next attempt, and one of its name has come, or not."""

    async def story() -> None:
        world = Refusing(1)
        scheduler = await world.directed(tmp_path)
        scheduler.executor.evict([Eviction(uid(world, "job-0"), "ns/job-0", "ns/job", "n1", "preempt")])
        while not world.asked:
            await asyncio.sleep(0.01)
        world.server.drop("pods", "job-0", "ns")
        if again:
            world.server.put("pods", {**pod("job-0", "job", nodeName="n1"), "status": {"phase": "Running"}})
        await asyncio.sleep(30)
        assert len(world.asked) == 1
        assert scheduler.mirror.assumed == {}
        assert not again or not world.evicted()
        await world.end()

    run(story())
