"""A scheduler is killed, or its pods are deleted, at every await between assign, write, annotate and bind.

A story is told once to see at which awaits its tasks stand, and then once for each such moment; killed, once for each
that leaves the next scheduler something else.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from stromboli.cluster import state
from stromboli.kube import turns
from stromboli.kube.transport import Request, Response
from stromboli.plugins.deviceshare.locks import LOCKED_FOR
from tests.support.awaits import Moment, Sight, at_turns, awaits, chains, fatal, sights
from tests.support.claiming import Claiming
from tests.support.contested import TROUBLES, Mortal
from tests.support.memory_server import status
from tests.support.virtual import run

ELSEWHERE = {
    "_try: turn",  # a lock that is free: the claims of the story belong to one pod each
    "take: self._remove(held)",  # tested in test_node_locks: a pod that goes elsewhere
    # where another client has bound or deleted the pod, which is where pods are deleted below
    "_as_it_stands: self._give_up(bind, ApiError(409, 'Conflict', text))", "_as_it_stands: self._give_up(bind, error)",
    "_as_it_stands: self._leave(bind)", "_carry_out: self._leave(bind)", "_leave: self._take_back(bind)",
}  # fmt: skip
"""Awaits at which nothing of these stories stands."""
AWHILE = 12.0
"""Seconds after which an undisturbed story is over."""
PARTS = 3
"""The moments of a story are shared out to so many tests."""
UNDONE = "forbidden after it was done"
"""So that what is written is taken back; a binding that is done is never refused."""
REFUSALS = {
    **TROUBLES, "forbidden": (lambda: status(403, "Forbidden"), "before"),
    UNDONE: (lambda: status(403, "Forbidden"), "after"),
}  # fmt: skip
CHANGED = ("resourceclaims", "persistentvolumes", "persistentvolumeclaims", "pods", "nodes")
SERIOUS = ("", "conflict", "no answer after it was done", "forbidden", UNDONE)
WRITERS = ("live/writing/binds.py", "live/writing/claims.py", "live/writing/volumes.py", "live/writing/locks.py")


@pytest.fixture(autouse=True)
def small_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    """Coroutines that give way now and then do so each time."""
    monkeypatch.setattr(turns, "SLICE", -1.0)
    monkeypatch.setattr(state, "COUNTED_AT_ONCE", 1)


def once(trouble: Callable[[], Response | None], at: str) -> Callable[[Request, str], Response | None]:
    """Has the first write of each sort to each claim, volume and pod in trouble."""
    struck: set[tuple[str, str]] = set()

    def strike(request: Request, when: str) -> Response | None:
        what = request.method, request.path
        refused = "/binding" in request.path and at == "after" and trouble is REFUSALS[UNDONE][0]
        matters = not refused and any(f"/{kind}/" in request.path for kind in CHANGED)
        if when != at or what in struck or request.method == "GET" or not matters:
            return None
        struck.add(what)
        return trouble()

    return strike


async def begin(conf: Path, trouble: str = "") -> tuple[Claiming, Mortal]:
    """A world in which the gang has just arrived."""
    world = Claiming(conf)
    if trouble:
        world.server.faults.append(once(*REFUSALS[trouble]))
    wire = Mortal(world.server, arrives=True)
    wire.process = world.start(world.mortal(wire, in_thread=True))
    await asyncio.sleep(1.5)
    world.arrive()
    return world, wire


def seen(conf: Path, trouble: str) -> list[Sight]:
    """At which a task stands at an await of what writes claims or binds, once for each standing of the cluster."""
    found: list[Sight] = []
    known: set[object] = set()
    for sight in run(sights(lambda: begin(conf, trouble), AWHILE)):
        ours = {place for chain in sight.chains for place in chain if place.module in WRITERS}
        if new := {(place, sight.standing) for place in ours} - known:
            known.update(new)
            found.append(sight)
    return found


async def killed(conf: Path, trouble: str, moment: Moment, *, stays: bool) -> None:
    """Only what stands at the server then is left to the next scheduler; without ``stays`` the pods go, too."""
    world, wire = await begin(conf, trouble)

    def strike(turn: int) -> None:
        if turn == moment.turn:
            assert chains() == moment.chains, "the story has gone another way"
            wire.kill()
            world.server.faults.clear()

    over = at_turns(strike)
    assert wire.process is not None
    await asyncio.wait([wire.process], timeout=AWHILE)
    over()
    assert wire.dead
    await check_next(world, stays=stays)


async def check_next(world: Claiming, *, stays: bool) -> None:
    """A second scheduler finishes what is there; what is left of pods that are gone does not keep others out."""
    if not stays:
        world.leave()
        await asyncio.sleep(1)
        assert world.allocated() == {}
        world.arrive()
    world.clock.jump += LOCKED_FOR  # by then a lock without a bound pod has expired
    second = world.mortal()
    world.start(second)
    await asyncio.sleep(AWHILE)
    if stays:
        world.check_whole(second)
    else:
        assert "" not in world.pods().values()
        storage = second.state.storage
        assert (storage.given, storage.devices.given) == ({}, {})
    await world.end()


@pytest.mark.slow
@pytest.mark.spread(PARTS)
@pytest.mark.parametrize(
    ("trouble", "stays"),
    [("", True), ("", False), ("no answer after it was done", True), (UNDONE, True)],
)
@pytest.mark.parametrize("part", range(PARTS))
def test_a_scheduler_is_killed_at_every_await(part: int, trouble: str, stays: bool, tmp_path: Path) -> None:
    found = fatal(seen(tmp_path / "conf", trouble))
    assert len(found) > 10
    for moment in found[part::PARTS]:
        run(killed(tmp_path / "conf", trouble, moment, stays=stays))


async def deserted(conf: Path, moment: Moment) -> None:
    """The pods are deleted while the scheduler goes on: everything that it wrote is free again, and stays so."""
    world, _ = await begin(conf)
    left: list[int] = []

    def strike(turn: int) -> None:
        if turn == moment.turn:
            left.append(turn)
            world.leave()

    over = at_turns(strike)
    await asyncio.sleep(AWHILE)
    over()
    assert left
    assert world.allocated() == {}
    world.check_clean(world.running)
    await world.end()


@pytest.mark.slow
def test_pods_are_deleted_at_every_await(tmp_path: Path) -> None:
    for sight in seen(tmp_path / "conf", ""):
        run(deserted(tmp_path / "conf", sight.moment()))


def test_every_await_of_the_writers_is_seen(tmp_path: Path) -> None:
    found = [sight for trouble in SERIOUS[1:] for sight in seen(tmp_path / "conf", trouble)]
    stood = {place for sight in found for chain in sight.chains for place in chain}
    missed = {place for name in WRITERS for place in awaits(name).values()} - stood
    assert {f"{place.function}: {place.text}" for place in missed} == ELSEWHERE


@pytest.mark.parametrize("trouble", sorted(REFUSALS))
def test_writes_in_trouble_are_tried_again(trouble: str, tmp_path: Path) -> None:
    async def story() -> None:
        world, _ = await begin(tmp_path / "conf", trouble)
        await asyncio.sleep(AWHILE * 2)
        world.check_whole(world.running)
        await world.end()

    run(story())


def forbidden(request: Request, when: str) -> Response | None:
    return status(403, "Forbidden") if request.path.endswith("/binding") and when == "before" else None


def test_what_was_written_is_taken_back_where_the_bind_is_refused(tmp_path: Path) -> None:
    async def story() -> None:
        world, _ = await begin(tmp_path / "conf")
        world.server.faults.append(forbidden)
        seen: set[int] = set()
        over = at_turns(lambda _: seen.add(len(world.allocated())))
        await asyncio.sleep(3)
        over()
        assert {0, 2} <= seen, "written, and taken back"
        world.server.faults.clear()
        await asyncio.sleep(AWHILE)
        world.check_whole(world.running)
        await world.end()

    run(story())
