"""resource-strategy-fit: strategies by resource and by pod, scarce resources, proportions."""

from __future__ import annotations

import json
from typing import Any

import pytest

from stromboli.model.table import Node
from stromboli.plugins.resource_strategy_fit import ResourceStrategyFit, strategy
from stromboli.plugins.resource_strategy_fit.strategy import LONGEST, TYPE, WEIGHT
from stromboli.testing.builders import Manifest, node, pod, pod_group
from stromboli.testing.check_plugin import check_plugin
from tests.acceptance.bench import Bench, binds, conf, messages, task_of

GPU, RDMA = "nvidia.com/gpu", "rdma/hca"
PACKED = {GPU: {"type": "MostAllocated", "weight": 2}, "cpu": {"type": "LeastAllocated", "weight": 1}}


def configured(**arguments: object) -> str:
    plugin = f"{{name: resource-strategy-fit, arguments: {arguments}}}".replace("True", "true").replace(
        "False", "false"
    )
    return conf("gang", f"[{{name: predicates}}, {plugin}]")


def scores(objects: list[Manifest], **arguments: object) -> list[float]:
    """Scores of the nodes for pod ``p`` of PodGroup ``g``, in both forms."""
    with Bench([*objects, pod_group("g")], configured(**arguments)).open() as session:
        plugin = session.plugins["resource-strategy-fit"]
        assert isinstance(plugin, ResourceStrategyFit)
        task = task_of(session, "p")
        found: list[float] = plugin.score(task, session.table.view()).tolist()
        assert found == [plugin.score_of_node(task, Node(session.table, row)) for row in range(len(found))]
        return found


def asking(cpu: int = 4, gpus: int = 2, **more: Any) -> Manifest:
    return pod("p", group="g", cpu=cpu, requests={GPU: gpus} if gpus else {}, **more)


USED = [
    node("n", cpu=16, memory="64Gi", resources={GPU: 8}),
    pod("used", on="n", cpu=4, memory="16Gi", requests={GPU: 2}),
]
SPREAD = {"type": "LeastAllocated"}
LONG = f'{{"{GPU}": 1}}' + " " * LONGEST
HUGE = f'{{"{GPU}": {"9" * 400}}}'
OWN = {TYPE: "MostAllocated", WEIGHT: f'{{"{GPU}": 1}}'}


@pytest.mark.parametrize(
    ("arguments", "wanted", "score"),
    [
        pytest.param({"resources": PACKED}, asking(), (2 * 0.5 + 0.5) / 3 * 1000, id="500"),
        pytest.param({}, asking(memory="16Gi"), 500, id="cpu-and-memory-spread-unless-stated"),
        pytest.param({"resources": PACKED, "resourceStrategyFitWeight": 1}, asking(), 50, id="times-weight"),
        pytest.param({"resources": PACKED, "resourceStrategyFitWeight": -3}, asking(), 500, id="negative-counts-10"),
        pytest.param({"resources": {"cpu": {"type": "x", "weight": -2}}}, asking(), 500, id="bad-type-and-weight"),
        pytest.param({"resources": PACKED}, asking(gpus=7), 0, id="does-not-fit"),
        pytest.param({"resources": PACKED}, asking(gpus=0), 500, id="what-is-not-asked-for-does-not-count"),
        pytest.param({"resources": {"nvidia.com/*": PACKED[GPU]}}, asking(), 500, id="pattern"),
        pytest.param({"resources": {"n*": SPREAD, "nvidia.com/*": PACKED[GPU]}}, asking(gpus=4), 750, id="longest"),
        pytest.param({"resources": {GPU: SPREAD, "nvidia.com/*": PACKED[GPU]}}, asking(gpus=4), 250, id="exact"),
        pytest.param({"resources": {"*": PACKED[GPU], "n*a/gpu": PACKED[GPU]}}, asking(), 0, id="bad-patterns"),
        pytest.param({"resources": PACKED}, asking(annotations=OWN), 500, id="of-its-own"),
        pytest.param({"resources": PACKED}, asking(annotations={**OWN, WEIGHT: f'{{"cpu": 0, "{GPU}": 1}}'}), 500,
                     id="own-without-weight-of-one"),
        pytest.param({"resources": {"cpu": {"type": "MostAllocated", "weight": 1}, GPU: {"type": "MostAllocated",
                     "weight": 3}}}, asking(gpus=1), (0.5 + 3 * 0.375) / 4 * 1000, id="weight-1"),
        pytest.param({"resources": PACKED}, asking(annotations={TYPE: "MostAllocated"}), 0, id="own-without-weights"),
        pytest.param({"resources": PACKED}, asking(annotations={**OWN, WEIGHT: "{"}), 0, id="own-unreadable"),
        pytest.param({"resources": PACKED}, asking(annotations={**OWN, WEIGHT: LONG}), 0, id="own-too-long"),
        pytest.param({"resources": PACKED}, asking(annotations={**OWN, WEIGHT: HUGE}), 0, id="own-beyond-64-bits"),
        pytest.param({"resources": PACKED}, asking(annotations={**OWN, TYPE: "x"}), 0, id="own-type-unknown"),
    ],
)  # fmt: skip
def test_strategies(arguments, wanted, score):
    assert scores([*USED, wanted], **arguments) == [pytest.approx(score)]


