"""HyperNode objects in the cluster's state."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from stromboli.cluster.decoding.hyper_nodes import asks_for_domains, by_labels
from stromboli.cluster.events import Deleted, Modified
from stromboli.cluster.objects import from_value
from stromboli.cluster.state import ClusterState
from stromboli.errors import ManifestError
from stromboli.model.jobs.hyper_nodes import JobHyperNodes
from stromboli.model.names import TOPOLOGY_GROUP_KEYS
from stromboli.model.spec import NodeSpec
from stromboli.model.topology import build
from stromboli.testing.builders import Manifest, hyper_node, member, node, pod_group, state


def tell(cluster: ClusterState, found: Manifest, *, gone: bool = False) -> None:
    cluster.apply((Deleted if gone else Modified)(found["kind"], from_value(found["kind"], found)))


def rows(cluster: ClusterState) -> dict[str, list[int]]:
    return {name: info.rows for name, info in cluster.snapshot().hyper_nodes.items()}


RACK = hyper_node("rack", 1, member("Node", labelMatch={"matchLabels": {"rack": "r"}}), tier_name="rack")
BLOCK = hyper_node("block", 2, "n3", below=("rack",))


def test_snapshots_follow_hypernodes_and_nodes() -> None:
    cluster = state(node("n1", labels={"rack": "r"}), node("n2"), RACK, BLOCK)
    before = cluster.snapshot()
    assert before.hyper_node_tiers == {"rack": 1}
    assert rows(cluster) == {"rack": [0], "block": [0]}
    tell(cluster, node("n2", labels={"rack": "r"}))
    tell(cluster, node("n3"))
    assert rows(cluster) == {"rack": [0, 1], "block": [0, 1, 2]}
    tell(cluster, node("n1"), gone=True)
    assert rows(cluster) == {"rack": [0], "block": [0, 1]}
    tell(cluster, RACK, gone=True)
    assert not cluster.snapshot().hyper_nodes["rack"].known
    tell(cluster, BLOCK, gone=True)
    assert rows(cluster) == {}
    assert before.hyper_nodes["block"].rows == [0], "earlier snapshots stay as they were"


def test_the_topology_is_made_once_for_an_unchanged_cluster() -> None:
    cluster = state(node("n1"), RACK)
    first = cluster.snapshot()
    tell(cluster, RACK)
    assert cluster.snapshot().hyper_nodes["rack"] is first.hyper_nodes["rack"]


def test_a_bad_hypernode_is_reported_until_it_is_put_right() -> None:
    cluster = state(node("n1", labels={"rack": "r"}), RACK, BLOCK, hyper_node("other", 2, below=("rack",)))
    found = cluster.snapshot()
    problem = "HyperNode rack already has a parent block, and cannot set another parent other"
    assert (found.hyper_nodes_ready, found.inconsistencies) == (False, [problem])
    assert found.hyper_nodes["block"].rows == [0]
    tell(cluster, hyper_node("other", 2))
    found = cluster.snapshot()
    assert (found.hyper_nodes_ready, found.inconsistencies) == (True, [])


def test_a_refused_hypernode_changes_nothing() -> None:
    cluster = state(node("n1", labels={"rack": "r"}), RACK)
    with pytest.raises(ManifestError, match=r"HyperNode rack.*spec\.tier"):
        tell(cluster, hyper_node("rack", -1))
    assert rows(cluster) == {"rack": [0]}


def labelled(*places: tuple[str, str, str]) -> list[NodeSpec]:
    """Nodes in so many zones, blocks and racks, n0 the first of them, and one without labels; an empty name is none."""
    labels = (dict(zip(("zone", "block", "rack"), place, strict=True)) for place in places)
    return [*(NodeSpec(f"n{number}", labels=found) for number, found in enumerate(labels)), NodeSpec("bare")]


TIERS = [
    pytest.param(
        [("z1", "b1", "r1"), ("z1", "b1", "r2"), ("z1", "b2", "r3"), ("z2", "b3", "r4"), ("z2", "b4", "r5")],
        {"r1": "b1", "r2": "b1", "r3": "b2", "r4": "b3", "r5": "b4",
         "b1": "z1", "b2": "z1", "b3": "z2", "b4": "z2", "z1": "", "z2": ""},
        id="racks in blocks in zones",
    ),
    pytest.param(
        [("z1", "b1", "r1"), ("z1", "b2", "r1"), ("z1", "b1", "r2"), ("z2", "b3", "r3"), ("z2", "b3", "r4")],
        {"r1": "z1", "r2": "b1", "r3": "b3", "r4": "b3", "b1": "z1", "b2": "z1", "b3": "z2", "z1": "", "z2": ""},
        id="a rack in two blocks is in their zone",
    ),
    pytest.param(
        [("z1", "b1", "r1"), ("z2", "b1", "r1"), ("z1", "b2", "r2"), ("z1", "", "r3")],
        {"r1": "b1", "r2": "b2", "r3": "z1", "b1": "", "b2": "z1", "z1": "", "z2": ""},
        id="a block in two zones is in none, and a rack in no block is in its zone",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("places", "parents"), TIERS)
def test_labels_of_nodes_make_a_tree(places: list[tuple[str, str, str]], parents: Mapping[str, str]) -> None:
    """Each value is below the closest one that holds all of its nodes, and is joined only once."""
    nodes = labelled(*places)
    found = build(by_labels(["rack", "zone", "block"], nodes), nodes)
    assert {name.partition("=")[2]: info.parent.partition("=")[2] for name, info in found.infos.items()} == parents
    assert (found.tiers, found.problems) == ({"rack": 1, "block": 2, "zone": 3}, [])
    for name, info in found.infos.items():
        assert info.rows == [row for row, place in enumerate(places) if name.partition("=")[2] in place]


def test_only_so_many_labels_make_domains() -> None:
    labels = dict.fromkeys(["k5", "k1", "k4", "k2", "k3"], "v")
    found = by_labels(labels, [NodeSpec("n", labels=labels)])
    assert {spec.tier_name for spec in found.values()} == {"k1", "k2", "k3", "k4"}


@pytest.mark.parametrize("key", ["", "lies", "part", "close", "group"])
def test_domains_matter_to_jobs_that_lie_in_one_or_ask_for_closeness(key: str) -> None:
    wants: dict[str, Any] = {"networkTopology": {"mode": "hard"}} if key == "close" else {}
    notes = {next(iter(TOPOLOGY_GROUP_KEYS)): "g"} if key == "group" else {}
    [job] = state(node("n"), pod_group("g", annotations=notes, **wants)).snapshot().jobs.values()
    job.hyper_nodes = JobHyperNodes("rack" if key == "lies" else "", {"part": "rack"} if key == "part" else {})
    assert asks_for_domains(job) is bool(key)
