"""Random schedules of faults against real processes on one server; afterwards everything must come to rest."""

from __future__ import annotations

import logging
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from benchmarks.chaos.drawn import NODES, PRIORITIES, QUEUES, Schedule, schedule
from benchmarks.chaos.faults import World
from benchmarks.chaos.outcomes import Effort, Outcome
from benchmarks.chaos.rest import Found, orphans, told, unrest
from e2e.clusters import SERVERS, Refused
from e2e.dumps import differences
from e2e.laws import Recorder
from e2e.objects import namespace, priority_class
from e2e.proxy import Proxy
from e2e.real import ROOT, UNREACHABLE
from e2e.stage import GROUPS, JOBS, Stage, Waited, staged, until

_PATIENCE: Final = 120.0
"""Seconds that everything may take to come to rest once faults are over."""
_SCENES: Final = ROOT / "build" / "chaos"
_SHOWN: Final = 6


def run(effort: Effort) -> Outcome:
    """Play schedule after schedule, each in a namespace of its own."""
    logging.getLogger("aiohttp").setLevel(logging.CRITICAL)  # the proxy's own server, whose target goes away
    outcome = Outcome(f"schedules on the {effort.server} server", effort.seed)
    with tempfile.TemporaryDirectory() as name, _world(effort.server, Path(name)) as world:
        judge = _Judge(world, outcome)
        for number, dice in effort.trials():
            drawn = schedule(dice, f"s{effort.seed}-{number}")
            judge.play(number, drawn)
            if judge.hopeless:
                break
    return outcome


@contextmanager
def _world(kind: str, folder: Path) -> Iterator[World]:
    server = SERVERS[kind](folder / "server")
    with staged(server, folder, NODES) as stage, Proxy(stage.login).running() as proxy, stage.skewed() as jump:
        for name, value in PRIORITIES.items():
            stage.create(priority_class(name, value))
        with stage.scheduler(name="prepares"):
            for name, weight in QUEUES.items():
                if name != "default":
                    stage.queue(name, weight=weight)
        del stage.running["prepares"], stage.running["scheduler"]
        world = World(stage, proxy, jump)
        world.begin()
        try:
            yield world
        finally:
            world.heal()


class _Judge:
    def __init__(self, world: World, outcome: Outcome) -> None:
        self._world, self._stage, self._outcome = world, world.stage, outcome
        self._recorder = Recorder(self._stage.api)
        self._recorder.start()
        self._broken = self._forbidden = 0
        self._read: dict[Path, int] = {}
        self._ended: list[str] = []
        self.hopeless = False

    def play(self, number: int, drawn: Schedule) -> None:
        """Play a schedule, note what was wrong, and clear up."""
        began = time.monotonic()
        self._collect_garbage()
        self._stage.create(namespace(drawn.space))
        wrong = [*self._played(drawn), *self._laws()]
        self._outcome.tried += 1
        for step in drawn.steps:
            if step.kind != "create":
                self._outcome.ends[step.kind] += 1
        if wrong:
            self._note(number, drawn, wrong)
        try:
            self._stage.clear(drawn.space)
        except Waited as error:
            self.hopeless = True
            self._outcome.violations.append(f"cannot be cleared up: {error}")
        took = time.monotonic() - began
        print(f"{drawn.space}: {'violated' if wrong else 'survived'} in {took:.1f} s", flush=True)

    def _collect_garbage(self, present: str = "") -> None:
        """Delete what is left of Jobs that are gone, as a cluster does; a bare API server leaves it.

        Queues would go on counting their PodGroups as admitted.  Outside the namespace ``present`` all Jobs are gone.
        """
        for group in self._stage.items("/apis/scheduling.volcano.sh/v1beta1/podgroups"):
            if group["metadata"]["namespace"] != present:
                self._stage.delete(f"{GROUPS.format(group['metadata']['namespace'])}/{group['metadata']['name']}")
        if not present:
            return
        paths = (GROUPS.format(present), f"/api/v1/namespaces/{present}/pods")
        found = [(path, self._stage.items(path)) for path in paths]
        jobs = self._stage.items(JOBS.format(present))
        for path, dependents in found:
            for one in orphans(dependents, jobs):
                meta = one["metadata"]  # another one may have its name by now
                self._stage.delete(f"{path}/{meta['name']}", preconditions={"uid": meta["uid"]})

    def _played(self, drawn: Schedule) -> list[str]:
        self._world.play(drawn)
        self._ended = self._world.ended()
        self._world.heal()
        wrong: list[str] = []
        try:
            self._come_to_rest(drawn)
        except Waited as error:
            wrong.append(f"not at rest: {error}")
        return [*self._ended, *wrong, *self._world.ended()]

    def _come_to_rest(self, drawn: Schedule) -> None:
        self._until_none(lambda: unrest(self._found(drawn)), "rest", _PATIENCE)
        self._until_none(self._unlike_listed, "state as listed", 60.0)

    def _until_none(self, look: Callable[[], list[str]], what: str, seconds: float) -> None:
        """Wait until ``look`` finds nothing.  Raises Waited with what it found last.

        A process that ends meanwhile is started again, as a Deployment does it.
        """
        left: list[str] = []

        def none() -> bool:
            self._ended += self._world.ended()
            left[:] = look()
            return not left

        try:
            until(none, what, seconds)
        except Waited as error:
            raise Waited(f"{what}: {'; '.join(left[:_SHOWN])}" if left else str(error)) from error

    def _unlike_listed(self) -> list[str]:
        """The pods of which the leader's state says anything else than the server."""
        leader = self._world.leader()
        return differences(self._stage, leader) if leader else ["no scheduler leads"]

    def _found(self, drawn: Schedule) -> Found:
        self._collect_garbage(drawn.space)
        jobs, pods = self._stage.items(JOBS.format(drawn.space)), self._stage.pods(drawn.space)
        wanted = [step.detail for step in drawn.steps if step.kind == "create"]
        return Found(jobs, pods, wanted, self._world.deleted)

    def _laws(self) -> list[str]:
        """What has broken a law, was forbidden or is told in a log since this was asked before."""
        broken, forbidden = self._recorder.broken[self._broken :], self._stage.server.forbidden()[self._forbidden :]
        self._broken += len(broken)
        self._forbidden += len(forbidden)
        refused = [f"{one['verb']} {one['requestURI']} was refused" for one in forbidden]
        return [*broken[:_SHOWN], *refused[:_SHOWN], *self._logged()]

    def _logged(self) -> list[str]:
        wrong: list[str] = []
        for path in sorted(self._stage.folder.glob("*.log")):
            text = path.read_bytes()[self._read.get(path, 0) :]
            text = text[: text.rfind(b"\n") + 1]
            self._read[path] = self._read.get(path, 0) + len(text)
            wrong += [f"{path.name}: {line}" for line in told(text.decode(errors="replace"))]
        return wrong[:_SHOWN]

    def _note(self, number: int, drawn: Schedule, wrong: list[str]) -> None:
        _SCENES.mkdir(parents=True, exist_ok=True)
        path = _SCENES / f"{drawn.space}.txt"
        with suppress(*UNREACHABLE, Refused):
            path.write_text("\n".join([str(drawn), *wrong, *_scene(self._stage, drawn.space)]))
        self._outcome.violated(
            number, f"{'; '.join(wrong)}\n  schedule {drawn}\n  how it stood: {path.relative_to(ROOT)}"
        )


def _scene(stage: Stage, space: str) -> Iterator[str]:
    yield from stage.scene(space)
    for path in stage.folder.glob("*.log"):
        yield f"---- {path.name}"
        yield path.read_text(errors="replace")[-60_000:]
