"""What holds for every plan: gangs, room, and that nothing but the input decides."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from stromboli.cycle import run_action, run_cycle
from stromboli.framework.books.plan import Plan
from stromboli.framework.engine import remembered
from stromboli.framework.engine.placer import Engine
from stromboli.model.codec import decode_snapshot, encode_snapshot
from stromboli.narration.observe import Counting
from stromboli.testing.builders import node, pod, pod_group, queue
from tests.laws.scenes import (
    CONFIGURATIONS,
    NOW,
    REGISTRY,
    SEEDED,
    Scene,
    digest,
    held_scenes,
    scenes,
    tight_scenes,
    valid,
    waiting_scenes,
)
from tests.support import checker
from tests.support.checker_world import World, world_of

ROOT = Path(__file__).parents[2]


def judged(scene: Scene, plan: Plan, *laws: Callable[[World], Iterator[str]]) -> list[str]:
    """The sentences of the independent judge about a plan."""
    found = {
        "binds": {bind.key: bind.node for bind in plan.binds},
        "evictions": [eviction.key for eviction in plan.evictions],
        "pipelined": {held.key: held.node for held in plan.reservations},
        "allocatedNotBound": {held.key: held.node for held in plan.allocated_not_bound},
        "podConditions": {u.key: {"reason": u.reason, "message": u.message} for u in plan.pod_conditions},
    }
    world = world_of(scene.objects, {"outcome": found}, None, compat=False)  # type: ignore[arg-type]
    return [sentence for law in laws or checker.LAWS for sentence in law(world)]


# ---------------------------------------------------------------------- gangs and room


@pytest.mark.law("a gang is bound whole or not at all")
@given(st.one_of(scenes(), tight_scenes()))
def test_gangs(scene: Scene) -> None:
    assert judged(scene, scene.plan(), checker.broken_gangs) == []


@pytest.mark.law("no node is promised more than it offers, in any dimension")
@given(st.one_of(tight_scenes(), scenes(), held_scenes()))
def test_room(scene: Scene) -> None:
    with scene.open() as session:
        before = session.table.idle.copy()
        for name in scene.config.actions:
            run_action(session, REGISTRY.action(name)())
        table = session.table
    assert judged(scene, session.plan, checker.over_capacity, checker.over_promised) == []
    shrunk = table.idle < before
    assert (table.idle[shrunk] >= 0).all()
    assert max(Counter(bind.key for bind in session.plan.binds).values(), default=1) == 1


@pytest.mark.law("the independent judge finds nothing unlawful in a plan")
@given(st.one_of(scenes(), tight_scenes(), waiting_scenes()).map(valid))
def test_judge(scene: Scene) -> None:
    plan = scene.plan()
    beyond_parent = "guarantee of the children of queue"  # a tree of queues may be drawn so; the plan says it
    assert [text for text in plan.inconsistencies if beyond_parent not in text] == []
    assert judged(scene, plan) == []


# ---------------------------------------------------------------------- nothing but the input decides


@pytest.mark.law("equal input gives an equal plan")
@given(scenes(), st.integers(0, 5))
def test_repeated(scene: Scene, seed: int) -> None:
    assert scene.plan(seed) == scene.plan(seed)


@pytest.mark.law("the plan does not depend on the hash seed of the process")
@settings(max_examples=2, suppress_health_check=list(HealthCheck))
@given(st.lists(st.one_of(scenes(), tight_scenes()), min_size=10, max_size=10))
def test_hash_seeds(several: list[Scene]) -> None:
    text = json.dumps([(scene.objects, scene.conf) for scene in several])
    here = [digest(scene.plan()) for scene in several]
    for seed in ("1", "20"):
        environment = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}"}
        command = [sys.executable, "-m", "tests.laws.digests"]
        run = subprocess.run(command, input=text, capture_output=True, text=True, env=environment, cwd=ROOT, check=True)
        assert run.stdout.split() == here


@pytest.mark.law("the plan does not depend on the order in which objects arrive")
@given(st.data())
def test_order_of_arrival(data: st.DataObject) -> None:
    scene = data.draw(st.one_of(scenes(), tight_scenes()))
    other = Scene(data.draw(st.permutations(scene.objects)), scene.conf)
    assert in_any_order(other.plan()) == in_any_order(scene.plan())


def in_any_order(plan: Plan) -> dict[str, Any]:
    """A plan's decisions in their order, its reports sorted."""
    reports = ("pod_groups", "pod_conditions", "events", "queues", "reservations", "allocated_not_bound")
    fields: dict[str, Any] = {name: getattr(plan, name) for name in Plan.__struct_fields__}
    return {name: sorted(map(repr, value)) if name in reports else value for name, value in fields.items()}


@pytest.mark.law("a snapshot that was written and read again gives an equal plan")
@given(st.one_of(scenes(), tight_scenes()))
def test_decoded(scene: Scene) -> None:
    data = encode_snapshot(scene.snapshot())
    again = decode_snapshot(data)
    assert encode_snapshot(again) == data
    assert run_cycle(again, scene.config, REGISTRY, NOW) == scene.plan()


# ---------------------------------------------------------------------- shortcuts change nothing


@pytest.mark.law("placing a run of equal tasks at once gives what placing them one by one gives")
@given(st.one_of(tight_scenes(), scenes()))
def test_batched(scene: Scene) -> None:
    at_once = scene.plan()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Engine, "place_run", lambda *_: None)
        assert scene.plan() == at_once


@pytest.mark.law("answers of nodes that are kept by the nodes' amounts equal fresh answers")
@given(st.one_of(tight_scenes(), scenes()))
def test_remembered(scene: Scene) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(remembered, "WORTH_IT", 0)
        known = scene.plan()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(remembered.Remembered, "applies", lambda *_: False)
        assert scene.plan() == known


@pytest.mark.law("observing a cycle changes nothing")
@given(st.one_of(tight_scenes(), scenes()))
def test_listeners(scene: Scene) -> None:
    heard = run_cycle(scene.snapshot(), scene.config, REGISTRY, NOW, observer=Counting())
    assert heard == scene.plan()


@pytest.mark.law("ties drawn by a seed are drawn again by the same seed, and are lawful by any")
@given(st.one_of(tight_scenes(), scenes()).map(valid), st.sampled_from(CONFIGURATIONS), st.integers(0, 2**40))
def test_seeded_ties(scene: Scene, conf: str, seed: int) -> None:
    drawn = Scene(scene.objects, SEEDED + conf)
    plan = drawn.plan(seed)
    assert drawn.plan(seed) == plan
    assert judged(drawn, plan) == []


def test_seeds_make_a_difference() -> None:
    """The law above would hold, too, if nothing were drawn."""
    objects = [queue("default"), *(node(f"n{i}") for i in range(9)), pod_group("g"), pod("p", group="g")]
    scene = Scene(objects, SEEDED + CONFIGURATIONS[0])
    assert len({scene.plan(seed).binds[0].node for seed in range(20)}) > 3


@pytest.mark.law("a session changes nothing outside itself")
@given(st.one_of(scenes(), tight_scenes()))
def test_isolation(scene: Scene) -> None:
    known = scene.state()
    before = encode_snapshot(known.snapshot())
    run_cycle(known.snapshot(), scene.config, REGISTRY, NOW)
    after = known.snapshot()
    after.number = 1
    assert encode_snapshot(after) == before
