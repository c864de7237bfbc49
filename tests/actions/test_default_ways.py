"""Ways of ours that nothing but default mode shows: each fails here where its rule is broken."""

from __future__ import annotations

from copy import copy
from functools import cmp_to_key
from pathlib import Path

import pytest

from stromboli.framework.session.session import Session
from stromboli.framework.session.victim_order import VictimOrder
from stromboli.model.job import RUNNING
from stromboli.plugin import Plugin, task_order
from stromboli.testing.builders import node, pod, pod_group, queue
from tests.acceptance.bench import Bench, binds, conf, task_of
from tests.acceptance.fights import evicted, fight, nominated, running, waiting
from tests.acceptance.stories import TIERS, Story
from tests.support.live_world import LiveWorld
from tests.support.virtual import run

QUEUES = [queue("q1"), queue("q2")]


# ---------------------------------------------------------------------- minimal victims


def unequal(action: str, gate: bool, *more: str) -> Story:
    """A pod of one core, the first to go, and one of two cores on a full node; a waiting pod needs two."""
    own = "q1" if action == "preempt" else "q2"
    crowd = [
        pod_group("low", min_member=0, queue="q1", phase="Running", priorityClassName="low"),
        pod("a", group="low", cpu=1, memory=0, priority=1, on="n1"),
        pod("b", group="low", cpu=2, memory=0, priority=5, on="n1"),
    ]
    text = conf("conformance gang priority", "predicates", actions=f"allocate, {action}", more="\n".join(more))
    return Story(QUEUES, crowd, waiting("h", 1, cpu=2, queue=own), text=text, cpu=3, gate=gate)


@pytest.mark.parametrize("action", ["preempt", "reclaim"])
def test_victims_chosen_before_the_decisive_one_are_spared(action: str) -> None:
    assert evicted(unequal(action, gate=False).cycle()) == ["b"]
    unwanted = f"configurations: [{{name: {action}, arguments: {{minimal-victims: false}}}}]"
    assert evicted(unequal(action, False, unwanted).cycle()) == ["a", "b"]


# ---------------------------------------------------------------------- the order of victims without keys


class ByName(Plugin):
    """Compares tasks by their names, and gives no key: tasks have their turns in the order of their names."""

    name = "byname"

    @task_order
    def by_name(self, left, right):
        return (left.name > right.name) - (left.name < right.name)


def mixed(*plugins: type[Plugin], indexed: bool = False) -> Bench:
    """Two jobs in two queues; some tasks have an index, by their names, and others none, if ``indexed``."""
    jobs = [
        pod_group(name, queue=home, phase="Running", priorityClassName=rank, created=created)
        for name, home, rank, created in (("x", "q1", "high", 1), ("y", "q1", "low", 2), ("z", "q2", "low", 3))
    ]
    pods = [
        pod(f"{name}-w-{i}" if indexed and i else f"{name}-{i}", group=name, on="n1", created=3 - i)
        for name in "xyz"
        for i in range(3)
    ]
    names = " ".join(plugin.name for plugin in plugins)
    return Bench([node("n1", cpu=9), *QUEUES, *jobs, *pods], conf(f"priority {names}", "proportion"), *plugins)


def by_hand(session: Session, queue_name: str) -> tuple[list[str], list[str]]:
    """The order of all tasks for a preemptor of a queue, and the same as the rule of two tasks gives it."""
    tasks = [task for job in session.jobs.peek() for task in job.tasks.values()][::-1]
    order = VictimOrder(session, session.queues[queue_name])
    compared = sorted(tasks, key=cmp_to_key(order.compare))
    return [task.name for task in order.sorted(tasks)], [task.name for task in compared]


@pytest.mark.parametrize("indexed", [False, True])
@pytest.mark.parametrize("plugins", [(), (ByName,)], ids=["keys", "comparison"])
def test_victims_stand_in_one_order_with_keys_and_without(plugins: tuple[type[Plugin], ...], indexed: bool) -> None:
    with mixed(*plugins, indexed=indexed).open() as session:
        assert (session.hooks.task_keys is None) is bool(plugins)
        found, compared = by_hand(session, "q2")
        assert found == compared


