"""HyperNodes from node labels, UFM's ports and trees in files."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stromboli.api.fields import Metadata
from stromboli.api.kinds import HYPER_NODES
from stromboli.api.read import read
from stromboli.api.topology import HyperNode
from stromboli.controllers.changes import Create, Delete, Patch, Subject
from stromboli.controllers.discovery import domains, labels, static_tree
from stromboli.controllers.discovery.configuration import KEY, sources_of
from stromboli.controllers.discovery.domains import Domain
from stromboli.errors import ManifestError
from tests.controllers.cluster import Cluster

RACK, BLOCK, HOST = "volcano.sh/hypernode", "volcano.sh/hypercluster", "kubernetes.io/hostname"
CONFIG_MAP = Subject("v1", "ConfigMap", "volcano-system", "volcano-controller-configmap", "u")
BY_LABEL = {"networkTopologyTypes": {"topologyA2": [{"nodeLabel": BLOCK}, {"nodeLabel": RACK}, {"nodeLabel": HOST}]}}
SOURCE = "volcano.sh/network-topology-source"


def eight_nodes() -> dict[str, dict[str, str]]:
    """Eight nodes, two a rack, two racks a block."""
    return {f"n{i}": {HOST: f"n{i}", RACK: f"s{i // 2}", BLOCK: f"b{i // 4}"} for i in range(8)}


def configured(cluster: Cluster, *entries: dict[str, Any]) -> None:
    """The ConfigMap asks for these sources."""
    text = json.dumps({"networkTopologyDiscovery": list(entries)})
    cluster.manager.topology.configure(CONFIG_MAP, {KEY: text})


def label_cluster(nodes: dict[str, dict[str, str]], **config: Any) -> Cluster:
    cluster = Cluster()
    for name, found in nodes.items():
        cluster.manager.topology.seen_node(Metadata(name=name, labels=found))
    configured(cluster, {"source": "label", "enabled": True, "config": {**BY_LABEL, **config}})
    cluster.settle()
    return cluster


def tree(cluster: Cluster) -> dict[str, tuple[int, str, list[str]]]:
    """HyperNodes by their label value: tier, name of the tier, members by their label values or names."""
    stored = {name: node for (_, name), node in cluster.objects.get(HYPER_NODES, {}).items()}

    def value(node: dict[str, Any]) -> str:
        texts = node["metadata"]["labels"]
        return str(next(text for key, text in texts.items() if key != SOURCE))

    def member(row: dict[str, Any]) -> str:
        name = str(row["selector"]["exactMatch"]["name"])
        return value(stored[name]) if row["type"] == "HyperNode" else name

    return {
        value(node): (node["spec"]["tier"], node["spec"]["tierName"], sorted(map(member, node["spec"]["members"])))
        for node in stored.values()
    }


def expected(nodes: dict[str, dict[str, str]]) -> dict[str, tuple[int, str, list[str]]]:
    """The tree that labels describe, by definition, where the wider value follows from the narrower one."""
    found: dict[str, tuple[int, str, list[str]]] = {}
    for tier, label, narrower in ((1, RACK, ""), (2, BLOCK, RACK)):
        on_path = {name: texts for name, texts in nodes.items() if RACK in texts and label in texts}
        for value in {texts[label] for texts in on_path.values()}:
            below = {texts[narrower] if narrower else name for name, texts in on_path.items() if texts[label] == value}
            found[value] = (tier, label, sorted(below))
    return found


# ---------------------------------------------------------------------- labels


def test_the_documents_example() -> None:
    cluster = label_cluster(eight_nodes())
    assert tree(cluster) == expected(eight_nodes())
    assert len(tree(cluster)) == 4 + 2
    names = sorted(name for _, name in cluster.objects[HYPER_NODES])
    assert [name.rsplit("-", 1)[0] for name in names] == ["hypernode-topologya2-tier1"] * 4 + [
        "hypernode-topologya2-tier2"
    ] * 2
    assert all(node["metadata"]["labels"][SOURCE] == "label" for node in cluster.objects[HYPER_NODES].values())


def test_members_are_written_before_what_contains_them() -> None:
    cluster = label_cluster(eight_nodes())
    tiers = [change.body["spec"]["tier"] for change in cluster.writes if isinstance(change, Create)]  # type: ignore[index]
    assert len(tiers) == 6
    assert tiers == sorted(tiers)


def test_nothing_is_written_where_nothing_differs() -> None:
    cluster = label_cluster(eight_nodes())
    cluster.writes.clear()
    cluster.manager.topology.ask_sources(["label"])
    cluster.manager.topology.seen_node(Metadata(name="n0", labels={**eight_nodes()["n0"], "unrelated": "x"}))
    cluster.settle()
    assert [change for change in cluster.writes if not getattr(change, "status", False)] == []


def test_a_moved_node_changes_two_racks_and_keeps_all_names() -> None:
    cluster = label_cluster(eight_nodes())
    names = set(cluster.objects[HYPER_NODES])
    cluster.writes.clear()
    cluster.manager.topology.seen_node(Metadata(name="n0", labels={HOST: "n0", RACK: "s1", BLOCK: "b0"}))
    cluster.settle()
    changed = [change for change in cluster.writes if isinstance(change, Patch) and not change.status]
    assert len(changed) == 2
    assert set(cluster.objects[HYPER_NODES]) == names
    assert tree(cluster)["s1"] == (1, RACK, ["n0", "n2", "n3"])


def test_a_deleted_hypernode_comes_again_under_its_name() -> None:
    cluster = label_cluster(eight_nodes())
    names = set(cluster.objects[HYPER_NODES])
    gone = min(names)[1]
    cluster.remove(HYPER_NODES, gone, "")
    cluster.settle()
    assert set(cluster.objects[HYPER_NODES]) == names


def test_a_racks_last_node_takes_the_rack_and_then_the_block_with_it() -> None:
    cluster = label_cluster(eight_nodes())
    cluster.writes.clear()
    for name in ("n0", "n1", "n2", "n3"):
        cluster.manager.topology.gone_node(name)
    cluster.settle()
    assert sorted(tree(cluster)) == ["b1", "s2", "s3"]
    tiers = [name.rsplit("-", 1)[0][-1] for name in (c.name for c in cluster.writes if isinstance(c, Delete))]
    assert tiers == ["2", "1", "1"], "a parent goes before its children"


def test_names_of_an_earlier_controller_are_kept() -> None:
    cluster = Cluster()
    name = "hypernode-topologya2-tier1-abc42"
    metadata = {"name": name, "labels": {SOURCE: "label", RACK: "s0"}}
    cluster.store(HYPER_NODES, {"metadata": metadata, "spec": {"tier": 1, "members": []}})
    found = labels.discover(BY_LABEL, eight_nodes(), list(cluster.manager.topology.hyper_nodes.values()))
    assert found.domains[0] == Domain(name, 1, ("n0", "n1"), tier_name=RACK, labels={RACK: "s0"})


def test_nodes_that_disagree_are_named_on_the_config_map() -> None:
    nodes = eight_nodes()
    nodes["n1"][BLOCK] = "b9"
    cluster = label_cluster(nodes)
    assert tree(cluster)["b0"] == (2, BLOCK, ["s1"]), "s0 belongs to none of the two"
    assert tree(cluster)["s0"] == (1, RACK, ["n0", "n1"])
    told = [event for event in cluster.events if event.reason == "NetworkTopologyDiscoveryFailed"]
    assert [(event.about, event.type) for event in told] == [(CONFIG_MAP, "Warning")]
    assert told[0].message == (
        f"source label: nodes with {RACK}=s0 disagree on {BLOCK}: most say b0, but not n1 (b9); the domain belongs to "
        "none of them until the labels agree"
    )
    cluster.manager.topology.ask_sources(["label"])
    cluster.settle()
    assert len(list(cluster.told("NetworkTopologyDiscoveryFailed"))) == 1, "it is told once"


def test_what_is_found_does_not_depend_on_the_order_in_which_nodes_come() -> None:
    nodes = {f"n{i}": {RACK: f"s{i // 3}", BLOCK: f"b{i // 6}"} for i in range(12)}
    nodes["n0"][BLOCK] = nodes["n4"][BLOCK] = "b9"
    found = labels.discover(BY_LABEL, nodes, [])
    assert found == labels.discover(BY_LABEL, dict(reversed(nodes.items())), [])
    assert [(one.tier, one.labels[RACK if one.tier == 1 else BLOCK]) for one in found.domains] == [
        *((1, f"s{i}") for i in range(4)), (2, "b1"),
    ]  # fmt: skip
    assert [one.members for one in found.domains[:4]] == [
        ("n0", "n1", "n2"), ("n3", "n4", "n5"), ("n6", "n7", "n8"), ("n10", "n11", "n9"),
    ]  # fmt: skip
    assert ["not n0 (b9)" in found.problems[0], "not n4 (b9)" in found.problems[1]] == [True, True]


def test_of_claims_that_are_equally_many_the_first_by_name_counts() -> None:
    blocks = {"n0": "b1", "n1": "b0", "n2": "b1", "n3": "b0", "n4": "b2"}
    nodes = {name: {RACK: "s", BLOCK: block} for name, block in blocks.items()}
    for given_nodes in (nodes, dict(reversed(nodes.items()))):
        [problem] = labels.discover(BY_LABEL, given_nodes, []).problems
        assert "most say b0, but not n0 (b1), n2 (b1), n4 (b2);" in problem


@pytest.mark.parametrize(("others", "named"), [(5, "n6 (b4), n7 (b5);"), (6, "n7 (b5) and 1 more;")])
def test_some_of_the_nodes_that_disagree_are_named(others: int, named: str) -> None:
    nodes = {f"n{i}": {RACK: "s", BLOCK: "b0"} for i in range(3)}
    nodes |= {f"n{i + 3}": {RACK: "s", BLOCK: f"b{i + 1}"} for i in range(others)}
    [problem] = labels.discover(BY_LABEL, nodes, []).problems
    assert "most say b0" in problem
    assert named in problem


def test_names_are_made_once_for_each_domain_whatever_else_has_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first name that is free of those that a text leads to; known ones stay with their domains."""
    asked: list[str] = []

    def suffix(text: str) -> str:
        asked.append(text)
        return f"x{text.count('1') + text.count('2')}"

    monkeypatch.setattr(labels, "suffix", suffix)
    taken = "hypernode-t-tier1-x0"
    known = [
        read(HyperNode, {"metadata": {"name": name, "labels": {SOURCE: "label", **notes}}, "spec": {"tier": 1}})
        for name, notes in ((taken, {}), ("hypernode-t-tier1-z", {"rack": "c"}), ("hypernode-t-tier1-a", {"rack": "c"}))
    ]
    config = {"networkTopologyTypes": {"t": [{"nodeLabel": "rack"}]}, "hostTier": True}
    found = labels.discover(config, {"n": {"rack": "a"}, "m": {"rack": "b"}, "o": {"rack": "c"}}, known)
    assert [one.name for one in found.domains] == [
        "hypernode-t-tier1-x1",
        "hypernode-t-tier1-x2",
        "hypernode-t-tier1-a",
    ]
    assert asked[:2] == ["t rack a", "t rack a 1"]


