"""Victims in their order: by keys, where all plugins have some, it is the one of pairs."""

from __future__ import annotations

from functools import cmp_to_key
from itertools import chain
from random import Random
from types import SimpleNamespace
from typing import Any

import pytest

from stromboli.framework.session.victim_order import VictimOrder, one_job
from stromboli.testing.builders import node, pod, pod_group, queue
from tests.acceptance.bench import Bench, conf
from tests.acceptance.fights import CLASSES

TEXT = conf("gang priority", "predicates proportion drf")


def crowd(draw: Random, queues: int) -> list[Any]:
    """Jobs of three queues with pods of several priorities and ages."""
    groups = [
        [pod_group(f"g{number}", min_member=0, queue=f"q{draw.randrange(queues)}", phase="Running",
                   priorityClassName=draw.choice(("low", "mid", "high")), created=draw.randrange(3)),
         *(pod(f"g{number}-{each}", group=f"g{number}", on="n1", cpu=draw.choice((1, 2)), memory=0,
               priority=draw.choice((1, 2)), created=draw.randrange(3)) for each in range(draw.choice((1, 2, 3))))]
        for number in range(5)
    ]  # fmt: skip
    return [node("n1", cpu=64), *CLASSES, *(queue(f"q{each}") for each in range(3)), *chain(*groups)]


@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("seed", range(8))
def test_victims_are_in_the_order_of_pairs(seed: int, known: bool) -> None:
    draw = Random(seed)
    with Bench(crowd(draw, 1 + seed % 3), TEXT).open() as session:
        order = VictimOrder(session, session.queues["q0"] if known else None)
        tasks = [task for job in session.jobs.peek() for task in job.tasks.values()]
        draw.shuffle(tasks)
        expected = sorted(tasks, key=cmp_to_key(order.compare))
        waiting = order.priority_queue(expected)
        assert order.sorted(tasks) == [waiting.pop() for _ in tasks] == expected
        for count in (0, 1, 2):
            assert order.sorted(tasks[:count]) == sorted(tasks[:count], key=cmp_to_key(order.compare))


def test_pods_of_jobs_that_are_gone_go_first() -> None:
    with Bench(crowd(Random(1), 2), TEXT).open() as session:
        order = VictimOrder(session, session.queues["q0"])
        tasks = [task for job in session.jobs.peek() for task in job.tasks.values()]
        lost = session.jobs[tasks[-1].job].tasks[tasks[-1].uid]
        lost.job = "default/gone"
        tasks[-1] = lost
        assert order.jobs(tasks) is None
        assert order.sorted(tasks)[0] is lost
        assert (order.compare(lost, tasks[0]) < 0, order.compare(tasks[0], lost) > 0) == (True, True)


def test_queues_are_in_no_order_for_a_job_that_is_unknown() -> None:
    with Bench(crowd(Random(1), 3), TEXT).open() as session:
        names = ["q2", "q0", "q1"]
        assert VictimOrder(session, None).queues_in_turn(names) == names
        assert sorted(VictimOrder(session, session.queues["q0"]).queues_in_turn(names)) == ["q0", "q1", "q2"]
        assert VictimOrder(session, session.queues["q0"]).queues_in_turn(["q1"]) == ["q1"]


@pytest.mark.parametrize(("jobs", "one"), [("", True), ("a", True), ("aa", True), ("ab", False), ("aba", False)])
def test_whether_all_are_of_one_job(jobs: str, one: bool) -> None:
    tasks: list[Any] = [SimpleNamespace(job=job) for job in jobs]
    assert one_job(tasks) is one
