"""Acceptance rows S3: predicates and nodeorder, from the objects to the binding."""

from __future__ import annotations

from typing import Any

import pytest

from stromboli.errors import PlacementError
from stromboli.framework.engine.placer import Engine
from stromboli.model.status import TaskStatus
from stromboli.narration.observe import Counting
from stromboli.plugins.nodeorder import NodeOrder
from stromboli.plugins.predicates import Predicates
from stromboli.testing.builders import Manifest, node, pod, pod_group
from stromboli.testing.plain.cycle import run_plain_cycle
from tests.acceptance.bench import GPU, NOW, Bench, acting, binds, conf, task_of

ZONE = "topology.kubernetes.io/zone"
GIB = 2**30

Y3 = """[{name: nodeorder, arguments: {leastrequested.weight: 1, mostrequested.weight: 0, nodeaffinity.weight: 2,
  podaffinity.weight: 2, balancedresource.weight: 1, tainttoleration.weight: 3, imagelocality.weight: 1,
  podtopologyspread.weight: 2}}]"""
Y4 = """predicate.NodeAffinityEnable: true, predicate.NodePortsEnable: true, predicate.TaintTolerationEnable: true,
      predicate.PodAffinityEnable: true, predicate.PodTopologySpreadEnable: true, predicate.CacheEnable: true"""
Y5 = f"""\
actions: "reclaim, allocate, backfill, preempt"
tiers:
- plugins: [{{name: priority}}, {{name: gang}}, {{name: conformance}}]
- plugins:
  - name: drf
  - name: predicates
    arguments: {{{Y4},
      predicate.NodeVolumeLimitsEnable: true, predicate.VolumeZoneEnable: true, predicate.GPUSharingEnable: true,
      predicate.GPUNumberEnable: true, predicate.ProportionalEnable: true, predicate.resources: nvidia.com/gpu,
      predicate.resources.nvidia.com/gpu.cpu: 4, predicate.resources.nvidia.com/gpu.memory: 8}}
  - name: proportion
  - name: nodeorder
"""
WEIGHTS = ("least_requested", "most_requested", "node_affinity", "pod_affinity", "balanced_resource",
           "taint_toleration", "image_locality", "pod_topology_spread")  # fmt: skip


def one_pod(*nodes: Manifest, **fields: Any) -> list[Manifest]:
    return [*nodes, pod_group("g"), pod("p", group="g", **fields)]


def placed(objects: list[Manifest], arguments: str = "", scores: str = "") -> dict[str, str]:
    """The nodes to which pods are bound with these arguments of predicates and nodeorder."""
    plugins = f"[{{name: predicates, arguments: {{{arguments}}}}}, {{name: nodeorder, arguments: {{{scores}}}}}]"
    return binds(Bench(objects, conf("gang", plugins)).cycle())


def refused(objects: list[Manifest]) -> list[str]:
    return [update.message for update in Bench(objects, conf("gang", "predicates")).cycle().pod_conditions]


# ---------------------------------------------------------------------- nodeorder


@pytest.mark.parametrize("text", [Y3, "[{name: nodeorder}]"], ids=["S3-01-written", "S3-01-empty"])
def test_weights_load(text: str) -> None:
    with Bench(one_pod(node("n1")), conf(text)).open() as session:
        plugin = session.plugins["nodeorder"]
        assert isinstance(plugin, NodeOrder)
        assert plugin.complaints == []
        assert [getattr(plugin, name) for name in WEIGHTS] == [1, 0, 2, 2, 1, 3, 1, 2]


OFF = ", ".join(f"{name}.weight: 0" for name in (
    "leastrequested", "mostrequested", "balancedresource", "nodeaffinity", "podaffinity", "tainttoleration",
    "imagelocality", "podtopologyspread",
))  # fmt: skip
HALF = pod("old", group="o", on="n1", cpu=2, memory="4Gi")


