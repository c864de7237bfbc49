"""Shards: which nodes a scheduler takes, and that shards change nothing in the scores."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from stromboli.cli.main import main
from stromboli.cluster.rim import ShardingSet
from stromboli.framework.session.reference import ReferenceView
from stromboli.model.snapshot import Snapshot
from stromboli.testing.builders import Manifest, node, pod, pod_group, queue
from stromboli.testing.plain.cycle import run_plain_cycle
from tests.acceptance.bench import NOW, Bench, binds, conf

PLUGINS = ("gang priority", "predicates nodeorder")


def shard(name: str, *nodes: str, desired: tuple[str, ...] | None = None) -> Manifest:
    wanted = nodes if desired is None else desired
    return {
        "apiVersion": "shard.volcano.sh/v1alpha1", "kind": "NodeShard", "metadata": {"name": name},
        "spec": {"nodesDesired": [*wanted]}, "status": {"nodesInUse": [*nodes]},
    }  # fmt: skip


class Sharded(Bench):
    """A cluster seen by the scheduler of shard ``volcano``."""

    def __init__(self, objects: list[Any], mode: str, *own: str, actions: str = "enqueue, allocate, backfill") -> None:
        super().__init__([*objects, shard("volcano", *own)], conf(*PLUGINS, actions=actions))
        ShardingSet(mode, "volcano").make(self.state)


def pods(count: int) -> list[Manifest]:
    return [pod_group("g"), *(pod(f"p{number}", group="g", cpu=1) for number in range(count))]


@pytest.mark.parametrize(
    ("mode", "placed", "elsewhere"), [("hard", 2, 0), ("soft", 2, 2), ("none", 1, 3)]
)  # fmt: skip
def test_S0_46_nodes_of_other_shards_are_refused_or_come_last(mode: str, placed: int, elsewhere: int) -> None:
    objects = [queue("default"), node("a", cpu=4), node("b", cpu=2), *pods(4)]
    plan = Sharded(objects, mode, "b").cycle()
    found = list(binds(plan).values())
    assert (found.count("b"), found.count("a")) == (placed, elsewhere)
    texts = "".join(condition.message for condition in plan.pod_conditions)
    assert ("1 node isn't in scheduler node shard" in texts) is (mode == "hard")


def test_S0_46_totals_are_of_all_nodes() -> None:
    bench = Sharded([queue("default"), node("a", cpu=4), node("b", cpu=2)], "hard", "b")
    with bench.open() as session:
        assert ReferenceView(session).total_resource.milli_cpu == 6000
        assert ReferenceView(session).nodes_in_shard == {"b"}


@pytest.mark.parametrize(
    ("mode", "own", "victims"), [("hard", "b", ["on-b"]), ("soft", "b", ["on-b"]), ("hard", "", [])]
)
def test_S0_46_victims_are_of_the_own_nodes_first(mode: str, own: str, victims: list[str]) -> None:
    running = [pod(f"on-{name}", group="low", on=name, cpu=2, priority=0) for name in "ab"]
    groups = [pod_group("low"), pod_group("high", priorityClassName="high"), *running]
    high = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "high"}, "value": 9}
    wants = pod("wants", group="high", cpu=2, priority=9)
    objects = [queue("default"), node("a", cpu=2), node("b", cpu=2), high, *groups, wants]
    plan = Sharded(objects, mode, *own, actions="enqueue, allocate, preempt").cycle()
    assert [eviction.key.partition("/")[2] for eviction in plan.evictions] == victims


def test_S0_46_a_node_is_used_once_others_have_given_it_up_and_that_is_said() -> None:
    objects = [queue("default"), node("a"), node("b"), node("c")]
    bench = Bench([*objects, shard("volcano", "a", desired=("a", "b", "c")), shard("other", "b")], conf(*PLUGINS))
    ShardingSet("hard", "volcano").make(bench.state)
    snapshot: Snapshot = bench.state.snapshot()
    assert snapshot.shard is not None
    assert snapshot.shard.nodes == {"a"}
    said = bench.state.nodes.shards.status()
    assert said is not None
    assert (said.nodes_in_use, said.nodes_to_remove, said.nodes_to_add) == (("a", "c"), (), ("b",))


@pytest.mark.parametrize(("name", "nodes"), [("batch", {"b"}), ("other", {"a"})])
def test_S0_46_a_plan_is_made_for_one_shard(
    name: str, nodes: set[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shards = [shard("batch", desired=("b",)), shard("other", desired=("a",))]
    objects = [node("a", cpu=4), node("b", cpu=4), *shards, *pods(2)]
    file = tmp_path / "cluster.json"
    file.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}))
    flags = ["--scheduler-sharding-mode=hard", f"--scheduler-sharding-name={name}"]
    assert main(["plan", str(file), *flags, "-o", "json"]) == 0
    bound = json.loads(capsys.readouterr().out)["outcome"]["binds"]
    assert len(bound) == 2
    assert set(bound.values()) == nodes


def test_without_its_object_a_scheduler_gives_up_what_others_use() -> None:
    bench = Sharded([queue("default"), node("a"), node("b")], "hard", "a", "b")
    bench.tell(shard("volcano", "a", "b"), gone=True)
    bench.tell(shard("other", "b"))
    snapshot = bench.state.snapshot()
    assert snapshot.shard is not None
    assert snapshot.shard.nodes == {"a"}


def test_without_an_object_the_last_nodes_are_kept_and_that_is_told() -> None:
    bench = Sharded([queue("default"), node("a"), node("b")], "hard", "a")
    bench.tell(shard("volcano", "a"), gone=True)
    snapshot = bench.state.snapshot()
    assert snapshot.shard is not None
    assert snapshot.shard.nodes == {"a"}
    assert [text for text in snapshot.inconsistencies if "no shard is defined" in text]


@pytest.mark.parametrize("mode", ["hard", "soft"])
def test_the_plain_evaluation_sees_shards_alike(mode: str) -> None:
    objects = [queue("default"), *(node(f"n{number}", cpu=2) for number in range(4)), *pods(5)]
    bench = Sharded(objects, mode, "n1", "n3")
    snapshot = bench.snapshot()
    plain = run_plain_cycle(snapshot, bench.config, bench.registry, NOW)
    assert binds(plain) == binds(bench.cycle())
    assert set(binds(plain).values()) >= {"n1", "n3"}
