"""How many nodes are compared before pods are evicted, and what ends a run of pods that evict."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from stromboli.preemption.eviction_policy import PREEMPT
from stromboli.preemption.node_choice import COMPARED
from stromboli.preemption.runs import Runs
from stromboli.testing.builders import node, pod, pod_group
from tests.acceptance.bench import GPU, Bench, conf, task_of
from tests.acceptance.fights import CLASSES, evicted, reserved, running, waiting

TEXT = conf("conformance gang priority", actions="preempt")


def spread(priorities: Sequence[int]) -> Bench:
    """Nodes n01, n02, … with a pod of each priority; x wants the room of one."""
    machines = [node(f"n{i:02}", cpu=1) for i in range(1, len(priorities) + 1)]
    there = [running(f"v{i:02}", 1, f"n{i:02}", priorities=[each]) for i, each in enumerate(priorities, 1)]
    return Bench([*machines, *CLASSES, *(one for job in there for one in job), *waiting("x", 1, priority=90)], TEXT)


@pytest.mark.parametrize(
    ("priorities", "place"),
    [
        pytest.param([50] * (COMPARED - 1) + [20, 1], COMPARED, id="the last node that is compared"),
        pytest.param([50] * COMPARED + [20, 1], 1, id="the first one after those"),
        pytest.param([50] * 3 + [1, 1], 4, id="the first of those that cost least"),
        pytest.param([50, 20, 50, 20] + [50] * COMPARED + [1], 2, id="the first of equal ones"),
    ],
)
def test_of_so_many_nodes_the_one_with_the_least_important_victim_is_taken(priorities: list[int], place: int) -> None:
    plan = spread(priorities).cycle()
    assert (reserved(plan), evicted(plan)) == ({"x-0": f"n{place:02}"}, [f"v{place:02}-0"])


@pytest.mark.parametrize(
    ("cpu", "pods", "victims", "wanted", "found"),
    [
        pytest.param(4, 9, [(1, 1)] * 4, 1, 4, id="each makes the room of one"),
        pytest.param(5, 9, [(1, 1)] * 4, 1, 0, id="there is room already"),
        pytest.param(6, 9, [(2, 1)] * 3, 1, 1, id="the first makes room for two"),
        pytest.param(3, 9, [(2, 1), (1, 1)], 2, 1, id="the second one is too small"),
        pytest.param(4, 9, [(1, 1)] * 4, 2, 0, id="one is not enough"),
        pytest.param(4, 9, [(1, 1), (1, 1), (1, 5), (1, 1)], 1, 2, id="the third one is more important"),
        pytest.param(4, 9, [(1, 1), (0, 1), (1, 1)], 1, 0, id="there is room for another pod"),
        pytest.param(4, 4, [(1, 1)] * 4, 1, 4, id="as many pods as the node may have"),
        pytest.param(4, 3, [(1, 1)] * 4, 1, 0, id="more pods than the node may have"),
    ],
)
def test_a_run_goes_on_as_long_as_each_victim_is_needed_enough_and_of_the_least_importance(
    cpu: int, pods: int, victims: list[tuple[int, int]], wanted: int, found: int
) -> None:
    """Of victims the cores and the priority are given, in the order of their eviction."""
    jobs = [running(f"v{i}", 1, "n", cpu=cores, priorities=[rank]) for i, (cores, rank) in enumerate(victims)]
    objects = [node("n", cpu=cpu, pods=pods), *CLASSES, *(one for job in jobs for one in job)]
    with Bench([*objects, *waiting("x", 1, cpu=wanted)], TEXT).open() as session:
        runs, task = Runs(session, session.jobs["default/x"], PREEMPT), task_of(session, "x-0")
        named = [task_of(session, f"v{i}-0") for i in range(len(victims))]
        assert runs._in_turn(task, named, 0, session.axes.deciding(task.request)) == named[:found]


@pytest.mark.parametrize(("gpus", "found"), [(1, 2), (0, 0)])
def test_a_node_that_is_short_of_something_else_gets_no_run(gpus: int, found: int) -> None:
    """A pod holds a GPU there, which the node may have no longer."""
    holder = [pod_group("o", phase="Running"), pod("o-0", group="o", on="n", cpu=0, memory=0, requests={GPU: 1})]
    jobs = [*running("v0", 1, "n"), *running("v1", 1, "n"), *waiting("x", 1)]
    objects = [node("n", cpu=2, resources={GPU: gpus}), *CLASSES, *holder, *jobs]
    with Bench(objects, TEXT).open() as session:
        runs, task = Runs(session, session.jobs["default/x"], PREEMPT), task_of(session, "x-0")
        named = [task_of(session, f"v{i}-0") for i in range(2)]
        assert runs._in_turn(task, named, 0, session.axes.deciding(task.request)) == named[:found]
