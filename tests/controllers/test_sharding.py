"""The sharding controller: which nodes each scheduler gets, and the NodeShards that say so."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stromboli.api.kinds import NODE_SHARDS
from stromboli.api.read import read as read_kind
from stromboli.api.topology import NodeShard
from stromboli.cluster.files import yaml_values
from stromboli.controllers.changes import Subject
from stromboli.controllers.manager import Settings
from stromboli.controllers.sharding.configuration import KEY, PERIOD, Scheduler, Sharding, from_flags, read
from stromboli.controllers.sharding.controller import WHOLE
from stromboli.controllers.sharding.division import divide, is_worth_it, too_few
from stromboli.controllers.sharding.policies import POLICIES, AllocationRate, NodeLimit, NodeUse, Warmup
from stromboli.controllers.sharding.usage import PodOnNode, SizedNode
from stromboli.controllers.work import About
from stromboli.errors import ManifestError
from stromboli.model.names import LONGEST_NAME
from tests.controllers.cluster import Cluster

CONFIG_MAP = Subject("v1", "ConfigMap", "volcano-system", "volcano-sharding-configmap", "u")
DEFAULTS = from_flags(["volcano:volcano:0:1:false:0:0"])
NO_DURATION = "'soon' is not a duration: 'soon' has no number; write e.g. 90s, 1m30s or 2h30m"
WARM = {"node.volcano.sh/warmup": "true"}


def taken(text: str) -> tuple[Sharding, list[str]]:
    problems: list[str] = []
    return read({KEY: text}, DEFAULTS, problems), problems


GUIDE = """
schedulerConfigs:
- name: volcano
  type: volcano
  policies:
  - name: allocation-rate
    weight: 2
    arguments: {minCPUUtil: 0.0, maxCPUUtil: 0.6}
  - name: node-limit
    arguments: {minNodes: 2, maxNodes: 100.0}
- name: agent-scheduler
  type: agent
  cpuUtilizationMin: 0.7
  cpuUtilizationMax: 1.0
  preferWarmupNodes: true
  minNodes: 2
  maxNodes: 100