@pytest.mark.parametrize("third", [{}, {TYPE: "LeastAllocated", WEIGHT: '{"cpu": 1}'}])
def test_pods_that_are_alike_but_for_their_strategies_go_each_its_own_way(third):
    """n1 is half full; whether any pod is without a strategy of its own does not matter."""
    used = pod("used", on="n1", cpu=8, annotations={TYPE: "MostAllocated"}, group="u")
    ways = {
        "least": {TYPE: "LeastAllocated", WEIGHT: '{"cpu": 1}'},
        "most": {TYPE: "MostAllocated", WEIGHT: '{"cpu": 1}'},
    }
    pods = [pod(name, group=name, annotations=own) for name, own in {**ways, "third": third}.items()]
    nodes = [node(f"n{number}", cpu=16) for number in (1, 2)]
    plan = Bench([*nodes, pod_group("u", annotations={}), used, *pods], configured()).cycle()
    assert binds(plan) == {"least": "n2", "most": "n1", "third": "n2"}


def test_scarce_resources_are_avoided():
    """GPUs count 1, RDMA 3: a node with GPUs alone 750, with both 0, with none 1000; not offering what is asked 0."""
    nodes = [node("both", resources={GPU: 1, RDMA: 1}), node("gpu", resources={GPU: 1}), node("none")]
    sra = {"enable": True, "resources": f" {GPU}, {RDMA} ,", "weight": 10, "resourceWeight": {RDMA: 3, GPU: -1}}
    both = {"resourceStrategyFitWeight": 0, "sra": sra}
    assert scores([*nodes, asking(1, 0)], **both) == [0, 750, 1000]
    assert scores([*nodes, asking(1, 1)], **both) == [0, 750, 0]
    assert scores([*nodes, asking(1, 0)], **{**both, "sra": {**sra, "resources": ""}}) == [0, 0, 0]


@pytest.mark.parametrize(
    ("weights", "found"),
    [
        ({}, [500.0, 500.0]),
        ({RDMA: 0}, [0.0, 1000.0]),
        ({RDMA: True}, [500.0, 500.0]),
        ({RDMA: "3"}, [500.0, 500.0]),
        ({RDMA: 1.9}, [500.0, 500.0]),
        ({RDMA: -1}, [500.0, 500.0]),
        ({RDMA: 3, "unknown": 9}, [750.0, 250.0]),
    ],
)
def test_a_scarce_resource_counts_1_unless_a_number_says_more(weights, found):
    sra = {"enable": True, "resources": f"{GPU},{RDMA}", "weight": 10, "resourceWeight": weights}
    nodes = [node("gpu", resources={GPU: 1}), node("rdma", resources={RDMA: 1})]
    assert scores([*nodes, asking(1, 0)], resourceStrategyFitWeight=0, sra=sra) == found


def test_resources_that_no_node_has_are_scarce_everywhere():
    sra = {"enable": True, "resources": f"{GPU},{RDMA}", "weight": 10}
    wanted = pod("p", group="g", cpu=1, requests={"example.com/other": 1})
    assert scores([node("n"), asking(1, 0)], resourceStrategyFitWeight=0, sra=sra) == [1000.0]
    assert scores([node("n"), wanted], resourceStrategyFitWeight=0, sra=sra) == [0.0]


@pytest.mark.parametrize(
    ("arguments", "names"),
    [
        ({}, {"node_order.vector"}),
        ({"resourceStrategyFitWeight": 0, "sra": {"weight": 1}}, set()),
        ({"resourceStrategyFitWeight": 0, "sra": {"enable": True}}, set()),
        ({"resourceStrategyFitWeight": 0, "sra": {"enable": True, "weight": -1}}, set()),
        ({"proportional": {"resources": GPU}}, {"node_order.vector"}),
        ({"resourceStrategyFitWeight": 0}, set()),
        ({"resourceStrategyFitWeight": 0, "sra": {"enable": False, "weight": 1}}, set()),
        ({"resourceStrategyFitWeight": 0, "sra": {"enable": True, "weight": 1}}, {"node_order.vector"}),
        ({"proportional": {"enable": True, "resources": GPU}}, {"node_order.vector", "predicate.vector"}),
        ({"proportional": {"enable": True, "resources": ""}}, {"node_order.vector"}),
    ],
)
def test_only_what_is_on_is_asked(arguments, names):
    with Bench([node("n")], configured(**arguments)).open() as session:
        plugin = session.plugins["resource-strategy-fit"]
        assert {hook.name for hook, _ in plugin.hooks()} == names


