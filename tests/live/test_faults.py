"""Whatever goes wrong between the scheduler and the API server, these laws hold afterwards.

No pod is bound twice, no node has more than it offers, no gang stays part-bound where there is room, no pod is lost,
and the state is what a fresh list gives.  All of it in virtual time, on a simple server in memory and on the embedded
one, both of which fail on demand.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import random
from collections.abc import Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from stromboli.cluster.audit import inconsistencies
from stromboli.errors import LostLease, Unreachable
from stromboli.kube.client import Client
from stromboli.kube.lease import Election, Terms
from stromboli.kube.transport import Request, Response
from stromboli.live.scheduler.audit import looked_through
from stromboli.live.scheduler.scheduler import LiveScheduler
from tests.support.live_world import LiveWorld, gang, picture, pod
from tests.support.memory_server import MemoryServer, status
from tests.support.virtual import run

SIZE = 4
"""Pods of the gang that the single faults strike."""

TIMEOUT = Unreachable("no answer within 60 s")


def is_write(request: Request) -> bool:
    return request.method != "GET"


class Nth:
    """Strikes at the nth request that ``which`` names, and at no other; counts them."""

    def __init__(self, number: int, strike: Callable[[], Response | None], when: str, which=is_write) -> None:
        self.number, self.strike, self.when, self.which = number, strike, when, which
        self.seen = 0

    def __call__(self, request: Request, when: str) -> Response | None:
        if when != self.when or not self.which(request):
            return None
        self.seen += 1
        return self.strike() if self.seen == self.number else None


def raising(error: BaseException) -> Callable[[], Response]:
    def strike() -> Response:
        raise error

    return strike


@pytest.fixture(params=["memory", "embedded"])
def on(request: pytest.FixtureRequest) -> str:
    """Which server: a simple one, or the embedded one without its sockets."""
    return str(request.param)


PARTS = 3
"""The writes of a story are shared out to so many tests."""

STRIKES = {
    "409": (lambda: status(409, "Conflict"), "before"),
    "429": (lambda: status(429, "TooManyRequests", retry_after="2"), "before"),
    "500": (lambda: status(500, "InternalError"), "before"),
    "500 after it was done": (lambda: status(500, "InternalError"), "after"),
    "timeout": (raising(TIMEOUT), "before"),
    "timeout after it was done": (raising(TIMEOUT), "after"),
}


def writes_of_a_gang(on: str) -> int:
    """How many writes the binding of the gang takes when nothing goes wrong."""
    counting = Nth(-1, lambda: None, "before")

    async def main() -> None:
        world = LiveWorld(on=on)
        gang(world.server, "job", SIZE)
        world.server.faults.append(counting)
        world.start(world.scheduler())
        await asyncio.sleep(5)
        world.check()
        await world.end()

    run(main())
    return counting.seen


def all_is_well(world: LiveWorld, scheduler: LiveScheduler) -> None:
    assert world.waiting() == []
    world.check(scheduler)


@pytest.mark.spread(PARTS)
@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("kind", STRIKES)
def test_every_write_fails_once_at_every_point(part: int, kind: str, on: str) -> None:
    strike, when = STRIKES[kind]

    async def main(number: int) -> None:
        world = LiveWorld(on=on)
        gang(world.server, "job", SIZE)
        world.server.faults.append(Nth(number, strike, when))
        scheduler = world.scheduler()
        world.start(scheduler)
        await world.settled(scheduler)
        all_is_well(world, scheduler)
        assert world.server.get("podgroups", "job", "ns")["status"]["phase"] == "Running"
        events = [e for e in world.server.all("events") if e["reason"] == "Scheduled"]
        assert len({e["involvedObject"]["name"] for e in events if e["involvedObject"]["kind"] == "Pod"}) == SIZE
        assert scheduler.executor.binder.failed == 0 or kind == "409"  # a no is a failure, doubt is not
        await world.end()

    total = writes_of_a_gang(on)
    assert total >= 2 * SIZE
    first = 1 + (part + list(STRIKES).index(kind)) % PARTS
    for number in range(first, total + 1, PARTS):
        run(main(number))


@pytest.mark.parametrize("number", range(0, 12, 2))
def test_the_server_is_gone_for_half_a_minute(number: int, on: str) -> None:
    """From the nth request on."""

    async def main() -> None:
        world = LiveWorld(on=on)
        gang(world.server, "one", 5)
        gang(world.server, "two", 5)
        gone = [0, False]

        def fault(_request: Request, _when: str) -> Response | None:
            gone[0] += 1
            if gone[0] >= 20 + 2 * number:
                if not gone[1]:
                    gone[1] = True
                    asyncio.get_running_loop().call_later(30, world.server.faults.clear)
                    world.server.cut(Unreachable("reset"))
                raise Unreachable("refused")
            return None

        world.server.faults.append(fault)
        scheduler = world.scheduler()
        world.start(scheduler)
        await asyncio.sleep(25)
        await world.settled(scheduler)
        assert gone[1]
        all_is_well(world, scheduler)
        await world.end()

    run(main())


@pytest.mark.spread(PARTS)
@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("part", range(PARTS))
def test_killed_at_every_write_of_a_gangs_binding_and_started_again(part: int, when: str, on: str) -> None:
    async def main(number: int) -> bool:
        world = LiveWorld(nodes=2, on=on)
        gang(world.server, "job", SIZE)
        first = world.scheduler()
        running = world.start(first)

        def strike() -> Response:
            running.cancel()
            raise TIMEOUT

        killer = Nth(number, strike, when)
        world.server.faults.append(killer)
        await asyncio.sleep(2.5)
        struck = killer.seen >= number
        await world.end()
        world.server.faults.clear()
        bound_before = len(world.server.bindings)
        second = world.scheduler()
        world.start(second)
        await asyncio.sleep(1.5)
        assert world.waiting() == [], f"{bound_before} were bound before"
        await world.settled(second)
        all_is_well(world, second)
        await world.end()
        return struck

    number = 1 + part
    while run(main(number)):
        number += PARTS
    assert number > 2 * SIZE


@pytest.mark.parametrize("forgotten", [False, True])
def test_watches_end_again_and_again(forgotten: bool, on: str) -> None:
    async def main() -> None:
        world = LiveWorld(nodes=8, on=on)
        scheduler = world.scheduler()
        world.start(scheduler)
        for number in range(6):
            gang(world.server, f"job{number}", 4)
            await asyncio.sleep(0.7)
            if forgotten:
                world.server.forget()
            world.server.cut(TIMEOUT if number % 2 else None)
        await world.settled(scheduler)
        all_is_well(world, scheduler)
        await world.end()

    run(main())


def test_events_are_duplicated_and_come_late(on: str) -> None:
    async def main() -> None:
        world = LiveWorld(nodes=8, on=on)
        world.server.confused = random.Random(5)
        scheduler = world.scheduler()
        world.start(scheduler)
        for number in range(6):
            gang(world.server, f"job{number}", 4)
            await asyncio.sleep(0.7)
            if number == 3:
                world.server.drop("pods", "job1-2", "ns")
                world.server.put("pods", pod("job1-2", "job1"))
        await asyncio.sleep(20)
        assert world.waiting() == []
        assert world.server.get("pods", "job1-2", "ns")["spec"]["nodeName"]
        bound = [name for name, _ in world.server.bindings if name != "ns/job1-2"]  # which was another pod before
        assert len(bound) == len(set(bound))
        assert picture(scheduler.state) == picture(world.fresh())
        await world.end()

    run(main())


@pytest.mark.parametrize("jump", [3600.0, -3600.0])
def test_the_clock_jumps(jump: float, on: str) -> None:
    async def main() -> None:
        world = LiveWorld(on=on)
        scheduler = world.scheduler(audit_period=60)
        world.start(scheduler)
        gang(world.server, "one", 4)
        await asyncio.sleep(1.2)
        world.clock.jump += jump
        gang(world.server, "two", 4)
        await asyncio.sleep(5)
        world.clock.jump -= jump
        gang(world.server, "three", 4)
        await asyncio.sleep(90)
        all_is_well(world, scheduler)
        assert (scheduler.audit.runs, scheduler.audit.found) == (1, 0)
        await world.end()

    run(main())


# ---------------------------------------------------------------------- two schedulers and one Lease


class Wire:
    """A connection of one process, which can be cut; notes each write with its time and its writer."""

    def __init__(self, server: MemoryServer, name: str, writes: list[tuple[float, str]]) -> None:
        self.server, self.name, self.writes = server, name, writes
        self.broken = False

    async def send(self, request: Request, login: Any) -> Response:
        self._check(request)
        if is_write(request) and "/leases" not in request.path and "/events" not in request.path:
            self.writes.append((asyncio.get_running_loop().time(), self.name))
        return await self.server.send(request, login)

    @asynccontextmanager
    async def stream(self, request: Request, login: Any):
        self._check(request)
        async with self.server.stream(request, login) as stream:
            yield stream

    async def close(self) -> None:
        """The server goes on."""

    def _check(self, request: Request) -> None:
        if self.broken:
            raise Unreachable("cut", request=str(request))


class Candidate:
    """A scheduler process with leader election."""

    def __init__(self, world: LiveWorld, name: str, writes: list[tuple[float, str]]) -> None:
        self.wire = Wire(world.server, name, writes)
        client = Client(self.wire, dice=random.Random(name))
        self.election = Election(client, Terms("volcano-system", "volcano", name), clock=world.clock)
        self.scheduler = world.scheduler(transport=self.wire, may_write=lambda: self.election.leads)
        self.tasks = [world.start(self.scheduler), asyncio.create_task(self._lead())]
        world.tasks.append(self.tasks[1])

    async def _lead(self) -> None:
        await self.election.win()
        await self.election.hold()

    def kill(self) -> None:
        for task in self.tasks:
            task.cancel()


def no_two_at_once(writes: list[tuple[float, str]]) -> None:
    """Between the writes of one leader no other process writes."""
    changes = sum(before[1] != after[1] for before, after in itertools.pairwise(writes))
    assert changes == len({name for _, name in writes}) - 1, writes


async def handed_over(end: str, on: str) -> tuple[float, LiveWorld, Candidate, list[tuple[float, str]]]:
    """Two candidates; the leader's end comes in one of three ways; seconds until the other one has bound a gang."""
    world = LiveWorld(nodes=8, on=on)
    writes: list[tuple[float, str]] = []
    first = Candidate(world, "first", writes)
    await asyncio.sleep(3)
    second = Candidate(world, "second", writes)
    gang(world.server, "before", 4)
    await asyncio.sleep(5)
    assert world.waiting() == []
    loop = asyncio.get_running_loop()
    start = loop.time()
    if end == "released":
        first.scheduler.stop()
        await first.tasks[0]
        first.tasks[1].cancel()
        await first.election.release()
    elif end == "killed":
        first.kill()
    else:
        first.wire.broken = True
    gang(world.server, "after", 4)
    while world.waiting():
        await asyncio.sleep(0.1)
        assert loop.time() - start < 60
    took = loop.time() - start
    await asyncio.sleep(10)
    return took, world, second, writes


