"""Scenarios: one JSON document with a cluster, a configuration and what happens between cycles."""

from __future__ import annotations

import gzip
import json
import sys
from pathlib import Path

from stromboli.cluster.decoding.templates import TemplateStore
from stromboli.cluster.decoding.validate import check
from stromboli.cluster.events import Added
from stromboli.cluster.files.scenario import decode_scenario
from stromboli.errors import ManifestError
from stromboli.model.resources.axes import Axes
from tests.cluster.corpus.fields import sound

CASES = Path(__file__).resolve().parents[2].parent / "shared" / "cases"


def scenario(**parts):
    return decode_scenario(json.dumps(parts))


def titles(found):
    return [f"{each.kind} {each.object.metadata.name}" for each in found]


def test_defaults():
    found = scenario()
    assert (found.name, found.conf, found.cycles, found.events, len(found), found.skipped) == ("", "", 1, (), 0, {})
    assert (found.options.scheduler_name, found.options.sampling) == ("volcano", None)
    assert list(found.objects()) == []


def test_parts():
    found = scenario(
        name="s",
        conf="actions: x",
        cycles=3,
        options={
            "schedulerName": "mine",
            "nodeUsage": {"n": {"cpu": 39.5, "memory": 40, "ageSeconds": 60}},
            "allowHdrfWithProportion": True,
            "boundBecome": "Bound",
            "later": "ignored",
        },
        expect={"binds": {}},
        podTemplates=[{}, {}],
    )
    assert (found.name, found.conf, found.cycles) == ("s", "actions: x", 3)
    options = found.options
    assert (options.scheduler_name, options.allow_hdrf_with_proportion, options.bound_become) == ("mine", True, "Bound")
    assert (options.node_usage["n"].cpu, options.node_usage["n"].age_seconds) == (39.5, 60)
    assert found.skipped == {"podTemplates": 2}


def test_a_case_file_holds_its_scenario_under_a_key():
    assert scenario(scenario={"name": "inner"}, oracle={}).name == "inner"


def test_nulls_count_as_absent():
    found = decode_scenario('{"name": null, "pods": null, "nodes": [], "options": {"shardName": null}, "cycles": null}')
    assert (found.name, found.cycles, found.options.shard_name, len(found)) == ("", 1, "", 0)


def test_objects_come_by_kind_and_in_list_order_and_namespaces_that_are_used_last():
    pods = [sound("Pod", "p2"), sound("Pod", "p1"), sound("Pod", "p3")]
    pods[1]["metadata"]["namespace"] = "listed"
    pods[2]["metadata"]["namespace"] = "other"
    found = scenario(
        queues=[sound("Queue", "q")],
        pods=pods,
        podGroups=[sound("PodGroup", "g")],
        nodes=[sound("Node", "n2"), sound("Node", "n1")],
        namespaces=[sound("Namespace", "listed")],
    )
    objects = list(found.objects())
    assert titles(objects) == [
        "Namespace listed", "Node n2", "Node n1", "Pod p2", "Pod p1", "Pod p3", "PodGroup g", "Queue q",
        "Namespace default", "Namespace other",
    ]  # fmt: skip
    assert objects[-1].object.metadata.labels == {"kubernetes.io/metadata.name": "other"}
    assert len(found) == 8
    assert list(found.objects()) == objects


def test_objects_that_are_taken_are_let_go():
    pods = [{"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c"}]}}]
    text = json.dumps({"pods": pods, "events": [{"beforeCycle": 2, "addPods": pods}]}).encode()
    before = sys.getrefcount(text)
    found = decode_scenario(text)
    assert sys.getrefcount(text) > before
    assert titles(found.taken()) == ["Pod p", "Namespace default"]
    assert (list(found.objects()), sys.getrefcount(text)) == ([], before)
    assert titles(found.events[0].objects()) == ["Pod p"]


def test_a_bad_object_is_a_problem_of_its_own():
    found = list(
        scenario(pods=[sound("Pod", "a"), {"metadata": {"name": "b"}, "spec": {"containers": 5}}, 7]).objects()
    )
    assert titles(found[:1]) == ["Pod a"]
    assert [str(each) for each in found[1:3]] == [
        "Pod default/b, pods[1].spec.containers: expected a list, got a whole number",
        "Pod without a name, pods[2]: expected a mapping, got a whole number",
    ]
    assert titles(found[3:]) == ["Namespace default"]


def test_what_happens_between_cycles():
    found = scenario(
        events=[
            {"beforeCycle": 2, "deletePods": ["ns/a"], "succeedPods": ["ns/b"]},
            {
                "beforeCycle": 3,
                "addPods": [sound("Pod", "p"), 5],
                "addNodes": [sound("Node", "n")],
                "addPodGroups": None,
            },
        ]
    )
    first, second = found.events
    assert (first.before_cycle, first.delete_pods, first.succeed_pods) == (2, ("ns/a",), ("ns/b",))
    assert list(first.objects()) == []
    node, pod, problem = second.objects()
    assert titles([node, pod]) == ["Node n", "Pod p"]
    assert isinstance(problem, ManifestError)


if CASES.is_dir():

    def test_recorded_cases_can_be_used_as_they_stand():
        files = sorted(CASES.rglob("*.json*"))
        for file in files[:: max(1, len(files) // 200)]:
            data = gzip.decompress(file.read_bytes()) if file.suffix == ".gz" else file.read_bytes()
            store = TemplateStore(Axes())
            for found in decode_scenario(data, file.name).objects():
                assert isinstance(found, Added), found
                check(found.object, store)
