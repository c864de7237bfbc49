"""A scheduler is killed at every await between keep, patch, redeem and bind; the next one finishes what it began.

The awaits are those that the source has: a story is told once to see at which of them its tasks stand, and how the
cluster stands meanwhile, and then once for each such moment, at which the scheduler is killed.  Where two of them leave
the same to the next scheduler it goes on in the same way, so one of them is enough.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from stromboli.cluster import state
from stromboli.kube import turns
from stromboli.kube.transport import Request, Response
from tests.support.awaits import Moment, Sight, at_turns, awaits, chains, fatal, sights
from tests.support.contested import GRACE, TROUBLES, Contested, Halved, Mortal, counts, finished, quiet_for_minutes
from tests.support.memory_server import status
from tests.support.virtual import run

AWHILE = GRACE + 5
"""Seconds after which an undisturbed story is over."""

PARTS = 3
"""The moments of a story are shared out to so many tests."""

REFUSALS = {**TROUBLES, "refused": (lambda: status(422, "Invalid"), "before")}


@dataclass(frozen=True)
class Story:
    """What goes on as the scheduler is killed: in which world, with what ``trouble`` of writes.

    If it is ``resumed``, another one has been killed already that held the room.
    """

    kind: type[Contested]
    trouble: str = ""
    resumed: bool = False

    def __str__(self) -> str:
        return " ".join(filter(None, (self.kind.__name__, self.trouble, "resumed" * self.resumed)))

    async def begin(self, conf: Path) -> tuple[Contested, Mortal]:
        """Up to where others contend, or the scheduler is started."""
        world = self.kind(conf)
        if self.resumed:
            before = Mortal(world.server)
            before.process = world.start(world.mortal(before))
            world.contend()
            await asyncio.sleep(4)
            before.kill()
        if self.trouble:
            world.server.faults.append(once(*REFUSALS[self.trouble]))
        wire = Mortal(world.server, arrives=True)
        wire.process = world.start(world.mortal(wire, in_thread=True))
        if not self.resumed:
            await asyncio.sleep(1.5)
            world.contend()
        return world, wire


STORIES = [
    Story(Contested), Story(Contested, resumed=True), Story(Halved), Story(Halved, resumed=True),
    Story(Contested, "conflict"), Story(Contested, "no answer"), Story(Contested, "refused"),
]  # fmt: skip


def once(trouble: Callable[[], Response | None], at: str) -> Callable[[Request, str], Response | None]:
    """Has the first write of each sort to each object in trouble; a deletion is only lost, as no server refuses it."""
    struck: set[tuple[str, str]] = set()

    def strike(request: Request, when: str) -> Response | None:
        what = request.method, request.path
        if when != at or what in struck or not counts(request) or not what[1].count("/ns/"):
            return None
        struck.add(what)
        return trouble() if request.method != "DELETE" or trouble is REFUSALS["no answer"][0] else None

    return strike


@pytest.fixture(autouse=True)
def small_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    """Coroutines that give way now and then do so each time."""
    monkeypatch.setattr(turns, "SLICE", -1.0)
    monkeypatch.setattr(state, "COUNTED_AT_ONCE", 1)


SEEN: dict[Story, list[Sight]] = {}
"""What has been seen of each story: all tests of this module ask for the same ones."""


def seen(story: Story, conf: Path, known: set[object]) -> list[Sight]:
    """Those of a story at which something is seen that is not ``known``, which grows by it."""
    if story not in SEEN:
        SEEN[story] = run(sights(lambda: story.begin(conf), AWHILE))
    found: list[Sight] = []
    for sight in SEEN[story]:
        if new := {(chain, sight.standing) for chain in sight.chains} - known:
            known.update(new)
            found.append(sight)
    return found


async def killed(story: Story, conf: Path, moment: Moment) -> None:
    """Only what stands at the server then, and what is on its way there, is left to the next scheduler."""
    world, wire = await story.begin(conf)

    def strike(turn: int) -> None:
        if turn == moment.turn:
            assert chains() == moment.chains, "the story has gone another way"
            wire.kill()
            world.server.faults.clear()

    over = at_turns(strike)
    assert wire.process is not None
    await asyncio.wait([wire.process], timeout=AWHILE)  # as long as before: timers that are due together keep order
    over()
    assert wire.dead
    second = world.mortal()
    world.start(second)
    await finished(world, second)
    await quiet_for_minutes(world, second)
    await world.end()


@pytest.mark.slow
@pytest.mark.spread(PARTS)
@pytest.mark.parametrize("number", range(len(STORIES)), ids=map(str, STORIES))
@pytest.mark.parametrize("part", range(PARTS))
def test_killed_at_every_await_and_for_each_as_the_cluster_stands(part: int, number: int, tmp_path: Path) -> None:
    """What an earlier story of the same kind has tried is not tried again."""
    conf, known, story = tmp_path / "conf", set[object](), STORIES[number]
    for earlier in STORIES[:number]:
        if earlier.kind is story.kind:
            seen(earlier, conf, known)
    for moment in fatal(seen(story, conf, known))[part::PARTS]:
        run(killed(story, conf, moment))


BETWEEN = (
    "live/writing/binds.py", "live/scheduler/context.py", "live/writing/evictions.py", "live/writing/executor.py",
    "live/scheduler/plan_stream.py", "live/writing/pool.py",
    "live/scheduler/scheduler.py", "live/writing/updater.py", "live/writing/writes.py", "kube/turns.py",
)  # fmt: skip
"""What is at work between keep and bind."""

ELSEWHERE = {
    # once another one has led, or the state has been lost
    "_begin_to_lead: self.freshen()", "freshen: self.informers.synced()", "_schedule: asyncio.sleep(LOOK_EVERY)",
    "_schedule: self._stop.unless(self._read_anew())", "_read_anew: self.informers.synced()",
    "_read_anew: asyncio.sleep(self.client.backoff(self._uncounted, LOOK_EVERY, TOO_OFTEN))",
    # while the process is told to end, in place of being killed
    "_run: self._wind_down()", "_wind_down: asyncio.timeout(self.options.stop_timeout)",
    "_wind_down: self.executor.quiet()", "_wind_down: self.recorder.drain()", "quiet: pool.quiet()",
    "quiet: self._quiet.wait()",
    # the first start in a cluster
    "_created: client.patch(QUEUES, name, '', {'status': {'state': QUEUE_OPEN}}, subresource='status')",
    "_created: asyncio.sleep(1.0)",
    "_overdue: self._context.look(key, force=True)",
    # where there is no key to sign with
    "_annotate: self._say_later(f'Pod:reservation {key}')",
    # pods with claims: here none has one
    "_carry_out: self._claims.ready(bind)",
    "_take_back: self._volumes.take_back(bind)", "_take_back: self._claims.take_back(bind)", "until_known: write()",
    "until_known: self.pause(attempts.made, error)", "_carry_out: self._leave(bind)", "_leave: self._take_back(bind)",
    "_carry_out: self._give_up(bind, error)", "_give_up: self._take_back(bind)", "_as_it_stands: self._leave(bind)",
    "_as_it_stands: self._give_up(bind, ApiError(409, 'Conflict', text))", "_as_it_stands: self._give_up(bind, error)",
    # pods with shared cards, whose nodes are locked meanwhile: tests/devices/test_claims_killed.py kills at these
    "_carry_out: self._locks.take(bind)", "_take_back: self._locks.give_back(bind)",
    # where there are NodeShards: here there is none to write to
    "_cycle: self.sharding.publish()",
    # where there is never a wait
    "_synced: asyncio.timeout(timeout)",
}  # fmt: skip
"""Awaits at another time than between keep and bind."""


def test_no_await_is_left_out(tmp_path: Path) -> None:
    conf = tmp_path / "conf"
    found = [sight for story in STORIES for sight in seen(story, conf, set())]
    stood = {place for sight in found for chain in sight.chains for place in chain}
    missed = {place for module in BETWEEN for place in awaits(module).values()} - stood
    assert {f"{place.function}: {place.text}" for place in missed} == ELSEWHERE