def test_an_audit_lets_others_have_their_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    """With slices of no length it gives way at every object; what goes meanwhile is no difference."""

    async def story() -> None:
        world = LiveWorld(nodes=4, cpu=8)
        gang(world.server, "job", 20)
        scheduler = world.scheduler()
        world.start(scheduler)
        await world.settled(scheduler)
        monkeypatch.setattr("stromboli.kube.turns.SLICE", -1.0)
        turns = 0

        async def count() -> None:
            nonlocal turns
            while True:
                await asyncio.sleep(0)
                turns += 1
                state = scheduler.state
                if turns > 10 and len(state.tasks) > 10:
                    state.remove_task(next(iter(state.tasks.values())))

        counting = asyncio.create_task(count())
        found = await looked_through(inconsistencies(scheduler.state))
        counting.cancel()
        assert (found, len(scheduler.state.tasks)) == ([], 10)
        assert turns >= 20
        await world.end()

    run(story())


def test_a_leader_ends_when_its_time_is_over_and_with_it_what_it_has_under_way(on: str) -> None:
    """A bind that a busy server puts off must not be sent when another one may lead."""

    async def story() -> tuple[float, list[str]]:
        world = LiveWorld(on=on)
        server = world.server
        late: list[str] = []

        def fault(request: Request, when: str) -> Response | None:
            if "/leases" in request.path and request.method == "PUT":
                raise Unreachable("cut", request=str(request))
            if "/binding" in request.path and when == "before":
                late.append(request.path)
                return status(429, "TooManyRequests", retry_after="11")
            return None

        client = Client(server, dice=random.Random(1))
        election = Election(client, Terms("ns", "volcano", "me", 15.0, 10.0, 4.0))
        await election.win()
        scheduler = world.scheduler(may_write=lambda: election.leads)
        world.start(scheduler)
        await scheduler.ready.wait()
        start = asyncio.get_running_loop().time()
        server.faults.append(fault)
        gang(server, "job", 1)
        with pytest.raises(LostLease):
            await election.hold()
        took = asyncio.get_running_loop().time() - start
        await asyncio.sleep(30)
        assert scheduler.state.tasks["ns/job-0"].node_name == ""
        await world.end()
        return took, late

    took, late = run(story())
    assert took <= 10.0
    assert len(late) == 1


