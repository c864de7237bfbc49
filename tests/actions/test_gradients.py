"""Hypernodes that are tried one after the other: each trial begins afresh, and the best of them is done."""

from __future__ import annotations

from typing import ClassVar

import pytest

from stromboli.model.names import TASK_SPEC
from stromboli.narration.observe import Counting
from stromboli.plugin import Plugin, hyper_node_gradient_for_job, hyper_node_gradient_for_sub_job, hyper_node_order
from stromboli.testing.builders import hyper_node, node, pod, pod_group
from tests.acceptance.bench import Bench, binds, conf, messages

TEXT = conf("gang racks", "predicates", actions="allocate")


class Racks(Plugin):
    """Offers the racks of each part side by side: in the first gradient r1 and r2, in the second r3."""

    name = "racks"

    def on_session_open(self, session):
        self.racks = session.hyper_nodes

    @hyper_node_gradient_for_job
    def offer(self, _job, hyper_node, _purpose):
        return [[hyper_node]]

    @hyper_node_gradient_for_sub_job
    def racks_of_part(self, _sub_job, _hyper_node, _purpose):
        return [[self.racks[name] for name in names] for names in (("r1", "r2"), ("r3",))]


class Later(Racks):
    """The same, and the last of them counts as the best."""

    @hyper_node_order
    def last_is_best(self, sub_job, nodes_by_hyper_node):
        return {name: float(name[1:]) for name in nodes_by_hyper_node}


def placed(cores, plugin=Racks, role="w", pods=2):
    racks = [hyper_node(f"r{i}", 1, f"n{i}") for i in (1, 2, 3)]
    parts = [{"name": "part", "matchLabelKeys": ["part"], "subGroupSize": pods}]
    members = [pod(f"g-{i}", group="g", cpu=1, memory=0, labels={"part": "a"}, annotations={TASK_SPEC: role})
               for i in range(pods)]  # fmt: skip
    nodes = [node(f"n{i}", cpu=cpu) for i, cpu in enumerate(cores, 1)]
    group = pod_group("g", min_member=pods, subGroupPolicy=parts)
    return set(binds(Bench([*nodes, *racks, group, *members], TEXT, plugin).cycle()).values())


TRIED = [
    pytest.param((2, 2, 2), Racks, "w", {"n1"}, id="the first of equals"),
    pytest.param((2, 2, 2), Later, "w", {"n2"}, id="the best of the first gradient"),
    pytest.param((1, 2, 2), Racks, "w", {"n2"}, id="the first has too little room"),
    pytest.param((1, 2, 2), Racks, "", {"n2"}, id="without roles"),
    pytest.param((0, 2, 2), Racks, "w", {"n2"}, id="the first has no room at all"),
    pytest.param((1, 1, 2), Racks, "w", {"n3"}, id="the second gradient where the first fails"),
    pytest.param((1, 1, 2), Later, "w", {"n3"}, id="nothing of the first is compared with the second"),
    pytest.param((1, 1, 1), Racks, "w", set(), id="none has room"),
]


@pytest.mark.parametrize(("cores", "plugin", "role", "nodes"), TRIED)
def test_a_part_lies_in_the_best_rack_that_takes_all_of_it(cores, plugin, role, nodes):
    assert placed(cores, plugin, role) == nodes


class Parts(Later):
    """Offers each part r1 and r2 side by side, of which r2 is tried first."""

    @hyper_node_gradient_for_sub_job
    def racks_of_part(self, _sub_job, _hyper_node, _purpose):
        return [[self.racks["r1"], self.racks["r2"]]]


class Whole(Later):
    """Offers a job r1 and r2 side by side, of which r2 is tried first."""

    @hyper_node_gradient_for_job
    def offer(self, _job, _hyper_node, _purpose):
        return [[self.racks["r1"], self.racks["r2"]]]

    @hyper_node_gradient_for_sub_job
    def racks_of_part(self, _sub_job, hyper_node, _purpose):
        return [[hyper_node]]


def two_racks(plugin, cpu):
    racks = [hyper_node(f"r{i}", 1, f"n{i}") for i in (1, 2)]
    nodes = [node(f"n{i}", cpu=2) for i in (1, 2)]
    group = pod_group("g", networkTopology={"mode": "hard", "highestTierAllowed": 1})
    return Bench([*nodes, *racks, group, pod("g-0", group="g", cpu=cpu, memory=0)], TEXT, plugin)


@pytest.mark.parametrize("plugin", [Parts, Whole])
def test_why_a_job_waits_is_said_of_the_last_rack_of_the_gradient_whichever_was_tried_last(plugin):
    said = "In hyperNode r2: 0/1 nodes are unavailable: 1 Insufficient cpu."
    assert messages(two_racks(plugin, 9).cycle(), "default/g-0") == [said]