@pytest.mark.parametrize(("length", "kept"), [(20, True), (21, False)])
def test_names_of_types_have_a_length_and_one_that_is_too_long_keeps_no_other_back(length: int, kept: bool) -> None:
    rows = {name: [{"nodeLabel": f"{name}-a"}, {"nodeLabel": f"{name}-b"}] for name in ("t" * length, "last")}
    types, problems = labels.topology_types({"networkTopologyTypes": rows})
    assert [one.name for one in types] == (["t" * length] if kept else []) + ["last"]
    assert len(problems) == 1 - kept


def test_five_letters_stand_for_a_text() -> None:
    assert [labels.suffix(text) for text in ("a", "b")] == ["vh2mb", "vmkwp"]


def test_changes_are_written_from_the_lowest_tier_upwards() -> None:
    found = [Domain(f"d{tier}", tier, ("m",)) for tier in (3, 1, 2)]
    bodies: list[Any] = [one.body for one in domains.changes("s", found, {}).changes() if isinstance(one, Create)]
    tiers = [body["spec"]["tier"] for body in bodies]
    assert tiers == [1, 2, 3]


def test_a_hypernode_that_lacks_labels_gets_them_alone() -> None:
    spec = {"tier": 1, "members": [{"type": "Node", "selector": {"exactMatch": {"name": "m"}}}]}
    known = read(HyperNode, {"metadata": {"name": "d", "labels": {SOURCE: "s", "rack": "old"}}, "spec": spec})
    [patch] = domains.changes("s", [Domain("d", 1, ("m",), labels={"rack": "new"})], {"d": known}).changes()
    assert isinstance(patch, Patch)
    assert patch.body == {"metadata": {"labels": {"rack": "new", SOURCE: "s"}}}