@pytest.mark.parametrize(
    ("weights", "where"),
    [
        pytest.param(OFF, "n1", id="S3-02-all-off-the-first-node"),
        pytest.param(OFF.replace("leastrequested.weight: 0", "leastrequested.weight: 1"), "n2", id="S3-04-least"),
        pytest.param(OFF.replace("mostrequested.weight: 0", "mostrequested.weight: 1"), "n1", id="S3-04-most"),
    ],
)  # fmt: skip
def test_strategies_have_their_weights(weights: str, where: str) -> None:
    assert placed([*one_pod(node("n1"), node("n2")), pod_group("o"), HALF], scores=weights) == {"p": where}


def test_S3_03_the_node_with_the_image_wins() -> None:
    objects = one_pod(node("n0"), node("n1", images={"app:1": 800 * 2**20}), node("n2"), container={"image": "app:1"})
    assert placed(objects) == {"p": "n1"}


def test_S3_06_preferred_node_affinity_counts_by_weight() -> None:
    terms = [
        {"weight": weight, "preference": {"matchExpressions": [{"key": "disk", "operator": "In", "values": [disk]}]}}
        for disk, weight in (("hdd", 20), ("ssd", 80))
    ]
    nodes = node("n0"), node("n1", labels={"disk": "hdd"}), node("n2", labels={"disk": "ssd"})
    affinity = {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": terms}}
    assert placed(one_pod(*nodes, affinity=affinity)) == {"p": "n2"}


def zones(*counts: int) -> list[Manifest]:
    """A zone of one node each, with so many pods of the application."""
    nodes = [node(f"n{i}", cpu=32, memory="64Gi", labels={ZONE: f"z{i}"}) for i in range(len(counts))]
    pods = [
        pod(f"web-{i}-{k}", group="web", on=f"n{i}", cpu=0, memory=0, labels={"app": "web"})
        for i, count in enumerate(counts)
        for k in range(count)
    ]
    return [*nodes, pod_group("web"), *pods]


def spread(when: str) -> dict[str, Any]:
    selector = {"matchLabels": {"app": "web"}}
    constraint = {"topologyKey": ZONE, "maxSkew": 1, "whenUnsatisfiable": when, "labelSelector": selector}
    return {"topologySpreadConstraints": [constraint], "labels": {"app": "web"}}


def near(kind: str, how: str = "required") -> dict[str, Any]:
    term: Any = {"topologyKey": ZONE, "labelSelector": {"matchLabels": {"app": "web"}}}
    if how == "preferred":
        term = {"weight": 100, "podAffinityTerm": term}
    return {"affinity": {kind: {f"{how}DuringSchedulingIgnoredDuringExecution": [term]}}}


@pytest.mark.parametrize(
    ("fields", "where"),
    [
        pytest.param(spread("ScheduleAnyway"), "n1", id="S3-07-spread"),
        pytest.param(near("podAffinity", "preferred"), "n0", id="S3-07-affinity"),
        pytest.param(near("podAntiAffinity", "preferred"), "n1", id="S3-07-anti-affinity"),
        pytest.param(spread("DoNotSchedule"), "n1", id="S3-31-hard-spread"),
    ],
)
def test_pods_in_zones_draw_or_repel(fields: dict[str, Any], where: str) -> None:
    assert placed([*zones(3, 1), pod_group("g"), pod("p", group="g", cpu=0, memory="1Ki", **fields)]) == {"p": where}


@pytest.mark.parametrize(("fields", "bound"), [(spread("DoNotSchedule"), {}), ({}, {"p": "n0"})])
def test_S3_31_pods_without_constraints_are_never_refused(fields: dict[str, Any], bound: dict[str, str]) -> None:
    first, second, *pods = zones(3, 1)
    second["spec"]["unschedulable"] = True
    assert placed([first, second, *pods, pod_group("g"), pod("p", group="g", **fields)]) == bound


def test_S3_08_fewer_untolerated_preferences_win() -> None:
    taint = {"key": "spot", "effect": "PreferNoSchedule"}
    assert placed(one_pod(node("n1", taints=[taint]), node("n2"))) == {"p": "n2"}


@pytest.mark.parametrize("pods", [1, 7, 60])
def test_S3_10_whole_vectors_give_what_one_node_after_another_gives(pods: int) -> None:
    """The reference scores with 16 workers; here one array operation must give the numbers of single steps."""
    nodes = [node(f"n{i}", cpu=4 + i % 3, memory=(8 + i % 5) * GIB) for i in range(40)]
    objects = [*nodes, pod_group("g"), *(pod(f"p{i}", group="g", cpu="300m", memory="700Mi") for i in range(pods))]
    bench = Bench(objects, conf("gang", "predicates nodeorder"))
    plain = run_plain_cycle(bench.snapshot(), bench.config, bench.registry, NOW)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Engine, "place_run", lambda *_: None)
        singly = binds(Bench(objects, conf("gang", "predicates nodeorder")).cycle())
    assert binds(bench.cycle()) == binds(plain) == singly
    assert len(singly) == pods


