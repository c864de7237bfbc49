"""Which node costs the fewest victims for each pod that its job still needs, and which victims are reprieved."""

from __future__ import annotations

from dataclasses import replace

import pytest

from stromboli.framework.config.gates import PIPELINED_STATE
from stromboli.narration.observe import SILENT, Counting
from stromboli.preemption.reprieve import Reprieve
from stromboli.testing.builders import node, pod, pod_group, queue
from tests.acceptance.bench import Bench, conf, task_of
from tests.acceptance.fights import CLASSES, TOPOLOGY, evicted, reserved, running, waiting

TEXT = conf("conformance gang priority", "predicates", actions="preempt")

NEEDED = [
    pytest.param(1, 4, 0, ["a-1"], id="one pod: the first node of those that cost one victim"),
    pytest.param(2, 4, 0, ["b-0"], id="two pods: one victim has room for both"),
    pytest.param(2, 4, 1, ["a-1"], id="two pods, of which one runs"),
    pytest.param(3, 4, 1, ["b-0"], id="three pods, of which one runs"),
    pytest.param(3, 4, 0, ["b-0", "a-1"], id="three pods: the first two have room, and one is left"),
    pytest.param(4, 4, 0, ["b-0", "c-0"], id="four pods: two and two"),
]


@pytest.mark.parametrize(("least", "pods", "run", "victims"), NEEDED)
def test_a_large_victim_goes_where_its_job_needs_all_of_its_room(least, pods, run, victims):
    """n1 has two victims of a core each; n2 and n3 have one of two cores each; n4 is full of what stays."""
    gang = [pod_group("x", min_member=least, phase="Running" if run else "Inqueue", priorityClassName="high"),
            *(pod(f"x-{i}", group="x", cpu=1, memory=0, priority=10) for i in range(pods)),
            *(pod(f"x-r{i}", group="x", cpu=1, memory=0, priority=10, on="n4") for i in range(run))]  # fmt: skip
    machines = [*(node(f"n{i}", cpu=2) for i in (1, 2, 3)), node("n4", cpu=run)]
    crowd = [*running("a", 2, "n1"), *running("b", 1, "n2", cpu=2), *running("c", 1, "n3", cpu=2)]
    plan = Bench([*machines, *CLASSES, *crowd, *gang], TEXT).cycle()
    assert evicted(plan) == victims
    assert len(reserved(plan)) == least - run


@pytest.mark.parametrize("observer", [SILENT, Counting()])
def test_nodes_without_victims_do_not_count_among_those_compared(observer):
    """Two of ten nodes run pods that stay; an observer, which hears of those nodes too, does not change the choice."""
    crowd = [*running("stays-0", 1, "n0", cls="high"), *running("stays-1", 1, "n1", cls="high")]
    for number in range(2, 10):
        rank = "low" if number == 9 else "mid"
        crowd += running(f"v-{number}", 1, f"n{number}", cls=rank, priorities=[1 if rank == "low" else 5])
    objects = [*(node(f"n{number}", cpu=1) for number in range(10)), *CLASSES, *crowd, *waiting("x", 1)]
    assert evicted(Bench(objects, TEXT).cycle(observer)) == ["v-9-0"]


@pytest.mark.parametrize("more", ["", TOPOLOGY % ""], ids=["by turns", "by dry runs"])
@pytest.mark.parametrize("lasting", [True, False])
@pytest.mark.parametrize("within", [True, False])
def test_a_small_victim_is_reprieved_where_a_large_one_that_goes_too_makes_all_the_room(within, lasting, more):
    """The small one is asked first, being the least important, and its room alone is too little.

    Where reservations do not outlive the session, nodes are not compared by what they cost.
    """
    small, large = (pod(f"v-{cpu}", group="v", on="n1", cpu=cpu, memory=0, priority=cpu) for cpu in (1, 2))
    asking = pod("x-0", group="v" if within else "x", cpu=2, memory=0, priority=10)
    groups = [pod_group("v", min_member=3 if within else 0, phase="Running", priorityClassName="low"),
              pod_group("x", min_member=0 if within else 1, priorityClassName="high")]  # fmt: skip
    text = conf("[{name: gang, enablePreemptable: false}]", "priority", "predicates", actions="preempt", more=more)
    bench = Bench([node("n1", cpu=3), *CLASSES, *groups, small, large, asking], text)
    if not lasting:
        bench.config = replace(bench.config, features=bench.config.features - {PIPELINED_STATE})
    assert evicted(bench.cycle()) == ["v-2"]


ROOM = [
    pytest.param("1Gi", 1, "n1", ["v-0"], id="its memory is free, a core is not"),
    pytest.param("1Gi", 2, "n1", [], id="it fits exactly next to the pod that waits"),
    pytest.param("1Gi", 1, "n2", [], id="nothing waits on its node"),
    pytest.param("2Gi", 2, "n2", ["v-0"], id="its node has less memory than it takes, whatever waits where"),
]


@pytest.mark.parametrize(("memory", "cpu", "on", "gone"), ROOM)
def test_a_victim_is_reprieved_where_all_of_it_has_room(memory, cpu, on, gone):
    objects = [node("n1", cpu=cpu, memory="1Gi"), node("n2"), pod_group("v"),
               pod("v-0", group="v", on="n1", cpu=1, memory=memory),
               pod_group("x"), pod("x-0", group="x", cpu=1, memory=0)]  # fmt: skip
    with Bench(objects, TEXT).open() as session:
        victim, waiting = task_of(session, "v-0"), task_of(session, "x-0")
        with session.statement() as plan:
            plan.evict(victim, "test")
            plan.pipeline(waiting, on, True)
            Reprieve(session, session.jobs["default/x"], plan, quota=False).run([[victim]], lambda: True)
            assert [task.name for task in plan.evicted] == gone
            assert waiting.node_name == on


@pytest.mark.parametrize(("works", "gone"), [(True, []), (False, ["v-0"])])
def test_a_victim_is_reprieved_only_where_what_is_reserved_is_still_enough(works, gone):
    objects = [node("n1", cpu=2), pod_group("v"), pod("v-0", group="v", on="n1"), pod_group("x"), pod("x-0", group="x")]
    with Bench(objects, TEXT).open() as session:
        victim = task_of(session, "v-0")
        with session.statement() as plan:
            plan.evict(victim, "test")
            plan.pipeline(task_of(session, "x-0"), "n1", True)
            Reprieve(session, session.jobs["default/x"], plan, quota=False).run([[victim]], lambda: works)
            assert [task.name for task in plan.evicted] == gone
            assert task_of(session, "x-0").eviction_occurred is not works


@pytest.mark.parametrize(
    "other", [[], running("z", 1, "n3", queue="r", priorities=[-1])], ids=["alone", "and-a-lower-one"]
)
@pytest.mark.parametrize("empty", [0, 6, 7, 20])
def test_a_node_that_has_room_already_costs_the_victim_that_its_queue_needs(empty, other):
    """The queue may have no more: one of its pods must go wherever the preemptor does, and the less important goes."""
    objects = [
        *CLASSES, *(node(f"e{number}", cpu=1) for number in range(empty)), node("n1", cpu=1),
        node("n2", cpu=2), node("n3", cpu=1), queue("q", capability={"cpu": 2}), queue("r"),
        *running("a", 1, "n1", queue="q", priorities=[1]), *running("b", 1, "n2", queue="q", priorities=[50]),
        *other, *waiting("x", 1, queue="q"),
    ]  # fmt: skip
    text = conf("conformance gang priority", "predicates capacity", actions="preempt")
    assert evicted(Bench(objects, text).cycle()) == ["a-0"]