def test_a_source_that_is_asked_no_more_forgets_its_answers_and_troubles() -> None:
    cluster = ufm_cluster(ports(*EXAMPLE))
    topology = cluster.manager.topology
    assert topology.discovery.failed("ufm", "no answer") is True
    assert topology.discovery.answered("ufm", ports(*EXAMPLE)) is True
    assert "ufm" not in topology.discovery._problems, "an answer ends its trouble"
    topology.discovery.failed("ufm", "no answer")
    topology.discovery.stop()
    assert (topology.discovery.sources, topology.discovery._answers) == ({}, {})
    assert "ufm" not in topology.discovery._problems
    assert topology.discovery.answered("ufm", b"") is False
    assert topology.discovery.failed("ufm", "no answer") is False


def test_host_tier_makes_a_hypernode_of_each_node() -> None:
    cluster = label_cluster(eight_nodes(), hostTier=True)
    assert [tier for tier, *_ in tree(cluster).values()].count(1) == 8
    assert tree(cluster)["b0"] == (3, BLOCK, ["s0", "s1"])


@pytest.mark.parametrize(
    ("types", "problem"),
    [
        ({"t" * 21: [{"nodeLabel": "a"}, {"nodeLabel": "b"}]}, "The length of topologyTypeName exceeds 20"),
        ({"t": [{"nodeLabel": "a"}, {"nodeLabel": "a"}]}, "there are duplicate labels"),
        ({"t": [{"nodeLabel": "a"}, {}]}, "an entry has no nodeLabel"),
        (
            {"t": [{"nodeLabel": "a"}, {"nodeLabel": "b"}], "u": [{"nodeLabel": "a"}, {"nodeLabel": "b"}]},
            "topology type t already uses the label a",
        ),
    ],
)
def test_types_that_are_left_out_are_told(types: dict[str, Any], problem: str) -> None:
    kept, problems = labels.topology_types({"networkTopologyTypes": types})
    assert len(kept) == len(types) - 1
    assert len(problems) == 1
    assert problem in problems[0]