def test_S3_11_scores_are_told_by_strategy_and_in_total_at_their_levels() -> None:
    """One line a node and strategy at level 5, totals from level 4 on, and the same decision as without."""
    taint = {"key": "spot", "effect": "PreferNoSchedule"}
    objects = [
        node("n1", cpu=4, taints=[taint]), node("n2", cpu=4, images={"web:1": 500 * 2**20}), pod_group("g"),
        pod("p", group="g", cpu=1, memory="8Gi", container={"image": "web:1"}),
    ]  # fmt: skip
    text = conf("gang", "predicates nodeorder")
    lines = {level: Bench(objects, text).logged(level) for level in (3, 4, 5)}
    told = {level: [line for line in found if "core" in line] for level, found in lines.items()}
    assert told[3] == []
    strategies = ("NodeResourcesLeastAllocated", "NodeResourcesBalancedAllocation", "TaintToleration")
    assert [line.split(" is:")[0] for line in told[4]] == [
        *(f"{strategy} Score for task default/p" for strategy in strategies),
        "Nodeorder Total Score for task<default/p> on node n1",
        "Nodeorder Total Score for task<default/p> on node n2",
        "Batch Total Score for task default/p",
    ]
    with_strategies = "TaintToleration weight 3, raw score: "
    assert f"Node: n1, task<default/p> plugin {with_strategies}0, weighted score: 0" in told[5]
    assert f"Node: n2, task<default/p> plugin {with_strategies}100, weighted score: 300" in told[5]
    shown = [line for line in told[5] if line.startswith("Node: n1")]
    assert len(shown) == 4, "image, least, balanced and taints have a weight and something to say"
    weighted = {n: sum(int(x.rsplit(" ", 1)[1]) for x in told[5] if x.startswith(f"Node: {n}") and "Image" not in x)
                for n in ("n1", "n2")}  # fmt: skip
    assert f"Batch Total Score for task default/p is: map[n1:{weighted['n1']} n2:{weighted['n2']}]" in told[5]
    assert binds(Bench(objects, text).cycle()) == {"p": "n2"}


# ---------------------------------------------------------------------- predicates


def test_S3_18_the_six_switches_load() -> None:
    with Bench(one_pod(node("n1")), conf(f"[{{name: predicates, arguments: {{{Y4}}}}}]")).open() as session:
        plugin = session.plugins["predicates"]
        assert isinstance(plugin, Predicates)
        assert plugin.complaints == []
        assert plugin.cache_enable
        on = (plugin.node_affinity_enable, plugin.node_ports_enable, plugin.taint_toleration_enable,
              plugin.pod_affinity_enable, plugin.topology_spread_enable)  # fmt: skip
        assert all(on)


IDLE = [acting("reclaim", lambda _: None), acting("preempt", lambda _: None)]


def test_S3_19_S3_20_the_full_example_loads_and_warns_of_what_has_moved() -> None:
    bench = Bench([node("n1", cpu=8, memory="20Gi"), pod_group("g", phase="Pending"), pod("p", group="g")], Y5, *IDLE)
    assert bench.config.actions == ("reclaim", "allocate", "backfill", "preempt")
    assert [len(tier) for tier in bench.config.tiers] == [3, 4]
    with bench.open() as session:
        plugin = session.plugins["predicates"]
        assert isinstance(plugin, Predicates)
        assert plugin.rates == {f"{GPU}.cpu": 4.0, f"{GPU}.memory": 8.0}
        without_effect = {c.key: c.kind for c in plugin.complaints}
        names = ("GPUSharingEnable", "GPUNumberEnable")
        assert without_effect == {f"predicate.{name}": "tolerated" for name in names}
        assert all("accepted, but has no effect here: " in c.text for c in plugin.complaints)


