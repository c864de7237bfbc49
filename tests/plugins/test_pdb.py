from __future__ import annotations

from typing import Any

import pytest

from stromboli.framework.session.reference import ReferenceView
from stromboli.model.job import RELEASING, RUNNING
from stromboli.narration.observe import Counting
from stromboli.testing.builders import node, pod, pod_group, queue
from tests.acceptance.bench import Bench, answering, conf, task_of


def budget(name, allowed, labels=None, namespace="default", disrupted=(), expressions=(), selector=True):
    wanted = {"matchLabels": labels or {}, "matchExpressions": list(expressions)} if selector else None
    spec = {} if wanted is None else {"selector": wanted}
    status = {"disruptionsAllowed": allowed, "disruptedPods": dict.fromkeys(disrupted, "2026-01-01T00:00:00Z")}
    metadata = {"name": name, "namespace": namespace}
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": metadata,
        "spec": spec,
        "status": status,
    }


WEB = {"app": "web"}
PODS = [*(pod(f"w{i}", group="g", on="n1", labels=WEB) for i in range(3)), pod("bare", group="g", on="n1"),
        pod("db", group="g", on="n1", labels={"app": "db"})]  # fmt: skip
OBJECTS = [node("n1", cpu=9, memory="64Gi"), pod_group("g"), *PODS, pod("new", group="h")]
ALL = ["w0", "w1", "w2", "bare", "db"]


def spared(budgets, names=ALL, compat=False, point="preemptable"):
    with Bench([*OBJECTS, *budgets], conf("pdb"), compat=compat).open() as session:
        tasks = [task_of(session, name) for name in names]
        actor = () if point == "victim_tasks" else (task_of(session, "new"),)
        return [task.name for task in getattr(session.plugins["pdb"], METHODS[point])(*actor, tasks)]


METHODS = {
    "preemptable": "within_budgets_of_queue",
    "reclaimable": "within_budgets_of_others",
    "unified_evictable": "within_budgets_for_gang",
    "victim_tasks": "within_budgets",
}


@pytest.mark.parametrize("point", METHODS)
@pytest.mark.parametrize(
    ("budgets", "victims"),
    [
        ([], ["w0", "w1", "w2", "db"]),
        ([budget("b", 1, WEB)], ["w0", "db"]),
        ([budget("b", 0, WEB)], ["db"]),
        ([budget("b", 2, WEB, namespace="other")], ["w0", "w1", "w2", "db"]),
        ([budget("b", 0, {})], ["w0", "w1", "w2", "db"]),
        ([budget("b", 0, selector=False)], ["w0", "w1", "w2", "db"]),
        ([budget("b", 0, expressions=[{"key": "app", "operator": "Odd"}])], ["w0", "w1", "w2", "db"]),
        ([budget("b", 0, expressions=[{"key": "app", "operator": "Exists"}])], []),
        ([budget("b", 0, WEB, disrupted=["w1"])], ["w1", "db"]),
        ([budget("b", 2, WEB), budget("c", 1, WEB)], ["w0", "db"]),
    ],
    ids=["none", "one", "used-up", "namespace", "empty", "no-selector", "invalid", "all", "disrupted", "two"],
)
def test_the_first_ones_of_a_budget_may_go_and_pods_without_labels_never(budgets, victims, point):
    assert spared(budgets, point=point) == victims


@pytest.mark.parametrize("compat", [False, True])
def test_pods_spared_by_a_budget_are_logged_with_the_budgets_that_are_used_up(compat):
    observer = Counting(("pdb_violated", "spared", "pdb_entered", "pdb_left"))
    objects = [*OBJECTS, budget("b", 1, WEB), budget("c", 2, WEB)]
    with Bench(objects, conf("pdb"), compat=compat).open(observer) as session:
        plugin: Any = session.plugins["pdb"]
        plugin.within_budgets([task_of(session, name) for name in ("w0", "w1", "bare")])
    assert [fields for key, fields in observer.told if key == "pdb_violated"] == [{"pod": "w1", "name": "w1"}]
    assert [(fields["task"], fields["why"]) for key, fields in observer.told if key == "spared"] == [
        ("default/w1", "budget b allows 1, and no more are left"),
        ("default/bare", "it has no labels"),
    ]
    assert (observer.counts["pdb_entered"], observer.counts["pdb_left"]) == (1, 1)