def test_presets_stand_for_the_labels_of_clouds() -> None:
    kinds, problems = labels.topology_types({"preset": "gke"})
    assert kinds[0].labels == (
        "cloud.google.com/gce-topology-host",
        "cloud.google.com/gce-topology-subblock",
        "cloud.google.com/gce-topology-block",
    )
    assert not problems
    assert labels.topology_types({"preset": "moon"})[1] == ["preset moon is not known; there are oci, gke, eks, nvlink"]


@given(
    st.lists(
        st.one_of(
            st.tuples(st.sampled_from("abcdef"), st.none()),
            st.tuples(st.sampled_from("abcdef"), st.tuples(st.booleans(), st.integers(0, 4))),
        ),
        max_size=14,
    )
)
def test_hypernodes_equal_the_tree_of_the_present_labels(events: list[tuple[str, tuple[bool, int] | None]]) -> None:
    """After any nodes have come, changed and gone: the tree by definition, names kept, and no write without need."""
    cluster = label_cluster({})
    nodes: dict[str, dict[str, str]] = {}
    names: dict[str, str] = {}
    for name, place in events:
        before = expected(nodes)
        cluster.writes.clear()
        if place is None:
            nodes.pop(name, None)
            cluster.manager.topology.gone_node(name)
        else:
            racked, rack = place
            nodes[name] = {HOST: name, BLOCK: f"b{rack // 2}"} | ({RACK: f"s{rack}"} if racked else {})
            cluster.manager.topology.seen_node(Metadata(name=name, labels=nodes[name]))
        cluster.settle()
        after = expected(nodes)
        assert tree(cluster) == after
        different = {value for value in before.keys() | after.keys() if before.get(value) != after.get(value)}
        assert len([change for change in cluster.writes if not getattr(change, "status", False)]) == len(different)
        for (_, stored), node in cluster.objects.get(HYPER_NODES, {}).items():
            value = node["metadata"]["labels"].get(RACK) or node["metadata"]["labels"][BLOCK]
            assert names.setdefault(value, stored) == stored