def test_S3_20_a_weight_of_storage_without_a_shape_says_that_it_does_nothing() -> None:
    tier = "[{name: gang}, {name: predicates, arguments: {volumebinding.weight: 3}}]"
    with Bench([node("n1")], conf(tier)).open() as session:
        told = [(c.kind, c.key, c.text) for c in session.plugins["predicates"].complaints]
    (row,) = told
    assert row[:2] == ("tolerated", "volumebinding.weight")
    assert "storage is scored only with volumebinding.shape" in row[2]


@pytest.mark.parametrize(("written", "seconds"), [("30", 30), ("-1", 600)])
def test_S3_20_claims_have_the_seconds_that_are_written(written: str, seconds: int) -> None:
    tier = f"[{{name: gang}}, {{name: predicates, arguments: {{volumebinding.bindTimeoutSeconds: {written}}}}}]"
    bench = Bench([node("n1"), pod_group("g"), pod("p", group="g")], conf(tier))
    assert [bind.volume_seconds for bind in bench.cycle().binds] == [seconds]


def test_S3_21_without_enqueue_allocate_admits() -> None:
    bench = Bench([node("n1", cpu=8, memory="20Gi"), pod_group("g", phase="Pending"), pod("p", group="g")], Y5, *IDLE)
    assert binds(bench.cycle()) == {"p": "n1"}
    with_enqueue = conf("gang", "predicates", actions="enqueue, allocate")
    without = conf("gang", "predicates", actions="allocate")
    refusing = [node("n1"), pod_group("g", phase="Pending"), pod("p", group="g")]
    assert binds(Bench(refusing, with_enqueue).cycle()) == binds(Bench(refusing, without).cycle()) == {"p": "n1"}


PORT: dict[str, Any] = {"container": {"ports": [{"hostPort": 8080}]}}


@pytest.mark.parametrize(("arguments", "bound"), [("", 2), ("predicate.NodePortsEnable: false", 3)])
def test_S3_22_S3_27_a_port_is_given_once_a_node_unless_the_filter_is_off(arguments: str, bound: int) -> None:
    objects = [node("n1"), node("n2"), pod_group("g"), *(pod(f"p{i}", group="g", **PORT) for i in range(3))]
    assert len(placed(objects, arguments)) == bound


def test_S3_22_two_pods_with_one_port_go_to_two_nodes() -> None:
    objects = [node("n1"), node("n2"), pod_group("g", min_member=2), *(pod(f"p{i}", group="g", **PORT) for i in "12")]
    assert sorted(placed(objects).values()) == ["n1", "n2"]


def test_S3_23_a_node_with_all_its_pods_takes_no_more() -> None:
    old = [pod(f"o{i}", group="o", on="n1", cpu=0, memory=0) for i in range(2)]
    objects = [*one_pod(node("n1", pods=2), cpu=0, memory=0), pod_group("o"), *old]
    assert refused(objects) == ["0/1 nodes are unavailable: 1 node(s) pod number exceeded."]
    objects = [*one_pod(node("n1", pods=2), cpu="1m", memory=1), pod_group("o"), *old]
    assert refused(objects) == ["0/1 nodes are unavailable: 1 Insufficient pods."]


def test_S3_23_the_log_says_how_many_pods_a_full_node_has() -> None:
    old = [pod(f"o{i}", group="o", on="n1", cpu=0, memory=0) for i in range(2)]
    bench = Bench([*one_pod(node("n1", pods=2), cpu=0, memory=0), pod_group("o"), *old])
    line = "NodePodNumber predicates Task <default/p> on Node <n1> failed, allocatable <2>, existed <2>"
    assert line in bench.logged(4)


