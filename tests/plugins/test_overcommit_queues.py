"""overcommit by queue: what a queue deserves, times a factor of its own."""

from __future__ import annotations

import pytest

from stromboli.plugins.overcommit import Overcommit
from stromboli.testing.builders import pod, pod_group, queue
from tests.acceptance.bench import messages
from tests.plugins.factored_queues import asking, entering, factored, text


@pytest.mark.parametrize(
    ("spec", "factor", "most", "budget"),
    [
        pytest.param({"deserved": {"cpu": 40}}, "1.5", "1.2", 48, id="worked-example"),
        pytest.param({"deserved": {"cpu": 40}, "capability": {"cpu": 45}}, "1.5", "1.2", 45, id="cut-by-capability"),
        pytest.param({"deserved": {"cpu": 40}}, "1.5", "", 48, id="the-clusters-factor-is-the-most"),
        pytest.param({"deserved": {"cpu": 40}}, "1.5", "2", 60, id="its-own"),
        pytest.param({"deserved": {"cpu": 40}}, "1", "2", 40, id="one"),
        pytest.param({"deserved": {"cpu": 10}, "guarantee": {"resource": {"cpu": 20}}}, "2", "2", 40, id="guaranteed"),
        pytest.param({"deserved": {"cpu": 80}}, "1.5", "2", 100, id="no-more-than-there-is"),
    ],
)
def test_budget(spec, factor, most, budget):
    for cpu, enters in ((budget, ["g"]), (budget + 1, [])):
        assert entering([factored("q", factor, **spec), asking("g", "q", cpu)], text(most))[0] == enters


def test_what_is_held_and_admitted_counts_and_a_refusal_names_queue_and_dimension():
    running = [pod_group("run", queue="q", phase="Running"), pod("run-0", group="run", on="n1", cpu=3)]
    admitted = pod_group("in", queue="q", minResources={"cpu": 2})
    q = factored("q", "1", deserved={"cpu": 10, "memory": "1Gi"})
    found, plan = entering([q, *running, admitted, asking("a", "q", 4), asking("b", "q", 1), asking("c", "q", 1)])
    assert found == ["a", "b"]
    assert "resource in queue q is overused: overused cpu" in messages(plan, "default/c")


def test_only_what_is_deserved_and_asked_for_is_compared():
    q = factored("q", "1", deserved={"memory": "1Gi", "pods": "1"})
    assert entering([q, asking("a", "q", 50), asking("b", "q", 1, memory="2Gi")])[0] == ["a"]


@pytest.mark.parametrize(
    ("factor", "deserved"),
    [("0.9", {"cpu": 9}), ("-2", {"cpu": 9}), ("inf", {"cpu": 9}), ("nan", {"cpu": 9}), ("1e3", {"cpu": 9}),
     ("two", {"cpu": 9}), ("", {"cpu": 9}), ("2", {}), ("2", {"cpu": 0}), ("9" * 400, {"cpu": 9})],
)  # fmt: skip
def test_an_annotation_that_cannot_be_used_admits_no_job(factor, deserved):
    found, plan = entering([factored("q", factor, deserved=deserved), asking("g", "q", 1), asking("h", "default", 1)])
    assert found == ["h"]
    assert "queue q has no usable volcano.sh/overcommit-factor" in messages(plan, "default/g")


def test_in_a_tree_what_runs_below_a_queue_counts_for_it():
    running = [pod_group("run", queue="A1", phase="Running"), pod("run-0", group="run", on="n1", cpu=3)]
    queues = [queue("root"), factored("A", "1", deserved={"cpu": 5, "nvidia.com/gpu": 1}), queue("A1", parent="A")]
    assert entering([*queues, *running, asking("a", "A1", 3), asking("b", "A1", 2)], text(tree=True))[0] == ["b"]


def test_a_budget_may_name_what_no_job_could_ask_for_when_it_came():
    q = factored("q", "1", deserved={"cpu": 5, "nvidia.com/gpu": 1})
    assert entering([asking("a", "q", 5), asking("b", "q", 1), q])[0] == ["a"]


def test_without_the_gate_the_annotation_is_not_looked_at():
    assert entering([factored("q", "two", deserved={"cpu": 1}), asking("g", "q", 50)], features=())[0] == ["g"]


def test_the_cluster_comes_first():
    _, plan = entering([factored("q", "1", deserved={"cpu": 1}), asking("g", "q", 121)])
    assert "resource in cluster is overused: overused cpu" in messages(plan, "default/g")


def test_in_a_tree_every_queue_above_with_a_factor_counts():
    queues = [queue("root"), factored("A", "1.1", deserved={"cpu": 10}), queue("A1", parent="A"),
              factored("A2", "1", parent="A", deserved={"cpu": 4})]  # fmt: skip
    groups = [asking("a", "A1", 6), asking("b", "A2", 4), asking("c", "A2", 1), asking("d", "A1", 2)]
    assert entering([*queues, *groups], text(tree=True))[0] == ["a", "c", "d"]
    assert entering([*queues, *groups])[0] == ["a", "b", "d"]


def test_a_largest_factor_below_1_is_complained_of():
    plugin = Overcommit({"max-queue-overcommit-factor": 0.5})
    assert plugin.max_queue_factor == 0.0
    assert [one.kind for one in plugin.complaints] == ["range"]
