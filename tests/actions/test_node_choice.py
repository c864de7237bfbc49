"""What a node costs: which of its victims go, how many pods they make room for, and what is remembered of room."""

from __future__ import annotations

from typing import Any

import pytest

from stromboli.model.task import GRACE
from stromboli.preemption.eviction_policy import PREEMPT, RECLAIM
from stromboli.preemption.node_choice import FreeRoom, _cost, _evicted, _wanted, fewest
from stromboli.preemption.victim_search import Search
from stromboli.reservations.terminating import find
from stromboli.testing.builders import node, pod, pod_group
from tests.acceptance.bench import Bench, conf, task_of
from tests.acceptance.fights import CLASSES, fight, running, waiting

TEXT = conf("conformance gang priority", "predicates", actions="preempt")


def looking(victims, cpu=1, room=0, asks=None):
    """A cluster of one node with victims of (cores, priority), and the pod x-0 that asks for so much."""
    there = [pod(f"v-{number}", group="v", on="n1", cpu=cores, memory=0, priority=priority)
             for number, (cores, priority) in enumerate(victims)]  # fmt: skip
    size = sum(cores for cores, _ in victims) + room
    group = pod_group("v", min_member=0, phase="Running", priorityClassName="low")
    return Bench([node("n1", cpu=size), *CLASSES, group, *there, *(asks or waiting("x", 1, cpu=cpu))], TEXT)


def search_of(session, policy=PREEMPT):
    job = session.jobs["default/x"]
    return Search(session, job, policy, lambda other: other is not job, minimal=True), task_of(session, "x-0")


@pytest.mark.parametrize(
    ("victims", "cpu", "room", "wanted", "gone"),
    [
        pytest.param([(1, 1)], 1, 1, 1, [], id="there is room"),
        pytest.param([(1, 1)], 1, 1, 2, [], id="there is room for one of two"),
        pytest.param([(1, 1), (1, 1)], 1, 0, 1, [0], id="the first is enough"),
        pytest.param([(1, 1), (2, 1)], 2, 0, 1, [1], id="a larger one instead of two"),
        pytest.param([(1, 1), (1, 1), (1.5, 1)], 2, 0, 1, [0, 1], id="the first two, where no fewer do"),
        pytest.param([(1, 1), (1, 1), (2, 5)], 2, 0, 1, [0, 1], id="not a more important one instead of two"),
        pytest.param([(1, 1), (1, 5), (2, 5)], 2, 0, 1, [2], id="an equally important one instead of two"),
        pytest.param([(1, 1), (2, 1)], 1, 0, 2, [1], id="the one that makes room for two"),
        pytest.param([(2, 1), (1, 1), (3, 1)], 1, 0, 2, [0], id="of those that make room for two the first"),
        pytest.param([(1, 1), (2, 1)], 1, 0, 3, [1], id="the one that makes room for most of three"),
        pytest.param([(1, 1), (1, 1)], 3, 0, 1, None, id="all are not enough"),
    ],
)  # fmt: skip
def test_which_victims_of_a_node_go(victims, cpu, room, wanted, gone):
    with looking(victims, cpu, room).open() as session:
        search, task = search_of(session)
        named = [task_of(session, f"v-{number}") for number in range(len(victims))]
        found = fewest(search, task, 0, named, wanted)
        assert (None if found is None else [int(each.name[2:]) for each in found]) == gone


@pytest.mark.parametrize(
    ("chosen", "wanted", "cost"),
    [
        pytest.param(None, 1, (True, False, 0, 0.0, 0), id="not enough"),
        pytest.param([], 1, (False, False, 0, 0.0, 0), id="none"),
        pytest.param([1], 1, (False, False, 7, 1.0, 0), id="one"),
        pytest.param([0, 1], 1, (False, False, 7, 2.0, 0), id="two, of which the more important counts"),
        pytest.param([1, 0], 1, (False, False, 7, 2.0, 0), id="in whatever order"),
        pytest.param([0], 2, (False, False, 3, 0.5, 0), id="one for two"),
        pytest.param([0], 3, (False, False, 3, 0.5, 0), id="one for two of three"),
        pytest.param([1], 2, (False, False, 7, 1.0, 0), id="one for one of two"),
        pytest.param([0, 1], 3, (False, False, 7, 2 / 3, 0), id="two for three"),
        pytest.param([2], 1, (False, False, 1, 1.0, 70), id="one that takes long to end"),
        pytest.param([0, 2], 1, (False, False, 3, 2.0, 70), id="the slowest counts"),
    ],
)  # fmt: skip
def test_what_the_victims_of_a_node_cost(chosen, wanted, cost):
    bench = looking([(2, 3), (1, 7)])
    slow = pod("v-2", group="v", on="n1", cpu=1, memory=0, priority=1, terminationGracePeriodSeconds=GRACE + 70)
    bench.tell(node("n1", cpu=4), slow)
    with bench.open() as session:
        search, task = search_of(session)
        victims = None if chosen is None else [task_of(session, f"v-{number}") for number in chosen]
        assert _cost(search, task, 0, victims, wanted) == cost