# ---------------------------------------------------------------------- UFM


def ports(*pairs: tuple[str, str]) -> bytes:
    return json.dumps(
        [{"description": "Computer IB Port", "system_name": node, "peer_node_name": leaf, "tier": 1}
         for node, leaf in pairs]
        + [{"description": "Switch IB Port", "system_name": "L1", "peer_node_name": "S1", "tier": 2}]
    ).encode()  # fmt: skip


def fabric(cluster: Cluster) -> dict[str, list[str]]:
    return {
        name: [row["selector"]["exactMatch"]["name"] for row in node["spec"]["members"]]
        for (_, name), node in sorted(cluster.objects.get(HYPER_NODES, {}).items())
    }


def ufm_cluster(body: bytes) -> Cluster:
    cluster = Cluster()
    configured(cluster, {"source": "ufm", "enabled": True, "config": {"endpoint": "ufm"}})
    answer(cluster, body)
    return cluster


def answer(cluster: Cluster, body: bytes) -> None:
    assert cluster.manager.topology.discovery.answered("ufm", body)
    cluster.manager.topology.ask_sources(["ufm"])
    cluster.settle()


EXAMPLE = (("n1", "L1"), ("n1", "L2"), ("n2", "L2"), ("n3", "L3"))


def test_leaf_switches_that_share_a_node_are_one_domain() -> None:
    cluster = ufm_cluster(ports(*EXAMPLE))
    assert fabric(cluster) == {
        "leaf-hn-0": ["n1", "n2"], "leaf-hn-1": ["n3"], "spine-hn": ["leaf-hn-0", "leaf-hn-1"],
    }  # fmt: skip
    assert cluster.objects[HYPER_NODES]["", "spine-hn"]["metadata"]["labels"] == {SOURCE: "ufm"}


def test_a_new_switch_renames_no_domain() -> None:
    cluster = ufm_cluster(ports(*EXAMPLE))
    answer(cluster, ports(("n0", "L0"), *EXAMPLE))
    assert fabric(cluster) == {
        "leaf-hn-0": ["n1", "n2"], "leaf-hn-1": ["n3"], "leaf-hn-2": ["n0"],
        "spine-hn": ["leaf-hn-0", "leaf-hn-1", "leaf-hn-2"],
    }  # fmt: skip