@pytest.mark.parametrize(
    ("plugin", "cpu", "found"),
    [
        (Whole, 1, [("sub_job_in_hyper_node", "r2"), ("job_in_hyper_node", "r2")]),
        (Whole, 9, [("no_solution", "")]),
    ],
)
def test_where_a_job_and_its_parts_go_is_told_and_that_there_is_nowhere(plugin, cpu, found):
    observer = Counting(("no_solution", "job_in_hyper_node", "sub_job_in_hyper_node"))
    two_racks(plugin, cpu).cycle(observer)
    assert [(key, fields.get("hyper_node", "")) for key, fields in observer.told] == found
    assert {fields.get("job", fields.get("sub_job")) for _, fields in observer.told} == {"default/g"}


def test_a_part_that_fits_nowhere_keeps_no_other_from_its_place():
    policy = [{"name": "part", "matchLabelKeys": ["part"], "subGroupSize": 1, "minSubGroups": 1}]
    members = [pod(f"g-{i}", group="g", cpu=cpu, memory=0, labels={"part": str(i)}, created=i)
               for i, cpu in enumerate((9, 1))]  # fmt: skip
    group = pod_group("g", min_member=1, subGroupPolicy=policy)
    racks = [hyper_node(f"r{i}", 1, f"n{i}") for i in (1, 2, 3)]
    plan = Bench([*(node(f"n{i}", cpu=2) for i in (1, 2, 3)), *racks, group, *members], TEXT, Racks).cycle()
    assert binds(plan) == {"g-1": "n1"}


class Blocks(Plugin):
    """Offers a job b1 and b2 side by side, and each part the two racks of its block, which have ``scores``."""

    name = "racks"
    scores: ClassVar[dict[str, float]] = {}

    def on_session_open(self, session):
        self.below = session.hyper_nodes

    @hyper_node_gradient_for_job
    def blocks(self, _job, _hyper_node, _purpose):
        return [[self.below["b1"], self.below["b2"]]]

    @hyper_node_gradient_for_sub_job
    def racks(self, _sub_job, hyper_node, _purpose):
        first = 2 * int(hyper_node.name[1:]) - 1
        return [[self.below[f"r{first}"], self.below[f"r{first + 1}"]]]

    @hyper_node_order
    def order(self, sub_job, nodes_by_hyper_node):
        return {name: self.scores[name] for name in nodes_by_hyper_node}


@pytest.mark.parametrize(
    ("scores", "nodes"),
    [
        pytest.param((1, 1, 1, 1), {"n1"}, id="the first of equals"),
        pytest.param((1, 2, 3, 1), {"n3"}, id="the best rack is in the second block"),
        pytest.param((1, 4, 3, 1), {"n2"}, id="the best rack is in the first block"),
        pytest.param((-1, -2, -4, -3), {"n1"}, id="below 0"),
    ],
)
def test_a_job_lies_in_the_block_where_its_parts_score_best(scores, nodes):
    plugin = type("Scored", (Blocks,), {"scores": {f"r{i}": float(score) for i, score in enumerate(scores, 1)}})
    racks = [hyper_node(f"r{i}", 1, f"n{i}") for i in range(1, 5)]
    blocks = [hyper_node("b1", 2, below=("r1", "r2")), hyper_node("b2", 2, below=("r3", "r4"))]
    policy = [{"name": "part", "matchLabelKeys": ["part"], "subGroupSize": 1}]
    members = [pod(f"g-{part}", group="g", cpu=1, memory=0, labels={"part": part}) for part in "ab"]
    nodes_ = [node(f"n{i}", cpu=2) for i in range(1, 5)]
    group = pod_group("g", min_member=2, subGroupPolicy=policy)
    plan = Bench([*nodes_, *racks, *blocks, group, *members], TEXT, plugin).cycle()
    assert set(binds(plan).values()) == nodes


def test_plugins_are_asked_with_the_nodes_of_each_hypernode_of_a_gradient() -> None:
    seen = []

    class Looks(Racks):
        @hyper_node_order
        def look(self, sub_job, nodes_by_hyper_node):
            names = {name: [node.name for node in nodes] for name, nodes in nodes_by_hyper_node.items()}
            seen.append((len(nodes_by_hyper_node), names, "r9" in nodes_by_hyper_node))
            return {}

    assert placed((1, 1, 2), Looks) == {"n3"}
    assert seen[0] == (2, {"r1": ["n1"], "r2": ["n2"]}, False)
    assert seen[-1] == (1, {"r3": ["n3"]}, False)
