"""Plugins: their arguments, their hooks, and what is refused when the class is made."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stromboli import plugin as face
from stromboli.cycle import run_cycle
from stromboli.errors import PluginError
from stromboli.framework.books.cluster_view import ClusterView
from stromboli.framework.config.argument import convert, go_text, nearest
from stromboli.framework.extension.hook import Hook, check_hook
from stromboli.framework.extension.points import POINTS
from stromboli.framework.extension.reason import Reason, StatusCode
from stromboli.plugin import (
    Plugin,
    allocatable,
    arg,
    arg_pattern,
    batch_node_order,
    job_order,
    job_ready,
    node_order,
    on_allocate,
    pre_predicate,
    predicate,
    preemptable,
    queue_order,
    reclaimable,
    victim_tasks,
)
from stromboli.testing.builders import node
from tests.acceptance.bench import Bench, conf


def positive(value):
    return "" if value > 0 else f"Invalid input {value}, it must be positive"


class Sample(Plugin):
    name = "sample"
    weight = arg("sample.weight", int, 1, check=positive)
    factor = arg("sample.factor", float, 1.5)
    switch = arg("sample.Enable", bool, True)
    mode = arg("sample.mode", str, "pack")
    items = arg("sample.items", list, [])
    resources = arg_pattern("sample.resources.*", float, 1.0)
    deep = arg_pattern("sample.resources.*.cpu", float, 2.0)


def test_defaults_hold_without_arguments():
    plugin = Sample()
    assert (plugin.weight, plugin.factor, plugin.switch, plugin.mode, plugin.items) == (1, 1.5, True, "pack", [])
    assert plugin.resources == {}
    assert plugin.complaints == []


@pytest.mark.parametrize(
    ("key", "value", "attribute", "expected"),
    [
        ("sample.weight", 7, "weight", 7),
        ("sample.factor", 2, "factor", 2.0),
        ("sample.factor", 0.25, "factor", 0.25),
        ("sample.Enable", False, "switch", False),
        ("sample.Enable", "f", "switch", False),
        ("sample.mode", "spread", "mode", "spread"),
        ("sample.items", [1, "a"], "items", [1, "a"]),
        ("sample.resources.nvidia.com/gpu", 3, "resources", {"nvidia.com/gpu": 3.0}),
        ("sample.resources.nvidia.com/gpu.cpu", 4, "deep", {"nvidia.com/gpu": 4.0}),
        ("sample.resources.nvidia.com/gpu", "many", "resources", {"nvidia.com/gpu": 1.0}),
    ],
)
def test_arguments_are_parsed(key, value, attribute, expected):
    given_value = getattr(Sample({key: value}), attribute)
    assert given_value == expected
    assert type(given_value) is type(expected)


@pytest.mark.parametrize(
    ("key", "value", "text"),
    [
        ("sample.weight", "7", "Could not parse argument: 7 for key sample.weight to int"),
        ("sample.weight", 7.0, "Could not parse argument: 7.0 for key sample.weight to int"),
        ("sample.weight", True, "Could not parse argument: true for key sample.weight to int"),
        ("sample.factor", "2", "Could not parse argument: 2 for key sample.factor to float64"),
        ("sample.factor", False, "Could not parse argument: false for key sample.factor to float64"),
        ("sample.factor", float("nan"), "Could not parse argument: nan for key sample.factor to float64"),
        ("sample.Enable", "yes", "Could not parse argument: yes for key sample.Enable to bool"),
        ("sample.Enable", 1, "Could not parse argument: 1 for key sample.Enable to bool"),
        ("sample.mode", None, "Could not parse argument: <nil> for key sample.mode to string"),
        ("sample.mode", {"a": [1, True]}, "Could not parse argument: map[a:[1 true]] for key sample.mode to string"),
        ("sample.weight", 0, "Invalid input 0, it must be positive"),
        ("sample.wieght", 2, "unknown argument sample.wieght of sample is ignored; did you mean 'sample.weight'?"),
    ],
)
def test_what_is_wrong_is_said_and_the_default_kept(key, value, text):
    plugin = Sample({key: value})
    assert [complaint.text for complaint in plugin.complaints] == [text]
    assert (plugin.weight, plugin.factor, plugin.switch, plugin.mode) == (1, 1.5, True, "pack")


def test_kinds_of_complaints_tell_what_a_strict_check_refuses():
    plugin = Sample({"sample.weight": "x", "sample.factor": 1, "sample.wieght": 2})
    assert [(c.kind, c.key, c.nearest) for c in plugin.complaints] == [
        ("type", "sample.weight", ""), ("unknown", "sample.wieght", "sample.weight"),
    ]  # fmt: skip
    assert Sample({"sample.weight": -1}).complaints[0].kind == "range"


def test_names_of_older_releases_are_tolerated():
    class Predicates(Plugin):
        name = "predicates"

    complaints = Predicates({"predicate.GPUSharingEnable": True, "predicate.GPUNumber": True}).complaints
    assert [complaint.kind for complaint in complaints] == ["tolerated", "unknown"]


def test_a_bad_value_of_a_fatal_argument_is_an_error():
    class Strict(Plugin):
        name = "strict"
        shape = arg("strict.shape", dict, {}, fatal=True)

    with pytest.raises(PluginError, match=r"plugin strict: argument strict.shape: Could not parse argument: 1"):
        Strict({"strict.shape": 1})


def test_subclasses_inherit_arguments_and_hooks():
    class Base(Plugin):
        weight = arg("weight", int, 1)

        @job_order
        def order(self, left, right):
            return 0

    class Derived(Base):
        name = "derived"
        bias = arg("bias", int, 2)

        def order(self, left, right):
            return -1

    plugin = Derived({"weight": 5})
    ((hook, function),) = plugin.hooks()
    assert (plugin.weight, plugin.bias) == (5, 2)
    assert hook.point.name == "job_order"
    assert function("left", "right") == -1


def test_a_plugin_needs_a_name():
    class Nameless(Plugin):
        pass

    with pytest.raises(PluginError, match="plugin Nameless: has no name"):
        Nameless()


# ---- hooks


def region(task):
    return task.region


UNKNOWN: Any = ("disk",)
REFUSED = (Reason("refused"),)


class Hooked(Plugin):
    name = "hooked"
    ELSEWHERE = Reason("node(s) were elsewhere", resolvable=False)

    @predicate(key=region, reads=("cluster",))
    def near(self, task, node):
        return None

    @predicate.vector(key=region, reasons=(ELSEWHERE,))
    def near_all(self, task, nodes):
        return nodes

    @node_order.vector(key=region)
    def roomy(self, task, nodes):
        return nodes

    @queue_order.key
    def share(self, queue):
        return queue

    @allocatable.many
    def fitting(self, queue, task, k):
        return k

    @job_ready.many
    def ready(self, _job, _task, k):
        return k + 1

    @on_allocate.many
    def count(self, task, rows):
        return None

    @preemptable(protects=True)
    @reclaimable
    def spared(self, actor, candidates):
        return None

    @victim_tasks
    def first(self, tasks):
        return tasks[:1]

    @victim_tasks
    def last(self, tasks):
        return tasks[-1:]


def test_hooks_are_recorded_with_their_form():
    assert [hook.name for hook, _ in Hooked().hooks()] == [
        "predicate", "predicate.vector", "node_order.vector", "queue_order.key", "allocatable.many", "job_ready.many",
        "on_allocate.many", "preemptable", "reclaimable", "victim_tasks", "victim_tasks",
    ]  # fmt: skip


def test_a_hook_keeps_what_its_decorator_said():
    by_name = {hook.name: hook for hook, _ in Hooked().hooks()}
    assert by_name["predicate"] == Hook(POINTS["predicate"], "scalar", region, ("cluster",))
    assert by_name["predicate.vector"].reasons == (Hooked.ELSEWHERE,)
    assert by_name["preemptable"].protects
    assert not by_name["reclaimable"].protects


def test_functions_are_bound_to_their_plugin():
    functions = {hook.name: function for hook, function in Hooked().hooks()}
    assert functions["allocatable.many"]("queue", "task", 3) == 3
    assert functions["victim_tasks"]([1, 2]) == [2]


def stub(parameters):
    def answer(*_args):
        return None

    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    named = [inspect.Parameter(name, kind) for name in ("self", *parameters)]
    vars(answer)["__signature__"] = inspect.Signature(named)
    return answer


def test_every_point_can_be_registered():
    """S0-24: a plugin that answers every point is not refused."""
    methods = {name: getattr(face, name)(stub(point.arguments)) for name, point in POINTS.items()}
    plugin = type("Everything", (Plugin,), {"name": "everything", **methods})()
    assert [hook.point.name for hook, _ in plugin.hooks()] == list(POINTS)


@pytest.mark.parametrize(
    ("decorator", "function", "message"),
    [
        (predicate, lambda self, task: None, r"takes \(task\), but must be predicate\(task, node\)"),
        (predicate, lambda self, node, task: None, r"takes \(node, task\), but must be predicate\(task, node\)"),
        (predicate, lambda self, task, node, more: None, r"must be predicate\(task, node\)"),
        (predicate, lambda self, task, node, *, more: None, r"must be predicate\(task, node\)"),
        (allocatable, lambda self, task, queue: True, r"must be allocatable\(queue, task\)"),
        (allocatable.many, lambda self, queue, task: 1, r"must be allocatable.many\(queue, task, k\)"),
        (node_order.vector, lambda self, task, node: 1, r"must be node_order.vector\(task, nodes\)"),
        (job_order.key, lambda self, left, right: 1, r"must be job_order.key\(job\)"),
        (job_order.vector, lambda self, left, right: 1, r"job_order has no form .vector"),
        (predicate.many, lambda self, task, node: 1, r"predicate has no form .many"),
        (predicate.key, lambda self, task: 1, r"predicate has no form .key"),
        (predicate.vector(key=region), lambda self, task, nodes: 1, r"must declare 1 to 64 reasons"),
        (predicate(reads=UNKNOWN), lambda self, task, node: 1, r"reads= knows cluster, .*, clock, not disk"),
        (job_order(key=region), lambda self, left, right: 1, r"belong to points that are asked per node"),
        (pre_predicate(key=region), lambda self, task: None, r"key=by_template to pre_predicate"),
        (job_order(protects=True), lambda self, left, right: 1, r"belongs to points that name victims"),
        (predicate(reads=("cluster",), static=True), lambda self, task, node: 1, r"static= excludes reads="),
        *(
            (decorator, lambda self, task, nodes: nodes, r"limit= belongs to predicates that read the cluster")
            for decorator in (
                predicate.vector(key=region, reasons=REFUSED, limit="misfit"),
                predicate.vector(key=region, reasons=REFUSED, reads=("job",), limit="misfit"),
                batch_node_order.vector(key=region, reads=("cluster",), limit="misfit"),
            )
        ),
        *(
            (decorator, lambda self, task, nodes: nodes, r"amounts= excludes reads= and static=")
            for decorator in (
                batch_node_order.vector(key=region, static=True, amounts=True),
                batch_node_order.vector(key=region, reads=("job",), amounts=True),
            )
        ),
        *(
            (decorator, lambda self, task, nodes: nodes, r"alike= belongs to raw scores that change")
            for decorator in (
                batch_node_order.vector(key=region, alike="misfit"),
                batch_node_order.raw(key=region, static=True, normalise="misfit", alike="misfit"),
            )
        ),
        (predicate(own=True), lambda self, task, node: 1, r"own= belongs to sort keys of jobs and tasks"),
        (preemptable(by_priority=True), lambda self, preemptor, preemptees: [], r"by_priority= belongs to forms"),
        (batch_node_order.raw(key=region), lambda self, task, nodes: nodes, r"raw scores need normalise="),
    ],
)
def test_a_hook_that_does_not_match_is_refused_with_the_class(decorator, function, message):
    function.__name__ = "misfit"
    with pytest.raises(PluginError, match=message) as caught:
        type("Wrong", (Plugin,), {"name": "wrong", "misfit": decorator(function)})
    assert caught.value.plugin == "wrong"
    assert caught.value.point in POINTS
    assert "hook misfit" in str(caught.value)


@pytest.mark.parametrize(
    "function",
    [
        lambda self, l, r: 0,  # noqa: E741
        lambda self, _left, _right: 0,
        lambda self, left, right, more=None: 0,
        lambda self, *args: 0,
    ],
)
def test_a_hook_may_name_its_parameters_shortly(function):
    plugin = type("Fine", (Plugin,), {"name": "fine", "order": job_order(function)})
    assert len(list(plugin().hooks())) == 1


@pytest.mark.parametrize("keyword", ["row", "normalise", "alike"])
def test_a_keyword_that_names_a_method_needs_it(keyword):
    names = {"row": "", "normalise": "spread", "alike": "", keyword: "nowhere"}
    decorator = batch_node_order.raw(key=region, row=names["row"], normalise=names["normalise"], alike=names["alike"])
    methods = {"score": decorator(lambda self, task, nodes: nodes), "spread": lambda self, *_args: 0}
    with pytest.raises(PluginError, match=rf"batch_node_order.raw\({keyword}='nowhere'\) names a method"):
        type("Wrong", (Plugin,), {"name": "wrong", **methods})


def test_two_hooks_for_one_point_are_refused():
    with pytest.raises(PluginError, match="one and two are both job_order; keep one"):
        type("Twice", (Plugin,), {
            "name": "twice",
            "one": job_order(lambda self, left, right: 0),
            "two": job_order(lambda self, left, right: 0),
        })  # fmt: skip


def test_functions_registered_by_hand_are_checked_by_number():
    hook = Hook(POINTS["allocatable"])
    check_hook("stub", hook, lambda q, t: True, names=False)
    with pytest.raises(PluginError, match=r"takes \(q\), but must be allocatable\(queue, task\)"):
        check_hook("stub", hook, lambda q: True, names=False)


# ---- reasons


@pytest.mark.parametrize(
    ("reason", "code", "resolvable"),
    [
        (Reason("full"), StatusCode.UNSCHEDULABLE, True),
        (Reason("tainted", resolvable=False), StatusCode.UNSCHEDULABLE_AND_UNRESOLVABLE, False),
        (Reason("broken", code=StatusCode.ERROR), StatusCode.ERROR, False),
        (Reason("full", resolvable=False, code=StatusCode.UNSCHEDULABLE), StatusCode.UNSCHEDULABLE, True),
    ],
)
def test_code_and_resolvable_agree(reason, code, resolvable):
    assert (reason.code, reason.resolvable) == (code, resolvable)


def test_a_template_is_filled_and_keeps_its_code():
    reason = Reason("Insufficient {resource}", resolvable=False, plugin="fit").of(resource="cpu")
    assert reason == Reason("Insufficient cpu", resolvable=False, plugin="fit")
    assert str(reason) == "Insufficient cpu"
    assert Reason("x").said_by("ports").plugin == "ports"
    assert reason.said_by("ports").plugin == "fit"


def test_codes_are_those_of_kubernetes():
    names = ["SUCCESS", "ERROR", "UNSCHEDULABLE", "UNSCHEDULABLE_AND_UNRESOLVABLE", "WAIT", "SKIP"]
    assert [code.name for code in sorted(StatusCode)] == names


# ---- conversions


@pytest.mark.parametrize("text", ["1", "t", "T", "TRUE", "true", "True"])
def test_truths_of_go(text):
    assert convert(text, bool) is True


@given(st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.lists(st.integers()))
def test_a_conversion_gives_the_type_or_nothing(value):
    for kind in (int, float, bool, str, list, dict):
        converted = convert(value, kind)
        assert converted is None or type(converted) is kind
    assert isinstance(go_text(value), str)


@pytest.mark.parametrize(
    ("name", "known", "expected"),
    [("gagn", ["gang", "drf"], "gang"), ("Gang", ["gang"], "gang"), ("zzz", ["gang"], ""), ("x", [], "")],
)
def test_nearest(name, known, expected):
    assert nearest(name, known) == expected


def test_what_plugins_keep_is_floats_however_they_write_it() -> None:
    """It is the same before and after it has been written down; what is no number is left out, and told."""

    class Keeps(Plugin):
        name = "keeps"

        def on_session_open(self, session: ClusterView) -> None:
            kept: Any = session.memory(self.name)
            kept.update(
                {"count": 3, "flag": True, "text": "3", "time": 1.5, "row": np.int64(7), "part": np.float32(0.5)}
            )

    plan = Bench([node("n1")], conf("keeps"), Keeps).cycle()
    assert plan.memory["keeps"] == {"count": 3.0, "flag": 1.0, "time": 1.5, "row": 7.0, "part": 0.5}
    assert {type(value) for value in plan.memory["keeps"].values()} == {float}
    assert plan.inconsistencies == ["plugin keeps: keeps text, which is no number"]


def test_what_each_plugin_keeps_is_looked_at_whatever_others_keep() -> None:
    def keeping(plugin: str, value: object) -> type[Plugin]:
        def on_session_open(_self: Plugin, session: ClusterView) -> None:
            kept: Any = session.memory(plugin)
            kept["it"] = value

        return type(plugin, (Plugin,), {"name": plugin, "on_session_open": on_session_open})

    plan = Bench([node("n1")], conf("first second"), keeping("first", 1.5), keeping("second", np.int64(7))).cycle()
    assert {name: type(kept["it"]) for name, kept in plan.memory.items()} == {"first": float, "second": float}


def test_what_a_snapshot_says_does_not_add_up_stands_in_the_plan() -> None:
    bench = Bench([node("n1")], conf("gang"))
    snapshot = bench.snapshot()
    snapshot.inconsistencies.append("a node holds more than it has")
    assert run_cycle(snapshot, bench.config, bench.registry).inconsistencies == ["a node holds more than it has"]


def test_a_number_that_no_float_holds_is_left_out_and_the_cycle_goes_on() -> None:
    class Keeps(Plugin):
        name = "keeps"

        def on_session_open(self, session: ClusterView) -> None:
            session.memory(self.name).update({"digits": 10**400, "time": 1.5})

    plan = Bench([node("n1")], conf("keeps"), Keeps).cycle()
    assert plan.memory["keeps"] == {"time": 1.5}
    assert plan.inconsistencies == ["plugin keeps: keeps digits, which is no number"]


def test_only_plugins_that_say_so_are_trusted_and_taken_to_be_independent_of_time() -> None:
    class Foreign(Sample):
        pass

    class Own(Plugin, trusted=True):
        name = "own"

    assert [each.trusted for each in (Plugin, Foreign, Own)] == [False, False, True]
    assert [each().depends_on_time for each in (Foreign, Own)] == [True, False]