shardSyncPeriod: 30s
enableNodeEventTrigger: false
"""


def test_a_configuration_assigns_nodes_by_policies_or_older_fields() -> None:
    found, problems = taken(GUIDE)
    agent = ((AllocationRate(0.7, 1.0), 1.0), (Warmup(), 1.0), (NodeLimit(2, 100), 1.0))
    volcano = ((AllocationRate(0.0, 0.6), 2.0), (NodeLimit(2, 100), 1.0))
    assert found == Sharding((Scheduler("volcano", volcano), Scheduler("agent-scheduler", agent)), 30.0, False)
    assert problems == []


@pytest.mark.parametrize(
    ("entry", "problem"),
    [
        (None, "sharding config must contain at least one schedulerConfig entry"),
        ({}, "schedulerConfigs[0]: name must not be empty"),
        ({"cpuUtilizationMin": 1.5}, "schedulerConfigs[0] (n): cpuUtilizationMin 1.50 out of range [0,1]"),
        ({"cpuUtilizationMax": -1}, "schedulerConfigs[0] (n): cpuUtilizationMax -1.00 out of range [0,1]"),
        (
            {"cpuUtilizationMin": 0.7, "cpuUtilizationMax": 0.6},
            "schedulerConfigs[0] (n): cpuUtilizationMin (0.70) must be <= cpuUtilizationMax (0.60)",
        ),
        ({"minNodes": -1}, "schedulerConfigs[0] (n): minNodes must be >= 0"),
        ({"minNodes": 2, "maxNodes": 1}, "schedulerConfigs[0] (n): maxNodes (1) must be >= minNodes (2)"),
        ({"policies": [{}]}, "schedulerConfigs[0] (n): policies[0].name must not be empty"),
        (
            {"policies": [{"name": "warmup", "weight": -1}]},
            "schedulerConfigs[0] (n): policies[0] (warmup): weight must be >= 0 (omit for default of 1)",
        ),
        (
            {"policies": [{"name": "warmup", "arguments": {"minNodes": 1}}]},
            "policies[0] (warmup): minNodes|maxNodes is only supported by the node-limit policy",
        ),
        ({"policies": [{"name": "warm-up"}]}, "policies[0] (warm-up): there is no such policy; did you mean 'warmup'?"),
        ({"policies": [{"name": "node-limit", "arguments": {"maxNodes": 1.5}}]}, "maxNodes 1.5 is no number of nodes"),
        (
            {"policies": [{"name": "node-limit", "arguments": {"minNodes": 3, "maxNodes": 2}}]},
            "policies[0] (node-limit): maxNodes (2) must be >= minNodes (3)",
        ),
        ({"minNodes": "many"}, "sharding.yaml: Expected"),
        ({"policies": [{"name": "allocation-rate", "arguments": {"minCPUUtil": "x"}}]}, "minCPUUtil 'x' is no number"),
        *(
            (
                {"policies": [{"name": "allocation-rate", "arguments": {"minCPUUtil": least, "maxCPUUtil": most}}]},
                f"minCPUUtil {least:.2f} and maxCPUUtil {most:.2f} are no range within [0,1]",
            )
            for least, most in ((0.7, 0.6), (-0.1, 0.6), (0.7, 1.1))
        ),
        ({"name": "A_b"}, "name is no name of a NodeShard"),
    ],
)
def test_what_is_wrong_is_said(entry: dict[str, Any] | None, problem: str) -> None:
    entries = [] if entry is None else [{"name": "n", **entry} if entry else {}]
    with pytest.raises(ManifestError) as caught:
        taken(json.dumps({"schedulerConfigs": entries}))
    assert problem in str(caught.value)


def test_so_much_is_read_and_no_more() -> None:
    entries = [f"{{name: n{number}}}" for number in range(257)]
    assert len(taken(f"schedulerConfigs: [{', '.join(entries[1:])}]")[0].schedulers) == 256
    with pytest.raises(ManifestError, match="has 257 schedulerConfig entries; at most 256"):
        taken(f"schedulerConfigs: [{', '.join(entries)}]")
    text = "schedulerConfigs: [{name: a}]"
    assert taken(text.ljust(1 << 20))[1] == []
    with pytest.raises(ManifestError, match=r"sharding\.yaml has more than 1048576 characters"):
        taken(text.ljust((1 << 20) + 1))
    with pytest.raises(ManifestError, match=r"schedulerConfigs\[1\] \(a\): there is an entry of that name already"):
        taken("schedulerConfigs: [{name: a}, {name: a}]")


@pytest.mark.parametrize(
    ("given", "period", "problems"),
    [
        ("-3s", PERIOD, ["shardSyncPeriod: -3s is not positive; every 60 s as before"]),
        ("0s", PERIOD, ["shardSyncPeriod: 0s is not positive; every 60 s as before"]),
        (
            "soon",
            PERIOD,
            [f"shardSyncPeriod: {NO_DURATION}; every 60 s as before"],
        ),
        ("100ms", 1.0, []),
        ("90s", 90.0, []),
    ],
)
def test_a_period_is_a_duration_of_a_second_or_more(given: str, period: float, problems: list[str]) -> None:
    found, told = taken(f'{{schedulerConfigs: [{{name: a}}], shardSyncPeriod: "{given}"}}')
    assert (found.period, told) == (period, problems)


def test_flags_are_read_as_the_reference_reads_them() -> None:
    found = from_flags(["a:x:-inf:Infinity:true:1:2"], 0)
    assert found.period == 120
    assert found.schedulers[0].policies[0] == (AllocationRate(0.0, 1.0), 1.0)
    assert [from_flags(["a:x:0:1:false:0:0"], period).period for period in (5.0, 1.0, 0.5, -1.0)] == [5, 1, 0.5, 120]
    for text in ("inf", "+Inf", "infinity", "+infinity", "-inf", "-infinity"):
        rate = AllocationRate(0.0 if text.startswith("-") else 1.0, 1.0)
        assert from_flags([f"a:x:{text}:1:false:0:0"]).schedulers[0].policies == ((rate, 1.0),)
    for text in ("1", "t", "T", "true", "0", "f", "F", "FALSE"):
        policies = {policy for policy, _ in from_flags([f"a:x:0:1:{text}:0:0"]).schedulers[0].policies}
        assert (Warmup() in policies) == (text.lower() in ("1", "t", "true"))
    with pytest.raises(ManifestError, match="invalid scheduler config format: a:x:0:1:false:0:many: "):
        from_flags(["a:x:0:1:false:0:many"])
    with pytest.raises(ManifestError, match="invalid scheduler config format: a:b, expected 7 colon-separated parts"):
        from_flags(["a:b"])


@pytest.mark.parametrize(
    ("least", "most", "used", "accepted", "score"),
    [
        (0.0, 0.5, 0.0, True, 0.0), (0.0, 0.5, 0.25, True, 0.5), (0.0, 0.5, 0.5, True, 1.0),
        (0.0, 0.5, 0.504, True, 1.0), (0.0, 0.5, 0.506, False, None), (0.4, 1.0, 0.39, False, None),
        (0.4, 0.4, 0.4, True, 1.0), (0.5, 1.0, 0.75, True, 0.5), (0.0, 1.0, None, False, None),
    ],
)  # fmt: skip
def test_a_rate_takes_a_range_and_fuller_nodes_first(
    least: float, most: float, used: float | None, accepted: bool, score: float | None
) -> None:
    rate, node = AllocationRate(least, most), NodeUse("n", used, {})
    assert rate.accepts(node) is accepted
    assert score is None or rate.score(node) == score


# -- the division ----------------------------------------------------------------------------------------------------


def test_each_scheduler_chooses_in_turn_among_what_is_left() -> None:
    nodes = [NodeUse("n10", 0.2, {}), NodeUse("n9", 0.2, {}), NodeUse("hot", 0.9, {}), NodeUse("new", None, {})]
    nodes += [NodeUse("warm", 0.9, WARM)]
    first = Scheduler("first", ((AllocationRate(0, 0.6), 1.0), (NodeLimit(0, 1), 1.0)))
    second = Scheduler("second", ((AllocationRate(0, 1), 1.0), (Warmup(), 2.0), (NodeLimit(0, 2), 1.0)))
    last = Scheduler("last")
    assert divide([first, second, last], nodes) == {
        "first": ("n9",), "second": ("hot", "warm"), "last": ("n10", "new"),
    }  # fmt: skip


@pytest.mark.parametrize(
    ("weights", "first"),
    [((1.0, 2.0), "warm"), ((2.0, 1.0), "full"), ((0.0, 1.0), "warm"), ((1.0, 0.0), "full")],
)
def test_the_weight_of_a_policy_multiplies_its_score(weights: tuple[float, float], first: str) -> None:
    nodes = [NodeUse("full", 0.8, {}), NodeUse("warm", 0.0, WARM)]
    rate, warm = weights
    found = Scheduler("s", ((AllocationRate(0, 1), rate), (Warmup(), warm), (NodeLimit(0, 1), 5.0)))
    assert divide([found], nodes) == {"s": (first,)}


@pytest.mark.parametrize(("nodes", "told"), [(1, 1), (2, 0), (3, 0)])
def test_fewer_nodes_than_the_least_are_told(nodes: int, told: int) -> None:
    found = Scheduler("s", ((NodeLimit(2, 0), 1.0),))
    assert len(too_few([found], {"s": tuple(f"n{number}" for number in range(nodes))})) == told


@pytest.mark.parametrize(
    ("arguments", "policy"),
    [
        ({}, Warmup()),
        ({"warmupLabel": "hot"}, Warmup("hot", "true")),
        ({"warmupLabelValue": "yes"}, Warmup(value="yes")),
        ({"warmupLabelValue": "Yes"}, Warmup(value="Yes")),
        ({"warmupLabelValue": True}, Warmup(value="true")),
        ({"warmupLabel": "hot", "warmupLabelValue": 3}, Warmup("hot", "3")),
    ],
)
def test_a_warm_node_is_known_by_the_label_that_is_given(arguments: dict[str, Any], policy: Warmup) -> None:
    assert POLICIES["warmup"](arguments) == policy


@pytest.mark.parametrize(
    "entry",
    [
        {"name": "n" * LONGEST_NAME},
        {"minNodes": 2, "maxNodes": 0},
        {"minNodes": 2, "maxNodes": 2},
        {"policies": [{"name": "warmup", "weight": 0}]},
        {"policies": [{"name": "allocation-rate", "arguments": {"minCPUUtil": 0.5, "maxCPUUtil": 0.5}}]},
        {"policies": [{"name": "allocation-rate", "arguments": {"minCPUUtil": 0, "maxCPUUtil": 1}}]},
    ],
)
def test_what_lies_just_within_the_limits_is_taken(entry: dict[str, Any]) -> None:
    found, problems = taken(json.dumps({"schedulerConfigs": [{"name": "n", **entry}]}))
    assert (len(found.schedulers), problems) == (1, [])


@pytest.mark.parametrize("least", [1, 2])
def test_at_most_one_node_and_at_least_more_is_refused(least: int) -> None:
    policy = {"name": "node-limit", "arguments": {"minNodes": least, "maxNodes": 1}}
    text = json.dumps({"schedulerConfigs": [{"name": "n", "policies": [policy]}]})
    if least > 1:
        with pytest.raises(ManifestError, match=r"maxNodes \(1\) must be >= minNodes \(2\)"):
            taken(text)
    else:
        assert taken(text)[0].schedulers[0].policies == ((NodeLimit(1, 1), 1.0),)


policies = st.sampled_from(
    [AllocationRate(0.0, 0.5), AllocationRate(0.3, 1.0), Warmup(), NodeLimit(0, 2), NodeLimit(1, 0)]
)
uses = st.lists(
    st.builds(NodeUse, st.sampled_from([f"n{i}" for i in range(12)]), st.floats(0, 1), st.sampled_from([{}, WARM])),
    unique_by=lambda node: node.name,
)


@pytest.mark.law("no node is in two shards, and equal input is divided equally")
@given(uses, st.lists(st.lists(policies, max_size=3), max_size=4), st.randoms(use_true_random=False))
def test_no_node_is_in_two_shards(nodes: list[NodeUse], wishes: list[list[Any]], dice: Any) -> None:
    schedulers = [Scheduler(f"s{i}", tuple((one, 1.0) for one in each)) for i, each in enumerate(wishes)]
    found = divide(schedulers, nodes)
    named = [name for shard in found.values() for name in shard]
    assert len(named) == len(set(named))
    assert set(named) <= {node.name for node in nodes}
    shuffled = list(nodes)
    dice.shuffle(shuffled)
    assert divide(schedulers, shuffled) == found
    if any(not policies for policies in wishes):
        assert len(named) == len(nodes), "a scheduler that takes every node leaves none unserved"


@pytest.mark.parametrize(
    ("before", "after", "worth"),
    [
        ({"a": range(30)}, {"a": range(30)}, False),
        ({"a": range(30)}, {"a": range(2, 32)}, False),
        ({"a": range(30)}, {"a": range(3, 33)}, True),
        ({"a": range(30)}, {"a": range(29)}, True),
        ({"a": range(3)}, {"a": range(1, 4)}, True),
        ({"a": range(30)}, {"a": range(30), "b": ()}, True),
        ({"a": range(30), "b": range(29, 60)}, {"a": range(30), "b": [29, *range(30, 60)]}, True),
    ],
)
def test_small_exchanges_move_nothing(before: dict[str, Any], after: dict[str, Any], worth: bool) -> None:
    texts = [{name: [f"n{i}" for i in nodes] for name, nodes in shards.items()} for shards in (before, after)]
    assert is_worth_it(*texts) is worth


# -- the controller --------------------------------------------------------------------------------------------------


class Sharded(Cluster):
    """A cluster whose nodes are divided."""

    def __init__(self, text: str = "", nodes: int = 4) -> None:
        super().__init__(Settings(looks=frozenset({About.sharding})))
        self.sharding = self.manager.sharding
        for number in range(nodes):
            self.node(f"n{number}")
        if text:
            self.sharding.configure(CONFIG_MAP, {KEY: text})
        self.settle()

    def node(self, name: str, cpu: int = 4, notes: dict[str, str] | None = None, **labels: str) -> None:
        meta = {"name": name, "labels": labels, "annotations": notes or {}}
        self.sharding.seen_node(read_kind(SizedNode, {"metadata": meta, "status": {"capacity": {"cpu": cpu}}}))

    def is_asked(self) -> bool:
        """Whether the nodes are to be divided again."""
        return About.sharding in {work.about for work in self.manager.ready}

    def pod(self, name: str, on: str, cpu: str, phase: str = "Running") -> None:
        container = {"resources": {"requests": {"cpu": cpu}}}
        spec = {"nodeName": on, "containers": [container]}
        self.sharding.seen_pod(
            read_kind(PodOnNode, {"metadata": {"name": name}, "spec": spec, "status": {"phase": phase}})
        )

    def _tell(self, resource: str, value: dict[str, Any]) -> None:
        if resource == NODE_SHARDS:
            self.sharding.seen_shard(read_kind(NodeShard, value))

    def _untell(self, resource: str, key: tuple[str, str]) -> None:
        self.sharding.gone_shard(key)

    def shards(self) -> dict[str, list[str]]:
        found = self.objects.get(NODE_SHARDS, {})
        return {name: shard["spec"]["nodesDesired"] for (_, name), shard in sorted(found.items())}


TWO = "schedulerConfigs: [{name: a, maxNodes: 2}, {name: b}]"


def test_node_shards_follow_nodes_and_the_configuration_and_heal() -> None:
    cluster = Sharded(TWO)
    assert cluster.shards() == {"a": ["n0", "n1"], "b": ["n2", "n3"]}
    cluster.node("n4")
    cluster.settle()
    assert cluster.shards()["b"] == ["n2", "n3", "n4"]
    cluster.remove(NODE_SHARDS, "a", "")
    cluster.settle()
    assert cluster.shards()["a"] == ["n0", "n1"], "a lost one comes back"
    cluster.change(NODE_SHARDS, "a", {"spec": {"nodesDesired": ["n4"]}}, "")
    cluster.settle()
    assert cluster.shards()["a"] == ["n0", "n1"], "what others write is put right"
    cluster.sharding.configure(CONFIG_MAP, {KEY: "schedulerConfigs: [{name: b}]"})
    cluster.settle()
    assert cluster.shards() == {"b": ["n0", "n1", "n2", "n3", "n4"]}, "a scheduler's nodes go to those that are left"
    cluster.sharding.gone_node(("", "n0"))
    cluster.settle()
    assert cluster.shards() == {"b": ["n1", "n2", "n3", "n4"]}


@pytest.mark.parametrize("is_gone", [False, True])
def test_busy_nodes_change_hands_when_they_are_looked_at_again(is_gone: bool) -> None:
    cluster = Sharded(
        "{schedulerConfigs: [{name: idle, cpuUtilizationMax: 0.5}, {name: busy, cpuUtilizationMin: 0.5}]}", nodes=2
    )
    cluster.pod("half", "n0", "1500m")
    assert not cluster.is_asked(), "little has moved"
    cluster.pod("rest", "n0", "1500m")
    cluster.settle()
    assert cluster.shards() == {"idle": ["n1"], "busy": ["n0"]}
    if is_gone:
        cluster.sharding.gone_pod(("", "rest"))
    else:
        cluster.pod("rest", "n0", "1500m", "Succeeded")
    cluster.wait(cluster.now + PERIOD + 1)
    assert cluster.shards() == {"idle": ["n0", "n1"], "busy": []}


def test_news_of_nodes_that_no_policy_reads_divide_nothing_again() -> None:
    cluster = Sharded("{schedulerConfigs: [{name: a, policies: [{name: warmup, arguments: {warmupLabel: warm}}]}]}")
    cluster.node("n0", notes={"beats.example.com/at": "1"})
    cluster.node("n0", notes={"beats.example.com/at": "2"}, temperature="40")
    cluster.node("n0", cpu=5)
    assert not cluster.is_asked()
    for warm in ("true", "false", ""):
        cluster.node("n0", cpu=5, warm=warm)
        assert cluster.is_asked()
        cluster.settle()
    cluster.node("n0", cpu=8)
    assert cluster.is_asked(), "it has grown by more than half"


def test_no_division_follows_another_at_once_even_if_nothing_has_changed() -> None:
    few, many = Sharded(TWO), Sharded(TWO, nodes=2000)
    looks = [one.sharding.look(WHOLE, one.now) for one in (few, many)]
    assert [look.batches for look in looks] == [[], []]
    assert 0.1 < looks[0].rest < 0.3 < looks[1].rest < 1.0


def test_what_cannot_be_used_leaves_what_was_and_is_told_once() -> None:
    cluster = Sharded(TWO)
    for _ in range(2):
        cluster.sharding.configure(CONFIG_MAP, {KEY: ""})
        cluster.settle()
    assert [event.message for event in cluster.events] == [
        "the ConfigMap has no sharding.yaml, or an empty one; the configuration before stays"
    ]
    assert set(cluster.shards()) == {"a", "b"}


def test_a_configuration_that_is_gone_takes_its_problems_along_and_stays() -> None:
    cluster = Sharded(TWO)
    for _ in range(2):
        cluster.sharding.configure(CONFIG_MAP, {KEY: ""})
        cluster.settle()
        cluster.sharding.gone(("", CONFIG_MAP.name))
        cluster.sharding.again()
        cluster.settle()
    assert len(cluster.events) == 2, "each time that it is unusable that is told"
    assert cluster.shards() == {"a": ["n0", "n1"], "b": ["n2", "n3"]}


def test_nodes_are_divided_from_the_start_and_again_only_for_another_share() -> None:
    cluster = Sharded(nodes=0)
    manager = Cluster(Settings(looks=frozenset({About.sharding}))).manager
    assert About.sharding in {work.about for work in manager.ready}
    stored = cluster.objects[NODE_SHARDS]["", "volcano"]
    cluster.store(NODE_SHARDS, stored)
    assert not cluster.is_asked(), "it says what it said"


def test_an_unusable_configuration_at_start_leaves_what_flags_say() -> None:
    cluster = Sharded("schedulerConfigs: []")
    assert cluster.shards() == {"agent-scheduler": [], "volcano": ["n0", "n1", "n2", "n3"]}
    assert "what --scheduler-configs says counts" in cluster.events[0].message
    assert "agent-scheduler gets 0 nodes, fewer than minNodes 2" in cluster.events[1].message


def test_the_page_shows_every_policy() -> None:
    from pathlib import Path

    page = Path("docs/sharding.md").read_text()
    [text] = [part for part in page.split("```") if "sharding.yaml: |" in part]
    data = yaml_values.load(text.removeprefix("yaml"))["data"]  # type: ignore[index]
    problems: list[str] = []
    found = read(data, DEFAULTS, problems)
    assert not problems
    assert {type(policy) for scheduler in found.schedulers for policy, _ in scheduler.policies} == {
        AllocationRate, Warmup, NodeLimit,
    }  # fmt: skip
    assert all(name in page for name in POLICIES)
