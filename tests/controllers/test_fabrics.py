"""Domains of fabrics, read from the ports of UFM and from files of Slurm and YAML."""

from __future__ import annotations

import json
from typing import Any

import pytest

from stromboli.api.read import read
from stromboli.api.topology import HyperNode
from stromboli.controllers.discovery import static_tree, ufm
from stromboli.controllers.discovery.domains import Domain
from stromboli.controllers.discovery.labels import _plain
from stromboli.errors import ManifestError

SOURCE = "volcano.sh/network-topology-source"


def leaves(*links: tuple[str, str], known: tuple[tuple[str, str], ...] = ()) -> dict[str, tuple[str, ...]]:
    """Nodes by domain; links are of a node and a switch, ``known`` has names of domains and their nodes as letters."""
    rows = [{"description": "Computer IB Port", "system_name": node, "peer_node_name": leaf} for node, leaf in links]
    stored = []
    for name, nodes in known:
        members = [{"type": "Node", "selector": {"exactMatch": {"name": node}}} for node in nodes]
        value: dict[str, Any] = {"metadata": {"name": name, "labels": {SOURCE: "ufm"}}, "spec": {"tier": 1}}
        value["spec"]["members"] = members
        stored.append(read(HyperNode, value))
    found = ufm.discover(ufm.ports_of(json.dumps(rows).encode()), stored).domains
    tiers = {one.name: (one.tier, one.of_domains) for one in found}
    assert tiers == {name: (2, True) if name == ufm.SPINE else (1, False) for name in tiers}
    return {one.name: one.members for one in found if one.name != ufm.SPINE}


@pytest.mark.parametrize(
    ("links", "groups"),
    [
        ([], []),
        ([("a", "1"), ("b", "2")], ["a", "b"]),
        ([("b", "2"), ("a", "1")], ["a", "b"]),
        ([("a", "1"), ("b", "2"), ("a", "3"), ("b", "3")], ["ab"]),
        ([("a", "1"), ("b", "2"), ("c", "3"), ("a", "4"), ("b", "4"), ("c", "4"), ("d", "5")], ["abc", "d"]),
        ([("a", "1"), ("b", "2"), ("d", "3"), ("a", "4"), ("b", "4")], ["ab", "d"]),
        ([("d", "1"), ("a", "2"), ("b", "3"), ("a", "4"), ("b", "4")], ["d", "ab"]),
        ([("a", "1"), ("b", "2"), ("c", "2"), ("a", "4"), ("b", "4")], ["abc"]),
    ],
)
def test_switches_that_share_a_node_are_one_group(links: list[tuple[str, str]], groups: list[str]) -> None:
    assert ["".join(nodes) for nodes in leaves(*links).values()] == groups


@pytest.mark.parametrize(
    ("known", "names"),
    [
        ((), ["leaf-hn-0", "leaf-hn-1"]),
        ((("leaf-hn-1", "abc"),), ["leaf-hn-1", "leaf-hn-0"]),
        ((("leaf-hn-0", "xyz"),), ["leaf-hn-0", "leaf-hn-1"]),
        ((("leaf-hn-7", "xyz"),), ["leaf-hn-0", "leaf-hn-1"]),
        ((("leaf-hn-0", "d"), ("leaf-hn-1", "ab")), ["leaf-hn-1", "leaf-hn-0"]),
        ((("leaf-hn-7", "ad"), ("leaf-hn-5", "abc")), ["leaf-hn-5", "leaf-hn-7"]),
        ((("leaf-hn-2", "cde"), ("leaf-hn-3", "c")), ["leaf-hn-3", "leaf-hn-2"]),
    ],
)
def test_a_group_keeps_the_name_that_shares_most_nodes_with_it(
    known: tuple[tuple[str, str], ...], names: list[str]
) -> None:
    links = [(node, "1") for node in "abc"] + [(node, "2") for node in "de"]
    assert list(leaves(*links, known=known)) == names


def tree(text: str) -> dict[str, tuple[int, tuple[str, ...]]]:
    return {one.name: (one.tier, one.members) for one in static_tree.discover(text).domains}


def test_of_several_names_that_are_wrong_the_first_by_name_is_told() -> None:
    names = [f"s{number}" for number in range(10, 40)]
    twice = ", ".join(f"{name}: [n]" for name in names)
    with pytest.raises(ManifestError, match="s10 stands there twice"):
        static_tree.discover(f"tiers: [{{hypernodes: {{{twice}}}}}, {{hypernodes: {{{twice}}}}}]")
    with pytest.raises(ManifestError, match="switch s10 contains itself"):
        static_tree.discover("\n".join(f"SwitchName={name} Switches={name}" for name in names))


def test_a_switch_stands_above_the_highest_of_those_below_it() -> None:
    text = "SwitchName=a Nodes=n1\nSwitchName=b Nodes=n2\nSwitchName=c Switches=a\nSwitchName=d Switches=b,c # x # y\n"
    found = tree(text)
    assert found == {"a": (1, ("n1",)), "b": (1, ("n2",)), "c": (2, ("a",)), "d": (3, ("b", "c"))}
    assert list(found) == ["a", "b", "c", "d"]


def test_switches_of_a_tier_stand_by_name() -> None:
    assert list(tree("SwitchName=b Nodes=n1\nSwitchName=a Nodes=n2\nSwitchName=0 Switches=a,b\n")) == ["a", "b", "0"]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("SwitchName=b Switches=c\nSwitchName=a Switches=c\n", "switch a contains"),
        ("SwitchName=z Nodes=n\nSwitchName=b Switches=a\nSwitchName=a Switches=b\n", "switch a contains"),
        ("tiers: [{hypernodes: {a: [n, 3]}}]", "this is no list of names"),
        ("tiers: [{hypernodes: {b: [n], a: [n]}}, {hypernodes: {b: [a], a: [b]}}]", "a stands there twice"),
        *((f"SwitchName=a Nodes=n[{part}]", "is no range of numbers")
          for part in ("x-1", "1-x", "1-1000000000", "\u0663-4", "3-\u0664", "")),
    ],
)  # fmt: skip
def test_what_is_wrong_with_a_tree_is_said_by_name(text: str, problem: str) -> None:
    with pytest.raises(ManifestError, match=problem):
        static_tree.discover(text)


@pytest.mark.parametrize(("names", "few"), [(4, False), (3, True)])
def test_a_file_names_so_many_hosts_and_no_more(names: int, few: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(static_tree, "MOST_NAMES", names)
    text = "SwitchName=a Nodes=n[1-2],m"  # with the switch's own four names
    if few:
        with pytest.raises(ManifestError, match="names more than 3 hosts"):
            static_tree.discover(text)
    else:
        assert tree(text) == {"a": (1, ("m", "n1", "n2"))}


def test_patterns_of_nodes_stand_in_order() -> None:
    [found] = static_tree.discover("tiers: [{name: rack, hypernodes: {r: ['z*', n, 'a?']}}]").domains
    assert found == Domain("r", 1, ("n",), tier_name="rack", patterns=("^a.$", "^z.*$"))


@pytest.mark.parametrize(
    ("kind", "name"), [("Rack", "rack"), ("a.b-c", "a.b-c"), ("a_b c", "a-b-c"), ("r\u00e4ck", "r-ck"), ("a/b", "a-b")]
)
def test_names_of_kinds_become_parts_of_names(kind: str, name: str) -> None:
    assert _plain(kind) == name
