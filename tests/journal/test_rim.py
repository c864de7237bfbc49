"""The changes of a live scheduler's state, made once more to another state, give the same snapshots."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from pathlib import Path

import pytest

import stromboli
from stromboli.builtin import full_registry
from stromboli.cluster.rim import Change, Cut, GatesSet, Rim
from stromboli.cluster.state import ClusterState
from stromboli.model.codec import encode_snapshot
from stromboli.sim.simulation.simulation import Simulation
from stromboli.sim.simulation.workload import Pods, SimJob, Workload, nodes_of
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


MUTATING = (
    "apply", "remove_task", "replace_task", "set_reservation", "set_status", "learn", "measured", "set_gates",
    "emptied", "remember", "add_task", "set_group", "nominate", "set_hyper_nodes",
)  # fmt: skip
"""What changes a state, its snapshot aside."""


@pytest.fixture
def guarded(monkeypatch: pytest.MonkeyPatch) -> None:
    """States that belong to a rim refuse every other way to be changed."""
    owned: list[ClusterState] = []
    inside: list[object] = []
    begin, do = Rim.__init__, Rim.do

    def own(rim: Rim, state: ClusterState) -> None:
        begin(rim, state)
        owned.append(state)

    def through(rim: Rim, change: Change) -> object:
        inside.append(change)
        try:
            return do(rim, change)
        finally:
            inside.pop()

    def watched(name: str) -> Callable[..., object]:
        method = getattr(ClusterState, name)

        def refusing(state: ClusterState, *given: object, **named: object) -> object:
            if not inside and any(one is state for one in owned):
                raise AssertionError(f"{name} beside the rim")
            return method(state, *given, **named)

        return refusing

    monkeypatch.setattr(Rim, "__init__", own)
    monkeypatch.setattr(Rim, "do", through)
    for name in MUTATING:
        monkeypatch.setattr(ClusterState, name, watched(name))


def test_nothing_changes_the_state_of_a_scheduler_but_the_rim(guarded: None, tmp_path: Path) -> None:
    async def story() -> None:
        world = Contested(tmp_path / "conf.yaml")
        scheduler = world.mortal(priority_class=True)
        world.start(scheduler)
        await asyncio.sleep(10)
        world.contend()
        await asyncio.sleep(45)
        assert all(world.high())
        assert "cycle_failed" not in world.told.counts
        with pytest.raises(AssertionError, match="set_gates beside the rim"):
            scheduler.state.set_gates(frozenset())
        await world.end()

    run(story())


def test_nothing_changes_the_state_of_a_simulation_but_the_rim(guarded: None) -> None:
    registry = full_registry("")
    jobs = tuple(SimJob(f"job-{number}", 3.0 * number, 20.0, (Pods(2, {"cpu": "2"}),)) for number in range(6))
    simulation = Simulation(Workload("guarded", jobs, tuple(nodes_of("2x4cpu"))), registry.configured(""), registry)
    assert all(one.end is not None for one in simulation.run())
    with pytest.raises(AssertionError, match="apply beside the rim"):
        simulation.scheduling.state.apply(simulation.world.listed().__next__().event)


def test_no_module_of_a_live_scheduler_names_a_way_around_the_rim() -> None:
    root = Path(stromboli.__file__).parent
    beside = re.compile(rf"state\.({'|'.join(MUTATING)})\(|state\.(tasks|jobs|queues|budgets)\[[^]]+\] = ")
    live = [path for path in (root / "live").rglob("*.py") if path.parent.name != "up"]  # another scheduler's stand-in
    files = [*live, root / "cluster" / "mirror.py", root / "sim" / "scheduling.py"]
    assert [path.name for path in files if beside.search(path.read_text(encoding="utf-8"))] == []
