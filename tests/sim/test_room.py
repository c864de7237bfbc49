"""What a simulation knows of room without running a cycle."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import pytest

from stromboli.sim.simulation.room import PLACES, Room
from stromboli.testing.builders import Manifest, node, pod, pod_group
from tests.acceptance.bench import Bench

GATED: dict[str, Any] = {"schedulingGates": [{"name": "example.com/wait"}]}
RUNNING = [pod_group("r", phase="Running"), pod("r1", group="r", on="n1", cpu=3), pod("r2", group="r", on="n2", cpu=3)]


def bench(*objects: Manifest) -> Bench:
    """Two nodes of four cores, of each of which one is free."""
    return Bench([node("n1", cpu=4), node("n2", cpu=4), *RUNNING, *objects])


def waiting(cpu: int, phase: str = "Inqueue", **spec: Any) -> list[Manifest]:
    return [pod_group("x", phase=phase), pod("x-0", group="x", cpu=cpu, **spec)]


@pytest.mark.parametrize(
    ("objects", "actions", "full"),
    [
        pytest.param([], PLACES, True, id="nothing waits"),
        pytest.param(waiting(2), PLACES, True, id="no node has room"),
        pytest.param(waiting(1), PLACES, False, id="a node has room"),
        pytest.param(waiting(2), {*PLACES, "preempt"}, False, id="evictions may make room"),
        pytest.param(waiting(2, phase="Pending"), PLACES, False, id="a job may be admitted"),
        pytest.param(waiting(2, **GATED), PLACES, False, id="gates may go"),
        pytest.param([*waiting(2), pod("x-1", group="x", cpu=1)], PLACES, False, id="one of two kinds has room"),
        pytest.param([*waiting(2), pod("x-1", group="x", cpu=3)], PLACES, True, id="neither of two kinds has room"),
    ],
)
def test_nothing_is_decided_where_nothing_that_waits_has_room(
    objects: list[Manifest], actions: Collection[str], full: bool
) -> None:
    assert Room(actions).is_full(bench(*objects).state, ()) is full


def test_settled_jobs_are_not_asked_for_what_they_want() -> None:
    """A pod without room that waits in a job known to be settled does not count: cycles look at none of such jobs."""
    state = bench(*waiting(1)).state
    state.jobs["default/x"].settled = True
    assert Room(PLACES).is_full(state, ())


def test_only_nodes_that_pods_have_left_are_looked_at_until_it_forgets() -> None:
    """The pod on n1 ends; what waits has room there, which is seen where n1 is named, or all nodes are looked at."""
    cluster, room = bench(*waiting(2)), Room(PLACES)
    assert room.is_full(cluster.state, ())
    cluster.tell(pod("r1", group="r", on="n1", cpu=3, phase="Succeeded"))
    assert room.is_full(cluster.state, {"n2", "gone"})
    assert not room.is_full(cluster.state, {"n1"})
    assert not room.is_full(cluster.state, {"n2"}), "after a no, all nodes are looked at"
    assert room.is_full(bench(*waiting(3)).state, ())
    room.forget()
    assert not room.is_full(cluster.state, {"n2"}), "other pods may wait by now"
