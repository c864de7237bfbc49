"""Each rule of lint is broken once by an input made for it, and sound input breaks none."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from stromboli import builtin
from stromboli.cli.linting.cluster_rules import CLUSTER_RULES
from stromboli.cli.linting.conf_rules import CONF_RULES
from stromboli.cli.linting.config_maps import held_in
from stromboli.cli.linting.ignored_rules import IGNORED_RULES
from stromboli.cli.linting.job_rules import JOB_RULES
from stromboli.cli.linting.refusals import NAMES, REFUSED
from stromboli.cli.main import main
from stromboli.framework.config.config import DEFAULT_CONFIG
from stromboli.model.names import TOPOLOGY_GROUP as GROUP
from stromboli.model.names import TOPOLOGY_GROUP_POLICY as POLICY
from stromboli.model.names import TOPOLOGY_GROUP_TIER as TIER
from stromboli.testing.builders import hyper_node
from tests.cli import manifests as m
from tests.cli.manifests import Obj


def entry(name: str, **keys: object) -> str:
    """A plugin entry in flow form."""
    return json.dumps({"name": name, **keys})


def conf(*tiers: Sequence[str], actions: str = "enqueue, allocate, backfill", more: str = "") -> str:
    lines = [f'actions: "{actions}"', "tiers:"]
    for tier in tiers:
        lines += ["- plugins:", *(f"  - {one if one.startswith('{') else entry(one)}" for one in tier)]
    return "\n".join([*lines, more]) + "\n"


FIRST, SECOND = ("priority", "gang", "conformance"), ("drf", "predicates", "proportion", "nodeorder")
EVICTING = "enqueue, allocate, preempt, backfill"

# rule -> (configuration, what the finding's text must hold)
CONF: dict[str, tuple[str, str]] = {
    "unknown-name": (conf(("gagn", *FIRST), SECOND), "did you mean 'gang'"),
    "bad-argument": (
        conf(FIRST, (*SECOND, entry("overcommit", arguments={"overcommit-facter": 2}))), "overcommit-factor",
    ),
    "tolerated": (
        conf(FIRST, (entry("predicates", arguments={"predicate.GPUSharingEnable": True}), "proportion", "nodeorder")),
        "GPUSharingEnable",
    ),
    "switch-without-effect": (
        conf((entry("priority", enableJobReady=False), "gang"), SECOND), "enableJobReady on priority",
    ),
    "refused": (conf(FIRST, SECOND, actions="enqueue, alocate, backfill"), "did you mean 'allocate'"),
    "hierarchy-ignored": (conf((entry("gang", enableHierarchy=True), "priority"), SECOND), "enableHierarchy on gang"),
    "listed-twice": (conf(FIRST, (*SECOND, "gang")), "gang stands in tier 1 already"),
    "configured-in-vain": (conf(FIRST, SECOND, more="configurations: [{name: preempt, arguments: {a: 1}}]"), "preempt"),
    "nothing-is-placed": (conf(FIRST, SECOND, actions="enqueue, backfill"), "allocate"),
    "no-backfill": (conf(FIRST, SECOND, actions="enqueue, allocate"), "backfill"),
    "no-gang": (conf(("priority", entry("gang", enableJobReady=False)), SECOND), "enableJobReady is off"),
    "no-predicates": (conf(FIRST, ("proportion", "nodeorder")), "no predicates"),
    "no-shares": (conf(FIRST, ("predicates", "nodeorder")), "neither"),
    "no-priority": (conf(("gang",), SECOND), "no priority"),
    "no-scores": (conf(FIRST, ("predicates", "proportion")), "scores"),
    "hierarchy-with-proportion": (
        conf(FIRST, (entry("drf", enableHierarchy=True), "predicates", "nodeorder"), ("proportion",)), "tiers 2 and 3",
    ),
    "two-share-keepers": (conf(FIRST, (*SECOND, "capacity")), "proportion and capacity"),
    "nobody-can-be-evicted": (
        conf(
            (entry("priority", enablePreemptable=False), entry("gang", enablePreemptable=False)),
            ("predicates", "proportion", "nodeorder"), actions=EVICTING,
        ),
        "no plugin answers preemptable",
    ),
    "nobody-starves": (
        conf(
            (entry("priority", enableJobStarving=False), entry("gang", enableJobStarving=False)), SECOND,
            actions=EVICTING,
        ),
        "job_starving",
    ),
    "surplus-never-starves": (conf(FIRST, SECOND, actions=EVICTING), "gang and priority"),
    "minimum-never-preempted": (conf(FIRST, SECOND, actions=EVICTING), "gang votes"),
    "share-guards-victims": (conf(FIRST, SECOND, actions=EVICTING), "drf votes"),
    "critical-pods-unguarded": (conf(("priority", "gang"), SECOND, actions=EVICTING), "without conformance"),
    "door-shut-to-preemptors": (conf(FIRST, (*SECOND, "overcommit"), actions=EVICTING), "overcommit refuses"),
    "reclaim-without-shares": (
        conf(FIRST, ("drf", "predicates", "nodeorder"), actions="allocate, reclaim, backfill"), "without proportion",
    ),
    "deadline-asked-too-late": (conf(FIRST, (*SECOND, "sla")), "sla in tier 2"),
    "admission-without-enqueue": (
        conf(FIRST, (*SECOND, "overcommit"), actions="allocate, backfill"), "overcommit, but no action enqueue",
    ),
    "loads-without-source": (conf(FIRST, (*SECOND, "usage")), "usage, but no metrics type"),
    "moved-by-nobody": (conf(FIRST, (*SECOND, "tdm")), "tdm, but no action shuffle"),
    "nobody-to-move": (conf(FIRST, (*SECOND, "pdb"), actions="allocate, shuffle, backfill"), "shuffle, but no plugin"),
    "odd-order": (conf(FIRST, SECOND, actions="enqueue, backfill, allocate"), "backfill stands before allocate"),
}  # fmt: skip


def found_in(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> tuple[int, list[Obj]]:
    code = main(["lint", *arguments, "-o", "json"])
    answer = json.loads(capsys.readouterr().out)
    return code, answer["findings"]


def lint_conf(text: str, directory: Path, capsys: pytest.CaptureFixture[str]) -> tuple[int, list[Obj]]:
    file = directory / "scheduler.conf"
    file.write_text(text, encoding="utf-8")
    return found_in(["--config", str(file)], capsys)


@pytest.mark.parametrize("rule", CONF)
def test_configurations(rule: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text, told = CONF[rule]
    code, findings = lint_conf(text, tmp_path, capsys)
    texts = [finding["text"] for finding in findings if finding["rule"] == rule]
    assert any(told in one for one in texts), findings
    assert code == any(finding["severity"] == "error" for finding in findings)


MUST = "requiredDuringSchedulingIgnoredDuringExecution"


def annotated(name: str, text: str, **spec: Any) -> Obj:
    found = m.queue("a", **spec)
    return {**found, "metadata": {**found["metadata"], "annotations": {name: text}}}


def test_every_rule_has_a_case() -> None:
    here_or_not = {"not-in-this-release"}  # depends on what the release has
    assert {rule.id for rule in CONF_RULES} - here_or_not == set(CONF)
    of_objects = {rule.id for rule in (*CLUSTER_RULES, *JOB_RULES, *IGNORED_RULES, *NAMES)}
    assert of_objects | {rule.id for rule in REFUSED} == {rule for rule, *_ in CLUSTERS}


@pytest.mark.parametrize("text", [m.CHART, DEFAULT_CONFIG], ids=["chart", "built-in"])
def test_the_default_configurations_are_sound(text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert lint_conf(text, tmp_path, capsys) == (0, [])


def test_a_file_that_cannot_be_read_is_one_finding(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, findings = lint_conf("actions: allocate\ntiers: gang\n", tmp_path, capsys)
    assert code == 1
    assert [(one["rule"], one["line"]) for one in findings] == [("refused", 2)]


def test_an_unknown_action_hides_nothing_else(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = conf(("gang", "bogus"), SECOND, actions="enqueue, alocate, backfill")
    _, findings = lint_conf(text, tmp_path, capsys)
    assert {"refused", "unknown-name", "nothing-is-placed"} <= {one["rule"] for one in findings}


@pytest.mark.parametrize("plugin", ["capacity", "nodegroup", "overcommit"])
def test_plugins_that_read_the_hierarchy_may_have_it(
    plugin: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _, findings = lint_conf(conf(FIRST, (*SECOND[:2], entry(plugin, enableHierarchy=True))), tmp_path, capsys)
    assert "hierarchy-ignored" not in {one["rule"] for one in findings}


def test_names_of_the_reference_are_not_called_misspelt(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = conf(
        FIRST,
        (*SECOND[:2], "capacity", "nodeorder", "usage", "numa-aware"),
        actions="enqueue, allocate, shuffle, backfill",
    )
    _, findings = lint_conf(text, tmp_path, capsys)
    assert "unknown-name" not in {one["rule"] for one in findings}


def test_warnings_fail_only_when_strict(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "scheduler.conf"
    file.write_text(CONF["odd-order"][0], encoding="utf-8")
    assert main(["lint", "--config", str(file)]) == 0
    assert main(["lint", "--config", str(file), "--strict"]) == 1
    file.write_text(CONF["no-backfill"][0], encoding="utf-8")
    assert main(["lint", "--config", str(file), "--strict"]) == 0
    assert "1 note" in capsys.readouterr().out


# ---------------------------------------------------------------------- objects

ONE: Obj = {"cpu": "1"}
TWO: Obj = {"resource": {"cpu": "2"}}
N = m.node("n1", cpu="8", memory="8Gi")
TREE = [m.queue("p", capability={"cpu": "4"}, guarantee=TWO), m.queue("c", parent="p")]


def kind(api_version: str, name: str, **more: Any) -> Obj:
    return {"apiVersion": api_version, "kind": name, "metadata": {"name": "x", "namespace": "ns"}, **more}


def near(notes: dict[str, str]) -> Obj:
    """A soft PodGroup with annotations."""
    made = m.group("near", networkTopology={"mode": "soft"})
    return {**made, "metadata": {**made["metadata"], "annotations": notes}}


def vcjob(topologyPolicy: str = "", **spec: Any) -> Obj:  # noqa: N803 - as it is written in a manifest
    template = {"spec": {"containers": [{"name": "c", "image": "i", "resources": {"requests": {"cpu": "1"}}}]}}
    task = {"name": "t", "replicas": 1, "template": template, "topologyPolicy": topologyPolicy}
    return kind("batch.volcano.sh/v1alpha1", "Job", spec={"tasks": [task], **spec})


def waiting(least: int) -> Obj:
    """A job whose second task waits for its first."""
    found = vcjob(minAvailable=least)
    first = found["spec"]["tasks"][0]
    found["spec"]["tasks"].append({**first, "name": "u", "dependsOn": {"name": ["t"]}})
    return found


def wide(replicas: int, plugin: str, *arguments: str) -> Obj:
    """A job of many pods; those of 1,005 have names of together less than 20,000 characters."""
    found = vcjob(plugins={plugin: list(arguments)})
    found["metadata"]["name"] = "abcdef"
    found["spec"]["tasks"][0]["replicas"] = replicas
    return found


def alien(name: str) -> Obj:
    """A pod that no scheduler of ours is named in."""
    spec = {"containers": [{"name": "c", "resources": {"requests": {"cpu": "1"}}}]}
    return {**kind("v1", "Pod", spec=spec), "metadata": {"name": name, "namespace": "ns"}}


def asking(resource: str) -> Obj:
    """A pod that asks for one of a resource."""
    found = m.pod("p")
    found["spec"]["containers"][0]["resources"] = {"requests": {resource: "1"}, "limits": {resource: "1"}}
    return found


# (rule, objects, what the finding's text must hold)
CLUSTERS: list[tuple[str, list[Obj], str]] = [
    ("unusable-object", [m.node("n1", cpu="many")], "'many'"),
    ("dangling-name", [m.queue("a", parent="nobody")], "there is no Queue nobody"),
    ("dangling-name", [m.queue("a", parent="b"), m.queue("b", parent="a")], "circle"),
    ("dangling-name", [m.group("j", queue="nowhere")], "there is no Queue nowhere"),
    ("odd-object", [N, N], "stood already"),
    (
        "limit-below-guarantee",
        [m.queue("a", capability=ONE, guarantee=TWO)],
        "cpu: 2 > 1",
    ),
    ("deserved-out-of-bounds", [m.queue("a", capability=ONE, deserved={"cpu": "2"})], "cpu: 2 > 1"),
    (
        "deserved-out-of-bounds",
        [m.queue("a", deserved={"cpu": "1"}, guarantee=TWO)],
        "cpu: 2 > 1",
    ),
    (
        "guarantees-beyond-cluster",
        [N, *(m.queue(q, guarantee={"resource": {"cpu": "5"}}) for q in "ab")],
        "cpu: 10 > 8",
    ),
    ("deserved-beyond-cluster", [N, *(m.queue(q, deserved={"cpu": "5"}) for q in "ab")], "cpu: 10 > 8"),
    ("children-beyond-parent", [*TREE, m.queue("d", parent="p", capability={"cpu": "5"})], "cpu: 5 > 4"),
    ("children-beyond-parent", [*TREE, m.queue("d", parent="p", guarantee={"resource": {"cpu": "3"}})], "cpu: 3 > 2"),
    ("no-weight", [m.queue("a", weight=0)], "weight is 0"),
    ("parents-not-read", TREE, "parent p"),
    ("unusable-annotation", [annotated("volcano.sh/overcommit-factor", "0.9", deserved={"cpu": 1})], "'0.9' is no"),
    ("unusable-annotation", [annotated("volcano.sh/overcommit-factor", "2")], "needs an amount in spec.deserved"),
    ("unusable-annotation", [annotated("volcano.sh/nodegroup-resource-limits", "{")], "no JSON of groups"),
    ("group-nowhere", [N, m.queue("a", affinity={"nodeGroupAffinity": {MUST: ["x"]}})], "no node is in group x"),
    ("group-nowhere", [m.queue("a", affinity={"nodeGroupAntiAffinity": {MUST: ["x"]}})], "none may be used"),
    ("not-in-a-leaf", [*TREE, m.group("j", queue="p")], "queue p is no leaf"),
    ("not-in-a-leaf", [m.group("j", queue="root")], "queue root is the root"),
    ("closed-queue", [m.queue("a", state="Closed"), m.group("j", queue="a")], "queue a is Closed"),
    (
        "never-admitted",
        [m.queue("a", capability=ONE), m.group("j", queue="a", minResources={"cpu": "2"})],
        "2 > 1",
    ),
    ("never-admitted", [N, m.group("j", minResources={"memory": "9Gi"})], "memory: 9Gi > 8Gi"),
    ("too-few-pods", [N, *m.gang("j", 2, members=3)], "minMember is 3, but pods that can run are 2"),
    ("roles-not-checked", [m.group("j", 2, minTaskMember={"a": 2, "b": 1})], "adds up to 3"),
    ("fits-no-node", [N, m.node("n2", cpu="1", memory="99Gi"), m.pod("p", cpu="2", memory="9Gi")], "cpu 2, memory 9Gi"),
    ("gang-waits-for-itself", [waiting(2)], "minAvailable is 2, but only 1 of its pods wait for no other task"),
    ("long-lists-of-hosts", [wide(1006, "mpi")], "hosts of task t has 20015 characters"),
    ("unknown-field", [vcjob(minAvailabel=1)], "a Job has no such field, so it is ignored; did you mean minAvailable?"),
    ("unknown-field", [m.queue("a", capabilities=ONE)], "did you mean capability?"),
    ("asked-in-vain", [vcjob(plugins={"env": [], "svcs": [], "shs": []})], "svcs, shs: not known here"),
    ("asked-in-vain", [vcjob(networkTopology={"mode": "hard", "highestTierAllowed": 1})], "keeps pods close together"),
    ("asked-in-vain", [vcjob(topologyPolicy="single-numa-node")], "looks at NUMA nodes (numa-aware does)"),
    (
        "asked-in-vain",
        [near({GROUP: "g"})],
        "no plugin of the configuration looks at topology groups",
    ),
    ("asked-in-vain", [alien("p"), alien("q")], "is left to scheduler default-scheduler, as are 1 more"),
    ("asked-in-vain", [kind("apps/v1", "ReplicaSet", spec={"selector": {}})], "none of its pods is listed"),
    (
        "kind-not-read",
        [kind("batch.volcano.sh/v1alpha1", "CronJob")],
        "CronJob is not looked at: controllers make its Jobs",
    ),
    ("kind-not-read", [kind("flow.volcano.sh/v1alpha1", "JobFlow")], "controllers make its Jobs"),
    ("kind-not-read", [kind("batch/v1", "CronJob")], "batch/v1 CronJob is not looked at: it counts by its pods"),
    (
        "asked-in-vain",
        [kind("apps/v1", "Deployment", spec={"template": {"spec": {}}})],
        "its pods are left to scheduler default-scheduler",
    ),
    ("refused-by-admission", [vcjob(policies=[{"event": "PodFaild", "action": "RestartJob"}])], "PodFaild"),
    ("refused-by-admission", [vcjob(minAvailable=2)], "should not be greater than total replicas"),
    (
        "refused-by-admission",
        [kind("batch.volcano.sh/v1alpha1", "CronJob", spec={"schedule": "often", "jobTemplate": {"spec": {}}})],
        "schedule is not a valid cron expression",
    ),
    ("unqualified-resource", [asking("gpu")], "the resource gpu must be a standard resource type"),
    ("kind-not-read", [kind("v1", "Secret")], "v1 Secret is not looked at: it has no part in scheduling"),
    (
        "kind-not-read",
        [kind("kubeflow.org/v1", "PyTorchJob")],
        "kubeflow.org/v1 PyTorchJob is not looked at: which pods it leads to is its operator's doing, so none",
    ),
    (
        "kind-not-read",
        [kind("example.com/v1", "Training")],
        "example.com/v1 Training is not looked at: scheduling does not read it; pods that are made of it count",
    ),
    (
        "kind-not-read",
        [kind("rbac.authorization.k8s.io/v1", "ClusterRole")],
        "ClusterRole is not looked at: it has no part in scheduling",
    ),
]


@pytest.mark.parametrize(
    ("rule", "objects", "told"), CLUSTERS, ids=[f"{rule}-{n}" for n, (rule, *_) in enumerate(CLUSTERS)]
)
def test_objects(rule: str, objects: list[Obj], told: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "scheduler.conf"
    file.write_text(m.CHART, encoding="utf-8")
    _, findings = found_in([m.write(tmp_path, objects), "--config", str(file)], capsys)
    texts = [finding["text"] for finding in findings if finding["rule"] == rule]
    assert any(told in one for one in texts), findings


@pytest.mark.parametrize(
    "job",
    [
        waiting(1),
        vcjob(minAvailable=3),
        wide(1005, "svc"),
        wide(1006, "env"),
        wide(1006, "svc", "--inject-hosts-env=false"),
    ],
)
def test_jobs_that_are_in_order(job: Obj, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _, findings = found_in([m.write(tmp_path, [job])], capsys)
    assert not {one["rule"] for one in findings} & {rule.id for rule in JOB_RULES}


SOUND = [
    N,
    m.queue("a", capability={"cpu": "4"}, deserved={"cpu": "3"}, guarantee=TWO),
    m.queue("b", deserved={"cpu": "5"}),
    *m.gang("j", 2, "a", group={"minResources": {"cpu": "2"}, "minTaskMember": {"w": 2}}),
    m.pod("plain"),
]


def test_sound_objects_break_no_rule(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert found_in([m.write(tmp_path, SOUND)], capsys) == (0, [])


def ended(phase: str, name: str, group: str = "", node: str = "gone") -> Obj:
    """A pod that is over."""
    return {**m.pod(name, group, node=node), "status": {"phase": phase}}


@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
def test_what_finished_objects_name_may_be_gone(phase: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    objects = [N, ended(phase, "p", "gone"), ended(phase, "plain"), m.group("j", queue="gone")]
    objects[-1]["status"] = {"phase": "Completed"}
    assert found_in([m.write(tmp_path, objects)], capsys) == (0, [])
    for alive in (m.pod("q", "gone"), m.pod("q", node="gone")):
        _, findings = found_in([m.write(tmp_path, [*objects, alive])], capsys)
        assert [(one["rule"], one["object"]) for one in findings] == [("dangling-name", "Pod ns/q")]


def test_findings_say_where_and_what_to_do(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = m.write(tmp_path, [m.queue("a", capability=ONE, guarantee=TWO)])
    assert main(["lint", path]) == 1
    out = capsys.readouterr().out
    assert "error Queue a, spec.guarantee.resource: guarantee is beyond capability in cpu: 2 > 1" in out
    assert "why: " in out
    assert "fix: " in out
    assert "1 error, 0 warnings, 0 notes" in out


def test_workloads_whose_pods_are_listed_are_in_order(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "x", "uid": "u", "controller": True}
    pod = m.pod("p")
    pod["metadata"] |= {"namespace": "ns", "ownerReferences": [owner]}
    owned = kind("apps/v1", "ReplicaSet", spec={"selector": {}})
    for objects in ([pod, owned], [owned, pod]):
        _, findings = found_in([m.write(tmp_path, objects)], capsys)
        assert "asked-in-vain" not in {one["rule"] for one in findings}


@pytest.mark.parametrize(
    ("switch", "notes", "why"),
    [
        ("false", {GROUP: "g"}, "topology groups are off: network-topology-aware has them with hypernode.topology"),
        ("true", {POLICY: "same"}, "volcano.sh/topology-group is missing, so that no group is named"),
        ("true", {GROUP: "g", POLICY: "near"}, "is near, not one of same, apart, pack, spread"),
        ("true", {GROUP: "g", TIER: "9"}, "is 9, which no HyperNode bears"),
        ("true", {GROUP: "g"}, ""),
    ],
)
def test_annotations_of_topology_groups_that_have_no_effect(
    switch: str, notes: dict[str, str], why: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plugin = f"{{name: network-topology-aware, arguments: {{hypernode.topology-groups.enable: {switch}}}}}"
    file = tmp_path / "scheduler.conf"
    file.write_text(f'actions: "enqueue, allocate"\ntiers:\n- plugins: [{{name: gang}}, {plugin}]\n', encoding="utf-8")
    path = m.write(tmp_path, [N, hyper_node("rack", 1, N["metadata"]["name"]), near(notes)])
    _, findings = found_in([path, "--config", str(file)], capsys)
    told = [one["text"] for one in findings if one["rule"] == "asked-in-vain" and "topology-group" in str(one)]
    assert [why in text for text in told] == ([True] if why else [])
    main(["plan", path, "--config", str(file), "-o", "json"])
    said = [line for line in json.loads(capsys.readouterr().out)["ignored"] if "topology-group" in line]
    assert [why in line for line in said] == ([True] if why else [])


def test_of_a_large_group_the_youngest_are_left_out_as_in_a_session(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("stromboli.plugins.network_topology_aware.wishes.MOST_MEMBERS", 1)
    plugin = "{name: network-topology-aware, arguments: {hypernode.topology-groups.enable: true}}"
    file = tmp_path / "scheduler.conf"
    file.write_text(f'actions: "enqueue, allocate"\ntiers:\n- plugins: [{{name: gang}}, {plugin}]\n', encoding="utf-8")
    old, young = near({GROUP: "g"}), near({GROUP: "g"})
    old["metadata"] |= {"name": "z", "creationTimestamp": "2026-01-01T00:00:00Z"}
    young["metadata"] |= {"name": "a", "creationTimestamp": "2026-01-02T00:00:00Z"}
    path = m.write(tmp_path, [N, hyper_node("rack", 1, N["metadata"]["name"]), young, old])
    _, findings = found_in([path, "--config", str(file)], capsys)
    told = [one["object"] for one in findings if one["rule"] == "asked-in-vain" and "topology-group" in str(one)]
    assert [name.rpartition("/")[2] for name in told] == ["a"]


def test_a_plan_says_what_it_ignores(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    topology = {"mode": "hard", "highestTierAllowed": 1}
    objects = [N, vcjob(minAvailabel=1, networkTopology=topology, plugins={"svcs": []}), kind("batch/v1", "CronJob")]
    path = m.write(tmp_path, objects)
    assert main(["plan", path, "-o", "json"]) == 0
    told = capsys.readouterr()
    said = ["CronJob is not looked at", "did you mean minAvailable?", "svcs: not known here", "keeps pods close"]
    assert [any(text in line for text in said) for line in json.loads(told.out)["ignored"]] == [True] * 4
    assert all(text in told.err for text in said)
    assert main(["plan", path, "--strict"]) == 2
    assert "spec.minAvailabel" in capsys.readouterr().err


@pytest.mark.parametrize("where", ["file", "directory", "config"])
def test_the_configuration_in_a_config_map_is_read(
    where: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = "\n".join(f"    {line}" for line in conf(("gagn", *FIRST), SECOND).splitlines())
    head = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\ndata:\n  volcano-scheduler.conf: |\n"
    file = tmp_path / "map.yaml"
    file.write_text(f"# a remark\n---\n{head}{lines}\n", encoding="utf-8")
    arguments = {"file": [str(file)], "directory": [str(tmp_path)], "config": ["--config", str(file)]}[where]
    code, findings = found_in(arguments, capsys)
    assert code == 1
    (found,) = [one for one in findings if one["rule"] == "unknown-name"]
    assert found["text"] == "unknown plugin gagn; did you mean 'gang'?"
    assert found["file"] == str(file)
    assert "gagn" in file.read_text(encoding="utf-8").splitlines()[found["line"] - 1]


@pytest.mark.parametrize(
    ("key", "text", "held"),
    [
        ("volcano-scheduler.conf", "metrics: {}", True),
        ("agent-scheduler.conf", 'actions: "allocate"', True),
        ("volcano-admission.conf", "#resourceGroups:\n#- resourceGroup: management", False),
        ("redis.conf", "maxmemory 2mb\n# actions: none", False),
        ("b.conf", '{"actions": "allocate"}', True),
        ("b.conf", "action: allocate", True),
        ("b.conf", "tiers: [\naction", True),
        ("b.conf", "server: [\nroot", False),
    ],
)
def test_a_configuration_that_is_not_the_scheduler_s_is_left_alone(
    key: str, text: str, held: bool, tmp_path: Path
) -> None:
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}, "data": {key: text}}
    file = tmp_path / "map.yaml"
    file.write_text(json.dumps(body), encoding="utf-8")
    assert [one.text for one in held_in([str(file)])] == [text] * held


def test_configurations_of_one_file_have_each_their_own_lines(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = conf(("gagn", *FIRST), SECOND)
    lines = "\n".join(f"    {line}" for line in text.splitlines())
    maps = [f'kind: ConfigMap\nmetadata: {{name: {name}}}\ndata:\n  "a.conf": |\n{lines}\n' for name in "ab"]
    file = tmp_path / "maps.yaml"
    file.write_text("---\n".join(f"apiVersion: v1\n{each}" for each in maps), encoding="utf-8")
    _, findings = found_in([str(file)], capsys)
    written = file.read_text(encoding="utf-8").splitlines()
    found = [one["line"] for one in findings if one["rule"] == "unknown-name"]
    assert found == [number for number, line in enumerate(written, 1) if "gagn" in line]
    assert len(found) == 2


@pytest.mark.parametrize("data", [b"\xff\xfe", b"kind: ConfigMap\n# \xf2\ndata: {a.conf: x}\n"])
def test_a_file_that_is_no_text_holds_no_configuration(data: bytes, tmp_path: Path) -> None:
    file = tmp_path / "a.yaml"
    file.write_bytes(data)
    assert held_in([str(file)]) == []


def test_a_guard_whose_switch_is_off_guards_no_pod(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first = ("priority", "gang", entry("conformance", enablePreemptable=False))
    for actions, told in ((EVICTING, ["conformance is not asked at preemptable, so not by action preempt"]),
                          ("enqueue, allocate, reclaim, backfill", [])):  # fmt: skip
        _, findings = lint_conf(conf(first, SECOND, actions=actions), tmp_path, capsys)
        assert [one["text"] for one in findings if one["rule"] == "critical-pods-unguarded"] == told


def test_a_plugin_that_this_release_lacks_is_told_by_plan_as_by_lint(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delitem(builtin.PLUGINS, "extender")
    file = tmp_path / "scheduler.conf"
    file.write_text(conf((*FIRST, "extender"), SECOND), encoding="utf-8")
    path = m.write(tmp_path, [N])
    assert main(["plan", path, "--config", str(file)]) == 2
    told = "plugin extender is the reference's, but this release does not have it"
    assert told in capsys.readouterr().err
    _, findings = found_in(["--config", str(file)], capsys)
    assert told in [one["text"] for one in findings]


def test_what_a_lenient_reading_skips_is_told_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "scheduler.conf"
    file.write_text(conf((*FIRST, "gagn"), SECOND), encoding="utf-8")
    assert main(["plan", m.write(tmp_path, [N]), "--config", str(file), "--lenient-config"]) == 0
    lines = [line for line in capsys.readouterr().err.splitlines() if "gagn" in line]
    assert lines == [f"stromboli: warning: {file}:7: unknown plugin gagn; did you mean 'gang'?"]


REFUSED_JOB = vcjob(policies=[{"event": "Nope", "action": "RestartJob"}])


def refusals(path: Path, capsys: pytest.CaptureFixture[str]) -> list[str]:
    _, findings = found_in([str(path)], capsys)
    return [one["text"] for one in findings if one["rule"] == "refused-by-admission"]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        pytest.param("j.json", json.dumps(REFUSED_JOB), id="JSON in a directory"),
        pytest.param("l.yaml", json.dumps({"apiVersion": REFUSED_JOB["apiVersion"], "kind": "JobList", "items": [
            {key: value for key, value in REFUSED_JOB.items() if key not in ("apiVersion", "kind")}]}), id="a list"),
        pytest.param("m.yaml", f"foo: bar\n---\n{json.dumps(REFUSED_JOB)}", id="beside what is no object"),
    ],
)  # fmt: skip
def test_refused_objects_are_found_wherever_the_reader_finds_them(
    name: str, text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / name).write_text(text, encoding="utf-8")
    assert len(refusals(tmp_path, capsys)) == 1


def test_objects_with_generated_names_and_unreadable_ones_are_no_refusals(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The API server makes the name before it asks; what cannot be read has a rule of its own."""
    generated, unreadable = vcjob(), vcjob(minAvailable="two")
    generated["metadata"] = {"generateName": "train-"}
    assert refusals(Path(m.write(tmp_path, [generated, unreadable])), capsys) == []
