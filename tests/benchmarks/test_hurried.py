"""A workload as a server gets it, and what is counted of what the server tells."""

from __future__ import annotations

from benchmarks.pipelined.hurried import SETTLED, Seen, created, hurried
from benchmarks.pipelined.measuring import BEGINNING
from benchmarks.pipelined.quick import SPEED
from benchmarks.pipelined.workloads import WORKLOADS, Workload, history, staying
from stromboli.cluster.lives import life_of
from stromboli.model.reservation import Held, patch, stated
from stromboli.sim.timeline import Timeline
from stromboli.sim.world import SimWorld
from stromboli.testing.builders import node, pod

TRAINERS: Workload = staying(WORKLOADS[2])
DONE = pod("done", on="n1", phase="Succeeded")


def test_pods_are_created_with_their_times_shortened() -> None:
    bodies = [body for happening in history(TRAINERS, 1, 600) for body in happening.come if body["kind"] == "Pod"]
    for body in bodies:
        was, made = life_of(body), hurried(body)
        now, grace = life_of(made), made["spec"]["terminationGracePeriodSeconds"]
        assert abs(now.stop_after * SPEED - was.stop_after) < 1
        assert abs(now.overstay * SPEED - was.overstay) < 1
        assert abs((now.run.seconds or 0) * SPEED - (was.run.seconds or 0)) < 1
        assert 1 <= grace <= TRAINERS.grace[1] / SPEED
        assert "ownerReferences" not in created(made)["metadata"]
        assert life_of(created(made)) == now  # a pod that replaces it takes as long
    assert bodies[0]["metadata"]["ownerReferences"]


def test_no_node_leaves_and_all_else_stays() -> None:
    moving, still = (
        [one for one in history(each, 1, 3000) if one.come and one.come[0]["kind"] == "PodGroup"]
        for each in (WORKLOADS[2], TRAINERS)
    )
    assert moving == still
    assert not any(one.leaves for one in history(TRAINERS, 1, 3000))


def seen(*, after: float, moves_to: str = "", evicted: str = "", late: bool = True, taken: int = 0) -> tuple[int, int]:
    """Evictions, and those for a pod with room, after a pod that has held n1 for so long moves, or a pod is evicted.

    The news of the move come ``late``, after the eviction, or before; a pod of priority ``taken`` comes to n1.
    """
    world = SimWorld(Timeline(BEGINNING))
    counted = Seen(world)
    for each in (node("n1"), node("n2"), pod("on-n1", on="n1"), pod("on-n2", on="n2"), pod("high"), DONE):
        world.create(each)
    world.patch("Pod", "default/high", {"metadata": {"annotations": stated(Held("n1", evicted=True))}})
    world.timeline.run(BEGINNING + after)
    if moves_to and not late:
        world.patch("Pod", "default/high", {"metadata": {"annotations": stated(Held(moves_to, evicted=True))}})
    if evicted:
        world.delete(f"default/{evicted}")
        world.remove("Pod", f"default/{evicted}")
    if moves_to and late:
        world.patch("Pod", "default/high", {"metadata": {"annotations": stated(Held(moves_to, evicted=True))}})
    if taken:
        world.create(pod("higher", priority=taken, annotations=stated(Held("n1"))))
    outcome = counted.read()
    return outcome.evictions, outcome.repeated


def test_evictions_next_to_a_reservation_and_moves_that_are_paid_for_are_counted() -> None:
    later = SETTLED + 1
    assert seen(after=1, evicted="on-n1") == (1, 0)
    assert seen(after=later, evicted="on-n1") == (1, 1)
    assert seen(after=later, evicted="on-n2") == (1, 0)
    assert seen(after=later, evicted="on-n2", moves_to="n2") == (1, 1)
    assert seen(after=later, evicted="on-n2", moves_to="n2", late=False) == (1, 1)
    assert seen(after=later, moves_to="n2") == (0, 0)  # to room that is free
    assert seen(after=later, evicted="on-n2", moves_to="n2", taken=1) == (1, 0)
    assert seen(after=1, evicted="on-n2", moves_to="n2") == (1, 0)
    assert seen(after=later, evicted="done") == (0, 0)


def lost(
    *, after: float = SETTLED + 1, priority: int = 0, comes_to: str = "n1", bound: bool = False, by_rule: str = ""
) -> int:
    """Reservations that were taken, where that of n1 ends and another pod comes; one was given up ``by_rule``."""
    world = SimWorld(Timeline(BEGINNING))
    counted = Seen(world)
    for each in (node("n1"), node("n2"), pod("holder", annotations=stated(Held("n1")))):
        world.create(each)
    world.timeline.run(BEGINNING + after)
    if bound:
        world.patch("Pod", "default/holder", {"spec": {"nodeName": "n1"}})
    world.patch("Pod", "default/holder", {"metadata": {"annotations": patch(None)}})
    world.create(pod("other", priority=priority, on=comes_to))
    return counted.read({("default/holder", by_rule)}).taken


def test_reservations_that_end_as_a_pod_no_more_important_comes_are_counted() -> None:
    assert lost() == 1
    assert lost(after=1) == 0  # too short to have stood as a session decided
    assert lost(priority=1) == 0
    assert lost(comes_to="n2") == 0
    assert lost(bound=True) == 0
    assert lost(by_rule="n1") == 0
    assert lost(by_rule="n2") == 1
