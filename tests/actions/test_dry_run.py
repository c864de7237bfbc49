"""The topology-aware search on one node and among nodes: the victims it names, and its reasons for other nodes."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from stromboli.framework.extension.reason import Reason
from stromboli.model.names import PREEMPTABLE
from stromboli.preemption.dry_run import DryRun, Numbers, choose
from stromboli.preemption.eviction_policy import PREEMPT
from stromboli.preemption.victim_search import Search
from stromboli.testing.builders import node
from tests.acceptance.bench import Bench, answering, conf, task_of
from tests.acceptance.fights import CLASSES, TOPOLOGY, evicted, fight, nominated, running, waiting

TIERS = "conformance gang priority"
AWARE = conf(TIERS, actions="preempt", more=TOPOLOGY % "")
FEW = Numbers(100, 1, 100)


def refusing(*names):
    """Objects to the removal of pods of these names."""

    def remove(state, asking, victim, where):
        return Reason("must stay") if victim.name in names else None

    return remove


def refused_without(count):
    """Filters that refuse the node until ``count`` pods have been removed, as when a pod there repels the new one."""
    removed = []

    def remove(state, asking, victim, where):
        removed.append(victim.uid)

    def add(state, asking, victim, where):
        removed.remove(victim.uid)

    def refuse(state, asking, where):
        return None if len(removed) >= count else Reason("too close")

    return {"simulate_remove_task": remove, "simulate_add_task": add, "simulate_predicate": refuse}


def on_node(*objects, row=0, cpu=2, nodes=1, **points):
    """What the search finds for the pod x-0 on a node."""
    machines = [node(f"n{number + 1}", cpu=cpu) for number in range(nodes)]
    bench = Bench([*machines, *CLASSES, *(each for group in objects for each in group)],
                  conf(f"{TIERS} spy"), answering("spy", **points))  # fmt: skip
    with bench.open() as session:
        task, job = task_of(session, "x-0"), session.jobs["default/x"]
        search = Search(session, job, PREEMPT, lambda other: other is not job, minimal=True)
        victims, why = DryRun(search, FEW).on_node(task, row, search.reach(task))
        return [victim.name for victim in victims], why


TWO = running("l", 2, priorities=(1, 2))
ASKS = waiting("x", 1)
LARGE = waiting("x", 1, cpu=2)
KEPT = running("k", 2, annotations={PREEMPTABLE: "false"})


@pytest.mark.parametrize(
    ("objects", "points", "names", "why"),
    [
        pytest.param([TWO, ASKS], {}, ["l-0"], "", id="one is enough"),
        pytest.param([TWO, LARGE], {}, ["l-1", "l-0"], "", id="both, the more important first"),
        pytest.param([KEPT, ASKS], {}, [], "not enough resources: requested <cpu 1000.00, memory 0.00, pods 1.00>, ",
                     id="none may go"),
        pytest.param([ASKS], {}, [], "no preemption victims found for incoming pod", id="none is there"),
        pytest.param([TWO, ASKS], {"simulate_remove_task": refusing("l-0")}, [], "removing default/l-0 failed",
                     id="a plugin keeps the first"),
        pytest.param([TWO, LARGE], {"simulate_remove_task": refusing("l-1")}, [], "removing default/l-1 failed",
                     id="a plugin keeps the second"),
        pytest.param([TWO, ASKS], {"simulate_remove_task": refusing("l-1")}, ["l-0"], "",
                     id="a plugin keeps a pod that the search does not need"),
        pytest.param([TWO, ASKS], {"simulate_predicate": lambda *_: Reason("too close")}, [], "too close",
                     id="filters refuse in any case"),
        pytest.param([TWO, ASKS], refused_without(2), ["l-1", "l-0"], "", id="filters refuse until both are gone"),
        pytest.param([TWO, ASKS], {"simulate_allocatable": lambda *_: False}, ["l-1", "l-0"], "",
                     id="the quota refuses in any case, which the action has asked before"),
        pytest.param([TWO, ASKS], {**refused_without(1), "simulate_add_task": lambda *_: Reason("no way back")},
                     ["l-0"], "", id="a pod that cannot come back is not reprieved"),
    ],
)  # fmt: skip
def test_a_dry_run_names_the_victims_of_a_node_or_the_reason_for_none(objects, points, names, why):
    found, said = on_node(*objects, **points)
    assert (found, said[: len(why)], bool(said)) == (names, why, bool(why))


def test_where_all_are_reprieved_the_node_is_none():
    """Filters refuse the node at first, whichever pods go, and later admit the pod while all of them are there."""
    asked = []

    def refuse(*_):
        asked.append(1)
        return Reason("not yet") if len(asked) < 2 else None

    objects = running("l", 1), waiting("x", 1)
    assert on_node(*objects, simulate_predicate=refuse) == ([], 'expected at least one victim pod on node "n1"')


@pytest.mark.parametrize(("percentage", "tried"), [(34, ["n1", "n2"]), (67, ["n1", "n2", "n3"]), (0, ["n1", "n2"])])
def test_nodes_are_tried_until_enough_have_victims_and_why_the_others_have_none_is_said(percentage, tried):
    """On n1 all stay; as many of the three as the percentage says must have victims, at least one."""
    objects = running("k", 1, annotations={PREEMPTABLE: "false"}), running("a", 1, "n2"), running("b", 1, "n3")
    with fight(*objects, waiting("x", 1), cpu=1, nodes=3, text=AWARE).open() as session:
        task, job = task_of(session, "x-0"), session.jobs["default/x"]
        search = Search(session, job, PREEMPT, lambda other: other is not job, minimal=True)
        dry_run = DryRun(search, Numbers(percentage, 1, 100))
        found, said = dry_run.candidates(task, search.hoped(task), search.reach(task))
        names = session.table.statics.names
    assert sorted([*(names[each.row] for each in found), *said]) == tried
    assert {name: why.partition(":")[0] for name, why in said.items()} == {"n1": "not enough resources"}


def test_what_the_log_says_of_a_search():
    kept = running("k", 1, annotations={PREEMPTABLE: "false"})
    lines = fight(kept, running("l", 1, "n2"), waiting("x", 1), cpu=1, nodes=2, text=AWARE).logged(4)
    found = [line for line in lines if line.startswith("allVictims")]
    assert found[:2] == ["allVictims: []", "allVictims: [default/l-0]"]
    lack = "not enough resources: requested <cpu 1000.00, memory 0.00, pods 1.00>, but future idle"
    assert any(line.startswith(f"Node <n1> is no candidate for Task <default/x-0>: {lack}") for line in lines)
    enough = "Pod default/x-0 can be scheduled on node n2 after preempt default/l-0, stop evicting more pods"
    assert lines.count(enough) == 1


@pytest.mark.parametrize("compat", [False, True])
def test_the_node_on_which_room_is_made_is_nominated(compat):
    plan = fight(running("l", 4), waiting("x", 1), text=AWARE, compat=compat).cycle()
    assert (len(evicted(plan)), nominated(plan)) == (1, {"x-0": "n1"})


def test_why_no_node_was_found_stands_in_the_log():
    kept = running("k", 1, annotations={PREEMPTABLE: "false"})
    lines = fight(kept, waiting("x", 1), cpu=1, text=AWARE).logged(3)
    failed = [line for line in lines if "failed to preempt" in line]
    assert failed
    assert all("the status of the nodes are {'n1': 'not enough resources" in line for line in failed)


@pytest.mark.parametrize(
    ("starts", "best"), [([(10, 20), (15, 15)], 1), ([(10, 20), (5, 30)], 0), ([(None, 10), (20, None)], 1)]
)
def test_of_equal_nodes_the_one_whose_first_victim_started_last_is_chosen(starts, best):
    """Pods that have not started count as starting now, at 100."""
    nodes: list[Any] = [
        SimpleNamespace(victims=[SimpleNamespace(priority=1, start_time=start) for start in both]) for both in starts
    ]
    assert choose(nodes, now=100.0) is nodes[best]
