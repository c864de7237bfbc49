"""When cycles begin: by the table of what has been seen and done, and as a story with a cluster without work."""

from __future__ import annotations

import asyncio
import itertools
from typing import Any

import pytest

from stromboli.framework.books.plan import Plan
from stromboli.live.scheduler.pace import Pace
from stromboli.live.scheduler.scheduler import LOOK_EVERY
from tests.support.live_world import LiveWorld, gang, group, node, pod
from tests.support.virtual import run

PERIOD = 20.0


@pytest.mark.parametrize(
    ("idle", "arrived", "left"),
    [(True, 0, 14.0), (True, 1, 0.0), (False, 0, 14.0), (False, 1, 14.0)],
    ids=["nothing to do", "nothing to do, and something comes", "work", "work, and something comes"],
)
def test_what_arrives_where_there_is_nothing_to_do_is_looked_at_at_once(idle: bool, arrived: int, left: float) -> None:
    arrivals = 3
    pace = Pace(lambda: arrivals)
    pace.begun(99.0, PERIOD)
    pace.decided(100.0, idle=idle)
    arrivals += arrived
    assert pace.seconds_left(106.0, PERIOD) == left


def test_what_arrived_before_the_cycle_began_was_its_business() -> None:
    arrivals = 0
    pace = Pace(lambda: arrivals)
    arrivals = 5
    pace.begun(99.0, PERIOD)
    pace.decided(100.0, idle=True)
    assert pace.seconds_left(106.0, PERIOD) == 14.0


@pytest.mark.parametrize("idle", [True, False])
@pytest.mark.parametrize("fails", [True, False])
def test_an_extra_cycle_puts_off_none_of_the_others_and_is_not_followed_by_another(idle: bool, fails: bool) -> None:
    arrivals = 0
    pace = Pace(lambda: arrivals)
    pace.decided(100.0, idle=True)
    arrivals = 1
    assert pace.seconds_left(106.0, PERIOD) == 0.0
    pace.begun(106.0, PERIOD)
    pace.decided(106.5, idle=idle)
    if fails:  # when its plan is taken over
        pace.decided(106.6)
    arrivals = 2
    assert pace.seconds_left(107.0, PERIOD) == 13.0
    pace.begun(120.0, PERIOD)
    pace.decided(120.0, idle=True)
    assert pace.seconds_left(121.0, PERIOD) == 19.0
    arrivals = 3
    assert pace.seconds_left(122.0, PERIOD) == 0.0


def test_a_group_is_let_in_at_once_and_its_pods_when_the_next_cycle_was_due() -> None:
    async def story() -> None:
        world = LiveWorld()
        began: list[float] = []

        def planned(plan: Plan) -> None:
            began.append(asyncio.get_running_loop().time())

        scheduler = world.scheduler(when_planned=planned, schedule_period=PERIOD)
        world.start(scheduler)
        await asyncio.sleep(2.5 * PERIOD)
        world.server.put("podgroups", {**group("job", 2), "status": {"phase": "Pending"}})
        await asyncio.sleep(2 * LOOK_EVERY)
        assert world.server.get("podgroups", "job", "ns")["status"]["phase"] == "Inqueue"
        gang(world.server, "job", 2)
        await asyncio.sleep(PERIOD / 4)
        assert len(world.waiting()) == 2, "there is one extra cycle in a period, not more"
        await asyncio.sleep(PERIOD)
        assert world.waiting() == []
        spans = [after - before for before, after in itertools.pairwise(began)]
        assert spans == pytest.approx([PERIOD, PERIOD, PERIOD / 2, PERIOD / 2], abs=3 * LOOK_EVERY)
        await world.end()

    run(story())


@pytest.mark.parametrize(
    ("kind", "found", "is_early"),
    [
        ("pods", pod("new-0", "job"), True),
        ("podgroups", group("new", 1), True),
        ("pods", pod("new-0", "job", nodeName="n0"), False),
        ("pods", pod("new-0", schedulerName="default-scheduler"), False),
        ("pods", pod("job-0", "job"), False),
        ("podgroups", group("job", 2), False),
        ("nodes", node("new"), False),
    ],
    ids=["a pod", "a group", "a pod on a node", "another scheduler's", "a known pod", "a known group", "a node"],
)
def test_what_counts_as_an_arrival(kind: str, found: Any, is_early: bool) -> None:
    async def story() -> None:
        world = LiveWorld()
        gang(world.server, "job", 1)
        scheduler = world.scheduler(schedule_period=PERIOD)
        world.start(scheduler)
        await asyncio.sleep(2.5 * PERIOD)
        cycles = scheduler.cycles
        if found["metadata"]["name"] == "job-0":
            found["spec"] = world.server.get("pods", "job-0", "ns")["spec"]
        world.server.put(kind, found)
        await asyncio.sleep(PERIOD / 4)
        assert scheduler.cycles - cycles == is_early
        await world.end()

    run(story())


def test_a_pod_that_fits_nowhere_does_not_keep_others_from_being_looked_at_at_once() -> None:
    async def story() -> None:
        world = LiveWorld()
        gang(world.server, "huge", 1, cpu=99)
        world.start(world.scheduler(schedule_period=PERIOD))
        await asyncio.sleep(3.5 * PERIOD)
        gang(world.server, "job", 1)
        await asyncio.sleep(PERIOD / 4)
        assert world.waiting() == ["huge-0"]
        await world.end()

    run(story())


def test_nothing_is_told_of_a_cluster_without_work() -> None:
    """Else no cycle of it would count as one that had nothing to do."""

    async def story() -> None:
        world = LiveWorld()
        gang(world.server, "job", 3)
        plans: list[Plan] = []
        world.start(world.scheduler(when_planned=plans.append))
        await asyncio.sleep(20)
        found: list[Any] = [plan.is_empty for plan in plans]
        assert (found[0], found[-5:]) == (False, [True] * 5)
        await world.end()

    run(story())
