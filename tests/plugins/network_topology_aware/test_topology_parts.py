"""network-topology-aware by its parts: domains to try, weights of tiers, distances, and what placements change."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from stromboli.framework.statement.operation_kind import OperationKind
from stromboli.model.jobs.hyper_nodes import JobHyperNodes
from stromboli.narration.observe import Counting
from stromboli.plugins.network_topology_aware import NetworkTopologyAware, gradients, scores
from stromboli.plugins.network_topology_aware.plugin import EVICT
from stromboli.plugins.network_topology_aware.scores import TierWeights
from stromboli.testing.builders import Manifest, hyper_node, member, node, pod, pod_group
from tests.acceptance.bench import Bench, conf, task_of

GPU = "nvidia.com/gpu"
HARD_2 = {"mode": "hard", "highestTierAllowed": 2}
NODES = ("s0-n0", "s0-n1", "s1-n0", "s1-n1")
TREE = [
    *(node(name, cpu=8, memory="32Gi") for name in NODES),
    node("lonely", cpu=8, memory="32Gi"),
    hyper_node("s0", 1, *NODES[:2]),
    hyper_node("s1", 1, *NODES[2:]),
    hyper_node("s4", 2, below=["s0", "s1"]),
]
"""Two switches of two nodes and one above them, and a node in none."""


def bench(*objects: Manifest, **arguments: object) -> Bench:
    given = ", ".join(f"{key}: {value}" for key, value in arguments.items())
    plugin = f"{{name: network-topology-aware, arguments: {{{given}}}}}"
    return Bench([*TREE, *objects], conf("gang", f"[{{name: predicates}}, {plugin}]"))


def plugin_of(session: Any) -> Any:
    return session.plugins["network-topology-aware"]


def tried(session: Any, purpose: str = "Allocate") -> list[list[str]]:
    job = session.jobs["default/g"]
    found = session.ask.hyper_node_gradient_for_job(job, session.hyper_nodes.top, purpose)
    return [[info.name for info in gradient] for gradient in found]


def infos(**tree: tuple[int, str]) -> Any:
    """HyperNodes by name, each with its tier and its children."""
    names = {name: [child for child in children.split(",") if child] for name, (_, children) in tree.items()}
    parents = {child: name for name, children in names.items() for child in children}
    return {
        name: SimpleNamespace(name=name, tier=tier, children=names[name], parent=parents.get(name, ""))
        for name, (tier, _) in tree.items()
    }


# ---------------------------------------------------------------------- domains to try


def test_what_lies_below_is_found_once_though_several_hold_it_and_one_is_missing():
    tree = infos(r=(3, "a,b,missing"), a=(2, "c"), b=(2, "c"), c=(1, "r"))
    assert [info.name for info in gradients.below(tree, tree["r"], 2)] == ["a", "b", "c"]


def test_the_widest_allowed_domain_has_none_above_the_allowed_tier_below_it():
    tree = infos(odd=(2, "wide"), wide=(3, "a"), a=(1, ""))
    assert [gradients.widest_around(tree, "a", highest) for highest in (1, 2, 3)] == ["a", "a", "odd"]


@pytest.mark.parametrize(("most", "found"), [(1, [["c"]]), (2, [["c"], ["b"]]), (9, [["c"], ["a", "b"]])])
def test_no_more_domains_than_are_asked_for_are_tried_for_evictions(most, found):
    assert gradients.for_eviction([["a", "b"], ["c"]], most) == found  # type: ignore[list-item]


def test_domains_without_an_object_stay_whatever_room_there_is():
    wide = hyper_node("wide", 3, *(member("HyperNode", exactMatch={"name": name}) for name in ("s4", "unknown")))
    with bench(wide).open() as session:
        plugin, top = plugin_of(session), session.hyper_nodes.top
        none = np.zeros(len(plugin.domains), dtype=bool)
        found = plugin._reach.gradients(top, 9, none)
        assert [info.name for each in found for info in each] == ["unknown"]


@pytest.mark.parametrize(
    ("more", "purpose", "cpu", "found"),
    [
        pytest.param([], "Allocate", 20, [["s4"]], id="too much for a switch"),
        pytest.param([], EVICT, 20, [["s4"]], id="too much for a switch, were it empty"),
        pytest.param([], EVICT, 40, [], id="too much for all"),
        pytest.param(["full"], "Allocate", 0, [["s0", "s1"], ["s4"]], id="nothing is asked for"),
        pytest.param(["full"], "Allocate", 1, [["s0"], ["s4"]], id="full"),
        pytest.param(["ends"], "Allocate", 1, [["s0", "s1"], ["s4"]], id="what ends makes room"),
    ],
)
def test_domains_with_room_are_tried(more, purpose, cpu, found):
    used = [pod(f"used-{name}", on=name, cpu=8, deleting="ends" in more) for name in NODES[2:] if more]
    group = pod_group("g", networkTopology=HARD_2, minResources={"cpu": cpu} if cpu else None)
    with bench(*used, group, pod("g-0", group="g")).open() as session:
        assert tried(session, purpose) == found


def test_a_job_that_lies_too_wide_is_told():
    observer = Counting(("hyper_node_gradient_failed",))
    topology = {"mode": "hard", "highestTierAllowed": 1}
    with bench(pod_group("g", networkTopology=topology), pod("g-0", group="g")).open(observer) as session:
        session.jobs["default/g"].hyper_nodes = JobHyperNodes("s4")
        assert tried(session) == []
    [(_, told)] = observer.told
    assert told["job"] == "default/g"
    assert "allocated hyperNode s4 tier is greater" in str(told["error"])


# ---------------------------------------------------------------------- arguments


def test_one_domain_may_be_all_that_evictions_try():
    plugin = NetworkTopologyAware({"hypernode.gradient.evict.max-hypernodes": 1})
    assert (plugin.most_domains, plugin.complaints) == (1, [])


def test_a_listed_resource_without_a_weight_weighs_1():
    arguments: dict[str, object] = {"hypernode.binpack.resources": f'" {GPU},"', "hypernode.binpack.cpu": 3}
    gpus = node("gpus", resources={GPU: 4})
    with bench(gpus, **arguments).open() as session:
        axes = session.axes
        weights = {axes.names[column]: weight for column, weight in plugin_of(session)._weights.items()}
    assert weights == {"cpu": 3, "memory": 1, GPU: 1}


# ---------------------------------------------------------------------- scores


@pytest.mark.parametrize(
    ("tiers", "fading", "of", "absent", "usable"),
    [
        ([1, 3], 0.5, {1: 1.0, 3: 0.25}, 0.5, True),
        ([2], 0.5, {2: 0.5}, 0.0, True),
        ([2, 3], 0.0, {2: 0.0, 3: 0.0}, 0.0, False),
        ([1, 2], 1e308, {1: 1.0, 2: 1e308}, 0.0, True),
        ([1, 3], 1e308, {1: 1.0, 3: np.inf}, 1e308, False),
    ],
)
def test_tiers_fade(tiers, fading, of, absent, usable):
    found = TierWeights(tiers, fading)
    assert (found.of, found.absent, found.total, found.usable) == (of, absent, sum(of.values()) + absent, usable)


def test_distances_and_counts_have_an_entry_for_no_domain():
    with bench().open() as session:
        domains = plugin_of(session).domains
        names = [info.name for info in domains.infos]
        near = {lies_in: scores.by_distance(domains, lies_in) for lies_in in ("s0", "s4", "none")}
        rows = np.array([session.table.row(name) for name in ("s0-n0", "lonely", "s0-n1")])
        counts = scores.counts(domains, rows)
    found = {lies_in: dict(zip([*names, "-"], each.tolist(), strict=True)) for lies_in, each in near.items()}
    top = next(name for name in names if name.startswith("<"))
    assert found == {
        "s0": {"s0": 1, "s1": 0.5, "s4": 0.5, top: 0, "-": 0},
        "s4": {"s0": 0.5, "s1": 0.5, "s4": 1, top: 0, "-": 0},
        "none": {"s0": 0, "s1": 0, "s4": 0, top: 0, "-": 0},
    }
    assert dict(zip([*names, "-"], counts.tolist(), strict=True)) == {"s0": 2, "s1": 0, "s4": 0, top: 0, "-": 0}


@pytest.mark.parametrize(("given", "found"), [([0.5, 1.0], [0.5, 1.0]), ([1.0, 1.0], [1.25, 1.5])])
def test_only_ties_are_broken(given, found):
    assert scores.break_tie(np.array(given), np.array([0.25, 0.5])).tolist() == found


# ---------------------------------------------------------------------- keeping up


def test_placements_of_a_part_are_counted_and_evicted_tasks_until_they_have_gone():
    pods = [pod("g-0", group="g", on="s0-n0"), pod("g-1", group="g"), pod("g-2", group="g")]
    with bench(pod_group("g", networkTopology=HARD_2), *pods).open() as session:
        plugin, job = plugin_of(session), session.jobs["default/g"]
        part = session.sub_jobs(job)["default/g"]
        names = [*(info.name for info in plugin.domains.infos), "-"]

        def counts() -> dict[str, int]:
            return {name: n for name, n in zip(names, plugin._counts_of(part).tolist(), strict=True) if n}

        assert counts() == {"s0": 1}
        with session.statement() as trial:
            for name, on in (("g-1", "s1-n0"), ("g-2", "lonely")):
                row = session.table.row(on)
                trial.place(job, (task_of(session, name),), (row,), OperationKind.ALLOCATE)
            assert counts() == {"s0": 1, "s1": 1}
            trial.evict(task_of(session, "g-0"), "test")
            assert counts() == {"s0": 1, "s1": 1}
        assert counts() == {"s0": 1}


def test_tasks_that_come_and_leave_together_count_as_each_by_itself():
    objects = [pod_group("g", networkTopology=HARD_2), *(pod(f"g-{i}", group="g", cpu=2) for i in range(2))]
    with bench(*objects, **{"hypernode.keep-whole.enable": "true"}).open() as session:
        plugin, job, task = plugin_of(session), session.jobs["default/g"], task_of(session, "g-0")
        part = session.sub_jobs(job)["default/g"]
        domains, rows = plugin.domains, [session.table.row(name) for name in NODES[:2]]
        plugin._preferred(job)
        used, whole, counts = domains.used.copy(), plugin._whole.broken(), plugin._counts_of(part)
        plugin.came_together(task, rows)
        assert (domains.used - used)[0].tolist() == [2 * 2000 * (info.name != "s1") for info in domains.infos]
        assert plugin._whole.broken().tolist() != whole.tolist()
        assert plugin._counts_of(part) is not counts
        plugin.left_together(task, rows)
        assert domains.used.tolist() == used.tolist()
        assert plugin._whole.broken().tolist() == whole.tolist()
