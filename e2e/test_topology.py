"""Gangs in racks: discovery from labels, the best rack, a node that dies, and a rack that is freed for others."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from e2e.clusters import Json
from e2e.objects import job, priority_class
from e2e.stage import GROUPS, NAMESPACE, Stage, until
from stromboli.live.controllers.options import CONFIG_MAP
from stromboli.live.installation.configurations import CONFIGURATION

RACK = "example.com/rack"
HYPER_NODES = "/apis/topology.volcano.sh/v1alpha1/hypernodes"
HARD = {"mode": "hard", "highestTierAllowed": 1}
CONF = CONFIGURATION.replace("- name: nodeorder", "- name: nodeorder\n  - name: network-topology-aware")
EVICTING = CONF.replace("allocate,", "allocate, gangpreempt,")

# There are four nodes of eight cpus, two a rack: four pods of three cpus fill a rack.


def _labelled(stage: Stage, node: str, rack: str | None) -> None:
    body = {"metadata": {"labels": {RACK: rack}}}
    stage.api.call("PATCH", f"/api/v1/nodes/{node}", body, "application/merge-patch+json")


def _racks(stage: Stage) -> dict[str, set[str]]:
    """The nodes of each HyperNode, by the value of the label that it was made of."""
    found: dict[str, set[str]] = {}
    for each in stage.items(HYPER_NODES):
        members = each["spec"].get("members", ())
        found[each["metadata"].get("labels", {}).get(RACK, "")] = {
            member["selector"]["exactMatch"]["name"] for member in members
        }
    return found


def _discovery() -> Json:
    types = {"racks": [{"nodeLabel": RACK}, {"nodeLabel": "kubernetes.io/hostname"}]}
    entry = {"source": "label", "enabled": True, "config": {"networkTopologyTypes": types}}
    data = {"volcano-controller.conf": json.dumps({"networkTopologyDiscovery": [entry]})}
    metadata = {"name": CONFIG_MAP, "namespace": NAMESPACE}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


@pytest.fixture
def racks(stage: Stage) -> Iterator[dict[str, set[str]]]:
    """Two racks of two nodes, discovered from labels; they go with the story."""
    names = sorted(node["metadata"]["name"] for node in stage.items("/api/v1/nodes"))
    wanted = {"r0": set(names[:2]), "r1": set(names[2:])}
    for rack, members in wanted.items():
        for name in members:
            _labelled(stage, name, rack)
    stage.create(_discovery())
    until(lambda: _racks(stage) == wanted, "a HyperNode for each rack")
    yield wanted
    for name in names:
        _labelled(stage, name, None)
    until(lambda: not _racks(stage), "no HyperNode is left")
    stage.delete(f"/api/v1/namespaces/{NAMESPACE}/configmaps/{CONFIG_MAP}")


def _rack_of(racks: dict[str, set[str]], nodes: dict[str, str]) -> str:
    """The rack that all pods lie in; empty where they lie in several."""
    return next((name for name, members in racks.items() if set(nodes.values()) <= members), "")


def test_the_tree_follows_a_label(stage: Stage, space: str, racks: dict[str, set[str]]) -> None:
    node = min(racks["r1"])
    _labelled(stage, node, "r0")
    until(lambda: _racks(stage) == {"r0": racks["r0"] | {node}, "r1": racks["r1"] - {node}}, "the node has moved")


def test_a_gang_takes_a_rack_and_comes_back_in_one(stage: Stage, space: str, racks: dict[str, set[str]]) -> None:
    restart = [{"event": "PodEvicted", "action": "RestartJob"}]
    with stage.scheduler(conf=CONF):
        stage.create(job(space, "training", 4, cpu="3", networkTopology=HARD, policies=restart))
        before = stage.until_bound(space, "training", 4)
        rack = _rack_of(racks, before)
        assert rack, "the gang lies in one rack"

        stage.create(job(space, "larger", 6, cpu="3", networkTopology=HARD))
        until(lambda: any("lacks" in text for text in _told(stage, space, "larger")), "larger is told what racks lack")
        assert not stage.bound(space, "larger")

        dead = min(racks[rack])
        path = f"/api/v1/nodes/{dead}"
        stage.api.call("PATCH", path, {"spec": {"unschedulable": True}}, "application/merge-patch+json")
        for pod in stage.pods(space, "training"):
            if pod["spec"]["nodeName"] == dead:
                stage.delete(f"/api/v1/namespaces/{space}/pods/{pod['metadata']['name']}")
        try:
            after = until(lambda: _replaced(stage, space, before), "the gang is back")
            assert _rack_of(racks, after) not in ("", rack)
        finally:
            stage.api.call("PATCH", path, {"spec": {"unschedulable": None}}, "application/merge-patch+json")


def _replaced(stage: Stage, space: str, before: dict[str, str]) -> dict[str, str] | None:
    """The nodes of the four pods of ``training``, once none of them is one of ``before``."""
    found = stage.bound(space, "training")
    return found if len(found) == 4 and not found.keys() & before.keys() else None


def _told(stage: Stage, space: str, name: str) -> list[str]:
    """What conditions say of a job's group."""
    groups = [found for found in stage.items(GROUPS.format(space)) if found["metadata"]["name"].startswith(name)]
    return [one.get("message", "") for found in groups for one in found.get("status", {}).get("conditions") or ()]


def test_gangpreempt_frees_a_whole_rack(stage: Stage, space: str, racks: dict[str, set[str]]) -> None:
    stage.create(priority_class("rack-high", 1000), priority_class("rack-low", 1))
    with stage.scheduler(conf=EVICTING):
        stage.create(job(space, "low", 8, cpu="3", least=1, priorityClassName="rack-low"))
        stage.until_bound(space, "low", 8)
        stage.create(job(space, "high", 4, cpu="3", networkTopology=HARD, priorityClassName="rack-high"))
        rack = _rack_of(racks, stage.until_bound(space, "high", 4))
        assert rack, "the gang has a rack of its own"
        left = {node for node in stage.bound(space, "low").values() if node not in racks[rack]}
        assert left == set().union(*racks.values()) - racks[rack], "pods of the other rack run on"
