from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from stromboli.filters.pods_on_nodes import Event
from stromboli.framework.books.cycle_state import CycleState
from stromboli.framework.config.compat import Compat
from stromboli.model.names import TEMPLATE_UID
from stromboli.model.spec import Taint
from stromboli.model.table import Node
from stromboli.plugin import Reason, StatusCode
from stromboli.plugins.predicates import Predicates
from stromboli.testing.builders import resources_of
from tests.filters.builders import node, put, session, spec, table, task

GPU, FPGA = "nvidia.com/gpu", "xilinx.com/fpga"
CORDONED = "node(s) were unschedulable"
AFFINITY = "node(s) didn't match Pod's node affinity/selector"
TAINTED = "node(s) had untolerated taint(s)"
PORTS = "node(s) didn't have free ports for the requested pod ports"
CACHED = "plugin equivalence cache predicates failed"
HTTP: dict[str, Any] = {"containers": [{"name": "c", "ports": [{"hostPort": 8080}]}]}


def opened(where, arguments=None, pods=(), pending=(), **services):
    plugin = Predicates(arguments or {})
    plugin.on_session_open(session(where, pods, pending, **services))
    return plugin


def refusals(plugin, pod, where):
    """What is said of each row: reasons in order, up to the first that no eviction cures."""
    said: list[list[Reason]] = [[] for _ in range(len(where))]
    going = [True] * len(where)
    for hook, function in plugin.hooks():
        if hook.form != "vector":
            continue
        answer = function(pod, where.view())
        if answer is None:
            continue
        masks = np.where(answer, 0, 1) if answer.dtype == bool else answer
        for row, mask in enumerate(masks.tolist()):
            bits = [reason for bit, reason in enumerate(hook.reasons) if mask >> bit & 1]
            if hook.row:
                one = getattr(plugin, hook.row)(pod, Node(where, row))
                assert ([] if one is None else [one]) == bits
            said[row] += bits if going[row] else []
            going[row] &= all(reason.code is StatusCode.UNSCHEDULABLE for reason in bits)
    return [[str(reason) for reason in each] for each in said]


@pytest.mark.parametrize(
    ("fields", "spec_fields", "expected"),
    [
        pytest.param({}, {}, [], id="fits"),
        pytest.param({"unschedulable": True}, {}, [CORDONED], id="S3-25-cordoned"),
        pytest.param(
            {"unschedulable": True},
            {"tolerations": [{"key": "node.kubernetes.io/unschedulable", "operator": "Exists"}]},
            [],
            id="S3-25-tolerated",
        ),
        pytest.param({"taints": (Taint("x", "", "NoSchedule"),)}, {}, [TAINTED], id="S3-25-NoSchedule"),
        pytest.param({"taints": (Taint("x", "", "NoExecute"),)}, {}, [TAINTED], id="S3-25-NoExecute"),
        pytest.param({"taints": (Taint("x", "", "PreferNoSchedule"),)}, {}, [], id="S3-25-preference"),
        pytest.param(
            {"taints": (Taint("x", "", "NoSchedule"),)},
            {"tolerations": [{"key": "x", "operator": "Exists"}]},
            [],
            id="S3-25-toleration",
        ),
        pytest.param({}, {"nodeSelector": {"disk": "ssd"}}, [AFFINITY], id="S3-26"),
        pytest.param({"labels": {"disk": "ssd"}}, {"nodeSelector": {"disk": "ssd"}}, [], id="S3-26-match"),
        pytest.param(
            {"unschedulable": True, "taints": (Taint("x", "", "NoSchedule"),)},
            {"nodeSelector": {"disk": "ssd"}},
            [CORDONED],
            id="S3-24-first-abort-ends",
        ),
    ],
)
def test_stable_filters(fields, spec_fields, expected):
    where = table([node(**fields)])
    assert refusals(opened(where), task(spec(**spec_fields)), where) == [expected]


def test_full_nodes():  # S3-23
    where = table([node(offer={"pods": 2}), node("n2", offer={"pods": 3})])
    for row in range(2):
        put(where, row, task(), task())
    assert refusals(opened(where), task(), where) == [["node(s) pod number exceeded"], []]
    hypothetical = where.view().after(np.array([0, 1]), np.array([0, 0, 1]), np.array([0, 0]))
    assert opened(where).pod_number(task(), hypothetical).tolist() == [False, False]


