"""What the search for victims passes over: a pod like the one just tried in vain, nodes without pods to evict."""

from __future__ import annotations

import pytest

from stromboli.framework.books.candidates import FEW
from stromboli.preemption.eviction_policy import PREEMPT as PREEMPTING
from stromboli.preemption.eviction_policy import RECLAIM as RECLAIMING
from stromboli.preemption.node_order import KeptOrder, sample
from stromboli.preemption.victim_search import MAX_FAILED_NODES, Search
from stromboli.testing.builders import node, pod, pod_group, queue
from tests.acceptance.bench import Bench, answering, conf, task_of
from tests.acceptance.fights import CLASSES, RECLAIM, evicted, fight, reserved, running, waiting


def test_a_pod_that_finds_no_room_does_not_keep_a_smaller_one_from_trying():
    gang = [pod_group("x", min_member=1, priorityClassName="high"),
            *(pod(f"x-{i}", group="x", cpu=cpu, memory=0, priority=10) for i, cpu in enumerate((5, 1)))]  # fmt: skip
    plan = fight(running("l", 4), gang).cycle()
    assert len(evicted(plan)) == 1
    assert reserved(plan) == {"x-1": "n1"}


class Asked:
    """Counts how often plugins are asked for victims; names those of ``names``, or all candidates if there are none."""

    def __init__(self, *names):
        self.names, self.times = names, 0
        self.plugin = answering("asked", preemptable=self.name)

    def name(self, preemptor, candidates):
        self.times += 1
        return [task for task in candidates if not self.names or task.name in self.names]


def times(asked, *objects, nodes=1):
    machines = [node(f"n{i + 1}", cpu=1) for i in range(nodes)]
    bench = Bench([*machines, *CLASSES, *(each for group in objects for each in group)],
                  conf("asked gang priority", actions="preempt"), asked.plugin)  # fmt: skip
    bench.cycle()
    return asked.times


PODS = [
    pytest.param([{}, {}, {}], 1, id="all alike: once"),
    pytest.param([{}, {"labels": {"a": "b"}}, {}], 3, id="labels"),
    pytest.param([{}, {"annotations": {"a": "b"}}, {}], 3, id="annotations"),
    pytest.param([{"priority": 9}, {"priority": 8}, {"priority": 8}], 2, id="priority"),
    pytest.param([{"memory": 0}, {"memory": "1Mi"}, {"memory": "1Mi"}], 2, id="request"),
    pytest.param([{"annotations": {"volcano.sh/task-spec": role}} for role in "aab"], 2, id="role"),
]


@pytest.mark.parametrize(("pods", "expected"), PODS)
def test_a_pod_like_the_last_one_is_not_tried_again(pods, expected):
    asked = Asked("no such pod")
    made = [pod(f"x-{i}", group="x", **{"memory": 0, "priority": 10, **each}) for i, each in enumerate(pods)]
    gang = [pod_group("x", min_member=3, priorityClassName="high"), *made]
    assert times(asked, running("l", 1), gang) == expected


@pytest.mark.parametrize(("nodes", "expected"), [(MAX_FAILED_NODES, 1), (MAX_FAILED_NODES - 1, 2)])
def test_after_many_fruitless_nodes_jobs_without_candidates_are_not_asked_about(nodes, expected):
    """The job on all nodes can spare one pod, for x-0; x-1 looks everywhere without success, so x-2 need not look."""
    asked = Asked()
    spread = [pod_group("l", min_member=nodes, phase="Running", priorityClassName="low"),
              *(pod(f"l-{i}", group="l", on=f"n{i + 1}", memory=0) for i in range(nodes + 1))]  # fmt: skip
    gang = waiting("x", 3)
    for number, each in enumerate(gang[1:]):
        each["metadata"]["labels"] = {"number": str(number)}  # so that none is like the last one
    assert times(asked, spread, gang, nodes=nodes + 1) == 1 + expected * nodes


QUEUES = [queue("q1"), queue("q2")]
INHABITED = [
    pytest.param(running("a", 1, queue="q1", least=1), {"x-0": "n1"}, id="a pod that gang keeps"),
    pytest.param(running("a", 1, queue="q2", least=0), {}, id="no pod of another queue"),
    pytest.param([], {}, id="no pod"),
]


@pytest.mark.parametrize(("there", "expected"), INHABITED)
@pytest.mark.parametrize("compat", [False, True])
def test_reclaim_takes_idle_room_next_to_a_pod_of_another_queue_whether_it_may_be_evicted_or_not(
    there, expected, compat
):
    """Where reservations are kept it takes any."""
    bench = fight(QUEUES, there, waiting("x", 1, queue="q2", cpu=2), text=RECLAIM, cpu=4, compat=compat)
    plan = bench.cycle()
    assert (evicted(plan), reserved(plan)) == ([], expected if compat else {"x-0": "n1"})


def test_where_a_gang_would_be_placed_is_told_without_victims():
    """x-0 would have room next to a-0, which reclaim need not evict and could not; for x-1 there is none."""
    scene = QUEUES, running("a", 1, queue="q1", least=1), waiting("x", 2, queue="q2", cpu=2)
    text = conf("conformance gang priority proportion", actions="allocate, reclaim")
    said = {update.key: update.message for update in fight(*scene, text=text, cpu=3).cycle().pod_conditions}
    assert said["default/x-0"].endswith("assigned to n1, once resource is released and minAvailable is satisfied")


@pytest.mark.parametrize("policy", [PREEMPTING, RECLAIMING])
@pytest.mark.parametrize("moved", [FEW, FEW + 1])
def test_an_order_of_nodes_that_was_not_kept_up_is_not_kept_later_either(policy, moved):
    """Asked twice, as a search does: for the node of the pod before, and for all nodes."""
    crowd = [each for number in range(FEW + 1) for each in running(f"v{number}", 1, f"n{number + 1}")]
    with fight(crowd, waiting("x", 1), nodes=FEW + 1).open() as session, session.statement() as statement:
        task, job = task_of(session, "x-0"), session.jobs["default/x"]
        search = Search(session, job, policy, lambda other: True, minimal=True)
        order = KeptOrder(search, task, sample(search, task), search.reach(task))
        for number in range(moved):
            statement.evict(task_of(session, f"v{number}-0"), "test")
        assert [order.keep_up(search, task), order.keep_up(search, task)] == [moved == FEW] * 2