def test_the_order_of_victims_follows_each_eviction() -> None:
    jobs = [pod_group(name, queue="q1", phase="Running", created=number) for number, name in enumerate("xyz")]
    pods = [pod(f"{name}-{i}", group=name, on="n1") for size, name in enumerate("xyz", 3) for i in range(size)]
    with Bench([node("n1", cpu=20), *QUEUES, *jobs, *pods], conf("priority gang", "drf")).open() as session:
        richest = []
        with session.statement() as statement:
            for _ in range(6):
                found, compared = by_hand(session, "q2")
                assert found == compared
                left = [task for job in session.jobs.peek() for task in job.of(RUNNING)]
                (victim, *_) = VictimOrder(session, session.queues["q2"]).sorted(left)
                richest.append(victim.name)
                statement.evict(victim, "test")
        assert richest == ["z-4", "z-3", "y-3", "z-2", "y-2", "x-2"]
        found, compared = by_hand(session, "q2")
        assert found == compared


def test_without_keys_the_task_whose_turn_comes_last_goes_first() -> None:
    with mixed(ByName).open() as session:
        tasks = [task_of(session, f"x-{i}") for i in (1, 0, 2)]
        assert [task.name for task in session.tasks_in_turn(tasks)] == ["x-0", "x-1", "x-2"]
        assert [task.name for task in VictimOrder(session, None).sorted(tasks)] == ["x-2", "x-1", "x-0"]


def test_a_task_of_an_unknown_job_goes_first() -> None:
    with mixed().open() as session:
        known, stray = task_of(session, "x-0"), copy(task_of(session, "x-1"))
        stray.job = "default/unknown"
        order = VictimOrder(session, None)
        assert (order.compare(stray, known), order.compare(known, stray)) == (-1, 1)
        assert order.sorted([known, stray]) == [stray, known]


def test_tasks_without_an_index_follow_the_rule_of_two_among_those_that_have_one() -> None:
    with mixed(indexed=True).open() as session:
        tasks = list(session.jobs["default/y"].tasks.values())
        assert 0 < sum(task.index >= 0 for task in tasks) < 3
        wanted = session.hooks.orders["task_order"].sorted(tasks)
        assert session.tasks_in_turn(tasks) == wanted


class ByRank(Plugin):
    """A key of numbers for important tasks, and of names for others."""

    name = "byrank"

    @task_order
    def by_rank(self, left, right):
        mine, other = self.rank(left), self.rank(right)
        return (mine > other) - (mine < other)

    @task_order.key
    def rank(self, task):
        return -task.created if task.priority else task.name


def test_keys_need_not_compare_where_an_earlier_one_tells_tasks_apart() -> None:
    pods = [pod(f"g-{i}", group="g", cpu=1, priority=10 * (i % 2), created=i) for i in range(4)]
    bench = Bench([node("n", cpu=8), pod_group("g"), *pods], conf("priority byrank", "predicates"), ByRank)
    plan = bench.cycle()
    assert (list(binds(plan)), plan.inconsistencies) == (["g-3", "g-1", "g-0", "g-2"], [])


# ---------------------------------------------------------------------- rows of the compatibility table


@pytest.mark.parametrize(("compat", "cpu"), [(False, "3"), (True, "5")])
def test_a_job_in_the_root_queue_counts_once_in_its_status(compat: bool, cpu: str) -> None:  # root-status-twice
    jobs = [*running("r", 2, queue="root"), *running("a", 1, queue="q1")]
    bench = Bench([node("n1", cpu=9), queue("root"), *QUEUES, *jobs], conf("gang", "predicates"), compat=compat)
    told = {update.name: update.allocated for update in bench.cycle().queues}
    assert told["root"]["cpu"] == cpu


@pytest.mark.parametrize(("compat", "nodes"), [(False, {"h-0": "n1"}), (True, {})])
def test_a_node_is_nominated_where_a_pod_that_asks_for_nothing_goes(compat: bool, nodes: dict[str, str]) -> None:
    """nominated-for-pods: a place among the pods of a node is room, too."""
    text = conf("conformance gang priority", "predicates", actions="allocate, preempt")
    crowd = running("l", 2, cpu=0, priorities=(1, 2)), waiting("h", 1)
    plan = fight(*crowd, text=text, pods=2, compat=compat).cycle()
    assert (len(evicted(plan)), nominated(plan)) == (1, nodes)


@pytest.mark.parametrize("compat", [False, True])
def test_what_prometheus_does_not_answer_is_unknown_and_not_0(tmp_path: Path, compat: bool) -> None:  # usage-stamp
    async def main() -> bool:
        (tmp_path / "conf").write_text(conf(*TIERS, more="compat: volcano" if compat else ""))
        return LiveWorld().scheduler(str(tmp_path / "conf"))._poller()._fills()

    assert run(main()) is compat
