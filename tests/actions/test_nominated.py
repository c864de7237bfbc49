"""Pods that were given a node by preempt before, and wait again."""

from __future__ import annotations

import pytest

from stromboli.testing.builders import node, pod, pod_group
from tests.acceptance.bench import Bench, binds, conf
from tests.acceptance.fights import evicted, fight, reserved, running, waiting

TEXT = conf("conformance gang priority", "predicates", actions="allocate, preempt")


@pytest.mark.parametrize(("number", "goes"), [(1, 0), (2, 1), (3, 2)])
def test_a_gang_goes_on_where_some_of_its_victims_have_left_and_others_were_never_told(number: int, goes: int) -> None:
    """One of them could have the room that is there; as all are needed that does not keep the others from making it."""
    plan = fight(running("l", 3), waiting("h", number, nominated="n1"), text=TEXT).cycle()
    assert len(evicted(plan)) == goes
    assert len(reserved(plan)) + len(plan.binds) == number
    assert evicted(fight(running("l", 3), waiting("h", 2, nominated="n1"), text=TEXT, compat=True).cycle()) == []


@pytest.mark.parametrize(("compat", "goes"), [(False, ["l-3"]), (True, [])])
def test_a_pod_whose_nominated_node_is_gone_may_preempt_elsewhere(compat: bool, goes: list[str]) -> None:
    crowd = running("l", 4), waiting("h", 1, nominated="gone")
    assert evicted(fight(*crowd, text=TEXT, compat=compat).cycle()) == goes


@pytest.mark.parametrize("name", ["n0", "n1"])
def test_a_pod_goes_to_the_node_that_was_nominated_for_it_though_another_is_better(name: str) -> None:
    """Half of that node is taken, and the other one is free."""
    objects = [node("n0", cpu=4), node("n1", cpu=4), pod("busy", on=name, cpu=2), pod_group("g")]
    for nominated, where in ((name, name), ("", {"n0": "n1", "n1": "n0"}[name])):
        waits = pod("p", group="g", cpu=1, nominated=nominated)
        assert binds(Bench([*objects, waits], conf("gang", "predicates nodeorder")).cycle()) == {"p": where}
