"""The engine against the plain evaluation, which works everything out node by node."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stromboli.model.names import TOPOLOGY_ZONE
from stromboli.model.reservation import Held, stated
from stromboli.testing.builders import Manifest, node, pod, pod_group, queue
from stromboli.testing.plain.cycle import run_plain_cycle
from tests.laws.scenes import (
    CONFIGURATIONS,
    NEIGHBOURS,
    NOW,
    REGISTRY,
    SEEDED,
    Scene,
    ending_scenes,
    held_scenes,
    scenes,
    tight_scenes,
    waiting_scenes,
)


@pytest.mark.law("the engine decides as the plain evaluation does")
@settings(max_examples=50)
@given(st.one_of(scenes(), tight_scenes(), ending_scenes(), held_scenes(), waiting_scenes()))
def test_plain(scene: Scene) -> None:
    assert scene.plan() == run_plain_cycle(scene.snapshot(), scene.config, REGISTRY, NOW)


@pytest.mark.law("the engine decides as the plain evaluation does, ties drawn by a seed")
@given(st.one_of(scenes(), tight_scenes(), ending_scenes()), st.sampled_from(CONFIGURATIONS), st.integers(0, 9))
def test_plain_with_drawn_ties(scene: Scene, conf: str, seed: int) -> None:
    drawn = Scene(scene.objects, SEEDED + conf)
    assert drawn.plan(seed) == run_plain_cycle(drawn.snapshot(), drawn.config, REGISTRY, NOW, seed)


def test_tasks_that_are_moved_in_vain_keep_their_order() -> None:
    """One of two tasks that wait for one node is tried elsewhere without success; the other, of its class, is not."""

    def waiting(name: str, group: str, on: str) -> Manifest:
        notes = stated(Held(on))
        return pod(name, group=group, labels={"app": "a"}, annotations=notes, **NEIGHBOURS[0])

    objects = [
        queue("default"),
        node("n0", cpu=2, labels={TOPOLOGY_ZONE: "east"}),
        node("n1", cpu=2, labels={TOPOLOGY_ZONE: "west"}),
        node("n2", cpu=2, labels={TOPOLOGY_ZONE: "east"}),
        pod("old-0", on="n0", labels={"app": "a"}),
        pod("old-1", cpu=2, on="n1", deleting=True),
        pod_group("a", min_member=2),
        *(waiting(f"a-{number}", "a", "n1") for number in range(2)),
        pod_group("b", min_member=1),
        waiting("b-0", "b", "n2"),
    ]
    scene = Scene(objects, CONFIGURATIONS[0])
    plan = scene.plan()
    assert [each.uid for each in plan.reservations] == ["default/a-0", "default/a-1"]
    assert plan == run_plain_cycle(scene.snapshot(), scene.config, REGISTRY, NOW)


def test_a_task_is_tried_elsewhere_although_one_of_its_kind_on_another_node_was_moved_in_vain() -> None:
    """Pods spread over zones: without b-0 in the east the west has no room for it, without b-1 in the west it does."""

    def waiting(name: str, group: str, on: str, apart: Manifest) -> Manifest:
        return pod(name, group=group, labels={"app": "a"}, annotations=stated(Held(on)), **apart)

    objects = [
        queue("default"),
        *(node(f"n{row}", cpu=2, labels={TOPOLOGY_ZONE: zone}) for row, zone in enumerate(("west", "west", "east"))),
        pod("old-0", on="n0", labels={"app": "a"}),
        pod("old-1", cpu=2, on="n1", deleting=True),
        pod_group("a", min_member=1),
        waiting("a-0", "a", "n2", NEIGHBOURS[1]),
        pod_group("b", min_member=2),
        waiting("b-0", "b", "n2", NEIGHBOURS[0]),
        waiting("b-1", "b", "n1", NEIGHBOURS[0]),
    ]
    scene = Scene(objects, CONFIGURATIONS[0])
    plan = scene.plan()
    assert [(each.uid, each.node) for each in plan.allocated_not_bound] == [("default/b-1", "n0")]
    assert plan == run_plain_cycle(scene.snapshot(), scene.config, REGISTRY, NOW)
