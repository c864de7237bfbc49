"""The changes of a live scheduler's state, made once more to another state, give the same snapshots."""

from __future__ import annotations

import asyncio
from pathlib import Path

from stromboli.cluster.rim import Change, Cut, GatesSet, Rim
from stromboli.cluster.state import ClusterState
from stromboli.model.codec import encode_snapshot
from tests.support.contested import Contested
from tests.support.virtual import run


def test_what_changes_the_state_goes_through_the_rim(tmp_path: Path) -> None:
    changes: list[Change] = []
    live: list[bytes] = []

    async def story() -> None:
        world = Contested(tmp_path / "conf.yaml")
        scheduler = world.mortal(priority_class=True)
        rim, snapshot = scheduler.mirror.rim, scheduler.take_snapshot
        changes.append(GatesSet(sorted(scheduler.configuration.current.gates)))
        rim.tell = changes.append

        async def noted() -> object:
            taken = await snapshot()
            live.append(encode_snapshot(taken[1]))
            return taken

        scheduler.take_snapshot = noted  # type: ignore[method-assign,assignment]
        world.start(scheduler)
        await asyncio.sleep(10)
        world.contend()
        await asyncio.sleep(45)
        assert all(world.high())
        await world.end()

    run(story())
    again = Rim(ClusterState())
    found = [(change, again.do(change)) for change in changes]
    assert [encode_snapshot(given) for change, given in found if isinstance(change, Cut)] == live
    kinds = {type(change).__name__ for change in changes}
    assert kinds >= {"Applied", "Decided", "Reserved", "StatusSet", "Learned", "Cut"}
    assert len(live) > 40
