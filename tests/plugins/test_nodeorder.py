from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stromboli.errors import PluginError
from stromboli.framework.config.compat import Compat
from stromboli.model.spec import Image, LabelSelector, Taint
from stromboli.model.table import Node
from stromboli.narration.observe import Counting
from stromboli.plugin import by_template
from stromboli.plugins.nodeorder import NodeOrder
from stromboli.testing import builders
from stromboli.testing.builders import resources_of
from tests.acceptance.bench import Bench, conf
from tests.filters.builders import node, put, session, spec, table, task

GPU = "nvidia.com/gpu"
WEIGHTS = ("leastrequested", "mostrequested", "balancedresource", "nodeaffinity", "tainttoleration", "imagelocality",
           "podaffinity", "podtopologyspread")  # fmt: skip


def opened(where, pods=(), pending=(), services=None, **weights):
    """The plugin with only the weights that are named."""
    plugin = NodeOrder({f"{key}.weight": weights.get(key, 0) for key in WEIGHTS})
    plugin.on_session_open(session(where, pods, pending, **(services or {})))
    return plugin


def total(plugin, pod, where, rows=None):
    """Scores of the candidates, added up by hand as the engine does; None where no hook speaks."""
    view = where.view(None if rows is None else np.array(rows, dtype=np.intp))
    parts = []
    for hook, function in plugin.hooks():
        answer = function(pod, view)
        if answer is not None and hook.form == "raw":
            raw = answer.astype(np.float64)
            answer = getattr(plugin, hook.normalise)(pod, raw, float(raw.min()), float(raw.max()))
        if answer is not None:
            parts.append(answer)
    return sum(parts).tolist() if parts else None


@pytest.mark.parametrize(
    ("key", "weight"),
    [("leastrequested", 1), ("mostrequested", 0), ("balancedresource", 1), ("nodeaffinity", 2), ("tainttoleration", 3)],
)
def test_weights_that_are_not_given(key, weight):
    where = table([node("a", labels={"disk": "ssd"}), node("b")])
    terms = [{"weight": 1, "preference": {"matchExpressions": [{"key": "disk", "operator": "Exists"}]}}]
    pod = task(spec(affinity={"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": terms}}))
    plugin = NodeOrder({f"{each}.weight": 0 for each in WEIGHTS if each != key})
    plugin.on_session_open(session(where))
    once = total(opened(where, **{key: 1}), pod, where)
    assert max(once) > 0 or not weight
    assert total(plugin, pod, where) == ([weight * score for score in once] if weight else None)


@pytest.mark.parametrize(
    ("weights", "score"),
    [
        pytest.param({"leastrequested": 1}, 56.0, id="S3-04-least"),
        pytest.param({"leastrequested": 2}, 112.0, id="S3-02-doubled"),
        pytest.param({"mostrequested": 1}, 43.0, id="S3-04-most"),
        pytest.param({"balancedresource": 1}, 71.0, id="S3-05"),
        pytest.param({"tainttoleration": 3}, 300.0, id="S3-08-no-taints"),
        pytest.param({"leastrequested": -1}, -56.0, id="negative"),
        pytest.param({}, None, id="S3-02-all-off"),
        pytest.param(dict.fromkeys(("leastrequested", "balancedresource", "tainttoleration"), 1), 227.0, id="sum"),
    ],
)
def test_scores_by_amounts(weights, score):
    where = table([node()])
    put(where, 0, task(spec("1", "2Gi")))
    found = total(opened(where, **weights), task(spec("1", "1Gi")), where)
    assert found == (None if score is None else [score])


def test_defaults_weigh_as_in_the_reference():
    assert [complaint.key for complaint in NodeOrder({}).complaints] == []
    plugin = NodeOrder({"leastrequested.weight": "many"})
    assert (plugin.least_requested, plugin.most_requested, plugin.balanced_resource) == (1, 0, 1)
    assert (plugin.node_affinity, plugin.taint_toleration, plugin.image_locality) == (2, 3, 1)
    assert (plugin.pod_affinity, plugin.pod_topology_spread) == (2, 2)
    assert [complaint.kind for complaint in plugin.complaints] == ["type"]


def test_containers_without_requests_count_stand_ins_for_room_alone():
    where = table([node()])
    pod = task(spec("0", "0", containers=[{"name": "c"}]))
    assert total(opened(where, leastrequested=1, balancedresource=1), pod, where) == [97.0]


def test_gpus_count_in_the_balance_of_pods_that_ask_for_them():
    where = table([node("a", offer={GPU: 4}), node("b")], (GPU,))
    pod = task(spec(containers=[{"resources": resources_of({"cpu": "2", "memory": "4Gi", GPU: 4})}]), axes=where.axes)
    assert total(opened(where, balancedresource=1), pod, where) == [63.0, 75.0]


