"""What predicates tells while it is asked, and by what of a task its answers are kept."""

from __future__ import annotations

from typing import Any

import pytest

from stromboli.framework.session.session import Session
from stromboli.model.names import TEMPLATE_UID
from stromboli.narration.observe import Counting
from stromboli.plugin import Hook
from stromboli.plugins.predicates import Predicates
from stromboli.testing.builders import Manifest, node, pod, pod_group
from tests.acceptance.bench import GPU, Bench, binds, conf, task_of

GROUP = pod_group("g", min_member=0)
ALL = {"NodeAffinity", "NodePorts", "InterPodAffinity"}
SELECTING: dict[str, Any] = {"nodeSelector": {"disk": "ssd"}}
PORT: dict[str, Any] = {"ports": [{"hostPort": 8080}]}
CLAIM: dict[str, Any] = {"resourceClaims": [{"name": "c", "resourceClaimName": "missing"}]}
VOLUME: dict[str, Any] = {"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "missing"}}]}


def text(**arguments: Any) -> str:
    named = ", ".join(f"predicate.{name}: {str(value).lower()}" for name, value in arguments.items())
    return conf("gang", f"[{{name: predicates, arguments: {{{named}}}}}]", actions="allocate")


def told(key: str, *objects: Manifest, conf_text: str = "") -> list[dict[str, Any]]:
    """The fields of the lines of one key that a cycle tells."""
    observer = Counting((key,))
    Bench([GROUP, *objects], conf_text or text()).cycle(observer)
    return [dict(fields) for fields in observer.of(key)]


@pytest.mark.parametrize(
    ("spec", "off", "names"),
    [
        ({}, "", ALL),
        (SELECTING, "", ALL - {"NodeAffinity"}),
        (PORT, "", ALL - {"NodePorts"}),
        ({}, "NodeAffinityEnable", ALL - {"NodeAffinity"}),
        ({}, "NodePortsEnable", ALL - {"NodePorts"}),
        ({}, "PodAffinityEnable", ALL - {"InterPodAffinity"}),
    ],
)
def test_filters_that_are_on_and_have_nothing_to_ask_are_told(spec: dict[str, Any], off: str, names: set[str]) -> None:
    ports = spec.get("ports", [])
    asking = pod("p", group="g", **({} if ports else spec))
    asking["spec"]["containers"][0]["ports"] = ports
    found = told("predicate_skipped", node("n1"), asking, conf_text=text(**{off: False}) if off else "")
    expected = [("p", each) for each in sorted(names, key=ORDER)]
    assert [(fields["task"].name, fields["name"]) for fields in found] == expected


ORDER = ["NodeAffinity", "NodePorts", "InterPodAffinity"].index


def test_nodes_that_hold_as_many_pods_as_they_may_are_told() -> None:
    nodes = [node("full", pods=1), node("other", pods=2)]
    found = told("predicate_pod_number", *nodes, pod("there", on="full"), pod("p", group="g"))
    assert [(one["node"], one["allocatable"], one["existing"]) for one in found] == [("full", 1, 1)]


def test_nodes_that_would_keep_too_little_for_their_devices_are_told() -> None:
    rates = {"ProportionalEnable": True, "resources": GPU, f"resources.{GPU}.cpu": 4, f"resources.{GPU}.memory": 0}
    nodes = [node("n1", cpu=4, resources={GPU: 1}), node("n2", cpu=4)]
    found = told("predicate_proportional", *nodes, pod("p", group="g"), conf_text=text(**rates))
    assert {(one["node"], one["fit"]) for one in found} == {("n1", False), ("n2", True)}


def test_what_is_kept_of_a_template_is_told_and_that_nothing_is() -> None:
    kept = pod("kept", group="g", annotations={TEMPLATE_UID: "t"}, **SELECTING)
    for key, fields in (
        ("predicate_cached", [("n1", "kept", False), ("n2", "kept", True)]),
        ("predicate_uncached", [(None, "plain", None)]),
    ):
        nodes = [node("n1"), node("n2", labels={"disk": "ssd"})]
        found = told(key, *nodes, kept, pod("plain", group="g"), conf_text=text(CacheEnable=True))
        assert sorted({(one.get("node"), one["name"], one.get("fit")) for one in found}) == fields


@pytest.mark.parametrize("done", ["", "d"])
def test_placements_and_removals_are_told(done: str) -> None:
    came, left = f"predicate_allocate{done}", f"predicate_deallocate{done}"
    observer = Counting((came, left))
    with Bench([GROUP, node("n1"), pod("p", group="g")], text()).open(observer) as session:
        with session.statement() as trial:
            trial.allocate(task_of(session, "p"), session.nodes["n1"])
            assert observer.counts == {came: 1}
        assert observer.counts == {came: 1, left: 1}
    assert {fields["node"] for _, fields in observer.told} == {"n1"}


def hooks(session: Session) -> dict[str, Hook]:
    plugin = session.plugins["predicates"]
    assert isinstance(plugin, Predicates)
    return {function.__name__: hook for hook, function in plugin.hooks()}


@pytest.mark.parametrize(
    ("spec", "keys", "by_template"),
    [({}, (), True), (CLAIM, (), False), (VOLUME, (), False), ({}, ("predicate_skipped",), False)],
    ids=["plain pods", "a pod claims devices", "a pod claims a volume", "each pod is told of"],
)
def test_what_rules_out_every_node_is_kept_by_template_where_pods_of_one_are_alike(
    spec: dict[str, Any], keys: tuple[str, ...], by_template: bool
) -> None:
    objects = [GROUP, node("n1"), pod("p", group="g", **spec), pod("plain", group="g")]
    with Bench(objects, text()).open(Counting(keys)) as session:
        key = hooks(session)["pre_filter"].key
        assert (key is not None and key(task_of(session, "plain")) == task_of(session, "plain").template) is by_template


@pytest.mark.parametrize("keys", [(), ("predicate_pod_number",)])
def test_full_nodes_are_looked_for_with_each_pod_where_they_are_told(keys: tuple[str, ...]) -> None:
    with Bench([GROUP, node("n1"), pod("p", group="g")], text()).open(Counting(keys)) as session:
        assert hooks(session)["pod_number"].amounts is not bool(keys)


@pytest.mark.parametrize("spec", [CLAIM, VOLUME], ids=["devices", "a volume"])
def test_a_pod_whose_claim_is_missing_waits_and_others_are_placed(spec: dict[str, Any]) -> None:
    objects = [GROUP, node("n1"), pod("p", group="g", **spec), pod("plain", group="g")]
    assert binds(Bench(objects, text()).cycle()) == {"plain": "n1"}


def test_with_the_names_of_nodes_in_conflict_nothing_is_said_of_volumes() -> None:
    fields = [{"key": "metadata.name", "operator": "In", "values": [name]} for name in ("a", "b")]
    terms = {"nodeSelectorTerms": [{"matchFields": fields}]}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}
    with Bench([GROUP, node("n1"), pod("p", group="g", affinity=affinity, **VOLUME)], text()).open() as session:
        plugin = session.plugins["predicates"]
        assert isinstance(plugin, Predicates)
        assert "affinity terms conflict" in str(plugin.pre_filter(task_of(session, "p")))
