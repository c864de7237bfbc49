"""What an external plugin may answer: anything else disables it, with its name in the log, and the rest goes on."""

from __future__ import annotations

import math

import numpy as np
import pytest

from stromboli import plugin as points
from stromboli.builtin import builtin_registry
from stromboli.cycle import run_cycle
from stromboli.framework.config.config import load_config
from stromboli.framework.extension.answers import Answer
from stromboli.framework.extension.guarded import PluginFailed
from stromboli.plugin import Plugin, Reason
from stromboli.testing.builders import cluster, node, pod, pod_group

CONF = """
actions: "enqueue, allocate, backfill"
tiers:
- plugins: [{name: gang}, {name: predicates}, {name: outsider}]
"""

NO = Reason("no")


def outsider(point, form, answer, **declared):
    """A plugin with one hook, which gives ``answer``."""

    def hook(self, *arguments):
        return answer

    tie = points.__dict__[point]
    tie = tie if form == "scalar" else getattr(tie, form)
    return type("Outsider", (Plugin,), {"name": "outsider", "hook": tie(**declared)(hook)})


def plan_with(plugin):
    snapshot = cluster(
        node("n1"), node("n2"), *(pod_group(name, phase="Pending", minResources={"cpu": 1}) for name in "gh"),
        *(pod(f"{name}-0", group=name) for name in "gh"),
    )  # fmt: skip
    registry = builtin_registry()
    registry.add(plugin)
    config = load_config(CONF, source="test", known_plugins=registry.plugin_names, known_actions=registry.action_names)
    return run_cycle(snapshot, config, registry)


def a_row(*values, **dtype):
    return np.array(values, **dtype)


USABLE = [
    ("node_order", "scalar", np.float32(3), {}),
    ("node_order", "vector", a_row(1, 2), {"key": id}),
    ("predicate", "scalar", (), {}),
    ("predicate", "vector", a_row(True, True), {"key": id, "reasons": (NO,)}),
    ("predicate", "vector", a_row(0, 0, dtype=np.uint64), {"key": id, "reasons": (NO,)}),
    ("job_order", "scalar", -0.5, {}),
    ("job_valid", "scalar", None, {}),
    ("overused", "scalar", [], {}),
    ("best_node", "scalar", None, {}),
]

UNUSABLE = [
    ("node_order", "scalar", math.nan, {}),
    ("node_order", "scalar", -math.inf, {}),
    ("node_order", "scalar", None, {}),
    ("node_order", "scalar", 10**400, {}),
    ("node_order", "vector", a_row(1.0, math.nan), {"key": id}),
    ("node_order", "vector", a_row(1.0), {"key": id}),
    ("node_order", "vector", [1.0, 2.0], {"key": id}),
    ("batch_node_order", "scalar", {"n1": "much"}, {}),
    ("predicate", "scalar", "no", {}),
    ("predicate", "scalar", True, {}),
    ("predicate", "vector", a_row(0.0, 1.0), {"key": id, "reasons": (NO,)}),
    ("predicate", "vector", a_row(0, 2, dtype=np.uint64), {"key": id, "reasons": (NO,)}),
    ("pre_predicate", "scalar", "no", {}),
    ("job_order", "scalar", None, {}),
    ("job_valid", "scalar", "invalid", {}),
    ("job_enqueueable", "scalar", None, {}),
    ("allocatable", "scalar", None, {}),
    ("best_node", "scalar", "n1", {}),
]


@pytest.mark.parametrize(("point", "form", "answer", "declared"), USABLE)
def test_usable_answers(point, form, answer, declared):
    plan = plan_with(outsider(point, form, answer, **declared))
    assert (len(plan.binds), plan.inconsistencies) == (2, [])


@pytest.mark.parametrize(("point", "form", "answer", "declared"), UNUSABLE)
def test_an_unusable_answer_puts_its_plugin_aside(point, form, answer, declared):
    plan = plan_with(outsider(point, form, answer, **declared))
    (told,) = plan.inconsistencies
    assert told.startswith(f"plugin outsider: TypeError: {point}{'' if form == 'scalar' else '.' + form} must answer ")
    assert [bind.node for bind in plan.binds] == ["n1", "n1"]


