"""Three schedulers on the shards of one cluster: each node is one scheduler's, every pod is bound once."""

from __future__ import annotations

import asyncio
import random
from typing import Any

from stromboli.controllers.selection import looks_of
from stromboli.controllers.sharding.configuration import KEY
from stromboli.kube.client import Client
from stromboli.live.controllers.controller_runner import Controllers
from stromboli.live.controllers.options import Options as ControllerOptions
from stromboli.live.scheduler.scheduler import LiveScheduler
from stromboli.model.names import NAMESPACE, SHARDING_CONFIG_MAP
from tests.support.live_world import LiveWorld, group, pod
from tests.support.virtual import run

NAMES = ("a", "b", "c")


def shard(name: str, *nodes: str) -> dict[str, Any]:
    return {"metadata": {"name": name}, "spec": {"nodesDesired": [*nodes]}}


class Shards(LiveWorld):
    """Schedulers a, b and c, each with a shard of its name; ``nodes`` says which nodes each should have."""

    def divide(self, nodes: dict[str, list[str]]) -> None:
        for name in NAMES:
            known = {found["metadata"]["name"]: found for found in self.server.all("nodeshards")}
            self.server.put("nodeshards", {**known.get(name, {}), **shard(name, *nodes[name])})

    def used(self) -> dict[str, list[str]]:
        found = {one["metadata"]["name"]: one.get("status", {}) for one in self.server.all("nodeshards")}
        return {name: list(found.get(name, {}).get("nodesInUse", ())) for name in NAMES}

    def sharded(self, name: str, mode: str = "hard") -> LiveScheduler:
        return self.scheduler(scheduler_names=(name,), sharding_mode=mode, sharding_name=name)

    def submit(self, name: str, scheduler: str) -> None:
        self.server.put("podgroups", group(name, 1))
        self.server.put("pods", pod(f"{name}-0", name, schedulerName=scheduler))

    def configure(self, *entries: str) -> None:
        """The ConfigMap of the sharding controller: entries of YAML."""
        data = {KEY: f"schedulerConfigs: [{', '.join(entries)}]"}
        self.server.put("configmaps", {"metadata": {"name": SHARDING_CONFIG_MAP, "namespace": NAMESPACE}, "data": data})

    def control(self) -> None:
        """Run the sharding controller."""
        client = Client(self.server, dice=random.Random(5), agent="stromboli-controllers")
        options = ControllerOptions(looks=looks_of(["sharding-controller"]))
        controllers = Controllers(client, options, observer=self.told, clock=self.clock)
        self.tasks.append(asyncio.create_task(controllers.run()))

    async def watch(self) -> None:
        """No node is said to be used by two schedulers, at any moment."""
        while True:
            every = [node for nodes in self.used().values() for node in nodes]
            assert len(every) == len(set(every)), "used twice"
            await asyncio.sleep(0.005)


def test_nodes_handed_over_again_and_again_have_one_scheduler_each() -> None:
    async def story() -> None:
        world, dice = Shards(nodes=6, cpu=8), random.Random(5)
        nodes = [f"n{number}" for number in range(6)]
        world.divide({name: nodes[index::3] for index, name in enumerate(NAMES)})
        schedulers = [world.sharded(name) for name in NAMES]
        for scheduler in schedulers:
            world.start(scheduler)
        watch = asyncio.create_task(world.watch())
        for number in range(12):
            dice.shuffle(nodes)
            world.divide({name: nodes[index::3] for index, name in enumerate(NAMES)})
            world.submit(f"j{number}", NAMES[number % 3])
            await asyncio.sleep(dice.uniform(0.0, 2.5))
        await world.settled(schedulers[0])
        await asyncio.sleep(5)
        assert not watch.done()
        watch.cancel()
        assert {name: sorted(served) for name, served in world.used().items()} == {
            name: sorted(nodes[index::3]) for index, name in enumerate(NAMES)
        }
        world.check()
        assert not world.waiting()
        await world.end()

    run(story())


def test_a_pod_goes_to_its_shard_and_a_lost_shard_heals() -> None:
    async def story() -> None:
        world = Shards(nodes=3)
        world.divide({"a": ["n0"], "b": ["n1"], "c": ["n2"]})
        schedulers = {name: world.sharded(name) for name in NAMES}
        for scheduler in schedulers.values():
            world.start(scheduler)
        for name in NAMES:
            world.submit(f"j{name}", name)
        await world.settled(schedulers["a"])
        assert world.pods() == {"ja-0": "n0", "jb-0": "n1", "jc-0": "n2"}
        world.server.drop("nodeshards", "b")
        world.submit("late", "b")
        await world.settled(schedulers["b"])
        assert world.pods()["late-0"] == "n1", "it goes on with the nodes that it had"
        assert any("no shard is defined" in str(fields) for _, fields in world.told.told)
        world.server.put("nodeshards", shard("b", "n1"))
        await asyncio.sleep(3)
        assert world.used()["b"] == ["n1"]
        await world.end()

    run(story())


def test_three_schedulers_share_the_embedded_cluster_that_the_controller_divides() -> None:
    """Every node is served, no pod is bound twice, and the nodes of a shard that is lost are served again."""

    async def story() -> None:
        world = Shards(nodes=6, cpu=4, on="embedded")
        nodes = {f"n{number}" for number in range(6)}
        a, b, c = ("{name: a, maxNodes: 2}", "{name: b, maxNodes: 2}", "{name: c}")
        world.configure(a, b, c)
        world.control()
        schedulers = {name: world.sharded(name) for name in NAMES}
        running = {name: world.start(scheduler) for name, scheduler in schedulers.items()}
        watch = asyncio.create_task(world.watch())
        await asyncio.sleep(5)
        assert world.used() == {"a": ["n0", "n1"], "b": ["n2", "n3"], "c": ["n4", "n5"]}

        for number in range(24):  # as many as there are cores
            world.submit(f"j{number}", NAMES[number % 3])
        await world.settled(schedulers["a"])
        assert set(world.pods().values()) == nodes, "every node is served"
        for number in range(24):
            place = world.pods()[f"j{number}-0"]
            assert place in world.used()[NAMES[number % 3]]

        world.server.drop("nodeshards", "b")  # a user deletes it: the controller makes it again
        await asyncio.sleep(5)
        assert world.used()["b"] == ["n2", "n3"]

        running["b"].cancel()  # a scheduler is lost for good, and its administrator says so
        world.configure(a, c)
        for number in range(12, 24):
            world.server.drop("pods", f"j{number}-0", "ns")
        for number in range(12):
            world.submit(f"k{number}", "acc"[number % 3])
        await world.settled(schedulers["a"])
        assert [shard["metadata"]["name"] for shard in world.server.all("nodeshards")] == ["a", "c"]
        assert set(world.pods().values()) == nodes
        assert not watch.done()
        watch.cancel()
        world.check()
        await world.end()

    run(story())