def test_switches_joined_later_are_one_domain() -> None:
    cluster = ufm_cluster(ports(("a", "L1"), ("b", "L2"), ("c", "L3")))
    answer(cluster, ports(("a", "L1"), ("b", "L2"), ("c", "L3"), ("c", "L1")))
    assert fabric(cluster) == {"leaf-hn-0": ["a", "c"], "leaf-hn-1": ["b"], "spine-hn": ["leaf-hn-0", "leaf-hn-1"]}


def test_an_answer_that_cannot_be_read_keeps_what_was_found() -> None:
    cluster = ufm_cluster(ports(*EXAMPLE))
    found = fabric(cluster)
    answer(cluster, b'[{"tier": "one"}]')
    assert fabric(cluster) == found
    assert "the answer cannot be used" in next(cluster.told("NetworkTopologyDiscoveryFailed"))
    answer(cluster, b"[]")
    assert fabric(cluster) == {}


def test_a_hypernode_made_by_hand_is_left_alone_and_told() -> None:
    cluster = Cluster()
    cluster.store(HYPER_NODES, {"metadata": {"name": "leaf-hn-0"}, "spec": {"tier": 7, "members": []}})
    configured(cluster, {"source": "ufm", "enabled": True})
    answer(cluster, ports(*EXAMPLE))
    assert cluster.objects[HYPER_NODES]["", "leaf-hn-0"]["spec"]["tier"] == 7
    assert "HyperNode leaf-hn-0 exists without the label" in next(cluster.told("NetworkTopologyDiscoveryFailed"))


# ---------------------------------------------------------------------- files

YAML_TREE = """
tiers:
- name: rack
  hypernodes: {r1: [n1, n2], r2: ["gpu-*"]}
- name: block
  hypernodes: {b1: [r1, r2]}
"""
SLURM = """
# two racks
SwitchName=s0 Nodes=n[00-02,7],m
switchname=s1 nodes=x1
SwitchName=S_top Switches=s[0-1]
"""


def test_trees_in_yaml() -> None:
    assert static_tree.discover(YAML_TREE).domains == (
        Domain("r1", 1, ("n1", "n2"), tier_name="rack"),
        Domain("r2", 1, (), tier_name="rack", patterns=("^gpu\\-.*$",)),
        Domain("b1", 2, ("r1", "r2"), of_domains=True, tier_name="block"),
    )


def test_names_come_before_patterns_among_the_members_that_are_written() -> None:
    domain = Domain("d", 1, ("n1",), tier_name="rack", patterns=("^gpu\\-.*$",))
    selectors = [{"exactMatch": {"name": "n1"}}, {"regexMatch": {"pattern": "^gpu\\-.*$"}}]
    members = [{"type": "Node", "selector": selector} for selector in selectors]
    assert domain.spec() == {"tier": 1, "tierName": "rack", "members": members}


def test_trees_of_slurm() -> None:
    assert static_tree.discover(SLURM).domains == (
        Domain("s0", 1, ("m", "n00", "n01", "n02", "n7")),
        Domain("s1", 1, ("x1",)),
        Domain("s-top", 2, ("s0", "s1"), of_domains=True),
    )


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("x", "there is no list tiers"),
        ("tiers: [{}]", "there are no hypernodes"),
        ("tiers: [{hypernodes: {a: []}}]", "this is no list of names"),
        ("tiers: [{hypernodes: {a: [n]}}, {hypernodes: {b: ['a*']}}]", "only names of nodes may have"),
        ("tiers: [{hypernodes: {a: [n]}}, {hypernodes: {a: [b]}}]", "a stands there twice"),
        ("SwitchName=a", "needs either Nodes or Switches"),
        ("SwitchName=a Switches=a", "contains itself"),
        ("SwitchName=a Nodes=n[1-999999999]", "names more than 200000 hosts"),
        ("SwitchName=a Nodes=n[x]", "is no range of numbers"),
    ],
)
def test_trees_that_cannot_be_used(text: str, problem: str) -> None:
    with pytest.raises(ManifestError, match=problem):
        static_tree.discover(text)