@pytest.mark.parametrize(
    ("policy", "chosen", "found"),
    [
        (PREEMPT, None, None), (PREEMPT, [1], [1]), (PREEMPT, [], [0]), (RECLAIM, [], []), (RECLAIM, None, None),
        (RECLAIM, [1], [1]),
    ],
)  # fmt: skip
def test_where_there_is_room_already_the_first_victim_goes_only_if_predicates_are_checked(policy, chosen, found):
    with looking([(1, 1), (1, 1)]).open() as session:
        search, _ = search_of(session, policy)
        tasks = [task_of(session, f"v-{number}") for number in (0, 1)]
        said = _evicted(search, tasks, None if chosen is None else [tasks[number] for number in chosen])
        assert said == (None if found is None else [tasks[number] for number in found])
        assert _evicted(search, [], []) == (None if policy is PREEMPT else [])


@pytest.mark.parametrize(
    ("victim", "pods", "least", "unlike", "wanted"),
    [
        (3, 4, 3, 0, 3), (3, 4, 2, 0, 2), (2, 4, 3, 0, 2), (1, 4, 3, 0, 1), (3, 4, 0, 0, 1), (3, 4, 4, 3, 1),
        (3, 4, 4, 2, 2),
    ],
)  # fmt: skip
def test_how_many_pods_like_one_its_job_still_needs(victim, pods, least, unlike, wanted):
    """As far as the largest victim could have room for them; ``unlike`` of them ask for more."""
    group = pod_group("x", min_member=least, priorityClassName="high")
    asks = [pod(f"x-{n}", group="x", cpu=1, memory=0 if n < pods - unlike else "1Mi") for n in range(pods)]
    with looking([(victim, 1)], asks=[group, *asks]).open() as session:
        search, task = search_of(session)
        assert _wanted(search, task) == wanted


def noting(asked, function):
    """``function``, noting with what it is called."""

    def call(*arguments):
        asked.append(arguments)
        return function(*arguments)

    return call


@pytest.mark.parametrize(
    ("steps", "searches"),
    [
        pytest.param([], 1, id="nothing has moved"),
        pytest.param(["n2"], 3, id="room has come that is enough, which the choice of a node asks once more"),
        pytest.param(["n1"], 1, id="room has come that is too little"),
        pytest.param(["n1", "n1"], 1, id="and again"),
        pytest.param(["other"], 2, id="a pod of another kind is asked about"),
    ],
)
def test_where_room_is_sought_in_vain_it_is_sought_again_once_it_may_have_come(monkeypatch, steps, searches):
    """Room for two cores: on n1 pods of half a core go, which is too little, on n2 one of two cores goes."""
    crowd = [*running("a", 4, "n1", cpu="500m"), *running("b", 1, "n2", cpu=2)]
    asked: list[Any] = []
    monkeypatch.setattr("stromboli.preemption.node_choice.find", noting(asked, find))
    bench = fight(
        crowd, waiting("x", 1, cpu=2), waiting("y", 1, cpu=2, requests={"memory": "1Mi"}), cpu=2, nodes=2, text=TEXT
    )
    with bench.open() as session, session.statement() as plan:
        room, task = FreeRoom(session), task_of(session, "x-0")
        looks: list[Any] = []
        rows = type(session.table.view())
        monkeypatch.setattr(rows, "fitting", noting(looks, rows.fitting))
        assert (room.find(task), room.is_full) == (None, True)
        went = 0
        for step in steps:
            if step == "other":
                assert room.find(task_of(session, "y-0")) is None
                continue
            plan.evict(task_of(session, f"a-{went}" if step == "n1" else "b-0"), "test")
            went += 1
            assert room.find(task) == (1 if step == "n2" else None)
            assert room.is_full is (step != "n2")
        if not steps:
            assert room.find(task) is None
        assert len(looks) == searches
        assert len(asked) == ("n2" in steps)
