"""Gangs that must stay close together, and gangs of parts: below one switch, or not at all."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn

from stromboli.framework.engine.placer import Engine
from stromboli.model.names import GPU
from stromboli.narration.observe import SILENT
from stromboli.testing.builders import Manifest, node, pod, pod_group, queue
from stromboli.testing.plain.cycle import PlainSession
from stromboli.testing.strategies import closeness, hyper_nodes
from tests.laws.closeness import assert_close, planned
from tests.laws.scenes import CONFIGURATIONS, Scene, digest


@st.composite
def close_scenes(draw: DrawFn) -> Scene:
    """Four to twelve nodes below switches, some of them in use, and gangs that mostly must lie close together."""
    names = [f"n{number}" for number in range(draw(st.integers(4, 12)))]
    found = [queue("default"), *(node(name, cpu=4, resources={GPU: 4}, labels={"rack": "r1"}) for name in names)]
    found += draw(hyper_nodes(names))
    for name in draw(st.lists(st.sampled_from(names), unique=True, max_size=3)):
        found.append(pod(f"used-{name}", on=name, cpu=draw(st.sampled_from((1, 4)))))
    for number in range(draw(st.integers(1, 3))):
        found += draw(close_gangs(f"g{number}"))
    return Scene(found, draw(st.sampled_from(CONFIGURATIONS)))


@st.composite
def close_gangs(draw: DrawFn, name: str) -> list[Manifest]:
    """A gang of equal pods, perhaps with devices, perhaps of two parts."""
    count, more = draw(st.integers(2, 6)), draw(st.sampled_from(({}, {"requests": {GPU: 2}})))
    spec: dict[str, Any] = {"networkTopology": draw(closeness)}
    if draw(st.booleans()):
        part = {"name": "part", "matchLabelKeys": ["app"], "subGroupSize": 2, "networkTopology": draw(closeness)}
        spec = {**(spec if draw(st.booleans()) else {}), "subGroupPolicy": [part]}
    group = pod_group(name, min_member=draw(st.integers(1, count)), **spec)
    labels = [{"app": "ab"[number % 2]} for number in range(count)]
    one: Manifest = {"group": name, "cpu": draw(st.sampled_from((1, 2, 3))), **more}
    return [group, *(pod(f"{name}-{number}", labels=labels[number], **one) for number in range(count))]


@pytest.mark.law("a gang or subgroup with a hard topology is placed in one domain of its tier")
@given(close_scenes())
def test_closeness(scene: Scene) -> None:
    assert_close(planned(scene))


class Lines:
    """Hears of everything that is told of a placement, in order."""

    def __init__(self) -> None:
        self.heard: list[str] = []

    def wants(self, key: str) -> bool:
        return key != "scores"  # they are those of single steps

    def tell(self, key: str, fields: Mapping[str, object]) -> None:
        """Note names of tasks and nodes."""
        self.heard.append(f"{key} {[str(fields.get(name)) for name in ('task', 'node', 'name', 'idle')]}")

    def started(self, kind: str, name: str) -> None:
        """Not of interest."""

    def ended(self, kind: str, name: str) -> None:
        """Not of interest."""


@pytest.mark.law("a run of a gang with a hard topology is placed, and reported, as its pods one by one")
@given(close_scenes())
def test_close_runs(scene: Scene) -> None:
    silent, at_once, singly = SILENT, Lines(), Lines()
    found = [digest(planned(scene, observer=each).plan) for each in (silent, at_once)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Engine, "place_run", lambda *_: None)
        found += [digest(planned(scene, observer=each).plan) for each in (silent, singly)]
    assert found == found[:1] * 4
    assert at_once.heard == singly.heard


@pytest.mark.law("a gang with a hard topology stays in one domain when a node fails and the scheduler restarts")
@given(close_scenes(), st.integers(0, 3))
def test_closeness_outlives_a_node(scene: Scene, lost: int) -> None:
    dead, places = f"n{lost}", assert_close(planned(scene))
    found: list[Manifest] = []
    for each in scene.objects:
        where = places.get(f"default/{each['metadata']['name']}", dead)
        if each["kind"] == "Pod" and where != dead:
            each = {**each, "spec": {**each["spec"], "nodeName": where}, "status": {"phase": "Running"}}
        if (each["kind"], each["metadata"]["name"]) != ("Node", dead):
            found.append(each)
    after = assert_close(planned(Scene(found, scene.conf)))
    assert {key: after.get(key) for key, node in places.items() if node != dead}.items() <= places.items()


@pytest.mark.law("hypernodes are tried by the engine as by the plain evaluation")
@given(close_scenes())
def test_close_plans(scene: Scene) -> None:
    assert digest(planned(scene).plan) == digest(planned(scene, PlainSession).plan)
