"""The tree of hypernodes: which nodes belong where, and what cannot be."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from stromboli.api.topology import HyperNodeSpec
from stromboli.model.spec import NodeSpec
from stromboli.model.topology import Topology, ancestors, build, lowest_common

NODES = [NodeSpec(name, labels={"rack": name[0]}) for name in ("a-1", "a-2", "b-1", "b-2", "gpu-b-3")]


def spec(tier: int, *members: dict[str, Any], name: str = "") -> HyperNodeSpec:
    return msgspec.convert({"tier": tier, "tierName": name, "members": members}, HyperNodeSpec)


def of_node(**selector: Any) -> dict[str, Any]:
    return {"type": "Node", "selector": selector}


def exact(name: str) -> dict[str, Any]:
    return of_node(exactMatch={"name": name})


def hyper(name: str) -> dict[str, Any]:
    return {"type": "HyperNode", "selector": {"exactMatch": {"name": name}}}


def tree(**specs: HyperNodeSpec) -> Topology:
    return build(specs, NODES)


def expression(operator: str, *values: str) -> dict[str, Any]:
    return of_node(labelMatch={"matchExpressions": [{"key": "rack", "operator": operator, "values": values}]})


@pytest.mark.parametrize(
    ("members", "rows"),
    [
        ([exact("a-1")], [0]),
        ([exact("nobody"), exact("b-1"), exact("b-1")], [2]),
        ([of_node(regexMatch={"pattern": "b-[13]"})], [2, 4]),
        ([of_node(regexMatch={"pattern": "^b-"})], [2, 3]),
        ([of_node(regexMatch={"pattern": "b-["})], []),
        ([of_node(labelMatch={"matchLabels": {"rack": "a"}})], [0, 1]),
        ([of_node(labelMatch={})], []),
        ([expression("In", "g", "a")], [0, 1, 4]),
        ([expression("NotIn", "b")], [0, 1, 4]),
        ([expression("NotIn")], []),
        ([expression("Exists")], [0, 1, 2, 3, 4]),
        ([expression("Exists", "a")], []),
        ([expression("Near", "a")], []),
        ([of_node(exactMatch={"name": "a-2"}, regexMatch={"pattern": "gpu"})], [1, 4]),
        ([{"type": "HyperNode", "selector": {"regexMatch": {"pattern": "."}}}], []),
        ([{"type": "Rack", "selector": {"exactMatch": {"name": "a-1"}}}], []),
    ],
)
def test_which_nodes_the_members_stand_for(members: list[dict[str, Any]], rows: list[int]) -> None:
    assert tree(h=spec(1, *members)).infos["h"].rows == rows


def test_nodes_of_members_count_for_all_hypernodes_above() -> None:
    found = tree(
        top=spec(3, hyper("left"), hyper("right")),
        left=spec(2, hyper("leaf"), exact("b-1"), name="block"),
        leaf=spec(1, exact("a-1"), exact("b-1"), name="rack"),
        right=spec(2, exact("a-2")),
    )
    assert found.ready
    assert {name: info.rows for name, info in found.infos.items()} == {
        "top": [0, 1, 2], "left": [0, 2], "leaf": [0, 2], "right": [1],
    }  # fmt: skip
    assert found.by_tier == {1: ["leaf"], 2: ["left", "right"], 3: ["top"]}
    assert list(found.by_tier) == [1, 2, 3]
    assert found.tiers == {"block": 2, "rack": 1}
    assert found.infos["top"].children == ["left", "right"]
    assert ancestors(found.infos, "leaf") == ["leaf", "left", "top"]


@pytest.mark.parametrize(
    ("first", "second", "common"),
    [
        ("leaf", "right", "top"), ("right", "leaf", "top"), ("leaf", "left", "left"), ("leaf", "leaf", "leaf"),
        ("", "leaf", "leaf"), ("leaf", "", "leaf"), ("", "", ""), ("leaf", "alone", ""), ("leaf", "nobody", ""),
    ],
)  # fmt: skip
def test_the_lowest_common_ancestor(first: str, second: str, common: str) -> None:
    found = tree(
        leaf=spec(1),
        left=spec(2, hyper("leaf")),
        right=spec(2),
        top=spec(3, hyper("left"), hyper("right")),
        alone=spec(1),
    )
    assert lowest_common(found.infos, first, second) == common


def test_members_that_no_object_bears_hold_a_place() -> None:
    found = tree(h=spec(2, hyper("ghost"), exact("a-1")))
    ghost = found.infos["ghost"]
    assert (ghost.known, ghost.tier, ghost.parent, ghost.rows) == (False, 0, "h", [])
    assert found.ready
    assert found.by_tier == {2: ["h"]}
    assert found.infos["h"].rows == [0]


def test_of_two_tiers_for_one_name_the_last_counts() -> None:
    assert tree(a=spec(1, name="rack"), b=spec(4, name="rack")).tiers == {"rack": 4}


@pytest.mark.parametrize(
    ("specs", "problem"),
    [
        (
            {"x": spec(1, hyper("x"))},
            "cyclic dependency detected: HyperNode x is already in the ancestor chain [x]",
        ),
        (
            {"a": spec(1, hyper("b")), "b": spec(2, hyper("c")), "c": spec(3, hyper("a"))},
            "cyclic dependency detected: HyperNode a is already in the ancestor chain [a b c]",
        ),
        (
            {"m": spec(1), "p": spec(2, hyper("m")), "q": spec(2, hyper("m"))},
            "HyperNode m already has a parent p, and cannot set another parent q",
        ),
    ],
)
def test_what_cannot_be_is_a_problem_and_the_rest_stands(specs: dict[str, HyperNodeSpec], problem: str) -> None:
    found = tree(good=spec(1, exact("a-1")), **specs)
    assert found.problems == [problem]
    assert not found.ready
    assert found.infos["good"].rows == [0]


def test_a_long_tower_and_a_long_circle_are_no_trouble() -> None:
    specs = {f"h{i}": spec(i, hyper(f"h{i - 1}")) for i in range(1, 3000)}
    tower = build({**specs, "h0": spec(0, exact("a-1"))}, NODES)
    assert tower.infos["h2999"].rows == [0]
    circle = build({**specs, "h0": spec(0, hyper("h2999"))}, NODES)
    assert [len(problem) < 300 for problem in circle.problems] == [True]
