"""Each rule of lint is broken once by an input made for it, and sound input breaks none."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from stromboli.cli.linting.cluster_rules import CLUSTER_RULES
from stromboli.cli.linting.conf_rules import CONF_RULES
from stromboli.cli.main import main
from stromboli.framework.config import DEFAULT_CONFIG
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
    assert {rule.id for rule in CLUSTER_RULES} == {rule for rule, *_ in CLUSTERS}


@pytest.mark.parametrize("text", [m.CHART, DEFAULT_CONFIG], ids=["chart", "built-in"])
def test_the_configurations_that_everybody_has_are_sound(
    text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
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


SOUND = [
    N,
    m.queue("a", capability={"cpu": "4"}, deserved={"cpu": "3"}, guarantee=TWO),
    m.queue("b", deserved={"cpu": "5"}),
    *m.gang("j", 2, "a", group={"minResources": {"cpu": "2"}, "minTaskMember": {"w": 2}}),
    m.pod("plain"),
]


def test_sound_objects_break_no_rule(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert found_in([m.write(tmp_path, SOUND)], capsys) == (0, [])


def test_findings_say_where_and_what_to_do(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = m.write(tmp_path, [m.queue("a", capability=ONE, guarantee=TWO)])
    assert main(["lint", path]) == 1
    out = capsys.readouterr().out
    assert "error Queue a, spec.guarantee.resource: guarantee is beyond capability in cpu: 2 > 1" in out
    assert "why: " in out
    assert "fix: " in out
    assert "1 error, 0 warnings, 0 notes" in out
