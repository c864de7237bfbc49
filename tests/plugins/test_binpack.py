from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from stromboli.model.table import Node
from stromboli.plugins.binpack import Binpack
from stromboli.testing.builders import resources_of
from tests.filters.builders import node, put, session, spec, table, task

GPU = "nvidia.com/gpu"


def opened(where, **arguments):
    plugin = Binpack({key.replace("__", "."): value for key, value in arguments.items()})
    plugin.on_session_open(session(where))
    return plugin


def score_of(plugin, pod, where, row=0):
    """The score by both forms, which must be one."""
    score = plugin.score_of_node(pod, Node(where, row))
    assert plugin.score(pod, where.view()).tolist()[row] == score
    return score


@pytest.mark.parametrize(
    ("arguments", "used", "asked", "score"),
    [
        pytest.param({"binpack.cpu": 5}, ("1", "2Gi"), ("1", "1Gi"), (5 * 0.5 + 0.375) / 6 * 100, id="47.9"),
        pytest.param({}, ("1", "2Gi"), ("1", "1Gi"), 43.75, id="equal-weights"),
        pytest.param({"binpack.weight": 10}, ("1", "2Gi"), ("1", "1Gi"), 437.5, id="times-weight"),
        pytest.param({"binpack.weight": -1}, ("1", "2Gi"), ("1", "1Gi"), -43.75, id="negative-weight"),
        pytest.param({"binpack.cpu": -5}, ("1", "2Gi"), ("1", "1Gi"), 43.75, id="negative-counts-1"),
        pytest.param({}, ("3500m", "2Gi"), ("1", "1Gi"), 0.0, id="does-not-fit"),
        pytest.param({"binpack.cpu": 0}, ("3500m", "2Gi"), ("1", "2Gi"), 50.0, id="weight-0-is-not-asked"),
        pytest.param({"binpack.cpu": 0, "binpack.memory": 0}, ("1", "1Gi"), ("1", "2Gi"), 0.0, id="no-weights"),
        pytest.param({}, ("1", "1Gi"), ("0", "0"), 0.0, id="asks-for-nothing"),
        pytest.param({}, ("1", "1Gi"), ("1m", "0"), 25.025, id="asks-for-the-least"),
    ],
)
def test_score(arguments, used, asked, score):
    where = table([node()])
    put(where, 0, task(spec(*used)))
    plugin = Binpack(arguments)
    plugin.on_session_open(session(where))
    assert score_of(plugin, task(spec(*asked)), where) == pytest.approx(score)


@pytest.mark.parametrize(
    ("listed", "weight", "scores"),
    [
        (f" {GPU} ,", 2, [(0.25 + 0.125 + 2 * 0.5) / 4 * 100, 9.375]),
        (GPU, None, [(0.25 + 0.125 + 0.5) / 3 * 100, 12.5]),
        ("", 2, [18.75, 18.75]),
        (7, 2, [18.75, 18.75]),
    ],
    ids=["listed", "listed-without-a-weight", "not-listed", "no-text"],
)
def test_further_resources_count_where_listed(listed, weight, scores):
    where = table([node("gpu", offer={GPU: 2}), node("plain")], (GPU,))
    pod = task(spec(containers=[{"resources": resources_of({"cpu": "1", "memory": "1Gi", GPU: 1})}]), axes=where.axes)
    weights = {} if weight is None else {f"binpack.resources.{GPU}": weight}
    plugin = Binpack({"binpack.resources": listed, **weights})
    plugin.on_session_open(session(where))
    assert [score_of(plugin, pod, where, row) for row in (0, 1)] == pytest.approx(scores)
    assert score_of(plugin, task(spec("1", "1Gi")), where) == 18.75  # what it asks for alone


def test_weight_0_switches_the_plugin_off():
    assert list(Binpack({"binpack.weight": 0}).hooks()) == []
    assert [hook.name for hook, _ in Binpack({}).hooks()] == ["node_order.vector"]


def test_pipelined_tasks_do_not_count():
    where = table([node()])
    where.pipelined[0, 0] = where.requested[0, 0] = 2000
    assert score_of(opened(where), task(spec("1", "1Gi")), where) == (0.25 + 0.125) / 2 * 100


@example([(1, 4, 4, 0, 0, 0)], (1, 0, 0), (1, 1, 1, 1))  # a node that offers one unit
@given(
    st.lists(st.tuples(*[st.integers(0, 9)] * 6), min_size=1, max_size=5),
    st.tuples(st.integers(0, 4), st.integers(0, 4), st.integers(0, 4)),
    st.tuples(st.integers(-3, 3), st.integers(0, 3), st.integers(0, 3), st.integers(0, 3)),
)
def test_both_forms_agree(amounts, asked, weights):
    where = table([node(f"n{i}") for i in range(len(amounts))], (GPU,))
    columns = np.array(amounts, dtype=np.int64).T
    where.alloc[[0, 1, 3]], where.used[[0, 1, 3]] = columns[:3], columns[3:]
    request = {"cpu": f"{asked[0]}m", "memory": asked[1], GPU: f"{asked[2]}m"}
    pod = task(spec(containers=[{"resources": resources_of(request)}]), axes=where.axes)
    keys = ("binpack.weight", "binpack.cpu", "binpack.memory", f"binpack.resources.{GPU}")
    plugin = Binpack({**dict(zip(keys, weights, strict=True)), "binpack.resources": GPU})
    plugin.on_session_open(session(where))
    for row in range(len(amounts)):
        score_of(plugin, pod, where, row)