@pytest.mark.parametrize(("end", "least", "most"), [("released", 0, 5), ("killed", 5, 20), ("cut off", 10, 20)])
def test_leadership_is_handed_over_and_never_shared(end: str, least: float, most: float, on: str) -> None:
    async def main() -> None:
        took, world, second, writes = await handed_over(end, on)
        assert least <= took <= most
        no_two_at_once(writes)
        all_is_well(world, second.scheduler)
        lease = world.server.get("leases", "volcano", "volcano-system")["spec"]
        assert (lease["holderIdentity"], lease["leaseTransitions"]) == ("second", 1)
        await world.end()

    run(main())


def test_one_that_was_cut_off_does_not_write_when_it_is_back(on: str) -> None:
    async def main() -> None:
        world = LiveWorld(nodes=8, on=on)
        writes: list[tuple[float, str]] = []
        first = Candidate(world, "first", writes)
        await asyncio.sleep(3)
        second = Candidate(world, "second", writes)
        await asyncio.sleep(1)
        first.wire.broken = True
        gang(world.server, "job", 4)
        await asyncio.sleep(30)
        first.wire.broken = False
        gang(world.server, "more", 4)
        await asyncio.sleep(10)
        assert not first.election.leads
        assert {name for at, name in writes if at > 1000 + 5} == {"second"}
        all_is_well(world, second.scheduler)
        await world.end()

    run(main())


def test_two_that_fight_for_a_lease_never_both_lead(on: str) -> None:
    async def main() -> None:
        world = LiveWorld(nodes=2, on=on)
        writes: list[tuple[float, str]] = []
        both = [Candidate(world, name, writes) for name in ("a", "b")]
        dice = random.Random(7)
        for _ in range(600):
            assert sum(candidate.election.leads for candidate in both) <= 1
            if dice.random() < 0.02:
                dice.choice(both).wire.broken ^= True
            await asyncio.sleep(0.25)
        await world.end()

    run(main())


def test_bodies_of_bindings_name_the_pods_uid(on: str) -> None:
    async def main() -> None:
        world = LiveWorld(on=on)
        gang(world.server, "job", 2)
        world.start(world.scheduler())
        await asyncio.sleep(3)
        sent = [json.loads(r.body or b"") for r in world.server.requests if r.path.endswith("/binding")]
        uids = {p["metadata"]["uid"] for p in world.server.all("pods")}
        assert {body["metadata"]["uid"] for body in sent} == uids
        await world.end()

    run(main())