def test_plain_refusals_add_up_and_the_rest_is_not_asked():  # S3-24
    full = node(offer={"pods": 1}), node("n2", offer={"pods": 1}, taints=(Taint("x", "", "NoSchedule"),))
    where = table(list(full))
    holder = task(spec(**HTTP))
    for row in range(2):
        put(where, row, holder)
    plugin = opened(where, pods=[(holder, 0), (holder, 1)])
    number = "node(s) pod number exceeded"
    assert refusals(plugin, task(spec(**HTTP)), where) == [[number, PORTS], [number, TAINTED]]


def test_host_ports_follow_placements():  # S3-27
    where = table([node("n1"), node("n2")])
    log: list[Event] = []
    first, second = task(spec(**HTTP)), task(spec(**HTTP))
    plugin = opened(where, log=log)
    assert refusals(plugin, first, where) == [[], []]
    log.append((first, 0, 1))
    assert refusals(plugin, second, where) == [[PORTS], []]
    log.append((first, 0, -1))
    assert refusals(plugin, second, where) == [[], []]


def pod_of_every_kind():
    selector = {"labelSelector": {"matchLabels": {"app": "web"}}}
    term = {"topologyKey": "zone", **selector}
    return task(
        spec(
            affinity={"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}},
            topologySpreadConstraints=[{**term, "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule"}],
        ),
        labels={"app": "web"},
    )


def test_other_pods():  # S3-28, S3-31
    def zoned(name, zone):
        return node(name, labels={"zone": zone})

    log: list[Event] = []
    where = table([zoned("a1", "a"), zoned("a2", "a"), zoned("b", "b"), node("x")])
    first, second = pod_of_every_kind(), pod_of_every_kind()
    plugin = opened(where, pending=[first, second], log=log)
    missing = "node(s) didn't match pod topology spread constraints (missing required label)"
    assert refusals(plugin, first, where) == [[], [], [], [missing]]
    log.append((first, 0, 1))
    apart, skewed = (
        "node(s) didn't match pod anti-affinity rules",
        "node(s) didn't match pod topology spread constraints",
    )
    assert refusals(plugin, second, where) == [[apart, skewed], [apart, skewed], [], [missing]]
    existing = "node(s) didn't satisfy existing pods anti-affinity rules"
    plain = task(spec(), labels={"app": "web"})
    assert refusals(plugin, plain, where) == [[existing], [existing], [], []]


def test_trying_what_holds_without_a_pod():
    where, there, pod = table([node("a", labels={"zone": "a"})]), pod_of_every_kind(), pod_of_every_kind()
    plugin, state, here = opened(where, pods=[(there, 0)], pending=[pod]), CycleState(), Node(where, 0)
    said = "failed to filter pod on node a: node(s) didn't match pod anti-affinity rules"
    assert str(plugin.simulate_fit(state, pod, here)) == said
    plugin.simulate_remove(state, pod, there, here)
    assert plugin.simulate_fit(state, pod, here) is None
    twin = state.clone()
    plugin.simulate_add(twin, pod, there, here)
    assert str(plugin.simulate_fit(twin, pod, here)) == said
    assert plugin.simulate_fit(state, pod, here) is None
    assert plugin.simulate_fit(state, task(), here) is None


@pytest.mark.parametrize("compat", [False, True])
def test_terms_of_pods_placed_in_the_session(compat):
    """The reference looks only at nodes that held a pod with required anti-affinity when the session opened."""
    where, held = table([node(name, labels={"zone": name}) for name in "ab"]), pod_of_every_kind()
    placed, plain = pod_of_every_kind(), task(spec(), labels={"app": "web"})
    log: list[Event] = [(placed, 1, 1)]
    plugin = opened(where, pods=[(held, 0)], pending=[placed], log=log, compat=Compat(compat))
    existing = "node(s) didn't satisfy existing pods anti-affinity rules"
    assert refusals(plugin, plain, where) == [[existing], [] if compat else [existing]]
    log += [(held, 0, -1), (placed, 1, -1), (placed, 0, 1)]
    assert refusals(plugin, plain, where) == [[existing], []]


def test_a_pod_affinity_that_nothing_meets_is_final():  # S3-29
    term = {"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": "web"}}}
    pod = task(spec(affinity={"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}))
    plugin = opened(table([node()]), pending=[pod])
    assert refusals(plugin, pod, table([node()])) == [["node(s) didn't match pod affinity rules"]]


@pytest.mark.parametrize(
    ("switch", "hook"),
    [
        ("predicate.NodeAffinityEnable", "node_affinity"),
        ("predicate.NodePortsEnable", "ports"),
        ("predicate.TaintTolerationEnable", "taint_toleration"),
        ("predicate.PodAffinityEnable", "pod_affinity"),
        ("predicate.PodTopologySpreadEnable", "topology_spread"),
    ],
)
def test_every_filter_has_its_switch(switch, hook):  # S3-22
    def names(arguments):
        plugin = opened(table([node()]), arguments, pending=[pod_of_every_kind()])
        return [function.__name__ for _, function in plugin.hooks()]

    assert hook in names({})
    gone = {hook, "simulate_add", "simulate_remove", "simulate_fit"} if hook == "pod_affinity" else {hook}
    assert names({switch: "false"}) == [name for name in names({}) if name not in gone]
    assert names({switch: "maybe"}) == names({})


def test_cache_and_proportional_are_off_by_default():  # S3-22
    names = [function.__name__ for _, function in opened(table([node()])).hooks()]
    assert "cached" not in names
    assert "proportional" not in names


def test_a_filter_without_a_question_is_not_run():  # S3-32
    where = table([node()])
    plugin = opened(where)
    for hook in (plugin.ports, plugin.node_affinity, plugin.pod_affinity, plugin.topology_spread):
        assert hook(task(), where.view()) is None
    assert "_ports" not in vars(plugin)


@pytest.mark.parametrize("gate", [None, True, False])
def test_sidecars_need_their_gate_which_is_open_by_default(gate):  # S3-33
    plugin = opened(table([node()]))
    if gate is not None:
        plugin.sidecar_containers = gate
    pod = task(spec(initContainers=[{"name": "s", "restartPolicy": "Always"}]))
    text = "pod has a restartable init container and the SidecarContainers feature is disabled"
    reason = plugin.pre_filter(pod)
    assert (reason and (reason.text, reason.code)) == ((text, StatusCode.ERROR) if gate is False else None)
    assert plugin.pre_filter(task(spec(initContainers=[{"name": "plain"}]))) is None
    assert plugin.pre_filter(task(spec())) is None
    both = task(spec(initContainers=[{"name": "plain"}, {"name": "s", "restartPolicy": "Always"}]))
    assert bool(plugin.pre_filter(both)) is (gate is False)


def test_conflicting_names_rule_out_every_node():
    fields = [{"key": "metadata.name", "operator": "In", "values": [name]} for name in ("a", "b")]
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [{"matchFields": fields}]}}
    pod = task(spec(affinity={"nodeAffinity": required}))
    said = "plugin NodeAffinity pre-predicates failed pod affinity terms conflict"
    assert str(opened(table([node()])).pre_filter(pod)) == said
    assert opened(table([node()]), {"predicate.NodeAffinityEnable": False}).pre_filter(pod) is None


# -- Proportions -----------------------------------------------------------------------------------------------------

RATES = {
    "predicate.ProportionalEnable": True,
    "predicate.resources": GPU,
    f"predicate.resources.{GPU}.cpu": 4,
    f"predicate.resources.{GPU}.memory": 8,
}


@pytest.mark.parametrize(
    ("rates", "request_", "expected"),
    [
        pytest.param({}, {"cpu": "3", "memory": "4G"}, [], id="S3-35-3-cores"),
        pytest.param({}, {"cpu": "5", "memory": "4G"}, [f"proportional of resource {GPU} check failed"], id="S3-35-5"),
        pytest.param({}, {"cpu": "1", "memory": "13G"}, [f"proportional of resource {GPU} check failed"], id="memory"),
        pytest.param({}, {"cpu": "5", "memory": "4G", GPU: 1}, [], id="S3-35-gpu-pod"),
        pytest.param(
            {f"predicate.resources.{GPU}.cpu": -3}, {"cpu": "5", "memory": "4G"}, [], id="S3-34-negative-is-1"
        ),
        pytest.param({"predicate.resources": ""}, {"cpu": "5", "memory": "4G"}, [], id="nothing-listed"),
        pytest.param({"predicate.ProportionalEnable": False}, {"cpu": "5", "memory": "4G"}, [], id="off"),
    ],
)
def test_proportions(rates, request_, expected):
    where = table([node(offer={"cpu": "8", "memory": "20G", GPU: 1})], (GPU,))
    pod = task(spec(containers=[{"resources": resources_of(request_)}]), axes=where.axes)
    assert refusals(opened(where, {**RATES, **rates}), pod, where) == [expected]


@pytest.mark.parametrize(
    ("cpu", "asked", "refused"), [("8", {}, [FPGA]), ("9", {}, []), ("3", {}, [GPU]), ("3", {FPGA: 1}, [])]
)
def test_the_first_device_for_which_too_little_is_kept_is_named(cpu, asked, refused):
    """A GPU keeps two cores, an FPGA eight; the pod asks for one, and of who asks for a device nothing is kept."""
    rates = {"predicate.ProportionalEnable": True, "predicate.resources": f"{GPU},{FPGA}"}
    for name, cores in ((GPU, 2), (FPGA, 8)):
        rates |= {f"predicate.resources.{name}.cpu": cores, f"predicate.resources.{name}.memory": 1}
    where = table([node(offer={"cpu": cpu, "memory": "20G", GPU: 1, FPGA: 1})], (GPU, FPGA))
    request = {"cpu": "1" if cpu != "3" else "2", "memory": "1G", **asked}
    pod = task(spec(containers=[{"resources": resources_of(request)}]), axes=where.axes)
    expected = [f"proportional of resource {name} check failed" for name in refused]
    assert refusals(opened(where, rates), pod, where) == [expected]


# -- Equivalence cache -----------------------------------------------------------------------------------------------


def of_template(uid, **fields):
    return task(spec(**fields), annotations={TEMPLATE_UID: uid} if uid else {})


def test_the_cache_answers_for_the_whole_template():  # S3-36
    where = table([node("n1"), node("n2", labels={"disk": "ssd"})])
    plugin = opened(where, {"predicate.CacheEnable": True})
    first, second = of_template("t", nodeSelector={"disk": "ssd"}), of_template("t", nodeSelector={"disk": "ssd"})
    assert refusals(plugin, first, where) == [[AFFINITY], []]
    assert refusals(plugin, second, where) == [[CACHED], []]
    assert refusals(plugin, first, where) == [[AFFINITY], []]
    assert refusals(plugin, of_template("t"), where) == [[CACHED], []]
    assert refusals(plugin, of_template("other"), where) == [[], []]
    assert refusals(plugin, of_template("", nodeSelector={"disk": "ssd"}), where) == [[AFFINITY], []]


def test_the_cache_knows_of_cordoned_nodes():
    where = table([node("n1", unschedulable=True), node("n2")])
    plugin = opened(where, {"predicate.CacheEnable": True})
    assert refusals(plugin, of_template("t"), where) == [[CORDONED], []]
    assert refusals(plugin, of_template("t"), where) == [[CACHED], []]


def test_the_cache_lives_for_one_session():
    where = table([node("n1")])
    arguments = {"predicate.CacheEnable": True}
    opened(where, arguments).cached(of_template("t", nodeSelector={"disk": "ssd"}), where.view())
    assert refusals(opened(where, arguments), of_template("t"), where) == [[]]


def test_tasks_that_share_a_verdict_share_a_class():
    plugin = opened(table([node("n1")]), {"predicate.CacheEnable": True})
    key = next(hook.key for hook, function in plugin.hooks() if function.__name__ == "cached")
    first, second, third = (of_template("t") for _ in range(3))
    assert key(first) != key(second) == key(third)


def test_what_is_skipped_is_not_computed_without_observers(monkeypatch):
    """Every task is asked about beforehand, so this would cost each of them."""
    where = table([node("n1")])
    plugin = opened(where)
    asked: list[Any] = []
    monkeypatch.setattr(plugin, "_skipped", asked.append)
    assert plugin.pre_filter(task(spec())) is None
    assert asked == []