RATES = {"enable": True, "resources": GPU, "resourceProportion": {f"{GPU}.cpu": 4, f"{GPU}.memory": 8}}


@pytest.mark.parametrize(
    ("cpu", "gpus", "refused"),
    [(3, 0, False), (5, 0, True), (5, 1, False)],
    ids=["keeps-5-for-1", "keeps-3-for-1", "asks-for-a-device"],
)
def test_devices_stay_usable(cpu, gpus, refused):
    """S3-34 and the worked example: 8 cores and 20 GB idle beside one GPU, rates 4 and 8."""
    wanted = pod("p", group="g", cpu=cpu, memory="4G", requests={GPU: gpus} if gpus else {})
    objects = [node("n", cpu=8, memory="20G", resources={GPU: 1}), pod_group("g"), wanted]
    plan = Bench(objects, configured(proportional=RATES)).cycle()
    assert bool(binds(plan)) is not refused
    told = any(f"proportional of resource {GPU} check failed" in text for text in messages(plan, "default/g"))
    assert told is refused


def test_the_first_resource_that_is_kept_too_little_of_is_named():
    """Nothing is to be kept for the first: the second names the reason, which evicting cannot change."""
    rates = {f"{RDMA}.cpu": 4, f"{RDMA}.memory": 1}
    proportional = {"enable": True, "resources": f"{GPU},{RDMA}", "resourceProportion": rates}
    objects = [node("n", cpu=8, memory="20G", resources={GPU: 1, RDMA: 1}), pod_group("g"), asking(5, 0)]
    with Bench(objects, configured(proportional=proportional)).open() as session:
        plugin = session.plugins["resource-strategy-fit"]
        assert isinstance(plugin, ResourceStrategyFit)
        masks = plugin.keeps_devices_usable(task_of(session, "p"), session.table.view())
        assert masks is not None
        assert masks.tolist() == [2]
        reason = plugin.refusal(task_of(session, "p"), Node(session.table, 0))
        assert reason is not None
        assert (str(reason), reason.resolvable) == (f"proportional of resource {RDMA} check failed", False)
        assert plugin.refusal(task_of(session, "p"), Node(session.table, 0)) == reason


def test_only_so_many_resources_are_looked_at():
    names = ",".join(f"example.com/{number}" for number in range(70))
    with Bench([node("n")], configured(proportional={"enable": True, "resources": names})).open() as session:
        plugin = session.plugins["resource-strategy-fit"]
        [hook] = [hook for hook, _ in plugin.hooks() if hook.point.name == "predicate"]
        assert len(hook.reasons) == 64


def test_a_pod_that_asks_for_a_device_is_refused_nowhere():
    with Bench(
        [node("n", resources={GPU: 1}), pod_group("g"), asking()], configured(proportional=RATES)
    ).open() as session:
        plugin = session.plugins["resource-strategy-fit"]
        assert isinstance(plugin, ResourceStrategyFit)
        assert plugin.refusal(task_of(session, "p"), Node(session.table, 0)) is None


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("cpu", ""),
        ("nvidia.com/*", ""),
        ("n*", ""),
        ("*", "a * alone stands for no resource; write a pattern such as nvidia.com/*"),
        ("**", "**: a pattern has one * at its end"),
        ("n*a", "n*a: a pattern has one * at its end"),
        ("*a", "*a: a pattern has one * at its end"),
    ],
)
def test_patterns(name, problem):
    assert strategy.pattern_problem(name) == problem
    assert (name in strategy.read({name: SPREAD})) is not bool(problem)


@pytest.mark.parametrize(
    ("entry", "found"),
    [
        ({"type": "MostAllocated", "weight": 2}, ("MostAllocated", 2)),
        ({"type": "LeastAllocated", "weight": 1}, ("LeastAllocated", 1)),
        ({"type": "other", "weight": 3}, ("LeastAllocated", 3)),
        *(({"weight": weight}, ("LeastAllocated", 1)) for weight in (0, -1, True, "2", 2.5, None)),
        ("MostAllocated", ("LeastAllocated", 1)),
    ],
)
def test_how_a_strategy_is_read(entry, found):
    assert strategy.read({"cpu": entry}) == {"cpu": found}