def test_victims_are_tasks():
    plugin = outsider("preemptable", "scalar", ["default/low-0"])
    low = pod_group("low", min_member=0, priorityClassName="")
    snapshot = cluster(
        node("n1", cpu=1), low, pod("low-0", group="low", on="n1"), pod_group("high"), pod("high-0", group="high")
    )
    registry = builtin_registry()
    registry.add(plugin)
    text = CONF.replace("enqueue, allocate, backfill", "preempt")
    config = load_config(text, source="test", known_plugins=registry.plugin_names, known_actions=registry.action_names)
    plan = run_cycle(snapshot, config, registry)
    assert plan.inconsistencies == [
        "plugin outsider: TypeError: preemptable must answer a list of tasks, or None to abstain, not ['default/low-0']"
    ]


@pytest.mark.parametrize(
    ("answer", "usable"),
    [
        pytest.param(None, True, id="says nothing"),
        pytest.param(a_row(0.0, 0.0), True, id="one a placement"),
        pytest.param([0.0, 0.0], False, id="no array"),
        pytest.param(a_row(0.0), False, id="too few"),
        pytest.param(a_row(0.0, math.inf), False, id="not finite"),
    ],
)
def test_scores_that_all_nodes_have_in_common_are_one_a_placement(answer, usable):
    class Outsider(Plugin):
        name = "outsider"

        @points.batch_node_order.raw(key=lambda task: None, reads=("job",), normalise="as_it_is", alike="of_all")
        def raw(self, task, nodes):
            return np.zeros(len(nodes))

        def as_it_is(self, task, raw, low, high):
            return raw

        def of_all(self, task, nodes, count):
            return answer

    gang = [pod_group("g", min_member=2), *(pod(f"g-{i}", group="g") for i in (0, 1))]
    snapshot = cluster(node("n1"), node("n2"), *gang)
    registry = builtin_registry()
    registry.add(Outsider)
    config = load_config(CONF, source="test", known_plugins=registry.plugin_names, known_actions=registry.action_names)
    plan = run_cycle(snapshot, config, registry)
    told = "plugin outsider: TypeError: batch_node_order.raw must answer None or a finite number a placement, not "
    assert [each.startswith(told) for each in plan.inconsistencies] == [True] * (not usable)
    assert len(plan.binds) == 2


def of_one_node(point, answer):
    """What comes of an answer of the one-node form of a vector hook."""

    def of_all(self, task, nodes):
        return None

    def of_one(self, task, node):
        return answer

    reasons = {"reasons": (NO,)} if point == "predicate" else {}
    tie = points.__dict__[point].vector(key=id, row="one", **reasons)
    made = type("Outsider", (Plugin,), {"name": "outsider", "hook": tie(of_all), "one": of_one})()
    [(hook, function)] = made.hooks()
    of_row = Answer(0, made, hook, function).row
    assert of_row is not None
    return of_row(None, None)


@pytest.mark.parametrize(
    ("point", "answer"), [("predicate", None), ("predicate", NO), ("predicate", (NO,)), ("node_order", 1.5)]
)
def test_the_one_node_form_of_a_vector_hook_answers_as_its_point_does(point, answer):
    assert of_one_node(point, answer) is answer


@pytest.mark.parametrize(
    ("point", "answer", "what"),
    [
        ("predicate", 7, "must answer None, a Reason"),
        ("predicate", "no", "must answer None, a Reason"),
        ("node_order", "high", "must answer a finite number"),
        ("node_order", math.nan, "must answer a finite number"),
        ("node_order", NO, "must answer a finite number"),
    ],
)
def test_the_one_node_form_of_a_vector_hook_is_held_to_its_point(point, answer, what):
    with pytest.raises(PluginFailed, match=what):
        of_one_node(point, answer)
