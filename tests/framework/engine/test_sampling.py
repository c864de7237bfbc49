"""Looking at some of the nodes only, where flags ask for it: how many, which, and where the next look goes on."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stromboli.cluster.files.scenario import ScenarioOptions
from stromboli.cluster.state import ClusterState
from stromboli.cycle import run_cycle
from stromboli.framework.books.plan import Plan
from stromboli.framework.config.config import DEFAULT_CONFIG, Config
from stromboli.framework.config.sampling import Sampling
from stromboli.framework.engine.sampling import MEMORY, Sampler
from stromboli.live.process.flags import parse
from stromboli.live.process.process import source_of
from stromboli.narration.observe import SILENT, Counting, Observer
from stromboli.sim.runner import run_scenario
from stromboli.testing.builders import node, pod, pod_group, queue, state
from stromboli.testing.plain.cycle import run_plain_cycle
from tests.acceptance.bench import Bench, conf
from tests.acceptance.fights import CLASSES, reserved, running, waiting
from tests.laws.scenes import NOW, REGISTRY, Scene, config_of, scenes, tight_scenes


@pytest.mark.parametrize(
    ("sampling", "nodes", "enough"),
    [
        (Sampling(), 100, 100),
        (Sampling(), 101, 100),
        (Sampling(), 1000, 420),  # 50 - 1000 div 125 = 42 %
        (Sampling(), 5000, 500),
        (Sampling(), 10_000, 500),  # not less than 5 %
        (Sampling(least_percent=20), 10_000, 2000),
        (Sampling(percent=10), 1000, 100),
        (Sampling(percent=15), 1001, 150),
        (Sampling(percent=100), 1000, 1000),
        (Sampling(minimum=2, percent=50), 3, 2),
        (Sampling(minimum=2, percent=50), 2, 2),
        (Sampling(minimum=0, percent=1), 10, 1),
    ],
)
def test_how_many_nodes_are_enough(sampling: Sampling, nodes: int, enough: int) -> None:
    assert sampling.enough(nodes) == enough


def looks(sampling: Sampling, fits: Sequence[int], among: Sequence[int], times: int) -> list[list[int]]:
    sampler = Sampler(sampling, {})
    masks = np.array(fits, dtype=bool), np.array(among, dtype=bool)
    return [np.flatnonzero(sampler.looked_at(*masks)).tolist() for _ in range(times)]


@pytest.mark.parametrize(
    ("fits", "among", "expected"),
    [
        ([1, 1, 1, 1, 1, 1], [1, 1, 1, 1, 1, 1], [[0, 1], [2, 3], [4, 5], [0, 1]]),
        ([1, 0, 0, 1, 1, 1], [1, 1, 1, 1, 1, 1], [[0, 3], [4, 5], [0, 3]]),
        ([1, 0, 1, 0, 1, 0], [1, 1, 1, 1, 1, 1], [[0, 2], [0, 4], [2, 4]]),
        ([0, 0, 0, 1, 0, 0], [1, 1, 1, 1, 1, 1], [[3], [3]]),
        ([1, 1, 1, 1, 1, 1], [0, 1, 1, 0, 1, 1], [[1, 2], [4, 5], [1, 2]]),
        ([1, 1, 1, 1, 1, 1], [0, 0, 0, 0, 0, 0], [[], []]),
    ],
)
def test_nodes_are_looked_at_in_a_circle(fits: list[int], among: list[int], expected: list[list[int]]) -> None:
    assert looks(Sampling(minimum=2, percent=1), fits, among, len(expected)) == expected


def objects(nodes: int, pods: int, best: int = -1) -> dict[str, list[dict[str, Any]]]:
    """Equal nodes with room for one pod each, one of them better than the others."""
    return {
        "nodes": [node(f"n{number}", cpu=64 if number == best else 2, pods=1) for number in range(nodes)],
        "queues": [queue("default")],
        "podGroups": [pod_group("job", min_member=pods)],
        "pods": [pod(f"p{number}", group="job") for number in range(pods)],
    }


def cluster(nodes: int, pods: int, best: int = -1) -> ClusterState:
    return state(*(found for kind in objects(nodes, pods, best).values() for found in kind))


def with_sampling(sampling: Sampling | None, *, compat: bool = False) -> Config:
    return replace(config_of(DEFAULT_CONFIG), sampling=sampling, compat=compat)


def bound(plan: Plan) -> list[str]:
    return [bind.node for bind in plan.binds]


def test_all_nodes_are_looked_at_unless_asked_otherwise() -> None:
    plan = run_cycle(cluster(120, 2, best=119).snapshot(), with_sampling(None), REGISTRY, NOW)
    assert bound(plan) == ["n119", "n0"]
    assert MEMORY not in plan.memory


def test_the_best_of_those_that_are_looked_at_and_the_next_cycle_goes_on_there() -> None:
    config = with_sampling(Sampling(minimum=10, percent=10))
    world = cluster(120, 3, best=22)
    first = run_cycle(world.snapshot(), config, REGISTRY, NOW)
    assert bound(first) == ["n0", "n22", "n24"]  # twelve are enough: 0 to 11, then 12 to 23
    world.learn(first)
    again = run_cycle(world.snapshot(), config, REGISTRY, NOW)
    assert bound(again) == ["n36", "n48", "n60"]
    assert again.memory[MEMORY] == {"next": 72}


@pytest.mark.parametrize(("best", "is_seen"), [(187, True), (188, False)])
def test_compat_mode_samples_as_the_reference_does(best: int, is_seen: bool) -> None:
    """50 - 400 div 125 = 47 % of 400 nodes are 188."""
    plan = run_cycle(cluster(400, 1, best).snapshot(), with_sampling(None, compat=True), REGISTRY, NOW)
    assert (bound(plan) == [f"n{best}"]) is is_seen


@pytest.mark.parametrize(
    ("sampling", "on"), [(None, "n2"), (Sampling(minimum=1, percent=1), "n0"), (Sampling(percent=100), "n2")]
)
def test_evicting_actions_sample_nodes_too(sampling: Sampling | None, on: str) -> None:
    """The task fits everywhere once the one pod there goes, and best on the last node."""
    text = conf("gang priority nodeorder", actions="preempt")
    names = ("n0", "n1", "n2")
    machines = [node(name, cpu=64 if name == "n2" else 4, pods=1) for name in names]
    there = [found for name in names for found in running(f"on-{name}", 1, on=name, priorities=(-(name == "n2"),))]
    bench = Bench([*machines, *CLASSES, *there, *waiting("high", 1)], text)
    bench.config = replace(bench.config, sampling=sampling)
    plan = bench.cycle()
    assert list(reserved(plan).values()) == [on]


@pytest.mark.parametrize("observer", [SILENT, Counting()], ids=["unheard", "heard"])
def test_an_equal_task_looks_where_the_last_look_has_ended_also_if_that_look_has_failed(observer: Observer) -> None:
    """The first task sees n0, where nothing may go, the second one n1."""
    text = conf("gang priority", "predicates", actions="preempt")
    there = [*running("keeps", 1, on="n0", cls="high"), *running("goes", 1, on="n1")]
    world = Bench([node("n0", pods=1), node("n1", pods=1), *CLASSES, *there, *waiting("high", 2, least=1)], text)
    world.config = replace(world.config, sampling=Sampling(minimum=1, percent=1))
    plan = world.cycle(observer)
    assert [each.key for each in plan.evictions] == ["default/goes-0"]
    assert reserved(plan) == {"high-1": "n1"}


@settings(max_examples=30)
@pytest.mark.law("the engine decides as the plain evaluation does, also where nodes are sampled")
@given(
    st.one_of(scenes(), tight_scenes()),
    st.builds(Sampling, st.integers(0, 3), st.integers(1, 60), st.integers(0, 60)),
)
def test_plain_where_nodes_are_sampled(scene: Scene, sampling: Sampling) -> None:
    config = replace(scene.config, sampling=sampling)
    assert run_cycle(scene.snapshot(), config, REGISTRY, NOW) == run_plain_cycle(
        scene.snapshot(), config, REGISTRY, NOW
    )


@pytest.mark.parametrize(
    ("flags", "sampling"),
    [
        ([], None),
        (["--percentage-nodes-to-find=30"], Sampling(percent=30)),
        (["--minimum-feasible-nodes=100"], Sampling()),  # the default, but written
        (["--minimum-percentage-nodes-to-find=7", "--minimum-feasible-nodes=50"], Sampling(50, 7)),
    ],
)
def test_flags_count_once_they_are_written(flags: list[str], sampling: Sampling | None) -> None:
    assert source_of(parse(flags)).load().sampling == sampling


def test_scenarios_have_them_as_options() -> None:
    assert ScenarioOptions().sampling is None
    assert ScenarioOptions(percentage_of_nodes_to_find=20).sampling == Sampling(percent=20)
    scenario = {"conf": DEFAULT_CONFIG, **objects(3, 1, best=2)}
    some, every = {"minNodesToFind": 1, "percentageOfNodesToFind": 1}, {"percentageOfNodesToFind": 100}
    for options, best in (({}, "n2"), (some, "n0"), (every, "n2")):
        answer = run_scenario(json.dumps({**scenario, "options": options}))
        assert answer["outcome"]["binds"] == {"default/p0": best}