def test_S3_23_a_node_that_the_session_does_not_know_takes_no_pod() -> None:
    told = Counting()
    with Bench(one_pod(node("gone"))).open() as other, Bench(one_pod(node("n1"))).open(told) as session:
        refusal = session.ask.predicate(task_of(session, "p"), other.nodes["gone"])
        assert refusal is not None
        assert refusal.text == "node info not found"
        assert session.ask.predicate(task_of(session, "p"), session.nodes["n1"]) is None
    (fields,) = told.of("predicate_node_missing")
    assert fields["node"] == "gone"


def test_S3_23_S3_39_an_unknown_node_is_refused_told_and_changes_nothing() -> None:
    told = Counting()
    with Bench(one_pod(node("n1"))).open(told) as session:
        task = task_of(session, "p")
        with pytest.raises(PlacementError, match="failed to find node nowhere for task default/p"):
            session.statement().pipeline(task, "nowhere")
        assert told.of("node_missing") == [{"node": "nowhere", "session": session.uid, "step": "pipeline"}]
        assert (task.status, task.node_name) == (TaskStatus.Pending, "")
        assert session.nodes["n1"].pipelined.is_empty()


def test_S3_24_plain_refusals_add_up_and_final_ones_end_the_nodes_evaluation() -> None:
    busy = [*zones(2, 0), pod("port", group="web", on="n0", cpu=0, memory=0, **PORT)]
    fields = {**PORT, **spread("DoNotSchedule")}
    tainted = node("n1", labels={ZONE: "z1"}, taints=[{"key": "k", "effect": "NoSchedule"}])
    objects = [*(each for each in busy if each["metadata"]["name"] != "n1"), tainted, pod_group("g")]
    (message,) = refused([*objects, pod("p", group="g", **fields)])
    assert message == (
        "0/2 nodes are unavailable: 1 node(s) didn't have free ports for the requested pod ports, "
        "1 node(s) didn't match pod topology spread constraints, 1 node(s) had untolerated taint(s)."
    )


TAINT = {"key": "k", "value": "v", "effect": "NoExecute"}
BEARS = [{"key": "k", "operator": "Equal", "value": "v"}]
BEARS_CORDON = [{"key": "node.kubernetes.io/unschedulable", "operator": "Exists"}]


@pytest.mark.parametrize(
    ("fields", "tolerations", "fits"),
    [
        pytest.param({"unschedulable": True}, [], False, id="S3-25-cordoned"),
        pytest.param({"unschedulable": True}, BEARS_CORDON, True, id="S3-25-cordon-tolerated"),
        pytest.param({"taints": [TAINT]}, [], False, id="S3-25-NoExecute"),
        pytest.param({"taints": [{**TAINT, "effect": "NoSchedule"}]}, [], False, id="S3-25-NoSchedule"),
        pytest.param({"taints": [TAINT]}, BEARS, True, id="S3-25-tolerated"),
    ],
)
def test_cordons_and_taints(fields: dict[str, Any], tolerations: list[Any], fits: bool) -> None:
    assert placed(one_pod(node("n1", **fields), tolerations=tolerations)) == ({"p": "n1"} if fits else {})


REQUIRED = {"nodeSelectorTerms": [{"matchExpressions": [{"key": "disk", "operator": "In", "values": ["ssd"]}]}]}


@pytest.mark.parametrize(
    "fields",
    [
        pytest.param({"nodeSelector": {"disk": "ssd"}}, id="S3-26-selector"),
        pytest.param(
            {"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": REQUIRED}}},
            id="S3-26-affinity",
        ),
    ],
)
def test_node_selectors(fields: dict[str, Any]) -> None:
    assert placed(one_pod(node("n1"), node("n2", labels={"disk": "ssd"}), **fields)) == {"p": "n2"}
    text = "0/1 nodes are unavailable: 1 node(s) didn't match Pod's node affinity/selector."
    assert refused(one_pod(node("n1"), **fields)) == [text]


def test_S3_28_a_group_that_keeps_apart_fills_each_node_once() -> None:
    apart = {"labels": {"app": "web"}, **near("podAntiAffinity")}
    apart["affinity"]["podAntiAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"][0]["topologyKey"] = (
        "kubernetes.io/hostname"
    )
    objects = [node("n1"), node("n2"), pod_group("g"), *(pod(f"p{i}", group="g", **apart) for i in range(3))]
    found = placed(objects)
    assert sorted(found.values()) == ["n1", "n2"]