def test_order_decides_which_pods_go():
    assert spared([budget("b", 1, WEB)], ["w2", "w0", "w1"]) == ["w2"]


def test_what_has_been_decided_in_the_cycle_counts_until_it_is_taken_back():
    with Bench([*OBJECTS, budget("b", 2, WEB)], conf("pdb")).open() as session:
        web = [task_of(session, f"w{i}") for i in range(3)]
        actor = task_of(session, "new")
        with session.statement() as statement:
            statement.evict(web[0], "preempt")
            assert web[0].status is RELEASING
            assert [task.name for task in session.ask.preemptable(actor, web[1:])] == ["w1"]
            mark = statement.checkpoint()
            statement.evict(web[1], "preempt")
            assert session.ask.preemptable(actor, web[2:]) == []
            statement.rollback(mark)
            assert web[1].status is RUNNING
            assert [task.name for task in session.ask.reclaimable(actor, web[1:])] == ["w1"]
            statement.commit()
        assert [task.name for task in session.ask.victim_tasks(web)] == []


def test_in_the_references_way_every_question_starts_from_the_whole_budget():
    with Bench([*OBJECTS, budget("b", 1, WEB)], conf("pdb"), compat=True).open() as session:
        web = [task_of(session, f"w{i}") for i in range(3)]
        with session.statement() as statement:
            statement.evict(web[0], "preempt")
            assert [task.name for task in session.ask.preemptable(task_of(session, "new"), web[1:])] == ["w1"]
        assert "pdb" not in ReferenceView(session).points["unified_evictable"]


def namer(*names):
    return answering(
        "namer", victim_tasks=lambda tasks: [task for name in names for task in tasks if task.name == name]
    )


@pytest.mark.parametrize(
    ("compat", "evicted"), [(False, ["w2", "db"]), (True, ["w2", "w1", "bare", "db", "w0"])], ids=["ours", "compat"]
)
def test_shuffle_is_told_what_to_spare_and_in_the_references_way_what_to_take(compat, evicted):
    text = conf("namer pdb", actions="shuffle")
    bench = Bench([*OBJECTS, budget("b", 1, WEB)], text, namer("w2", "w1", "bare", "db"), compat=compat)
    assert [eviction.key for eviction in bench.cycle().evictions] == [f"default/{name}" for name in evicted]


def test_without_a_plugin_that_names_victims_pdb_moves_no_pod():
    bench = Bench([*OBJECTS, budget("b", 3, WEB)], conf("pdb", actions="shuffle"))
    assert bench.cycle().evictions == []


@pytest.mark.parametrize(("compat", "evicted"), [(False, 1), (True, 3)], ids=["ours", "compat"])
def test_several_preemptors_together_keep_to_a_budget_that_another_tier_cannot_overrule(compat, evicted):
    classes = [
        {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": f"c{v}"}, "value": v}
        for v in (1, 9)
    ]
    objects = [node("n1", cpu=3), *classes, queue("default"), budget("b", 1, WEB),
               pod_group("old", min_member=0, priorityClassName="c1"),
               *(pod(f"o{i}", group="old", on="n1", labels=WEB) for i in range(3)),
               *(each for i in range(3) for each in (pod_group(f"new{i}", priorityClassName="c9"),
                                                     pod(f"new{i}-0", group=f"new{i}")))]  # fmt: skip
    bench = Bench(objects, conf("pdb gang", "priority predicates", actions="preempt"), compat=compat)
    assert len(bench.cycle().evictions) == evicted