# ---------------------------------------------------------------------- the configuration


def test_each_source_starts_by_itself() -> None:
    entries = [
        {"source": "roce", "enabled": True},
        {"source": "ufm", "enabled": False},
        {"source": "ufm", "enabled": True, "interval": "10m",
         "credentials": {"secretRef": {"name": "s", "namespace": "ns"}}},
        {"source": "ufm", "enabled": True, "interval": "1m"},
        {"source": "label", "enabled": True, "interval": "0s"},
        {"source": "file", "enabled": True, "interval": "now and then"},
    ]  # fmt: skip
    sources, problems = sources_of({KEY: json.dumps({"networkTopologyDiscovery": entries})})
    assert [(one.name, one.interval, one.secret) for one in sources] == [
        ("ufm", 600.0, ("ns", "s")), ("label", 3600.0, None), ("file", 3600.0, None),
    ]  # fmt: skip
    assert problems[0] == "failed to create discoverer: unsupported discoverer type: roce; there are label, ufm, file"
    assert problems[1].startswith("interval of file: ")
    assert problems[1].endswith("; polling every hour")


def test_a_source_is_polled_every_second_at_most() -> None:
    entry = {"source": "ufm", "enabled": True, "interval": "100ms"}
    sources, _ = sources_of({KEY: json.dumps({"networkTopologyDiscovery": [entry]}).ljust(1 << 20)})
    assert [one.interval for one in sources] == [1.0]


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        ({}, f"config key not found in ConfigMap: {KEY}"),
        ({KEY: "a: ["}, "failed to parse config: "),
        ({KEY: "networkTopologyDiscovery: {}"}, "failed to parse config: networkTopologyDiscovery is no list"),
        ({KEY: "#" * ((1 << 20) + 1)}, f"failed to parse config: {KEY} has more than 1048576 characters"),
    ],
)
def test_a_config_map_that_cannot_be_read_changes_nothing(data: dict[str, str], problem: str) -> None:
    cluster = label_cluster(eight_nodes())
    found = tree(cluster)
    cluster.manager.topology.configure(CONFIG_MAP, data)
    cluster.settle()
    assert next(cluster.told("NetworkTopologyDiscoveryFailed")).startswith(problem)
    cluster.manager.topology.gone_node("n0")
    cluster.settle()
    assert tree(cluster) != found, "the source still follows nodes"


def test_a_source_that_is_not_known_is_told_until_it_is_gone() -> None:
    cluster = Cluster()
    assert cluster.manager.topology.discovery.namespace == "", "no ConfigMap was seen yet"
    for source in ("roce", "label", "roce"):
        configured(cluster, {"source": source, "enabled": True})
        cluster.settle()
    told = [text for text in cluster.told("NetworkTopologyDiscoveryFailed") if "discoverer type: roce" in text]
    assert len(told) == 2
    assert cluster.manager.topology.discovery.namespace == CONFIG_MAP.namespace


def test_a_disabled_source_stops_and_its_hypernodes_stay() -> None:
    cluster = label_cluster(eight_nodes())
    found = tree(cluster)
    configured(cluster, {"source": "label", "enabled": False, "config": BY_LABEL})
    cluster.manager.topology.gone_node("n0")
    cluster.settle()
    assert tree(cluster) == found


def test_a_file_may_be_so_large_and_no_larger(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "SwitchName=s0 Nodes=n0"
    monkeypatch.setattr(static_tree, "LARGEST", len(text))
    assert [domain.name for domain in static_tree.discover(text).domains] == ["s0"]
    with pytest.raises(ManifestError, match=f"the file is larger than {len(text)} bytes"):
        static_tree.discover(text + " ")
