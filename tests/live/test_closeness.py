"""PodGroups with topologies that no plugin of the configuration reads get a condition that says so."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from stromboli.builtin import builtin_registry
from stromboli.framework.config.config import load_config
from stromboli.live.scheduler.closeness import REASON, may_keep_close
from stromboli.live.scheduler.scheduler import CHECK_EVERY
from stromboli.model.names import TOPOLOGY_GROUP, TOPOLOGY_GROUP_POLICY
from stromboli.plugin import Plugin, hyper_node_gradient_for_job
from stromboli.plugins.network_topology_aware.wishes import ABSENT, OFF, PLUGIN
from stromboli.sim.ignored import FAR
from tests.support.live_world import LiveWorld, group, pod
from tests.support.virtual import run

CONF = 'actions: "enqueue, allocate"\ntiers:\n- plugins: [{name: gang}, {name: close%s}]\n'
HARD = {"mode": "hard", "highestTierAllowed": 1}


class Closes(Plugin):
    """A plugin at the point."""

    name = "close"

    @hyper_node_gradient_for_job
    def gradient(self, job: Any, hyper_node: Any, purpose: Any) -> Any:
        return []


class Registers(Plugin):
    """A plugin that may register for the point once a session opens."""

    name = "close"

    def on_session_open(self, session: Any) -> None:
        """Register nothing, as it happens."""


class Other(Plugin):
    """A plugin that has nothing to do with it."""

    name = "close"


@pytest.mark.parametrize(
    ("plugin", "switch", "expected"),
    [
        (Closes, "", True), (Closes, ", enableHyperNodeGradient: false", False),
        (Registers, "", True), (Other, "", False),
    ],
)  # fmt: skip
def test_plugins_with_a_gradient_or_an_opening_of_their_own_may_keep_jobs_close(
    plugin: type[Plugin], switch: str, expected: bool
) -> None:
    registry = builtin_registry()
    registry.add(plugin)
    names = registry.plugin_names
    config = load_config(CONF % switch, source="t", known_plugins=names, known_actions=registry.action_names)
    assert may_keep_close(config, registry) is expected


def events(world: LiveWorld, reason: str = REASON) -> dict[str, tuple[str, int]]:
    found = [one for one in world.server.all("events") if one["reason"] == reason]
    return {one["involvedObject"]["name"]: (one["message"], one["count"]) for one in found}


@pytest.mark.parametrize("keeps", [False, True])
def test_groups_that_must_lie_close_are_told_once_that_nothing_sees_to_it(
    keeps: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    parts = [{"name": "part", "networkTopology": HARD}]
    asked: dict[str, dict[str, Any]] = {
        "far": {}, "hard": {"networkTopology": HARD}, "soft": {"networkTopology": {**HARD, "mode": "soft"}},
        "parts": {"subGroupPolicy": parts},
    }  # fmt: skip

    async def main() -> None:
        world = LiveWorld()
        for name, spec in asked.items():
            world.server.put("podgroups", group(name, 1, **spec))
            world.server.put("pods", pod(f"{name}-0", name))
        owner = {
            "apiVersion": "batch.volcano.sh/v1alpha1",
            "kind": "Job",
            "name": "job",
            "uid": "u1",
            "controller": True,
        }
        world.server.put("podgroups", group("job-u1", 1, networkTopology=HARD))
        owned = pod("job-t-0", "job-u1")
        world.server.put("pods", {**owned, "metadata": {**owned["metadata"], "ownerReferences": [owner]}})
        scheduler = world.scheduler(schedule_period=30.0)
        if keeps:
            monkeypatch.setattr("stromboli.live.scheduler.closeness.may_keep_close", lambda *_: True)
        world.start(scheduler)
        await asyncio.sleep(400 + CHECK_EVERY)
        text = f"spec.networkTopology: {FAR}"
        assert events(world) == ({} if keeps else dict.fromkeys(("hard", "parts", "job-u1", "job"), (text, 1)))
        await world.end()

    run(main())


@pytest.mark.parametrize("key", [TOPOLOGY_GROUP, TOPOLOGY_GROUP_POLICY])
@pytest.mark.parametrize("listed", [False, True])
def test_groups_that_are_to_lie_near_others_are_told_once_that_nothing_sees_to_it(
    listed: bool, key: str, tmp_path: Path
) -> None:
    conf = tmp_path / "scheduler.conf"
    conf.write_text((CONF % "").replace("close", PLUGIN if listed else "priority"), encoding="utf-8")

    async def main() -> None:
        world = LiveWorld()
        near = group("near", 1, **({"networkTopology": {"mode": "soft"}} if key == TOPOLOGY_GROUP else {}))
        near["metadata"]["annotations"] = {key: "same"}
        for each in (near, group("alone", 1)):
            world.server.put("podgroups", each)
            world.server.put("pods", pod(f"{each['metadata']['name']}-0", each["metadata"]["name"], cpu=99))
        world.start(world.scheduler(str(conf), schedule_period=30.0))
        await asyncio.sleep(400 + CHECK_EVERY)
        told = events(world, "TopologyGroupIgnored")
        assert told.keys() == {"near"}
        text, count = told["near"]
        assert text == (OFF if listed else ABSENT)
        assert listed or count == 1, "a plugin that is switched off says so in each cycle, which raises the count"
        await world.end()

    run(main())


def test_a_group_that_has_asked_for_something_else_meanwhile_is_told_again() -> None:
    async def main() -> None:
        world = LiveWorld()
        made = world.server.put("podgroups", group("hard", 1, networkTopology=HARD))
        world.server.put("pods", pod("hard-0", "hard"))
        world.start(world.scheduler(schedule_period=30.0))
        text = f"spec.networkTopology: {FAR}"
        for spec, count in ((HARD, 1), ({**HARD, "mode": "soft"}, 1), (HARD, 2)):
            world.server.put("podgroups", {**made, "spec": {**made["spec"], "networkTopology": spec}})
            await asyncio.sleep(400)
            assert events(world) == {"hard": (text, count)}
        await world.end()

    run(main())