def test_preferred_nodes_in_proportion():  # S3-06
    where = table([node("a", labels={"disk": "ssd", "zone": "z"}), node("b", labels={"zone": "z"}), node("c")])
    wanted = [("disk", 60), ("zone", 20)]
    terms = [{"weight": w, "preference": {"matchExpressions": [{"key": k, "operator": "Exists"}]}} for k, w in wanted]
    pod = task(spec(affinity={"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": terms}}))
    plugin = opened(where, nodeaffinity=2)
    assert total(plugin, pod, where) == [200.0, 50.0, 0.0]
    assert total(plugin, pod, where, [1, 2]) == [200.0, 0.0]
    assert total(plugin, task(spec()), where) is None


def test_a_score_below_0_is_an_error():  # S3-09
    where = table([node("a"), node("b", labels={"disk": "ssd"})])
    term = {"weight": -5, "preference": {"matchExpressions": [{"key": "disk", "operator": "Exists"}]}}
    pod = task(spec(affinity={"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [term]}}))
    with pytest.raises(PluginError, match="NodeAffinity returns an invalid score -5 for node b"):
        total(opened(where, nodeaffinity=2), pod, where)
    liked = {"weight": 10, "preference": {"matchExpressions": [{"key": "disk", "operator": "DoesNotExist"}]}}
    pod = task(spec(affinity={"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [term, liked]}}))
    with pytest.raises(PluginError, match="NodeAffinity returns an invalid score -50 for node b"):
        total(opened(where, nodeaffinity=2), pod, where)


def test_fewer_preferences_against_the_pod_are_better():  # S3-08
    mild = Taint("x", "", "PreferNoSchedule")
    where = table([node("a"), node("b", taints=(mild,)), node("c", taints=(mild, mild))])
    plugin = opened(where, tainttoleration=1)
    assert total(plugin, task(spec()), where) == [100.0, 50.0, 0.0]
    tolerant = task(spec(tolerations=[{"key": "x", "operator": "Exists"}]))
    assert total(plugin, tolerant, where) == [100.0] * 3


@pytest.mark.parametrize(("compat", "expected"), [(False, [79.0, 79.0]), (True, [38.0, 79.0])])
def test_in_compat_mode_an_image_counts_as_when_its_node_was_last_heard_of(compat, expected):
    where = table([node(name, images=(Image(("app:1",), 800 * 2**20),)) for name in "ab"])
    plugin = opened(where, services={"compat": Compat(compat)}, imagelocality=1)
    assert total(plugin, task(spec(containers=[{"name": "c", "image": "app:1"}])), where) == expected


def test_each_strategy_tells_its_scores_of_all_candidates():
    term = {"weight": 1, "preference": {"matchExpressions": [{"key": "disk", "operator": "Exists"}]}}
    near = {"weight": 1, "podAffinityTerm": {"topologyKey": "disk", "labelSelector": {"matchLabels": {"app": "web"}}}}
    during = "preferredDuringSchedulingIgnoredDuringExecution"
    affinity = {"nodeAffinity": {during: [term]}, "podAffinity": {during: [near]}}
    objects = [builders.node("a", labels={"disk": "ssd"}), builders.node("b"), builders.pod_group("g"),
               builders.pod("there", on="a", labels={"app": "web"}),
               builders.pod("p", group="g", affinity=affinity)]  # fmt: skip
    observer = Counting(("plugin_score",))
    Bench(objects, conf("predicates nodeorder")).cycle(observer)
    told = {fields["plugin"]: fields["scores"] for _, fields in observer.told}
    assert told["NodeAffinity"] == told["InterPodAffinity"] == {"a": 200, "b": 0}
    assert told["TaintToleration"] == {"a": 300, "b": 300}


def test_images_are_a_score_of_the_node_alone():  # S3-03
    where = table([node("a", images=(Image(("app:1",), 800 * 2**20),)), node("b")])
    plugin = opened(where, imagelocality=2)
    assert total(plugin, task(spec(containers=[{"name": "c", "image": "app:1"}])), where) == [76.0, 0.0]
    assert total(plugin, task(spec(containers=[{"name": "c", "image": "other"}])), where) is None
    points = {hook.point.name for hook, function in plugin.hooks() if function.__name__ == "images"}
    assert points == {"node_order"}


def zoned(name, zone):
    return node(name, labels={"zone": zone})


def web(**fields):
    return task(spec(**fields), labels={"app": "web"})


TERM = {"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": "web"}}}


def test_pods_draw_pods():  # S3-07
    where = table([zoned("a1", "a"), zoned("a2", "a"), zoned("b", "b"), node("x")])
    preferred = [{"weight": 10, "podAffinityTerm": TERM}]
    pod = web(affinity={"podAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": preferred}})
    log: list[tuple[object, int, int]] = []
    plugin = opened(where, pods=[(web(), 0)], pending=[pod], services={"log": log}, podaffinity=2)
    assert total(plugin, pod, where) == [200.0, 200.0, 0.0, 0.0]
    log.append((pod, 2, 1))
    assert total(plugin, pod, where) == [100.0, 100.0, 200.0, 0.0]
    assert total(plugin, web(), where) == [0.0, 0.0, 200.0, 0.0]
    assert total(plugin, task(spec()), where) is None
    keys = {function.__name__: hook.key for hook, function in plugin.hooks()}
    assert keys["attraction"] == plugin._inter_pod.identity
    assert keys["usage"] is by_template


@pytest.mark.parametrize(("follow", "expected"), [(True, [200.0, 0.0]), (False, [0.0, 200.0])])
def test_placements_count_where_kubernetes_view_follows_them(follow, expected):
    where = table([zoned("a", "a"), zoned("b", "b")])
    pod = web(affinity={"podAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [
        {"weight": 10, "podAffinityTerm": TERM}]}})  # fmt: skip
    services = {"log": [(web(), 0, 1), (web(), 0, 1)], "follow": follow}
    plugin = opened(where, pods=[(web(), 1)], pending=[pod], services=services, podaffinity=2)
    assert total(plugin, pod, where) == expected


def test_pods_are_spread():  # S3-07
    where = table([zoned("a", "a"), zoned("b", "b"), node("x")])
    constraint = {**TERM, "maxSkew": 1, "whenUnsatisfiable": "ScheduleAnyway"}
    pod, there = web(topologySpreadConstraints=[constraint]), [(web(), 0)] * 3 + [(web(), 1)]
    plugin = opened(where, pods=there, pending=[pod], podtopologyspread=2)
    assert total(plugin, pod, where) == [50.0, 200.0, 0.0]
    assert total(plugin, pod, where, [0, 2]) == [200.0, 0.0]
    assert total(plugin, web(), where) is None


def test_services_spread_their_pods():
    where, there = table([zoned("a", "a"), node("b", labels={"kubernetes.io/hostname": "b"})]), [(web(), 1)] * 3
    services = {"spread_selector": lambda _task: LabelSelector({"app": "web"})}
    plugin = opened(where, pods=there, pending=[web()], services=services, podtopologyspread=1)
    assert total(plugin, web(), where) == [100.0, 0.0]
    assert total(opened(where, pods=there, pending=[web()], podtopologyspread=1), web(), where) is None


@pytest.mark.parametrize("weights", [{}, {"podaffinity": 2, "podtopologyspread": 2}], ids=["off", "no-pod-asks"])
def test_other_pods_are_not_looked_at_without_need(weights):
    plugin = opened(table([node()]), pods=[(web(), 0)], **weights)
    assert {"attraction", "evenness"}.isdisjoint(function.__name__ for _, function in plugin.hooks())


@given(st.lists(st.tuples(*[st.integers(0, 5)] * 8), min_size=1, max_size=5), st.tuples(*[st.integers(0, 3)] * 3))
def test_both_forms_of_usage_agree(amounts, asked):
    where = table([node(f"n{i}") for i in range(len(amounts))], (GPU,))
    columns = np.array(amounts, dtype=np.int64).T
    where.alloc[[0, 1, 3]], where.requested[[0, 1, 3]], where.nonzero[:] = columns[:3], columns[3:6], columns[6:]
    request = {"cpu": f"{asked[0]}m", "memory": asked[1], GPU: f"{asked[2]}m"}
    pod = task(spec(containers=[{"resources": resources_of(request)}]), axes=where.axes)
    plugin = opened(where, leastrequested=1, mostrequested=2, balancedresource=3)
    rows = [plugin.usage_of_node(pod, Node(where, row)) for row in range(len(amounts))]
    assert plugin.usage(pod, where.view()).tolist() == rows


@pytest.mark.parametrize("weight", [10**12, -(10**12)])
def test_the_largest_weight_is_heeded(weight):
    plugin = NodeOrder({"leastrequested.weight": weight})
    assert (plugin.least_requested, plugin.complaints) == (weight, [])


@pytest.mark.parametrize("key", WEIGHTS)
def test_a_weight_beyond_exact_scores_is_refused_by_name(key):
    plugin = NodeOrder({f"{key}.weight": 2**63 - 1, "imagelocality.weight" if key != "imagelocality" else "": 10**12})
    complaint = next(each for each in plugin.complaints if each.kind == "range")
    assert (complaint.key, complaint.plugin) == (f"{key}.weight", "nodeorder")
    assert "beyond 10^12" in complaint.text
    assert all(abs(getattr(plugin, name)) <= 10**12 for name in NodeOrder.arguments)