def test_S3_28_required_affinity_and_what_existing_pods_forbid() -> None:
    assert placed([*zones(0, 1), pod_group("g"), pod("p", group="g", **near("podAffinity"))]) == {"p": "n1"}
    hates = pod("hates", group="web", on="n0", cpu=0, memory=0, **near("podAntiAffinity"))
    objects = [*zones(0, 0), hates, pod_group("g"), pod("p", group="g", labels={"app": "web"})]
    assert placed(objects) == {"p": "n1"}


def test_S3_33_a_restartable_init_container_needs_its_feature(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Predicates, "sidecar_containers", False)
    objects = one_pod(node("n1"), initContainers=[{"name": "s", "restartPolicy": "Always"}])
    text = "pod has a restartable init container and the SidecarContainers feature is disabled"
    assert refused(objects) == [f"0/1 nodes are unavailable: 1 {text}."]


PROPORTIONAL = """predicate.ProportionalEnable: true, predicate.resources: nvidia.com/gpu,
  predicate.resources.nvidia.com/gpu.cpu: 4, predicate.resources.nvidia.com/gpu.memory: 8"""


@pytest.mark.parametrize(
    ("fields", "fits"),
    [
        pytest.param({"cpu": 3, "memory": "4G"}, True, id="S3-35-3-cpu"),
        pytest.param({"cpu": 5, "memory": "4G"}, False, id="S3-35-5-cpu"),
        pytest.param({"cpu": 5, "memory": "4G", "requests": {GPU: 1}}, True, id="S3-35-gpu-pod"),
    ],
)
def test_idle_devices_keep_cpu_and_memory(fields: dict[str, Any], fits: bool) -> None:
    objects = one_pod(node("n1", cpu=8, memory="20G", resources={GPU: 1}), **fields)
    assert placed(objects, PROPORTIONAL) == ({"p": "n1"} if fits else {})


def test_S3_34_rates_are_1_where_missing_and_where_negative() -> None:
    text = PROPORTIONAL.replace("gpu.cpu: 4", "gpu.cpu: -3").replace(
        ", predicate.resources.nvidia.com/gpu.memory: 8", ""
    )
    for cpu, fits in ((7, True), ("7500m", False)):
        objects = one_pod(node("n1", cpu=8, memory="20G", resources={GPU: 1}), cpu=cpu, memory="1G")
        assert placed(objects, text) == ({"p": "n1"} if fits else {})


def test_S3_37_a_port_taken_in_the_cycle_is_taken_and_after_a_discard_free() -> None:
    objects = [node("n1"), pod_group("g"), pod("p", group="g", **PORT), pod("q", group="g", **PORT)]
    with Bench(objects, conf("gang", "predicates")).open() as session:
        first, second = task_of(session, "p"), task_of(session, "q")
        assert session.placer.place(second) is not None
        with session.statement() as statement:
            statement.allocate(first, session.nodes["n1"])
            assert session.placer.place(second) is None
        assert session.placer.place(second) is not None


def test_S3_09_a_failing_strategy_warns_and_names_node_and_score() -> None:
    term = {"weight": -5, "preference": {"matchExpressions": [{"key": "zone", "operator": "Exists"}]}}
    affinity = {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [term]}}
    objects = [*(node(name, labels={"zone": "a"}) for name in ("n1", "n2")), pod_group("g")]
    bench = Bench([*objects, pod("p", group="g", affinity=affinity)], conf("gang", "predicates nodeorder"))
    lines = bench.logged(0)
    returned = [line for line in lines if line.startswith("Error in Calculating batch Priority for the node, err ")]
    assert returned
    assert all("NodeAffinity returns an invalid score" in line for line in returned)
    assert binds(bench.plan) == {}
    warning = "Node: n1, <NodeAffinity> Priority Failed because of Error: "
    found = [line for line in lines if line.startswith(warning)]
    assert found
    assert "NodeAffinity returns an invalid score" in found[0]
