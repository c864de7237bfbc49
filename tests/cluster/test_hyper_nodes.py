"""HyperNode objects in the cluster's state."""

from __future__ import annotations

import pytest

from stromboli.cluster.events import Deleted, Modified
from stromboli.cluster.objects import from_value
from stromboli.cluster.state import ClusterState
from stromboli.errors import ManifestError
from stromboli.testing.builders import Manifest, hyper_node, member, node, state


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