def test_cpu_and_memory_count_alike_unless_stated():
    assert strategy.read({}) == {"cpu": ("LeastAllocated", 1), "memory": ("LeastAllocated", 1)}


@pytest.mark.parametrize(
    ("name", "found"),
    [("a/bc", 3), ("a/bd", 2), ("a/", 2), ("ab", 1), ("b", None), ("", None)],
)
def test_the_longest_pattern_decides(name, found):
    strategies = {
        key: strategy.Strategy(strategy.LEAST, weight) for key, weight in (("a*", 1), ("a/*", 2), ("a/bc", 3))
    }
    chosen = strategy.of_resource(name, strategies)
    assert (chosen and chosen.weight) == found


def padded(length):
    """Weights of so many characters."""
    return '{"cpu": 7}'.ljust(length)


@pytest.mark.parametrize(
    ("written", "found"),
    [
        (padded(0), {"cpu": 7}),
        (padded(16384), {"cpu": 7}),
        (padded(16385), {}),
        ('{"cpu": 9223372036854775807, "memory": -9223372036854775808}', {"cpu": 2**63 - 1, "memory": -(2**63)}),
        ('{"cpu": 9223372036854775808}', {}),
        ('{"cpu": -9223372036854775809}', {}),
        ("null", {}),
        ("", {}),
        ("[]", {}),
    ],
)
def test_weights_of_a_pods_own(written, found):
    own = strategy.of_pod({TYPE: "x", WEIGHT: written})
    assert own == {name: ("x", weight) for name, weight in found.items()}
    assert strategy.of_pod({WEIGHT: written}) is None


NODES = [
    node("n", cpu=16, memory="64Gi", resources={GPU: 8}),
    node("without", cpu=16, memory="64Gi"),
    pod("used", on="n", cpu=4, memory="16Gi", requests={GPU: 2}),
]
GPU_ONLY = {GPU: {"type": "MostAllocated", "weight": 1}}


@pytest.mark.parametrize(
    ("resources", "wanted", "found"),
    [
        (GPU_ONLY, asking(gpus=6), [1000, 0]),
        (GPU_ONLY, asking(gpus=7), [0, 0]),
        (GPU_ONLY | {"cpu": {"type": "MostAllocated", "weight": 1}}, asking(12, 2), [750, 375]),
        (GPU_ONLY | {"cpu": {"type": "MostAllocated", "weight": 1}}, asking(13, 2), [0, 406.25]),
        ({"example.com/none": SPREAD, "memory": SPREAD},
         pod("p", group="g", memory="16Gi", requests={"example.com/none": 1}), [500, 750]),
    ],
)  # fmt: skip
def test_what_a_node_does_not_offer_counts_by_its_weight_alone(resources, wanted, found):
    assert scores([*NODES, wanted], resources=resources) == [pytest.approx(each) for each in found]


@pytest.mark.parametrize(
    ("own", "found"),
    [
        ({GPU: 0, "cpu": 1}, 500),
        ({GPU: 0}, 0),
        ({"example.com/none": 1, "cpu": 1}, 500),
        ({"cpu": 1, GPU: 3}, 500),
        ({"cpu": -1, GPU: 2}, 500),
        ({"nvidia.com/*": 1}, 0),
    ],
)
def test_weights_of_a_pod_of_its_own_count_by_name(own, found):
    notes = {TYPE: "MostAllocated", WEIGHT: json.dumps(own)}
    assert scores([*USED, asking(annotations=notes)]) == [pytest.approx(found)]


def test_nodes_without_the_device_have_nothing_to_keep():
    objects = [node("n", cpu=4, memory="4G"), pod_group("g"), pod("p", group="g", cpu=6)]
    plan = Bench(objects, configured(proportional=RATES)).cycle()
    assert any("Insufficient cpu" in text for text in messages(plan, "default/g"))


def test_mistakes_are_complained_of():
    plugin = ResourceStrategyFit({"resources": {"*": {}}, "resourceStrategyFitWeight": -1, "sra": {"weight": "x"}})
    assert {complaint.key for complaint in plugin.complaints} == {
        "resources",
        "resourceStrategyFitWeight",
        "sra.weight",
    }


@pytest.mark.parametrize(
    "arguments",
    [{}, {"resources": PACKED, "proportional": RATES, "sra": {"enable": True, "resources": GPU, "weight": 5}}],
    ids=["plain", "everything"],
)
def test_it_keeps_its_promises(arguments):
    check_plugin(ResourceStrategyFit, arguments, examples=10)
